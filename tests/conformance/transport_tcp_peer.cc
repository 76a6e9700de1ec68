#include "tests/conformance/transport_peer.h"
#include "transports/tcp/tcp_transport.h"

int main(int argc, char** argv) {
  return ferry::transport::RunTransportPeer(argc, argv, ferry::transport::CreateTcpTransport);
}
