// The libfabric objects of one transport: fabric, domain, address vector, completion queue and
// endpoint, opened, bound and enabled. The transport owns them, and its thread calls them.
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "transports/api/transport.h"
#include "transports/ofi/library.h"
#include "transports/ofi/slingshot_key.h"

namespace ferry::transport {

struct Endpoint {
  InfoPtr info;
  FidPtr<fid_fabric> fabric;
  FidPtr<fid_domain> domain;
  FidPtr<fid_av> addresses;
  FidPtr<fid_cq> completions;
  FidPtr<fid_ep> endpoint;  // declared last: closed first, which makes the NIC release everything

  int wait_fd = -1;  // of `completions`, or `watch`; -1 if the provider can only be polled
  bool waits_by_epoll = false;  // the queue has no wait descriptor: see WatchInstances
  UniqueFd watch;
  std::vector<std::byte> name;
  Description description;

  bool ReachesDevices() const { return (info->caps & FI_HMEM) != 0; }
  bool TakesDmabufs() const;
  bool MrMode(int bit) const { return (info->domain_attr->mr_mode & bit) != 0; }
};

// Opens, binds and enables an endpoint. `queue_entries` is the most completions that can be
// pending. Errors: those of CreateOfiTransport.
StatusOr<std::unique_ptr<Endpoint>> OpenEndpoint(const TransportOptions& options,
                                                 const SlingshotWords& slingshot,
                                                 size_t queue_entries);

inline constexpr int kMostSegmentBytes = 8192;  // about a jumbo frame

// Keeps the TCP connections of the sockets provider from stalling over loopback.
//
// That provider looks for the 24 bytes of a message's header, and reads nothing before all of them
// are there. Over loopback a segment has up to 64 KiB, and the kernel counts the whole of it
// against the receive buffer (128 KiB by default) until its last byte is read. So when less than a
// header is left of a segment, the buffer may look so full that the kernel, which opens its window
// only for a whole segment, keeps it shut. Each side then waits for the other for ever. With
// segments no longer than those of networks there is always room for one.
//
// Limits the segments of all connections that this process will accept at the TCP address `name` (a
// sockaddr), in both directions. Returns false if it does not listen there, or /proc cannot be
// read. Any thread; blocks only for that.
bool LimitSegments(std::span<const std::byte> name);

// A wait descriptor for a provider that has none to offer, but waits in epoll itself.
//
// libfabric's `net` has a wait descriptor only together with a thread of its own, which reads the
// sockets whenever they are ready: two wake-ups for each message, and a fight over a lock. Without
// that thread no thread sleeps on its sockets. But the sockets lie in epoll instances, made with
// the domain, and an epoll instance can be waited for like any descriptor. /proc/self/fd shows
// them: the instances that appeared while the endpoint was opened.
//
// Calling thread: any. An instance that another thread makes meanwhile is watched too: that costs
// needless wake-ups, no more.
//
// EpollInstances returns the epoll instances that this process has; empty where /proc cannot be
// read.
std::vector<int> EpollInstances();

// Makes an epoll instance that is readable while one of `instances` is, except those in `except`;
// not valid if there is none to watch. It watches them until they are closed, and changes nothing
// about them.
UniqueFd WatchInstances(const std::vector<int>& instances, const std::vector<int>& except);

}  // namespace ferry::transport
