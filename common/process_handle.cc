#include "common/process_handle.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

namespace ferry {

StatusOr<UniqueFd> OpenProcessHandle(pid_t pid) {
  UniqueFd handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const int error = handle.valid() ? 0 : errno;
  if (error == 0 || IsRefusedCall(error)) {
    return handle;
  }
  const Status why = StatusFromErrno(error, "watching pid " + std::to_string(pid));
  return error == ESRCH ? Status(ErrorCode::kPeerDied, why.message()) : why;
}

bool HasEnded(int handle) {
  pollfd process{handle, POLLIN, 0};
  return poll(&process, 1, 0) > 0;
}

bool IsRefusedCall(int error_number) {
  return error_number == ENOSYS || error_number == EPERM || error_number == EACCES;
}

}  // namespace ferry
