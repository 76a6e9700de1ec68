// The notice that a rank writes to its launcher's pipe (option abort_fd) when it aborts its job, so
// that the launcher need not guess which rank it was. It is shorter than PIPE_BUF bytes, so notices
// of several ranks do not mix. Plain data.
#pragma once

#include <cstdint>

namespace ferry {

struct AbortNotice {
  uint32_t rank;
  int32_t exit_code;
};

}  // namespace ferry
