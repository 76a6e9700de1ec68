#include "common/file_size.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace ferry {

int ResizeFile(int fd, off_t size_bytes) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  sigset_t before;
  sigset_t pending;
  sigemptyset(&pending);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  sigpending(&pending);
  const int error = ftruncate(fd, size_bytes) == 0 ? 0 : errno;
  // The signal came to this thread. One that waited before is not ours to take.
  if (error == EFBIG && sigismember(&pending, SIGXFSZ) == 0) {
    const timespec now{};
    sigtimedwait(&signals, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

Status WriteAll(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t size = write(fd, text.data(), text.size());
    if (size < 0 && errno != EINTR) {
      return StatusFromErrno(errno, "cannot write " + path);
    }
    text.remove_prefix(size < 0 ? 0 : static_cast<size_t>(size));
  }
  return {};
}

}  // namespace ferry
