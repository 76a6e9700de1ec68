// Many ranks on one daemon exchange messages all to all, without an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

// The number of ranks: FERRY_FAULT_RANKS, for the long run.
int Ranks() { return Setting("FERRY_FAULT_RANKS", 128); }

TEST(CrowdTest, AllToAllOnOneDaemon) {
  // So many ranks take a while to start on few cores, and longer under a sanitizer.
  const e2e::CommandResult result = e2e::RunCleanly(
      PrivateJob(Ranks(), 1, {"--attach_timeout_ms=60000"}, {"tests/faults/ranks/all_to_all"}), {},
      "", 240);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const e2e::Words lines = e2e::SortedLines(result.out);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) { return line.ends_with(": all right"); }),
            Ranks());
}

}  // namespace
}  // namespace ferry::faults
