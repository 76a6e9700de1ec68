#include "common/own_folders.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace ferry {

namespace fs = std::filesystem;

bool IsFolderOf(const std::string& path, uid_t uid) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == uid &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::vector<std::string> FoldersOf(const std::string& base, const std::string& prefix, uid_t uid) {
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix) && IsFolderOf(entry->path(), uid)) {
      folders.push_back(entry->path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

bool IsSafeBase(const std::string& base, uid_t uid) {
  struct stat info {};
  if (stat(base.c_str(), &info) != 0 || (info.st_uid != uid && info.st_uid != 0)) {
    return false;
  }
  return (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (info.st_mode & S_ISVTX) != 0;
}

}  // namespace ferry
