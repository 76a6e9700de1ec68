// Rings of devices, from threads that play the GPU to ferryd and back.
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

void ExpectPasses(const std::string& nodes, const Words& variables, const Words& program) {
  RunWell(PrivateJob({"-n", "2", "--nodes", nodes}, With(variables, program)));
}

TEST(DeviceRingTest, InsideANode) { ExpectPasses("1", {}, {"tests/e2e/ranks/device_ring"}); }

// There devices start matched requests, too.
TEST(DeviceRingTest, BetweenNodes) { ExpectPasses("2", {}, {"tests/e2e/ranks/device_ring"}); }

// The daemon does not reach device memory that only streams reach, and refuses requests that name
// it.
TEST(DeviceRingTest, DevicesBehindALink) {
  ExpectPasses("2", {"FERRY_HOST_LINK_H2D_MB_PER_S=20000", "FERRY_HOST_LINK_D2H_MB_PER_S=20000"},
               {"tests/e2e/ranks/device_ring", "link"});
}

TEST(DeviceRingTest, ARankLeavesWithAStalledRing) {
  ExpectPasses("1", {}, {"tests/e2e/ranks/device_ring", "leave"});
}

}  // namespace
}  // namespace ferry::e2e
