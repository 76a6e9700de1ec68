// Where the ranks of this machine run: below a guard (guard.h), which starts them for ferryrun or
// an agent, tells how they end, and leaves nothing of them when ferryrun ends, however it does.
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
  // Starts the guard. In a process of one thread, after SignalSource::Create.
  static StatusOr<Slots> Create();
  Slots(Slots&& other) noexcept;
  Slots& operator=(Slots&&) = delete;
  ~Slots() { Finish(); }

  // As Spawn; the program is killed with the guard. kSystem: the guard is gone.
  StatusOr<pid_t> Start(const SpawnRequest& request);

  // The pipe by which ranks tell of their lives (common/rank_notice.h). Programs find its write end
  // under this number; the read end is readable when a notice waits.
  int fd_of_ranks() const { return notices_.write.get(); }
  int notice_fd() const { return notices_.read.get(); }
  std::optional<RankNotice> NextNotice() const;

  // Readable when the guard has said something, or is gone.
  int fd() const { return socket_.get(); }
  // Takes that.
  void Receive();
  // How a program that was started here has ended.
  std::optional<ProcessEnd> EndOf(pid_t pid) const;
  // Whether the guard was killed. Its ranks are gone with it, then; EndAll ends what they started.
  bool lost() const { return lost_; }
  // `spared`: children of ferryrun that have nothing to do with ranks.
  void EndAll(const std::vector<pid_t>& spared);

  // To the process groups of all ranks that have not ended.
  void Signal(int signal);
  // Kills what is left of the ranks, and of what they started in this session. Ends are known then.
  // A process that made a session of its own (setsid, as daemons do) lives on.
  void Finish();

 private:
  Slots() = default;
  bool Send(GuardOrderKind kind, int32_t number, std::string_view text = {},
            std::span<const int> streams = {});
  // The next word; nothing, if it has to be waited for and `waits` is false.
  std::optional<GuardWord> Next(bool waits);
  // The same, but ends of ranks are noted, and passed over.
  std::optional<GuardWord> Answer();
  void Note(const GuardWord& word);

  UniqueFd socket_;
  pid_t guard_ = -1;
  bool lost_ = false;
  Pipe notices_;
  std::map<pid_t, ProcessEnd> ends_;
};

}  // namespace ferry::tools
