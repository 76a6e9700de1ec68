// A real data plane over a GateTransport.
#pragma once

#include <memory>

#include "config/options.h"
#include "daemon/plane/data_plane.h"
#include "tests/daemon/gate_transport.h"

namespace ferry::daemon {

std::unique_ptr<DataPlane> MakeGatePlane(const config::Options& options,
                                         std::shared_ptr<Gate> gate);

}  // namespace ferry::daemon
