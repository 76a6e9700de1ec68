#include "shm/daemon_trace.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "shm/atomic.h"

namespace ferry::shm {
namespace {

constexpr size_t kWords = sizeof(DaemonTraceSlot) / sizeof(uint64_t);
constexpr int kCheckShift = 32;  // the check is the upper half of the last word
static_assert(offsetof(DaemonTraceSlot, check) == sizeof(DaemonTraceSlot) - sizeof(uint32_t));

// Odd, from the digits of pi, as those of shm/trace_ring.cc, which says what they are good for: a
// slot with words of two events passes in one case of 2^32. The check of zeros is not 0.
constexpr uint64_t kSeed = 0x243f'6a88'85a3'08d3;
constexpr uint64_t kFactors[kWords] = {
    0x1319'8a2e'0370'7345, 0xa409'3822'299f'31d1, 0x082e'fa98'ec4e'6c89, 0x4528'21e6'38d0'1377,
    0xbe54'66cf'34e9'0c6d, 0xc0ac'29b7'c97c'50dd, 0x3f84'd5b5'b547'0917, 0x9216'd5d9'8979'fb1b};

// Returns the last word with the check of all others, and of its own lower half.
uint64_t Checked(const uint64_t (&words)[kWords]) {
  uint64_t sum = kSeed;
  for (size_t i = 0; i + 1 < kWords; ++i) {
    sum += words[i] * kFactors[i];
  }
  const uint64_t low = static_cast<uint32_t>(words[kWords - 1]);
  sum += low * kFactors[kWords - 1];
  return sum >> kCheckShift << kCheckShift | low;
}

bool IsPossible(const DaemonTraceSlot& slot, const DaemonTraceLimits& limits) {
  return slot.work <= static_cast<uint8_t>(kLastDaemonWork) &&
         slot.work != static_cast<uint8_t>(DaemonWork::kCounters) &&
         slot.place <= static_cast<uint8_t>(kLastDaemonPlace) && slot.begin_ns <= slot.end_ns &&
         slot.end_ns <= limits.latest_ns && slot.rank < limits.job_size &&
         slot.peer < limits.job_size;
}

}  // namespace

std::string_view DaemonWorkText(DaemonWork work) {
  switch (work) {
    case DaemonWork::kEagerSend:
      return "eager send";
    case DaemonWork::kDelivery:
      return "delivery";
    case DaemonWork::kCounters:
      return "counters";
    case DaemonWork::kRts:
      return "RTS";
    case DaemonWork::kRndvGet:
      return "rendezvous get";
    case DaemonWork::kRead:
      return "RDMA read";
    case DaemonWork::kCopyIn:
      return "copy in";
    case DaemonWork::kCopyOut:
      return "copy out";
    case DaemonWork::kStagedSend:
      return "staged send";
    case DaemonWork::kLent:
      return "block lent";
    case DaemonWork::kPut:
      return "put";
    case DaemonWork::kWrite:
      return "RDMA write";
  }
  return "?";
}

std::string DaemonPlaceText(DaemonPlace place, uint16_t worker) {
  switch (place) {
    case DaemonPlace::kProgressThread:
      return "progress thread";
    case DaemonPlace::kCopyWorker:
      return "copy worker " + std::to_string(worker);
    case DaemonPlace::kFerryWorker:
      return "ferry-worker";
    case DaemonPlace::kNic:
      return "NIC";
    case DaemonPlace::kStream:
      return "device " + std::to_string(worker / 2) + (worker % 2 == 0 ? " to host" : " from host");
  }
  return "?";
}

// ---- The writer ---------------------------------------------------------------------------------

uint64_t DaemonTraceWriter::BytesWithin(uint64_t bytes) {
  if (bytes < sizeof(DaemonTraceHeader) + kDaemonTraceMinSlots * sizeof(DaemonTraceSlot)) {
    return 0;
  }
  const uint64_t slots = (bytes - sizeof(DaemonTraceHeader)) / sizeof(DaemonTraceSlot);
  return sizeof(DaemonTraceHeader) +
         std::min<uint64_t>(std::bit_floor(slots), kDaemonTraceMaxSlots) * sizeof(DaemonTraceSlot);
}

DaemonTraceWriter::DaemonTraceWriter(Mapping memory, uint64_t now_ns)
    : memory_(std::move(memory)),
      header_(reinterpret_cast<DaemonTraceHeader*>(memory_.base())),
      slots_(reinterpret_cast<DaemonTraceSlot*>(memory_.base() + sizeof(DaemonTraceHeader))),
      mask_((BytesWithin(memory_.size_bytes()) - sizeof(DaemonTraceHeader)) /
                sizeof(DaemonTraceSlot) -
            1) {
  header_->version = kDaemonTraceVersion;
  header_->slots = static_cast<uint32_t>(mask_ + 1);
  header_->begin_ns = now_ns;
  StoreRelease(header_->magic, kDaemonTraceMagic);  // a copy with it has the other words
}

void DaemonTraceWriter::Add(const DaemonTraceSlot& event) {
  uint64_t words[kWords];
  std::memcpy(words, &event, sizeof(words));
  words[kWords - 1] = Checked(words);
  auto* const to = reinterpret_cast<uint64_t*>(&slots_[added_ & mask_]);
  for (size_t i = 0; i < kWords; ++i) {
    StoreRelaxed(to[i], words[i]);
  }
  StoreRelaxed(header_->added, ++added_);
}

// ---- The reader ---------------------------------------------------------------------------------

std::optional<DaemonTraceEvents> ReadDaemonTrace(std::span<const std::byte> copy,
                                                 const DaemonTraceLimits& limits) {
  DaemonTraceHeader header;
  if (copy.size() < sizeof(header)) {
    return std::nullopt;
  }
  std::memcpy(static_cast<void*>(&header), copy.data(), sizeof(header));
  const uint64_t slots = (copy.size() - sizeof(header)) / sizeof(DaemonTraceSlot);
  if (header.magic != kDaemonTraceMagic || header.version != kDaemonTraceVersion ||
      header.slots < kDaemonTraceMinSlots || header.slots > slots ||
      !std::has_single_bit(header.slots)) {
    return std::nullopt;
  }
  DaemonTraceEvents read;
  for (uint64_t i = 0; i < header.slots; ++i) {
    uint64_t words[kWords];
    std::memcpy(words, copy.data() + sizeof(header) + i * sizeof(DaemonTraceSlot), sizeof(words));
    if (words[kWords - 1] != Checked(words)) {
      continue;
    }
    DaemonTraceSlot slot;
    std::memcpy(static_cast<void*>(&slot), words, sizeof(slot));
    if (IsPossible(slot, limits)) {
      read.events.push_back(slot);
    } else {
      ++read.refused;
    }
  }
  std::stable_sort(read.events.begin(), read.events.end(),
                   [](const auto& a, const auto& b) { return a.end_ns < b.end_ns; });
  read.lost = header.added - std::min<uint64_t>(header.added, read.events.size());
  const bool is_all = read.lost == 0 || read.events.empty();
  read.complete_since_ns = is_all ? header.begin_ns : read.events.front().end_ns;
  return read;
}

}  // namespace ferry::shm
