// Another daemon sends any packets, with or without the right key.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/fuzz/core_harness.h"

namespace ferry::fuzz {
namespace {

std::vector<std::byte> MakePacket(FuzzInput& input) {
  progress::PacketHeader header{};
  header.magic = progress::kPacketMagic;
  header.version = progress::kPacketVersion;
  // Packet kinds from 9 up to kRetract are left out: they need matched pairs, or RTRs.
  constexpr uint32_t kFirst = static_cast<uint32_t>(progress::PacketKind::kRetract);
  constexpr uint32_t kLast = static_cast<uint32_t>(progress::PacketKind::kSwitch);
  const uint32_t kind = 1 + input.Below(8 + kLast - kFirst + 1);
  header.kind = static_cast<uint8_t>(kind < 9 ? kind : kFirst + kind - 9);
  header.key = kReceiveKey;
  header.job_key = kJobKey;
  header.source_node = 1;
  header.source = kFarRank;
  header.destination = input.Below(2);
  constexpr uint32_t kBodies[] = {0,
                                  8,
                                  sizeof(progress::WireRts),
                                  sizeof(progress::WireCredit),
                                  sizeof(progress::WireResult),
                                  sizeof(progress::WireRndvGet),
                                  sizeof(progress::WireBlock),
                                  sizeof(progress::WireOneSided),
                                  sizeof(progress::WireOneSided) + 100,
                                  sizeof(progress::WireOneSided) + sizeof(progress::WireRts),
                                  4 * sizeof(progress::WireOneSided),
                                  sizeof(progress::WireOneSidedRts),
                                  8192,
                                  sizeof(progress::WireRts) + 9000};
  std::vector<std::byte> body(kBodies[input.Below(std::size(kBodies))]);
  constexpr size_t kChosen = 3 * sizeof(progress::WireOneSided);
  const auto bytes = input.TakeBytes(std::min<size_t>(body.size(), kChosen));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(body.data()));
  header.body_bytes = static_cast<uint32_t>(body.size());
  header.size_bytes = body.size() > 9000 ? 9000 : body.size();  // with an RTS, its data alone
  if (header.kind == static_cast<uint8_t>(progress::PacketKind::kOneSided)) {
    header.number = input.Below(3);
    header.size_bytes = body.size() > sizeof(progress::WireOneSided) ? 100 : input.Below(17);
    // Operations that may be, of which the input spoils some.
    for (size_t at = 0; at + sizeof(progress::WireOneSided) <= body.size() && input.Below(4) != 0;
         at += sizeof(progress::WireOneSided)) {
      progress::WireOneSided wire;
      std::memcpy(&wire, body.data() + at, sizeof(wire));
      wire.operation = static_cast<uint8_t>(input.Below(shm::kOneSidedOperations));
      wire.width = 8;
      wire.region = 1;
      wire.size_bytes = input.Below(17);
      const bool accumulates =
          wire.operation == static_cast<uint8_t>(shm::OneSidedOperation::kAccumulate);
      wire.signal_region = accumulates ? AnyAccumulation(input) : 1;
      wire.offset = 8 * input.Below(16);
      std::memcpy(body.data() + at, &wire, sizeof(wire));
    }
  }
  input.Spoil(&header);
  std::vector<std::byte> packet(sizeof(header) + body.size());
  std::memcpy(packet.data(), &header, sizeof(header));
  std::copy(body.begin(), body.end(), packet.begin() + sizeof(header));
  packet.resize(input.Below(32) == 0 ? input.Below(128) % (packet.size() + 1) : packet.size());
  return packet;
}

// Rank 0 announces what the packets may ask for, and fetches what they announce.
void PushHonestCommand(FuzzInput& input, CoreHarness& core) {
  shm::Descriptor command{};
  command.destination = kFarRank;
  command.size_bytes = 9000;
  const uint32_t request = 1 + input.Below(kRequests - 1);
  if (input.Below(2) == 0) {
    command.kind = static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts);
    const bool in_heap = input.Below(2) == 0;
    command.flags = in_heap ? 0 : shm::kFlagSourcePrivate;
    const shm::RemoteRts rts{request, 1, 0, {in_heap ? 1U : 0U, 0, 64}};
    std::memcpy(command.payload, &rts, sizeof(rts));
  } else {
    shm::TransferLayout transfer{};
    transfer.state = static_cast<uint32_t>(shm::TransferState::kMatched);
    transfer.generation = 1;
    transfer.source_rank = kFarRank;
    transfer.destination = {1, 0, 0};
    transfer.size_bytes = input.Take<uint16_t>();
    transfer.remote_key = core.LastOffer();
    std::memcpy(core.transfer(request), &transfer, sizeof(transfer));
    command.kind = static_cast<uint8_t>(shm::DescriptorKind::kRndvGet);
    const shm::RndvGetCommand rndv_get{request, 1, {}};
    std::memcpy(command.payload, &rndv_get, sizeof(rndv_get));
  }
  core.PushCommand(command);
}

void Step(FuzzInput& input, CoreHarness& core) {
  switch (input.Below(8)) {
    case 0:
    case 1:
    case 2:
    case 3:
      core.Receive(MakePacket(input));
      break;
    case 4:
      PushHonestCommand(input, core);
      break;
    case 5:
      if (input.Below(16) == 0) {
        core.EndFarRank();
      }
      break;
    default:
      core.Turn();
      break;
  }
}

}  // namespace
}  // namespace ferry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ferry::fuzz;
  RunSteps(FuzzInput(data, size), Step, [](const CoreHarness& core) {
    return core.ended().empty();  // no packet makes a rank guilty
  });
  return 0;
}
