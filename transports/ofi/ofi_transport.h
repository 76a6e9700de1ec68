// The transport over libfabric (1.17 or later), for every provider with reliable datagram
// endpoints, messages and RMA.
#pragma once

#include <memory>

#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::transport {

// Opens the provider, binds and listens. Any thread; the result belongs to one thread. May block
// while the provider looks for its devices. Errors: kUnsupported (the provider is not available:
// the message lists those that are), kAlreadyExists (the port is in use), kInvalidArgument or
// kLimitExceeded (an option), kOutOfMemory, kSystem (the message has libfabric's words).
StatusOr<std::unique_ptr<Transport>> CreateOfiTransport(const TransportOptions& options);

}  // namespace ferry::transport
