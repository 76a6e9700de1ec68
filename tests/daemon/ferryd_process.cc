#include "tests/daemon/ferryd_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace ferry::daemon {

FerrydProcess::FerrydProcess(const std::string& directory, const std::vector<std::string>& flags,
                             const char* program)
    : directory_(directory), log_(directory + ".log") {
  int ready[2];
  if (pipe(ready) != 0) {
    return;
  }
  std::vector<std::string> arguments = {"ferryd", "--run_directory=" + directory, "--ready-fd",
                                        std::to_string(ready[1])};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ready[0]);
    const int log = open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(program, argv.data());
    _exit(127);
  }
  close(ready[1]);
  ready_ = ready[0];
}

FerrydProcess::~FerrydProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(ready_);
  std::filesystem::remove(log_);
}

bool FerrydProcess::WaitUntilReady() {
  char byte = 0;
  return read(ready_, &byte, 1) == 1;
}

int FerrydProcess::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void FerrydProcess::Signal(int number) const { kill(pid_, number); }

std::string FerrydProcess::ControlAddress() const {
  std::ifstream file(directory_ + "/ferryd.json");
  return nlohmann::json::parse(file)["control_address"];
}

std::string FerrydProcess::Errors() const {
  std::ifstream file(log_);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TemporaryDirectory::TemporaryDirectory() {
  char path[] = "/tmp/ferry-test-XXXXXX";
  path_ = mkdtemp(path);
}

TemporaryDirectory::~TemporaryDirectory() { std::filesystem::remove_all(path_); }

}  // namespace ferry::daemon
