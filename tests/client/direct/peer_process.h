// A rank with a direct link in a process of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "common/unique_fd.h"
#include "tests/client/direct/linked_rank.h"

namespace ferry::client {

// Two ranks: 1 in a child, and 0 here, each with a direct link to the other that all their messages
// take.
class LinkedProcess {
 public:
  // Forks: no thread may be running. The child makes rank 1, calls `body` with it, and exits: with
  // 0 unless a test failure was noted.
  explicit LinkedProcess(std::function<void(LinkedRank& rank)> body,
                         const RankOptions& options = {});
  ~LinkedProcess();  // kills it
  LinkedProcess(const LinkedProcess&) = delete;
  LinkedProcess& operator=(const LinkedProcess&) = delete;

  // Rank 0, once the two have their link.
  LinkedRank& rank() { return *rank_; }
  void Kill();
  // Waits for the child, with this rank progressing. Its exit status; -1: a signal has ended it.
  int Join();

 private:
  UniqueFd daemon_;  // to the way by the daemons
  UniqueFd control_;
  pid_t child_ = -1;
  std::unique_ptr<LinkedRank> rank_;
};

// For both sides: progresses until it is complete (20 s at most). Its error.
ErrorCode WaitFor(LinkedRank& rank, uint32_t request);

}  // namespace ferry::client
