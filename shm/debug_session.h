// Where debuggers find a rank's session (shm/layout/session_layout.h) in its memory.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

// libferry's symbol `ferry_debug_session`.
struct DebugSession {
  uint64_t address;  // of SessionLayout; 0: the process is no rank now
  uint32_t layout_version;
  uint32_t rank;
  uint32_t job_size;
  uint32_t request_limit;
};
FERRY_ASSERT_LAYOUT(DebugSession, 24);

}  // namespace ferry::shm
