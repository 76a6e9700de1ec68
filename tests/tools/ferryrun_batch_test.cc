// Jobs whose agents the programs of batch systems start that Debian does not have: of LSF, PBS,
// Torque and Flux. A script stands in for each of them, and does what its manual and its source
// say: which words it takes, what it passes on, and how it fails. The hosts are this machine under
// many addresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
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
using testing::Not;
using testing::SizeIs;

// The part that all scripts share. `start HOST COMMAND...` starts a task in a session of its own,
// with what standard streams it has here; `finish` waits for all, and has the highest exit code.
// Each run is noted in RUNS. Nothing is started on the host of NEVER, whose task only seems to run;
// the program refuses the host of REFUSED. SLURMD_NODENAME stands for the name that a host would
// have.
constexpr char kCommon[] = R"(#!/bin/bash
tool=${0##*/}
pids=
start() {
  local host=$1
  shift
  if [ "$host" = "$NEVER" ]; then
    exec -a waiting sleep 1000 &
  else
    SLURMD_NODENAME=$host env --default-signal=INT,QUIT setsid "$@" <&0 &
  fi
  pids="$pids $!"
}
finish() {
  code=0
  for pid in $pids; do
    wait $pid
    last=$?
    test $last -le $code || code=$last
  done
  return $code
}
note() { echo "$tool $*" >> "$RUNS"; }
)";

// blaunch(1): the environment goes along; with -no-shell words do, too; SIGTERM reaches the tasks.
constexpr char kBlaunch[] = R"(
test -n "$LSB_JOBID" || { echo 'blaunch: LSB_JOBID is not set' >&2; exit 255; }
input=given
while :; do case $1 in
  -n) input=; shift ;;
  -z) hosts=$2; shift 2; break ;;
  -*) shift ;;
  *) hosts=$1; shift; break ;;
esac; done
test "$1" = -no-shell || exit 99
shift
note "$hosts"
test -n "$input" || exec < /dev/null
trap 'kill $pids' TERM
for host in $hosts; do
  if [ "$host" = "$REFUSED" ]; then
    echo "blaunch: error: host $host is not in the allocation" >&2
  else
    start $host "$@"
  fi
done
finish
)";

// Both programs of PBS do this: the task has the job's environment, without what was added here
// since, no input, and files of the job for output. Nothing tells it that this end was killed.
constexpr char kPbsTask[] = R"(
test -n "$PBS_ENVIRONMENT" || { echo "$tool: not executing under PBS" >&2; exit 255; }
task() {
  note "$host"
  unset FERRYRUN_CALL
  test -z "$OTHER_JOB" || export PBS_JOBCOOKIE=another
  start $host "$@" < /dev/null > "$OUTPUT" 2>&1
}
)";

constexpr char kPbsTmrsh[] = R"(
while :; do case $1 in
  -n) shift ;;
  -l) shift 2 ;;
  -*) echo "usage: $tool [-n][-l username] host [-n][-l username] command" >&2; exit 255 ;;
  *) break ;;
esac; done
host=$1
shift
if [ "$host" = "$REFUSED" ] || ! grep -qxF "$host" "$PBS_NODEFILE"; then
  echo "$tool: host \"$host\" is not a node in job <$PBS_JOBID>" >&2
  exit 255
fi
task "$@"
finish
)";

// Of Torque. It has 0 for the task's exit code, which it prints.
constexpr char kPbsdsh[] = R"(
words=$(getopt -n $tool -o c:n:h:osuv -- "$@") || exit 1
eval set -- "$words"
while :; do case $1 in
  -h) host=$2; shift 2 ;;
  --) shift; break ;;
  *) exit 99 ;;
esac; done
test "$host" != "$REFUSED" || { echo "$tool: no node named $host" >&2; exit 1; }
task "$@"
finish
echo "$tool: task 0x00000001 exit status $?"
)";

// flux-exec(1): the environment goes along, and the signals that this end gets. A host that lacks
// the command is an error, and the others run.
constexpr char kFlux[] = R"(
test -n "$FLUX_URI" || { echo 'flux: No such file or directory' >&2; exit 1; }
case "$1 $2" in
  'kvs get') echo '{"version": 1, "execution": {"nodelist": ["10.99.0.[1-3]"],
    "R_lite": [{"rank": "1-3", "children": {"core": "0"}}]}}'; exit ;;
  'getattr hostlist') echo '10.99.0.[0-3]'; exit ;;
  exec\ *) shift ;;
  *) exit 99 ;;
esac
directory=$PWD
while :; do case $1 in
  --rank=*) ranks=$(echo ${1#*=} | tr , ' '); shift ;;
  --noinput) exec < /dev/null; shift ;;
  --dir=*) directory=${1#*=}; shift ;;
  -*) exit 99 ;;
  *) break ;;
esac; done
note "$ranks"
cd "$directory" || exit 1
trap 'kill -TERM $pids' TERM
for rank in $ranks; do
  if [ "10.99.0.$rank" = "$REFUSED" ]; then
    echo "flux-exec: Error: rank $rank: $1: No such file or directory" >&2
  else
    start 10.99.0.$rank "$@"
  fi
done
finish
)";

struct System {
  const char* name;
  const char* tool;
  const char* script[2];
  Words variables;  // of a job, besides a list of its hosts
  bool starts_all;
};

// For messages of googletest.
void PrintTo(const System& system, std::ostream* out) { *out << system.tool; }

const System kSystems[] = {
    {"LSF", "blaunch", {"", kBlaunch}, {"LSB_JOBID=7"}, true},
    {"PBS",
     "pbs_tmrsh",
     {kPbsTask, kPbsTmrsh},
     {"PBS_JOBID=7.head", "PBS_ENVIRONMENT=PBS_BATCH", "PBS_JOBCOOKIE=9EEF5DF75FA705A2"},
     false},
    {"PBS",
     "pbsdsh",
     {kPbsTask, kPbsdsh},
     {"PBS_JOBID=7.head", "PBS_ENVIRONMENT=PBS_BATCH", "PBS_JOBCOOKIE=9EEF5DF75FA705A2"},
     false},
    {"Flux", "flux", {"", kFlux}, {"FLUX_URI=local:///run/flux", "FLUX_ENCLOSING_ID=7"}, true},
};

class FerryrunBatchTest : public StandInHostsTest, public testing::WithParamInterface<System> {
 protected:
  FerryrunBatchTest()
      : StandInHostsTest(GetParam().tool,
                         std::string(kCommon) + GetParam().script[0] + GetParam().script[1]) {
    std::ofstream(files_ / "hosts") << HostName(1) + "\n" + HostName(2) + "\n" + HostName(3) + "\n";
    std::ofstream(files_ / "output");
  }

  // ferryrun in a job of three hosts, with the job's variables and these.
  Words Job(const Words& variables, const Words& flags_and_program) const {
    const std::string system = GetParam().name;
    Words words = {"/usr/bin/env", "PATH=" + files_.path() + ":/usr/bin:/bin",
                   "RUNS=" + files_ / "runs", "OUTPUT=" + files_ / "output"};
    if (system != "Flux") {
      words.push_back((system == "LSF" ? "LSB_DJOB_HOSTFILE=" : "PBS_NODEFILE=") +
                      files_ / "hosts");
    }
    return Joined(Joined(words, variables),
                  Joined({kFerryrun, "--private", "--ferryd", fs::absolute(kFakeFerryd).string(),
                          "--network", "lo"},
                         flags_and_program));
  }
  Words Job(const Words& flags_and_program) const {
    return Job(GetParam().variables, flags_and_program);
  }
  void WriteSsh() const {
    std::ofstream(files_ / "ssh") << "#!/bin/sh\nexit 7\n";
    fs::permissions(files_ / "ssh", fs::perms::owner_all);
  }
  Words TakeRuns() const {
    const Words runs = SortedLines(tests::ReadFile(files_ / "runs"));
    fs::remove(files_ / "runs");
    return runs;
  }
  std::string HostList() const { return HostName(1) + ", " + HostName(2) + ", " + HostName(3); }
  // The tool's processes that ferryrun has started, and not those that these have.
  std::vector<pid_t> Tools(const Command& job) const {
    std::vector<pid_t> pids;
    for (const pid_t pid : job.Find(files_ / GetParam().tool)) {
      const std::string stat = tests::ReadFile("/proc/" + std::to_string(pid) + "/stat");
      std::istringstream words(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));
      char state = 0;
      pid_t parent = 0;
      if (words >> state >> parent && parent == job.pid()) {
        pids.push_back(pid);
      }
    }
    return pids;
  }
};

TEST_P(FerryrunBatchTest, AJobHasAllHostsOfItsAllocation) {
  Command job(Job({"-v", "-l", "sh", "-c",
                   "echo $FERRY_RANK of $FERRY_SIZE on $FERRY_NODE at $SLURMD_NODENAME "
                   "$FERRYRUN_CALL; exec cat"}),
              {}, "input\n");
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(SortedLines(result.out),
              ElementsAre("[0] 0 of 3 on 0 at 10.99.0.1", "[0] input",
                          "[1] 1 of 3 on 1 at 10.99.0.2", "[2] 2 of 3 on 2 at 10.99.0.3"));
  EXPECT_THAT(result.err, HasSubstr(std::string("3 hosts of ") + GetParam().name));
  EXPECT_THAT(TakeRuns(), SizeIs(GetParam().starts_all ? 1 : 3));
  EXPECT_EQ(tests::ReadFile(files_ / "output"), "") << "the user's file has no words of ours";
}

TEST_P(FerryrunBatchTest, ItReachesOneHost) {
  const CommandResult result =
      RunCleanly(Job({"-host", HostName(2), "-n", "1", "sh", "-c", "echo at $SLURMD_NODENAME"}));
  EXPECT_EQ(result.out, "at " + HostName(2) + "\n") << result.err;
  EXPECT_THAT(TakeRuns(),
              ElementsAre(GetParam().tool + std::string(" ") +
                          (GetParam().name == std::string("Flux") ? "2" : HostName(2))));
}

TEST_P(FerryrunBatchTest, MuchInputAndOutputComeWhole) { ExpectMuchComesWhole(Job(MuchOutput())); }

TEST_P(FerryrunBatchTest, ARankThatFailsIsNamedWithItsHost) {
  const CommandResult result =
      RunCleanly(Job({"sh", "-c", "test $FERRY_RANK != 2 || exit 3; exec sleep 1000"}));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("on host " + HostName(3) + ") exited with code 3"));
}

// ---- Hosts that do not come ---------------------------------------------------------------------

TEST_P(FerryrunBatchTest, WithoutTheProgramHostsAreReachedBySshAndThatIsSaid) {
  if (GetParam().name == std::string("Flux")) {
    GTEST_SKIP() << "without flux nobody says what the hosts are";
  }
  fs::remove(files_ / GetParam().tool);
  WriteSsh();
  const CommandResult result = RunCleanly(Job({"true"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(std::string("ferryrun: other hosts of ") + GetParam().name +
                              "'s allocation are reached by ssh: there is no "),
                    HasSubstr(": ssh exited with code 7")));
}

TEST_P(FerryrunBatchTest, OutsideOfTheJobHostsAreReachedBySshAndThatIsSaid) {
  if (GetParam().name == std::string("Flux")) {
    GTEST_SKIP() << "there is no allocation outside of an instance";
  }
  WriteSsh();
  const CommandResult result = RunCleanly(Job({}, {"true"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr(std::string(GetParam().tool) + " needs "),
                                HasSubstr(": ssh exited with code 7")));
}

TEST_P(FerryrunBatchTest, AHostThatItRefusesIsNamedWithItsWords) {
  const auto began = std::chrono::steady_clock::now();
  const CommandResult result = RunCleanly(Job({"true"}), AsVariables("REFUSED", 2));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("cannot reach host " + HostName(2) + ": "),
                                HasSubstr(GetParam().tool + std::string(" wrote:\n  "))));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

TEST_P(FerryrunBatchTest, AHostWhereNothingStartsIsNamedWithinSeconds) {
  const auto began = std::chrono::steady_clock::now();
  const CommandResult result = RunCleanly(Job({"true"}), AsVariables("NEVER", 3));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("cannot reach host " + HostName(3) + ": " + GetParam().tool +
                        " has not started its agent within 10 s after the last that came "
                        "(--launch-timeout SECONDS waits for longer)"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(25));
}

TEST_P(FerryrunBatchTest, TheUserSaysHowLongToWait) {
  const CommandResult result =
      RunCleanly(Job({"--launch-timeout", "2", "true"}), AsVariables("NEVER", 1));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr(GetParam().tool + std::string(" has not started its agent "
                                                                  "within 2 s")));
}

// ---- Ends ---------------------------------------------------------------------------------------

TEST_P(FerryrunBatchTest, AKilledProgramTakesItsHostsWithIt) {
  Command job(Job({"--keep-going", "sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&job, 3));
  const std::vector<pid_t> tools = Tools(job);
  ASSERT_THAT(tools, SizeIs(GetParam().starts_all ? 1 : 3));
  ASSERT_EQ(kill(tools[0], SIGKILL), 0);
  ASSERT_TRUE(job.WaitForError(std::string("lost: ") + GetParam().tool + " was killed by SIGKILL"));
  job.Signal(SIGTERM);
  const CommandResult result = job.WaitCleanly();
  EXPECT_NE(result.exit_code, 0);
  if (GetParam().starts_all) {
    EXPECT_THAT(result.err, HasSubstr("hosts " + HostList() + " are lost: "));
  } else {
    EXPECT_THAT(result.err, Not(HasSubstr(" are lost: ")));
  }
}

TEST_P(FerryrunBatchTest, NothingStaysOnAnyHost) {
  for (const int signal : {SIGINT, SIGKILL}) {
    Command job(Job({"sh", "-c", kWrapper}));
    ASSERT_TRUE(AreReady(&job, 3));
    job.Signal(signal);
    EXPECT_NE(job.WaitCleanly().exit_code, 0) << signal;
  }
}

INSTANTIATE_TEST_SUITE_P(Tools, FerryrunBatchTest, testing::ValuesIn(kSystems),
                         [](const testing::TestParamInfo<System>& info) {
                           return std::string(info.param.tool);
                         });

// ---- Of PBS alone -------------------------------------------------------------------------------

class FerryrunPbsTest : public StandInHostsTest {
 protected:
  FerryrunPbsTest() : StandInHostsTest("pbs_tmrsh", std::string(kCommon) + kPbsTask + kPbsTmrsh) {}
};

// The words that start an agent are there for all to read: they do not suffice to be one.
TEST_F(FerryrunPbsTest, AnAgentOutsideOfTheJobIsSentAway) {
  std::ofstream(files_ / "hosts") << HostName(1) << "\n" << HostName(2) << "\n";
  const CommandResult result =
      RunCleanly(Joined({"/usr/bin/env", "PATH=" + files_.path() + ":/usr/bin:/bin", "PBS_JOBID=7",
                         "PBS_ENVIRONMENT=PBS_BATCH", "PBS_JOBCOOKIE=9EEF5DF75FA705A2",
                         "PBS_NODEFILE=" + files_ / "hosts", "RUNS=" + files_ / "runs",
                         "OUTPUT=" + files_ / "output", "OTHER_JOB=1"},
                        {kFerryrun, "--private", "--ferryd", fs::absolute(kFakeFerryd).string(),
                         "--network", "lo", "true"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("cannot reach host " + HostName(1) +
                                          ": pbs_tmrsh exited with code 1"),
                                HasSubstr(" with another secret, the last from 127.0.0.1")));
  EXPECT_THAT(tests::ReadFile(files_ / "output"),
              HasSubstr("cannot call the one that has started it: 127.0.0.1:"));
}

}  // namespace
}  // namespace ferry::e2e
