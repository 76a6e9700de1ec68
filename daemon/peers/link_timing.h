// How often daemons greet each other and exchange heartbeats, and how long a call between them may
// take. Plain arithmetic.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ferry::daemon {

struct LinkTiming {
  uint64_t heartbeat_interval_ms = 250;
  uint64_t peer_timeout_ms = 15000;
  // The time-out of one call: several fit into a silence that is not yet a cut.
  uint64_t CallTimeoutMs() const { return peer_timeout_ms / 5; }
  // That of a greeting or heartbeat on a new connection, after one without answer, and of the
  // connection: a peer whose cores many others want, too, may take seconds for the handshake alone.
  // One call and two of these make the silence that is a cut.
  uint64_t RetryTimeoutMs() const { return 2 * CallTimeoutMs(); }
  // The time from one heartbeat of a link to the next, of so many links. Links that are many take
  // turns, because the traffic between all daemons of a job would grow with the square of their
  // number; but each has several heartbeats in a silence that is not yet a cut.
  uint64_t BeatPeriodMs(size_t links) const {
    constexpr size_t kBeatsOfTick = 8;
    const uint64_t turns = (links + kBeatsOfTick - 1) / kBeatsOfTick;
    return std::max(heartbeat_interval_ms,
                    std::min(turns * heartbeat_interval_ms, CallTimeoutMs()));
  }
  // The time from a greeting without answer to the next one, of an address that has not answered
  // any for so long.
  uint64_t GreetingPauseMs(uint64_t unanswered_ms) const {
    constexpr uint64_t kLongestMs = 60'000;
    return std::max(heartbeat_interval_ms, std::min(unanswered_ms / 2, kLongestMs));
  }
};

}  // namespace ferry::daemon
