// Finding programs, starting them as child processes, and saying how they ended.
//
// Calling thread: the main thread, which lives as long as ferryrun. When the thread that started a
// child ends, the kernel counts that as the end of the parent. Nothing blocks but for the exec
// itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/status.h"
#include "common/topology/cpu_set.h"
#include "common/unique_fd.h"

namespace ferry::tools {

// Returns the path to run for `name`: itself if it holds a slash, seen from `directory` unless that
// is empty; else the first match in `search_path` (entries separated by colons). kNotFound, or
// kPermissionDenied when it is there but cannot be run, or is a source file; the message has the
// form "cannot run 'x': why (what to do)".
StatusOr<std::string> FindProgram(const std::string& name, std::string_view search_path,
                                  const std::string& directory = "");

// Returns the path of ferryd beside this program: in the same folder as after an installation, or
// where the build puts it. kNotFound says where it was looked for.
StatusOr<std::string> FindFerryd();

// Returns the path of libferry_malloc.so, which it looks for in the same way.
StatusOr<std::string> FindMallocLibrary();

struct SpawnRequest {
  std::string path;
  std::vector<std::string> arguments;    // the program's name first
  std::vector<std::string> environment;  // "NAME=value"
  int stdin_fd;
  int stdout_fd;
  int stderr_fd;
  int inherited_fd = -1;       // one more descriptor that the program finds under the same number
  int pmi_fd = -1;             // and another, whose number Slots::Start tells it by PMI_FD
  int parent_death_signal;     // the child gets it when ferryrun dies, however it dies
  std::string directory = {};  // where it runs; empty: where ferryrun does
  topology::CpuSet cpus = {};  // on which it may run; empty: on any
  // It is stopped before its first instruction, as by SIGSTOP, for a debugger: SIGCONT lets it go.
  bool is_held = false;
};

// Starts the program in a process group of its own, with no signal blocked, and those ignored that
// ferryrun found ignored (signals.h). A program that cannot be executed is an error here, not a
// child that ends: "cannot run 'x': why". kInvalidArgument: it cannot be in that directory, or on
// those CPUs.
StatusOr<pid_t> Spawn(const SpawnRequest& request);

// The two halves of Spawn, for a process that starts a child and another that explains a failure to
// the user (guard.h).
struct SpawnFailure {
  enum class Step : int32_t { kFork, kStreams, kDirectory, kCpus, kHold, kExecute };
  Step step = Step::kFork;
  int32_t error_number = 0;
};
std::variant<pid_t, SpawnFailure> TrySpawn(const SpawnRequest& request);
Status Explain(const SpawnRequest& request, const SpawnFailure& failure);

struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;  // 0: it exited by itself
  bool dumped_core = false;

  bool ok() const { return exit_code == 0 && signal == 0; }
};

// Returns how a child ended, from si_code and si_status of waitid.
ProcessEnd EndFrom(int code, int status);
// Returns true once the child has ended, and stores how. It stays a zombie, which keeps its pid and
// process group, until Reap.
bool HasEnded(pid_t pid, ProcessEnd* end);
// Waits a moment for the end of any child, which HasEnded then tells. SIGCHLD is blocked
// (signals.h).
void AwaitChild();
// Kills what is left of an ended child's process group, and releases its pid.
void Reap(pid_t pid);

// "exited with code 3", "was killed by SIGSEGV (core dumped)".
std::string Describe(const ProcessEnd& end);
// Returns the code that a shell reports: the exit code, or 128 + signal.
int ShellCode(const ProcessEnd& end);

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
// Makes a pipe whose ends are both closed on exec.
StatusOr<Pipe> MakePipe();

}  // namespace ferry::tools
