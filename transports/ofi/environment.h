// What must be in the environment before the process starts that links libfabric. This library
// never touches the environment: main (or a test's BUILD) sets these and executes itself anew.
#pragma once

#include <array>

namespace ferry::transport {

struct EnvironmentVariable {
  const char* name;
  const char* value;
  const char* reason;
};

inline constexpr std::array<EnvironmentVariable, 1> kRequiredEnvironment = {{
    {"IPATH_NO_BACKTRACE", "1",
     "Debian's libfabric loads libpsm_infinipath, whose constructor would otherwise take over the "
     "handlers of SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGINT and SIGTERM"},
}};

}  // namespace ferry::transport
