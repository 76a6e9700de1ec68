#include "mpi/io/range_lock.h"

#include <fcntl.h>

#include <cerrno>

namespace ferry::mpi {
namespace {

int SetLock(const PosixFile& file, short type, int64_t begin, int64_t end) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = begin;
  range.l_len = end - begin;
  int result = 0;
  do {
    result = fcntl(file.fd(), F_OFD_SETLKW, &range);
  } while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

RangeLock::~RangeLock() {
  if (file_ != nullptr) {
    (void)SetLock(*file_, F_UNLCK, begin_, end_);
  }
}

Failure RangeLock::Lock(const PosixFile& file, std::mutex* threads, int64_t begin, int64_t end,
                        bool is_write) {
  if (begin >= end || file.is_stream()) {
    return {};
  }
  threads_ = std::unique_lock(*threads);
  if (SetLock(file, is_write ? F_WRLCK : F_RDLCK, begin, end) != 0) {
    return FailureOfErrno(errno, "lock, for atomic mode, bytes of", file.name());
  }
  file_ = &file;
  begin_ = begin;
  end_ = end;
  return {};
}

}  // namespace ferry::mpi
