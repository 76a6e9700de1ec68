// The network begins to swallow a connection of the data plane that stands, in both directions or
// in one, while the daemons' calls pass: by rules of routing in a network namespace of the test's
// own. Operations must end with an error on both nodes all the same, and nowhere else; then ranks
// go on by another connection. Skipped where the machine lets us make no namespace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "tests/faults/cut_fixture.h"
#include "tests/support/processes.h"

namespace ferry::faults {
namespace {

using e2e::kByDaemons;
using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kOneWay[] = "tests/faults/ranks/one_way";
constexpr int kTimeoutMs = 4'000;
constexpr int kUsersTimeoutMs = 20'000;
constexpr uint64_t kAllowed = 3;  // times the time-out

enum class Swallowed { kBoth, kThere, kBack };  // from the first node, to it

class SwallowedConnectionTest : public CutTest {
 protected:
  void Start(int ranks, const e2e::Words& flags, const e2e::Words& program) {
    StartJob(ranks, e2e::Joined({kByDaemons}, flags), program, kTimeoutMs, kRulesMaySwallow);
    ASSERT_TRUE(UnderWay(job_.get(), ranks));
    FindRanks(program[0], ranks);
  }
  // Begins to swallow what goes by the connections of the data planes of the first two nodes.
  void Swallow(Swallowed what);
  void Pass();
  // Checks that each of `ranks`, and no other, has printed an error in time.
  void ExpectErrorsOf(const std::vector<int>& ranks);

 private:
  static unsigned FabricPort(const std::string& directory);
  static pid_t DaemonIn(const std::string& directory);
  void Rule(const char* verb, const std::pair<unsigned, unsigned>& ports);

  std::vector<std::pair<unsigned, unsigned>> swallowed_;
  uint64_t since_ns_ = 0;
};

unsigned SwallowedConnectionTest::FabricPort(const std::string& directory) {
  const json reply = json::parse(
      e2e::RunWell({"tools/ferryctl/ferryctl", "--run_directory=" + directory, "--json", "nics"}));
  const std::string address = reply["nics"][0]["address"];
  return static_cast<unsigned>(std::stoul(address.substr(address.rfind(':') + 1)));
}

pid_t SwallowedConnectionTest::DaemonIn(const std::string& directory) {
  return json::parse(tests::ReadFile(directory + "/ferryd.json"))["pid"];
}

void SwallowedConnectionTest::Rule(const char* verb, const std::pair<unsigned, unsigned>& ports) {
  Ip({"rule", verb, "pref", "50", "ipproto", "tcp", "sport", std::to_string(ports.first), "dport",
      std::to_string(ports.second), "blackhole"});
}

void SwallowedConnectionTest::Swallow(Swallowed what) {
  const e2e::Words directories = Daemons(*job_);
  ASSERT_THAT(directories, SizeIs(nodes_));
  const std::set<unsigned> listening = {FabricPort(directories[0]), FabricPort(directories[1])};
  const Sockets first = SocketsOf(DaemonIn(directories[0]), false);
  const Sockets second = SocketsOf(DaemonIn(directories[1]), false);
  for (const auto& [from, to] : first.connected) {
    const bool is_data = listening.contains(from) || listening.contains(to);
    if (!is_data || !second.connected.contains({to, from})) {
      continue;
    }
    if (what != Swallowed::kBack) {
      swallowed_.push_back({from, to});
    }
    if (what != Swallowed::kThere) {
      swallowed_.push_back({to, from});
    }
  }
  ASSERT_THAT(swallowed_, Not(IsEmpty()));
  for (const auto& ports : swallowed_) {
    Rule("add", ports);
  }
  since_ns_ = MonotonicNs();
}

void SwallowedConnectionTest::Pass() {
  for (const auto& ports : std::exchange(swallowed_, {})) {
    Rule("del", ports);
  }
}

void SwallowedConnectionTest::ExpectErrorsOf(const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    ASSERT_TRUE(job_->WaitForOutput("rank " + std::to_string(rank) + ": error ")) << job_->Output();
  }
  const std::vector<RankError> errors =
      ExpectErrors(job_->Output(), ranks.size(), {kLinkDown, kNodeUnreachable, kTimeout});
  const int limit_ms = HasUsersTimeouts() ? kUsersTimeoutMs : kTimeoutMs;
  std::printf("the last rank had its error after %.0f ms\n", LatestMs(errors, since_ns_));
  EXPECT_LT(LatestMs(errors, since_ns_), static_cast<double>(kAllowed) * limit_ms);
}

// ---- Operations under way end -------------------------------------------------------------------

struct Work {
  const char* name;
  e2e::Words program;
  e2e::Words flags;
};

void PrintTo(const Work& work, std::ostream* out) { *out << work.name; }

class SwallowedWorkTest : public SwallowedConnectionTest,
                          public testing::WithParamInterface<std::tuple<Work, Swallowed>> {};

TEST_P(SwallowedWorkTest, BothNodesGetAnError) {
  const auto& [work, what] = GetParam();
  ASSERT_NO_FATAL_FAILURE(Start(2, work.flags, e2e::Joined({kOneWay}, work.program)));
  ASSERT_NO_FATAL_FAILURE(Swallow(what));
  if (work.program[0] == "ask") {  // until then it was idle
    kill(ranks_[0], SIGUSR2);
  }
  ExpectErrorsOf({0, 1});
  for (const pid_t rank : ranks_) {
    kill(rank, SIGUSR1);
  }
  std::printf("%s", job_->Wait().out.c_str());
}

std::string NameOf(const testing::TestParamInfo<SwallowedWorkTest::ParamType>& info) {
  const auto& [work, what] = info.param;
  return std::string(work.name) + (what == Swallowed::kBoth    ? "InBothDirections"
                                   : what == Swallowed::kThere ? "FromTheFirst"
                                                               : "ToTheFirst");
}

constexpr char kLongBytes[] = "16777216";

INSTANTIATE_TEST_SUITE_P(
    Of, SwallowedWorkTest,
    testing::Combine(
        testing::Values(Work{"Short", {"send", "64"}, {}},
                        Work{"LongByGet", {"send", kLongBytes}, {"--receiver_first_min_bytes=0"}},
                        Work{"LongByPut", {"send", kLongBytes}, {"--receiver_first_min_bytes=1"}},
                        Work{"Put", {"put"}, {}}, Work{"Get", {"get"}, {}},
                        Work{"Fetch", {"fetch"}, {}}, Work{"Idle", {"ask"}, {}}),
        testing::Values(Swallowed::kBoth, Swallowed::kThere, Swallowed::kBack)),
    NameOf);

// ---- Other connections go on --------------------------------------------------------------------

TEST_F(SwallowedConnectionTest, PairsOfTheThirdNodeGoOn) {
  nodes_ = 3;
  ASSERT_NO_FATAL_FAILURE(Start(6, {}, {kOneWay, "send", "64"}));
  ASSERT_NO_FATAL_FAILURE(Swallow(Swallowed::kBoth));
  ExpectErrorsOf({0, 2});
  const std::string before = job_->Output();
  for (const int rank : {1, 3, 4, 5}) {
    kill(ranks_[static_cast<size_t>(rank)], SIGUSR2);
    EXPECT_NE(When("rank " + std::to_string(rank) + ": exchanged ", before), 0U);
  }
  EXPECT_THAT(ErrorsIn(job_->Output()), SizeIs(2));
  for (const pid_t rank : ranks_) {
    kill(rank, SIGUSR1);
  }
  job_->Wait();
}

// An operation under way may reach its own time-out a moment before the link is cut.
TEST_F(SwallowedConnectionTest, RanksGoOnByAnotherConnection) {
  ASSERT_NO_FATAL_FAILURE(Start(2, {}, {"tests/faults/ranks/endure", "timeouts"}));
  ASSERT_NO_FATAL_FAILURE(Swallow(Swallowed::kBoth));
  for (const std::string rank : {"rank 0", "rank 1"}) {
    EXPECT_NE(When(rank + ": cut at "), 0U);
    EXPECT_NE(When(rank + ": back at "), 0U);
  }
  Finish();
}

// A moment: TCP brings what was swallowed, once.
class SwallowedForAMomentTest : public SwallowedConnectionTest,
                                public testing::WithParamInterface<e2e::Words> {};

TEST_P(SwallowedForAMomentTest, NoRankNotices) {
  ASSERT_NO_FATAL_FAILURE(Start(2, {}, GetParam()));
  ASSERT_NO_FATAL_FAILURE(Swallow(Swallowed::kBoth));
  std::this_thread::sleep_for(std::chrono::seconds(1));  // the fault itself
  Pass();
  std::this_thread::sleep_for(std::chrono::seconds(1));  // they go on for a while
  EXPECT_THAT(Finish(), Not(HasSubstr(": cut at")));
}

INSTANTIATE_TEST_SUITE_P(Of, SwallowedForAMomentTest,
                         testing::Values(e2e::Words{"tests/faults/ranks/endure"},
                                         e2e::Words{"tests/faults/ranks/one_sided", "endure"}),
                         [](const auto& info) {
                           return std::string(info.param.size() == 1 ? "Messages"
                                                                     : "OneSidedOperations");
                         });

}  // namespace
}  // namespace ferry::faults
