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
  void SetUp() override { Begin({}, "ip link set lo up", {kEndure}); }

  // Two ranks on two nodes with these options, in a namespace made ready by these commands.
  void Begin(std::vector<std::string> flags, const std::string& commands,
             const std::vector<std::string>& program) {
    if (RunCommand({"/usr/bin/unshare", Privileges(), "true"}).exit_code != 0) {
      GTEST_SKIP() << "this machine lets us make no network namespace";
    }
    if (!AsUsersHaveIt()) {
      flags.insert(flags.end(), {"--peer_timeout_ms=3000", "--operation_timeout_ms=4000"});
    }
    std::vector<std::string> arguments = {"/usr/bin/unshare",           Privileges(), "sh", "-c",
                                          commands + " && exec \"$@\"", "sh"};
    for (const std::string& word : PrivateJob(2, 2, flags, program)) {
      arguments.push_back(word);
    }
    job_ = std::make_unique<Command>(arguments, std::vector<std::string>(), "", kLimitSeconds);
    ASSERT_TRUE(UnderWay(job_.get(), 2));
    ranks_ = RankPids(*job_, kEndure, 2);
    ASSERT_THAT(ranks_, SizeIs(2));
  }

  void SetLink(const char* state) { Ip({"link", "set", "lo", state}); }
  void Ip(const std::vector<std::string>& words) {
    std::vector<std::string> enter = {"/usr/bin/nsenter", "-t", std::to_string(ranks_[0]), "-n"};
    if (geteuid() != 0) {
      enter.push_back("-U");
    }
    enter.push_back("ip");
    enter.insert(enter.end(), words.begin(), words.end());
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

// Nodes with a second NIC, whose address goes.
class RailCutTest : public LinkCutTest {
 protected:
  void SetUp() override {
    Begin({"--fabric_rails=10.77.0.1", "--rail_stripe_bytes=65536"},
          "ip link set lo up && ip addr add 10.77.0.1/32 dev lo", {kEndure, "timeouts"});
  }
};

// What was on it fails by its deadline, once: then the first NIC carries everything.
TEST_F(RailCutTest, RanksAreToldOnceAtMostAndGoOnOverTheOther) {
  Ip({"addr", "del", "10.77.0.1/32", "dev", "lo"});
  std::this_thread::sleep_for(Scaled(50'000));  // two time-outs and a half: the fault itself
  const std::string out = Finish();
  for (const std::string rank : {"rank 0: cut at", "rank 1: cut at"}) {
    EXPECT_EQ(out.find(rank), out.rfind(rank)) << out;
  }
}

}  // namespace
}  // namespace ferry::faults
