#include "daemon/attach/attach_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "common/log.h"
#include "common/process_handle.h"
#include "common/thread.h"
#include "daemon/attach/attach_connection.h"
#include "daemon/sockets/disposal.h"
#include "daemon/sockets/packet_socket.h"

namespace ferry::daemon {
namespace {

// The most kWhy of one user that are answered at a time.
constexpr int kMostQuestions = 4;

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
      pid_namespace_(InodeOf("/proc/self/ns/pid")),
      user_namespace_(InodeOf("/proc/self/ns/user")),
      memory_events_(context),
      gate_(kMostQuestions),
      acceptor_(context, "the attach socket", limits,
                {.take = [this](UniqueFd fd, const Caller& caller) { Take(std::move(fd), caller); },
                 .refuse = [this](UniqueFd fd, const Caller& caller,
                                  const Status& why) { Refuse(std::move(fd), caller, why); },
                 .make_room = {}}) {
  Disposal::Instance();  // starts best while there is little to close
}

AttachServer::~AttachServer() { Stop(); }

Status AttachServer::Listen(const std::string& path, bool for_all) {
  StatusOr<UniqueFd> own = OpenProcessHandle(getpid());
  FERRY_RETURN_IF_ERROR(own.status());
  daemon_pidfd_ = std::move(*own);
  if (!daemon_pidfd_.valid()) {
    spdlog::info(
        "the system has no pidfd_open (Linux before 5.3, or a filter of system calls): ranks and "
        "daemon notice each other's end by their connection");
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
  auto connection = std::make_shared<AttachConnection>(*this, std::move(fd), caller);
  connections_.insert(connection);
  connection->Start();
}

void AttachServer::Refuse(UniqueFd fd, const Caller& caller, const Status& why) {
  const auto refused = std::make_shared<AttachConnection>(*this, std::move(fd), caller);
  refused->Goodbye(why);
  refused->Close();  // at once: there may be no descriptor left for the next one
}

Status AttachServer::AskWhy(std::shared_ptr<Session> session,
                            std::function<void(const StatusOr<std::string>& verdict)> done) {
  if (why_ == nullptr) {
    return {ErrorCode::kUnsupported, "this daemon does not tell what ranks wait for"};
  }
  auto place = gate_.Enter(session->uid);
  if (!place.has_value()) {
    return {ErrorCode::kLimitExceeded, "several such questions are under way: ask again later"};
  }
  const uint64_t number = next_question_++;
  const auto kept = std::make_shared<QuestionGate::Place>(std::move(*place));
  StatusOr<std::thread> thread = StartThread(
      "ferry-why", "that asks what a rank waits for",
      [this, number, kept, session = std::move(session), done = std::move(done)] {
        boost::asio::post(context_, [this, number, kept, done, verdict = why_(*session)] {
          questions_.extract(number).mapped().join();
          done(verdict);
        });
      });
  FERRY_RETURN_IF_ERROR(thread.status());
  questions_.emplace(number, std::move(*thread));
  return {};
}

void AttachServer::Remove(const std::shared_ptr<AttachConnection>& connection) {
  connections_.erase(connection);
}

}  // namespace ferry::daemon
