#include "tests/e2e/command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "config/environment.h"
#include "tests/support/eventually.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;

constexpr auto kPollInterval = std::chrono::milliseconds(5);
constexpr char kPath[] = "PATH=/usr/local/bin:/usr/bin:/bin";
// Under AddressSanitizer: the leak check at the end of a process stops its threads by ptrace, which
// now and then crashes on gRPC's. In-process tests look for leaks.
constexpr char kNoLeakCheck[] = "ASAN_OPTIONS=detect_leaks=0:";

Words ShmEntries() {
  Words entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/dev/shm", ignored)) {
    entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::vector<char*> Pointers(Words& strings) {
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

std::string LineOf(const Words& words) {
  std::string line;
  for (const std::string& word : words) {
    line += word + " ";
  }
  return line;
}

}  // namespace

TempDirectory::TempDirectory() {
  if (mkdtemp(path_.data()) == nullptr) {
    std::abort();
  }
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Command::Command(Words arguments, Words variables, std::string input, unsigned limit_s)
    : line_(LineOf(arguments)),
      mark_("XDG_RUNTIME_DIR=" + runtime_directory()),
      shm_before_(ShmEntries()) {
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

CommandResult Command::WaitCleanly() {
  CommandResult result = Wait();
  EXPECT_THAT(Leftovers(), testing::IsEmpty()) << line_;
  return result;
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

Words Command::Leftovers() const {
  std::vector<pid_t> running;
  Eventually([&] {
    running = Processes();
    std::erase_if(running, IsZombie);
    return running.empty();
  });
  Words leftovers;
  for (const pid_t pid : running) {
    std::string command = tests::ReadFile("/proc/" + std::to_string(pid) + "/cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    leftovers.push_back("process " + std::to_string(pid) + ": " + command);
  }
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(runtime_directory(), ignored)) {
    leftovers.push_back(entry.path());
  }
  // Other programs use /dev/shm too, so only names that speak of Ferry or libfabric count.
  const Words shm_after = ShmEntries();
  Words added;
  std::set_difference(shm_after.begin(), shm_after.end(), shm_before_.begin(), shm_before_.end(),
                      std::back_inserter(added));
  std::copy_if(added.begin(), added.end(), std::back_inserter(leftovers),
               [](const std::string& name) {
                 return name.find("ferry") != name.npos || name.find("fi_") != name.npos;
               });
  return leftovers;
}

CommandResult RunCommand(Words arguments, Words variables, std::string input) {
  return Command(std::move(arguments), std::move(variables), std::move(input)).Wait();
}

CommandResult RunCleanly(Words arguments, Words variables, std::string input, unsigned limit_s) {
  return Command(std::move(arguments), std::move(variables), std::move(input), limit_s)
      .WaitCleanly();
}

std::string RunWell(Words arguments, Words variables, unsigned limit_s) {
  const CommandResult result = RunCleanly(arguments, std::move(variables), "", limit_s);
  EXPECT_EQ(result.exit_code, 0) << LineOf(arguments) << '\n' << result.out << result.err;
  return result.out;
}

std::unique_ptr<Command> StartDaemon(Words program, const std::string& run_directory,
                                     unsigned limit_s) {
  program.push_back("--run_directory=" + run_directory);
  auto daemon = std::make_unique<Command>(std::move(program), Words(), "", limit_s);
  EXPECT_TRUE(Eventually([&] { return fs::exists(run_directory + "/ferryd.json"); }));
  return daemon;
}

Words WithoutCapabilities(Words arguments) {
  if (geteuid() == 0) {
    arguments.insert(arguments.begin(),
                     {"/usr/bin/setpriv", "--bounding-set=-all", "--inh-caps=-all"});
  }
  return arguments;
}

Words Joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Words With(const Words& variables, const Words& program) {
  return Joined(Joined({"/usr/bin/env"}, variables), program);
}

Words PrivateJob(const Words& placement, const Words& program) {
  return Joined({"tools/ferryrun/ferryrun", "--private", "--ferryd", "daemon/ferryd", "--no-label"},
                Joined(placement, program));
}

Words InOwnNetwork(const Words& program) {
  return Joined({"/usr/bin/unshare", geteuid() == 0 ? "-n" : "-rn", "sh", "-c",
                 "ip link set lo up && exec \"$@\"", "sh"},
                program);
}

bool UnderWay(Command* job, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (!job->WaitForOutput("rank " + std::to_string(rank) + ": under way\n")) {
      std::fprintf(stderr, "rank %d is not under way:\n%s", rank, job->Output().c_str());
      return false;
    }
  }
  return true;
}

Words Daemons(const Command& job) {
  Words directories;
  for (const auto& entry : fs::recursive_directory_iterator(job.runtime_directory())) {
    if (entry.path().filename() == "ferryd.json") {
      directories.push_back(entry.path().parent_path());
    }
  }
  std::sort(directories.begin(), directories.end());
  return directories;
}

bool Eventually(const std::function<bool()>& condition) {
  return tests::Eventually(condition, kPollInterval);
}

Words SortedLines(const std::string& text) {
  Words lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace ferry::e2e
