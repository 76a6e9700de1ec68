// The processes below one of this machine, as /proc tells, and an end to them.
//
// Any thread; blocks as said.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "common/process_stat.h"

namespace ferry::tools {

// All processes below `root`, parents first. Those in `spared`, and what is below them, are left
// out. Reads all of /proc, about 10 us for each process of the machine; empty where there is none.
std::vector<ProcessStat> ProcessesBelow(pid_t root, const std::vector<pid_t>& spared = {});

struct TreeEnd {
  bool other_sessions = false;      // also what has left this process's session (setsid)
  std::vector<pid_t> spared = {};   // they and what is below them live on
  uint64_t limit_ms = 0;            // then what does not end is given up; 0: never
  std::function<void()> reap = {};  // called again and again: waits for children that have ended
};
// Kills what is below this process, until nothing of it is left. This process must be a subreaper
// (prctl(2)), for then no orphan leaves the tree. It leaves alone what it may not kill: programs of
// other users that somebody below has started. Blocks until they have ended.
void EndAllBelow(const TreeEnd& how);

}  // namespace ferry::tools
