// Has the tests of a target run in the other home of a core (own_plane.h).
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

[[maybe_unused]] const bool chosen = (in_own_home = true);

}  // namespace
}  // namespace ferry::daemon
