// The notices that a rank writes to its launcher's pipe (option abort_fd): when it enters the job
// and leaves it, when it has heard that another rank died, and when it ends the job. So the
// launcher knows whether a rank that ends has left in good order, and which end was the cause of
// others.
//
// A notice is shorter than PIPE_BUF bytes, so notices of several ranks do not mix. Plain data.
#pragma once

#include <cstdint>

namespace ferry {

struct RankNotice {
  enum class Kind : uint32_t {
    kAborts,      // the job, with `exit_code`: it has failed
    kExits,       // the same, but the exit code counts as it is, 0 too
    kEnters,      // it is about to wait in `entry` for the others to join; `exit` ends that
    kLeaves,      // it has done all that it has to
    kHeardOfEnd,  // of another rank, or of the job: if it ends now, that is a consequence
    kMeets,       // its daemon has taken it as a rank of `program`: it waits for the others there
  };
  static constexpr uint32_t kCallBytes = 32;

  Kind kind{};
  uint32_t rank = 0;
  int32_t exit_code = 0;
  // kHeardOfEnd: the ErrorCode by which; kDaemonDied: its daemon has died, or hangs.
  int32_t cause = 0;
  uint32_t process = 0;         // of the programs in one slot, which one says it
  uint32_t program = 0;         // of those that follow each other in its slot, from 1
  char entry[kCallBytes] = {};  // names of calls, ended by a null byte
  char exit[kCallBytes] = {};
};

}  // namespace ferry
