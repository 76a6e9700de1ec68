#include "daemon/control/attach_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "daemon/control/attach_connection.h"
#include "daemon/sockets/disposal.h"
#include "daemon/sockets/packet_socket.h"

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
                           const ConnectionLimits& limits)
    : context_(context),
      registry_(registry),
      launchers_(launchers),
      attach_timeout_ms_(attach_timeout_ms),
      daemon_pidfd_(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))),
      pid_namespace_(InodeOf("/proc/self/ns/pid")),
      user_namespace_(InodeOf("/proc/self/ns/user")),
      memory_events_(context),
      acceptor_(context, "the attach socket", limits,
                {.take = [this](UniqueFd fd, const Caller& caller) { Take(std::move(fd), caller); },
                 .refuse = [this](UniqueFd fd, const Caller& caller,
                                  const Status& why) { Refuse(std::move(fd), caller, why); },
                 .make_room = {}}) {
  Disposal::Instance();  // starts best while there is little to close
}

AttachServer::~AttachServer() { Stop(); }

Status AttachServer::Listen(const std::string& path, bool for_all) {
  if (!daemon_pidfd_.valid()) {
    return {ErrorCode::kUnsupported,
            "pidfd_open does not work here: Ferry needs Linux 5.4 or later"};
  }
  StatusOr<UniqueFd> socket = ListenUnix(path, SOCK_SEQPACKET, for_all ? 0666 : 0600);
  FERRY_RETURN_IF_ERROR(socket.status());
  acceptor_.Start(std::move(*socket));
  if (UniqueFd events(fcntl(memory_.fd(), F_DUPFD_CLOEXEC, 0)); events.valid()) {
    memory_events_.assign(events.Release());
    WatchMemory();
  }
  return {};
}

void AttachServer::Stop() {
  acceptor_.Stop();
  boost::system::error_code ignored;
  memory_events_.close(ignored);
  for (const auto& connection : std::exchange(connections_, {})) {
    connection->Close();
  }
}

void AttachServer::WatchMemory() {
  memory_events_.async_wait(
      boost::asio::posix::stream_descriptor::wait_read,
      [this](const boost::system::error_code& error) {
        if (error) {
          return;
        }
        for (const MemoryOwner& owner : memory_.TakeVanished()) {
          registry_.EndSession(owner.job_id, owner.rank,
                               {ErrorCode::kCorrupt, RankText(owner.rank, owner.job_id) +
                                                         ": some of its memory has vanished while "
                                                         "ferryd used it (SIGBUS)"});
        }
        WatchMemory();
      });
}

void AttachServer::Take(UniqueFd fd, const Caller& caller) {
  auto connection =
      std::make_shared<AttachConnection>(*this, std::move(fd), caller.pid, caller.uid);
  connections_.insert(connection);
  connection->Start();
}

void AttachServer::Refuse(UniqueFd fd, const Caller& caller, const Status& why) {
  std::make_shared<AttachConnection>(*this, std::move(fd), caller.pid, caller.uid)->Goodbye(why);
}

void AttachServer::Remove(const std::shared_ptr<AttachConnection>& connection) {
  connections_.erase(connection);
}

}  // namespace ferry::daemon
