// Many ranks on one daemon exchange messages all to all, without an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "config/environment.h"
#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using testing::IsEmpty;

// The number of ranks: FERRY_FAULT_RANKS, for the long run.
int Ranks() {
  const auto ranks = config::FindVariable(config::ProcessEnvironment(), "FERRY_FAULT_RANKS");
  return ranks.has_value() ? std::stoi(std::string(*ranks)) : 128;
}

TEST(CrowdTest, AllToAllOnOneDaemon) {
  // So many ranks take a while to start on few cores, and longer under a sanitizer.
  e2e::Command job(
      PrivateJob(Ranks(), 1, {"--attach_timeout_ms=60000"}, {"tests/faults/ranks/all_to_all"}), {},
      "", 240);
  const e2e::CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const std::vector<std::string> lines = e2e::SortedLines(result.out);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) { return line.ends_with(": all right"); }),
            Ranks());
  EXPECT_THAT(job.Leftovers(), IsEmpty());
}

}  // namespace
}  // namespace ferry::faults
