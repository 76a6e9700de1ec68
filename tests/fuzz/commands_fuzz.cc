// Rank 0 writes anything into its lane to the daemon and into its transfers; rank 1, which does
// nothing, must not be ended for it.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/core_harness.h"

namespace ferry::fuzz {
namespace {

template <typename Payload>
void SetPayload(shm::Descriptor* descriptor, const Payload& payload) {
  std::memcpy(descriptor->payload, &payload, sizeof(payload));
}

void PushCommand(FuzzInput& input, CoreHarness& core) {
  shm::Descriptor command{};
  command.kind = static_cast<uint8_t>(1 + input.Below(8));
  command.destination = kFarRank;
  command.size_bytes = input.Take<uint16_t>() % 64;
  const uint32_t request = input.Below(kRequests);
  switch (static_cast<shm::DescriptorKind>(command.kind)) {
    case shm::DescriptorKind::kRemoteRts:
      SetPayload(&command, shm::RemoteRts{request, 1, 0, {1, 0, 0}});
      break;
    case shm::DescriptorKind::kPull:
      SetPayload(&command, shm::PullCommand{request, 1, {}});
      break;
    case shm::DescriptorKind::kAccuse:
      SetPayload(&command, shm::Accusation{input.Below(3), 0, {}});
      break;
    default:
      break;
  }
  input.Spoil(&command);
  core.PushCommand(command);
}

// What a kPull names: a matched transfer of what was offered last, more or less spoilt.
void DescribeTransfer(FuzzInput& input, CoreHarness& core) {
  shm::TransferLayout transfer{};
  transfer.state = static_cast<uint32_t>(shm::TransferState::kMatched);
  transfer.generation = 1;
  transfer.source_rank = kFarRank;
  transfer.destination = {1, 0, 0};
  transfer.size_bytes = input.Take<uint16_t>();
  transfer.remote_key = core.LastOffer();
  input.Spoil(&transfer);
  std::memcpy(core.transfer(1 + input.Below(kRequests - 1)), &transfer, sizeof(transfer));
}

void Offer(FuzzInput& input, CoreHarness& core) {
  daemon::WireRts rts{1 + input.Below(4), 1, 7, 0};
  daemon::PacketHeader header{};
  header.magic = daemon::kPacketMagic;
  header.version = daemon::kPacketVersion;
  header.kind = static_cast<uint8_t>(daemon::PacketKind::kRemoteRts);
  header.flags = input.Below(2) == 0 ? shm::kFlagSourcePrivate : 0;
  header.key = kReceiveKey;
  header.job_key = kJobKey;
  header.source_node = 1;
  header.source = kFarRank;
  header.size_bytes = input.Take<uint16_t>();
  header.body_bytes = sizeof(rts);
  std::vector<std::byte> packet(sizeof(header) + sizeof(rts));
  std::memcpy(packet.data(), &header, sizeof(header));
  std::memcpy(packet.data() + sizeof(header), &rts, sizeof(rts));
  core.Receive(std::move(packet));
}

void Step(FuzzInput& input, CoreHarness& core) {
  switch (input.Below(6)) {
    case 0:
    case 1:
      PushCommand(input, core);
      break;
    case 2:
      DescribeTransfer(input, core);
      break;
    case 3:
      Offer(input, core);
      break;
    case 4:
      core.Turn();
      break;
    default:
      core.session(0).daemon_wake.activity[input.Below(shm::kActivityWords)] =
          input.Take<uint64_t>();
      break;
  }
}

}  // namespace
}  // namespace ferry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ferry::fuzz;
  RunSteps(FuzzInput(data, size), Step,
           [](const CoreHarness& core) { return !core.ended().contains(1) && !core.job_failed(); });
  return 0;
}
