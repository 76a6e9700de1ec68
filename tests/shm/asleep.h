// Waits until another thread sleeps in the kernel: how a test knows that a waiter really waits.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <fstream>
#include <string>

namespace ferry::shm {

// `tid` is a thread, or the only thread of a child process.
inline void WaitUntilAsleep(pid_t tid) {
  for (;;) {
    std::ifstream stat("/proc/" + std::to_string(tid) + "/stat");
    std::string line;
    std::getline(stat, line);
    // "tid (name) state ...": the name may hold anything, a parenthesis too.
    const size_t name_end = line.rfind(')');
    if (name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0) {
      return;
    }
    sched_yield();
  }
}

// The thread stores its id when it is about to wait.
inline void WaitUntilAsleep(const std::atomic<pid_t>& tid) {
  while (tid.load() == 0) {
    sched_yield();
  }
  WaitUntilAsleep(tid.load());
}

}  // namespace ferry::shm
