// How a thread waits for words that others write and that nobody need be told of, such as those of
// plain stores: it looks, and looks less often the longer it has waited.
//
// First it looks at once again and again, then lets other threads run in between, then rests
// (NodePeers::Rest): what is told, such as operations from other nodes, ends a rest at once. Each
// rest is an eighth of the time waited so far, from 20 us up to a limit: so what nobody tells is
// seen late by no more than that.
//
// Calling thread: one wait of one thread. Rest makes progress, and blocks.
#pragma once

#include <cstdint>

#include "client/api/front_end.h"
#include "shm/wait_policy.h"

namespace ferry::client {

class WordWait {
 public:
  // Who brings about what is waited for, which says how long to look on.
  enum class From : uint8_t {
    kNode,     // ranks of this node
    kKernels,  // emulated devices, too, whose kernels need the core that spinning would take
    kNetwork,  // other nodes, too: it passes two daemons, and perhaps none of them has a core
    kQuestion  // whoever is asked: a look is a message, so it rests from the first one on
  };
  WordWait(FrontEnd& front_end, From from, uint64_t longest_rest_ns = 1'000'000);

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

  FrontEnd& front_end_;
  const uint64_t longest_rest_ns_;
  uint32_t spins_left_;
  uint32_t yields_left_;
  uint64_t begin_ns_ = 0;
};

}  // namespace ferry::client
