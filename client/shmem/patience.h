// How a PE waits for memory that others write in ways nobody is told of, such as plain stores: it
// looks, and looks less often the longer it has waited.
//
// First it looks at once again and again, then lets other threads run in between, then sleeps. Each
// sleep is an eighth of the time waited so far, so what comes is seen late by no more than that;
// but never longer than 5 ms, so it is seen soon after a long wait, too. Such a wait takes less
// than 1 % of a core.
//
// What far PEs write is told, since this node's daemon does it for them: that ends a sleep at once.
// With far PEs in the job it sleeps early, so that daemons on the same cores get to it.
//
// Calling thread: one wait of one thread.
#pragma once

#include <cstdint>

#include "shm/wait_policy.h"

namespace ferry::shmem {

class Patience {
 public:
  // What happens when another PE has died: the program, or a queue's call, ends (GiveUp of fail.h),
  // with a sentence that names it and the call; or (kOurs) the caller looks at `deaths` and knows
  // what to do.
  enum class Deaths : uint8_t { kEndProgram, kOurs };
  // What a look costs: nothing, or a message to another node, so that it sleeps from the first one
  // on.
  enum class Looks : uint8_t { kFree, kMessages };
  explicit Patience(const char* call, Deaths deaths = Deaths::kEndProgram,
                    Looks looks = Looks::kFree);

  // After a look that found nothing: waits a little.
  void Rest() {
    if (spins_left_ != 0) {
      spins_left_--;
      shm::CpuPause();
    } else {
      RestLonger();
    }
  }
  // How many PEs have died, as far as this wait knows. It looks once it begins to sleep.
  int deaths() const { return death_count_; }

 private:
  void RestLonger();
  void LookForDeaths();

  const char* const call_;
  const Deaths deaths_;
  uint32_t spins_left_;
  uint32_t yields_left_;
  int death_count_ = 0;
  bool has_found_death_ = false;
  uint64_t begin_ns_ = 0;
};

// Returns once look() is true.
template <typename Look>
void Await(const char* call, Look&& look) {
  if (look()) {
    return;
  }
  Patience patience(call);
  do {
    patience.Rest();
  } while (!look());
}

}  // namespace ferry::shmem
