// ferryd with a data plane that does nothing.
#include "daemon/ferryd.h"
#include "tests/daemon/fake_data_plane.h"

int main(int argc, char** argv) {
  using namespace ferry;
  return daemon::RunFerryd(
      argc, argv,
      [](const config::Options&, const daemon::PlaneHooks&) -> StatusOr<daemon::DaemonParts> {
        daemon::DaemonParts parts;
        parts.data_plane = std::make_unique<daemon::FakeDataPlane>();
        return parts;
      });
}
