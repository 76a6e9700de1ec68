// Tells others of this process's life in a job. ferryrun hears, by notices (common/rank_notice.h),
// that the process enters the job and leaves it, ends it, or has heard of an end; the user hears
// the names of the calls by which it enters and leaves.
//
// A process has one JobLife. Calling thread: any; Enter and Leave belong to the thread that joins
// and leaves the job. Nothing blocks unless thousands of notices wait for ferryrun.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/error_code.h"
#include "common/rank_notice.h"

namespace ferry::client {

class JobLife {
 public:
  static JobLife& Instance();

  // Sets the names of the calls that enter and leave the job from now on; both are literals.
  void SetCalls(const char* entry, const char* exit);
  const char* entry() const { return entry_; }
  const char* exit() const { return exit_; }
  // Sets the pipe to ferryrun (option abort_fd). A descriptor that is no longer a pipe is left
  // alone.
  void SetPipe(uint64_t pipe_fd, uint32_t rank);

  // Notes that this process is about to wait for the other ranks of the job, perhaps once more
  // after it has left.
  void Enter();
  // Notes that the daemon has taken this process as a rank of that program, of those that follow
  // each other in its place.
  void Meet(uint32_t program) const {
    Tell({.kind = RankNotice::Kind::kMeets, .program = program});
  }
  void Leave();
  // Tells ferryrun that the job ends because of this process. `is_exit`: the exit code counts as it
  // is.
  void EndJob(int exit_code, bool is_exit) const;
  // Tells ferryrun, once, if `error` says that another rank, a daemon or the job has ended.
  void HearOfEnd(ErrorCode error);

 private:
  JobLife() = default;
  void Tell(RankNotice notice) const;

  const char* entry_ = "ferry_init";
  const char* exit_ = "ferry_finalize";
  int pipe_fd_ = 0;  // 0: none
  uint32_t rank_ = 0;
  int owner_ = 0;  // children that are forked are no ranks
  bool is_inside_ = false;
  std::atomic<bool> has_heard_{false};
};

}  // namespace ferry::client
