// ferryd with a data plane that does nothing.
#include <cstdio>

#include "config/ensure_environment.h"
#include "daemon/ferryd.h"
#include "tests/daemon/fake_data_plane.h"

int main(int argc, char** argv) {
  using namespace ferry;
  constexpr config::Variable kVariables[] = {{"FERRYD_FOR_TEST", "1"}};
  if (Status status = config::EnsureEnvironment(argv, kVariables); !status.ok()) {
    std::fprintf(stderr, "ferryd: %s\n", status.message().c_str());
    return 1;
  }
  return daemon::RunFerryd(
      argc, argv,
      [](const config::Options&, const daemon::PlaneHooks&) -> StatusOr<daemon::DaemonParts> {
        daemon::DaemonParts parts;
        parts.data_plane = std::make_unique<daemon::FakeDataPlane>();
        return parts;
      });
}
