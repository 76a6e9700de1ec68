#include "tools/ferryrun/daemon_helper.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "config/environment.h"
#include "tools/ferryrun/daemons.h"
#include "tools/ferryrun/signals.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kGraceMs = 5000;
constexpr int kCannotStart = 1;

int SayWhyNot(const Status& status) {
  std::printf("%s\n", status.message().c_str());
  return kCannotStart;
}

// Waits until nobody holds the other end of standard input, or somebody asks for the end.
void WaitForEnd(PrivateDaemon* daemon, SignalSource* signals) {
  while (true) {
    pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {signals->fd(), POLLIN, 0}};
    if (poll(fds, 2, -1) <= 0) {
      continue;
    }
    char byte = 0;
    if (fds[0].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0) {
      return;
    }
    while (const std::optional<int> signal = signals->Next()) {
      ProcessEnd end;
      if (IsEnding(*signal) || HasEnded(daemon->pid(), &end)) {
        return;
      }
    }
  }
}

}  // namespace

int RunDaemonHelper() {
  close_range(STDERR_FILENO + 1, ~0U, 0);  // what the application had open is not ours to hold
  StatusOr<config::Options> options = config::OptionsFromEnvironment(config::ProcessEnvironment());
  if (!options.ok()) {
    return SayWhyNot(options.status());
  }
  StatusOr<SignalSource> signals = SignalSource::Create();
  if (!signals.ok()) {
    return SayWhyNot(signals.status());
  }
  PrivateDaemons daemons;
  if (const Status status = daemons.Start({}, *options, &*signals); !status.ok()) {
    return SayWhyNot(status);
  }
  PrivateDaemon& daemon = daemons.processes().front();
  std::printf("serves %s\n", daemon.run_directory().c_str());
  std::fflush(stdout);
  WaitForEnd(&daemon, &*signals);
  for (const std::string& complaint : daemons.Stop(kGraceMs)) {
    std::fprintf(stderr, "ferryrun: %s\n", complaint.c_str());
  }
  return 0;
}

}  // namespace ferry::tools
