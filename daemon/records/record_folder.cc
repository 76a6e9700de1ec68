#include "daemon/records/record_folder.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

namespace ferry::daemon {
namespace {

constexpr char kUnfinished[] = ".new-";    // a file that is being written
constexpr time_t kUnfinishedLifeS = 3600;  // of one whose ferryd has died meanwhile
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

// ---- Access control lists: the kernel's form of them (linux/posix_acl_xattr.h), little-endian
// ----

struct AclEntry {
  uint16_t tag;
  uint16_t rights;
  uint32_t id;
};
struct Acl {
  uint32_t version;
  std::array<AclEntry, 5> entries;
};
static_assert(sizeof(Acl) == 4 + 5 * 8);

enum : uint16_t { kOwner = 0x01, kUser = 0x02, kOwningGroup = 0x04, kMask = 0x10, kOther = 0x20 };
constexpr uint32_t kNoId = UINT32_MAX;
constexpr uint16_t kRead = 4;
constexpr uint16_t kWrite = 2;
constexpr uint16_t kEnter = 1;

AclEntry Entry(uint16_t tag, uint16_t rights, uint32_t id = kNoId) {
  return {htole16(tag), htole16(rights), htole32(id)};
}

// The owner may do all, `user` as `rights` says, others nothing.
bool LetUser(int fd, uid_t user, uint16_t rights) {
  const Acl acl = {htole32(2),
                   {Entry(kOwner, rights | kWrite), Entry(kUser, rights, user),
                    Entry(kOwningGroup, 0), Entry(kMask, rights), Entry(kOther, 0)}};
  return fsetxattr(fd, "system.posix_acl_access", &acl, sizeof(acl), 0) == 0;
}

// ---- Files ----

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

Status Failed(const std::string& what) { return StatusFromErrno(errno, what); }

bool WriteAll(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t size = write(fd, text.data() + at, text.size() - at);
    if (size < 0 && errno != EINTR) {
      return false;
    }
    at += size > 0 ? static_cast<size_t>(size) : 0;
  }
  return true;
}

}  // namespace

RecordFolder::RecordFolder(std::string path, UniqueFd fd, uint64_t kept)
    : path_(std::move(path)), fd_(std::move(fd)), kept_(kept) {}

StatusOr<RecordFolder> RecordFolder::Open(const std::string& path, uint64_t kept) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) {
    return Status(ErrorCode::kConfiguration, Failed("job_records: " + path).message());
  }
  if (info.st_uid != geteuid()) {
    return Status(ErrorCode::kConfiguration, "job_records: " + path + " belongs to uid " +
                                                 std::to_string(info.st_uid) +
                                                 ", not to ferryd's user");
  }
  if ((info.st_mode & kOthersWrite) != 0) {
    return Status(ErrorCode::kConfiguration,
                  "job_records: others may write to " + path + ": chmod go-w " + path);
  }
  return RecordFolder(path, std::move(fd), kept);
}

StatusOr<UniqueFd> RecordFolder::OpenOfUser(uid_t user, bool* is_shared) const {
  const std::string name = std::to_string(user);
  if (mkdirat(fd_.get(), name.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return Failed("making " + path_ + "/" + name);
  }
  UniqueFd folder(openat(fd_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!folder.valid() || fstat(folder.get(), &info) != 0) {
    return Failed("opening " + path_ + "/" + name);
  }
  if (info.st_uid != geteuid()) {
    return Status(ErrorCode::kSystem, path_ + "/" + name + " belongs to uid " +
                                          std::to_string(info.st_uid) + ", not to ferryd's user");
  }
  *is_shared = user == geteuid() || LetUser(folder.get(), user, kRead | kEnter);
  return folder;
}

Status RecordFolder::Write(uid_t user, const std::string& name, const std::string& text) {
  bool is_shared = false;
  StatusOr<UniqueFd> folder = OpenOfUser(user, &is_shared);
  FERRY_RETURN_IF_ERROR(folder.status());
  const std::string unfinished = kUnfinished + std::to_string(getpid());
  (void)unlinkat(folder->get(), unfinished.c_str(), 0);
  const UniqueFd file(openat(folder->get(), unfinished.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                             S_IRUSR | S_IWUSR));
  const std::string what = "writing " + path_ + "/" + std::to_string(user) + "/" + name;
  if (!file.valid()) {
    return Failed(what);
  }
  if (!WriteAll(file.get(), text)) {
    const Status status = Failed(what);
    (void)unlinkat(folder->get(), unfinished.c_str(), 0);
    return status;
  }
  is_shared = is_shared && (user == geteuid() || LetUser(file.get(), user, kRead));
  if (renameat(folder->get(), unfinished.c_str(), folder->get(), name.c_str()) != 0) {
    const Status status = Failed(what);
    (void)unlinkat(folder->get(), unfinished.c_str(), 0);
    return status;
  }
  RemoveOldest(folder->get());
  return is_shared ? Status()
                   : Status(ErrorCode::kUnsupported,
                            "the file system of " + path_ +
                                " has no access control lists: users cannot read their records");
}

void RecordFolder::RemoveOldest(int folder) const {
  // A description of its own: reading moves a position that duplicates would share.
  UniqueFd fd(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, CloseFolder> entries(fd.valid() ? fdopendir(fd.get()) : nullptr);
  if (entries == nullptr) {
    return;
  }
  (void)fd.Release();  // the stream's now
  const time_t now = time(nullptr);
  std::vector<std::string> names;
  while (const dirent* const entry = readdir(entries.get())) {
    const std::string name = entry->d_name;
    struct stat info {};
    if (name.starts_with(kUnfinished)) {
      if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
          info.st_mtime + kUnfinishedLifeS < now) {
        (void)unlinkat(folder, name.c_str(), 0);
      }
    } else if (name.ends_with(".json")) {
      names.push_back(name);
    }
  }
  if (names.size() > kept_) {
    const auto oldest = names.begin() + static_cast<ptrdiff_t>(names.size() - kept_);
    std::nth_element(names.begin(), oldest, names.end());
    std::for_each(names.begin(), oldest,
                  [&](const std::string& name) { (void)unlinkat(folder, name.c_str(), 0); });
  }
}

}  // namespace ferry::daemon
