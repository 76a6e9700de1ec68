// The endpoint of a rank's direct links: the only part in which libferry_direct.so and
// libferry_direct_ofi.so differ. The former has tcp_endpoint.cc, the latter ofi_endpoint.cc.
//
// Calling thread: any. May block while the provider looks for its devices.
#pragma once

#include <cstdint>
#include <memory>

#include "client/direct/direct_api.h"
#include "common/status.h"
#include "engine/engine_options.h"
#include "transports/api/transport.h"

namespace ferry::client {

// How many operations may be open with one peer: more than the messages that it may leave unread,
// with what the core says about them.
inline constexpr uint32_t kOperationsWithOne = 2 * engine::kRemoteWindow;

// Opens the endpoint that `setup` describes. Errors: as DirectApi::open.
StatusOr<std::unique_ptr<transport::Transport>> OpenEndpoint(const DirectSetup& setup);

// Returns the options of the transport, which are alike for all providers.
inline transport::TransportOptions EndpointOptions(const DirectSetup& setup) {
  // A rank that computes, or is stopped, may take nothing for as long as it likes. The daemons
  // alone decide that a rank has died.
  constexpr uint64_t kForEverNs = 365ULL * 24 * 3600 * 1'000'000'000;
  transport::TransportOptions options;
  options.provider = setup.provider;
  options.domain = setup.domain;
  options.source_address = setup.source_address;
  options.post_timeout_ns = kForEverNs;
  options.silence_timeout_ns = setup.peer_timeout_ns;
  options.max_outstanding_per_peer = kOperationsWithOne;
  return options;
}

}  // namespace ferry::client
