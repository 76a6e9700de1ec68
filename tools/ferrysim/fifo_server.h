// Something that does one thing after the other: a link, a direction of a NIC, a core.
#pragma once

#include <algorithm>

#include "tools/ferrysim/time.h"

namespace ferry::sim {

class FifoServer {
 public:
  // Reserves it for `duration`, from `now` on or after earlier reservations; returns the beginning.
  // Calls come in the order of `now`.
  Time Reserve(Time now, Time duration) {
    const Time begin = std::max(now, free_at_);
    free_at_ = begin + duration;
    busy_ += duration;
    return begin;
  }
  // Nothing begins before `time`.
  void HoldUntil(Time time) { free_at_ = std::max(free_at_, time); }

  Time free_at() const { return free_at_; }
  Time busy() const { return busy_; }

 private:
  Time free_at_ = 0;
  Time busy_ = 0;
};

}  // namespace ferry::sim
