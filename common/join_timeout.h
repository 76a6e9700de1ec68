// How long the ranks of a job wait for one another: the daemon's limit, and what a rank's own has
// to outlast.
#pragma once

#include <cstdint>

namespace ferry {

// The ranks of a node start side by side, and share its cores. A start takes a few milliseconds of
// a core; here, of one that is busy with other things, too.
inline constexpr uint64_t kStartOfRankMs = 40;

// `ranks`: of the job, on the node that has most of them.
constexpr uint64_t JoinTimeoutMs(uint64_t attach_timeout_ms, uint64_t ranks) {
  return attach_timeout_ms + ranks * kStartOfRankMs;
}

}  // namespace ferry
