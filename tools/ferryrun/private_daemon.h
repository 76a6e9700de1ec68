// A ferryd that belongs to one ferryrun and ends with it.
//
// Main thread. Start returns at once; WaitUntilReady and Stop block for at most the time given.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"
#include "config/options.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/signals.h"

namespace ferry::tools {

class PrivateDaemon {
 public:
  // Starts `program` for node `node` in FOLDER/NODE, which is made here. Replaces the place, the
  // ports and the job in `options`.
  static StatusOr<PrivateDaemon> Start(const std::string& program, uint32_t node,
                                       const std::string& folder, config::Options options);
  PrivateDaemon(PrivateDaemon&& other) noexcept;
  PrivateDaemon& operator=(PrivateDaemon&&) = delete;
  ~PrivateDaemon();  // kills it if it still runs

  // Waits until it serves. kDaemonDied with its last words when it ends instead, kTimeout, and
  // kCancelled when a signal asks ferryrun to end.
  Status WaitUntilReady(uint64_t timeout_ms, SignalSource* signals);

  uint32_t node() const { return node_; }
  pid_t pid() const { return pid_; }
  const std::string& run_directory() const { return run_directory_; }
  // host:port for other daemons; known once it is ready.
  const std::string& control_address() const { return control_address_; }
  // "ferryd of node 0 (pid 12)".
  std::string Name() const;
  // The last lines that it wrote, each indented, with a line end before each.
  std::string LastWords() const;

  // Whether the user has been told that it ended by itself.
  bool end_was_reported() const { return end_was_reported_; }
  void MarkEndReported() { end_was_reported_ = true; }

  // Asks it to stop (SIGTERM); WaitUntilStopped kills it once the time is over.
  void AskToStop();
  ProcessEnd WaitUntilStopped(uint64_t timeout_ms);

 private:
  PrivateDaemon() = default;
  Status ReadAddress();

  uint32_t node_ = 0;
  pid_t pid_ = -1;
  bool end_was_reported_ = false;
  std::string run_directory_;
  std::string control_address_;
  UniqueFd ready_;  // read end: a line once it serves
  UniqueFd log_;    // a file without a name: its standard error
};

}  // namespace ferry::tools
