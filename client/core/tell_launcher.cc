#include "client/core/tell_launcher.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/abort_notice.h"

namespace ferry::client {

void TellOfAbort(int abort_fd, uint32_t rank, int exit_code) {
  struct stat file {};
  if (abort_fd > STDERR_FILENO && fstat(abort_fd, &file) == 0 && S_ISFIFO(file.st_mode)) {
    const AbortNotice notice{rank, exit_code};
    [[maybe_unused]] const ssize_t size = write(abort_fd, &notice, sizeof(notice));
  }
}

}  // namespace ferry::client
