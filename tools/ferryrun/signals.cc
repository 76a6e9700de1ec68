#include "tools/ferryrun/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace ferry::tools {

StatusOr<SignalSource> SignalSource::Create() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal :
       {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2, SIGWINCH}) {
    sigaddset(&handled, signal);
  }
  signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write
  signal(SIGTTIN, SIG_IGN);  // in the background, reading the terminal is an error of read
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

bool IsEnding(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace ferry::tools
