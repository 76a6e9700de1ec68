// The temporary directory of one ferryrun, removed with it.
//
// A lock held on the directory tells a living owner from one that was killed: each ferryrun first
// removes the directories that killed ones of the same user have left. Any thread; blocks on the
// file system only.
#pragma once

#include <sys/types.h>

#include <string>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::tools {

class PrivateDirectory {
 public:
  // Makes BASE/ferryrun-UID-XXXXXX, mode 0700. kRunDirectory when that is not possible.
  static StatusOr<PrivateDirectory> Create(const std::string& base);
  PrivateDirectory(PrivateDirectory&&) = default;
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  ~PrivateDirectory();

  const std::string& path() const { return path_; }

 private:
  PrivateDirectory(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;
};

// Returns the prefix of such directories' names.
std::string PrivatePrefix(uid_t uid);

// Returns the directory to make such directories in: the first of the arguments (the values of
// XDG_RUNTIME_DIR and TMPDIR) that is usable, in which no other user can rename this user's files,
// and whose name leaves room for a Unix socket's; else config::TemporaryBase.
std::string PrivateBase(const std::string& runtime_directory,
                        const std::string& temporary_directory = "");

}  // namespace ferry::tools
