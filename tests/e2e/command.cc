#include "tests/e2e/command.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "config/environment.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(30);
constexpr auto kPollInterval = std::chrono::milliseconds(5);
constexpr char kPath[] = "PATH=/usr/local/bin:/usr/bin:/bin";
// Under AddressSanitizer: the leak check at the end of a process stops its threads by ptrace, which
// now and then crashes on gRPC's. In-process tests look for leaks.
constexpr char kNoLeakCheck[] = "ASAN_OPTIONS=detect_leaks=0:";

std::vector<std::string> ShmEntries() {
  std::vector<std::string> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/dev/shm", ignored)) {
    entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) {
    pointers.push_back(string.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

bool IsZombie(pid_t pid) {
  const std::string stat = tests::ReadFile("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end == stat.npos || stat.compare(name_end, 3, ") Z") == 0;
}

}  // namespace

Command::Command(std::vector<std::string> arguments, std::vector<std::string> variables,
                 std::string input, unsigned limit_s)
    : runtime_directory_("/tmp/ferry-test-XXXXXX"), shm_before_(ShmEntries()) {
  if (mkdtemp(runtime_directory_.data()) == nullptr) {
    std::abort();
  }
  mark_ = "XDG_RUNTIME_DIR=" + runtime_directory_;
  // The last of two options of one name counts: devices are emulated unless a test says otherwise.
  variables.insert(variables.begin(), "FERRY_GPU_BACKEND=host");
  variables.insert(variables.end(), {kPath, mark_});
  const auto asan = config::FindVariable(config::ProcessEnvironment(), "ASAN_OPTIONS");
  variables.push_back(kNoLeakCheck + std::string(asan.value_or("")));
  for (const char* name : {"TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const auto value = config::FindVariable(config::ProcessEnvironment(), name)) {
      variables.push_back(std::string(name) + "=" + std::string(*value));
    }
  }
  int in[2];
  int out[2];
  int err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    std::abort();
  }
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(variables);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);  // it is ignored where the tests run in the background of a shell
    alarm(limit_s);           // survives exec
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  for (const int fd : {in[0], out[1], err[1]}) {
    close(fd);
  }
  signal(SIGPIPE, SIG_IGN);
  [[maybe_unused]] const ssize_t size = write(in[1], input.data(), input.size());
  close(in[1]);
  readers_.emplace_back([this, fd = out[0]] { ReadAll(fd, &out_); });
  readers_.emplace_back([this, fd = err[0]] { ReadAll(fd, &err_); });
}

Command::~Command() {
  if (!waited_) {
    kill(-pid_, SIGKILL);
    Wait();
  }
  for (const pid_t pid : Processes()) {
    kill(pid, SIGKILL);
  }
  std::error_code ignored;
  fs::remove_all(runtime_directory_, ignored);
}

void Command::ReadAll(int fd, std::string* stream) {
  char bytes[4096];
  ssize_t size = 0;
  while ((size = read(fd, bytes, sizeof(bytes))) > 0) {
    const std::lock_guard lock(mutex_);
    stream->append(bytes, static_cast<size_t>(size));
  }
  close(fd);
  --open_streams_;
}

bool Command::WaitForText(const std::string& text, const std::string* stream) {
  bool found = false;
  return Eventually([&] {
           const bool ended = open_streams_ < 2;
           const std::lock_guard lock(mutex_);
           found = stream->find(text) != stream->npos;
           return found || ended;
         }) &&
         found;
}

bool Command::WaitForOutput(const std::string& text) { return WaitForText(text, &out_); }
bool Command::WaitForError(const std::string& text) { return WaitForText(text, &err_); }
std::string Command::Output() {
  const std::lock_guard lock(mutex_);
  return out_;
}

void Command::Signal(int signal) const { kill(pid_, signal); }

CommandResult Command::Wait() {
  waited_ = true;
  int status = 0;
  waitpid(pid_, &status, 0);
  for (std::thread& reader : readers_) {
    reader.join();
  }
  readers_.clear();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          out_, err_};
}

std::vector<pid_t> Command::Processes() const {
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == name.npos) {
      const std::string environment = '\0' + tests::ReadFile(entry.path() / "environ");
      if (environment.find('\0' + mark_ + '\0') != environment.npos) {
        pids.push_back(static_cast<pid_t>(std::stoi(name)));
      }
    }
  }
  return pids;
}

std::vector<pid_t> Command::Find(const std::string& text) const {
  std::vector<pid_t> found;
  for (const pid_t pid : Processes()) {
    if (tests::ReadFile("/proc/" + std::to_string(pid) + "/cmdline").find(text) !=
        std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

std::vector<std::string> Command::Leftovers() const {
  std::vector<pid_t> running;
  Eventually([&] {
    running = Processes();
    std::erase_if(running, IsZombie);
    return running.empty();
  });
  std::vector<std::string> leftovers;
  for (const pid_t pid : running) {
    std::string command = tests::ReadFile("/proc/" + std::to_string(pid) + "/cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    leftovers.push_back("process " + std::to_string(pid) + ": " + command);
  }
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(runtime_directory_, ignored)) {
    leftovers.push_back(entry.path());
  }
  // Other programs use /dev/shm too, so only names that speak of Ferry or libfabric count.
  const std::vector<std::string> shm_after = ShmEntries();
  std::vector<std::string> added;
  std::set_difference(shm_after.begin(), shm_after.end(), shm_before_.begin(), shm_before_.end(),
                      std::back_inserter(added));
  std::copy_if(added.begin(), added.end(), std::back_inserter(leftovers),
               [](const std::string& name) {
                 return name.find("ferry") != name.npos || name.find("fi_") != name.npos;
               });
  return leftovers;
}

CommandResult RunCommand(std::vector<std::string> arguments, std::vector<std::string> variables,
                         std::string input) {
  return Command(std::move(arguments), std::move(variables), std::move(input)).Wait();
}

std::vector<std::string> PrivateJob(const std::vector<std::string>& placement,
                                    const std::vector<std::string>& program) {
  std::vector<std::string> job = {"tools/ferryrun/ferryrun", "--private", "--ferryd",
                                  "daemon/ferryd", "--no-label"};
  job.insert(job.end(), placement.begin(), placement.end());
  job.insert(job.end(), program.begin(), program.end());
  return job;
}

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return true;
}

std::vector<std::string> SortedLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace ferry::e2e
