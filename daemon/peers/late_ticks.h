// How much of the time that has passed a daemon was too late itself to hear others: its thread got
// no core, or it was stopped. Others' silence during that time says nothing of them, and does not
// count against them.
//
// Between two ticks of a timer, at most two of its intervals count: what is more, is lost. So a
// daemon whose ticks come every two seconds in place of every quarter of one waits four times as
// long for an answer, as one that gets so little of a core needs; one whose ticks are in time waits
// as long as it is told.
//
// Plain arithmetic, no clock of its own.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ferry::daemon {

class LateTicks {
 public:
  explicit LateTicks(uint64_t interval_ms) : in_time_ns_(2 * interval_ms * 1'000'000) {}

  // Returns how many nanoseconds since the last tick are lost. `now_ns`: MonotonicNs.
  uint64_t LostSince(uint64_t now_ns) const {
    const uint64_t since_ns = last_ns_ == 0 ? 0 : now_ns - last_ns_;
    return since_ns > in_time_ns_ ? since_ns - in_time_ns_ : 0;
  }
  // Returns that at a tick, which is the last one from now on.
  uint64_t Tick(uint64_t now_ns) {
    const uint64_t lost_ns = LostSince(now_ns);
    last_ns_ = now_ns;
    return lost_ns;
  }

  // Takes `lost_ns` out of the time since `*since_ns`, which is 0 where nothing is waited for.
  static void Forgive(uint64_t lost_ns, uint64_t now_ns, uint64_t* since_ns) {
    if (*since_ns != 0) {
      *since_ns = std::min(now_ns, *since_ns + lost_ns);
    }
  }

 private:
  const uint64_t in_time_ns_;
  uint64_t last_ns_ = 0;  // 0: there was none yet
};

}  // namespace ferry::daemon
