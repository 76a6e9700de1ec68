#include "tools/ferryrun/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace ferry::tools {

namespace {

// A signal whose handling this program changes for itself, and the handling that it found; SIG_DFL
// unless that is known.
struct Changed {
  int number;
  void (*wanted)(int);
  void (*found)(int);
};
Changed changed[] = {
    {SIGPIPE, SIG_IGN, SIG_DFL},  // a closed pipe is an error of write
    {SIGTTIN, SIG_IGN, SIG_DFL},  // in the background, reading the terminal is an error of read
    {SIGCHLD, SIG_DFL, SIG_DFL},  // while it is ignored, no wait tells how a child ended
};

bool IsIgnored(int number) {
  struct sigaction now {};
  return sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

StatusOr<SignalSource> SignalSource::Create() {
  for (Changed& one : changed) {
    one.found = IsIgnored(one.number) ? SIG_IGN : SIG_DFL;
    signal(one.number, one.wanted);
  }
  sigset_t handled;
  sigemptyset(&handled);
  for (const int number :
       {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2, SIGWINCH}) {
    if (!IsIgnored(number)) {
      sigaddset(&handled, number);
    }
  }
  if (sigprocmask(SIG_BLOCK, &handled, nullptr) != 0) {
    return StatusFromErrno(errno, "sigprocmask");
  }
  UniqueFd fd(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) {
    return StatusFromErrno(errno, "signalfd");
  }
  return SignalSource(std::move(fd));
}

std::optional<int> SignalSource::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof(info)) != sizeof(info)) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

Status SignalSource::CheckInterrupt() {
  while (const std::optional<int> signal = Next()) {
    if (!interrupt_ && IsEnding(*signal)) {
      interrupt_ = signal;
    }
  }
  return interrupt_ ? Status(ErrorCode::kCancelled, std::string("interrupted by SIG") +
                                                        sigabbrev_np(*interrupt_) +
                                                        " before the job started")
                    : Status();
}

void RestoreIgnored() {
  for (const Changed& one : changed) {
    struct sigaction found {};
    found.sa_handler = one.found;
    sigaction(one.number, &found, nullptr);
  }
}

bool IsEnding(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace ferry::tools
