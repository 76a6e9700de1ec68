// Large messages both ways at once, whichever process copies them.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

#ifdef FERRY_STRESS
constexpr char kRounds[] = "10000";
constexpr unsigned kLimitSeconds = 300;
#else
constexpr char kRounds[] = "100";
constexpr unsigned kLimitSeconds = 60;
#endif

class WindowsTest : public testing::TestWithParam<std::string> {};

TEST_P(WindowsTest, EveryByteOfEveryMessageIsItsOwn) {
  RunWell(PrivateJob({"-n", GetParam()}, {"tests/e2e/ranks/windows", kRounds}), {}, kLimitSeconds);
}

INSTANTIATE_TEST_SUITE_P(Ranks, WindowsTest, testing::Values("2", "3"));

// Ordinary memory: messages of which some find no cell; several to a system call; of several
// chunks.
TEST(OrdinaryWindowsTest, EveryByteOfEveryMessageIsItsOwn) {
  for (const char* bytes : {"200", "12288", "65536", "200000"}) {
    RunWell(PrivateJob({"-n", "2"}, {"tests/e2e/ranks/windows", kRounds, bytes}), {},
            kLimitSeconds);
  }
}

TEST(LateReceiversTest, HoldNobodyUp) {
  const std::string marker = testing::TempDir() + "/late_marker";
  RunWell(PrivateJob({"-n", "2"}, {"tests/e2e/ranks/late", marker}), {}, kLimitSeconds);
  std::filesystem::remove(marker);
}

// Two nodes, whose daemons may register far less with the network than is under way.
TEST(WindowsBetweenNodesTest, ShareFewRegistrations) {
#ifdef FERRY_STRESS
  constexpr char kNodeRounds[] = "300";
#else
  constexpr char kNodeRounds[] = "4";
#endif
  for (const char* limit :
       {"--registration_cache_entries=2", "--registration_cache_bytes=3145728"}) {
    RunWell(PrivateJob({"--nodes", "2", "-n", "2", limit, "--registration_piece_bytes=262144"},
                       {"tests/e2e/ranks/windows", kNodeRounds}),
            {}, kLimitSeconds);
  }
}

}  // namespace
}  // namespace ferry::e2e
