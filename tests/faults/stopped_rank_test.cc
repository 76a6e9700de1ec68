// SIGSTOP of a rank for three seconds, in every role that it can have, then SIGCONT: no data is
// lost, and no other rank stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/faults/fault_fixture.h"
#include "tests/faults/segment_peek.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kPairs[] = "tests/faults/ranks/pairs";
constexpr auto kStop = std::chrono::seconds(3);
constexpr auto kMoment = std::chrono::milliseconds(50);
constexpr auto kBetweenAttempts = std::chrono::microseconds(300);
constexpr int kAttempts = 20'000;

bool IsStopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.compare(name_end, 3, ") T") == 0;
}

void Stop(pid_t pid) {
  kill(pid, SIGSTOP);
  while (!IsStopped(pid)) {
    std::this_thread::yield();
  }
}

// Stops the process at a moment at which `holds()` is true.
bool StopWhile(pid_t pid, const std::function<bool()>& holds) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Stop(pid);
    if (holds()) {
      return true;
    }
    kill(pid, SIGCONT);
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  return false;
}

long MessagesOf(Command* job, int rank) {
  const std::string text = job->Output();
  const std::string name = "rank " + std::to_string(rank) + ": message ";
  const size_t at = text.rfind(name);
  return at == std::string::npos ? 0 : std::atol(text.c_str() + at + name.size());
}

enum class Role {
  kSender,
  kReceiver,
  kLeaseHolder,
  kChunkClaimantWhoSends,
  kChunkClaimantWhoReceives
};

class StoppedRankTest : public testing::TestWithParam<Role> {
 protected:
  // Stops the rank that has the role; returns its pid, or 0.
  static pid_t StopIn(Role role, pid_t daemon, const std::vector<pid_t>& ranks) {
    const bool sends = role == Role::kSender || role == Role::kChunkClaimantWhoSends;
    const pid_t victim = ranks[sends ? 0 : 1];
    const SegmentPeek sender(daemon, ranks[0]);  // it owns the transfers
    const SegmentPeek receiver(daemon, ranks[1]);
    if (!sender.found() || !receiver.found()) {
      return 0;
    }
    std::function<bool()> holds = [] { return true; };
    if (role == Role::kLeaseHolder) {
      holds = [&] { return receiver.LeaseHolder() == victim; };
    } else if (role != Role::kSender && role != Role::kReceiver) {
      // Other processes that may copy do so meanwhile: the rest is the victim's.
      holds = [&] {
        if (!sender.HasClaimedChunk()) {
          return false;
        }
        std::this_thread::sleep_for(kMoment);
        return sender.HasClaimedChunk();
      };
    }
    return StopWhile(victim, holds) ? victim : 0;
  }
};

TEST_P(StoppedRankTest, LosesNothingAndStopsNobodyElse) {
  DaemonForTest daemon;
  // Small messages keep the lease busy, messages of all sizes the copies.
  Command job(GetParam() == Role::kLeaseHolder ? JobOn(daemon, 4, {kPairs, "8"})
                                               : JobOn(daemon, 4, {kPairs}));
  ASSERT_TRUE(UnderWay(&job, 4));
  const std::vector<pid_t> ranks = RankPids(job, kPairs, 4);
  ASSERT_THAT(ranks, SizeIs(4));
  const pid_t victim = StopIn(GetParam(), daemon.pid(), ranks);
  ASSERT_NE(victim, 0) << "no rank could be caught in that role";

  const long bystanders_before = MessagesOf(&job, 3);
  std::this_thread::sleep_for(kStop);  // the fault itself
  const long victims_then = MessagesOf(&job, 1);
  std::this_thread::sleep_for(kMoment);
  EXPECT_EQ(MessagesOf(&job, 1), victims_then) << "the stopped pair did not stand still";
  EXPECT_TRUE(e2e::Eventually([&] { return MessagesOf(&job, 3) > bystanders_before; }))
      << "others stood still";
  EXPECT_THAT(ErrorsIn(job.Output()), IsEmpty());  // a stopped rank is not dead
  kill(victim, SIGCONT);
  kill(ranks[0], SIGUSR1);
  kill(ranks[2], SIGUSR1);

  const CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(result.out, HasSubstr("rank " + std::to_string(rank) + ": all right"));
  }
  EXPECT_THAT(job.Leftovers(), IsEmpty());
  EXPECT_EQ(daemon.Stop(), "");
}

INSTANTIATE_TEST_SUITE_P(Roles, StoppedRankTest,
                         testing::Values(Role::kSender, Role::kReceiver, Role::kLeaseHolder,
                                         Role::kChunkClaimantWhoSends,
                                         Role::kChunkClaimantWhoReceives));

}  // namespace
}  // namespace ferry::faults
