#include "client/bootstrap/launched_task.h"

#include <fcntl.h>

#include <algorithm>
#include <string_view>

#include "common/number_text.h"
#include "common/unique_fd.h"
#include "config/environment.h"

namespace ferry::client {
namespace {

// Steps of Slurm with such ids are no user's srun (SLURM_MAX_NORMAL_STEP_ID in slurm.h): they hold
// a batch script, the shell of salloc (LaunchParameters=use_interactive_step), or processes that
// came from outside.
constexpr uint64_t kFirstOwnStepOfSlurm = 0xfffffff0;

struct Launcher {
  const char* size;  // a variable of each task
  const char* rank;  // another one, without which the size may be that of an allocation
  const char* name;
  const char* advice;
  bool starts_flux;  // as tasks it may have the brokers of a Flux instance
};
// PALS, and Slurm's plugin cray_shasta, offer nothing but such a library.
constexpr char kLibraryAdvice[] =
    "LD_LIBRARY_PATH naming the folder of the launcher's libpmi2.so, or with ferryrun";
constexpr Launcher kSlurm = {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun",
                             "srun --mpi=pmix or srun --mpi=pmi2", true};
constexpr Launcher kLaunchers[] = {
    kSlurm,
    {"FLUX_JOB_SIZE", "FLUX_TASK_RANK", "flux run", "flux run with its PMI", false},
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun of Open MPI", "ferryrun", true},
    {"PMI_SIZE", "PMI_RANK", "a launcher with PMI", kLibraryAdvice, false},
    {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "jsrun", "ferryrun", true},
    {"WORLD_SIZE", "RANK", "torchrun, or its like,",
     "MASTER_ADDR and MASTER_PORT set, as torchrun does, or with ferryrun", false},
};

std::optional<uint64_t> Number(const char* const* environment, std::string_view name) {
  const auto text = config::FindVariable(environment, name);
  return text ? NumberIn<uint64_t>(*text) : std::nullopt;
}

bool Has(const char* const* environment, std::string_view name) {
  return config::FindVariable(environment, name).has_value();
}

// sbatch hands the variables of a step on to its script, with those of the new job among them: the
// script counts as the first task of a job whose tasks are not those of the step.
bool IsBatchScript(const char* const* environment) {
  const auto differ = [environment](const char* of_job, const char* of_step) {
    const auto job = config::FindVariable(environment, of_job);
    const auto step = config::FindVariable(environment, of_step);
    return job && step && *job != *step;
  };
  return Number(environment, kSlurm.rank) == 0U &&
         (differ("SLURM_NTASKS", kSlurm.size) ||
          differ("SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"));
}

bool IsInStepOfSlurm(const char* const* environment) {
  return Number(environment, kSlurm.size).has_value() && Has(environment, kSlurm.rank) &&
         Number(environment, "SLURM_STEP_ID").value_or(0) < kFirstOwnStepOfSlurm &&
         !IsBatchScript(environment);
}

// PALS says how many tasks there are on this node only, and which of all this one is.
std::optional<LaunchedTask> TaskOfPals(const char* const* environment) {
  const std::optional<uint64_t> rank = Number(environment, "PALS_RANKID");
  if (!rank || *rank >= UINT32_MAX) {
    return std::nullopt;
  }
  const uint64_t here = Number(environment, "PALS_LOCAL_SIZE").value_or(1);
  const bool by_rank = *rank >= here;
  return LaunchedTask{.launcher = "mpiexec of PALS",
                      .variable = by_rank ? "PALS_RANKID" : "PALS_LOCAL_SIZE",
                      .tasks = by_rank ? *rank + 1 : here,
                      .perhaps_more = true,
                      .advice = kLibraryAdvice};
}

}  // namespace

bool HasTerminal() { return UniqueFd(open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY)).valid(); }

bool IsInFluxInstance(const char* const* environment) {
  return Has(environment, "FLUX_ENCLOSING_ID") && Has(environment, "FLUX_URI") &&
         !Has(environment, "FLUX_TASK_RANK");
}

bool IsInShellOfSrun(const char* const* environment, bool has_terminal) {
  return has_terminal && Has(environment, "SLURM_PTY_PORT") &&
         Number(environment, kSlurm.rank) == 0U && IsInStepOfSlurm(environment);
}

std::optional<LaunchedTask> FindLaunchedTask(const char* const* environment, bool has_terminal) {
  const bool in_flux = IsInFluxInstance(environment);
  std::optional<LaunchedTask> found;
  const auto note = [&found](std::optional<LaunchedTask> task) {
    if (task && (!found || task->tasks > found->tasks)) {
      found = std::move(task);
    }
  };
  for (const Launcher& launcher : kLaunchers) {
    const std::optional<uint64_t> size = Number(environment, launcher.size);
    const bool is_slurm = launcher.name == std::string_view(kSlurm.name);
    const bool inherited =
        (in_flux && launcher.starts_flux) ||
        (is_slurm && (!IsInStepOfSlurm(environment) || IsInShellOfSrun(environment, has_terminal)));
    if (size && Has(environment, launcher.rank) && !inherited) {
      note(LaunchedTask{.launcher = launcher.name,
                        .variable = launcher.size,
                        .tasks = *size,
                        .advice = launcher.advice});
    }
  }
  if (!in_flux) {
    note(TaskOfPals(environment));
  }
  return found;
}

}  // namespace ferry::client
