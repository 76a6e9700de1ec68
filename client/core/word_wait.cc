#include "client/core/word_wait.h"

#include <sched.h>

#include <algorithm>

#include "common/clock.h"

namespace ferry::client {
namespace {

struct Looks {
  uint32_t spins;
  uint32_t yields;
};

// Among ranks that share cores nobody spins. Who yields beside kernels loses nothing by it, and so
// yields for long; but where there are more ranks than cores, all that yield take turns.
Looks LooksFor(WordWait::From from, bool is_crowded) {
  switch (from) {
    case WordWait::From::kNode:
      return {is_crowded ? 0U : 200, 100};
    case WordWait::From::kKernels:
      return {0, is_crowded ? 50U : 800};
    case WordWait::From::kNetwork:
      return {is_crowded ? 0U : 20, 300};
    case WordWait::From::kQuestion:
      return {0, 0};
  }
  return {0, 0};
}

constexpr uint64_t kShortestRestNs = 20'000;
constexpr uint64_t kRestPart = 8;

}  // namespace

WordWait::WordWait(FrontEnd& front_end, From from, uint64_t longest_rest_ns)
    : front_end_(front_end),
      longest_rest_ns_(longest_rest_ns),
      spins_left_(LooksFor(from, front_end.IsCrowded()).spins),
      yields_left_(LooksFor(from, front_end.IsCrowded()).yields) {}

bool WordWait::Yield() {
  if (yields_left_ == 0) {
    return false;
  }
  yields_left_--;
  (void)front_end_.Poll();
  sched_yield();
  return true;
}

void WordWait::Rest() {
  const uint64_t now_ns = MonotonicNs();
  begin_ns_ = begin_ns_ == 0 ? now_ns : begin_ns_;
  front_end_.Rest(std::clamp((now_ns - begin_ns_) / kRestPart, kShortestRestNs, longest_rest_ns_));
}

}  // namespace ferry::client
