// The transport over two NICs, here two addresses of the loopback interface, each with an endpoint
// of its own.
#pragma once

#include <memory>

#include "transports/ofi/ofi_transport.h"
#include "transports/rails/rails_transport.h"
#include "transports/tcp/tcp_transport.h"

namespace ferry::transport {

inline StatusOr<std::unique_ptr<Transport>> CreateTwoRails(const TransportOptions& options) {
  TransportOptions two = options;
  two.rails = {"127.0.0.2"};
  two.stripe_bytes = 64 * 1024;
  return CreateRailsTransport(
      two, options.provider == kTcpProvider ? CreateTcpTransport : CreateOfiTransport);
}

}  // namespace ferry::transport
