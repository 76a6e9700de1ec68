#include "daemon/control/attach_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/hex_text.h"
#include "common/log.h"
#include "common/process_handle.h"
#include "common/status.h"
#include "common/version.h"
#include "daemon/control/job_registry.h"
#include "daemon/control/rank_view.h"
#include "daemon/control/session_segments.h"
#include "daemon/sockets/disposal.h"
#include "daemon/sockets/packet_socket.h"
#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

using attach::AttachHeader;
using attach::Kind;
using Descriptor = boost::asio::posix::stream_descriptor;

// Orders about direct links that a rank has not read. A stopped one has a few for each of its
// links; one that has more goes on wishing, or answering, and never reads what it is told.
constexpr size_t kMostOrders = 4096;
constexpr std::chrono::milliseconds kProcessLook(250);

AttachHeader AnswerTo(const AttachHeader& asked, Kind kind) {
  return {attach::kMagic, static_cast<uint32_t>(kind), asked.serial, kLayoutVersion,
          kProtocolVersion};
}

void CopyText(const std::string& text, char (&to)[attach::kMaxText]) {
  const size_t size = std::min<size_t>(text.size(), attach::kMaxText - 1);
  memcpy(to, text.data(), size);
  to[size] = '\0';
}

std::string Versions(uint32_t layout, uint32_t protocol) {
  return "layout version " + std::to_string(layout) + ", protocol version " +
         std::to_string(protocol);
}

Status Malformed(const std::string& why) { return {ErrorCode::kCorrupt, "attach socket: " + why}; }

RateLimiter& RefusalLimiter() {
  static RateLimiter limiter(10, 1'000'000'000);
  return limiter;
}

// 0 if there is no such file. Inodes of namespaces have 32 bits.
uint32_t InodeOf(const char* path) {
  struct stat info {};
  return stat(path, &info) == 0 ? static_cast<uint32_t>(info.st_ino) : 0;
}

}  // namespace

// The last question of a rank about the daemon's life.
struct LifeAsked {
  std::atomic<uint32_t> number{0};
  std::atomic<bool> is_on_its_way{false};  // to the progress thread
};

// One connection of the attach socket.
//
// It ends in a turn of its own on the control thread (EndSoon), never inside a handler, nor inside
// a call of the registry's: what fails there, such as an answer to a rank that is gone, only marks
// it. So nobody's session or socket goes under his feet, and the registry is not called from
// itself.
class AttachConnection final : public RankConnection,
                               public std::enable_shared_from_this<AttachConnection> {
 public:
  AttachConnection(AttachServer& server, UniqueFd socket, pid_t pid, uid_t uid)
      : server_(server),
        pid_(pid),
        uid_(uid),
        socket_(server.context_, socket.Release()),
        process_(server.context_),
        next_look_(server.context_) {}

  void Start() {
    ExpectSoon("request to attach");
    WaitForPacket();
  }

  // Closes without a word, at once. Only for the server, which ends, and for EndSoon.
  void Close() {
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

  void Goodbye(const Status& why) override { Refuse({}, why); }

  void Order(const attach::LinkOrder& order) override {
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

 private:
  // Who connects, or attaches, and then does nothing takes the place of others.
  void ExpectSoon(const char* what) {
    deadline_.emplace(server_.context_, std::chrono::milliseconds(server_.attach_timeout_ms_));
    deadline_->async_wait(
        [self = shared_from_this(), what](const boost::system::error_code& error) {
          // Another deadline may have come when this one was over already.
          if (!error && !self->is_settled() && self->deadline_ &&
              self->deadline_->expiry() <= std::chrono::steady_clock::now()) {
            self->Refuse({}, {ErrorCode::kTimeout, std::string("attach socket: no ") + what +
                                                       " came in time (attach_timeout_ms)"});
          }
        });
  }

  // In order; what finds no room waits until the rank has read.
  void SendOrders() {
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

  void WaitForPacket() {
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

  // Its hang-up comes first in most cases. It does not come while a child of the rank keeps the
  // connection open.
  void WaitForProcess() {
    if (!process_.is_open()) {
      if (ReadProcessState(pid_) != ProcessState::kGone) {
        LookForProcess();
      }
      return;
    }
    process_.async_wait(Descriptor::wait_read,
                        [self = shared_from_this()](const boost::system::error_code& error) {
                          if (!error) {
                            self->OnHangUp();
                          }
                        });
  }

  // Where the system has no descriptors of processes, but a /proc in which this one was.
  void LookForProcess() {
    next_look_.expires_after(kProcessLook);
    next_look_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (error || self->is_ending_) {
        return;
      }
      if (ReadProcessState(self->pid_) == ProcessState::kGone) {
        self->OnHangUp();
      } else {
        self->LookForProcess();
      }
    });
  }

  void OnReadable() {
    ForeignPacket packet(uid_);
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

  bool identified() const { return session_ != nullptr || !launcher_.empty(); }
  bool is_settled() const { return is_served_ || !launcher_.empty(); }
  // Says kGoodbye with `why` and ends the connection, and the session with it.
  void Refuse(const attach::AttachHeader& header, const Status& why) {
    if (is_ending_) {
      return;
    }
    LogLimited(RefusalLimiter(), spdlog::level::warn, "attach socket: pid {} uid {}: {}", pid_,
               uid_, why.message());
    attach::Reply goodbye{};
    goodbye.header = AnswerTo(header, Kind::kGoodbye);
    goodbye.code = static_cast<int32_t>(why.code());
    CopyText(why.message(), goodbye.text);
    // If it does not read, the hang-up must do.
    (void)SendPacket(socket_.native_handle(), goodbye).ok();
    EndSoon(why);
  }

  void OnHangUp() {
    EndSoon({ErrorCode::kPeerDied, session_ == nullptr
                                       ? ""
                                       : RankText(session_->rank, session_->job_id) + " (pid " +
                                             std::to_string(pid_) + ") died"});
  }

  // Nothing more is read or said; the rest follows once whoever runs now has returned.
  void EndSoon(const Status& why) {
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

  void Handle(SocketPacket& packet) {
    AttachHeader header{};
    memcpy(&header, packet.bytes.data(), std::min(packet.size, sizeof(header)));
    if (Status status = CheckPacket(packet); !status.ok()) {
      if (header.kind == static_cast<uint32_t>(Kind::kAttach) &&
          status.code() == ErrorCode::kVersionMismatch) {
        AnswerAttach(header, status);  // in the form that a rank waits for
      }
      return Refuse(header, status);
    }
    Status status = Malformed("a packet of kind " + std::to_string(header.kind) + " and " +
                              std::to_string(packet.size) + " bytes is no request");
    const auto kind = static_cast<Kind>(header.kind);
    if (const auto* attach = packet.As<attach::AttachRequest>(); attach && kind == Kind::kAttach) {
      return HandleAttach(*attach);
    }
    if (const auto* segments = packet.As<attach::SegmentsRequest>();
        segments && kind == Kind::kSegments) {
      status = HandleSegments(*segments, packet);
    } else if (const auto* region = packet.As<attach::RegionRequest>();
               region && kind == Kind::kRegion) {
      status = HandleRegion(*region, packet);
    } else if (const auto* peer = packet.As<attach::PeerRequest>();
               peer && kind == Kind::kPeerInbox) {
      status = HandlePeerInbox(*peer);
    } else if (peer && kind == Kind::kPeerRegion) {
      status = HandlePeerRegion(*peer);
    } else if (const auto* user = packet.As<attach::UserRequest>(); user && kind == Kind::kUser) {
      status = HandleUser(*user);
    } else if (const auto* question = packet.As<attach::LifeQuestion>();
               question && kind == Kind::kLifeQuestion) {
      if (status = HandleLife(*question, packet); status.ok()) {
        return;  // which is answered in the session
      }
    } else if (const auto* link = packet.As<attach::LinkReply>();
               link && kind == Kind::kLinkReply) {
      if (status = HandleLink(*link, packet); status.ok()) {
        return;  // which has no answer
      }
    }
    if (status.code() == ErrorCode::kCorrupt) {
      Refuse(header, status);
    } else if (!status.ok()) {
      Answer(header, status);
    }
  }

  Status CheckPacket(const SocketPacket& packet) const {
    if (packet.size < sizeof(AttachHeader)) {
      return Malformed("a packet of " + std::to_string(packet.size) + " bytes has no header");
    }
    AttachHeader header{};
    memcpy(&header, packet.bytes.data(), sizeof(header));
    if (header.magic != attach::kMagic) {
      return Malformed("a packet does not begin with Ferry's magic number");
    }
    if (header.layout_version != kLayoutVersion || header.protocol_version != kProtocolVersion) {
      return {ErrorCode::kVersionMismatch,
              "the rank's libferry has " +
                  Versions(header.layout_version, header.protocol_version) + "; ferryd " +
                  kFerryVersion + " has " + Versions(kLayoutVersion, kProtocolVersion) +
                  ": use the same release of Ferry on both sides"};
    }
    return {};
  }

  void HandleAttach(const attach::AttachRequest& request) {
    StatusOr<std::shared_ptr<Session>> session = AttachAs(request);
    if (session.ok()) {
      session_ = *session;
      ExpectSoon("segments");
      WaitForProcess();
    } else {
      LogLimited(RefusalLimiter(), spdlog::level::warn, "attach socket: pid {} uid {}: {}", pid_,
                 uid_, session.status().message());
    }
    AnswerAttach(request.header, session.status());
  }

  Status HandleUser(const attach::UserRequest& request) {
    if (identified()) {
      return {ErrorCode::kAlreadyExists,
              session_ != nullptr ? "this connection is a rank's: a launcher needs one of its own"
                                  : "this connection is a launcher's already"};
    }
    const Launchers::Token token = server_.launchers_.Admit(uid_);
    launcher_ = HexText(token);
    attach::UserReply reply{};
    reply.header = AnswerTo(request.header, Kind::kUserReply);
    reply.daemon_pid = static_cast<uint32_t>(getpid());
    reply.uid = uid_;
    std::copy(token.begin(), token.end(), reply.token);
    Send(reply);
    return {};
  }

  Status HandleSegments(const attach::SegmentsRequest& request, SocketPacket& packet) {
    FERRY_RETURN_IF_ERROR(ExpectSession(packet, 2));
    if (session_->session_map.valid()) {
      return Malformed("the segments came twice");
    }
    FERRY_RETURN_IF_ERROR(AdoptSegments(&packet.fds[0], request.session_bytes, &packet.fds[1],
                                        request.inbox_bytes, server_.memory_, session_.get()));
    session_->private_memory_reachable = ProbePrivateMemory(pid_, uid_);
    FERRY_RETURN_IF_ERROR(server_.registry_.Serve(*session_));
    is_served_ = true;
    const std::array<int, 2> fds = {session_->doorbell.get(), server_.daemon_pidfd_.get()};
    attach::Reply reply{};
    reply.peer_timeout_ms = static_cast<uint32_t>(server_.registry_.peer_timeout_ms());
    SendReply(request.header, reply, std::span(fds).first(server_.daemon_pidfd_.valid() ? 2 : 1));
    if (auto rules = server_.registry_.LinkRulesOf(*session_); rules) {
      rules->header = AnswerTo({}, Kind::kLinkRules);
      Send(*rules);
    }
    return {};
  }

  Status HandleLink(const attach::LinkReply& reply, SocketPacket& packet) {
    FERRY_RETURN_IF_ERROR(ExpectSession(packet, 0));
    return server_.registry_.OnLinkReply(*session_, reply);
  }

  // One question of a rank at a time waits for the progress thread, which answers the last one.
  Status HandleLife(const attach::LifeQuestion& question, SocketPacket& packet) {
    FERRY_RETURN_IF_ERROR(ExpectSession(packet, 0));
    if (!session_->session_map.valid()) {
      return Malformed("a question came before the segments");
    }
    // Pairs with DaemonLife::Look, as does the other one.
    shm::StoreRelease(session_->layout()->life_read, question.number);
    life_asked_->number.store(question.number, std::memory_order_relaxed);
    if (!life_asked_->is_on_its_way.exchange(true, std::memory_order_acq_rel)) {
      server_.registry_.Probe([session = session_, asked = life_asked_] {
        // Pairs with the exchange above: a number of before it is seen here, or asked anew.
        asked->is_on_its_way.exchange(false, std::memory_order_acq_rel);
        shm::StoreRelease(session->layout()->life_answered,
                          asked->number.load(std::memory_order_relaxed));
      });
    }
    return {};
  }

  Status HandleRegion(const attach::RegionRequest& request, SocketPacket& packet) {
    const bool is_by_handle = (request.flags & attach::kRegionByStream) != 0 && packet.fds.empty();
    FERRY_RETURN_IF_ERROR(ExpectSession(packet, is_by_handle ? 0 : 1));
    StatusOr<QuotaHold> hold = server_.registry_.ReserveRegion(*session_, request.size_bytes);
    FERRY_RETURN_IF_ERROR(hold.status());
    StatusOr<std::shared_ptr<Region>> region =
        AdoptRegion(is_by_handle ? nullptr : &packet.fds[0], request, *session_, server_.memory_);
    FERRY_RETURN_IF_ERROR(region.status());
    (*region)->quota = std::move(*hold);
    if (!(*region)->by_stream) {
      OfferRegion(request.header, *region);
      return {};
    }
    server_.registry_.ImportRegion(
        *session_, *region, [weak = weak_from_this(), header = request.header, region = *region] {
          if (const auto self = weak.lock(); self != nullptr && !self->is_ending_) {
            self->OfferRegion(header, region);
          }
        });
    return {};
  }

  void OfferRegion(const attach::AttachHeader& asked, std::shared_ptr<Region> region) {
    if (const Status status = server_.registry_.OfferRegion(*session_, region); !status.ok()) {
      return Answer(asked, status);
    }
    AnswerRegion(asked, *region);
  }

  Status HandlePeerInbox(const attach::PeerRequest& request) {
    StatusOr<std::shared_ptr<Session>> peer = PeerOf(request);
    FERRY_RETURN_IF_ERROR(peer.status());
    const std::array<int, 1> fds = {(*peer)->inbox_fd.get()};
    Answer(request.header, {}, (*peer)->inbox_map.size_bytes(), fds);
    return {};
  }

  Status HandlePeerRegion(const attach::PeerRequest& request) {
    StatusOr<std::shared_ptr<Session>> peer = PeerOf(request);
    FERRY_RETURN_IF_ERROR(peer.status());
    const std::shared_ptr<const Region> region = (*peer)->FindRegion(request.region);
    if (region == nullptr) {
      return {ErrorCode::kInvalidBuffer, "rank " + std::to_string(request.rank) +
                                             " has no region " + std::to_string(request.region)};
    }
    const int fd = region->fd.get();
    AnswerRegion(request.header, *region, std::span(&fd, region->fd.valid() ? 1 : 0));
    return {};
  }

  // The session of the rank that a request names.
  StatusOr<std::shared_ptr<Session>> PeerOf(const attach::PeerRequest& request) const {
    if (session_ == nullptr) {
      return Malformed("a request came before kAttach");
    }
    return server_.registry_.FindPeer(*session_, request.rank);
  }

  StatusOr<std::shared_ptr<Session>> AttachAs(const attach::AttachRequest& request) {
    if (identified()) {
      return Status(ErrorCode::kAlreadyExists, session_ != nullptr
                                                   ? "this connection is attached already"
                                                   : "this connection is a launcher's");
    }
    if (request.job_secret_bytes > sizeof(request.job_secret) || pid_ == 0) {
      return Malformed(pid_ == 0 ? "the rank's process is in a foreign pid namespace: run it in "
                                   "ferryd's, or a child of it"
                                 : "the secret is longer than its field");
    }
    AttachClaim claim;
    claim.job_id.assign(request.job_id, strnlen(request.job_id, sizeof(request.job_id)));
    claim.secret.assign(reinterpret_cast<const char*>(request.job_secret),
                        request.job_secret_bytes);
    claim.rank = request.rank;
    claim.size = request.size;
    claim.pid = pid_;
    claim.uid = uid_;
    claim.shares_processes = server_.pid_namespace_ != 0 && server_.user_namespace_ != 0 &&
                             request.pid_namespace == server_.pid_namespace_ &&
                             request.user_namespace == server_.user_namespace_;
    StatusOr<std::shared_ptr<Session>> session = server_.registry_.Attach(claim, weak_from_this());
    if (!session.ok()) {
      return session;
    }
    ucred credentials{};
    socklen_t size = sizeof(credentials);
    if (getsockopt(socket_.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
      (*session)->gid = credentials.gid;
    }
    StatusOr<UniqueFd> process = OpenProcessHandle(pid_);
    UniqueFd doorbell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!process.ok() || !doorbell.valid()) {
      const Status why =
          process.ok() ? StatusFromErrno(errno, "an eventfd for a rank") : process.status();
      server_.registry_.EndSession(claim.job_id, claim.rank, why);
      return why;
    }
    if (!claim.shares_processes) {
      spdlog::info(
          "rank {} of job {}: {}: the job's ranks here copy large messages from private memory "
          "through their heaps",
          claim.rank, claim.job_id,
          request.pid_namespace == attach::kNoProcessCopies
              ? "the system refuses it process_vm calls (a filter of system calls?)"
          : request.pid_namespace == 0 || request.user_namespace == 0
              ? "its /proc is not usable"
              : "it lives in pid or user namespaces other than ferryd's");
    }
    if (process->valid()) {
      process_.assign(process->Release());
    }
    (*session)->doorbell = std::move(doorbell);
    return session;
  }

  Status ExpectSession(const SocketPacket& packet, size_t descriptors) const {
    if (session_ == nullptr) {
      return Malformed("a request came before kAttach");
    }
    if (packet.fds.size() != descriptors) {
      return Malformed("a request carries " + std::to_string(packet.fds.size()) +
                       " descriptors instead of " + std::to_string(descriptors));
    }
    return {};
  }

  void AnswerAttach(const attach::AttachHeader& asked, const Status& status) {
    attach::AttachReply reply{};
    reply.header = AnswerTo(asked, Kind::kAttachReply);
    reply.daemon_pid = static_cast<uint32_t>(getpid());
    reply.code = static_cast<int32_t>(status.code());
    CopyText(status.message(), reply.text);
    if (status.ok()) {
      reply.local_size = session_->local_size;
      reply.local_index = session_->local_index;
      std::copy(session_->token.begin(), session_->token.end(), reply.token);
    }
    Send(reply);
  }

  void Answer(const attach::AttachHeader& asked, const Status& status, uint64_t size_bytes = 0,
              std::span<const int> fds = {}) {
    attach::Reply reply{};
    reply.code = static_cast<int32_t>(status.code());
    reply.size_bytes = size_bytes;
    CopyText(status.message(), reply.text);
    SendReply(asked, reply, fds);
  }

  void AnswerRegion(const attach::AttachHeader& asked, const Region& region,
                    std::span<const int> fds = {}) {
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

  void SendReply(const attach::AttachHeader& asked, attach::Reply& reply,
                 std::span<const int> fds) {
    reply.header = AnswerTo(asked, Kind::kReply);
    Send(reply, fds);
  }

  // What does not go ends the connection: the rank is gone, or asks and does not read the answers,
  // or the kernel does not pass descriptors on. Who is still there is told why.
  template <typename Message>
  void Send(const Message& message, std::span<const int> fds = {}) {
    if (is_ending_) {
      return;
    }
    const Status status = SendPacket(socket_.native_handle(), message, fds);
    pollfd other_end{socket_.native_handle(), 0, 0};
    if (!status.ok() && poll(&other_end, 1, 0) == 0) {
      Refuse({}, {status.code(), "attach socket: an answer cannot be sent: " + status.message()});
    } else if (!status.ok()) {
      OnHangUp();
    }
  }

  AttachServer& server_;
  const pid_t pid_;
  const uid_t uid_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::posix::stream_descriptor process_;      // its handle, if there are such
  boost::asio::steady_timer next_look_;                // else
  std::optional<boost::asio::steady_timer> deadline_;  // of ExpectSoon
  std::shared_ptr<Session> session_;                   // once attached
  std::string launcher_;                               // the token of one, else empty
  std::deque<attach::LinkOrder> orders_;               // the rank has not had room for
  const std::shared_ptr<LifeAsked> life_asked_ = std::make_shared<LifeAsked>();
  bool is_served_ = false;  // by the data plane, for the rank
  bool is_ending_ = false;  // EndSoon
};

// ---- AttachServer ----

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
  auto connection =
      std::make_shared<AttachConnection>(*this, std::move(fd), caller.pid, caller.uid);
  connections_.insert(connection);
  connection->Start();
}

void AttachServer::Refuse(UniqueFd fd, const Caller& caller, const Status& why) {
  const auto refused =
      std::make_shared<AttachConnection>(*this, std::move(fd), caller.pid, caller.uid);
  refused->Goodbye(why);
  refused->Close();  // at once: there may be no descriptor left for the next one
}

void AttachServer::Remove(const std::shared_ptr<AttachConnection>& connection) {
  connections_.erase(connection);
}

}  // namespace ferry::daemon
