// Guesses, when a program leaves the library with a transfer under way that takes long, if the
// program is going to compute, or will come back at once to start the next one. It is taken to do
// what it did last time.
//
// Calling thread: any; threads that come and go at the same time may spoil each other's guess.
#pragma once

#include <cstdint>

#include "shm/atomic.h"

namespace ferry::client {

class Absence {
 public:
  // Notes that the program leaves the library. Returns true if it is likely to stay away for long.
  bool Begin(uint64_t now_ns) {
    End(now_ns);
    shm::StoreRelaxed(left_ns_, now_ns);
    return shm::LoadRelaxed(is_long_) != 0;
  }
  // Notes that the program has come back.
  void End(uint64_t now_ns) {
    if (const uint64_t left_ns = shm::LoadRelaxed(left_ns_); left_ns != 0) {
      shm::StoreRelaxed(is_long_, now_ns - left_ns > kLongNs ? 1U : 0U);
      shm::StoreRelaxed(left_ns_, uint64_t{0});
    }
  }
  bool has_begun() const { return shm::LoadRelaxed(left_ns_) != 0; }

 private:
  // A call that starts a transfer, and may send a part of it, is over in less as a rule.
  static constexpr uint64_t kLongNs = 50'000;

  uint64_t left_ns_ = 0;  // 0: it is inside
  uint32_t is_long_ = 1;
};

}  // namespace ferry::client
