// A rank names memory that another has lent (ferryrun --malloc) as the destination of messages:
// nobody writes there, who tries gets an error, and the others go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kLent[] = "tests/faults/ranks/lent";

void ExpectNobodyWritesThere(const std::vector<std::string>& flags) {
  DaemonForTest daemon(flags);
  Command job(JobOn(daemon, 3, {"--malloc", kLent}));
  const CommandResult result = job.Wait();
  const std::string all = result.out + result.err;
  EXPECT_EQ(result.exit_code, 0) << all;
  EXPECT_THAT(result.out, HasSubstr("rank 1: sends refused 5\n"));
  EXPECT_THAT(result.out, HasSubstr("rank 0: receives refused 1\n"));
  for (const std::string rank : {"rank 0: ", "rank 1: ", "rank 2: "}) {
    EXPECT_THAT(result.out, HasSubstr(rank + "all right\n")) << all;
  }
  EXPECT_THAT(job.Leftovers(), IsEmpty());
  EXPECT_EQ(daemon.Stop(), "");
}

TEST(LentRegionTest, IsNoDestination) { ExpectNobodyWritesThere({}); }

TEST(LentRegionTest, NorIsItForAWorkerProcess) {
  ExpectNobodyWritesThere(
      {"--worker_mode=process",
       "--worker_program=" + std::filesystem::absolute("daemon/ferry-worker").string()});
}

}  // namespace
}  // namespace ferry::faults
