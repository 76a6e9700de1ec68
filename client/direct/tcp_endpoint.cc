// Sockets of Ferry's own.
#include <string>

#include "client/direct/endpoint.h"
#include "transports/tcp/tcp_transport.h"

namespace ferry::client {
namespace {

// Of whatever options a peer has.
constexpr uint32_t kMostPushedBytes = 1 << 20;
// For some peers that leave everything unread, so that they do not hold up the others.
constexpr uint32_t kPeers = 16;

}  // namespace

StatusOr<std::unique_ptr<transport::Transport>> OpenEndpoint(const DirectSetup& setup) {
  transport::TransportOptions options = EndpointOptions(setup);
  if (options.provider != transport::kTcpProvider) {
    return Status(ErrorCode::kUnsupported,
                  "libferry_direct.so has no provider '" + options.provider + "'");
  }
  options.attachment_bytes = kMostPushedBytes;
  options.max_outstanding = kPeers * kOperationsWithOne;
  return transport::CreateTcpTransport(options);
}

}  // namespace ferry::client
