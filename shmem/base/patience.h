// How a PE waits for memory that others write in ways nobody is told of, such as plain stores
// (client/api/word_wait.h), and what it does about PEs that die meanwhile.
//
// A rest is no longer than 5 ms, so what comes is seen soon after a long wait, too, which takes
// less than 1 % of a core. With remote PEs in the job it rests early, so that daemons on the same
// cores get to it.
//
// Calling thread: one wait of one thread.
#pragma once

#include <cstdint>

#include "client/api/word_wait.h"

namespace ferry::shmem {

class Patience {
 public:
  // What happens when another PE has died: the program, or a queue's call, ends (GiveUp of fail.h),
  // with a sentence that names it and the call; or (kOurs) the caller looks at `deaths` and knows
  // what to do.
  enum class Deaths : uint8_t { kEndProgram, kOurs };
  // What a look costs: nothing, or a message to another node.
  enum class Looks : uint8_t { kFree, kMessages };
  explicit Patience(const char* call, Deaths deaths = Deaths::kEndProgram,
                    Looks looks = Looks::kFree);

  // After a look that found nothing: waits a little.
  void Rest() {
    if (!wait_.Pause()) {
      RestLonger();
    }
  }
  // How many PEs have died, as far as this wait knows. It looks once it begins to rest.
  int deaths() const { return death_count_; }

 private:
  void RestLonger();
  void LookForDeaths();

  const char* const call_;
  const Deaths deaths_;
  client::WordWait wait_;
  int death_count_ = 0;
  bool has_found_death_ = false;
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
