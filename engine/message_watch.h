// Lets a tool of this process watch messages arrive and be matched (MPI 5.0, section 15.3.8).
//
// The daemon's progress worker matches messages for a rank that computes, in a process of its own:
// a watcher learns of them by the rank's counters only (Statistic::kWorkerMatches).
#pragma once

#include "shm/message_watch.h"

namespace ferry::engine {

// Tells `watch` of all messages of this process's engines from now on; null: none. It must stay
// for as long as the process: an engine may be about to call it. Calling thread: any.
void WatchMessages(shm::MessageWatch* watch);

}  // namespace ferry::engine
