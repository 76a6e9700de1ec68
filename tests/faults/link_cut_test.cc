// The link between two nodes is cut for a while, in a network namespace of the test's own: briefly,
// and nobody notices; for longer, and the ranks are told, then go on over the link that is back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "config/environment.h"
#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using e2e::RunCommand;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kEndure[] = "tests/faults/ranks/endure";
constexpr unsigned kLimitSeconds = 240;

std::string Privileges() { return geteuid() == 0 ? "-n" : "-rn"; }

// With FERRY_FAULT_DEFAULTS the timeouts that users have, else a fifth of them.
bool AsUsersHaveIt() {
  return kSanitized ||
         config::FindVariable(config::ProcessEnvironment(), "FERRY_FAULT_DEFAULTS").has_value();
}
std::chrono::milliseconds Scaled(int ms) {
  return std::chrono::milliseconds(AsUsersHaveIt() ? ms : ms / 5);
}

class LinkCutTest : public testing::Test {
 protected:
  void SetUp() override {
    if (RunCommand({"/usr/bin/unshare", Privileges(), "true"}).exit_code != 0) {
      GTEST_SKIP() << "this machine lets us make no network namespace";
    }
    std::vector<std::string> flags;
    if (!AsUsersHaveIt()) {
      flags = {"--peer_timeout_ms=3000", "--operation_timeout_ms=4000"};
    }
    std::vector<std::string> arguments = {
        "/usr/bin/unshare", Privileges(), "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"};
    for (const std::string& word : PrivateJob(2, 2, flags, {kEndure})) {
      arguments.push_back(word);
    }
    job_ = std::make_unique<Command>(arguments, std::vector<std::string>(), "", kLimitSeconds);
    ASSERT_TRUE(UnderWay(job_.get(), 2));
    ranks_ = RankPids(*job_, kEndure, 2);
    ASSERT_THAT(ranks_, SizeIs(2));
  }

  void SetLink(const char* state) {
    std::vector<std::string> enter = {"/usr/bin/nsenter", "-t", std::to_string(ranks_[0]), "-n"};
    if (geteuid() != 0) {
      enter.push_back("-U");
    }
    enter.insert(enter.end(), {"ip", "link", "set", "lo", state});
    const CommandResult result = RunCommand(enter);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  void CutFor(std::chrono::milliseconds duration) {
    SetLink("down");
    std::this_thread::sleep_for(duration);  // the fault itself
    SetLink("up");
    back_ns_ = MonotonicNs();
  }

  // Waits until a rank has said so, and returns when it did.
  uint64_t When(const std::string& text) {
    EXPECT_TRUE(job_->WaitForOutput(text)) << job_->Output();
    const std::string out = job_->Output();
    const size_t at = out.rfind(text);
    return at == std::string::npos ? 0 : std::strtoull(out.c_str() + at + text.size(), nullptr, 10);
  }

  std::string Finish() {
    kill(ranks_[0], SIGUSR1);
    const CommandResult result = job_->Wait();
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr("rank 0: all right"));
    EXPECT_THAT(result.out, HasSubstr("rank 1: all right"));
    EXPECT_THAT(job_->Leftovers(), IsEmpty());
    return result.out;
  }

  std::unique_ptr<Command> job_;
  std::vector<pid_t> ranks_;
  uint64_t back_ns_ = 0;
};

TEST_F(LinkCutTest, BrieflyAndNobodyNotices) {
  CutFor(Scaled(9000));
  EXPECT_THAT(Finish(), Not(HasSubstr(": cut at")));
}

TEST_F(LinkCutTest, ForLongerAndRanksAreToldThenGoOn) {
  CutFor(Scaled(25'000));
  for (const char* rank : {"rank 0", "rank 1"}) {
    EXPECT_NE(When(rank + std::string(": cut at ")), 0U);
    const uint64_t resumed_ns = When(rank + std::string(": back at "));
    std::printf("%s goes on %.1f s after the link is back\n", rank,
                (static_cast<double>(resumed_ns) - static_cast<double>(back_ns_)) / 1e9);
  }
  Finish();
}

TEST_F(LinkCutTest, TwiceAndTheySurviveBoth) {
  CutFor(Scaled(20'000));
  When("rank 1: back at ");
  When("rank 0: back at ");
  CutFor(Scaled(20'000));
  Finish();
}

}  // namespace
}  // namespace ferry::faults
