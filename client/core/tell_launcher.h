// What a rank tells the ferryrun that started it.
#pragma once

#include <cstdint>

namespace ferry::client {

// Tells the launcher that this rank aborts the job (common/abort_notice.h), before the other ranks
// fail because of it, so that the launcher knows whose end counts. `abort_fd` comes from the
// options; 0, or a descriptor that is no longer a pipe, is left alone. Any thread; does not block
// unless thousands of ranks abort at once.
void TellOfAbort(int abort_fd, uint32_t rank, int exit_code);

}  // namespace ferry::client
