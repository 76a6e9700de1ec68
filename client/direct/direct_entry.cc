// libferry_direct.so: its one symbol. See direct_api.h.
#include "client/direct/direct_api.h"
#include "client/direct/direct_home.h"
#include "common/version.h"
#include "engine/rank_engine.h"
#include "transports/tcp/tcp_transport.h"

namespace ferry::client {
namespace {

// A rank that computes, or is stopped, may take nothing for as long as it likes. Whether it lives
// is for the daemons to say.
constexpr uint64_t kForEverNs = 365ULL * 24 * 3600 * 1'000'000'000;
// Of whatever options a peer has.
constexpr uint32_t kMostPushedBytes = 1 << 20;
// More than the messages that one peer may leave unread, with what the core says about them; and
// for some such peers, so that they do not hold up the others.
constexpr uint32_t kOperationsWithOne = 2 * engine::kRemoteWindow;
constexpr uint32_t kOperations = 16 * kOperationsWithOne;

StatusOr<std::unique_ptr<DirectLinks>> Open(const DirectSetup& setup, DirectHost* host) {
  transport::TransportOptions options;
  options.provider = transport::kTcpProvider;
  options.source_address = setup.source_address;
  options.attachment_bytes = kMostPushedBytes;
  options.post_timeout_ns = kForEverNs;
  options.max_outstanding = kOperations;
  options.max_outstanding_per_peer = kOperationsWithOne;
  StatusOr<std::unique_ptr<transport::Transport>> opened = transport::CreateTcpTransport(options);
  FERRY_RETURN_IF_ERROR(opened.status());
  return DirectHome::Create(setup, host, std::move(*opened));
}

}  // namespace
}  // namespace ferry::client

extern "C" const ferry::client::DirectApi* ferry_direct_entry() {
  static constexpr ferry::client::DirectApi kApi = {ferry::client::kDirectApiVersion,
                                                    ferry::kLayoutVersion, ferry::client::Open};
  return &kApi;
}
