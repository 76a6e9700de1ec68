// Ferry's Slurm scripts, first alone, then under a real Slurm (slurm_cluster.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "tests/e2e/command.h"
#include "tests/e2e/slurm_cluster.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

#define SKIP_UNLESS_ROOT() \
  if (geteuid() != 0) GTEST_SKIP() << "the scripts are root's, and this is uid " << geteuid()

// ---- The scripts alone ----

class SlurmScriptTest : public testing::Test {
 protected:
  void SetUp() override { SKIP_UNLESS_ROOT(); }
  CommandResult Run(const std::string& script, const std::string& user = kNobody) const {
    return RunCommand({ferry_.Path(script)}, {"SLURM_JOB_ID=7", "SLURM_JOB_UID=" + user});
  }

  Installation ferry_;
};

TEST_F(SlurmScriptTest, PrologStartsADaemonOfTheUserAndEpilogEndsIt) {
  ASSERT_EQ(Run("prolog").exit_code, 0);
  ASSERT_THAT(ferry_.Daemons("7"), SizeIs(1));
  EXPECT_THAT(ReadFile("/proc/" + ferry_.Daemons("7")[0] + "/status"),
              HasSubstr("\nUid:\t65534\t65534\t65534\t65534\n"));
  EXPECT_EQ(fs::status(ferry_.Directory("7")).permissions(), fs::perms(0700));
  EXPECT_EQ(Run("task-prolog").out, "export FERRY_RUN_DIRECTORY=" + ferry_.Directory("7") + "\n");
  EXPECT_EQ(Run("epilog").exit_code, 0);
  EXPECT_THAT(ferry_.Leftovers(), IsEmpty());
}

TEST_F(SlurmScriptTest, PrologReplacesWhatAnEarlierStartLeft) {
  ASSERT_EQ(Run("prolog").exit_code, 0);
  const Words before = ferry_.Daemons("7");
  ASSERT_EQ(Run("prolog").exit_code, 0);
  EXPECT_THAT(ferry_.Daemons("7"), SizeIs(1));
  EXPECT_NE(ferry_.Daemons("7"), before);
  EXPECT_EQ(Run("epilog").exit_code, 0);
  EXPECT_THAT(ferry_.Leftovers(), IsEmpty());
}

TEST_F(SlurmScriptTest, EpilogKillsADaemonThatDoesNotStop) {
  ferry_.Configure("stop_timeout_s=1\n");
  ASSERT_EQ(Run("prolog").exit_code, 0);
  ASSERT_THAT(ferry_.Daemons("7"), SizeIs(1));
  kill(std::stoi(ferry_.Daemons("7")[0]), SIGSTOP);
  EXPECT_EQ(Run("epilog").exit_code, 0);
  EXPECT_THAT(ferry_.Leftovers(), IsEmpty());
}

TEST_F(SlurmScriptTest, EpilogLeavesOtherJobsAlone) {
  ASSERT_EQ(Run("prolog").exit_code, 0);
  EXPECT_EQ(RunCommand({ferry_.Path("epilog")}, {"SLURM_JOB_ID=70", "SLURM_JOB_UID=65534"}).err,
            "");
  EXPECT_THAT(ferry_.Daemons("7"), SizeIs(1));
  EXPECT_EQ(Run("epilog").exit_code, 0);
  EXPECT_THAT(ferry_.Leftovers(), IsEmpty());
}

TEST_F(SlurmScriptTest, PrologSaysWhyThereIsNoDaemon) {
  ferry_.Configure("", "provider = \"nosuch\"\n");
  const CommandResult result = Run("prolog");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("ferry: job 7 has no ferryd on "),
                    HasSubstr("it ended before it served; its last words: "), HasSubstr("nosuch")));
  EXPECT_EQ(Run("task-prolog").out, "");
  EXPECT_THAT(ferry_.Leftovers(), IsEmpty());
}

TEST_F(SlurmScriptTest, PrologDoesNotWaitForever) {
  WriteFile(ferry_.Path("sleeper"), "#!/bin/sh\nsleep 100\n", /*executable=*/true);
  ferry_.Configure("start_timeout_s=1\nstop_timeout_s=1\nferryd=" + ferry_.Path("sleeper") + "\n");
  const CommandResult result = Run("prolog");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("it did not serve within 1 s"));
  EXPECT_THAT(ferry_.Leftovers(), IsEmpty());
}

// Commands of Slurm that stand in for its own, and note how they were called.
class Accounting {
 public:
  explicit Accounting(const std::string& folder) : folder_(folder) {
    fs::create_directory(folder);
    Set("sacct", "");
    Set("sacctmgr", "");
  }
  void Set(const std::string& command, const std::string& does) const {
    WriteFile(folder_ + "/" + command,
              "#!/bin/sh\nprintf '%s|' \"$@\" >>" + folder_ + "/called." + command + "\n" + does,
              true);
  }
  // The words of the calls so far, each with a bar behind it.
  std::string Called(const std::string& command) const {
    return ReadFile(folder_ + "/called." + command);
  }

 private:
  const std::string folder_;
};

class SlurmRecordTest : public SlurmScriptTest {
 protected:
  void SetUp() override {
    SKIP_UNLESS_ROOT();
    ferry_.Configure("admin_comment=yes\nPATH=" + ferry_.Path("accounting") + ":$PATH\n");
    accounting_ = std::make_unique<Accounting>(ferry_.Path("accounting"));
    ASSERT_EQ(Run("prolog").exit_code, 0);
  }
  // Runs a job of Ferry over the daemon of job 7, as its user.
  void RunHello(const std::string& ranks) const {
    const CommandResult result = RunCommand(
        {"/usr/bin/setpriv", "--reuid", kNobody, "--regid", kNobody, "--clear-groups",
         ferry_.Path("ferryrun"), "-n", ranks, ferry_.Path("hello")},
        {"FERRY_RUN_DIRECTORY=" + ferry_.Directory("7"), "LD_LIBRARY_PATH=" + ferry_.Path("")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  std::unique_ptr<Accounting> accounting_;
};

TEST_F(SlurmRecordTest, EpilogTellsTheDatabaseWhatTheJobsDid) {
  RunHello("2");
  RunHello("3");
  const CommandResult result = Run("epilog");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(accounting_->Called("sacctmgr"),
              AllOf(HasSubstr("modify|job|where|jobid=7|set|AdminComment=ferry on "),
                    ContainsRegex("ranks=2 nodes=1 seconds=[0-9.]+ exit_code=0 died_ranks=0"),
                    ContainsRegex("; ranks=3 nodes=1 .* bytes_sent=[0-9]+")));
  EXPECT_THAT(ferry_.Leftovers(), IsEmpty());
}

TEST_F(SlurmRecordTest, AJobWithoutFerrysJobsAndOneWithACommentGetNone) {
  EXPECT_EQ(Run("epilog").exit_code, 0);
  EXPECT_EQ(accounting_->Called("sacctmgr"), "");
  ASSERT_EQ(Run("prolog").exit_code, 0);
  RunHello("2");
  accounting_->Set("sacct", "echo looked at by Ann\n");
  EXPECT_EQ(Run("epilog").exit_code, 0);
  EXPECT_NE(accounting_->Called("sacct"), "");
  EXPECT_EQ(accounting_->Called("sacctmgr"), "");
  EXPECT_THAT(ferry_.Leftovers(), IsEmpty());
}

TEST_F(SlurmRecordTest, WithoutADatabaseTheEpilogGoesOn) {
  RunHello("2");
  accounting_->Set("sacct", "exit 1\n");
  accounting_->Set("sacctmgr", "echo 'Connection refused' >&2; exit 1\n");
  const CommandResult result = Run("epilog");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "ferry: job 7 gets no AdminComment: Connection refused\n");
  EXPECT_THAT(ferry_.Leftovers(), IsEmpty());
}

// Its folder is the user's, who may write anything there.
TEST_F(SlurmRecordTest, ARecordThatTheUserHasWrittenIsNumbersOnly) {
  const std::string folder = ferry_.Directory("7") + "/records/65534";
  fs::create_directories(folder);
  WriteFile(folder + "/a.json",
            "{\"ranks\":5,\"nodes\":$(touch /tmp/x),\"seconds\":1e-05,\"exit_code\":\"'; drop\","
            "\"reason\":\",\\\"bytes_sent\\\":7,\"}\n");
  EXPECT_EQ(Run("epilog").exit_code, 0);
  EXPECT_THAT(accounting_->Called("sacctmgr"), HasSubstr(": ranks=5 seconds=1e-05|"));
}

TEST_F(SlurmScriptTest, NamesWhatIsMissing) {
  EXPECT_THAT(RunCommand({ferry_.Path("prolog")}).err,
              HasSubstr("SLURM_JOB_ID is \"\", not a number: is this called by Slurm?"));
  EXPECT_THAT(RunCommand({ferry_.Path("epilog")}, {"SLURM_JOB_ID=7", "SLURM_JOB_UID=me"}).err,
              HasSubstr("SLURM_JOB_UID is \"me\", not a number"));
  fs::remove(ferry_.Path("ferryd"));
  EXPECT_THAT(Run("prolog").err, HasSubstr("ferryd is not there or cannot be executed"));
}

// ---- A cluster of one node ----

using SlurmTest = ClusterTest<Kind::kScripts>;
using DatabaseOfSlurmTest = ClusterTest<Kind::kDatabase>;
using NodesOfSlurmTest = ClusterTest<Kind::kNodes>;

TEST_F(SlurmTest, AJobRunsOverItsOwnDaemonAndLeavesNothing) {
  const std::string job = cluster_->Submit(
      "echo \"daemon: $FERRY_RUN_DIRECTORY\"\n" + ferry_->Path("ferryctl") + " status\n" +
      ferry_->Path("ferryrun") + " -n 2 " + ferry_->Path("hello") + "\n");
  ASSERT_TRUE(cluster_->WaitForState(job, "COMPLETED")) << cluster_->Output(job);
  EXPECT_THAT(cluster_->Output(job),
              AllOf(HasSubstr("daemon: " + ferry_->Directory(job) + "\n"),
                    HasSubstr("run directory " + ferry_->Directory(job) + ","),
                    HasSubstr("rank 0 of 2: rank 1 says hello"),
                    HasSubstr("rank 1 of 2: rank 0 says hello")));
  EXPECT_THAT(ferry_->Leftovers(), IsEmpty());
}

// By PMIx, and by PMI-1, which Slurm's plugin pmi2 speaks, too.
TEST_F(SlurmTest, RanksOfSrunFindEachOther) {
  const CommandResult known = cluster_->Ask({"srun", "--mpi=list"});
  for (const std::string plugin : {"pmix", "pmi2"}) {
    if ((known.out + known.err).find(plugin) == std::string::npos) {
      GTEST_SKIP() << "this Slurm has no plugin " << plugin
                   << ": apt-get install slurm-wlm-basic-plugins";
    }
    const std::string srun = "srun --mpi=" + plugin + " --overcommit -n ";
    const std::string job =
        cluster_->Submit(srun + "3 " + ferry_->Path("hello") + "\necho \"srun: $?\"\n" + srun +
                         "4 " + ferry_->Path("mpi_hello") + "\necho \"MPI: $?\"\n");
    ASSERT_TRUE(cluster_->WaitForState(job, "COMPLETED")) << cluster_->Output(job);
    EXPECT_THAT(cluster_->Output(job),
                AllOf(HasSubstr("rank 0 of 3: rank 2 says hello"),
                      HasSubstr("rank 1 of 3: rank 0 says hello"),
                      HasSubstr("rank 2 of 3: rank 1 says hello"), HasSubstr("srun: 0"),
                      ContainsRegex("rank 0 of 4 on .*: rank 3 says hello"),
                      ContainsRegex("rank 3 of 4 on .*: rank 2 says hello"), HasSubstr("MPI: 0")));
    EXPECT_THAT(ferry_->Leftovers(), IsEmpty());
  }
}

// By the calls of PMI-2, in Slurm's library. Without PMI_SIZE the ranks do not take PMI-1's wire;
// they know their numbers by the variable of PALS, whose library has the same calls.
TEST_F(SlurmTest, RanksFindEachOtherByALibraryOfPmi2) {
  const CommandResult known = cluster_->Ask({"srun", "--mpi=list"});
  if ((known.out + known.err).find("pmi2") == std::string::npos ||
      !fs::exists("/usr/lib/x86_64-linux-gnu/libpmi2.so.0")) {
    GTEST_SKIP() << "there is no plugin pmi2, or no libpmi2.so.0: apt-get install "
                    "slurm-wlm-basic-plugins libpmi2-0";
  }
  const std::string as_pals =
      "srun --mpi=pmi2 --overcommit -n 3 sh -c 'export PALS_RANKID=$PMI_RANK; unset PMI_SIZE; " +
      ferry_->Path("hello") + "'\necho \"srun: $?\"\n";
  const std::string job = cluster_->Submit(as_pals);
  ASSERT_TRUE(cluster_->WaitForState(job, "COMPLETED")) << cluster_->Output(job);
  EXPECT_THAT(cluster_->Output(job),
              AllOf(HasSubstr("rank 0 of 3: rank 2 says hello"),
                    HasSubstr("rank 1 of 3: rank 0 says hello"),
                    HasSubstr("rank 2 of 3: rank 1 says hello"), HasSubstr("srun: 0")));
  EXPECT_THAT(ferry_->Leftovers(), IsEmpty());
}

TEST_F(SlurmTest, TasksThatCannotMeetSayWhatToType) {
  const std::string job = cluster_->Submit("srun --mpi=none --overcommit -n 3 " +
                                           ferry_->Path("hello") + "\necho \"srun: $?\"\n");
  ASSERT_TRUE(cluster_->WaitForState(job, "COMPLETED")) << cluster_->Output(job);
  EXPECT_THAT(
      cluster_->Output(job),
      AllOf(HasSubstr("srun started 3 processes (SLURM_STEP_NUM_TASKS), and this one has "
                      "no way to meet the others"),
            HasSubstr("srun --mpi=pmix or srun --mpi=pmi2"), testing::Not(HasSubstr("srun: 0"))));
}

TEST_F(SlurmTest, ACancelledJobLeavesNothing) {
  const std::string job = cluster_->Submit(ferry_->Path("ferryrun") +
                                           " -l -n 2 sh -c 'echo running; exec sleep 100'\n");
  ASSERT_TRUE(
      Eventually([&] { return cluster_->Output(job).find("[1] running") != std::string::npos; }));
  EXPECT_THAT(ferry_->Daemons(job), SizeIs(1));
  EXPECT_EQ(cluster_->Ask({"scancel", job}).exit_code, 0);
  ASSERT_TRUE(cluster_->WaitForState(job, "CANCELLED"));
  EXPECT_THAT(ferry_->Leftovers(), IsEmpty());
}

TEST_F(SlurmTest, WithoutADaemonTheJobFailsAndSaysWhy) {
  ferry_->Configure("on_failure=fail\n", "provider = \"nosuch\"\n");
  const std::string job = cluster_->Submit("echo never\n");
  ASSERT_TRUE(cluster_->WaitForState(job, "FAILED"));
  EXPECT_THAT(cluster_->Output(job),
              AllOf(HasSubstr("ferry: no ferryd on " + cluster_->host()), HasSubstr("nosuch")));
  EXPECT_THAT(cluster_->Output(job), testing::Not(HasSubstr("never")));
  EXPECT_THAT(ferry_->Leftovers(), IsEmpty());
}

TEST_F(SlurmTest, WithoutADaemonTheNodeIsDrained) {
  ferry_->Configure("", "provider = \"nosuch\"\n");
  const std::string job = cluster_->Submit("echo never\n");
  ASSERT_TRUE(Eventually([] {
    return cluster_->Ask({"sinfo", "-h", "-R", "-o", "%E"}).out == "Prolog error\n";
  }));
  EXPECT_THAT(ReadFile(ferry_->Path("slurmd.log")),
              HasSubstr("ferry: job " + job + " has no ferryd on " + cluster_->host()));
  EXPECT_EQ(cluster_->Ask({"scancel", job}).exit_code, 0);
  ASSERT_TRUE(cluster_->WaitForState(job, "CANCELLED"));
  EXPECT_EQ(cluster_->Output(job), "");
  EXPECT_THAT(ferry_->Leftovers(), IsEmpty());
  cluster_->Ask({"scontrol", "update", "nodename=" + cluster_->host(), "state=resume"});
}

// ---- Slurm's database ----

TEST_F(DatabaseOfSlurmTest, AJobsRecordIsItsAdminComment) {
  ferry_->Configure("admin_comment=yes\n");
  const std::string job =
      cluster_->Submit(ferry_->Path("ferryrun") + " -n 2 " + ferry_->Path("hello") + "\n");
  ASSERT_TRUE(cluster_->WaitForState(job, "COMPLETED")) << cluster_->Output(job);
  const auto comment = [&] {
    return cluster_->Ask({"sacct", "-n", "-X", "-P", "-j", job, "-o", "State,AdminComment"}).out;
  };
  EXPECT_TRUE(Eventually([&] { return comment().starts_with("COMPLETED|"); })) << comment();
  EXPECT_THAT(comment(), AllOf(HasSubstr("COMPLETED|ferry on " + cluster_->host() + ": ranks=2"),
                               HasSubstr(" exit_code=0 "), HasSubstr(" bytes_sent=")))
      << ReadFile(ferry_->Path("slurmd.log"));
  EXPECT_THAT(ferry_->Leftovers(), IsEmpty());
}

// ---- Jobs of several nodes ----

// By srun, which is there. The nodes are one machine, whose loopback is their network.
TEST_F(NodesOfSlurmTest, FerryrunTakesHostsAndRanksFromTheJob) {
  const std::string ferryrun = ferry_->Path("ferryrun") + " --network lo ";
  const std::string job = cluster_->Submit(
      ferryrun + "-v " + ferry_->Path("hello") + "\n" + ferryrun + ferry_->Path("mpi_hello") +
          "\n" + ferryrun + "-l sh -c 'echo on node $FERRY_NODE of $SLURM_JOB_NODELIST'\n" +
          ferryrun + "-l -host n2 sh -c 'echo is alone on $FERRY_NODE of $FERRY_SIZE'\n" +
          ferryrun + "-host n3 true\necho \"beyond: $?\"\n" + ferryrun +
          "--allocation none -l sh -c 'echo stays on $FERRY_NODE of $FERRY_SIZE'\n",
      {"-N", "2", "-n", "3"});
  ASSERT_TRUE(cluster_->WaitForState(job, "COMPLETED")) << cluster_->Output(job);
  EXPECT_THAT(
      cluster_->Output(job),
      AllOf(HasSubstr("ferryrun: 2 hosts of Slurm's allocation (SLURM_JOB_NODELIST): n1:2, n2:1"),
            HasSubstr("ferryrun: rank 1 on node 0, host n1\n"),
            HasSubstr("ferryrun: rank 2 on node 1, host n2\n"),
            HasSubstr("rank 0 of 3: rank 2 says hello"),
            HasSubstr("rank 2 of 3: rank 1 says hello"),
            ContainsRegex("rank 0 of 3 on .*: rank 2 says hello"),
            ContainsRegex("rank 2 of 3 on .*: rank 1 says hello"),
            HasSubstr("[1] on node 0 of n[1-2]\n"), HasSubstr("[2] on node 1 of n[1-2]\n"),
            HasSubstr("[0] is alone on 0 of 1\n"), HasSubstr("ferryrun: -host n3: 2 hosts of "),
            HasSubstr("beyond: 2\n"), HasSubstr("[0] stays on 0 of 1\n")));
}

// Ranks, and ferryruns that are tasks, are several: each has its own host only.
TEST_F(NodesOfSlurmTest, AFerryrunThatIsATaskStaysOnItsHost) {
  const std::string job = cluster_->Submit(
      "srun -N 2 -n 2 " + ferry_->Path("ferryrun") +
          " -v --no-label -n 2 sh -c 'echo $FERRY_RANK of $FERRY_SIZE on $FERRY_NODE'\n",
      {"-N", "2", "-n", "2"});
  ASSERT_TRUE(cluster_->WaitForState(job, "COMPLETED")) << cluster_->Output(job);
  EXPECT_THAT(cluster_->Output(job),
              AllOf(testing::Not(HasSubstr("allocation")), testing::Not(HasSubstr("on node 1")),
                    HasSubstr("0 of 2 on 0\n"), HasSubstr("1 of 2 on 0\n")));
}

// One step for all of them, or one for each, whose agents do not call.
TEST_F(NodesOfSlurmTest, OneStepStartsTheAgentsOfAllNodes) {
  const std::string ferryrun = ferry_->Path("ferryrun") + " --network lo ";
  const std::string job =
      cluster_->Submit(ferryrun + ferry_->Path("hello") + "\n" + ferryrun +
                           "-l sh -c 'echo on $SLURMD_NODENAME in step $SLURM_STEP_ID'\n" +
                           ferryrun + "--launch-radix 0 -l sh -c 'echo then in $SLURM_STEP_ID'\n",
                       {"-N", "4", "-n", "4"});
  ASSERT_TRUE(cluster_->WaitForState(job, "COMPLETED")) << cluster_->Output(job);
  const std::string output = cluster_->Output(job);
  EXPECT_THAT(output,
              AllOf(HasSubstr("rank 0 of 4: rank 3 says hello"),
                    HasSubstr("rank 2 of 4: rank 1 says hello"), HasSubstr("[1] on n2 in step 1\n"),
                    HasSubstr("[2] on n3 in step 1\n"), HasSubstr("[3] on n4 in step 1\n")));
  for (const char* step : {"2", "3", "4"}) {
    EXPECT_THAT(output, HasSubstr("] then in " + std::string(step) + "\n"));
  }
  EXPECT_THAT(output, testing::Not(HasSubstr("error")));
}

// Lines of a job's script: they say how many processes are left at last that sleep for so long.
std::string CountSleepers(const std::string& seconds) {
  return "for i in $(seq 300); do pgrep -f '^sleep " + seconds +
         "' > /dev/null || break; sleep 0.1; done\n"
         "echo \"sleepers: $(pgrep -fc '^sleep " +
         seconds + "')\"\n";
}

TEST_F(NodesOfSlurmTest, AKilledSrunLeavesNoRanks) {
  const std::string job =
      cluster_->Submit(ferry_->Path("ferryrun") +
                           " --network lo -l sh -c 'echo ready; exec sleep 1234' > killed 2>&1 &\n"
                           "until test $(grep -c ready killed) = 4; do sleep 0.1; done\n"
                           "pkill -KILL -x -P $! srun\n"
                           "wait $!; echo \"ferryrun: $?\"\ncat killed\n" +
                           CountSleepers("1234"),
                       {"-N", "4", "-n", "4"});
  ASSERT_TRUE(cluster_->WaitForState(job, "COMPLETED")) << cluster_->Output(job);
  // Slurm kills the ranks, too: an agent may still tell of its own before it is lost.
  EXPECT_THAT(cluster_->Output(job),
              AllOf(HasSubstr(" lost: srun was killed by SIGKILL; "), HasSubstr(" failed"),
                    testing::ContainsRegex("ferryrun: (1|137)\n"), HasSubstr("sleepers: 0\n")));
}

// Its task sleeps in place of the agent. Slurm kills it once srun is told to end.
TEST_F(NodesOfSlurmTest, AnAgentThatNeverCallsIsNamedAndKilled) {
  const std::string job = cluster_->Submit(
      "mkdir bin\n"
      "cat > bin/srun <<'END'\n#!/bin/bash\n"
      "exec " +
          Find("srun") +
          " \"${@:1:$#-2}\" $PWD/bin/task \"${@: -2}\"\nEND\n"
          "cat > bin/task <<'END'\n#!/bin/bash\n"
          "test $SLURMD_NODENAME = n3 || exec \"$@\"\n"
          "echo FERRYRUN-CALLS n3; exec sleep 1235\nEND\n"
          "chmod +x bin/srun bin/task\nSECONDS=0\n"
          "PATH=$PWD/bin:$PATH " +
          ferry_->Path("ferryrun") +
          " --network lo true\n"
          "echo \"ferryrun: $?, in time: $((SECONDS < 20))\"\n" +
          CountSleepers("1235"),
      {"-N", "4", "-n", "4"});
  ASSERT_TRUE(cluster_->WaitForState(job, "COMPLETED")) << cluster_->Output(job);
  EXPECT_THAT(cluster_->Output(job),
              AllOf(HasSubstr("cannot reach host n3: its agent has not reached this ferryrun, at "),
                    HasSubstr("ferryrun: 1, in time: 1\n"), HasSubstr("sleepers: 0\n")));
}

TEST_F(NodesOfSlurmTest, WhatSrunRefusesIsQuoted) {
  const std::string job =
      cluster_->Submit(ferry_->Path("ferryrun") +
                           " --network lo --launcher srun -hosts n2,n3,nosuch -n 3 true\n"
                           "echo \"ferryrun: $?\"\n",
                       {"-N", "4", "-n", "4"});
  ASSERT_TRUE(cluster_->WaitForState(job, "COMPLETED")) << cluster_->Output(job);
  EXPECT_THAT(
      cluster_->Output(job),
      AllOf(HasSubstr("cannot reach host n2: srun exited with code 1; srun wrote:\n  "),
            HasSubstr("srun: error: Unable to create step for job "), HasSubstr("ferryrun: 1\n")));
}

}  // namespace
}  // namespace ferry::e2e
