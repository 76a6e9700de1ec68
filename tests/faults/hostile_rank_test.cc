// A rank scribbles over all the shared memory that it has: its daemon lives and serves another job
// without a fault, its peers soon get an error, and their messages to each other go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "common/clock.h"
#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kHostile[] = "tests/faults/ranks/hostile";
constexpr char kMixed[] = "tests/faults/ranks/mixed";
constexpr double kAllowedMs = 10'000;

// FERRY_FAULT_ROUNDS: the number of seeds of each sort.
int Rounds() { return Setting("FERRY_FAULT_ROUNDS", 1); }

struct Outcome {
  CommandResult hostile;
  CommandResult other;
  double told_ms = 0;  // from the start until the last peer knew
};

// Runs the hostile job beside another one, on the same daemon.
Outcome RunBeside(const DaemonForTest& daemon, const std::string& mode, int seed) {
  Outcome outcome;
  Command hostile(JobOn(daemon, 3, {kHostile, mode, std::to_string(seed)}));
  Command other(JobOn(daemon, 2, {kMixed, "300"}));
  EXPECT_TRUE(UnderWay(&hostile, 3));
  const uint64_t begun_ns = MonotonicNs();
  outcome.other = other.Wait();
  outcome.hostile = hostile.WaitCleanly();
  outcome.told_ms = LatestMs(ErrorsIn(outcome.hostile.out), begun_ns);
  std::printf("%s, seed %d: the last peer was told after %.0f ms\n", mode.c_str(), seed,
              outcome.told_ms);
  return outcome;
}

void ExpectOtherJobUnharmed(const Outcome& outcome) {
  EXPECT_EQ(outcome.other.exit_code, 0) << outcome.other.out << outcome.other.err;
  ExpectAllRight(outcome.other.out, 2);
}

TEST(HostileRankTest, ItsPeersAreToldAndGoOnWithEachOther) {
  DaemonForTest daemon;
  for (int seed = 1; seed <= Rounds() && !HasFailure(); ++seed) {
    const Outcome outcome = RunBeside(daemon, "own", seed);
    ExpectOtherJobUnharmed(outcome);
    const std::string all = outcome.hostile.out + outcome.hostile.err;
    ExpectErrors(outcome.hostile.out, 2, {kPeerDied});
    EXPECT_LT(outcome.told_ms, kAllowedMs);
    EXPECT_THAT(outcome.hostile.out, HasSubstr("rank 1: pair all right")) << all;
    EXPECT_THAT(outcome.hostile.out, HasSubstr("rank 2: pair all right")) << all;
  }
  daemon.Stop();
}

// Its word on a barrier is believed only if it is an error that exists.
TEST(HostileRankTest, WrongWordsInABarrierAreNamed) {
  for (const int nodes : {1, 2}) {
    const e2e::CommandResult result = e2e::RunCleanly(
        e2e::PrivateJob({"-n", "2", "--nodes", std::to_string(nodes)}, {kHostile, "barrier"}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    ExpectAllRight(result.out, 2);
  }
}

struct Mistake {
  const char* mode;
  const char* words;
};

class MistakenRankTest : public testing::TestWithParam<Mistake> {};

TEST_P(MistakenRankTest, IsToldWhatWasFoundAndEndsAlone) {
  DaemonForTest daemon;
  const Outcome outcome = RunBeside(daemon, GetParam().mode, 0);
  ExpectOtherJobUnharmed(outcome);
  const std::string all = outcome.hostile.out + outcome.hostile.err;
  EXPECT_THAT(ErrorsIn(outcome.hostile.out), SizeIs(3)) << all;
  EXPECT_THAT(outcome.hostile.out, HasSubstr("rank 0: error 24 ")) << all;
  EXPECT_THAT(outcome.hostile.out, HasSubstr(GetParam().words)) << all;
  EXPECT_THAT(outcome.hostile.out, HasSubstr("rank 1: error 14 ")) << all;
  EXPECT_THAT(outcome.hostile.out, HasSubstr("rank 2: error 14 ")) << all;
  EXPECT_THAT(outcome.hostile.out, HasSubstr("rank 1: pair all right")) << all;
  EXPECT_THAT(outcome.hostile.out, HasSubstr("rank 2: pair all right")) << all;
  daemon.Stop();
}

INSTANTIATE_TEST_SUITE_P(
    Each, MistakenRankTest,
    testing::Values(Mistake{"command", "a command of kind 1 goes to rank 2, which is on no other"},
                    Mistake{"cycle", "the match table has a cycle at entry"}),
    [](const auto& info) { return std::string(info.param.mode); });

// The rank reaches all of a node's inboxes: no exchange of that job is safe any more, but each of
// its ranks ends, and neither the daemon nor the other job notices.
TEST(HostileRankTest, ThatReachesItsPeersInboxesEndsItsOwnJobOnly) {
  DaemonForTest daemon;
  for (int seed = 1; seed <= Rounds() && !HasFailure(); ++seed) {
    const Outcome outcome = RunBeside(daemon, "all", seed);
    ExpectOtherJobUnharmed(outcome);
    EXPECT_LT(outcome.told_ms, kAllowedMs);
    const std::string all = outcome.hostile.out + outcome.hostile.err;
    for (const std::string rank : {"rank 1: ", "rank 2: "}) {
      // Each rank reports how it ended, perhaps by bytes that it finds wrong ("rank 1: FILE:LINE:
      // ...").
      EXPECT_THAT(all, testing::AnyOf(HasSubstr(rank + "error "), HasSubstr(rank + "pair all"),
                                      HasSubstr(rank + "tests/faults/ranks/hostile.cc")));
    }
    EXPECT_THAT(all, testing::Not(HasSubstr("was killed by")));
  }
  daemon.Stop();
}

}  // namespace
}  // namespace ferry::faults
