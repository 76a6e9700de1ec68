#include "daemon/control/attach_server.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "common/log.h"
#include "daemon/control/attach_connection.h"
#include "daemon/control/packet_socket.h"

namespace ferry::daemon {
namespace {

// 0 if there is no such file. Inodes of namespaces have 32 bits.
uint32_t InodeOf(const char* path) {
  struct stat info {};
  return stat(path, &info) == 0 ? static_cast<uint32_t>(info.st_ino) : 0;
}

}  // namespace

AttachServer::AttachServer(boost::asio::io_context& context, JobRegistry& registry,
                           Launchers& launchers, uint64_t attach_timeout_ms,
                           const AttachLimits& limits)
    : context_(context),
      registry_(registry),
      launchers_(launchers),
      attach_timeout_ms_(attach_timeout_ms),
      limits_(limits),
      daemon_pidfd_(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))),
      pid_namespace_(InodeOf("/proc/self/ns/pid")),
      user_namespace_(InodeOf("/proc/self/ns/user")),
      listener_(context) {}

AttachServer::~AttachServer() { Stop(); }

Status AttachServer::Listen(const std::string& path, bool for_all) {
  if (!daemon_pidfd_.valid()) {
    return {ErrorCode::kUnsupported,
            "pidfd_open does not work here: Ferry needs Linux 5.4 or later"};
  }
  StatusOr<UniqueFd> socket = ListenSeqpacket(path, for_all ? 0666 : 0600);
  FERRY_RETURN_IF_ERROR(socket.status());
  listener_.assign(socket->Release());
  AcceptSoon();
  return {};
}

void AttachServer::Stop() {
  boost::system::error_code ignored;
  listener_.close(ignored);
  retry_.reset();
  connections_of_.clear();
  for (const auto& connection : std::exchange(connections_, {})) {
    connection->Close();
  }
}

void AttachServer::AcceptSoon() {
  listener_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                       [this](const boost::system::error_code& error) {
                         if (!error) {
                           AcceptAll();
                         }
                       });
}

void AttachServer::AcceptAll() {
  while (listener_.is_open()) {
    UniqueFd fd(accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid() && (errno == EMFILE || errno == ENFILE)) {
      // The connection stays in the queue: asking for it at once would only burn the processor.
      spdlog::error("attach socket: out of file descriptors: raise ulimit -n");
      retry_.emplace(context_, std::chrono::milliseconds(100));
      return retry_->async_wait([this](const boost::system::error_code& error) {
        if (!error) {
          AcceptAll();
        }
      });
    }
    if (!fd.valid()) {
      break;
    }
    Accept(std::move(fd));
  }
  AcceptSoon();
}

void AttachServer::Accept(UniqueFd fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return;
  }
  auto connection =
      std::make_shared<AttachConnection>(*this, std::move(fd), credentials.pid, credentials.uid);
  if (Status refusal = CheckLimits(credentials.uid); !refusal.ok()) {
    return connection->Goodbye(refusal);
  }
  connections_.insert(connection);
  ++connections_of_[credentials.uid];
  connection->Start();
}

Status AttachServer::CheckLimits(uid_t uid) const {
  const auto found = connections_of_.find(uid);
  if (found != connections_of_.end() && found->second >= limits_.of_user) {
    return {ErrorCode::kLimitExceeded,
            "uid " + std::to_string(uid) + " has " + std::to_string(found->second) +
                " connections to the attach socket, as many as one user may have (max_local_ranks "
                "and some more): end ranks or launchers"};
  }
  if (connections_.size() >= limits_.in_all) {
    return {ErrorCode::kLimitExceeded,
            "the attach socket has " + std::to_string(connections_.size()) +
                " connections, as many as all users together may have: try again later"};
  }
  return {};
}

void AttachServer::Remove(const std::shared_ptr<AttachConnection>& connection) {
  if (connections_.erase(connection) == 0) {
    return;
  }
  const auto user = connections_of_.find(connection->uid());
  if (--user->second == 0) {
    connections_of_.erase(user);
  }
}

}  // namespace ferry::daemon
