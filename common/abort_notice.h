// What a rank that aborts its job writes to the pipe that its launcher gave it (option abort_fd),
// so that the launcher need not guess from ends which rank it was. Fewer than PIPE_BUF bytes:
// notices of several ranks do not mix. Plain data.
#pragma once

#include <cstdint>

namespace ferry {

struct AbortNotice {
  uint32_t rank;
  int32_t exit_code;
};

}  // namespace ferry
