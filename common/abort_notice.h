// The notice that a rank writes to its launcher's pipe (option abort_fd) when it ends its job
// before the other ranks do, so that the launcher need not guess which rank it was. It is shorter
// than PIPE_BUF bytes, so notices of several ranks do not mix. Plain data.
#pragma once

#include <cstdint>

namespace ferry {

struct AbortNotice {
  uint32_t rank;
  int32_t exit_code;
  uint32_t is_exit;  // 1: the exit code counts as it is; 0: the job is aborted, so it has failed
};

}  // namespace ferry
