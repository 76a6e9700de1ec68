#include "tools/profile/message_pairs.h"

#include <algorithm>
#include <tuple>

namespace ferry::tools {
namespace {

using shm::TraceEvent;
using shm::TraceKind;

uint64_t Mixed(uint64_t value) {  // the finalizer of MurmurHash3
  value ^= value >> 33;
  value *= 0xff51'afd7'ed55'8ccd;
  value ^= value >> 33;
  value *= 0xc4ce'b9fe'1a85'ec53;
  return value ^ value >> 33;
}

// Numbers that follow each other may pass 2^32 in between.
bool IsBefore(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

}  // namespace

bool IsMessage(const TraceEvent& event) {
  return event.kind == TraceKind::kSend || event.kind == TraceKind::kReceive;
}

bool HasId(const TraceEvent& event) {
  return IsMessage(event) && event.number != 0 && (event.flags & shm::kTraceFailed) == 0;
}

uint64_t IdOf(uint32_t rank, const TraceEvent& event) {
  const auto peer = static_cast<uint32_t>(event.peer);
  const bool is_send = event.kind == TraceKind::kSend;
  const uint64_t ends = is_send ? uint64_t{rank} << 32 | peer : uint64_t{peer} << 32 | rank;
  const uint64_t kind = uint64_t{event.group} << 32 | static_cast<uint32_t>(event.tag);
  return Mixed(Mixed(Mixed(ends) + kind) + event.number);
}

uint64_t TimeOf(const TraceEvent& event) {
  return event.kind == TraceKind::kSend ? event.begin_ns : event.end_ns;
}

// A rank counts messages when they have come, which large ones do late. Of those that cannot
// overtake each other, the first went to the receive that was posted first.
void OrderReceives(std::vector<TraceEvent>* events) {
  std::vector<TraceEvent*> receives;
  for (TraceEvent& event : *events) {
    if (event.kind == TraceKind::kReceive && HasId(event)) {
      receives.push_back(&event);
    }
  }
  const auto stream_of = [](const TraceEvent* one) {
    return std::tuple(one->peer, one->group, one->tag);
  };
  std::stable_sort(receives.begin(), receives.end(), [&](const auto* a, const auto* b) {
    return stream_of(a) != stream_of(b) ? stream_of(a) < stream_of(b)
                                        : IsBefore(a->order, b->order);
  });
  for (size_t begin = 0; begin < receives.size();) {
    size_t end = begin;
    std::vector<uint32_t> numbers;
    for (; end < receives.size() && stream_of(receives[end]) == stream_of(receives[begin]); ++end) {
      numbers.push_back(receives[end]->number);
    }
    std::sort(numbers.begin(), numbers.end(), IsBefore);
    for (size_t i = begin; i < end; ++i) {
      receives[i]->number = numbers[i - begin];
    }
    begin = end;
  }
}

void Pairing::Sort() {
  for (std::vector<MessageEnd>* ends : {&sends, &receives}) {
    std::sort(ends->begin(), ends->end(),
              [](const MessageEnd& a, const MessageEnd& b) { return a.id < b.id; });
  }
}

}  // namespace ferry::tools
