#include "mpi/io/posix_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace ferry::mpi {
namespace {

// The kernel moves at most 2,147,479,552 bytes in a call; whole pages of that.
constexpr int64_t kMostAtOnce = int64_t{1} << 30;
constexpr size_t kMostPlaces = 1024;  // that it takes in a call: UIO_MAXIOV

// <linux/magic.h> has only those of the kernel.
constexpr uint32_t kZfsMagic = 0x2FC12FC1;
constexpr uint32_t kLustreMagic = 0x0BD00BD0;
constexpr uint32_t kGpfsMagic = 0x47504653;
constexpr uint32_t kBeegfsMagic = 0x19830326;

int ClassOfErrno(int error) {
  switch (error) {
    case ENOENT:
      return MPI_ERR_NO_SUCH_FILE;
    case EEXIST:
      return MPI_ERR_FILE_EXISTS;
    case EACCES:
    case EPERM:
      return MPI_ERR_ACCESS;
    case EROFS:
      return MPI_ERR_READ_ONLY;
    case ENOSPC:
      return MPI_ERR_NO_SPACE;
    case EDQUOT:
      return MPI_ERR_QUOTA;
    case ENAMETOOLONG:
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
      return MPI_ERR_BAD_FILE;
    case ETXTBSY:
      return MPI_ERR_FILE_IN_USE;
    case ENOMEM:
      return MPI_ERR_NO_MEM;
    default:
      return MPI_ERR_IO;
  }
}

// Makes transfer(done) move what is left until all has moved, or nothing moves any more.
template <typename Transfer>
Failure MoveAll(int64_t bytes, const char* doing, const std::string& name, int64_t* moved,
                Transfer&& transfer) {
  *moved = 0;
  while (*moved < bytes) {
    const auto most = static_cast<size_t>(std::min(bytes - *moved, kMostAtOnce));
    const ssize_t now = transfer(*moved, most);
    if (now > 0) {
      *moved += now;
    } else if (now == 0) {
      break;
    } else if (errno != EINTR) {
      return FailureOfErrno(errno, doing, name);
    }
  }
  return {};
}

// While it lives, a write of this thread to a pipe whose reader has gone fails with EPIPE and
// raises no SIGPIPE: the program's own disposition of it, which may be to die, is not asked, and
// not touched. A signal that was pending before is left so.
class NoBrokenPipeSignal {
 public:
  NoBrokenPipeSignal() {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigemptyset(&pending);
    (void)sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipeSignal() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoBrokenPipeSignal(const NoBrokenPipeSignal&) = delete;
  NoBrokenPipeSignal& operator=(const NoBrokenPipeSignal&) = delete;

  // Takes the signal of a write that has just failed with EPIPE: the kernel raises it on the thread
  // that has written. Leaves errno as it is.
  void Take() const {
    const int error = errno;
    constexpr timespec kNow{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &kNow) < 0 && errno == EINTR) {
    }
    errno = error;
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

int OpenUnlessInterrupted(const std::string& name, int flags, mode_t mode) {
  int fd = -1;
  do {
    fd = open(name.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

template <typename SystemCall>
Failure Call(const char* doing, const std::string& name, SystemCall&& call) {
  int result = 0;
  do {
    result = call();
  } while (result != 0 && errno == EINTR);
  return result == 0 ? Failure() : FailureOfErrno(errno, doing, name);
}

}  // namespace

Failure FailureOfErrno(int error, const char* doing, const std::string& name) {
  // Texts go into MPI_MAX_ERROR_STRING bytes: of a very long name the beginning tells enough.
  constexpr size_t kMostOfName = 200;
  const std::string shown =
      name.size() <= kMostOfName
          ? name
          : name.substr(0, kMostOfName) + "... (" + std::to_string(name.size()) + " characters)";
  const char* const text = strerrordesc_np(error);
  return {ClassOfErrno(error), std::string("cannot ") + doing + " '" + shown +
                                   "': " + (text == nullptr ? "error " : text) +
                                   (text == nullptr ? std::to_string(error) : "")};
}

PosixFile::Nearness PosixFile::FindNearness() const {
  constexpr std::array<uint32_t, 8> kLocal = {
      TMPFS_MAGIC,       RAMFS_MAGIC,      EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC,
      BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, kZfsMagic};
  constexpr std::array<uint32_t, 4> kCoherent = {kLustreMagic, kGpfsMagic, kBeegfsMagic,
                                                 CEPH_SUPER_MAGIC};
  struct statfs facts {};
  if (fstatfs(fd_.get(), &facts) != 0) {
    return Nearness::kCached;
  }
  const auto is_of = [type = static_cast<uint32_t>(facts.f_type)](const auto& types) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  return is_of(kLocal)      ? Nearness::kLocal
         : is_of(kCoherent) ? Nearness::kCoherent
                            : Nearness::kCached;
}

void PosixFile::SetStale() const { shm::FetchAdd(changes_, 1U, std::memory_order_relaxed); }

// NFS finds out by the attributes whether its pages still hold. Other clients, such as those of
// FUSE, may not: their pages go. If a step fails, so will the read that follows.
void PosixFile::LookAgain() const {
  const uint32_t changes = shm::LoadRelaxed(changes_);
  struct statx facts {};
  (void)statx(fd_.get(), "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE | STATX_MTIME, &facts);
  struct statfs system {};
  if (fstatfs(fd_.get(), &system) != 0 || system.f_type != NFS_SUPER_MAGIC) {
    (void)posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  shm::StoreRelaxed(changes_seen_, changes);  // last: until then other threads look, too
}

Failure PosixFile::HandOver() const {
  return Call("write back", name_, [&] {
    const int result = sync_file_range(
        fd_.get(), 0, 0,
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    return result != 0 && (errno == ENOSYS || errno == EINVAL || errno == ESPIPE) ? 0 : result;
  });
}

PosixFile::PosixFile(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {
  is_stream_ = lseek(fd_.get(), 0, SEEK_CUR) < 0 && errno == ESPIPE;
}

Failure PosixFile::CheckHasOffsets(const std::string& name) {
  struct stat facts {};
  if (stat(name.c_str(), &facts) != 0 || !S_ISFIFO(facts.st_mode)) {
    return {};
  }
  return {MPI_ERR_UNSUPPORTED_OPERATION,
          "'" + name + "' is a pipe: it can be opened with MPI_MODE_SEQUENTIAL alone"};
}

Failure PosixFile::Open(const std::string& name, int flags, PosixFile* file) {
  UniqueFd fd(OpenUnlessInterrupted(name, flags, 0));
  if (!fd.valid()) {
    return FailureOfErrno(errno, "open", name);
  }
  // A directory can be opened to be read; it is no file all the same.
  struct stat facts {};
  if (fstat(fd.get(), &facts) != 0) {
    return FailureOfErrno(errno, "open", name);
  }
  if (S_ISDIR(facts.st_mode)) {
    return FailureOfErrno(EISDIR, "open", name);
  }
  *file = PosixFile(std::move(fd), name);
  return {};
}

Failure PosixFile::Create(const std::string& name, int flags, mode_t mode, bool exclusive,
                          PosixFile* file, bool* created) {
  UniqueFd fd(OpenUnlessInterrupted(name, flags | O_CREAT | O_EXCL, mode));
  *created = fd.valid();
  if (fd.valid()) {
    *file = PosixFile(std::move(fd), name);
    return {};
  }
  if (errno != EEXIST || exclusive) {
    return FailureOfErrno(errno, errno == EEXIST ? "create" : "open", name);
  }
  Failure failure = Open(name, flags, file);
  if (failure.error_class != MPI_ERR_NO_SUCH_FILE) {
    return failure;
  }
  // The name is a link to a file that does not exist, or was removed at this moment.
  fd.Reset(OpenUnlessInterrupted(name, flags | O_CREAT, mode));
  if (!fd.valid()) {
    return FailureOfErrno(errno, "open", name);
  }
  *file = PosixFile(std::move(fd), name);
  return {};
}

Failure PosixFile::Remove(const std::string& name) {
  return Call("remove", name, [&] { return unlink(name.c_str()); });
}

Failure PosixFile::ReadAt(int64_t offset, void* to, int64_t bytes, int64_t* moved) const {
  LookAgainIfStale();
  return MoveAll(bytes, "read from", name_, moved, [&](int64_t done, size_t most) {
    return pread(fd_.get(), static_cast<char*>(to) + done, most, offset + done);
  });
}

Failure PosixFile::WriteAt(int64_t offset, const void* from, int64_t bytes, int64_t* moved) const {
  Failure failure = MoveAll(bytes, "write to", name_, moved, [&](int64_t done, size_t most) {
    return pwrite(fd_.get(), static_cast<const char*>(from) + done, most, offset + done);
  });
  return failure.ok() && *moved < bytes ? FailureOfErrno(ENOSPC, "write to", name_) : failure;
}

Failure PosixFile::ReadScattered(int64_t offset, std::span<iovec> to, int64_t* moved) const {
  LookAgainIfStale();
  int64_t bytes = 0;
  for (const iovec& place : to) {
    bytes += static_cast<int64_t>(place.iov_len);
  }
  return MoveAll(bytes, "read from", name_, moved, [&](int64_t done, size_t /*most*/) {
    const ssize_t now = preadv(fd_.get(), to.data(),
                               static_cast<int>(std::min(to.size(), kMostPlaces)), offset + done);
    for (auto left = static_cast<size_t>(std::max<ssize_t>(now, 0)); left > 0;) {
      iovec& place = to.front();
      const size_t part = std::min(left, place.iov_len);
      place.iov_base = static_cast<char*>(place.iov_base) + part;
      place.iov_len -= part;
      left -= part;
      to = place.iov_len == 0 ? to.subspan(1) : to;
    }
    return now;
  });
}

Failure PosixFile::ReadNext(void* to, int64_t bytes, int64_t* moved) const {
  return MoveAll(bytes, "read from", name_, moved, [&](int64_t done, size_t most) {
    return read(fd_.get(), static_cast<char*>(to) + done, most);
  });
}

Failure PosixFile::WriteNext(const void* from, int64_t bytes, int64_t* moved) const {
  const NoBrokenPipeSignal no_signal;
  Failure failure = MoveAll(bytes, "write to", name_, moved, [&](int64_t done, size_t most) {
    const ssize_t now = write(fd_.get(), static_cast<const char*>(from) + done, most);
    if (now < 0 && errno == EPIPE) {
      no_signal.Take();
    }
    return now;
  });
  return failure.ok() && *moved < bytes ? FailureOfErrno(ENOSPC, "write to", name_) : failure;
}

Failure PosixFile::GetSize(int64_t* bytes) const {
  LookAgainIfStale();
  struct stat facts {};
  FERRY_RETURN_FAILURE(Call("find the size of", name_, [&] { return fstat(fd_.get(), &facts); }));
  *bytes = facts.st_size;
  if (S_ISBLK(facts.st_mode)) {
    *bytes = lseek(fd_.get(), 0, SEEK_END);
  }
  return *bytes < 0 ? FailureOfErrno(errno, "find the size of", name_) : Failure();
}

Failure PosixFile::SetSize(int64_t bytes) const {
  return Call("set the size of", name_, [&] { return ftruncate(fd_.get(), bytes); });
}

Failure PosixFile::Allocate(int64_t bytes) const {
  // fallocate takes no length of 0. The C library's function writes where the file system cannot,
  // and first reads what there is: of a file that is open for writing alone, only what lies behind
  // its end gets room then.
  if (bytes == 0) {
    return {};
  }
  int64_t from = 0;
  return Call("reserve room for", name_, [&] {
    errno = posix_fallocate(fd_.get(), from, bytes - from);
    struct stat facts {};
    if (errno == EBADF && from == 0 && fstat(fd_.get(), &facts) == 0 && facts.st_size > 0) {
      from = std::min<int64_t>(facts.st_size, bytes);
      errno = from == bytes ? 0 : posix_fallocate(fd_.get(), from, bytes - from);
    }
    return errno;
  });
}

Failure PosixFile::Sync() const {
  return Call("write back", name_, [&] {
    const int result = fsync(fd_.get());
    // Pipes, and devices without a memory of their own, have nothing to write back.
    return result != 0 && (errno == EINVAL || errno == EROFS) ? 0 : result;
  });
}

Failure PosixFile::Close() {
  const int fd = fd_.Release();
  // The descriptor is gone even if the call was interrupted, so it is made once.
  return fd < 0 || close(fd) == 0 || errno == EINTR ? Failure()
                                                    : FailureOfErrno(errno, "close", name_);
}

}  // namespace ferry::mpi
