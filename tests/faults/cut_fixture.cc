#include "tests/faults/cut_fixture.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "config/environment.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using e2e::RunCommand;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr unsigned kLimitSeconds = 240;

std::string Privileges() { return geteuid() == 0 ? "-n" : "-rn"; }

bool AsUsersHaveIt() {
  return kSanitized ||
         config::FindVariable(config::ProcessEnvironment(), "FERRY_FAULT_DEFAULTS").has_value();
}

}  // namespace

std::chrono::milliseconds CutTest::Scaled(int ms) {
  return std::chrono::milliseconds(AsUsersHaveIt() ? ms : ms / 5);
}

void CutTest::SetUp() {
  if (RunCommand({"/usr/bin/unshare", Privileges(), "true"}).exit_code != 0) {
    GTEST_SKIP() << "this machine lets us make no network namespace";
  }
}

void CutTest::StartJob(int ranks, std::vector<std::string> flags,
                       const std::vector<std::string>& program, int operation_timeout_ms,
                       const std::string& commands) {
  if (!AsUsersHaveIt()) {
    flags.insert(flags.end(), {"--peer_timeout_ms=3000",
                               "--operation_timeout_ms=" + std::to_string(operation_timeout_ms)});
  }
  std::vector<std::string> arguments = {"/usr/bin/unshare",           Privileges(), "sh", "-c",
                                        commands + " && exec \"$@\"", "sh"};
  for (const std::string& word : PrivateJob(ranks, 2, flags, program)) {
    arguments.push_back(word);
  }
  job_ = std::make_unique<Command>(arguments, std::vector<std::string>(), "", kLimitSeconds);
}

void CutTest::FindRanks(const std::string& program, int ranks) {
  ranks_ = RankPids(*job_, program, ranks);
  ASSERT_THAT(ranks_, SizeIs(ranks));
}

void CutTest::Ip(const std::vector<std::string>& words) {
  std::vector<std::string> enter = {"/usr/bin/nsenter", "-t", std::to_string(ranks_[0]), "-n"};
  if (geteuid() != 0) {
    enter.push_back("-U");
  }
  enter.push_back("ip");
  enter.insert(enter.end(), words.begin(), words.end());
  const CommandResult result = RunCommand(enter);
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

uint64_t CutTest::When(const std::string& text) {
  EXPECT_TRUE(job_->WaitForOutput(text)) << job_->Output();
  const std::string out = job_->Output();
  const size_t at = out.rfind(text);
  return at == std::string::npos ? 0 : std::strtoull(out.c_str() + at + text.size(), nullptr, 10);
}

std::string CutTest::Finish() {
  for (const pid_t rank : ranks_) {
    kill(rank, SIGUSR1);
  }
  const CommandResult result = job_->Wait();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    EXPECT_THAT(result.out, HasSubstr("rank " + std::to_string(rank) + ": all right"));
  }
  EXPECT_THAT(job_->Leftovers(), IsEmpty());
  return result.out;
}

}  // namespace ferry::faults
