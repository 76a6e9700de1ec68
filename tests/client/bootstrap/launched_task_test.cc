// Which launcher started a process as one of several: environments as Slurm 22.05, Flux, Open MPI,
// PALS and torchrun make them.
#include "client/bootstrap/launched_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "client/bootstrap/pmi_job.h"

namespace ferry::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Variables = std::vector<const char*>;

std::optional<LaunchedTask> Find(Variables variables, bool has_terminal = false) {
  variables.push_back(nullptr);
  return FindLaunchedTask(variables.data(), has_terminal);
}

Status Check(Variables variables, bool has_terminal = false) {
  variables.push_back(nullptr);
  return CheckAlone(variables.data(), has_terminal);
}

Variables With(Variables variables, std::initializer_list<const char*> more) {
  variables.insert(variables.end(), more);
  return variables;
}

// The first task of `srun -N 2 -n 3` in a job of five.
const Variables kTaskOfSrun = {"SLURM_JOB_ID=1",         "SLURM_JOB_NODELIST=n[1-2]",
                               "SLURM_NTASKS=3",         "SLURM_TASKS_PER_NODE=2,1",
                               "SLURM_STEP_ID=0",        "SLURM_STEP_NODELIST=n[1-2]",
                               "SLURM_STEP_NUM_TASKS=3", "SLURM_STEP_TASKS_PER_NODE=2,1",
                               "SLURM_PROCID=0",         "SLURM_LOCALID=0",
                               "SLURM_GTIDS=0,1"};

TEST(LaunchedTaskTest, ATaskOfSrunIsOneOfSeveral) {
  const auto task = Find(kTaskOfSrun);
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->launcher, "srun");
  EXPECT_EQ(task->tasks, 3U);
  EXPECT_THAT(Check(kTaskOfSrun).message(),
              AllOf(HasSubstr("srun started 3 processes (SLURM_STEP_NUM_TASKS), and this one has "
                              "no way to meet the others"),
                    HasSubstr("srun --mpi=pmix or srun --mpi=pmi2"), HasSubstr("ferryrun -n 1")));
  EXPECT_EQ(Check(kTaskOfSrun).code(), ErrorCode::kConfiguration);
}

TEST(LaunchedTaskTest, EachLauncherIsNamedWithItsVariable) {
  struct Case {
    Variables variables;
    const char* words;
  };
  for (const Case& one : {
           Case{{"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=3"}, "srun started 4 processes"},
           Case{{"FLUX_JOB_SIZE=2", "FLUX_TASK_RANK=0"}, "flux run started 2 processes"},
           Case{{"OMPI_COMM_WORLD_SIZE=5", "OMPI_COMM_WORLD_RANK=0"},
                "mpirun of Open MPI started 5 processes (OMPI_COMM_WORLD_SIZE)"},
           Case{{"PMI_SIZE=6", "PMI_RANK=0"}, "a launcher with PMI started 6 processes (PMI_SIZE)"},
           Case{{"JSM_NAMESPACE_SIZE=7", "JSM_NAMESPACE_RANK=0"}, "jsrun started 7 processes"},
           Case{{"WORLD_SIZE=8", "RANK=0"}, "torchrun, or its like, started 8 processes"},
           Case{{"PALS_RANKID=0", "PALS_LOCAL_SIZE=2"},
                "mpiexec of PALS started 2 or more processes (PALS_LOCAL_SIZE)"},
           Case{{"PALS_RANKID=4", "PALS_LOCAL_SIZE=1"},
                "mpiexec of PALS started 5 or more processes (PALS_RANKID)"},
       }) {
    EXPECT_THAT(Check(one.variables).message(), HasSubstr(one.words));
  }
}

TEST(LaunchedTaskTest, OfTwoLaunchersTheOneWithSeveralTasksCounts) {
  EXPECT_THAT(
      Check({"SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0", "WORLD_SIZE=4", "RANK=1"}).message(),
      HasSubstr("torchrun, or its like, started 4 processes"));
}

TEST(LaunchedTaskTest, WhoeverIsAloneMayBe) {
  for (const Variables& alone : std::vector<Variables>{
           {},
           {"SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0"},
           {"PMI_SIZE=1", "PMI_RANK=0"},
           {"PALS_RANKID=0", "PALS_LOCAL_SIZE=1"},
           {"WORLD_SIZE=5"},  // without a rank it may be anybody's variable
           {"WORLD_SIZE=large", "RANK=0"},
           {"WORLD_SIZE=-2", "RANK=0"},
           {"WORLD_SIZE=", "RANK="},
           {"PALS_RANKID=4294967295"},
           {"PALS_RANKID=-1"},
       }) {
    EXPECT_TRUE(Check(alone).ok()) << Check(alone).message();
  }
}

TEST(LaunchedTaskTest, ABatchScriptIsNoTask) {
  const Variables script = {"SLURM_JOB_ID=1", "SLURM_NTASKS=5",  "SLURM_TASKS_PER_NODE=3,2",
                            "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_GTIDS=0"};
  EXPECT_FALSE(Find(script).has_value());
  // Submitted from a task of srun, it has the variables of that, too.
  EXPECT_FALSE(Find(With(script, {"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=2",
                                  "SLURM_STEP_TASKS_PER_NODE=2", "SLURM_STEP_NODELIST=n1"}))
                   .has_value());
  EXPECT_FALSE(Find({"SLURM_NTASKS=2", "SLURM_TASKS_PER_NODE=1(x2)", "SLURM_PROCID=0",
                     "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_TASKS_PER_NODE=2"})
                   .has_value());
}

// srun --preserve-env leaves the job's numbers: then all tasks but the first say so.
TEST(LaunchedTaskTest, AStepWithTheJobsNumbersIsOneOfSeveral) {
  EXPECT_FALSE(Check({"SLURM_NTASKS=8", "SLURM_TASKS_PER_NODE=8", "SLURM_PROCID=1",
                      "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_TASKS_PER_NODE=2"})
                   .ok());
}

TEST(LaunchedTaskTest, TheShellOfSallocIsNoTask) {
  EXPECT_FALSE(Find({"SLURM_NTASKS=5", "SLURM_TASKS_PER_NODE=3,2", "SLURM_PROCID=0",
                     "SLURM_STEP_ID=4294967290", "SLURM_STEP_NUM_TASKS=1",
                     "SLURM_STEP_TASKS_PER_NODE=1", "SLURM_PTY_PORT=40925"},
                    /*has_terminal=*/true)
                   .has_value());
}

TEST(LaunchedTaskTest, TheShellOfSrunIsNoTaskButWhatItStartsWithSrunIs) {
  const Variables shell = With(kTaskOfSrun, {"SLURM_PTY_PORT=37507"});
  EXPECT_TRUE(Check(shell, /*has_terminal=*/true).ok());
  EXPECT_FALSE(Check(shell, /*has_terminal=*/false).ok());  // srun ./program, typed there
}

// The brokers of a Flux instance may be tasks of another launcher, whose variables go on.
TEST(LaunchedTaskTest, TheFirstProgramOfAFluxInstanceIsNoTask) {
  const Variables first =
      With(kTaskOfSrun, {"FLUX_URI=local:///tmp/flux/local-0", "FLUX_ENCLOSING_ID=f2",
                         "PALS_RANKID=0", "PALS_LOCAL_SIZE=3"});
  EXPECT_FALSE(Find(first).has_value());
  EXPECT_THAT(Check(With(first, {"FLUX_JOB_SIZE=2", "FLUX_TASK_RANK=1"})).message(),
              HasSubstr("started"));
  EXPECT_THAT(Check(With(first, {"WORLD_SIZE=2", "RANK=1"})).message(), HasSubstr("torchrun"));
}

}  // namespace
}  // namespace ferry::client
