// Where the chains of waiting ranks of a job lead to. Pure functions; any thread.
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "tools/display/table.h"

namespace ferry::tools {

// A rank that others wait for, directly or through others, while it waits for none of them; of
// ranks that wait for each other in a circle, the smallest.
struct WaitCause {
  uint32_t rank = 0;
  bool is_deadlock = false;
  std::vector<uint32_t> waiting;  // in order; with the rank itself, if it waits, too
  uint64_t longest_ms = 0;        // of these
  // The one of these that is nearest to the rank: its sentence says most. Points into what was
  // given.
  const control::RankWait* nearest = nullptr;
};

// The causes of these ranks' waits: deadlocks first, then those with most ranks, then the longest
// wait. `waits` are ranks of one job that wait, as the daemons of its nodes have told them. Each
// daemon has followed its ranks' waits as far as it could; others may say how they go on.
std::vector<WaitCause> CausesOf(const std::vector<const control::RankWait*>& waits);

// Tells the states of each job's ranks, as lines for groups of ranks, and the causes of their waits
// with a sentence each, eight at most of a job. The reply's ids are the jobs' labels.
std::string WaitGroups(const control::WhyReply& reply, const Terminal& terminal = {});

}  // namespace ferry::tools
