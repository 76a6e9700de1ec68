// Where ferryrun's ranks may run, with shell scripts for ranks and a stand-in for ferryd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/e2e/command.h"
#include "tests/e2e/two_cores.h"

namespace ferry::e2e {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::CpuSet;

constexpr char kSay[] = "grep Cpus_allowed_list /proc/self/status | cut -f 2";

class BindingTest : public TwoCoresTest {
 protected:
  // ferryrun FLAGS sh -c SCRIPT, which may use these CPUs.
  static Words Job(const CpuSet& cpus, const Words& flags, const std::string& script) {
    return On(cpus, Joined(Joined({"tools/ferryrun/ferryrun", "-l", "--private", "--ferryd",
                                   "tests/tools/fake_ferryd"},
                                  flags),
                           {"sh", "-c", script}));
  }
  static CommandResult Run(const CpuSet& cpus, const Words& flags, const std::string& script = kSay,
                           const Words& variables = {}) {
    CommandResult result = RunCleanly(InOwnNetwork(Job(cpus, flags, script)), variables);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  }
  // The output of `ranks` ranks that may run on any of both cores.
  Words Unbound(int ranks) const {
    Words lines;
    for (int rank = 0; rank < ranks; ++rank) {
      lines.push_back("[" + std::to_string(rank) + "] " + both_.Text());
    }
    return lines;
  }
};

TEST_F(BindingTest, RanksHaveCoresOfTheirOwn) {
  EXPECT_THAT(SortedLines(Run(both_, {"-n", "2"}).out),
              ElementsAre("[0] " + first_.Text(), "[1] " + second_.Text()));
}

TEST_F(BindingTest, DaemonsOfSeveralNodesWantCores) {
  const CommandResult result = Run(both_, {"-n", "2", "--nodes", "2", "--report-bindings"});
  EXPECT_EQ(SortedLines(result.out), Unbound(2));
  EXPECT_THAT(result.err, HasSubstr("rank 1: any CPU (2 ranks and 2 daemons, but 2 cores)\n"));
}

TEST_F(BindingTest, ThreadsOfASingleRankHaveAllCores) {
  EXPECT_EQ(Run(both_, {"-n", "1"}, "nproc").out, "[0] " + std::to_string(both_.size()) + "\n");
}

TEST_F(BindingTest, MoreRanksThanCoresAreNotBound) {
  EXPECT_EQ(SortedLines(Run(both_, {"-n", "3"}).out), Unbound(3));
  EXPECT_THAT(SortedLines(Run(first_, {"-n", "2"}).out),
              ElementsAre("[0] " + first_.Text(), "[1] " + first_.Text()));
}

TEST_F(BindingTest, AFlagAVariableAndAnOptionTurnItOff) {
  EXPECT_EQ(SortedLines(Run(both_, {"-n", "2", "--bind-to", "none"}).out), Unbound(2));
  EXPECT_EQ(SortedLines(Run(both_, {"-n", "2"}, kSay, {"FERRY_BIND_TO=none"}).out), Unbound(2));
  const std::string file = testing::TempDir() + "ferryd.toml";
  std::ofstream(file) << "bind_to = \"none\"\n";
  EXPECT_EQ(SortedLines(Run(both_, {"-n", "2", "--config_file", file}).out), Unbound(2));
  // The flag counts for more.
  EXPECT_THAT(
      SortedLines(Run(both_, {"-n", "2", "--bind-to", "auto"}, kSay, {"FERRY_BIND_TO=none"}).out),
      ElementsAre("[0] " + first_.Text(), "[1] " + second_.Text()));
}

// The variable that keeps hwloc from loading plugins is for ferryrun alone.
TEST_F(BindingTest, RanksSeeNothingOfHowTheMachineWasRead) {
  EXPECT_EQ(Run(both_, {}, "echo ${HWLOC_PLUGINS_BLACKLIST-none}").out, "[0] none\n");
  EXPECT_EQ(Run(both_, {}, "echo $HWLOC_PLUGINS_BLACKLIST", {"HWLOC_PLUGINS_BLACKLIST=x"}).out,
            "[0] x\n");
}

TEST_F(BindingTest, WhoAsksForCoresGetsOneForEachRank) {
  EXPECT_EQ(Run(both_, {"-n", "1", "--bind-to", "core"}).out, "[0] " + first_.Text() + "\n");
}

// "CPUs 0-3", and a picture with a B for each of these.
void ExpectBinding(const std::string& line, int rank, const CpuSet& cpus) {
  const std::string begin =
      "ferryrun: rank " + std::to_string(rank) + ": CPUs " + cpus.Text() + " [";
  EXPECT_TRUE(line.starts_with(begin) && line.ends_with("]")) << line;
  const std::string picture = line.substr(std::min(begin.size(), line.size()));
  EXPECT_EQ(std::count(picture.begin(), picture.end(), 'B'), cpus.size()) << line;
}

TEST_F(BindingTest, ReportsALineForEachRank) {
  const std::string report = Run(both_, {"-n", "2", "--report-bindings"}, "true").err;
  std::istringstream lines(report);
  std::string line;
  std::getline(lines, line);
  ExpectBinding(line, 0, first_);
  std::getline(lines, line);
  ExpectBinding(line, 1, second_);
  std::getline(lines, line);
  EXPECT_THAT(line, HasSubstr("[ ] is a socket, | parts its NUMA nodes, / its cores; each sign is "
                              "a hardware thread: B where the rank may run"));
  EXPECT_FALSE(std::getline(lines, line)) << line;
  EXPECT_THAT(Run(both_, {"-n", "3", "--report-bindings"}, "true").err,
              HasSubstr("ferryrun: rank 2: any CPU (3 ranks, but 2 cores)\n"));
  EXPECT_EQ(Run(both_, {"--report-bindings", "--bind-to", "none"}, "true").err,
            "ferryrun: rank 0: any CPU (as --bind-to none says)\n");
}

TEST_F(BindingTest, RanksTakeUnitsAndCoresAsTheyAreTold) {
  const Words apart = {"[0] " + first_.Text(), "[1] " + second_.Text()};
  for (const Words& flags : {Words{"--map-by", "core"}, Words{"--map-by", "core:PE=1"},
                             Words{"--map-by", "socket", "--bind-to", "core"},
                             Words{"--map-by", "ppr:2:socket", "--bind-to", "core"},
                             Words{"--bind-to", "core", "--rank-by", "core"}}) {
    // All on the socket of both, if the machine has several.
    EXPECT_EQ(SortedLines(Run(both_, Joined({"-n", "2"}, flags)).out), apart) << flags[1];
  }
  EXPECT_EQ(Run(both_, {"--cpus-per-rank", "2"}).out, "[0] " + both_.Text() + "\n");
  EXPECT_EQ(Run(both_, {"--bind-to", "hwthread"}, "nproc").out, "[0] 1\n");
  // Without -n as many as that makes.
  EXPECT_EQ(SortedLines(Run(both_, {"--map-by", "ppr:1:core"}).out), apart);
}

TEST_F(BindingTest, ARankHasAsManyCoresAsOpenMpThreads) {
  EXPECT_EQ(Run(both_, {"-n", "1"}, kSay, {"OMP_NUM_THREADS=1"}).out,
            "[0] " + first_.Text() + "\n");
  EXPECT_EQ(Run(both_, {"-n", "1", "-x", "OMP_NUM_THREADS=1"}).out, "[0] " + first_.Text() + "\n");
  EXPECT_EQ(Run(both_, {"-n", "1", "-genv", "OMP_NUM_THREADS", "2"}).out,
            "[0] " + both_.Text() + "\n");
  EXPECT_EQ(Run(both_, {"-n", "1", "--bind-to", "none"}, kSay, {"OMP_NUM_THREADS=1"}).out,
            "[0] " + both_.Text() + "\n");
}

TEST_F(BindingTest, MoreCoresThanThereAreIsAMistake) {
  const CommandResult result =
      RunCleanly(InOwnNetwork(Job(both_, {"-n", "2", "--map-by", "slot:PE=2"}, "echo never")));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err,
              HasSubstr("--bind-to core: 2 ranks here with 2 cores each (PE), but 2 cores"));
}

// Agents bind the ranks of other hosts, and say how.
TEST_F(BindingTest, ReportsTheRanksOfOtherHosts) {
  const std::string rsh = testing::TempDir() + "rsh";
  std::ofstream(rsh) << "#!/bin/sh\nshift\nexec \"$@\"\n";
  ASSERT_EQ(chmod(rsh.c_str(), 0700), 0);
  const CommandResult result =
      Run(both_, {"-n", "2", "--report-bindings", "-host", "elsewhere:2", "--rsh", rsh}, kSay);
  EXPECT_THAT(SortedLines(result.out),
              ElementsAre("[0] " + first_.Text(), "[1] " + second_.Text()));
  EXPECT_THAT(result.err, HasSubstr("ferryrun: rank 1: CPUs " + second_.Text() + " ["));
}

// The rules, and what OpenMP starts in each rank, travel to other hosts.
TEST_F(BindingTest, OtherHostsBindByTheSameRules) {
  const std::string rsh = testing::TempDir() + "rsh_rules";
  std::ofstream(rsh) << "#!/bin/sh\nshift\nexec \"$@\"\n";
  ASSERT_EQ(chmod(rsh.c_str(), 0700), 0);
  const Words there = {"-host", "elsewhere:2", "--rsh", rsh};
  EXPECT_EQ(Run(both_, Joined(there, {"-n", "1", "-x", "OMP_NUM_THREADS=1"})).out,
            "[0] " + first_.Text() + "\n");
  EXPECT_EQ(Run(both_, Joined(there, {"-n", "1", "--map-by", "slot:PE=2"})).out,
            "[0] " + both_.Text() + "\n");
  EXPECT_THAT(SortedLines(Run(both_, Joined(there, {"--map-by", "ppr:1:core"})).out),
              ElementsAre("[0] " + first_.Text(), "[1] " + second_.Text()));
  const CommandResult result = RunCleanly(
      InOwnNetwork(Job(both_, Joined(there, {"-n", "2", "--map-by", "slot:PE=2"}), "echo never")));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("2 ranks here with 2 cores each (PE), but 2 cores"));
}

// Two launchers in one namespace, each with a daemon of its own. The first one's rank tells by a
// file that it runs.
class TwoJobsTest : public BindingTest {
 protected:
  // SCRIPT sees the first one's pid as $first, and the second one as "$@".
  static Words Beside(const Words& first, const std::string& script, const Words& second,
                      const std::string& file) {
    std::string line;
    for (const std::string& word : first) {
      line += "'" + word + "' ";
    }
    return InOwnNetwork(Joined(
        {"sh", "-c",
         line + " <&- & first=$!; while [ ! -e " + file + " ]; do sleep 0.01; done; " + script,
         "sh"},
        second));
  }
  static std::string UntilGone(const std::string& file) {
    return "echo x >" + file + "; while [ -e " + file + " ]; do sleep 0.01; done";
  }
};

TEST_F(TwoJobsTest, HaveCoresOfTheirOwn) {
  const TempDirectory directory;
  const std::string file = directory / "runs";
  const std::string until_gone = UntilGone(file);
  const std::string say = kSay;
  const CommandResult result = RunCleanly(Beside(Job(both_, {"--bind-to", "core"}, until_gone),
                                                 "\"$@\"; rm " + file + "; wait",
                                                 Job(both_, {"--report-bindings"}, say), file));
  EXPECT_EQ(result.out, "[0] " + second_.Text() + "\n") << result.err;
}

TEST_F(TwoJobsTest, TheSecondIsNotBoundWhereNoCoresAreFree) {
  const TempDirectory directory;
  const std::string file = directory / "runs";
  const CommandResult result =
      RunCleanly(Beside(Job(both_, {}, UntilGone(file)), "\"$@\"; rm " + file + "; wait",
                        Job(both_, {"-n", "1", "--report-bindings"}, kSay), file));
  EXPECT_EQ(result.out, "[0] " + both_.Text() + "\n");
  EXPECT_THAT(result.err, HasSubstr("rank 0: any CPU (other jobs have 2 of its 2 cores)\n"));
}

TEST_F(TwoJobsTest, AKilledOneLeavesItsCoresToTheNext) {
  const TempDirectory directory;
  const std::string file = directory / "runs";
  const CommandResult result = RunCommand(Beside(Job(both_, {}, UntilGone(file)),
                                                 "kill -9 $first; wait $first; \"$@\"; rm " + file,
                                                 Job(both_, {"-n", "2"}, kSay), file));
  EXPECT_THAT(SortedLines(result.out), ElementsAre("[0] " + first_.Text(), "[1] " + second_.Text()))
      << result.err;
}

}  // namespace
}  // namespace ferry::e2e
