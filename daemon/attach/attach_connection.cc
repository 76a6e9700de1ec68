#include "daemon/attach/attach_connection.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <iterator>
#include <utility>

#include "common/log.h"
#include "common/process_handle.h"
#include "common/version.h"
#include "daemon/attach/attach_server.h"
#include "daemon/session/rank_view.h"
#include "daemon/sockets/disposal.h"

namespace ferry::daemon {
namespace {

using attach::AttachHeader;
using attach::Kind;
using Descriptor = boost::asio::posix::stream_descriptor;

// Orders about direct links that a rank has not read. A stopped one has a few for each of its
// links; one that has more goes on wishing, or answering, and never reads what it is told.
constexpr size_t kMostOrders = 4096;
constexpr std::chrono::milliseconds kProcessLook(250);

void CopyText(const std::string& text, char (&to)[attach::kMaxText]) {
  const size_t size = std::min<size_t>(text.size(), attach::kMaxText - 1);
  memcpy(to, text.data(), size);
  to[size] = '\0';
}

}  // namespace

AttachConnection::AttachConnection(AttachServer& server, UniqueFd socket, const Caller& caller)
    : server_(server),
      caller_(caller),
      socket_(server.context_, socket.Release()),
      process_(server.context_),
      next_look_(server.context_) {}

void AttachConnection::Start() {
  ExpectSoon("request to attach");
  WaitForPacket();
}

void AttachConnection::Close() {
  is_ending_ = true;
  boost::system::error_code ignored;
  if (socket_.is_open()) {
    server_.acceptor_.Forget(socket_.native_handle());
    Disposal::Instance().CloseSocket(UniqueFd(socket_.release()));
  }
  process_.close(ignored);
  next_look_.cancel();
  deadline_.reset();
  session_.reset();
  if (const std::string token = std::exchange(launcher_, {}); !token.empty()) {
    server_.launchers_.Dismiss(token);
  }
}

// ---- Life ----

void AttachConnection::ExpectSoon(const char* what) {
  deadline_.emplace(server_.context_, std::chrono::milliseconds(server_.attach_timeout_ms_));
  deadline_->async_wait([self = shared_from_this(), what](const boost::system::error_code& error) {
    // Another deadline may have come when this one was over already.
    if (!error && !self->is_settled() && self->deadline_ &&
        self->deadline_->expiry() <= std::chrono::steady_clock::now()) {
      self->Refuse({}, {ErrorCode::kTimeout, std::string("attach socket: no ") + what +
                                                 " came in time (attach_timeout_ms)"});
    }
  });
}

void AttachConnection::WaitForPacket() {
  if (is_ending_) {
    return;
  }
  socket_.async_wait(Descriptor::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (!error && !self->is_ending_) {
                         self->OnReadable();
                       }
                     });
}

void AttachConnection::WaitForProcess() {
  if (!process_.is_open()) {
    if (ReadProcessState(caller_.pid) != ProcessState::kEnded) {
      LookForProcess();
    }
    return;
  }
  process_.async_wait(Descriptor::wait_read,
                      [self = shared_from_this()](const boost::system::error_code& error) {
                        if (!error && !self->is_ending_) {
                          self->OnProcess();
                        }
                      });
}

// Boost.Asio keeps what epoll has said of a descriptor until it is that one's turn. If the
// descriptor is closed meanwhile, its place may be another's already, who is then told of it.
void AttachConnection::OnProcess() {
  if (HasEnded(process_.native_handle())) {
    OnHangUp();
  } else {
    WaitForProcess();
  }
}

void AttachConnection::LookForProcess() {
  next_look_.expires_after(kProcessLook);
  next_look_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->is_ending_) {
      return;
    }
    if (ReadProcessState(self->caller_.pid) == ProcessState::kEnded) {
      self->OnHangUp();
    } else {
      self->LookForProcess();
    }
  });
}

void AttachConnection::OnReadable() {
  ForeignPacket packet(caller_.uid);
  const StatusOr<Received> received = ReceiveForeignPacket(socket_.native_handle(), &packet);
  if (!received.ok()) {
    return Refuse({}, received.status());
  }
  switch (*received) {
    case Received::kHangUp:
      return OnHangUp();
    case Received::kPacket:
      Handle(packet);
      break;
    case Received::kNothing:
      break;
  }
  WaitForPacket();
}

void AttachConnection::OnHangUp() {
  if (session_ == nullptr) {
    return EndSoon({ErrorCode::kPeerDied, ""});
  }
  const Status why(ErrorCode::kPeerDied, RankText(session_->rank, session_->job_id) + " (pid " +
                                             std::to_string(caller_.pid) + ") died");
  if (!is_served_ && !is_ending_) {
    LogRefused({why.code(), why.message() + " before its segments came"});
  }
  EndSoon(why);
}

void AttachConnection::LogRefused(const Status& why) const {
  static RateLimiter limiter(10, 1'000'000'000);
  LogLimited(limiter, spdlog::level::warn, "attach socket: pid {} uid {}: {}", caller_.pid,
             caller_.uid, why.message());
}

void AttachConnection::Refuse(const attach::AttachHeader& header, const Status& why) {
  if (is_ending_) {
    return;
  }
  LogRefused(why);
  attach::Reply goodbye{};
  goodbye.header = AnswerTo(header, Kind::kGoodbye);
  goodbye.code = static_cast<int32_t>(why.code());
  CopyText(why.message(), goodbye.text);
  // If it does not read, the hang-up must do.
  (void)SendPacket(socket_.native_handle(), goodbye).ok();
  EndSoon(why);
}

void AttachConnection::EndSoon(const Status& why) {
  if (std::exchange(is_ending_, true)) {
    return;
  }
  boost::asio::post(server_.context_, [self = shared_from_this(), why] {
    if (!self->socket_.is_open()) {
      return;  // the server has ended meanwhile
    }
    const std::shared_ptr<Session> session = self->session_;
    self->Close();
    self->server_.Remove(self);
    if (session != nullptr) {
      self->server_.registry_.EndSession(*session, why);
    }
  });
}

// ---- Answers ----

AttachHeader AttachConnection::AnswerTo(const AttachHeader& asked, Kind kind) {
  return {attach::kMagic, static_cast<uint32_t>(kind), asked.serial, kLayoutVersion,
          kProtocolVersion};
}

void AttachConnection::AnswerAttach(const attach::AttachHeader& asked, const Status& status) {
  attach::AttachReply reply{};
  reply.header = AnswerTo(asked, Kind::kAttachReply);
  reply.daemon_pid = static_cast<uint32_t>(getpid());
  reply.code = static_cast<int32_t>(status.code());
  CopyText(status.message(), reply.text);
  if (status.ok()) {
    reply.local_size = session_->local_size;
    reply.local_index = session_->local_index;
    CopyText(session_->job_id, reply.text);  // which of several that follow each other it is in
  }
  Send(reply);
}

void AttachConnection::Answer(const attach::AttachHeader& asked, const Status& status,
                              uint64_t size_bytes, std::span<const int> fds) {
  attach::Reply reply{};
  reply.code = static_cast<int32_t>(status.code());
  reply.size_bytes = size_bytes;
  CopyText(status.message(), reply.text);
  SendReply(asked, reply, fds);
}

void AttachConnection::AnswerRegion(const attach::AttachHeader& asked, const Region& region,
                                    std::span<const int> fds) {
  attach::Reply reply{};
  reply.size_bytes = region.size_bytes();
  reply.flags = (region.by_stream ? attach::kRegionByStream : 0) |
                (region.lent ? attach::kRegionLent : 0) |
                (region.is_staged() ? attach::kRegionStaged : 0);
  reply.allocation_id = region.allocation_id;
  reply.device = region.device;
  std::copy(region.handle.begin(), region.handle.end(), std::begin(reply.handle));
  SendReply(asked, reply, fds);
}

void AttachConnection::SendReply(const attach::AttachHeader& asked, attach::Reply& reply,
                                 std::span<const int> fds) {
  reply.header = AnswerTo(asked, Kind::kReply);
  Send(reply, fds);
}

void AttachConnection::Order(const attach::LinkOrder& order) {
  if (is_ending_) {
    return;
  }
  if (orders_.size() == kMostOrders) {
    return Refuse({},
                  {ErrorCode::kLimitExceeded,
                   "attach socket: the rank reads nothing that it is told about direct links: " +
                       std::to_string(kMostOrders) + " orders wait for it"});
  }
  attach::LinkOrder& last = orders_.emplace_back(order);
  last.header = AnswerTo({}, Kind::kLink);
  if (orders_.size() == 1) {
    SendOrders();
  }
}

void AttachConnection::SendOrders() {
  while (!orders_.empty() && !is_ending_) {
    const Status status = SendPacket(socket_.native_handle(), orders_.front());
    if (status.code() == ErrorCode::kWouldBlock) {
      return socket_.async_wait(
          Descriptor::wait_write,
          [self = shared_from_this()](const boost::system::error_code& error) {
            if (!error) {
              self->SendOrders();
            }
          });
    }
    orders_.pop_front();
    if (!status.ok()) {
      return orders_.clear();  // its hang-up is on its way
    }
  }
}

void AttachConnection::ExpectSent(const Status& sent) {
  pollfd other_end{socket_.native_handle(), 0, 0};
  if (!sent.ok() && poll(&other_end, 1, 0) == 0) {
    Refuse({}, {sent.code(), "attach socket: an answer cannot be sent: " + sent.message()});
  } else if (!sent.ok()) {
    OnHangUp();
  }
}

}  // namespace ferry::daemon
