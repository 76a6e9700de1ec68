#include "tools/ferryrun/process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <initializer_list>

#include "common/open_files.h"
#include "common/own_program.h"
#include "tools/ferryrun/machine.h"
#include "tools/ferryrun/signals.h"

namespace ferry::tools {
namespace {

// 0, or why `path` cannot be run, as errno.
int WhyNotRunnable(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) {
    return errno;
  }
  if (S_ISDIR(file.st_mode)) {
    return EISDIR;
  }
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

Status CannotRun(const std::string& name, int error_number, const std::string& advice) {
  const bool missing = error_number == ENOENT || error_number == ENOTDIR;
  return {missing ? ErrorCode::kNotFound : ErrorCode::kPermissionDenied,
          "cannot run '" + name + "': " + std::strerror(error_number) + advice};
}

// Says how a program is made of a file, or how it is run, if its name says that it is none; else
// "".
std::string AdviceFor(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string ending = file.extension();
  const auto is_one_of = [&ending](std::initializer_list<const char*> endings) {
    return std::find(endings.begin(), endings.end(), ending) != endings.end();
  };
  const std::string program = (file.parent_path() / file.stem()).string();
  if (is_one_of({".c"})) {
    return "a source file: ferrycc " + path + " -o " + program + " makes a program of it";
  }
  if (is_one_of({".cc", ".cpp", ".cxx", ".C", ".c++"})) {
    return "a source file: ferrycxx " + path + " -o " + program + " makes a program of it";
  }
  if (is_one_of({".py"})) {
    return "a script: ferryrun python3 " + path + " runs it";
  }
  return "";
}

// kPermissionDenied with that advice, if there is such a file; else ok.
Status RefuseSource(const std::string& name, const std::string& path) {
  const std::string advice = AdviceFor(name);
  return advice.empty() || access(path.c_str(), F_OK) != 0
             ? Status()
             : Status(ErrorCode::kPermissionDenied, "cannot run '" + name + "': it is " + advice);
}

constexpr int kNotFound = 127;  // as the loader and shells say it

// Why an existing file could not be executed.
Status CannotRun(const std::string& path, int error_number) {
  const std::string what = "cannot run '" + path + "'";
  if (error_number == ENOENT && access(path.c_str(), F_OK) == 0) {
    return {ErrorCode::kNotFound, what +
                                      ": it is there, but not the interpreter that its first "
                                      "line, or the loader that its ELF header names"};
  }
  if (error_number == ENOEXEC) {
    return {ErrorCode::kPermissionDenied,
            what +
                ": Exec format error (a program of another machine, or a script whose first "
                "line names no interpreter?)"};
  }
  return StatusFromErrno(error_number, what);
}

std::vector<char*> NullTerminated(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) {
    pointers.push_back(const_cast<char*>(string.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

using Step = SpawnFailure::Step;

// Moves the three standard streams into place. The sources lie above 2
// (common/standard_streams.cc).
bool PlaceStreams(const SpawnRequest& request) {
  return dup2(request.stdin_fd, STDIN_FILENO) >= 0 && dup2(request.stdout_fd, STDOUT_FILENO) >= 0 &&
         dup2(request.stderr_fd, STDERR_FILENO) >= 0 &&
         (request.inherited_fd < 0 || fcntl(request.inherited_fd, F_SETFD, 0) == 0) &&
         (request.pmi_fd < 0 || fcntl(request.pmi_fd, F_SETFD, 0) == 0);
}

// Gives the child its streams, directory, CPUs and tracer; returns the step that failed, or
// kExecute.
Step Settle(const SpawnRequest& request) {
  if (!PlaceStreams(request)) {
    return Step::kStreams;
  }
  if (!request.directory.empty() && chdir(request.directory.c_str()) != 0) {
    return Step::kDirectory;
  }
  const std::vector<uint64_t>& words = request.cpus.words();
  if (!words.empty() && sched_setaffinity(0, words.size() * sizeof(words[0]),
                                          reinterpret_cast<const cpu_set_t*>(words.data())) != 0) {
    return Step::kCpus;
  }
  // A traced process stops when it has executed the program (ptrace(2)).
  if (request.is_held && ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
    return Step::kHold;
  }
  return Step::kExecute;
}

// Waits until a traced child has executed its program, and lets it go into a stop: it is traced no
// more, so that a debugger may attach.
void Hold(pid_t pid) {
  int status = 0;
  pid_t waited;
  do {
    waited = waitpid(pid, &status, 0);
  } while (waited < 0 && errno == EINTR);
  if (waited == pid && WIFSTOPPED(status)) {
    ptrace(PTRACE_DETACH, pid, nullptr, SIGSTOP);
  }
}

// The child between vfork and exec: async-signal-safe calls only, and no change of memory that the
// parent reads, since that is the parent's, whose other threads (gRPC's) go on.
[[noreturn]] void BecomeProgram(const SpawnRequest& request, char* const* arguments,
                                char* const* environment, pid_t parent, int failure_fd) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  RestoreIgnored();
  SpawnFailure failure{Step::kStreams, 0};
  if (prctl(PR_SET_PDEATHSIG, request.parent_death_signal) == 0 &&
      sigprocmask(SIG_SETMASK, &none, nullptr) == 0) {
    failure.step = Settle(request);
  }
  RestoreOpenFiles();
  if (failure.step == Step::kExecute) {
    if (getppid() != parent) {
      _exit(0);  // ferryrun died before prctl took effect
    }
    execve(request.path.c_str(), arguments, environment);
  }
  failure.error_number = errno;
  [[maybe_unused]] const ssize_t written = write(failure_fd, &failure, sizeof(failure));
  _exit(kNotFound);
}

// Returns once the child has become the program or ended: it borrows our memory instead of a copy
// of the page tables, which would take longer than all else here.
[[gnu::noinline]] pid_t StartChild(const SpawnRequest& request, char* const* arguments,
                                   char* const* environment, int failure_fd) {
  const pid_t parent = getpid();
  const pid_t pid = vfork();
  if (pid == 0) {
    BecomeProgram(request, arguments, environment, parent, failure_fd);
  }
  return pid;
}

}  // namespace

StatusOr<std::string> FindProgram(const std::string& name, std::string_view search_path,
                                  const std::string& directory) {
  if (name.find('/') != std::string::npos) {
    const std::string path = directory.empty() || name[0] == '/' ? name : directory + "/" + name;
    const int error_number = WhyNotRunnable(path);
    if (error_number == 0) {
      return path;
    }
    if (error_number == EACCES) {
      FERRY_RETURN_IF_ERROR(RefuseSource(name, path));
    }
    return CannotRun(path, error_number,
                     error_number == EACCES ? " (is it executable? try chmod +x)" : "");
  }
  int best_error = ENOENT;  // "not executable" says more than "not found"
  while (!name.empty() && !search_path.empty()) {
    const size_t colon = search_path.find(':');
    const std::string_view folder = search_path.substr(0, colon);
    search_path.remove_prefix(colon == search_path.npos ? search_path.size() : colon + 1);
    const std::string path = (folder.empty() ? "." : std::string(folder)) + "/" + name;
    const int error_number = WhyNotRunnable(path);
    if (error_number == 0) {
      return directory.empty() ? path : std::filesystem::absolute(path).string();
    }
    if (error_number == EACCES) {
      best_error = EACCES;
    }
  }
  FERRY_RETURN_IF_ERROR(RefuseSource(name, directory.empty() ? name : directory + "/" + name));
  return CannotRun(name, best_error, " (is it in PATH, or did you mean ./" + name + "?)");
}

StatusOr<std::string> FindFerryd() {
  const std::filesystem::path folder = OwnDirectory();
  for (const char* place : {"ferryd", "../sbin/ferryd", "../../daemon/ferryd"}) {
    const auto path = (folder / place).lexically_normal();
    if (WhyNotRunnable(path) == 0) {
      return path.string();
    }
  }
  return Status(ErrorCode::kNotFound,
                "no ferryd beside " + folder.string() +
                    "/ferryrun: build or install it, or name it with --ferryd");
}

StatusOr<std::string> FindMallocLibrary() {
  const std::filesystem::path folder = OwnDirectory();
  const std::filesystem::path places[] = {"../lib/ferry",
                                          std::filesystem::path("../lib") / kMultiarch / "ferry",
                                          "../../client/malloc"};
  for (const std::filesystem::path& place : places) {
    const auto path = (folder / place / "libferry_malloc.so").lexically_normal();
    if (access(path.c_str(), R_OK) == 0) {
      return path.string();
    }
  }
  return Status(ErrorCode::kNotFound, "--malloc: no libferry_malloc.so beside " + folder.string() +
                                          "/ferryrun or in ../lib/ferry: build or install it");
}

StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return StatusFromErrno(errno, "cannot make a pipe");
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Status Explain(const SpawnRequest& request, const SpawnFailure& failure) {
  const std::string why = std::strerror(failure.error_number);
  switch (failure.step) {
    case Step::kFork:
      return StatusFromErrno(failure.error_number, "cannot start a process");
    case Step::kDirectory:
      return {ErrorCode::kInvalidArgument, "cannot run '" + request.path + "' in the directory '" +
                                               request.directory + "': " + why};
    case Step::kCpus:
      return {ErrorCode::kInvalidArgument,
              "cannot bind '" + request.path + "' to CPUs " + request.cpus.Text() + ": " + why};
    case Step::kHold:
      return StatusFromErrno(failure.error_number,
                             "cannot stop '" + request.path + "' for the debugger");
    case Step::kStreams:
    case Step::kExecute:
      return CannotRun(request.path, failure.error_number);
  }
  return {ErrorCode::kInternal, why};
}

std::variant<pid_t, SpawnFailure> TrySpawn(const SpawnRequest& request) {
  const std::vector<char*> arguments = NullTerminated(request.arguments);
  const std::vector<char*> environment = NullTerminated(request.environment);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    return SpawnFailure{Step::kFork, errno};
  }
  const UniqueFd reader(report[0]);
  UniqueFd writer(report[1]);
  const pid_t pid = StartChild(request, arguments.data(), environment.data(), writer.get());
  if (pid < 0) {
    return SpawnFailure{Step::kFork, errno};
  }
  setpgid(pid, pid);  // here too: the group must exist before a signal is sent to it
  writer.Reset();
  SpawnFailure failure{};
  ssize_t size = 0;
  do {
    size = read(reader.get(), &failure, sizeof(failure));
  } while (size < 0 && errno == EINTR);
  if (size == sizeof(failure)) {
    waitpid(pid, nullptr, 0);
    return failure;
  }
  if (request.is_held) {
    Hold(pid);
  }
  return pid;
}

StatusOr<pid_t> Spawn(const SpawnRequest& request) {
  const std::variant<pid_t, SpawnFailure> child = TrySpawn(request);
  if (const auto* failure = std::get_if<SpawnFailure>(&child)) {
    return Explain(request, *failure);
  }
  return std::get<pid_t>(child);
}

ProcessEnd EndFrom(int code, int status) {
  ProcessEnd end;
  if (code == CLD_EXITED) {
    end.exit_code = status;
  } else {
    end.signal = status;
    end.dumped_core = code == CLD_DUMPED;
  }
  return end;
}

bool HasEnded(pid_t pid, ProcessEnd* end) {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return false;
  }
  *end = EndFrom(info.si_code, info.si_status);
  return true;
}

void AwaitChild() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  constexpr timespec kMoment{0, 50'000'000};  // another thread may take the signal
  sigtimedwait(&child, nullptr, &kMoment);
}

void Reap(pid_t pid) {
  kill(-pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

std::string Describe(const ProcessEnd& end) {
  if (end.signal == 0) {
    return "exited with code " + std::to_string(end.exit_code) +
           (end.exit_code == kNotFound ? ", as a program does that finds no shared library, or a "
                                         "shell that finds no command"
                                       : "");
  }
  const char* name = sigabbrev_np(end.signal);
  return "was killed by " +
         (name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(end.signal)) +
         (end.dumped_core ? " (core dumped)" : "");
}

int ShellCode(const ProcessEnd& end) { return end.signal != 0 ? 128 + end.signal : end.exit_code; }

}  // namespace ferry::tools
