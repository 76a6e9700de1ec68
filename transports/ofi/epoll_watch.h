// A wait descriptor for a provider that has none to offer, but waits in epoll itself.
//
// libfabric's `net` has a wait descriptor only together with a thread of its own, which reads the
// sockets whenever they are ready: two wake-ups for each message, and a fight over a lock. Without
// that thread nobody sleeps on its sockets. But the sockets lie in epoll instances, made with the
// domain, and an epoll instance can be waited for like any descriptor. /proc/self/fd shows them:
// the instances that appeared while the endpoint was opened.
//
// Calling thread: any. An instance that another thread makes meanwhile is watched too: that costs
// needless wake-ups, no more.
#pragma once

#include <vector>

#include "common/unique_fd.h"

namespace ferry::transport {

// The epoll instances that this process has; empty where /proc cannot be read.
std::vector<int> EpollInstances();

// An epoll instance that is readable while one of `instances` is, except those in `except`. Not
// valid if there is none to watch. Watches them until they are closed; changes nothing about them.
UniqueFd WatchInstances(const std::vector<int>& instances, const std::vector<int>& except);

}  // namespace ferry::transport
