// Helpers of the fault tests: a daemon that serves several jobs, jobs of rank programs that print
// what happens to them, and the time until they knew.
//
// One test thread. Times are printed, not judged tightly: a test allows ten times what Ferry
// promises, since it may share its machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::faults {

// Sanitizers slow everything down, and use memory of their own.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// A ferryd for the test, in a fresh run directory.
class DaemonForTest {
 public:
  explicit DaemonForTest(std::vector<std::string> flags = {});
  ~DaemonForTest();

  const std::string& run_directory() const { return run_directory_; }
  pid_t pid() const { return command_->pid(); }
  // The number of its descriptors of shared memory.
  size_t CountMemfds() const;
  // Ends it by SIGTERM; empty if it ended well and left nothing, otherwise what is wrong.
  std::string Stop();

 private:
  std::string directory_;
  std::string run_directory_;
  std::unique_ptr<e2e::Command> command_;
};

// The command line of ferryrun for `ranks` ranks of `program` on a daemon that runs already.
std::vector<std::string> JobOn(const DaemonForTest& daemon, int ranks,
                               const std::vector<std::string>& program);
// The same on private daemons, one for each of `nodes`.
std::vector<std::string> PrivateJob(int ranks, int nodes, std::vector<std::string> flags,
                                    const std::vector<std::string>& program);

// The run directories of the private daemons of a job, in the order of nodes.
std::vector<std::string> Daemons(const e2e::Command& job);

// Waits until each rank has said "under way".
bool UnderWay(e2e::Command* job, int ranks);
// The pids of the ranks, by rank; `program` is a part of their command line. Empty if not all are
// there.
std::vector<pid_t> RankPids(const e2e::Command& job, const std::string& program, int ranks);

// The line that a failed rank printed: "rank R: error CODE at NS: text".
struct RankError {
  int rank = 0;
  int code = 0;
  uint64_t at_ns = 0;
};
std::vector<RankError> ErrorsIn(const std::string& out);

// The latest of `errors` after `since_ns`, in milliseconds.
double LatestMs(const std::vector<RankError>& errors, uint64_t since_ns);

}  // namespace ferry::faults
