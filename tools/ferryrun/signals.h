// Signals as data: blocked everywhere, read from a descriptor.
#pragma once

#include <optional>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::tools {

class SignalSource {
 public:
  // Blocks the signals that ferryrun handles. One that is ignored already stays ignored, and does
  // not come here: nohup and shells that start a command in the background mean it so. Call it
  // before any other thread starts (they inherit the mask), from the main thread. Children start
  // with nothing blocked.
  static StatusOr<SignalSource> Create();

  // Readable when a signal waits.
  int fd() const { return fd_.get(); }
  // Returns the next signal, or nothing, without blocking.
  std::optional<int> Next();
  // Takes all signals that wait, before there is a job. kCancelled: one of them ends ferryrun.
  Status CheckInterrupt();
  // Returns the signal for which CheckInterrupt has returned kCancelled.
  std::optional<int> interrupt() const { return interrupt_; }

 private:
  explicit SignalSource(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
  std::optional<int> interrupt_;
};

// Call it in a child before it executes a program: ignores the signals that were ignored before
// SignalSource::Create, and none that ferryrun ignores for itself. Async-signal-safe.
void RestoreIgnored();

// Returns true if this signal, sent to ferryrun, ends the job.
bool IsEnding(int signal);

}  // namespace ferry::tools
