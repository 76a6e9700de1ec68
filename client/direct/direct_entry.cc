// The one symbol of libferry_direct.so and libferry_direct_ofi.so. See direct_api.h.
#include <utility>

#include "client/direct/direct_api.h"
#include "client/direct/direct_home.h"
#include "client/direct/endpoint.h"
#include "common/version.h"

namespace ferry::client {
namespace {

StatusOr<std::unique_ptr<DirectLinks>> Open(const DirectSetup& setup, DirectHost* host) {
  StatusOr<std::unique_ptr<transport::Transport>> opened = OpenEndpoint(setup);
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
