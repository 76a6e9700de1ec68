// How often daemons greet each other and exchange heartbeats, and how long a call between them may
// take. Plain arithmetic.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ferry::daemon {

struct LinkTiming {
  static constexpr uint64_t kAnswersOfPeriod = 10;

  uint64_t heartbeat_interval_ms = 250;
  uint64_t peer_timeout_ms = 15000;
  // The time-out of one call: several fit into a silence that is not yet a cut.
  uint64_t CallTimeoutMs() const { return peer_timeout_ms / 5; }
  // That of a heartbeat on a connection where answers take so long lately. A slow one is awaited
  // for longer: where cores are scarce, a new connection takes both ends more than it tells.
  uint64_t BeatTimeoutMs(uint64_t answer_ms) const {
    constexpr uint64_t kCallsAtMost = 3;
    return std::clamp(kAnswersOfPeriod * answer_ms, CallTimeoutMs(),
                      kCallsAtMost * CallTimeoutMs());
  }
  // That of a greeting or heartbeat on a new connection, after one without answer, and of the
  // connection: a peer whose cores many others want, too, may take seconds for the handshake alone.
  // One call and two of these make the silence that is a cut, or the longest heartbeat and one.
  uint64_t RetryTimeoutMs() const { return 2 * CallTimeoutMs(); }
  // The time from one heartbeat of a link to the next, of so many links. Links that are many take
  // turns, because the traffic between all daemons of a job would grow with the square of their
  // number; but each has several heartbeats in a silence that is not yet a cut.
  //
  // `answer_ms`: how long answers to the link's heartbeats take lately. Where that is long, one of
  // the ends lacks a core, perhaps since heartbeats take it: each next one comes after ten times as
  // long, though more than once in peer_timeout_ms.
  uint64_t BeatPeriodMs(size_t links, uint64_t answer_ms = 0) const {
    constexpr size_t kBeatsOfTick = 8;
    constexpr uint64_t kLeastInTimeout = 3;
    const uint64_t turns = (links + kBeatsOfTick - 1) / kBeatsOfTick;
    return std::max({heartbeat_interval_ms,
                     std::min(turns * heartbeat_interval_ms, CallTimeoutMs()),
                     std::min(kAnswersOfPeriod * answer_ms, peer_timeout_ms / kLeastInTimeout)});
  }
  // The time from a greeting without answer to the next one, of an address that has not answered
  // any for so long.
  uint64_t GreetingPauseMs(uint64_t unanswered_ms) const {
    constexpr uint64_t kLongestMs = 60'000;
    return std::max(heartbeat_interval_ms, std::min(unanswered_ms / 2, kLongestMs));
  }
};

}  // namespace ferry::daemon
