#include "tests/support/fuse_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ferry::tests {
namespace {

constexpr uint32_t kMostWrite = 128 << 10;
constexpr size_t kMostRequest = kMostWrite + 4096;

struct CallName {
  const char* name;
  uint32_t opcode;
};
constexpr CallName kCalls[] = {
    {"lookup", FUSE_LOOKUP},      {"getattr", FUSE_GETATTR}, {"setattr", FUSE_SETATTR},
    {"unlink", FUSE_UNLINK},      {"open", FUSE_OPEN},       {"read", FUSE_READ},
    {"write", FUSE_WRITE},        {"statfs", FUSE_STATFS},   {"release", FUSE_RELEASE},
    {"fsync", FUSE_FSYNC},        {"flush", FUSE_FLUSH},     {"create", FUSE_CREATE},
    {"fallocate", FUSE_FALLOCATE}};

uint32_t OpcodeOf(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kCalls), std::end(kCalls),
                                         [&](const CallName& call) { return name == call.name; });
  return found == std::end(kCalls) ? 0 : found->opcode;
}

// The origin's file behind the handle that Open or Create has given.
int FileOf(uint64_t handle) { return static_cast<int>(handle); }

void Fill(const struct stat& facts, fuse_attr* attributes) {
  attributes->ino = facts.st_ino;
  attributes->size = static_cast<uint64_t>(facts.st_size);
  attributes->blocks = static_cast<uint64_t>(facts.st_blocks);
  attributes->atime = static_cast<uint64_t>(facts.st_atim.tv_sec);
  attributes->mtime = static_cast<uint64_t>(facts.st_mtim.tv_sec);
  attributes->ctime = static_cast<uint64_t>(facts.st_ctim.tv_sec);
  attributes->atimensec = static_cast<uint32_t>(facts.st_atim.tv_nsec);
  attributes->mtimensec = static_cast<uint32_t>(facts.st_mtim.tv_nsec);
  attributes->ctimensec = static_cast<uint32_t>(facts.st_ctim.tv_nsec);
  attributes->mode = facts.st_mode;
  attributes->nlink = static_cast<uint32_t>(facts.st_nlink);
  attributes->uid = facts.st_uid;
  attributes->gid = facts.st_gid;
  attributes->blksize = static_cast<uint32_t>(facts.st_blksize);
}

}  // namespace

struct FuseFolder::Request {
  fuse_in_header header;
  const char* body;
  size_t bytes;

  template <typename Body>
  const Body& As() const {
    return *reinterpret_cast<const Body*>(body);
  }
};

// ---- Life ---------------------------------------------------------------------------------------

std::unique_ptr<FuseFolder> FuseFolder::Mount(const std::string& mount_point,
                                              const std::string& origin, const Options& options,
                                              std::string* refusal) {
  UniqueFd device(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  UniqueFd folder(open(origin.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string data = "fd=" + std::to_string(device.get()) +
                           ",rootmode=40000,allow_other,user_id=" + std::to_string(geteuid()) +
                           ",group_id=" + std::to_string(getegid());
  if (!device.valid() || !folder.valid() ||
      mount("ferry-test", mount_point.c_str(), "fuse", MS_NOSUID | MS_NODEV, data.c_str()) != 0) {
    *refusal = std::string(device.valid() ? "mount of FUSE: " : "/dev/fuse: ") + strerror(errno);
    return nullptr;
  }
  return std::unique_ptr<FuseFolder>(
      new FuseFolder(std::move(device), std::move(folder), mount_point, options));
}

FuseFolder::FuseFolder(UniqueFd device, UniqueFd origin, std::string mount_point,
                       const Options& options)
    : device_(std::move(device)),
      origin_(std::move(origin)),
      mount_point_(std::move(mount_point)),
      options_(options),
      server_([this] { Serve(); }) {}

FuseFolder::~FuseFolder() {
  Abort();
  (void)umount2(mount_point_.c_str(), MNT_DETACH);
  server_.join();
}

// The mount stays where files are open.
void FuseFolder::Abort() { (void)umount2(mount_point_.c_str(), MNT_FORCE); }

void FuseFolder::Serve() {
  std::vector<char> buffer(kMostRequest);
  for (;;) {
    const ssize_t bytes = read(device_.get(), buffer.data(), buffer.size());
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) {
      continue;
    }
    if (bytes < static_cast<ssize_t>(sizeof(fuse_in_header))) {
      return;  // ENODEV: it is not mounted any more
    }
    Request request{};
    std::memcpy(&request.header, buffer.data(), sizeof(request.header));
    request.body = buffer.data() + sizeof(request.header);
    request.bytes = static_cast<size_t>(bytes) - sizeof(request.header);
    Answer(request);
  }
}

void FuseFolder::Reply(const Request& request, int error, const void* data, size_t bytes) const {
  fuse_out_header header{};
  header.unique = request.header.unique;
  header.error = -error;
  header.len = static_cast<uint32_t>(sizeof(header) + bytes);
  const iovec parts[] = {{&header, sizeof(header)}, {const_cast<void*>(data), bytes}};
  (void)!writev(device_.get(), parts, bytes == 0 ? 1 : 2);  // ENOENT: the caller was killed
}

// ---- Requests -----------------------------------------------------------------------------------

void FuseFolder::Answer(const Request& request) {
  const uint32_t opcode = request.header.opcode;
  const int fault = opcode < kMostCalls ? faults_[opcode].load(std::memory_order_relaxed) : 0;
  if (fault == kHangs) {
    unanswered_.fetch_add(1, std::memory_order_release);
    return;
  }
  if (opcode == FUSE_RELEASE) {
    close(FileOf(request.As<fuse_release_in>().fh));
  }
  // Faults are told by a lookup, which has to come through.
  if (fault != 0 && !(opcode == FUSE_LOOKUP && Obey(request.body))) {
    return Reply(request, fault);
  }
  switch (opcode) {
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      return;  // have no answer
    case FUSE_INIT:
      return Init(request);
    case FUSE_LOOKUP:
      return Lookup(request);
    case FUSE_GETATTR:
      return GetAttr(request);
    case FUSE_SETATTR:
      return SetAttr(request);
    case FUSE_OPEN:
      return Open(request);
    case FUSE_CREATE:
      return Create(request);
    case FUSE_READ:
      return Read(request);
    case FUSE_WRITE:
      return Write(request);
    case FUSE_READDIR:
      return ReadDirectory(request);
    case FUSE_STATFS:
      return StatFs(request);
    case FUSE_OPENDIR:
      return Reply(request, fuse_open_out{});
    case FUSE_FSYNC:
      return Reply(request, fsync(FileOf(request.As<fuse_fsync_in>().fh)) == 0 ? 0 : errno);
    case FUSE_UNLINK:
      return Reply(request, unlinkat(origin_.get(), request.body, 0) == 0 ? 0 : errno);
    case FUSE_FALLOCATE: {
      const auto& wish = request.As<fuse_fallocate_in>();
      const bool is_done =
          options_.allocates &&
          fallocate(FileOf(wish.fh), static_cast<int>(wish.mode), static_cast<off_t>(wish.offset),
                    static_cast<off_t>(wish.length)) == 0;
      return Reply(request, is_done ? 0 : options_.allocates ? errno : ENOSYS);
    }
    case FUSE_FLUSH:
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_DESTROY:
      return Reply(request, 0);
    default:
      return Reply(request, ENOSYS);
  }
}

void FuseFolder::Init(const Request& request) const {
  const auto& offered = request.As<fuse_init_in>();
  fuse_init_out init{};
  init.major = FUSE_KERNEL_VERSION;
  init.minor = std::min<uint32_t>(offered.minor, FUSE_KERNEL_MINOR_VERSION);
  init.max_readahead = offered.max_readahead;
  init.flags = offered.flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_ATOMIC_O_TRUNC |
                                FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES);
  init.max_write = kMostWrite;
  init.max_pages = kMostWrite / 4096;
  init.time_gran = 1;
  Reply(request, init);
}

// Returns true if the name tells what is to happen.
bool FuseFolder::Obey(const std::string& name) {
  const size_t first = name.find(':');
  const std::string what = name.substr(0, first);
  if (first == std::string::npos || (what != "fault" && what != "hang")) {
    return false;
  }
  const size_t second = name.find(':', first + 1);
  const uint32_t opcode = OpcodeOf(name.substr(first + 1, second - first - 1));
  const int error = what == "hang"                ? kHangs
                    : second == std::string::npos ? EIO
                                                  : std::atoi(name.c_str() + second + 1);
  faults_[opcode].store(error, std::memory_order_relaxed);
  return true;
}

void FuseFolder::Lookup(const Request& request) {
  const std::string name = request.body;
  if (Obey(name)) {
    return Reply(request, ENOENT);
  }
  fuse_entry_out entry{};
  const int error = FillEntry(name, &entry);
  if (error == ENOENT && options_.cached_s != 0) {
    entry = {};
    entry.entry_valid = options_.cached_s;  // that there is no such file
    return Reply(request, entry);
  }
  return error != 0 ? Reply(request, error) : Reply(request, entry);
}

const char* FuseFolder::NameOf(uint64_t node) const {
  return node == FUSE_ROOT_ID ? "." : names_[node - FUSE_ROOT_ID - 1].c_str();
}

int FuseFolder::FillAttributes(uint64_t node, fuse_attr* attributes) const {
  struct stat facts {};
  if (fstatat(origin_.get(), NameOf(node), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno;
  }
  Fill(facts, attributes);
  return 0;
}

int FuseFolder::FillEntry(const std::string& name, fuse_entry_out* entry) {
  struct stat facts {};
  if (fstatat(origin_.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno;
  }
  const auto [found, is_new] =
      nodes_.try_emplace({name, facts.st_ino}, FUSE_ROOT_ID + 1 + names_.size());
  if (is_new) {
    names_.push_back(name);
  }
  entry->nodeid = found->second;
  entry->generation = 1;
  entry->entry_valid = options_.cached_s;
  entry->attr_valid = options_.cached_s;
  Fill(facts, &entry->attr);
  return 0;
}

void FuseFolder::GetAttr(const Request& request) const {
  const auto& wish = request.As<fuse_getattr_in>();
  fuse_attr_out answer{};
  answer.attr_valid = options_.cached_s;
  if ((wish.getattr_flags & FUSE_GETATTR_FH) != 0) {  // its name may be gone
    struct stat facts {};
    if (fstat(FileOf(wish.fh), &facts) != 0) {
      return Reply(request, errno);
    }
    Fill(facts, &answer.attr);
    return Reply(request, answer);
  }
  const int error = FillAttributes(request.header.nodeid, &answer.attr);
  return error != 0 ? Reply(request, error) : Reply(request, answer);
}

void FuseFolder::SetAttr(const Request& request) const {
  const auto& wish = request.As<fuse_setattr_in>();
  const char* const name = NameOf(request.header.nodeid);
  int result = 0;
  if ((wish.valid & FATTR_SIZE) != 0) {
    const UniqueFd named(
        (wish.valid & FATTR_FH) != 0 ? -1 : openat(origin_.get(), name, O_WRONLY | O_CLOEXEC));
    result = ftruncate((wish.valid & FATTR_FH) != 0 ? FileOf(wish.fh) : named.get(),
                       static_cast<off_t>(wish.size));
  }
  if (result == 0 && (wish.valid & FATTR_MODE) != 0) {
    result = fchmodat(origin_.get(), name, wish.mode & 07777, 0);
  }
  if (result != 0) {
    return Reply(request, errno);
  }
  fuse_attr_out answer{};
  answer.attr_valid = options_.cached_s;
  struct stat facts {};
  const bool is_open = (wish.valid & FATTR_FH) != 0;
  if ((is_open ? fstat(FileOf(wish.fh), &facts)
               : fstatat(origin_.get(), name, &facts, AT_SYMLINK_NOFOLLOW)) != 0) {
    return Reply(request, errno);
  }
  Fill(facts, &answer.attr);
  return Reply(request, answer);
}

// The origin's file can be read and written whatever the open asks for, as a server's can.
void FuseFolder::Open(const Request& request) const {
  const int flags = static_cast<int>(request.As<fuse_open_in>().flags) & O_TRUNC;
  const int fd = openat(origin_.get(), NameOf(request.header.nodeid), O_RDWR | O_CLOEXEC | flags);
  if (fd < 0) {
    return Reply(request, errno == ENOENT ? ESTALE : errno);
  }
  fuse_open_out answer{};
  answer.fh = static_cast<uint64_t>(fd);
  answer.open_flags = options_.direct_io ? FOPEN_DIRECT_IO : 0;
  return Reply(request, answer);
}

void FuseFolder::Create(const Request& request) {
  const auto& wish = request.As<fuse_create_in>();
  const std::string name = request.body + sizeof(wish);
  const int fd =
      openat(origin_.get(), name.c_str(),
             O_RDWR | O_CREAT | O_CLOEXEC | (static_cast<int>(wish.flags) & (O_EXCL | O_TRUNC)),
             wish.mode & 07777);
  struct {
    fuse_entry_out entry;
    fuse_open_out open;
  } answer{};
  const int error = fd < 0 ? errno : FillEntry(name, &answer.entry);
  if (error != 0) {
    return Reply(request, error);
  }
  answer.open.fh = static_cast<uint64_t>(fd);
  answer.open.open_flags = options_.direct_io ? FOPEN_DIRECT_IO : 0;
  return Reply(request, answer);
}

void FuseFolder::Read(const Request& request) const {
  const auto& wish = request.As<fuse_read_in>();
  std::vector<char> data(wish.size);
  const ssize_t bytes =
      pread(FileOf(wish.fh), data.data(), data.size(), static_cast<off_t>(wish.offset));
  return bytes < 0 ? Reply(request, errno)
                   : Reply(request, 0, data.data(), static_cast<size_t>(bytes));
}

void FuseFolder::Write(const Request& request) const {
  const auto& wish = request.As<fuse_write_in>();
  const ssize_t bytes = pwrite(FileOf(wish.fh), request.body + sizeof(wish), wish.size,
                               static_cast<off_t>(wish.offset));
  if (bytes < 0) {
    return Reply(request, errno);
  }
  fuse_write_out answer{};
  answer.size = static_cast<uint32_t>(bytes);
  return Reply(request, answer);
}

void FuseFolder::ReadDirectory(const Request& request) const {
  const auto& wish = request.As<fuse_read_in>();
  std::vector<char> entries;
  const UniqueFd own(openat(origin_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const folder = fdopendir(dup(own.get()));
  if (folder == nullptr) {
    return Reply(request, errno);
  }
  uint64_t number = 0;
  while (const dirent* const found = readdir(folder)) {
    const size_t length = std::strlen(found->d_name);
    const size_t bytes = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
    if (number++ < wish.offset) {
      continue;
    }
    if (entries.size() + bytes > wish.size) {
      break;
    }
    fuse_dirent entry{};
    entry.ino = found->d_ino;
    entry.off = number;
    entry.namelen = static_cast<uint32_t>(length);
    entry.type = found->d_type;
    const size_t at = entries.size();
    entries.resize(at + bytes);
    std::memcpy(entries.data() + at, &entry, FUSE_NAME_OFFSET);
    std::memcpy(entries.data() + at + FUSE_NAME_OFFSET, found->d_name, length);
  }
  closedir(folder);
  Reply(request, 0, entries.data(), entries.size());
}

void FuseFolder::StatFs(const Request& request) const {
  struct statvfs facts {};
  if (fstatvfs(origin_.get(), &facts) != 0) {
    return Reply(request, errno);
  }
  fuse_statfs_out answer{};
  answer.st.blocks = facts.f_blocks;
  answer.st.bfree = facts.f_bfree;
  answer.st.bavail = facts.f_bavail;
  answer.st.files = facts.f_files;
  answer.st.ffree = facts.f_ffree;
  answer.st.bsize = static_cast<uint32_t>(facts.f_bsize);
  answer.st.frsize = static_cast<uint32_t>(facts.f_frsize);
  answer.st.namelen = 255;
  Reply(request, answer);
}

}  // namespace ferry::tests
