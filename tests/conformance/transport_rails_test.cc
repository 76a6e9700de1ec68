// The transport conformance suite over two rails.
#include "tests/conformance/transport_conformance.h"
#include "tests/conformance/two_rails.h"

namespace ferry::transport {
namespace {

TransportUnderTest TwoRails(const std::string& name, const std::string& provider) {
  return {name, provider, CreateTwoRails, "tests/conformance/transport_rails_peer"};
}

INSTANTIATE_TEST_SUITE_P(Rails, TransportConformance,
                         testing::Values(TwoRails("Net", "net"), TwoRails("Tcp", "tcp;ofi_rxm"),
                                         TwoRails("Sockets", "sockets"),
                                         TwoRails("FerryTcp", kTcpProvider)),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ferry::transport
