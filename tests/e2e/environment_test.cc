// Jobs whose ranks are told where to meet, and nothing more: by torchrun, for which a script stands
// in that sets its variables, and ends the other ranks once one has failed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "common/net_address.h"
#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kEnds[] = "tests/e2e/ranks/ends";
constexpr char kSecret[] = "FERRY_JOB_SECRET=0123456789abcdef0123456789abcdef";

// As torchrun of PyTorch 2 (torch/distributed/elastic/agent/server/local_elastic_agent.py). The
// job's exit code is that of the first rank that fails.
constexpr char kTorchrun[] = R"(
import os, signal, subprocess, sys

size, local = int(sys.argv[1]), int(sys.argv[2])
ranks = {}
for rank in range(size):
    variables = dict(
        LOCAL_RANK=rank % local, RANK=rank, GROUP_RANK=rank // local, ROLE_RANK=rank,
        ROLE_NAME="default", LOCAL_WORLD_SIZE=local, WORLD_SIZE=size,
        GROUP_WORLD_SIZE=size // local, ROLE_WORLD_SIZE=size, TORCHELASTIC_RESTART_COUNT=0,
        TORCHELASTIC_MAX_RESTARTS=0, TORCHELASTIC_RUN_ID="none",
        TORCHELASTIC_USE_AGENT_STORE=True, TORCH_NCCL_ASYNC_ERROR_HANDLING=1, OMP_NUM_THREADS=1)
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    started = subprocess.Popen(sys.argv[3:], env=environment)
    ranks[started.pid] = started
result = 0
while ranks:
    pid, status = os.wait()
    del ranks[pid]
    code = os.waitstatus_to_exitcode(status)
    if code != 0 and result == 0:
        result = code if code > 0 else 128 - code
        for other in ranks:
            os.kill(other, signal.SIGTERM)
sys.exit(result)
)";

// On how many nodes torchrun believes to be.
Words Torchrun(int ranks, int nodes, const Words& program) {
  return Joined(
      {"/usr/bin/python3", "-c", kTorchrun, std::to_string(ranks), std::to_string(ranks / nodes)},
      program);
}
// A program that does something else in one rank first.
Words But(const std::string& rank, const std::string& what, const Words& program) {
  return Joined({"/bin/bash", "-c", "[ $RANK != " + rank + " ] || " + what + "; exec \"$@\"", "sh"},
                program);
}

// torchrun's store, which serves MASTER_PORT.
class Store {
 public:
  Store() : listener_(daemon::ListenTcp({"127.0.0.1", 0}, "store")) {
    EXPECT_TRUE(listener_.ok()) << listener_.status().message();
  }
  Words Place(const std::string& host = "127.0.0.1") const {
    return {"MASTER_ADDR=" + host,
            "MASTER_PORT=" + std::to_string(daemon::PortOf(listener_->get()))};
  }

 private:
  StatusOr<UniqueFd> listener_;
};

class TorchrunTest : public testing::Test {
 protected:
  const Store store_;
};

TEST_F(TorchrunTest, MpiRanksAreOneJob) {
  const Words lines = SortedLines(
      RunWell(Torchrun(4, 1, {"examples/mpi_hello/mpi_hello"}), store_.Place("localhost")));
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("rank 0 of 4"), HasSubstr("rank 3 says hello")),
                                 AllOf(HasSubstr("rank 1 of 4"), HasSubstr("rank 0 says hello")),
                                 AllOf(HasSubstr("rank 2 of 4"), HasSubstr("rank 1 says hello")),
                                 AllOf(HasSubstr("rank 3 of 4"), HasSubstr("rank 2 says hello"))));
}

TEST_F(TorchrunTest, RanksOfSeveralNodesMeetAtAPortWithASecret) {
  const Words program = InOwnNetwork(
      Joined({"sh", "-c",
              "ip address add 10.77.0.1/32 dev lo && MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 "
              "exec \"$@\"",
              "sh"},
             Torchrun(4, 2, {kEnds})));
  EXPECT_THAT(SortedLines(RunWell(program, {kSecret})),
              ElementsAre("rank 0 of 4", "rank 1 of 4", "rank 2 of 4", "rank 3 of 4"));
}

TEST_F(TorchrunTest, WithoutASecretSeveralNodesAreToldWhatToType) {
  const CommandResult result = RunCleanly(Torchrun(4, 2, {kEnds}), store_.Place("10.77.0.1"));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, AllOf(HasSubstr("4 ranks (WORLD_SIZE) meet at MASTER_ADDR=10.77.0.1"),
                                HasSubstr("openssl rand -hex 32 >job.secret"),
                                HasSubstr("FERRY_JOB_SECRET_FILE=$PWD/job.secret")));
}

TEST_F(TorchrunTest, AProgramThatARankStartsIsToldThatItIsNoRank) {
  for (const std::string rank : {"0", "1"}) {
    const CommandResult result = RunCleanly(Torchrun(2, 1, {kEnds, "start", rank}), store_.Place());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(SortedLines(result.out),
                ElementsAre("its code is 1", "rank 0 of 2", "rank 1 of 2"));
    EXPECT_THAT(result.err, AllOf(HasSubstr("a rank of a job, has started this process"),
                                  HasSubstr("RANK=" + rank + " from it")));
  }
}

TEST_F(TorchrunTest, OneRankAloneIsAJob) {
  EXPECT_EQ(RunWell(Torchrun(1, 1, {kEnds}), store_.Place("n1")), "rank 0 of 1\n");
}

TEST_F(TorchrunTest, ARankThatIsLateIsWaitedForAndNamed) {
  struct Case {
    const char* late;
    const char* words;
  };
  for (const Case& one : {Case{"2", "for all ranks of the job to call it; missing: rank 2\n"},
                          Case{"0", "rank 0, which the others call at @ferry-meeting-"}}) {
    const TempDirectory directory;
    const std::string fifo = directory / "fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    Command job(Torchrun(3, 1, But(one.late, "read line <" + fifo, {kEnds})),
                Joined(store_.Place(), {"FERRY_MPI_WARN_AFTER_MS=200"}));
    EXPECT_TRUE(job.WaitForError(one.words));
    close(open(fifo.c_str(), O_WRONLY | O_CLOEXEC));
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(SortedLines(result.out), ElementsAre("rank 0 of 3", "rank 1 of 3", "rank 2 of 3"));
  }
}

TEST_F(TorchrunTest, RanksThatDisagreeEndTheJob) {
  struct Case {
    const char* what;
    const char* words;
  };
  for (const Case& one : {
           Case{"export WORLD_SIZE=8", "says that there are 8 ranks (WORLD_SIZE), and rank 0"},
           Case{"export RANK=1", "two processes say that they are rank 1 (RANK)"},
           Case{"export RANK=3", "is none of the 3 ranks from 0 on"},
           Case{"export WORLD_SIZE=2147483648", "WORLD_SIZE=2147483648 is no number from 1"},
           Case{"export FERRY_JOB_SECRET=0123456789abcdef", "FERRY_JOB_SECRET"},
       }) {
    const CommandResult result =
        RunCleanly(Torchrun(3, 1, But("2", one.what, {kEnds})), store_.Place());
    EXPECT_NE(result.exit_code, 0) << one.what;
    EXPECT_THAT(result.err, HasSubstr(one.words));
  }
}

TEST_F(TorchrunTest, AnEndOfARankEndsTheJobAndLeavesNothing) {
  for (const char* how : {"abort", "exit", "kill"}) {
    for (const char* who : {"0", "1"}) {
      Command job(Torchrun(3, 1, {kEnds, how, who}), store_.Place());
      EXPECT_NE(job.WaitCleanly().exit_code, 0) << how << " " << who;
    }
  }
}

// Before it has said a word: the others are ended by their launcher.
TEST_F(TorchrunTest, ARankThatNeverComesEndsTheJobWithItsLauncher) {
  Command job(Torchrun(3, 1, But("1", "exit 5", {kEnds})), store_.Place());
  EXPECT_EQ(job.WaitCleanly().exit_code, 5);
}

TEST_F(TorchrunTest, AFerryrunUnderItStartsAJobOfItsOwn) {
  EXPECT_THAT(SortedLines(RunWell(Torchrun(1, 1,
                                           {"tools/ferryrun/ferryrun", "--private", "--ferryd",
                                            "daemon/ferryd", "-n", "2", "--no-label", kEnds}),
                                  store_.Place())),
              ElementsAre("rank 0 of 2", "rank 1 of 2"));
}

}  // namespace
}  // namespace ferry::e2e
