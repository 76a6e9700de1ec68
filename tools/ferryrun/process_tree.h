// Finds the processes below one of this machine, by /proc, and ends them.
//
// Any thread; blocks only where a function says so.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "common/process_stat.h"

namespace ferry::tools {

// Returns all processes below `root`, parents first. Those in `spared`, and what is below them, are
// left out. Reads all of /proc, about 10 us for each process of the machine; empty where there is
// none.
std::vector<ProcessStat> ProcessesBelow(pid_t root, const std::vector<pid_t>& spared = {});

struct TreeEnd {
  bool other_sessions = false;      // also processes that have left this process's session (setsid)
  std::vector<pid_t> spared = {};   // they and what is below them live on
  uint64_t limit_ms = 0;            // then processes that do not end are given up; 0: never
  std::function<void()> reap = {};  // called again and again: waits for children that have ended
};
// Kills the processes below this one, until none is left. This process must be a subreaper
// (prctl(2)), for then no orphan leaves the tree. Programs of other users, started from below,
// which it may not kill, are left alone. Blocks until the others have ended.
void EndAllBelow(const TreeEnd& how);

}  // namespace ferry::tools
