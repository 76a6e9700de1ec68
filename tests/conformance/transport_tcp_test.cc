// The transport conformance suite over sockets of our own.
#include "tests/conformance/transport_conformance.h"
#include "transports/tcp/tcp_transport.h"

namespace ferry::transport {
namespace {

INSTANTIATE_TEST_SUITE_P(Tcp, TransportConformance,
                         testing::Values(TransportUnderTest{
                             "Tcp", kTcpProvider, CreateTcpTransport,
                             "tests/conformance/transport_tcp_peer"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ferry::transport
