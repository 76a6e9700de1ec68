#include "client/bootstrap/daemon_socket.h"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "common/number_text.h"
#include "common/peer_credentials.h"
#include "config/environment.h"

namespace ferry::client {
namespace {

constexpr uid_t kRoot = 0;
constexpr uint32_t kWholeMap = UINT32_MAX;  // users in the map of a namespace that has all

std::optional<uid_t> UserOf(const std::string& text) {
  if (const std::optional<uid_t> uid = NumberIn<uid_t>(text)) {
    return uid;
  }
  std::vector<char> room(1 << 14);
  passwd entry{};
  passwd* found = nullptr;
  getpwnam_r(text.c_str(), &entry, room.data(), room.size(), &found);
  return found == nullptr ? std::nullopt : std::optional(found->pw_uid);
}

// Returns true if `uid` is the kernel's overflow uid, by which a process in a user namespace sees
// every user who is not in that namespace.
bool IsOutsider(uid_t uid) {
  uid_t overflow = 0;
  uint32_t inside = 0;
  uint32_t outside = 0;
  uint32_t count = 0;
  std::ifstream number("/proc/sys/fs/overflowuid");
  std::ifstream map("/proc/self/uid_map");
  if (!(number >> overflow) || uid != overflow || !(map >> inside >> outside >> count)) {
    return false;
  }
  return inside != 0 || outside != 0 || count != kWholeMap;
}

// kRunDirectory, unless `uid`, whose `what` is, may serve this process.
Status CheckUser(uid_t uid, const std::string& what, const std::string& daemon_user) {
  if (uid == kRoot || uid == geteuid() || IsOutsider(uid)) {
    return {};
  }
  if (!daemon_user.empty()) {
    const std::optional<uid_t> user = UserOf(daemon_user);
    if (!user) {
      return {ErrorCode::kConfiguration, "daemon_user: there is no user " + daemon_user};
    }
    if (uid == *user) {
      return {};
    }
  }
  return {ErrorCode::kRunDirectory,
          what + " uid " + std::to_string(uid) + ", not root's or your own (uid " +
              std::to_string(geteuid()) +
              "): who serves it would have your jobs' secrets and memory. Name another run "
              "directory (FERRY_RUN_DIRECTORY, --run_directory); if the ferryd of this site runs "
              "as that user, set FERRY_DAEMON_USER=" +
              std::to_string(uid)};
}

Status CheckDirectory(const DaemonSocket& wanted) {
  const std::string name = "run directory " + wanted.run_directory;
  struct stat info {};
  if (lstat(wanted.run_directory.c_str(), &info) != 0 ||
      !(S_ISDIR(info.st_mode) || S_ISLNK(info.st_mode))) {
    return {};  // connect says what is amiss
  }
  if (S_ISLNK(info.st_mode)) {
    return {ErrorCode::kRunDirectory,
            name +
                " is a symbolic link, which somebody may turn elsewhere: name the directory "
                "that it leads to"};
  }
  FERRY_RETURN_IF_ERROR(CheckUser(info.st_uid, name + " is of", wanted.daemon_user));
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return {ErrorCode::kRunDirectory,
            name +
                " can be written by other users, who might serve it in place of ferryd: chmod "
                "go-w it, or name another one"};
  }
  return {};
}

Status CheckServer(int socket, const DaemonSocket& wanted) {
  const StatusOr<ucred> server = PeerCredentials(socket);
  FERRY_RETURN_IF_ERROR(server.status());
  return CheckUser(server->uid, wanted.Path() + " is served by a process of", wanted.daemon_user);
}

}  // namespace

StatusOr<UniqueFd> ConnectToDaemon(const DaemonSocket& wanted, int* connect_error) {
  *connect_error = 0;
  if (config::IsUnmade(wanted.run_directory)) {
    *connect_error = ENOENT;  // whoever has made one of that very name
    return UniqueFd();
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = wanted.Path();
  if (path.size() >= sizeof(address.sun_path)) {
    return Status(ErrorCode::kRunDirectory,
                  "the run directory's path is too long for a Unix socket: " + path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  FERRY_RETURN_IF_ERROR(CheckDirectory(wanted));
  UniqueFd fd(socket(AF_UNIX, wanted.type | SOCK_CLOEXEC, 0));
  if (!fd.valid()) {
    return StatusFromErrno(errno, "socket");
  }
  const timeval timeout{static_cast<time_t>(wanted.timeout_ms / 1000),
                        static_cast<suseconds_t>(wanted.timeout_ms % 1000 * 1000)};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    *connect_error = errno;
    return UniqueFd();
  }
  FERRY_RETURN_IF_ERROR(CheckServer(fd.get(), wanted));
  return fd;
}

}  // namespace ferry::client
