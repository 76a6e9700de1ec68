// WordWait: how a thread waits for words that other threads or processes change by plain stores,
// without waking it. The thread reads the words again and again, less often the longer it has
// waited.
//
// First it reads them without a break, then it yields to other threads in between, then it rests
// (NodePeers::Rest). Events that wake a rank, such as operations from other nodes, end a rest at
// once. Each rest is an eighth of the time waited so far, from 20 us up to a limit, so a plain
// store is seen late by no more than that.
//
// Calling thread: one wait of one thread. Rest makes progress, and blocks.
#pragma once

#include <cstdint>

#include "client/api/front_end.h"
#include "shm/wait_policy.h"

namespace ferry::client {

class WordWait {
 public:
  // The writer of the words, which decides how long the thread spins and yields before it rests.
  enum class From : uint8_t {
    kNode,     // ranks of this node
    kKernels,  // emulated devices, too, whose kernels need the core that spinning would take
    kNetwork,  // other nodes, too: the change passes two daemons, and perhaps none of them has a
               // core
    kQuestion  // a rank that is asked by a message for each look, so the thread rests from the
               // first one on
  };
  WordWait(FrontEnd& front_end, From from, uint64_t longest_rest_ns = 1'000'000);

  // Call it after a look that found nothing. False: the time for short pauses is over; call Rest.
  bool Pause() {
    if (spins_left_ == 0) {
      return Yield();
    }
    spins_left_--;
    shm::CpuPause();
    return true;
  }
  // Sleeps for a while, unless there is progress to make.
  void Rest();

 private:
  bool Yield();

  FrontEnd& front_end_;
  const uint64_t longest_rest_ns_;
  uint32_t spins_left_;
  uint32_t yields_left_;
  uint64_t begin_ns_ = 0;
};

}  // namespace ferry::client
