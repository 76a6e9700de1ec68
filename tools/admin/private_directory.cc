#include "tools/admin/private_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "common/own_folders.h"
#include "config/environment.h"

namespace ferry::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBaseBytes = 40;  // run_directory may have 80

// Locks the directory, if it is this user's and no process has it locked.
UniqueFd TryLock(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat directory {};
  if (!fd.valid() || fstat(fd.get(), &directory) != 0 || directory.st_uid != geteuid() ||
      flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return UniqueFd();
  }
  return fd;
}

void RemoveStale(const std::string& base) {
  std::error_code error;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(PrivatePrefix(geteuid()))) {
      if (const UniqueFd lock = TryLock(entry->path()); lock.valid()) {
        std::error_code ignored;
        fs::remove_all(entry->path(), ignored);
      }
    }
  }
}

// Returns true if the name still leads to the locked directory: another ferryrun may have taken it
// for stale in the moment before it was locked.
bool IsStillThere(const std::string& path, int fd) {
  struct stat by_name {};
  struct stat by_fd {};
  return stat(path.c_str(), &by_name) == 0 && fstat(fd, &by_fd) == 0 &&
         by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev;
}

}  // namespace

StatusOr<PrivateDirectory> PrivateDirectory::Create(const std::string& base) {
  RemoveStale(base);
  while (true) {
    std::string path = base + "/" + PrivatePrefix(geteuid()) + "XXXXXX";
    if (mkdtemp(path.data()) == nullptr) {
      return Status(ErrorCode::kRunDirectory,
                    StatusFromErrno(errno, "cannot make a directory in " + base).message() +
                        "; set TMPDIR or XDG_RUNTIME_DIR to one that you may write to");
    }
    errno = 0;
    UniqueFd lock = TryLock(path);
    const int error = errno;
    if (lock.valid() && IsStillThere(path, lock.get())) {
      return PrivateDirectory(std::move(path), std::move(lock));
    }
    // Another ferryrun has it locked, or has removed it; all else would happen again.
    if (!lock.valid() && error != 0 && error != EWOULDBLOCK && error != ENOENT) {
      rmdir(path.c_str());
      return StatusFromErrno(error, "cannot open " + path);
    }
  }
}

PrivateDirectory::~PrivateDirectory() {
  if (lock_.valid()) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
}

std::string PrivatePrefix(uid_t uid) { return "ferryrun-" + std::to_string(uid) + "-"; }

std::string PrivateBase(const std::string& runtime_directory,
                        const std::string& temporary_directory) {
  for (const std::string& directory : {runtime_directory, temporary_directory}) {
    if (directory.starts_with('/') && directory.size() <= kMaxBaseBytes &&
        access(directory.c_str(), W_OK | X_OK) == 0 && IsSafeBase(directory, geteuid())) {
      return directory;
    }
  }
  return config::TemporaryBase();
}

}  // namespace ferry::tools
