// The length of files and of shared memory, where the process may have a limit for it (`ulimit -f`,
// RLIMIT_FSIZE), and the text of files.
//
// Any thread; blocks on the file system only.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "common/status.h"

namespace ferry {

// ftruncate, but a length beyond the limit is the error EFBIG only: no SIGXFSZ, which by default
// ends the process. Returns 0 or errno.
int ResizeFile(int fd, off_t size_bytes);

// Writes all of it. The error names `path`: "cannot write PATH: No space left on device".
Status WriteAll(int fd, std::string_view text, const std::string& path);

}  // namespace ferry
