#include "client/api/word_wait.h"

#include <algorithm>

#include "common/clock.h"

namespace ferry::client {
namespace {

struct Looks {
  uint32_t spins;
  uint32_t yields;
};

// Yielding costs other threads nothing, so a thread yields long before it sleeps: waking a sleeper
// takes tens of microseconds.
Looks LooksFor(WordWait::From from) {
  switch (from) {
    case WordWait::From::kNode:
      return {200, 800};
    case WordWait::From::kKernels:
      return {0, 800};
    case WordWait::From::kNetwork:
      return {0, 300};  // each look turns the links, which pauses would keep from it
    case WordWait::From::kQuestion:
      return {0, 0};
  }
  return {0, 0};
}

// After so many yields a wait is shown (Calls::NoteWait).
constexpr uint32_t kYieldsToShow = 64;
constexpr uint64_t kShortestRestNs = 20'000;
constexpr uint64_t kRestPart = 8;

}  // namespace

WordWait::WordWait(FrontEnd& front_end, From from, uint64_t longest_rest_ns)
    : front_end_(front_end),
      longest_rest_ns_(longest_rest_ns),
      spins_left_(front_end.IsCrowded() ? 0 : LooksFor(from).spins),
      yields_left_(LooksFor(from).yields) {}

bool WordWait::Yield() {
  if (yields_left_ == 0) {
    return false;
  }
  yields_left_--;
  (void)front_end_.peers->Poll();
  if (shm::YieldToOthers() != 0 || yields_left_ % kYieldsToShow == 0) {
    front_end_.calls->NoteWait();
  }
  return true;
}

void WordWait::Rest() {
  const uint64_t now_ns = MonotonicNs();
  begin_ns_ = begin_ns_ == 0 ? now_ns : begin_ns_;
  front_end_.peers->Rest(
      std::clamp((now_ns - begin_ns_) / kRestPart, kShortestRestNs, longest_rest_ns_));
}

}  // namespace ferry::client
