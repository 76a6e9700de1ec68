// The transport conformance suite over libfabric's providers.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/conformance/transport_conformance.h"
#include "transports/ofi/ofi_transport.h"

// libfabric 1.17 loses a connection object when an endpoint is closed while it connects.
extern "C" const char* __lsan_default_suppressions() { return "leak:libfabric.so"; }

namespace ferry::transport {

const char* const kPeerProgram = "tests/conformance/transport_ofi_peer";

INSTANTIATE_TEST_SUITE_P(
    Ofi, TransportConformance,
    testing::Values(TransportUnderTest{"Tcp", "tcp;ofi_rxm", CreateOfiTransport},
                    TransportUnderTest{"Sockets", "sockets", CreateOfiTransport}),
    [](const auto& info) { return info.param.name; });

}  // namespace ferry::transport
