// Runs the ranks of this machine below a guard (guard.h), which starts them for ferryrun or an
// agent, tells how they end, and ends all their processes when ferryrun ends, however it does.
//
// Main thread. Start and Finish block for the guard's answer; the rest returns at once.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/rank_notice.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "tools/ferryrun/guard.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {

class Slots {
 public:
  // Starts the guard. Call it in a process of one thread, after SignalSource::Create.
  static StatusOr<Slots> Create();
  Slots(Slots&& other) noexcept;
  Slots& operator=(Slots&&) = delete;
  ~Slots() { Finish(); }

  // Starts a program as Spawn does; it is killed with the guard. kSystem: the guard is gone.
  StatusOr<pid_t> Start(const SpawnRequest& request);

  // The pipe by which ranks send notices of their lives (common/rank_notice.h). Programs find its
  // write end under this number; the read end is readable when a notice waits.
  int fd_of_ranks() const { return notices_.write.get(); }
  int notice_fd() const { return notices_.read.get(); }
  std::optional<RankNotice> NextNotice() const;

  // Readable when the guard has sent a word, or is gone.
  int fd() const { return socket_.get(); }
  // Takes the words that the guard has sent.
  void Receive();
  // Returns how a program that Start has started ended; nothing if it runs.
  std::optional<ProcessEnd> EndOf(pid_t pid) const;
  // Returns true if the guard was killed. Its ranks are gone with it, then; EndAll ends the
  // processes that they started.
  bool lost() const { return lost_; }
  // Ends all processes below this one but `spared`: children of ferryrun that have nothing to do
  // with ranks.
  void EndAll(const std::vector<pid_t>& spared);

  // Sends a signal to the process groups of all ranks that have not ended.
  void Signal(int signal);
  // Kills what is left of the ranks, and of what they started in this session, and ends the guard.
  // Afterwards EndOf knows the ends of all ranks. A process that made a session of its own (setsid,
  // as daemons do) lives on.
  void Finish();

 private:
  Slots() = default;
  bool Send(GuardOrderKind kind, int32_t number, std::string_view text = {},
            std::span<const int> streams = {});
  // Returns the guard's next word; nothing, if none has come and `waits` is false.
  std::optional<GuardWord> Next(bool waits);
  // Waits for the guard's answer and returns it; notes ends of ranks that come before it.
  std::optional<GuardWord> Answer();
  void Note(const GuardWord& word);

  UniqueFd socket_;
  pid_t guard_ = -1;
  bool lost_ = false;
  Pipe notices_;
  std::map<pid_t, ProcessEnd> ends_;
};

}  // namespace ferry::tools
