// Jobs whose agents one srun starts, and which call ferryrun: a script stands in for srun, and the
// hosts are this machine under many addresses. tests/e2e/slurm_test has the real one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/processes.h"
#include "tests/tools/stand_in_hosts.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;

// Notes its hosts in STEPS, a line for each of its runs. Starts a task for each, in a session of
// its own as slurmstepd does, and waits for all; SIGTERM kills them. REFUSES: it starts none.
// LACKS: it starts none on the last host. At the host of SILENT the task says that it calls, and
// does not; at that of SPOILT it has another secret, at that of CUT_OFF another port.
constexpr char kSrun[] = R"(#!/bin/bash
for word; do case $word in
  --nodelist=*) list=${word#*=} ;;
  --*) ;;
  *) break ;;
esac; shift; done
expand() {
  case $1 in
    *\[*) range=${1#*\[}
          for part in $(echo ${range%\]} | tr , ' '); do
            seq -f "${1%%\[*}%g" ${part%-*} ${part#*-}
          done ;;
    *) echo $1 | tr , '\n' ;;
  esac
}
hosts=$(expand $list)
echo $hosts >> "$STEPS"
test -z "$REFUSES" || {
  echo 'srun: error: Unable to create step for job 7: Requested nodes are busy' >&2
  exit 1
}
test -z "$LACKS" || hosts=$(echo $hosts | sed 's/ [^ ]*$//')
export SLURM_STEP_NUM_TASKS=$(echo $hosts | wc -w)
pids=
trap 'for pid in $pids; do kill -KILL -- -$pid; done' TERM
for host in $hosts; do
  export SLURMD_NODENAME=$host
  if [ "$host" = "$SILENT" ]; then
    setsid sh -c "echo FERRYRUN-CALLS $host; exec sleep 1000" &
  elif [ "$host" = "$SPOILT" ]; then
    FERRYRUN_CALL=$(echo "$FERRYRUN_CALL" | sed 's/^\(1 [0-9]* \)./\1x/') env --default-signal=INT,QUIT setsid "$@" <&0 &
  elif [ "$host" = "$CUT_OFF" ]; then
    FERRYRUN_CALL=$(echo "$FERRYRUN_CALL" | sed 's/^1 [0-9]*/1 1/') env --default-signal=INT,QUIT setsid "$@" <&0 &
  else
    env --default-signal=INT,QUIT setsid "$@" <&0 &
  fi
  pids="$pids $!"
done
code=0
for pid in $pids; do
  wait $pid || code=$?
done
exit $code
)";

class FerryrunStepTest : public StandInHostsTest {
 protected:
  FerryrunStepTest() : StandInHostsTest("srun", kSrun) {}

  Words Job(int hosts, const Words& flags_and_program, const std::string& radix = "64") const {
    return JobOver(hosts, "STEPS=" + files_ / "steps",
                   Joined({"--launcher", "srun", "--launch-radix", radix}, flags_and_program));
  }
  // The hosts of each srun.
  Words TakeSteps() const {
    const Words steps = SortedLines(tests::ReadFile(files_ / "steps"));
    fs::remove(files_ / "steps");
    return steps;
  }
  // The srun of a job: the process whose command line has its name first.
  std::vector<pid_t> Sruns(const Command& job) const {
    std::vector<pid_t> pids;
    for (const pid_t pid : job.Find(files_ / "srun")) {
      if (tests::ReadFile("/proc/" + std::to_string(pid) + "/cmdline").find("--nodelist") !=
          std::string::npos) {
        pids.push_back(pid);
      }
    }
    return pids;
  }
  // The process on a host whose command line has that flag.
  static pid_t ProcessOn(const Command& job, int host, const std::string& flag) {
    const std::string end(1, '\0');
    for (const pid_t pid : job.Find(flag)) {
      const std::string path = "/proc/" + std::to_string(pid);
      const std::string variables = end + tests::ReadFile(path + "/environ");
      const bool is_there =
          variables.find(end + "SLURMD_NODENAME=" + HostName(host) + end) != std::string::npos;
      if (is_there && tests::ReadFile(path + "/cmdline").ends_with(end + flag + end)) {
        return pid;
      }
    }
    ADD_FAILURE() << "no " << flag << " on host " << host;
    return 0;
  }
  static bool SignalOn(const Command& job, int host, const std::string& flag, int signal) {
    const pid_t pid = ProcessOn(job, host, flag);
    return pid > 1 && kill(pid, signal) == 0;
  }
};

TEST_F(FerryrunStepTest, OneSrunStartsTheAgentsOfAllHosts) {
  std::vector<Words> outputs;
  for (const char* radix : {"64", "0"}) {
    Command job(Job(4,
                    {"-l", "sh", "-c",
                     "echo $FERRY_RANK of $FERRY_SIZE on $FERRY_NODE at $SLURMD_NODENAME "
                     "$FERRYRUN_CALL; echo error >&2; exec cat"},
                    radix),
                {}, "input\n");
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(SortedLines(result.err), SizeIs(4));
    outputs.push_back(SortedLines(result.out));
    EXPECT_THAT(TakeSteps(), SizeIs(radix == std::string("0") ? 4 : 1));
  }
  EXPECT_THAT(
      outputs[0],
      ElementsAre("[0] 0 of 4 on 0 at 10.99.0.1", "[0] input", "[1] 1 of 4 on 1 at 10.99.0.2",
                  "[2] 2 of 4 on 2 at 10.99.0.3", "[3] 3 of 4 on 3 at 10.99.0.4"));
  EXPECT_EQ(outputs[0], outputs[1]);
}

// Much more than sockets and pipes hold, both ways.
TEST_F(FerryrunStepTest, MuchInputAndOutputComeWhole) {
  ExpectMuchComesWhole(Job(3, MuchOutput()));
}

// Much longer than a connection would be kept that is not taken from.
TEST_F(FerryrunStepTest, OutputThatNobodyReadsForLongIsNotLost) {
  Command job(Joined({"/bin/bash", "-c", "\"$@\" | (sleep 15; wc -c)", "bash"},
                     Job(2, {"--no-label", "sh", "-c", "head -c 9000000 /dev/zero"})));
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.out, "18000000\n") << result.err;
}

TEST_F(FerryrunStepTest, SignalsReachAllRanks) {
  Command job(Job(3, {"-l", "sh", "-c",
                      "trap 'echo got it; exit 0' USR1; echo ready $FERRY_RANK; "
                      "while :; do sleep 0.01; done"}));
  ASSERT_TRUE(AreReady(&job, 3));
  job.Signal(SIGUSR1);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(result.out, HasSubstr("[" + std::to_string(rank) + "] got it\n"));
  }
}

TEST_F(FerryrunStepTest, ARankThatFailsIsNamedWithItsHost) {
  const CommandResult result =
      RunCleanly(Job(4, {"sh", "-c", "test $FERRY_RANK != 2 || exit 3; exec sleep 1000"}));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, MatchesRegex("ferryrun: rank 2 \\(pid [0-9]+ on host " + HostName(3) +
                                       "\\) exited with code 3; ending the other 3 ranks\n"));
}

// ---- Hosts that do not come ---------------------------------------------------------------------

TEST_F(FerryrunStepTest, WithoutSrunTheJobSaysSo) {
  fs::remove(files_ / "srun");
  Words job = Job(3, {"/bin/true"});
  job[1] = "PATH=" + files_.path();
  const CommandResult result = RunCleanly(job);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("hosts " + HostName(1) + " to " + HostName(3) + ": "),
                                HasSubstr("cannot run 'srun'")));
}

TEST_F(FerryrunStepTest, ASrunThatRefusesIsQuoted) {
  const CommandResult result = RunCleanly(Job(3, {"true"}), {"REFUSES=1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "ferryrun: cannot reach host " + HostName(1) +
                            ": srun exited with code 1; srun wrote:\n  srun: error: Unable to "
                            "create step for job 7: Requested nodes are busy\n");
}

TEST_F(FerryrunStepTest, OneAgentFewerThanHostsIsNamed) {
  const CommandResult result = RunCleanly(Job(3, {"true"}), {"LACKS=1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot reach host " + HostName(3) +
                                    ": srun has started agents on 2 of 3 hosts only"));
}

TEST_F(FerryrunStepTest, AnAgentWithAnotherSecretIsNamed) {
  const CommandResult result = RunCleanly(Job(3, {"true"}), AsVariables("SPOILT", 2));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("cannot reach host " + HostName(2) +
                              ": its agent cannot call this ferryrun: 127.0.0.1:"),
                    HasSubstr("it refuses this process's secret"),
                    HasSubstr("1 caller with another secret, the last from 127.0.0.1")));
}

TEST_F(FerryrunStepTest, AnAgentThatReachesNobodyIsNamedWithTheWayOut) {
  const CommandResult result = RunCleanly(Job(3, {"true"}), AsVariables("CUT_OFF", 3));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr("cannot reach host " + HostName(3) +
                      ": its agent cannot call this ferryrun: 127.0.0.1:1: Connection refused"),
            HasSubstr("--network names another interface; with --launch-radix 0 there is one srun "
                      "for each host")));
}

TEST_F(FerryrunStepTest, AnAgentThatNeverCallsIsNamedWithinSeconds) {
  const auto began = std::chrono::steady_clock::now();
  const CommandResult result = RunCleanly(Job(3, {"true"}), AsVariables("SILENT", 2));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot reach host " + HostName(2) +
                                    ": its agent has not reached this ferryrun, at 127.0.0.1:"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

TEST_F(FerryrunStepTest, AnInterruptEndsTheWaitForAnAgent) {
  Command job(Job(3, {"true"}), AsVariables("SILENT", 2));
  ASSERT_TRUE(Eventually([&] { return job.Find("--agent").size() == 2; }));
  job.Signal(SIGINT);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  EXPECT_THAT(result.err, HasSubstr("interrupted by SIGINT before the job started"));
}

// ---- Ends ---------------------------------------------------------------------------------------

TEST_F(FerryrunStepTest, AKilledSrunTakesAllHostsWithIt) {
  Command job(Job(3, {"sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&job, 3));
  const std::vector<pid_t> sruns = Sruns(job);
  ASSERT_THAT(sruns, SizeIs(1));
  ASSERT_EQ(kill(sruns[0], SIGKILL), 0);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("hosts " + HostName(1) + ", " + HostName(2) + ", " + HostName(3) +
                        " are lost: srun was killed by SIGKILL; their 3 "
                        "ranks count as failed"));
}

TEST_F(FerryrunStepTest, AKilledSrunWhileDaemonsStartFailsTheJob) {
  Command job(Job(3, {"true"}), {"FAKE_FERRYD=hang"});
  ASSERT_TRUE(Eventually([&] { return job.Find("--ready-fd").size() == 3; }));
  const std::vector<pid_t> sruns = Sruns(job);
  ASSERT_THAT(sruns, SizeIs(1));
  ASSERT_EQ(kill(sruns[0], SIGKILL), 0);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("cannot reach host " + HostName(1) + ": srun was killed by SIGKILL"));
}

class FerryrunStepLossTest : public FerryrunStepTest,
                             public testing::WithParamInterface<const char*> {};

// An agent, and what carries its streams.
TEST_P(FerryrunStepLossTest, AKilledOneIsLostAlone) {
  Command job(Job(3, {"--keep-going", "sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&job, 3));
  ASSERT_TRUE(SignalOn(job, 2, GetParam(), SIGKILL));
  ASSERT_TRUE(job.WaitForError("host " + HostName(2) +
                               " is lost: the connection to its agent has ended; its 1 rank "
                               "counts as failed"));
  job.Signal(SIGTERM);
  const CommandResult result = job.WaitCleanly();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, Not(HasSubstr("host " + HostName(1) + " is lost")));
}

TEST_P(FerryrunStepLossTest, AStoppedOneIsGivenUp) {
  Command job(Job(2, {"--grace-ms", "100", "sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&job, 2));
  const pid_t stopped = ProcessOn(job, 2, GetParam());
  ASSERT_GT(stopped, 1);
  ASSERT_EQ(kill(stopped, SIGSTOP), 0);
  job.Signal(SIGTERM);
  const CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(result.err, HasSubstr("ferryrun: host " + HostName(2) +
                                    " does not say that its 1 rank has been killed, and is given "
                                    "up\n"));
  kill(stopped, SIGCONT);
  EXPECT_THAT(job.Leftovers(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Processes, FerryrunStepLossTest, testing::Values("--agent", "--call"));

class FerryrunStepEndTest : public FerryrunStepTest, public testing::WithParamInterface<int> {};

TEST_P(FerryrunStepEndTest, LeavesNothingOnAnyHost) {
  Command job(Job(3, {"sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&job, 3));
  job.Signal(GetParam());
  EXPECT_NE(job.WaitCleanly().exit_code, 0);
}

TEST_P(FerryrunStepEndTest, LeavesNothingWhileDaemonsStart) {
  Command job(Job(3, {"true"}), {"FAKE_FERRYD=hang"});
  ASSERT_TRUE(Eventually([&] { return job.Find("--ready-fd").size() == 3; }));
  job.Signal(GetParam());
  EXPECT_NE(job.WaitCleanly().exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Signals, FerryrunStepEndTest, testing::Values(SIGINT, SIGTERM, SIGKILL));

}  // namespace
}  // namespace ferry::e2e
