// A rank that waits finds out here whether its daemon hangs.
//
// A daemon that has died is noticed by its connection; one that hangs, stopped or held by a driver,
// is not. So a rank whose program waits in Ferry, or looks again and again, asks it now and then.
// The daemon's control thread reads the question, and passes it on to its progress thread; each
// stores its number in the session. The answer wakes no thread, and a rank that computes asks
// nothing.
//
// A daemon that leaves a question unanswered for most of peer_timeout_ms hangs. Only such time
// counts in which this process itself ran and watched: one that was stopped, alone or with its
// machine, has not. While the daemon is ready to run and only lacks a core, a quarter counts.
//
// Calling thread: the watcher's. Nothing blocks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/status.h"

namespace ferry::client {

// Decides when to ask the daemon, and counts for how long an asked one has been silent.
class LifeQuestions {
 public:
  explicit LifeQuestions(uint64_t limit_ns) : limit_ns_(limit_ns) {}

  // Looks at what is known `now_ns`: the last number that was answered, whether the program waits,
  // and whether the daemon only lacks a core (asked if it matters).
  void Look(uint64_t now_ns, uint32_t answered, bool is_waiting,
            const std::function<bool()>& lacks_core);
  // Returns the number of the open question; 0: none is open.
  uint32_t open() const { return is_open_ ? number_ : 0; }
  bool is_hung() const { return silent_ns_ >= limit_ns_ - RestNs(); }
  uint64_t silent_ns() const { return silent_ns_; }
  // The time until the next look.
  uint64_t pause_ns() const { return is_open_ ? limit_ns_ / kOpenLooks : RestNs(); }

 private:
  static constexpr uint64_t kQuietLooks = 5;  // within the limit
  static constexpr uint64_t kOpenLooks = 20;
  static constexpr uint64_t kCorelessPart = 4;

  uint64_t RestNs() const { return limit_ns_ / kQuietLooks; }

  const uint64_t limit_ns_;
  uint32_t number_ = 0;
  bool is_open_ = false;
  uint64_t looked_ns_ = 0;
  uint64_t silent_ns_ = 0;  // since the question was asked, as far as it counts
};

class DaemonLife {
 public:
  struct Parts {
    uint64_t limit_ms = 0;  // peer_timeout_ms, as the daemon has it; not 0
    pid_t daemon = 0;       // its name for itself
    int daemon_pidfd = -1;
    const uint32_t* read = nullptr;      // SessionLayout::life_read
    const uint32_t* answered = nullptr;  // SessionLayout::life_answered
    // Sends a question. False: there is no room, try again.
    std::function<bool(uint32_t number)> ask;
    // Returns true if the program has called Ferry, to wait or to poll, since the last call of this
    // function.
    std::function<bool()> takes_notice;
  };
  explicit DaemonLife(Parts parts);

  // Asks the daemon if it is time to. kDaemonDied, in words for the user: the daemon hangs.
  Status Look();
  int pause_ms() const;

 private:
  std::string DescribeHang(uint32_t number) const;

  const Parts parts_;
  LifeQuestions questions_;
  uint32_t sent_ = 0;  // the number of the last question that has left
};

}  // namespace ferry::client
