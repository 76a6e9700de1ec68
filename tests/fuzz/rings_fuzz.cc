// Rank 0 offers rings of devices and writes anything into them, into their words and into the
// requests that they hold; rank 1, which does nothing, must not be ended for it.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "shm/atomic.h"
#include "shm/layout/device_ring_layout.h"
#include "shm/mpsc_ring.h"
#include "tests/fuzz/core_harness.h"

namespace ferry::fuzz {
namespace {

constexpr uint32_t kRings = 3;
constexpr uint32_t kSlots = 16;
constexpr uint64_t kRingBytes = 4096;
constexpr uint64_t kCounters = 32 << 10;  // in the region, behind the rings

shm::MpscRingLayout* RingAt(CoreHarness& core, uint32_t which) {
  return reinterpret_cast<shm::MpscRingLayout*>(core.heap() + which * kRingBytes);
}

// A sound one, of which the input spoils some.
void Offer(FuzzInput& input, CoreHarness& core, uint32_t which) {
  shm::MpscRingLayout* const ring = RingAt(core, which);
  if (input.Below(2) == 0) {
    std::memset(static_cast<void*>(ring), 0, kRingBytes);
    if (!shm::MpscRing::Initialize(ring, kSlots).ok()) {
      abort();
    }
    ring->completions = kSlots;
    ring->region = 1;
    ring->completions_offset = which * kRingBytes + shm::MpscRing::SizeBytes(kSlots);
    input.Spoil(ring);
  }
  shm::RingWords& words = core.session(0).rings[which];
  words.region = 1;
  words.offset = which * kRingBytes;
  words.capacity = kSlots;
  shm::StoreRelease(words.life, words.life + 1);
  if (input.Below(4) == 0) {
    input.Spoil(&words);
  }
  shm::FetchAdd(core.session(0).rings_changed, uint64_t{1}, std::memory_order_seq_cst);
}

void Ask(FuzzInput& input, CoreHarness& core, uint32_t which) {
  shm::MpscRingLayout* const ring = RingAt(core, which);
  const uint64_t ticket = ring->tickets++;
  shm::RingOperation request{};
  request.kind = input.Below(12);
  request.completion_region = input.Below(2);
  request.completion =
      which * kRingBytes + shm::MpscRing::SizeBytes(kSlots) + 16 * input.Below(kSlots);
  request.region = 1;
  if (request.kind < static_cast<uint32_t>(shm::RingKind::kPut)) {  // of a counter, or a request
    const uint64_t offset = kCounters + 128 * input.Below(8);
    std::memcpy(&request.operand, &offset, sizeof(offset));
    request.there = 1 + input.Below(3);
  } else {
    request.operation = static_cast<uint8_t>(input.Below(shm::kOneSidedOperations));
    request.width = 8;
    request.flags = static_cast<uint16_t>(input.Below(4));
    request.operand = kCounters + 8 * input.Below(16);
    request.there = kCounters + 8 * input.Below(16);
    request.rank = input.Below(4);
    request.segment = 1;
    request.compare = input.Below(3) == 0 ? 9000 : input.Below(17);
  }
  input.Spoil(&request);
  auto* const slots = reinterpret_cast<shm::MpscSlot*>(ring + 1);
  shm::MpscSlot& slot = slots[ticket % kSlots];
  std::memcpy(slot.payload, &request, sizeof(request));
  shm::StoreRelease(slot.number, ticket + 1 - (input.Below(16) == 1 ? 1 : 0));
}

// Sends the other node's answers to the operations that were passed on to it.
void AnswerFromFar(FuzzInput& input, CoreHarness& core) {
  progress::PacketHeader header{};
  header.magic = progress::kPacketMagic;
  header.version = progress::kPacketVersion;
  header.kind = static_cast<uint8_t>(progress::PacketKind::kOneSidedDone);
  header.stream = static_cast<uint8_t>(progress::OneSidedStream::kRings);
  header.key = kReceiveKey;
  header.job_key = kJobKey;
  header.source_node = 1;
  header.source = kFarRank;
  progress::WireOneSidedDone done{1U + input.Below(8), input.Take<uint64_t>(), 0,
                                  static_cast<uint32_t>(progress::OneSidedStream::kRings)};
  input.Spoil(&done);
  const size_t data_bytes = input.Below(2) * input.Below(32);
  header.body_bytes = static_cast<uint32_t>(sizeof(done) + data_bytes);
  std::vector<std::byte> packet(sizeof(header) + header.body_bytes);
  std::memcpy(packet.data(), &header, sizeof(header));
  std::memcpy(packet.data() + sizeof(header), &done, sizeof(done));
  core.Receive(std::move(packet));
}

void Step(FuzzInput& input, CoreHarness& core) {
  const uint32_t which = input.Below(kRings);
  switch (input.Below(8)) {
    case 0:
      Offer(input, core, which);
      core.RingDaemon();
      break;
    case 1:
    case 2:
    case 3:
      Ask(input, core, which);
      break;
    case 4:
      AnswerFromFar(input, core);
      break;
    case 5:
      if (input.Below(8) == 0) {
        core.EndFarRank();
      } else {
        input.Spoil(&core.session(0).rings[which]);
        shm::FetchAdd(core.session(0).rings_changed, uint64_t{1}, std::memory_order_seq_cst);
        core.RingDaemon();
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
  RunSteps(FuzzInput(data, size), Step,
           [](const CoreHarness& core) { return !core.ended().contains(1); });
  return 0;
}
