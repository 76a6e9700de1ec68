// ferryd's life, apart from which data plane it has: options, log, signals, control plane, end.
//
// Main thread only.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "daemon/progress/data_plane.h"
#include "daemon/progress/hooks.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// What main() wires to it.
struct DaemonParts {
  std::unique_ptr<DataPlane> data_plane;
  std::function<std::vector<control::GpuStatus>()> gpus;  // for ferryctl; may be null
};
// `hooks` may be called for as long as the data plane lives.
using MakeParts = std::function<StatusOr<DaemonParts>(const config::Options&, PlaneHooks hooks)>;

struct Variable {
  const char* name;
  const char* value;
};

// Makes sure that the variables are in the environment: where one is missing, sets them all and
// executes this program anew (some libraries read them before main). Returns if nothing is missing,
// or if that fails.
void EnsureEnvironment(char** argv, std::span<const Variable> variables);

// `ferryd [--config FILE] [--ready-fd N] [--remove-parent] [--help] [--version] [--OPTION
// VALUE]...`. Returns the exit code: 0; 1 if it cannot start; 2 for a mistake in the options.
int RunFerryd(int argc, char** argv, const MakeParts& make_parts);

}  // namespace ferry::daemon
