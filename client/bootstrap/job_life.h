// What this process tells others of its life in a job: ferryrun, by notices (common/rank_notice.h),
// that it enters the job and leaves it, ends it, or has heard of an end; and the user, how the
// calls by which it enters and leaves are named.
//
// There is one for the process. Calling thread: any, but Enter and Leave, which the thread calls
// that joins and leaves. Nothing blocks unless thousands of notices wait for ferryrun.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/error_code.h"
#include "common/rank_notice.h"

namespace ferry::client {

class JobLife {
 public:
  static JobLife& Instance();

  // The names of the calls that enter and leave from now on; literals.
  void SetCalls(const char* entry, const char* exit);
  const char* entry() const { return entry_; }
  const char* exit() const { return exit_; }
  // ferryrun's pipe: option abort_fd. A descriptor that is no pipe any more is left alone.
  void SetPipe(uint64_t pipe_fd, uint32_t rank);

  // About to wait for the others of the job; again, if it has left before.
  void Enter();
  void Leave();
  // The job ends because of this process. `is_exit`: the exit code counts as it is.
  void EndJob(int exit_code, bool is_exit) const;
  // If the error says that another rank has ended, a daemon, or the job; told once.
  void HearOfEnd(ErrorCode error);

 private:
  JobLife() = default;
  void Tell(RankNotice::Kind kind, int exit_code = 0, ErrorCode cause = ErrorCode::kOk) const;

  const char* entry_ = "ferry_init";
  const char* exit_ = "ferry_finalize";
  int pipe_fd_ = 0;  // 0: none
  uint32_t rank_ = 0;
  int owner_ = 0;  // children that are forked are no ranks
  bool is_inside_ = false;
  std::atomic<bool> has_heard_{false};
};

}  // namespace ferry::client
