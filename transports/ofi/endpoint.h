// The libfabric objects of one transport: fabric, domain, address vector, completion queue and
// endpoint, opened, bound and enabled. Owned by the transport; same thread.
#pragma once

#include <rdma/fi_eq.h>

#include <memory>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "transports/api/transport.h"
#include "transports/ofi/fid.h"

namespace ferry::transport {

struct Endpoint {
  InfoPtr info;
  FidPtr<fid_fabric> fabric;
  FidPtr<fid_domain> domain;
  FidPtr<fid_av> addresses;
  FidPtr<fid_cq> completions;
  FidPtr<fid_ep> endpoint;  // declared last: closed first, which makes the NIC release everything

  int wait_fd = -1;  // of `completions`, or `watch`; -1 if the provider can only be polled
  bool waits_by_epoll = false;  // the queue has no wait descriptor: see epoll_watch.h
  UniqueFd watch;
  std::vector<std::byte> name;
  Description description;

  bool MrMode(int bit) const { return (info->domain_attr->mr_mode & bit) != 0; }
};

// `queue_entries` is the most completions that can be pending. Errors: those of
// CreateOfiTransport.
StatusOr<std::unique_ptr<Endpoint>> OpenEndpoint(const TransportOptions& options,
                                                 size_t queue_entries);

}  // namespace ferry::transport
