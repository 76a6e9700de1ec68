// The transport conformance suite over libfabric's providers.
#include "tests/conformance/transport_conformance.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry::transport {
namespace {

TransportUnderTest Ofi(const std::string& name, const std::string& provider) {
  return {name, provider, CreateOfiTransport, "tests/conformance/transport_ofi_peer"};
}

INSTANTIATE_TEST_SUITE_P(Ofi, TransportConformance,
                         testing::Values(Ofi("Net", "net"), Ofi("Tcp", "tcp;ofi_rxm"),
                                         Ofi("Sockets", "sockets")),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ferry::transport
