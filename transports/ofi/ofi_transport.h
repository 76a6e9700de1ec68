// The transport over libfabric (1.17 or later), for every provider with reliable datagram
// endpoints, messages and RMA.
#pragma once

#include <memory>

#include "common/status.h"
#include "transports/api/transport.h"
#include "transports/ofi/slingshot_key.h"

namespace ferry::transport {

// Opens the provider, binds and listens. Any thread; the result belongs to one thread. May block
// while the provider looks for its devices. Errors: kUnsupported (the provider is not available:
// the message lists those that are), kAlreadyExists (the port is in use), kInvalidArgument or
// kLimitExceeded (an option), kOutOfMemory, kSystem (the message has libfabric's words).
StatusOr<std::unique_ptr<Transport>> CreateOfiTransport(const TransportOptions& options);

// As CreateOfiTransport, for the processes of a job to which a batch system gives Slingshot
// networks. Only `cxi` reads the words. Errors besides: kConfiguration, naming the variable.
StatusOr<std::unique_ptr<Transport>> CreateOfiTransportOfJob(const TransportOptions& options,
                                                             const SlingshotWords& slingshot);

}  // namespace ferry::transport
