// The transport over TCP sockets of its own, provider "ferry-tcp": for Ethernet and loopback.
//
// It needs no library, starts no thread and pins no memory. Peers that read or write with a wrong
// key are told so, and lose nothing else.
#pragma once

#include <memory>

#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::transport {

// Opens `options.source_address`, or the interface `options.domain`; ignores `provider`. May block
// for the name service. Errors: kInvalidArgument (options, an address that is not of this machine),
// kAlreadyExists (port), kUnsupported (domain), kSystem, kOutOfMemory.
StatusOr<std::unique_ptr<Transport>> CreateTcpTransport(const TransportOptions& options);

}  // namespace ferry::transport
