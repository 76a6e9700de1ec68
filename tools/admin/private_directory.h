// The temporary directory of one ferryrun, removed with it.
//
// A lock held on the directory tells a living owner from one that was killed: each ferryrun first
// removes what killed ones of the same user left. Any thread; blocks on the file system only.
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

// The prefix of their names.
std::string PrivatePrefix(uid_t uid);

// Where such directories belong: the first of these that is usable, in which nobody else can rename
// what this user makes, and whose name leaves room for a Unix socket's, else config::TemporaryBase.
// They are what XDG_RUNTIME_DIR and TMPDIR say.
std::string PrivateBase(const std::string& runtime_directory,
                        const std::string& temporary_directory = "");

}  // namespace ferry::tools
