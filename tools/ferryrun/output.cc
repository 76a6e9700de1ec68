#include "tools/ferryrun/output.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace ferry::tools {

void LineSplitter::Feed(std::string_view bytes, std::string* out) {
  for (size_t end = bytes.find('\n'); end != bytes.npos; end = bytes.find('\n')) {
    out->append(label_).append(partial_).append(bytes.substr(0, end + 1));
    partial_.clear();
    bytes.remove_prefix(end + 1);
  }
  partial_.append(bytes);
  if (partial_.size() > kMaxLineBytes) {
    Finish(out);
  }
}

void LineSplitter::Finish(std::string* out) {
  if (partial_.empty()) {
    return;
  }
  out->append(label_).append(partial_);
  if (!label_.empty()) {
    out->push_back('\n');
  }
  partial_.clear();
}

// At most PIPE_BUF bytes, up to a line end if there is one: standard error may go the same way.
size_t OutputSink::ChunkSize(size_t start) const {
  const std::string_view chunk = std::string_view(text_).substr(start, PIPE_BUF);
  const size_t end = chunk.rfind('\n');
  return end == chunk.npos ? chunk.size() : end + 1;
}

int OutputSink::Flush() {
  // A descriptor that polls as writable takes PIPE_BUF bytes without blocking, so the stream's own
  // flags, which others share, need not change.
  size_t written = 0;
  int error_number = 0;
  while (written < text_.size() && error_number == 0) {
    pollfd ready = {fd_, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) {
      break;
    }
    const ssize_t size = write(fd_, text_.data() + written, ChunkSize(written));
    if (size > 0) {
      written += static_cast<size_t>(size);
    } else if (errno != EINTR && errno != EAGAIN) {
      error_number = errno;
    } else {
      break;
    }
  }
  text_.erase(0, error_number == 0 ? written : text_.size());
  return error_number;
}

}  // namespace ferry::tools
