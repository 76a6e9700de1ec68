#include "tests/daemon/gate_plane.h"

#include <gtest/gtest.h>

#include <utility>

#include "daemon/progress/progress_plane.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry::daemon {

std::unique_ptr<DataPlane> MakeGatePlane(const config::Options& options,
                                         std::shared_ptr<Gate> gate) {
  transport::TransportOptions network;
  network.provider = "net";
  network.post_timeout_ns = 120'000'000'000;  // what the gate holds, it holds
  auto real = transport::CreateOfiTransport(network);
  EXPECT_TRUE(real.ok()) << real.status().ToString();
  auto plane = CreateProgressPlane(
      options,
      std::make_unique<GateTransport>(std::move(*real), std::move(gate), network.post_timeout_ns));
  EXPECT_TRUE(plane.ok()) << plane.status().ToString();
  return std::move(*plane);
}

}  // namespace ferry::daemon
