// Stops one thread of another process.
#pragma once

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace ferry::tests {

// Stops it as a debugger would, until the end of this object. SIGSTOP stops all threads of a
// process, whichever it is sent to; ptrace stops one, and needs no hook in that process. Needs
// "no-sandbox" where the sandbox's root may not trace. One test thread.
class FrozenThread {
 public:
  FrozenThread(pid_t process, const std::string& name) : thread_(Find(process, name)) {
    EXPECT_GT(thread_, 0) << "no thread " << name;
    EXPECT_EQ(ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr), 0);
    EXPECT_EQ(ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr), 0);
    EXPECT_EQ(waitpid(thread_, nullptr, __WALL), thread_);
  }
  ~FrozenThread() { ptrace(PTRACE_DETACH, thread_, nullptr, nullptr); }
  FrozenThread(const FrozenThread&) = delete;
  FrozenThread& operator=(const FrozenThread&) = delete;

 private:
  static pid_t Find(pid_t process, const std::string& name) {
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
      std::ifstream file(task.path() / "comm");
      std::string comm;
      if (std::getline(file, comm) && comm == name) {
        return static_cast<pid_t>(std::stoi(task.path().filename()));
      }
    }
    return -1;
  }

  pid_t thread_;
};

}  // namespace ferry::tests
