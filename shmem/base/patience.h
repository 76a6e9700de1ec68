// A wait of a PE for memory that others write without notice, such as by plain stores
// (client/api/word_wait.h), and for deaths of PEs meanwhile.
//
// A rest is no longer than 5 ms, so a store is seen soon even in a long wait, which takes less than
// 1 % of a core. With remote PEs in the job it rests early, so that daemons on the same cores get
// to it.
//
// Calling thread: one wait of one thread.
#pragma once

#include <cstdint>

#include "client/api/calls.h"
#include "client/api/word_wait.h"

namespace ferry::shmem {

class Patience {
 public:
  // The action when another PE has died: the program, or a queue's call, ends (GiveUp of fail.h),
  // with a message that names the PE and the call; or (kOurs) the caller acts on `deaths`.
  enum class Deaths : uint8_t { kEndProgram, kOurs };
  // The cost of a look: nothing, or a message to another node.
  enum class Looks : uint8_t { kFree, kMessages };
  // `word`: where it looks, if that is one place of this PE's memory.
  explicit Patience(const char* call, Deaths deaths = Deaths::kEndProgram,
                    Looks looks = Looks::kFree, const void* word = nullptr);

  // Waits a little. To be called after a look that found nothing.
  void Rest() {
    if (!wait_.Pause()) {
      RestLonger();
    }
  }
  // Returns the number of dead PEs that this wait has found. It looks once it begins to rest.
  int deaths() const { return death_count_; }

 private:
  void RestLonger();
  void LookForDeaths();

  // For those who look at the PE (client/api/calls.h).
  struct Note : client::CallNote {
    Note(const char* function, const void* word)
        : CallNote(&DescribeIt), function(function), word(word) {}

    const char* const function;
    const void* const word;

   private:
    static void DescribeIt(const CallNote& note, shm::CallDescription* description);
  };

  const char* const call_;
  const Deaths deaths_;
  Note note_;
  const client::CallScope scope_;
  client::WordWait wait_;
  int death_count_ = 0;
  bool has_found_death_ = false;
};

// Returns once look() is true.
template <typename Look>
void Await(const char* call, Look&& look, const void* word = nullptr) {
  if (look()) {
    return;
  }
  Patience patience(call, Patience::Deaths::kEndProgram, Patience::Looks::kFree, word);
  do {
    patience.Rest();
  } while (!look());
}

}  // namespace ferry::shmem
