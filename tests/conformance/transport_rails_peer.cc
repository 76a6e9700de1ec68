#include "tests/conformance/transport_peer.h"
#include "tests/conformance/two_rails.h"

int main(int argc, char** argv) {
  return ferry::transport::RunTransportPeer(argc, argv, ferry::transport::CreateTwoRails);
}
