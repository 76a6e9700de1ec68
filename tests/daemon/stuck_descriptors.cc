#include "tests/daemon/stuck_descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace ferry::daemon {

StatusOr<UniqueFd> ConnectStream(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return StatusFromErrno(errno, "connect to " + path);
  }
  return fd;
}

// ---- LingeringSocket ----

LingeringSocket::LingeringSocket() {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const int buffer = 4096;  // fills soon
  setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return;
  }
  UniqueFd sender(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(sender.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    return;
  }
  receiver_.Reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const std::array<char, 65536> data{};
  while (send(sender.get(), data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  const linger minute{1, 60};
  if (setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &minute, sizeof(minute)) == 0) {
    sender_ = std::move(sender);
  }
}

void LingeringSocket::CloseOwn() { sender_.Reset(); }

// ---- StuckFiles ----

namespace {

constexpr char kOptions[] = "rootmode=40000,user_id=0,group_id=0,fd=";

fuse_attr AttributesOf(uint64_t node) {
  fuse_attr attributes{};
  attributes.ino = node;
  attributes.nlink = 1;
  attributes.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
  attributes.blksize = 4096;
  return attributes;
}

}  // namespace

StatusOr<std::unique_ptr<StuckFiles>> StuckFiles::Mount() {
  std::unique_ptr<StuckFiles> files(new StuckFiles());
  files->device_.Reset(open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!files->device_.valid()) {
    return Status(ErrorCode::kUnsupported, std::string("/dev/fuse: ") + strerror(errno));
  }
  char path[] = "/tmp/ferry-stuck-XXXXXX";
  if (mkdtemp(path) == nullptr) {
    return StatusFromErrno(errno, "mkdtemp");
  }
  files->directory_ = path;
  files->server_ = std::thread([&files = *files] { files.Serve(); });
  // Runs in a thread's own mount namespace, which ends with it: nothing is left behind.
  std::thread([&files = *files] { files.Enter(); }).join();
  if (!files->mounted_.ok()) {
    return files->mounted_;
  }
  return files;
}

StuckFiles::~StuckFiles() {
  stop_ = true;
  if (server_.joinable()) {
    server_.join();
  }
  if (root_ >= 0) {
    close(root_);
  }
  device_.Reset();  // the connection is aborted
  rmdir(directory_.c_str());
}

void StuckFiles::Enter() {
  const std::string options = kOptions + std::to_string(device_.get());
  if (unshare(CLONE_FS | CLONE_NEWNS) != 0 ||
      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("ferry-stuck", directory_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) !=
          0) {
    mounted_ = {ErrorCode::kUnsupported, std::string("mounting a FUSE: ") + strerror(errno)};
    return;
  }
  root_ = open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root_ < 0) {
    mounted_ = StatusFromErrno(errno, "opening a FUSE");
  }
}

StatusOr<int> StuckFiles::Open() {
  const int fd = openat(root_, "file", O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return StatusFromErrno(errno, "opening a file of a FUSE");
  }
  return fd;
}

void StuckFiles::Answer(uint64_t unique, int error, const void* bytes, size_t size) {
  fuse_out_header header{};
  header.len = static_cast<uint32_t>(sizeof(header) + size);
  header.error = -error;
  header.unique = unique;
  iovec parts[] = {{&header, sizeof(header)}, {const_cast<void*>(bytes), size}};
  (void)!writev(device_.get(), parts, size == 0 ? 1 : 2);
}

void StuckFiles::Serve() {
  std::vector<char> buffer(FUSE_MIN_READ_BUFFER + (1 << 16));
  while (!stop_) {
    pollfd waiting{device_.get(), POLLIN, 0};
    poll(&waiting, 1, 10);
    if (read(device_.get(), buffer.data(), buffer.size()) <
        static_cast<ssize_t>(sizeof(fuse_in_header))) {
      continue;
    }
    fuse_in_header request{};
    std::memcpy(&request, buffer.data(), sizeof(request));
    switch (request.opcode) {
      case FUSE_INIT: {
        fuse_init_out init{};
        init.major = FUSE_KERNEL_VERSION;
        init.minor = FUSE_KERNEL_MINOR_VERSION;
        init.max_write = 4096;
        Answer(request.unique, 0, &init, sizeof(init));
        break;
      }
      case FUSE_LOOKUP: {
        fuse_entry_out entry{};
        entry.nodeid = 2;
        entry.entry_valid = 1'000'000;  // its attributes are requested each time
        entry.attr = AttributesOf(2);
        Answer(request.unique, 0, &entry, sizeof(entry));
        break;
      }
      case FUSE_GETATTR: {
        if (request.nodeid != FUSE_ROOT_ID) {
          was_asked_ = true;
          break;
        }
        fuse_attr_out attributes{};
        attributes.attr_valid = 1'000'000;
        attributes.attr = AttributesOf(FUSE_ROOT_ID);
        Answer(request.unique, 0, &attributes, sizeof(attributes));
        break;
      }
      case FUSE_OPEN: {
        const fuse_open_out opened{};
        Answer(request.unique, 0, &opened, sizeof(opened));
        break;
      }
      case FUSE_FLUSH:
        ++waiting_;
        break;
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        break;
      default:
        Answer(request.unique, ENOSYS, nullptr, 0);
    }
  }
}

}  // namespace ferry::daemon
