#include "daemon/control/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/file_size.h"
#include "common/version.h"
#include "config/environment.h"

namespace ferry::daemon {
namespace {

Status Refuse(const std::string& path, const std::string& why) {
  return {ErrorCode::kRunDirectory, "run directory " + path + " " + why};
}

Status RefuseErrno(const std::string& path, const std::string& what) {
  return Refuse(path, StatusFromErrno(errno, what).message());
}

// A file of ours there could not be made, for which not only rights are a reason.
Status RefuseFile(const std::string& path) {
  const bool rights = errno == EACCES || errno == EPERM || errno == EROFS;
  return RefuseErrno(path, rights ? "is not writable" : "cannot hold ferryd's files");
}

Status CheckDirectory(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    return RefuseErrno(path, "cannot be examined");
  }
  if (!S_ISDIR(info.st_mode)) {
    return Refuse(path, "is not a directory: remove it, or choose another with --run_directory");
  }
  if (info.st_uid != geteuid()) {
    return Refuse(path, "is owned by uid " + std::to_string(info.st_uid) + ", not by uid " +
                            std::to_string(geteuid()) +
                            " that ferryd runs as: choose another with --run_directory");
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Refuse(path, "can be written by other users: chmod 0700 it");
  }
  return {};
}

// The pid that the holder of the lock wrote there; "?" while it has not written yet.
std::string PidIn(int fd) {
  char text[32] = {};
  const ssize_t size = pread(fd, text, sizeof(text) - 1, 0);
  const std::string pid(text, size > 0 ? strcspn(text, "\n") : 0);
  return pid.empty() ? "?" : pid;
}

}  // namespace

RunDirectory::RunDirectory(std::string path, bool created)
    : path_(std::move(path)), created_(created) {}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      created_(other.created_),
      owner_pid_(std::exchange(other.owner_pid_, 0)),
      lock_(std::move(other.lock_)) {}

RunDirectory::~RunDirectory() {
  if (owner_pid_ == 0 || owner_pid_ != getpid()) {
    return;
  }
  RemoveFiles();
  unlink(LockFile().c_str());
  if (created_) {
    rmdir(path_.c_str());
  }
}

StatusOr<RunDirectory> RunDirectory::Open(const std::string& wanted, bool for_all) {
  std::string path = wanted;
  const bool created =
      config::IsUnmade(path) ? mkdtemp(path.data()) != nullptr : mkdir(path.c_str(), 0700) == 0;
  if (!created && errno != EEXIST) {
    return RefuseErrno(
        path, errno == ENOENT ? "cannot be created, its parent is missing" : "cannot be created");
  }
  RunDirectory directory(path, created);
  if (const Status status = directory.Take(for_all); !status.ok()) {
    if (created && directory.owner_pid_ == 0) {  // else it removes it itself
      rmdir(path.c_str());                       // unless another daemon has made files there
    }
    return status;
  }
  directory.RemoveFiles();  // of a daemon that died
  return directory;
}

Status RunDirectory::Take(bool for_all) {
  if (created_ && for_all && chmod(path_.c_str(), 0755) != 0) {  // whatever the umask says
    return RefuseErrno(path_, "cannot be opened to all users");
  }
  FERRY_RETURN_IF_ERROR(CheckDirectory(path_));
  return Lock();
}

Status RunDirectory::Lock() {
  // A daemon that ends unlinks its lock file. A daemon that opened that file before has locked a
  // file without a name, and starts again.
  while (owner_pid_ == 0) {
    FERRY_RETURN_IF_ERROR(TryLock());
  }
  return {};
}

Status RunDirectory::TryLock() {
  lock_.Reset(open(LockFile().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_.valid()) {
    return RefuseFile(path_);
  }
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return RefuseErrno(path_, "cannot be locked");
    }
    return {ErrorCode::kAlreadyExists,
            "run directory " + path_ + " is in use by ferryd with pid " + PidIn(lock_.get()) +
                ": stop that one, or choose another with --run_directory"};
  }
  struct stat locked {};
  struct stat named {};
  if (fstat(lock_.get(), &locked) != 0 || stat(LockFile().c_str(), &named) != 0 ||
      locked.st_ino != named.st_ino) {
    return {};
  }
  owner_pid_ = getpid();  // from now on it removes the file, whatever else fails
  if (ftruncate(lock_.get(), 0) != 0) {
    return RefuseFile(path_);
  }
  return WriteAll(lock_.get(), std::to_string(getpid()) + "\n", LockFile());
}

void RunDirectory::RemoveFiles() const {
  unlink(AttachSocket().c_str());
  unlink(ControlSocket().c_str());
  unlink(AdminSocket().c_str());
  unlink(InfoFile().c_str());
  unlink((InfoFile() + ".new").c_str());
}

bool RunDirectory::IsOpenToAll() const {
  struct stat info {};
  return stat(path_.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) != 0;
}

Status RunDirectory::WriteInfo(const Info& info) const {
  const nlohmann::json json = {{"pid", getpid()},
                               {"node_name", info.node_name},
                               {"control_address", info.control_address},
                               {"incarnation", std::to_string(info.incarnation)},
                               {"version", kFerryVersion},
                               {"layout_version", kLayoutVersion},
                               {"protocol_version", kProtocolVersion},
                               {"metrics_address", info.metrics_address}};
  const std::string draft = InfoFile() + ".new";
  const UniqueFd fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) {
    return RefuseFile(path_);
  }
  FERRY_RETURN_IF_ERROR(WriteAll(fd.get(), json.dump(2) + "\n", draft));
  if (rename(draft.c_str(), InfoFile().c_str()) != 0) {
    return RefuseFile(path_);
  }
  return {};
}

}  // namespace ferry::daemon
