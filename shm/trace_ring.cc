#include "shm/trace_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "shm/atomic.h"
#include "shm/call_record.h"

namespace ferry::shm {
namespace {

constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kWords = sizeof(TraceSlot) / kWord;
constexpr size_t kCheckWord = offsetof(TraceSlot, check) / kWord;
static_assert(kCheckWord == kWords - 1);
constexpr int kNumberShift = 16;
constexpr int kKindShift = 8;

// Odd, from the digits of pi: the check of a slot of zeros is not 0.
constexpr uint64_t kSeed = 0x243f'6a88'85a3'08d3;
constexpr uint64_t kFactors[kCheckWord] = {
    0x1319'8a2e'0370'7345, 0xa409'3822'299f'31d1, 0x082e'fa98'ec4e'6c89, 0x4528'21e6'38d0'1377,
    0xbe54'66cf'34e9'0c6d, 0xc0ac'29b7'c97c'50dd, 0x3f84'd5b5'b547'0917};

uint64_t TraceCheck(const uint64_t (&words)[kWords]) {
  uint64_t sum = kSeed;
  for (size_t i = 0; i < kCheckWord; ++i) {
    sum += words[i] * kFactors[i];
  }
  return sum;
}

bool IsOfCall(TraceKind kind) { return kind == TraceKind::kCall || kind == TraceKind::kWait; }

// Returns false for what no rank writes. `name` of an event that has none is in its order.
bool Take(const TraceSlot& slot, const TraceLimits& limits, TraceEvent* event) {
  const auto kind = static_cast<uint8_t>(slot.head >> kKindShift);
  if (kind == 0 || kind > static_cast<uint8_t>(TraceKind::kWork) ||
      slot.begin_ns < limits.earliest_ns || slot.end_ns < slot.begin_ns ||
      slot.end_ns > limits.latest_ns) {
    return false;
  }
  event->kind = static_cast<TraceKind>(kind);
  event->flags = static_cast<uint8_t>(slot.head);
  event->begin_ns = slot.begin_ns;
  event->end_ns = slot.end_ns;
  event->thread = slot.thread;
  event->group = slot.group;
  event->tag = slot.tag;
  event->number = slot.number;
  event->bytes = slot.bytes;
  const bool is_rank = slot.peer >= 0 && static_cast<uint32_t>(slot.peer) < limits.job_size;
  event->peer = is_rank || slot.peer == kCallAnyRank ? slot.peer : kCallNoRank;
  if (!IsOfCall(event->kind)) {
    event->order = slot.order;
    const bool is_message = event->kind == TraceKind::kSend || event->kind == TraceKind::kReceive;
    return !is_message || is_rank;
  }
  if (slot.order >= kMostCallNames || !IsCallName(static_cast<uint16_t>(slot.order))) {
    return false;
  }
  event->name = static_cast<CallName>(slot.order);
  return true;
}

}  // namespace

// ---- The writer ---------------------------------------------------------------------------------

uint64_t TraceRingWriter::BytesWithin(uint64_t bytes) {
  if (bytes < sizeof(TraceRingHeader) + kTraceMinSlots * sizeof(TraceSlot)) {
    return 0;
  }
  const uint64_t slots = (bytes - sizeof(TraceRingHeader)) / sizeof(TraceSlot);
  return sizeof(TraceRingHeader) +
         std::min<uint64_t>(std::bit_floor(slots), kTraceMaxSlots) * sizeof(TraceSlot);
}

TraceRingWriter::TraceRingWriter(std::span<std::byte> part, uint64_t now_ns)
    : slots_(reinterpret_cast<TraceSlot*>(part.data() + sizeof(TraceRingHeader))),
      mask_((BytesWithin(part.size()) - sizeof(TraceRingHeader)) / sizeof(TraceSlot) - 1) {
  auto& header = *reinterpret_cast<TraceRingHeader*>(part.data());
  header.version = kTraceVersion;
  header.slots = static_cast<uint32_t>(mask_ + 1);
  header.begin_ns = now_ns;
  StoreRelease(header.magic, kTraceMagic);  // a copy with it has the header's other words
}

void TraceRingWriter::Add(const TraceEvent& event, bool shared) {
  uint64_t number;
  if (shared) {
    number = added_.fetch_add(1, std::memory_order_relaxed) + 1;
  } else {
    number = added_.load(std::memory_order_relaxed) + 1;
    added_.store(number, std::memory_order_relaxed);
  }
  const auto both = [](auto low, auto high) {
    return uint64_t{static_cast<uint32_t>(low)} | uint64_t{static_cast<uint32_t>(high)} << 32;
  };
  const uint32_t order = IsOfCall(event.kind) ? static_cast<uint32_t>(event.name) : event.order;
  const uint64_t words[kCheckWord] = {number << kNumberShift |
                                          uint64_t{static_cast<uint8_t>(event.kind)} << kKindShift |
                                          event.flags,
                                      event.begin_ns,
                                      event.end_ns,
                                      both(event.thread, order),
                                      both(event.group, event.peer),
                                      both(event.tag, event.number),
                                      event.bytes};
  auto* const to = reinterpret_cast<uint64_t*>(&slots_[(number - 1) & mask_]);
  uint64_t check = kSeed;
  for (size_t i = 0; i < kCheckWord; ++i) {
    check += words[i] * kFactors[i];
    StoreRelaxed(to[i], words[i]);
  }
  StoreRelaxed(to[kCheckWord], check);
}

// ---- The reader ---------------------------------------------------------------------------------

std::optional<TraceEvents> ReadTraceRing(std::span<const std::byte> copy,
                                         const TraceLimits& limits) {
  TraceRingHeader header;
  if (copy.size() < sizeof(header)) {
    return std::nullopt;
  }
  std::memcpy(&header, copy.data(), sizeof(header));
  const uint64_t slots = (copy.size() - sizeof(header)) / sizeof(TraceSlot);
  if (header.magic != kTraceMagic || header.version != kTraceVersion ||
      header.slots < kTraceMinSlots || header.slots > slots || !std::has_single_bit(header.slots)) {
    return std::nullopt;
  }
  TraceEvents read;
  read.begin_ns = header.begin_ns;
  struct Found {
    uint64_t number;
    TraceEvent event;
  };
  std::vector<Found> found;
  uint64_t whole = 0;
  for (uint64_t i = 0; i < header.slots; ++i) {
    uint64_t words[kWords];
    std::memcpy(words, copy.data() + sizeof(header) + i * sizeof(TraceSlot), sizeof(words));
    const uint64_t number = words[0] >> kNumberShift;
    if (number == 0 || ((number - 1) & (header.slots - 1)) != i ||
        words[kCheckWord] != TraceCheck(words)) {
      continue;
    }
    ++whole;
    read.added = std::max(read.added, number);
    TraceSlot slot;
    std::memcpy(static_cast<void*>(&slot), words, sizeof(slot));
    Found made{number, {}};
    if (Take(slot, limits, &made.event)) {
      found.push_back(made);
    } else {
      ++read.refused;
    }
  }
  read.lost = read.added - std::min(read.added, whole);
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.number < b.number; });
  read.events.reserve(found.size());
  for (const Found& one : found) {
    read.events.push_back(one.event);
  }
  return read;
}

}  // namespace ferry::shm
