// A rank names memory that another has lent (ferryrun --malloc) as the destination of messages: no
// rank writes there, a rank that tries gets an error, and the others go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::CommandResult;
using e2e::RunCleanly;
using testing::HasSubstr;

constexpr char kLent[] = "tests/faults/ranks/lent";

void ExpectNobodyWritesThere(const e2e::Words& flags) {
  DaemonForTest daemon(flags);
  const CommandResult result = RunCleanly(JobOn(daemon, 3, {"--malloc", kLent}));
  const std::string all = result.out + result.err;
  EXPECT_EQ(result.exit_code, 0) << all;
  EXPECT_THAT(result.out, HasSubstr("rank 1: sends refused 5\n"));
  EXPECT_THAT(result.out, HasSubstr("rank 0: receives refused 1\n"));
  for (const std::string rank : {"rank 0: ", "rank 1: ", "rank 2: "}) {
    EXPECT_THAT(result.out, HasSubstr(rank + "all right\n")) << all;
  }
  daemon.Stop();
}

TEST(LentRegionTest, IsNoDestination) { ExpectNobodyWritesThere({}); }

TEST(LentRegionTest, NorIsItForAWorkerProcess) {
  ExpectNobodyWritesThere(
      {"--worker_mode=process",
       "--worker_program=" + std::filesystem::absolute("daemon/ferry-worker").string()});
}

}  // namespace
}  // namespace ferry::faults
