#include "tests/shm/step_kill.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ferry::shm {
namespace {

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::abort();
}

// Waits for the next stop or the end of `pid`.
int WaitFor(pid_t pid) {
  int state = 0;
  while (waitpid(pid, &state, 0) != pid) {
    if (errno != EINTR) {
      Die("waitpid");
    }
  }
  return state;
}

}  // namespace

std::string SteppedChild::WhyUnavailable() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return "single-stepping a sanitizer's run-time library says nothing about Ferry";
#else
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : errno);
  }
  const int state = WaitFor(pid);
  const int error_number = WIFEXITED(state) ? WEXITSTATUS(state) : EPERM;
  return error_number == 0 ? "" : std::string("ptrace is refused: ") + std::strerror(error_number);
#endif
}

SteppedChild::SteppedChild(const std::function<void()>& body) {
  pid_ = fork();
  if (pid_ < 0) {
    Die("fork");
  }
  if (pid_ == 0) {
    RunChild(body);
  }
  const int state = WaitFor(pid_);
  if (!WIFSTOPPED(state)) {
    Die("the child did not stop for its tracer");
  }
  while (progress_->started.load() == 0) {
    StepOnce();
  }
}

SteppedChild::~SteppedChild() { Kill(); }

void SteppedChild::RunChild(const std::function<void()>& body) {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
    _exit(1);
  }
  kill(getpid(), SIGSTOP);
  progress_->started.store(1);
  body();
  progress_->ended.store(1);
  _exit(0);
}

void SteppedChild::StepOnce() {
  if (ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr) != 0) {
    Die("PTRACE_SINGLESTEP");
  }
  const int state = WaitFor(pid_);
  if (!WIFSTOPPED(state) || WSTOPSIG(state) != SIGTRAP) {
    std::fprintf(stderr, "the stepped child crashed or exited (wait status 0x%x)\n", state);
    std::abort();
  }
}

bool SteppedChild::Step(uint64_t count) {
  for (uint64_t i = 0; i < count && progress_->ended.load() == 0; ++i) {
    StepOnce();
  }
  return progress_->ended.load() == 0;
}

void SteppedChild::Kill() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    WaitFor(pid_);
    pid_ = -1;
  }
}

bool SteppedChild::Finish() {
  if (ptrace(PTRACE_CONT, pid_, nullptr, nullptr) != 0) {
    Die("PTRACE_CONT");
  }
  const int state = WaitFor(pid_);
  if (WIFSTOPPED(state)) {  // a signal, such as a crash, was reported to the tracer
    Kill();
    return false;
  }
  pid_ = -1;
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

uint64_t ForEachInstruction(uint64_t stride, const std::function<void()>& prepare,
                            const std::function<void()>& body,
                            const std::function<void(SteppedChild&)>& check) {
  uint64_t points = 0;
  for (bool running = true; running; ++points) {
    prepare();
    SteppedChild child(body);
    running = child.Step(points * stride);
    check(child);
  }
  return points;
}

}  // namespace ferry::shm
