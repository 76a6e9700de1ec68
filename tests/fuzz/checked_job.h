// Two daemons, and a job of their own user over both, whose ranks are processes that exchange
// messages and check every byte when they are told to (tests/faults/ranks/mixed).
//
// One thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>

#include "common/unique_fd.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/fuzz/whole_daemon.h"

namespace ferry::fuzz {

class CheckedJob {
 public:
  CheckedJob(const std::string& id, WholeDaemon& here, WholeDaemon& there);
  // Makes the ranks finalize and end.
  ~CheckedJob();
  CheckedJob(const CheckedJob&) = delete;
  CheckedJob& operator=(const CheckedJob&) = delete;

  // Both ranks send and receive once more: empty, or what went wrong. Blocks for half a minute at
  // most.
  std::string Exchange();

 private:
  struct Rank {
    pid_t pid = -1;
    UniqueFd talk;  // its standard input and output
    std::string said;
  };
  void Start(const std::string& id, uint32_t rank, const WholeDaemon& on);
  // False if there is no further line.
  bool ReadLine(Rank& rank, std::string* line);

  std::array<Rank, 2> ranks_;
  long rounds_ = 0;
};

// The daemons and files of such a job, in a folder of its own.
struct CheckedNodes {
  explicit CheckedNodes(const std::string& job)
      : here(WithWorker(directory), "here"),
        there(directory.path(), "there"),
        victim(job, here, there) {}

  daemon::TemporaryDirectory directory;
  WholeDaemon here;
  WholeDaemon there;
  CheckedJob victim;

 private:
  // Copies ferry-worker to where every user can execute it. The folder's path.
  static const std::string& WithWorker(const daemon::TemporaryDirectory& directory);
};

}  // namespace ferry::fuzz
