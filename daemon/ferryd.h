// ferryd's life, apart from which data plane it has: options, log, signals, control plane, end.
//
// Main thread only.
#pragma once

#include <functional>
#include <memory>

#include "common/status.h"
#include "config/options.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// The parts that main() wires to the daemon.
struct DaemonParts {
  std::unique_ptr<DataPlane> data_plane;
  std::function<control::GpusReply()> gpus;  // for ferryctl; may be null
};
// `hooks` may be called for as long as the data plane lives.
using MakeParts = std::function<StatusOr<DaemonParts>(const config::Options&, PlaneHooks hooks)>;

// `ferryd [--config FILE] [--ready-fd N] [--remove-parent] [--help] [--version] [--OPTION
// VALUE]...`. Returns the exit code: 0; 1 if it cannot start; 2 for a mistake in the options.
int RunFerryd(int argc, char** argv, const MakeParts& make_parts);

}  // namespace ferry::daemon
