// Jobs whose agents are started along a tree (ferryrun --launch-radix): a script stands in for ssh,
// and the hosts are this machine under many addresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/processes.h"
#include "tests/tools/stand_in_hosts.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::SizeIs;

// Notes each login, "FROM TO"; does not reach the host of UNREACHABLE, and waits for ever at the
// login to that of SILENT. As with ssh, a shell reads its words, in another session than its own,
// where what kills this end kills nothing.
constexpr char kSsh[] = R"(#!/bin/sh
test "$1 $2 $3" = '-x -o BatchMode=yes' || exit 99
shift 3
host=$1
shift
echo "${STAND_IN_HOST:-first} $host" >> "$LOGINS"
if [ "$host" = "$UNREACHABLE" ]; then
  echo "ssh: Could not resolve hostname $host" >&2
  exit 255
fi
if [ "$host" = "$SILENT" ]; then
  exec sleep 1000
fi
echo "Welcome to $host"
STAND_IN_HOST=$host
export STAND_IN_HOST
exec 3<&0
env --default-signal=INT,QUIT setsid /bin/sh -c "exec $*" <&3 3<&- &
exec 3<&-
wait $!
)";

class FerryrunTreeTest : public StandInHostsTest {
 protected:
  FerryrunTreeTest() : StandInHostsTest("ssh", kSsh) {}

  Words Job(int hosts, const std::string& radix, const Words& flags_and_program) const {
    return JobOver(hosts, "LOGINS=" + files_ / "logins",
                   Joined({"--launch-radix", radix}, flags_and_program));
  }
  // The hosts to which each host has logged in.
  std::map<std::string, std::vector<std::string>> TakeLogins() const {
    std::map<std::string, std::vector<std::string>> logins;
    std::istringstream words(tests::ReadFile(files_ / "logins"));
    for (std::string from, to; words >> from >> to;) {
      logins[from].push_back(to);
    }
    fs::remove(files_ / "logins");
    return logins;
  }
  // The relay on a host: the process to which the login led.
  static pid_t RelayOn(const Command& job, int host) {
    const std::string end(1, '\0');
    for (const pid_t pid : job.Find("--relay")) {
      const std::string environment =
          end + tests::ReadFile("/proc/" + std::to_string(pid) + "/environ");
      if (environment.find(end + "STAND_IN_HOST=" + HostName(host) + end) != std::string::npos) {
        return pid;
      }
    }
    ADD_FAILURE() << "no relay on host " << host;
    return 0;
  }

  static bool TellRelay(const Command& job, int host, int signal) {
    const pid_t relay = RelayOn(job, host);
    return relay > 1 && kill(relay, signal) == 0;
  }
};

TEST_F(FerryrunTreeTest, AJobIsTheSameWithATree) {
  for (const int hosts : {2, 5, 12}) {
    std::vector<std::vector<std::string>> outputs;
    for (const char* radix : {"0", "2"}) {
      Command job(Job(hosts, radix,
                      {"-l", "sh", "-c",
                       "echo $FERRY_RANK of $FERRY_SIZE on $FERRY_NODE; echo error >&2; exec cat"}),
                  {}, "input\n");
      const CommandResult result = job.WaitCleanly();
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_THAT(SortedLines(result.err), SizeIs(hosts)) << "without words of a login or a relay";
      outputs.push_back(SortedLines(result.out));
      const auto logins = TakeLogins();
      size_t all = 0;
      size_t most = 0;
      for (const auto& [from, to] : logins) {
        all += to.size();
        most = std::max(most, to.size());
      }
      EXPECT_EQ(all, hosts);
      EXPECT_EQ(most, radix == std::string("0") ? hosts : 2) << hosts << " hosts";
    }
    EXPECT_THAT(outputs[0], SizeIs(hosts + 1));
    EXPECT_EQ(outputs[0], outputs[1]);
  }
}

// Each rank has the variables of its part of the command line and its own, besides those of all.
TEST_F(FerryrunTreeTest, RanksHaveTheirOwnVariables) {
  constexpr char kTell[] = "echo $FERRY_RANK $FERRY_NODE $ALL $ONE $OTHER";
  const Words job = Job(
      3, "1",
      {"-x", "ONE=one", "sh", "-c", kTell, ":", "-n", "2", "-x", "OTHER=two", "sh", "-c", kTell});
  EXPECT_THAT(
      SortedLines(RunWell(job, {"ALL=all"})),
      ElementsAre("0 0 all one", "1 1 all one", "2 2 all one", "3 0 all two", "4 1 all two"));
}

TEST_F(FerryrunTreeTest, FewHostsHaveNoTree) {
  RunWell(Job(3, "3", {"true"}));
  EXPECT_THAT(TakeLogins(), ElementsAre(testing::Pair("first", SizeIs(3))));
}

// Much more than a window of a channel, both ways, over two relays.
TEST_F(FerryrunTreeTest, MuchInputAndOutputComeWhole) {
  ExpectMuchComesWhole(Job(3, "1", MuchOutput()));
}

TEST_F(FerryrunTreeTest, SignalsReachAllRanks) {
  Command job(Job(5, "2",
                  {"-l", "sh", "-c",
                   "trap 'echo got it; exit 0' USR1; echo ready $FERRY_RANK; "
                   "while :; do sleep 0.01; done"}));
  ASSERT_TRUE(AreReady(&job, 5));
  job.Signal(SIGUSR1);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_THAT(result.out, HasSubstr("[" + std::to_string(rank) + "] got it\n"));
  }
}

TEST_F(FerryrunTreeTest, ARankThatFailsIsNamedWithItsHost) {
  const CommandResult result =
      RunCleanly(Job(5, "2", {"sh", "-c", "test $FERRY_RANK != 2 || exit 3; exec sleep 1000"}));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, MatchesRegex("ferryrun: rank 2 \\(pid [0-9]+ on host " + HostName(3) +
                                       "\\) exited with code 3; ending the other 4 ranks\n"));
}

// ---- Hosts that are not reached -----------------------------------------------------------------

// Of five hosts and a radix of 2, host 1 leads to 2 and 3, and host 4 to 5.
TEST_F(FerryrunTreeTest, AnUnreachableHostBehindAnotherIsNamed) {
  const CommandResult result = RunCleanly(Job(5, "2", {"true"}), AsVariables("UNREACHABLE", 3));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("cannot reach host " + HostName(3) + ": ssh on host " + HostName(1) +
                        " exited with code 255; it wrote:\n  ssh: Could not resolve hostname " +
                        HostName(3)));
}

TEST_F(FerryrunTreeTest, AnUnreachableHostThatLeadsToOthersIsNamed) {
  const CommandResult result = RunCleanly(Job(5, "2", {"true"}), AsVariables("UNREACHABLE", 4));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot reach host " + HostName(4) + ": ssh to host " +
                                    HostName(4) + " exited with code 255; it wrote:"));
  EXPECT_THAT(result.err, HasSubstr("ssh: Could not resolve hostname " + HostName(4)));
}

TEST_F(FerryrunTreeTest, AnInterruptEndsALoginThatHangs) {
  Command job(Job(5, "2", {"true"}), AsVariables("SILENT", 3));
  ASSERT_TRUE(Eventually([&] {
    return tests::ReadFile(files_ / "logins").find(" " + HostName(3) + "\n") != std::string::npos;
  }));
  job.Signal(SIGINT);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  EXPECT_THAT(result.err, HasSubstr("interrupted by SIGINT before the job started"));
}

// ---- Relays and ferryruns that are ended --------------------------------------------------------

TEST_F(FerryrunTreeTest, AKilledRelayWhileDaemonsStartFailsTheJob) {
  Command job(Job(5, "2", {"true"}), {"FAKE_FERRYD=hang"});
  ASSERT_TRUE(Eventually([&] { return job.Find("--ready-fd").size() == 5; }));
  ASSERT_TRUE(TellRelay(job, 1, SIGKILL));
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot reach host " + HostName(1) + ": ssh to host " +
                                    HostName(1) + " exited with code 137"));
}

TEST_F(FerryrunTreeTest, AKilledRelayTakesItsHostsWithIt) {
  Command job(Job(5, "2", {"sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&job, 5));
  ASSERT_TRUE(TellRelay(job, 1, SIGKILL));
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("hosts " + HostName(1) + ", " + HostName(2) + ", " +
                                    HostName(3) + " are lost: ssh to host " + HostName(1) +
                                    " exited with code 137; their 3 ranks count as failed"));
}

// Of twelve hosts and a radix of 2, host 1 leads to host 2, which leads to 3 and 4, and to host 5.
TEST_F(FerryrunTreeTest, ARelayBehindAnotherIsNamed) {
  Command job(Job(12, "2", {"sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&job, 12));
  ASSERT_TRUE(TellRelay(job, 2, SIGKILL));
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("hosts " + HostName(2) + ", " + HostName(3) + ", " + HostName(4) +
                        " are lost: ssh to host " + HostName(2) + " on host " + HostName(1) +
                        " exited with code 137; their 3 ranks count as failed"));
}

TEST_F(FerryrunTreeTest, AKilledRelayWhileDaemonsStopLeavesNothing) {
  Command job(Job(5, "2", {"--grace-ms", "2000", "sh", "-c", "exit 0"}), {"FAKE_FERRYD=stubborn"});
  // Ranks have ended once the guards have.
  ASSERT_TRUE(Eventually([&] { return job.Find("--ready-fd").size() == 5; }));
  ASSERT_TRUE(Eventually([&] { return job.Find("ferry-guard").empty(); }));
  ASSERT_TRUE(TellRelay(job, 1, SIGKILL));
  job.WaitCleanly();
}

TEST_F(FerryrunTreeTest, ARelayThatIsToldToEndSaysSo) {
  Command job(Job(5, "2", {"sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&job, 5));
  ASSERT_TRUE(TellRelay(job, 1, SIGTERM));
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("lost: a relay on host " + HostName(1) + " was told to end by SIGTERM"));
}

TEST_F(FerryrunTreeTest, AKilledAgentBesideARelayIsLostAlone) {
  Command job(Job(5, "2", {"--keep-going", "sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&job, 5));
  const std::string relay = std::to_string(RelayOn(job, 1));
  const std::string stat = "/proc/" + relay + "/task/" + relay + "/children";
  std::istringstream children(tests::ReadFile(stat));
  pid_t agent = -1;
  children >> agent;
  ASSERT_GT(agent, 0);
  kill(agent, SIGKILL);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("host " + HostName(1) + " is lost: the agent on host " + HostName(1) +
                        " was killed by SIGKILL; its 1 rank counts as failed"));
}

// It says nothing, so ferryrun gives up its hosts. Everything there ends when the relay goes on.
TEST_F(FerryrunTreeTest, AStoppedRelayIsGivenUp) {
  Command job(Job(3, "1", {"--grace-ms", "100", "sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&job, 3));
  ASSERT_TRUE(TellRelay(job, 1, SIGSTOP));
  job.Signal(SIGTERM);
  const CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  for (int host = 1; host <= 3; ++host) {
    EXPECT_THAT(result.err, HasSubstr("ferryrun: host " + HostName(host) +
                                      " does not say that its 1 rank has been killed, and is "
                                      "given up\n"));
  }
  ASSERT_TRUE(TellRelay(job, 1, SIGCONT));
  EXPECT_THAT(job.Leftovers(), testing::IsEmpty());
}

class FerryrunTreeEndTest : public FerryrunTreeTest, public testing::WithParamInterface<int> {};

TEST_P(FerryrunTreeEndTest, LeavesNothingOnAnyHost) {
  Command job(Job(5, "2", {"sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&job, 5));
  job.Signal(GetParam());
  EXPECT_NE(job.WaitCleanly().exit_code, 0);
}

TEST_P(FerryrunTreeEndTest, LeavesNothingWhileDaemonsStart) {
  Command job(Job(5, "2", {"true"}), {"FAKE_FERRYD=hang"});
  ASSERT_TRUE(Eventually([&] { return job.Find("--ready-fd").size() == 5; }));
  job.Signal(GetParam());
  EXPECT_NE(job.WaitCleanly().exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Signals, FerryrunTreeEndTest, testing::Values(SIGINT, SIGTERM, SIGKILL));

}  // namespace
}  // namespace ferry::e2e
