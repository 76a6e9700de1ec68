#include "client/mpi/request/word_wait.h"

#include <sched.h>

#include <algorithm>

#include "client/mpi/base/connection.h"
#include "common/clock.h"

namespace ferry::mpi {
namespace {

constexpr uint32_t kSpins = 200;
constexpr uint32_t kYields = 100;
// With another node: a message passes two daemons meanwhile, and perhaps none of them has a core.
constexpr uint32_t kSpinsOfFar = 20;
constexpr uint32_t kYieldsOfFar = 300;
constexpr uint64_t kShortestRestNs = 20'000;
constexpr uint64_t kLongestRestNs = 1'000'000;
constexpr uint64_t kRestPart = 8;
constexpr int kLooksAtTheEnd = 100;

}  // namespace

WordWait::WordWait(bool is_far)
    : spins_left_(front_end->IsCrowded() ? 0
                  : is_far               ? kSpinsOfFar
                                         : kSpins),
      yields_left_(is_far ? kYieldsOfFar : kYields) {}

bool WordWait::Yield() {
  if (yields_left_ == 0) {
    return false;
  }
  yields_left_--;
  (void)front_end->Poll();
  sched_yield();
  return true;
}

void WordWait::Rest() {
  const uint64_t now_ns = MonotonicNs();
  begin_ns_ = begin_ns_ == 0 ? now_ns : begin_ns_;
  front_end->Rest(std::clamp((now_ns - begin_ns_) / kRestPart, kShortestRestNs, kLongestRestNs));
}

void AwaitWords(bool (*done)(void*), void* argument, bool is_far) {
  WordWait wait(is_far);
  bool is_done = done(argument);
  while (!is_done && front_end->poison() == ErrorCode::kOk) {
    if (!wait.Pause()) {
      wait.Rest();
    }
    is_done = done(argument);
  }
  // Poisoned, all fail, some of them only at a second look.
  for (int looks = 0; !is_done && looks < kLooksAtTheEnd; ++looks) {
    sched_yield();
    is_done = done(argument);
  }
}

}  // namespace ferry::mpi
