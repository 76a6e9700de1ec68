// ferryd with a data plane that does nothing but write each call as a line to standard output.
#include <cstdio>

#include "daemon/ferryd.h"
#include "tests/daemon/fake_data_plane.h"

int main(int argc, char** argv) {
  using namespace ferry;
  constexpr daemon::Variable kVariables[] = {{"FERRYD_FOR_TEST", "1"}};
  daemon::EnsureEnvironment(argv, kVariables);
  return daemon::RunFerryd(argc, argv, [](const config::Options&) -> StatusOr<daemon::DaemonParts> {
    daemon::DaemonParts parts;
    parts.data_plane = std::make_unique<daemon::FakeDataPlane>();
    return parts;
  });
}
