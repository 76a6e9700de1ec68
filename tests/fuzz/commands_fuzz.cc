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
  constexpr uint32_t kKinds = static_cast<uint32_t>(shm::DescriptorKind::kOneSided);
  command.kind = static_cast<uint8_t>(1 + input.Below(kKinds));
  command.destination = kFarRank;
  command.size_bytes = input.Take<uint16_t>() % 64;
  const uint32_t request = input.Below(kRequests);
  switch (static_cast<shm::DescriptorKind>(command.kind)) {
    case shm::DescriptorKind::kRemoteRts:
    case shm::DescriptorKind::kRetract:
      SetPayload(&command, shm::RemoteRts{request, 1, 0, {1, 0, 0}});
      break;
    case shm::DescriptorKind::kRetracted:
      SetPayload(&command, shm::RemoteRts{0, 0, core.LastOffer(), {}});
      break;
    case shm::DescriptorKind::kRndvGet:
      SetPayload(&command, shm::RndvGetCommand{request, 1, {}});
      break;
    case shm::DescriptorKind::kOneSided: {
      shm::OneSidedCommand words{};
      words.operation = static_cast<uint8_t>(1 + input.Below(shm::kOneSidedOperations - 1));
      if (shm::IsLong(static_cast<shm::OneSidedOperation>(words.operation))) {
        command.flags = shm::kFlagCell;  // whatever lies there
      }
      words.width = 8;
      words.answer = words.operation == static_cast<uint8_t>(shm::OneSidedOperation::kPut)
                         ? shm::kNoAnswer
                         : static_cast<uint16_t>(input.Below(shm::kAnswers));
      if (words.operation == static_cast<uint8_t>(shm::OneSidedOperation::kAccumulate)) {
        command.tag = static_cast<int32_t>(AnyAccumulation(input));
        command.size_bytes = 16;
      } else {
        command.size_bytes = words.operation < 3 ? command.size_bytes % 17 : 0;
      }
      SetPayload(&command, words);
      break;
    }
    case shm::DescriptorKind::kAccuse:
      SetPayload(&command, shm::Accusation{input.Below(3), 0, {}});
      break;
    default:
      break;
  }
  input.Spoil(&command);
  core.PushCommand(command);
}

// The transfer that a kRndvGet names: a matched one for the latest RTS, more or less spoilt.
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

template <typename Body>
void FarRankSays(CoreHarness& core, progress::PacketHeader header, progress::PacketKind kind,
                 const Body& body) {
  header.magic = progress::kPacketMagic;
  header.version = progress::kPacketVersion;
  header.kind = static_cast<uint8_t>(kind);
  header.key = kReceiveKey;
  header.job_key = kJobKey;
  header.source_node = 1;
  header.source = kFarRank;
  header.body_bytes = sizeof(body);
  std::vector<std::byte> packet(sizeof(header) + sizeof(body));
  std::memcpy(packet.data(), &header, sizeof(header));
  std::memcpy(packet.data() + sizeof(header), &body, sizeof(body));
  core.Receive(std::move(packet));
}

void Announce(FuzzInput& input, CoreHarness& core) {
  const progress::WireRts rts{1 + input.Below(4), 1, 7, 0};
  progress::PacketHeader header{};
  header.flags = input.Below(2) == 0 ? shm::kFlagSourcePrivate : 0;
  header.size_bytes = input.Take<uint16_t>();
  FarRankSays(core, header, progress::PacketKind::kRemoteRts, rts);
}

// Takes back an RTS of its own, perhaps.
void Retract(FuzzInput& input, CoreHarness& core) {
  FarRankSays(core, {}, progress::PacketKind::kRetract, progress::WireSend{1 + input.Below(4), 1});
}

void Leave(CoreHarness& core) {
  FarRankSays(core, {}, progress::PacketKind::kEnded,
              progress::WireEnded{static_cast<uint32_t>(ErrorCode::kNotFound), 0});
}

void Step(FuzzInput& input, CoreHarness& core) {
  switch (input.Below(8)) {
    case 0:
    case 1:
      PushCommand(input, core);
      break;
    case 2:
      DescribeTransfer(input, core);
      break;
    case 3:
      Announce(input, core);
      break;
    case 4:
      core.Turn();
      break;
    case 5:
      Retract(input, core);
      break;
    case 6:
      Leave(core);
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
