// What a rank tells the ferryrun that started it.
#pragma once

#include <cstdint>

namespace ferry::client {

// That it aborts the job (common/abort_notice.h): before the others fail for it, so that the
// launcher knows whose end counts. `abort_fd`: that of the options; 0, or a descriptor that has
// become something else than a pipe meanwhile, is left alone. Any thread; does not block unless
// thousands of ranks abort at once.
void TellOfAbort(int abort_fd, uint32_t rank, int exit_code);

}  // namespace ferry::client
