// The ranks that a ferryrun has started: where each one runs, here below a guard (slots.h) or on
// another host, which still run, and which MPI library those of this host have loaded.
//
// Main thread; nothing blocks but End. Ranks are numbers below size().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/rank_notice.h"
#include "tools/ferryrun/foreign_library.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/remote_host.h"
#include "tools/ferryrun/slots.h"

namespace ferry::tools {

class RankSlots {
 public:
  // `programs`: what ranks here run, as paths, if it may be without Ferry. `here` must outlive this object; null: no rank is
  // here.
  RankSlots(const std::vector<std::string>& programs, Slots* here)
      : here_(here), libraries_(programs) {}

  // ---- Which there are ----
  // Adds the next rank, from 0 on.
  void AddHere(pid_t pid) { ranks_.push_back({.pid = pid}); }
  void AddThere(RemoteHost* host) { ranks_.push_back({.host = host}); }
  // Forgets all of them, when all have ended.
  void Clear() { ranks_.clear(); }
  uint32_t size() const { return static_cast<uint32_t>(ranks_.size()); }
  // Returns true if there is such a rank, and it is on that host (null: here).
  bool IsOn(const RemoteHost* host, uint32_t rank) const {
    return rank < ranks_.size() && ranks_[rank].host == host;
  }
  RemoteHost* HostOf(uint32_t rank) const { return ranks_[rank].host; }  // null: here
  // "12", or "12 on host n1".
  std::string PidText(uint32_t rank) const;
  void SetPid(uint32_t rank, pid_t pid) { ranks_[rank].pid = pid; }

  // ---- Which still run ----
  bool HasEnded(uint32_t rank) const { return ranks_[rank].ended; }
  void MarkEnded(uint32_t rank) { ranks_[rank].ended = true; }
  // Marks all ranks of a host (null: here) as ended. Returns how many of them still ran.
  uint32_t Lose(const RemoteHost* host);
  uint32_t Running() const;
  // "the rank", or "the 3 ranks".
  std::string RunningText() const;

  // ---- Those of this host ----
  // Descriptors that are readable when NextNotice or TakeEnds have something; -1: no rank is here.
  int notice_fd() const { return here_ != nullptr ? here_->notice_fd() : -1; }
  int guard_fd() const { return here_ != nullptr ? here_->fd() : -1; }
  std::optional<RankNotice> NextNotice() const {
    return here_ != nullptr ? here_->NextNotice() : std::nullopt;
  }
  struct Ended {
    uint32_t rank;
    ProcessEnd end;
  };
  // Returns ranks that have ended and are not marked so. A rank's notices have come before.
  std::vector<Ended> TakeEnds();
  // Returns true if the guard was killed, and the ranks here with it.
  bool has_lost_guard() const { return here_ != nullptr && here_->lost(); }
  void Signal(int signal);
  // Ends what is left of the ranks here and the guard. If that was killed, processes that ranks
  // had started are still there, and are ended too: all below this one but `spared`.
  void End(const std::vector<pid_t>& spared);

  // ---- Their libraries ----
  // When to look next; 0: never.
  uint64_t WatchNs() const { return IsWatched() ? libraries_.next_ns() : 0; }
  void Watch(uint64_t now_ns);
  // Notes that ranks of another library have met, or are about to, so that there is no more to look
  // for. Returns true the first time.
  bool NoteOtherMeeting() { return !std::exchange(have_others_met_, true); }
  // Says which other MPI library the ranks use, so that each ran alone; empty if none.
  std::string ForeignLibraryText() const;

 private:
  struct Rank {
    pid_t pid = -1;              // -1: not known yet
    RemoteHost* host = nullptr;  // null: here
    bool ended = false;
  };

  // A job of one rank is none the worse for another library.
  bool IsWatched() const { return ranks_.size() > 1 && Running() > 0 && !have_others_met_; }

  Slots* const here_;
  std::vector<Rank> ranks_;
  LibraryWatch libraries_;
  bool have_others_met_ = false;
};

}  // namespace ferry::tools
