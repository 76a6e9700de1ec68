// Stops a child process after exactly K instructions of a piece of code, to kill it there or to let
// it go on: how the tests prove that a process may die, or be stopped, at any instruction.
//
// Linux ptrace. The child is a fork of the test: what it shares with its parent must lie in shared
// memory (tests/shm/shared_memory.h). The code should be short: a step costs a few microseconds.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/shm/shared_memory.h"

namespace ferry::shm {

class SteppedChild {
 public:
  // Why children cannot be stepped here (a sanitizer, or ptrace is refused); empty when they can.
  static std::string WhyUnavailable();

  // Forks a child that stops before the first instruction of `body`.
  explicit SteppedChild(const std::function<void()>& body);
  // Kills the child if it is still there.
  ~SteppedChild();
  SteppedChild(const SteppedChild&) = delete;
  SteppedChild& operator=(const SteppedChild&) = delete;

  // Runs up to `count` more instructions; the child then stands still. Returns false when the body
  // ended before or with the last of them.
  bool Step(uint64_t count);
  // SIGKILL, and waits until the child is gone.
  void Kill();
  // Lets the child run freely to the end of the body, and waits for it. Returns false if it
  // crashed.
  bool Finish();

 private:
  struct Progress {
    std::atomic<uint32_t> started;
    std::atomic<uint32_t> ended;
  };
  void StepOnce();
  [[noreturn]] void RunChild(const std::function<void()>& body);

  Shared<Progress> progress_;
  pid_t pid_ = -1;
};

// For K = 0, stride, 2 * stride, ... until the body ends within K instructions: calls `prepare`,
// forks a child that runs `body`, stops it after K instructions and calls `check` with it. `check`
// kills it or looks at it while it is stopped; it is killed afterwards in any case. Returns how
// many K there were.
uint64_t ForEachInstruction(uint64_t stride, const std::function<void()>& prepare,
                            const std::function<void()>& body,
                            const std::function<void(SteppedChild&)>& check);

}  // namespace ferry::shm

// Skips the test, with the reason, where children cannot be stepped.
#define FERRY_REQUIRE_STEPPING()                                                                \
  if (const std::string reason = ::ferry::shm::SteppedChild::WhyUnavailable(); !reason.empty()) \
  GTEST_SKIP() << reason
