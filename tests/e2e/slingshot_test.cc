// Jobs on Slingshot NICs, whose daemons and ranks open domains with the job's own key. The NICs are
// those of a libfabric in software, which looks at the keys (tests/fixtures/slingshot).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

class SlingshotJobTest : public testing::Test {
 protected:
  SlingshotJobTest() { std::ofstream(directory_ / "log").flush(); }

  // The variables of a job of this user with VNI 34, beside another user's with VNI 36.
  Words Variables(const std::string& vnis, const std::string& service_ids) const {
    const std::string library =
        std::filesystem::absolute("tests/fixtures/slingshot/libfabric.so.1").parent_path();
    const std::string other = std::to_string(geteuid() + 1);
    return {
        "LD_LIBRARY_PATH=" + library,
        "CXI_LOG=" + (directory_ / "log"),
        "CXI_SERVICES=cxi0/5/" + std::to_string(geteuid()) + "/34/0xa cxi0/8/" + other + "/36/0xa",
        "SLINGSHOT_VNIS=" + vnis,
        "SLINGSHOT_SVC_IDS=" + service_ids,
        "SLINGSHOT_DEVICES=cxi0",
        "SLINGSHOT_TCS=0xa",
        "FERRY_PROVIDER=cxi"};
  }
  Words Log() const {
    Words lines;
    std::ifstream log(directory_ / "log");
    for (std::string line; std::getline(log, line);) {
      lines.push_back(line);
    }
    return lines;
  }

 private:
  const TempDirectory directory_;
};

const Words kTwoNodes = {"-n", "4", "--nodes", "2"};
const Words kProgram = {"tests/e2e/ranks/ends"};

TEST_F(SlingshotJobTest, ItsDaemonsOpenTheirNicWithTheJobsKey) {
  RunWell(PrivateJob(kTwoNodes, kProgram), Variables("34,35", "5"), 120);
  EXPECT_THAT(Log(), AllOf(SizeIs(2), Each("cxi0 service 5 vni 34 class 8")));
}

TEST_F(SlingshotJobTest, SoDoRanksForTheirDirectLinks) {
  RunWell(PrivateJob(kTwoNodes, {"tests/e2e/ranks/switching", "40", "1", "20"}),
          Joined(Variables("34", "5"), {"FERRY_DIRECT_LINKS=always"}), 120);
  EXPECT_THAT(Log(), AllOf(SizeIs(6), Each("cxi0 service 5 vni 34 class 8")));
}

TEST_F(SlingshotJobTest, FerryctlShowsTheKey) {
  EXPECT_THAT(RunWell(PrivateJob({"-n", "1"}, {"/bin/sh", "-c", "exec \"$0\" nics --json",
                                               "tools/ferryctl/ferryctl"}),
                      Variables("34", "5")),
              HasSubstr("VNI 34, service 5"));
}

TEST_F(SlingshotJobTest, ADaemonWithoutARightToTheKeySaysSo) {
  const CommandResult result = RunCleanly(PrivateJob(kTwoNodes, kProgram), Variables("36", "8"));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("the NIC cxi0 refuses the job's key (VNI 36, service 8"));
}

TEST_F(SlingshotJobTest, WordsThatMakeNoSenseEndItBeforeItBegins) {
  const CommandResult result = RunCleanly(PrivateJob(kTwoNodes, kProgram), Variables("34", "5,6"));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("SLINGSHOT_SVC_IDS is '5,6', of the batch system: it names 2 "
                                    "services for the 1 NICs of SLINGSHOT_DEVICES (cxi0)"));
  EXPECT_THAT(Log(), SizeIs(0));
}

}  // namespace
}  // namespace ferry::e2e
