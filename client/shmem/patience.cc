#include "client/shmem/patience.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "client/shmem/fail.h"
#include "client/shmem/job.h"
#include "client/shmem/lives.h"
#include "common/clock.h"

namespace ferry::shmem {
namespace {

constexpr uint32_t kSpins = 400;
constexpr uint32_t kYields = 100;
// With far PEs: a message passes two daemons meanwhile, and perhaps none of them has a core.
constexpr uint32_t kSpinsOfFar = 20;
constexpr uint32_t kYieldsOfFar = 300;
constexpr uint64_t kShortestSleepNs = 20'000;
constexpr uint64_t kLongestSleepNs = 5'000'000;
constexpr uint64_t kSleepPart = 8;

}  // namespace

Patience::Patience(const char* call, Deaths deaths, Looks looks)
    : call_(call),
      deaths_(deaths),
      spins_left_(job.front_end->IsCrowded() || looks == Looks::kMessages ? 0
                  : job.has_far_pes                                       ? kSpinsOfFar
                                                                          : kSpins),
      yields_left_(looks == Looks::kMessages ? 0
                   : job.has_far_pes         ? kYieldsOfFar
                                             : kYields) {}

void Patience::RestLonger() {
  if (yields_left_ != 0) {
    yields_left_--;
    sched_yield();
    return;
  }
  const uint64_t now_ns = MonotonicNs();
  begin_ns_ = begin_ns_ == 0 ? now_ns : begin_ns_;
  LookForCancellation(call_);
  LookForDeaths();
  const uint64_t sleep_ns =
      std::clamp((now_ns - begin_ns_) / kSleepPart, kShortestSleepNs, kLongestSleepNs);
  if (job.has_far_pes) {
    job.front_end->Rest(sleep_ns);
    return;
  }
  (void)job.front_end->Poll();  // another front end's messages go on
  const timespec sleep{0, static_cast<long>(sleep_ns)};
  nanosleep(&sleep, nullptr);
}

// Ends the program at the second look only: between the two the caller has looked for what a PE may
// have stored before it died.
void Patience::LookForDeaths() {
  const ErrorCode own = job.front_end->poison();
  if (own != ErrorCode::kOk) {
    GiveUp(call_, own, job.front_end->Explain(own).ToString());
  }
  death_count_ = 0;
  int dead = -1;
  for (int pe = 0; pe < job.size; ++pe) {
    if (IsDead(pe)) {
      dead = pe;
      death_count_++;
    }
  }
  if (dead >= 0 && deaths_ == Deaths::kEndProgram) {
    if (has_found_death_) {
      const ErrorCode state = StateOf(dead);
      GiveUp(call_, state, StateText(dead, state) + "; this one may be waiting for it");
    }
    has_found_death_ = true;
  }
}

}  // namespace ferry::shmem
