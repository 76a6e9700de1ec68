// A command that starts agents which call ferryrun (called_hosts.h): its process, and what it says.
//
// Main thread; nothing blocks but HowEnded, for at most two seconds.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "tools/ferryrun/event_set.h"
#include "tools/ferryrun/launcher_process.h"

namespace ferry::tools {

class CallCommand {
 public:
  // Starts `words` as LauncherProcess does.
  static StatusOr<std::unique_ptr<CallCommand>> Start(const std::vector<std::string>& words,
                                                      const std::vector<std::string>& variables);

  // Calls `on_line` with each line of its output, and `on_end` once its process has ended, whenever
  // `events` is dispatched. `events` must outlive this object.
  void Serve(EventSet* events, std::function<void(std::string_view line)> on_line,
             std::function<void()> on_end);

  const std::string& name() const { return process_->name(); }
  pid_t pid() const { return process_->pid(); }
  bool HasExited() const { return process_->HasExited(); }
  void Terminate();  // asks it to end

  // When it first wrote of an error, and when it ended; 0: it has not.
  uint64_t error_ns() const { return error_ns_; }
  uint64_t ended_ns() const { return ended_ns_; }
  // Says how it ended: "srun exited with code 1".
  std::string HowEnded() { return process_->HowEnded(); }
  // Returns what it has written to standard error, after other words; empty: nothing.
  std::string Written();
  // Shows what it has written so far, and returns the descriptor for the rest.
  UniqueFd TakeErrors();

 private:
  explicit CallCommand(std::unique_ptr<LauncherProcess> process) : process_(std::move(process)) {}
  bool Hear();
  void HearErrors();
  void OnEnd();

  const std::unique_ptr<LauncherProcess> process_;
  EventSet* events_ = nullptr;
  std::function<void(std::string_view)> on_line_;
  std::function<void()> on_end_;
  UniqueFd exit_;  // of the process; not valid: the end of its output stands for its own
  uint64_t error_ns_ = 0;
  uint64_t ended_ns_ = 0;
  std::string output_;  // the line that has begun
  std::string errors_;  // until TakeErrors
};

}  // namespace ferry::tools
