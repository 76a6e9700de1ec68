#include "tools/display/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace ferry::tools {
namespace {

Status IsThere(const std::string& path) {
  return {ErrorCode::kAlreadyExists,
          path + " is there already: --force replaces it, --output names another"};
}

}  // namespace

StatusOr<NewFile> NewFile::Create(const std::string& path, bool replace) {
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) {
      return StatusFromErrno(EISDIR, "cannot write " + path);
    }
    if (!replace) {
      return IsThere(path);
    }
  }
  std::string temporary = path + ".XXXXXX";
  UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) {
    return StatusFromErrno(errno, "cannot write " + path);
  }
  return NewFile(path, std::move(temporary), std::move(fd), replace);
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      fd_(std::move(other.fd_)),
      replace_(other.replace_) {}

NewFile::~NewFile() {
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
  }
}

Status NewFile::Add(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd_.get(), text.data(), text.size());
    if (count < 0 && errno != EINTR) {
      return StatusFromErrno(errno, "writing " + path_);
    }
    text.remove_prefix(count < 0 ? 0 : static_cast<size_t>(count));
  }
  return {};
}

Status NewFile::Commit(std::string_view text) {
  FERRY_RETURN_IF_ERROR(Add(text));
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(fd_.get(), 0666 & ~mask) != 0 || fsync(fd_.get()) != 0) {
    return StatusFromErrno(errno, "writing " + path_);
  }
  // A file that has appeared here meanwhile stays, too.
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(),
                replace_ ? 0 : RENAME_NOREPLACE) != 0) {
    return errno == EEXIST ? IsThere(path_) : StatusFromErrno(errno, "writing " + path_);
  }
  temporary_.clear();
  return {};
}

StatusOr<std::optional<NewFile>> FileIfNamed(const std::string& path, bool replace) {
  if (path.empty()) {
    return std::optional<NewFile>();
  }
  StatusOr<NewFile> file = NewFile::Create(path, replace);
  FERRY_RETURN_IF_ERROR(file.status());
  return std::optional<NewFile>(std::move(*file));
}

}  // namespace ferry::tools
