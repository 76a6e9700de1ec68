#include "tools/ferryrun/stdin_forwarder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ferry::tools {

void StdinForwarder::Start(UniqueFd pipe) {
  pipe_ = std::move(pipe);
  fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);  // this end is ferryrun's alone
}

pollfd StdinForwarder::Interest() const {
  if (!pipe_.valid()) {
    return {-1, 0, 0};
  }
  return waiting_.empty() ? pollfd{STDIN_FILENO, POLLIN, 0} : pollfd{pipe_.get(), POLLOUT, 0};
}

void StdinForwarder::Advance() {
  if (waiting_.empty()) {
    char bytes[16 * 1024];
    const ssize_t size = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (size > 0) {
      waiting_.assign(bytes, static_cast<size_t>(size));
    } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
      pipe_.Reset();  // the end, or a terminal that we may not read in the background
      return;
    }
  }
  const ssize_t size = write(pipe_.get(), waiting_.data(), waiting_.size());
  if (size >= 0) {
    waiting_.erase(0, static_cast<size_t>(size));
  } else if (errno != EINTR && errno != EAGAIN) {
    pipe_.Reset();  // the rank has closed its input
  }
}

}  // namespace ferry::tools
