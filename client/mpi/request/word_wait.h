// How a thread waits for words that other processes write and that nobody is woken for, such as
// those of partitioned messages: it looks, and looks less often the longer it has waited.
//
// First it looks at once again and again, then lets other threads run in between, then rests: what
// comes from other nodes, and peers of the node that know of it, end a rest at once. Each rest is
// an eighth of the time waited so far, 20 us to 1 ms: so what nobody tells is seen late by no more
// than that.
//
// Calling thread: one wait of one thread. Rest makes progress, and blocks.
#pragma once

#include <cstdint>

#include "shm/wait_policy.h"

namespace ferry::mpi {

class WordWait {
 public:
  explicit WordWait(bool is_far);

  // After a look that found nothing. False: the time for short pauses is over, Rest.
  bool Pause() {
    if (spins_left_ == 0) {
      return Yield();
    }
    spins_left_--;
    shm::CpuPause();
    return true;
  }
  // Sleeps a while, unless there is something to do.
  void Rest();

 private:
  bool Yield();

  uint32_t spins_left_;
  uint32_t yields_left_;
  uint64_t begin_ns_ = 0;
};

// Waits until done(argument), or the rank is poisoned.
void AwaitWords(bool (*done)(void*), void* argument, bool is_far);

}  // namespace ferry::mpi
