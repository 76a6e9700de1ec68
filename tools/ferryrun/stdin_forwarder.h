// Passes ferryrun's standard input on to one rank.
//
// It copies the input because a rank cannot inherit it: a rank has a process group of its own, and
// the terminal would stop it for reading. Main thread; nothing blocks.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "common/unique_fd.h"

namespace ferry::tools {

class StdinForwarder {
 public:
  StdinForwarder() = default;

  // Starts forwarding to `pipe`, the write end of the rank's standard input.
  void Start(UniqueFd pipe);
  // What to poll for next: the input, or room in the pipe. fd -1 (ignored by poll) when it is over.
  pollfd Interest() const;
  // Call it when that descriptor has polled ready.
  void Advance();

 private:
  UniqueFd pipe_;
  std::string waiting_;
};

}  // namespace ferry::tools
