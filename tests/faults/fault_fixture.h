// Helpers of the fault tests: a daemon that serves several jobs, jobs of rank programs that print
// what happens to them, and the time until they knew.
//
// One test thread. Times are printed, not judged tightly: a test allows ten times what Ferry
// promises, since it may share its machine.
#pragma once

#include <signal.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::faults {

// Errors of the library, by its numbers (ferry.h).
enum Error {
  kLimit = 13,
  kPeerDied = 14,
  kDaemonDied = 15,
  kNodeUnreachable = 16,
  kTimeout = 17,
  kWorkerDied = 31,
  kLinkDown = 32,  // the connection broke before a death was seen
};

// Sanitizers slow everything down, and use memory of their own.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// The number that the environment variable holds, which long runs set, or else `otherwise`.
int Setting(const char* variable, int otherwise);

// A ferryd for the test, in a fresh run directory.
class DaemonForTest {
 public:
  explicit DaemonForTest(const e2e::Words& flags = {});

  std::string run_directory() const { return directory_ / "run"; }
  pid_t pid() const { return command_->pid(); }
  // The number of its descriptors of shared memory.
  size_t CountMemfds() const;
  // Ends it by SIGTERM; fails the test unless it ends well and leaves nothing.
  void Stop();

 private:
  const e2e::TempDirectory directory_;
  const std::unique_ptr<e2e::Command> command_;
};

// The command line of ferryrun for `ranks` ranks of `program` on a daemon that runs already.
e2e::Words JobOn(const DaemonForTest& daemon, int ranks, const e2e::Words& program);
// The command line of ferryrun for `ranks` ranks of `program` on private daemons, one for each of
// `nodes`.
e2e::Words PrivateJob(int ranks, int nodes, const e2e::Words& flags, const e2e::Words& program);

// The exit code of a job in which a rank was killed.
inline constexpr int kRankKilled = 128 + SIGKILL;
// Checks that ranks 0 to `ranks` - 1 have printed "all right".
void ExpectAllRight(const std::string& out, int ranks);
// The pids of a job's private daemons; fails the test if there are not `count`.
std::vector<pid_t> DaemonPids(const e2e::Command& job, size_t count);

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
// Checks that `count` ranks have printed an error, each of `codes`; returns the errors.
std::vector<RankError> ExpectErrors(const std::string& out, size_t count,
                                    const std::vector<int>& codes);

// The latest of `errors` after `since_ns`, in milliseconds.
double LatestMs(const std::vector<RankError>& errors, uint64_t since_ns);

}  // namespace ferry::faults
