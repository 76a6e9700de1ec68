// A forked child that runs a function and reports by its exit status.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

namespace ferry::shm {

class ChildProcess {
 public:
  // `body` returns whether all was well. Memory that it shares with the test must be shared memory.
  explicit ChildProcess(const std::function<bool()>& body) : pid_(fork()) {
    if (pid_ < 0) {
      std::abort();
    }
    if (pid_ == 0) {
      _exit(body() ? 0 : 1);
    }
  }
  ~ChildProcess() { Join(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Waits for the child. Returns what `body` returned; false, too, if it crashed.
  bool Join() {
    if (pid_ > 0) {
      int state = 0;
      waitpid(pid_, &state, 0);
      pid_ = -1;
      succeeded_ = WIFEXITED(state) && WEXITSTATUS(state) == 0;
    }
    return succeeded_;
  }

 private:
  pid_t pid_;
  bool succeeded_ = false;
};

}  // namespace ferry::shm
