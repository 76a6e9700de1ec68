// Tells from the environment whether a launcher started this process as one of the tasks of a job:
// srun, flux run, Open MPI's mpirun, PALS (HPE Cray's mpiexec), jsrun, torchrun, or any that sets
// the variables of PMI.
//
// Variables that such launchers set go on to whatever the task starts. So a task is told apart from
// what inherits its variables: a batch script (sbatch) that was submitted from a task, the shell of
// `srun --pty`, and the first program of a Flux instance whose brokers are tasks.
//
// Any thread. Nothing blocks, but for the file system in HasTerminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ferry::client {

struct LaunchedTask {
  std::string launcher;  // "srun"
  std::string variable;  // that says how many tasks there are
  uint64_t tasks = 1;
  bool perhaps_more = false;
  std::string advice;  // a command that lets them meet
};

// Returns true if this process has a terminal from which a user may type.
bool HasTerminal();

// Returns true if this process is the first program of a Flux instance, as flux batch and flux
// alloc start it, or was started by that program without Flux.
bool IsInFluxInstance(const char* const* environment);

// Returns true if this process is, or was started by, the shell of `srun --pty`, where a user types
// commands. The step's variables hold there.
bool IsInShellOfSrun(const char* const* environment, bool has_terminal);

// Returns the task that this process is; of several that are around it, one of a job of several
// tasks. Nothing if no launcher started it as a task.
std::optional<LaunchedTask> FindLaunchedTask(const char* const* environment, bool has_terminal);

}  // namespace ferry::client
