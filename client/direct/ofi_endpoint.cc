// An endpoint of libfabric's. It has no connections of its own, so ranks greet each other first.
#include <utility>

#include "client/direct/endpoint.h"
#include "config/environment.h"
#include "transports/greeting/greeting_transport.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry::client {
namespace {

// For so many peers that leave everything unread, so that they do not hold up the others. Each
// operation has a cell of its own, which some providers pin.
constexpr uint32_t kPeers = 4;

}  // namespace

StatusOr<std::unique_ptr<transport::Transport>> OpenEndpoint(const DirectSetup& setup) {
  transport::TransportOptions options = EndpointOptions(setup);
  options.max_outstanding = kPeers * kOperationsWithOne;
  options.receive_buffer_bytes += transport::kGreetingOverheadBytes;
  // Long messages are read, not sent: that takes one copy less. And ofi_rxm comes to a standstill
  // with too many of them on their way at a time, in both directions.
  options.attachment_bytes = 0;
  StatusOr<std::unique_ptr<transport::Transport>> opened = transport::CreateOfiTransportOfJob(
      options, transport::TakeSlingshotWords(config::ProcessEnvironment(), &config::FindVariable));
  FERRY_RETURN_IF_ERROR(opened.status());
  return transport::CreateGreetingTransport(std::move(*opened));
}

}  // namespace ferry::client
