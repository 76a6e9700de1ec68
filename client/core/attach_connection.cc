#include "client/core/attach_connection.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "client/core/daemon_socket.h"
#include "common/passed_descriptors.h"
#include "common/version.h"

namespace ferry::client {
namespace {

// The text of a packet from the daemon, which may lack its final null byte.
std::string Text(const char* text) { return {text, strnlen(text, attach::kMaxText)}; }

Status CheckReply(int32_t code, const char* text) {
  return code == 0 ? Status() : Status(static_cast<ErrorCode>(code), Text(text));
}

}  // namespace

Status AttachConnection::Connect(const std::string& run_directory, uint64_t timeout_ms,
                                 const std::string& daemon_user) {
  const DaemonSocket wanted{run_directory, "attach.sock", SOCK_SEQPACKET, timeout_ms, daemon_user};
  int error = 0;
  StatusOr<UniqueFd> connected = ConnectToDaemon(wanted, &error);
  FERRY_RETURN_IF_ERROR(connected.status());
  if (error == ENOENT || error == ECONNREFUSED) {
    return {ErrorCode::kNoDaemon,
            "no ferryd listens on " + wanted.Path() +
                (error == ECONNREFUSED ? " (the socket is left over from one that died)" : "") +
                ". Start the program with ferryrun, or start ferryd and set FERRY_RUN_DIRECTORY"};
  }
  if (error != 0) {
    return StatusFromErrno(error, "connect to " + wanted.Path());
  }
  orders_event_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!orders_event_.valid()) {
    return StatusFromErrno(errno, "eventfd");
  }
  socket_ = std::move(*connected);
  return {};
}

Status AttachConnection::Exchange(attach::Kind kind, void* request, size_t request_bytes,
                                  const std::vector<int>& descriptors, void* reply,
                                  size_t reply_bytes, attach::Kind reply_kind,
                                  std::vector<UniqueFd>* received) {
  std::lock_guard lock(mutex_);
  auto* header = static_cast<attach::AttachHeader*>(request);
  *header = {attach::kMagic, static_cast<uint32_t>(kind), next_serial_++, kLayoutVersion,
             kProtocolVersion};
  if (SendWithDescriptors(socket_.get(), {static_cast<const std::byte*>(request), request_bytes},
                          descriptors, 0) < 0) {
    return errno == EPIPE || errno == ECONNRESET ? LastWords()
                                                 : StatusFromErrno(errno, "send to ferryd");
  }
  for (;;) {
    alignas(8) std::array<char, attach::kMaxPacketBytes> packet{};
    const ssize_t size = ReceiveWithDescriptors(
        socket_.get(), std::as_writable_bytes(std::span(packet)), received, 0);
    if (size < 0) {
      if (errno == EINTR) {
        continue;
      }
      return errno == EAGAIN
                 ? Status(ErrorCode::kTimeout, "ferryd did not answer on its attach socket")
                 : StatusFromErrno(errno, "receive from ferryd");
    }
    if (size == 0) {
      // The kernel looks for a packet first, and then for the hang-up: if both have come between
      // the two looks, it reports the hang-up, and the last packet lies there still.
      return LastWords();
    }
    attach::AttachHeader answer{};
    std::memcpy(&answer, packet.data(),
                std::min<size_t>(sizeof(answer), static_cast<size_t>(size)));
    if (answer.magic != attach::kMagic) {
      return {ErrorCode::kCorrupt, "what listens on the attach socket is not ferryd"};
    }
    if (answer.kind == static_cast<uint32_t>(attach::Kind::kGoodbye)) {
      attach::Reply goodbye{};
      std::memcpy(&goodbye, packet.data(), std::min(sizeof(goodbye), static_cast<size_t>(size)));
      goodbye_ = CheckReply(goodbye.code, goodbye.text);
      continue;
    }
    if (KeepUnasked(packet.data(), static_cast<size_t>(size))) {
      eventfd_write(orders_event_.get(), 1);  // the watcher may have slept through it
      continue;
    }
    if (answer.serial != header->serial) {
      received->clear();
      continue;  // an answer that came too late for its caller
    }
    if (answer.kind != static_cast<uint32_t>(reply_kind) &&
        answer.kind == static_cast<uint32_t>(attach::Kind::kReply)) {
      attach::Reply refusal{};
      std::memcpy(&refusal, packet.data(), std::min(sizeof(refusal), static_cast<size_t>(size)));
      Status status = CheckReply(refusal.code, refusal.text);
      return status.ok() ? Status(ErrorCode::kCorrupt, "ferryd gave an unexpected answer") : status;
    }
    if (static_cast<size_t>(size) != reply_bytes) {
      return {ErrorCode::kCorrupt, "ferryd's answer has " + std::to_string(size) + " bytes, not " +
                                       std::to_string(reply_bytes)};
    }
    std::memcpy(reply, packet.data(), reply_bytes);
    return {};
  }
}

StatusOr<attach::AttachReply> AttachConnection::Attach(const attach::AttachRequest& request) {
  attach::AttachRequest copy = request;
  attach::AttachReply reply{};
  std::vector<UniqueFd> none;
  FERRY_RETURN_IF_ERROR(Exchange(attach::Kind::kAttach, &copy, sizeof(copy), {}, &reply,
                                 sizeof(reply), attach::Kind::kAttachReply, &none));
  FERRY_RETURN_IF_ERROR(CheckReply(reply.code, reply.text));
  return reply;
}

StatusOr<attach::UserReply> AttachConnection::IdentifyUser() {
  attach::UserRequest request{};
  attach::UserReply reply{};
  std::vector<UniqueFd> none;
  FERRY_RETURN_IF_ERROR(Exchange(attach::Kind::kUser, &request, sizeof(request), {}, &reply,
                                 sizeof(reply), attach::Kind::kUserReply, &none));
  FERRY_RETURN_IF_ERROR(CheckReply(reply.code, reply.text));
  return reply;
}

StatusOr<AttachAnswer> AttachConnection::Ask(attach::Kind kind, void* request, size_t request_bytes,
                                             const std::vector<int>& descriptors) {
  attach::Reply reply{};
  AttachAnswer answer;
  FERRY_RETURN_IF_ERROR(Exchange(kind, request, request_bytes, descriptors, &reply, sizeof(reply),
                                 attach::Kind::kReply, &answer.descriptors));
  FERRY_RETURN_IF_ERROR(CheckReply(reply.code, reply.text));
  answer.size_bytes = reply.size_bytes;
  answer.reply = reply;
  return answer;
}

StatusOr<AttachAnswer> AttachConnection::SendSegments(uint64_t session_bytes, int session_fd,
                                                      uint64_t inbox_bytes, int inbox_fd) {
  attach::SegmentsRequest request{};
  request.session_bytes = session_bytes;
  request.inbox_bytes = inbox_bytes;
  StatusOr<AttachAnswer> answer =
      Ask(attach::Kind::kSegments, &request, sizeof(request), {session_fd, inbox_fd});
  takes_dmabufs_ = answer.ok() && (answer->reply.flags & attach::kRegionDmabuf) != 0;
  return answer;
}

StatusOr<AttachAnswer> AttachConnection::SendRegion(attach::RegionRequest request, int fd,
                                                    int dmabuf) {
  std::vector<int> descriptors;
  for (const int descriptor : {fd, dmabuf}) {
    if (descriptor >= 0) {
      descriptors.push_back(descriptor);
    }
  }
  return Ask(attach::Kind::kRegion, &request, sizeof(request), descriptors);
}

StatusOr<AttachAnswer> AttachConnection::PeerInbox(uint32_t rank) {
  attach::PeerRequest request{};
  request.rank = rank;
  return Ask(attach::Kind::kPeerInbox, &request, sizeof(request), {});
}

StatusOr<AttachAnswer> AttachConnection::PeerRegion(uint32_t rank, uint32_t region) {
  attach::PeerRequest request{};
  request.rank = rank;
  request.region = region;
  return Ask(attach::Kind::kPeerRegion, &request, sizeof(request), {});
}

StatusOr<UniqueFd> AttachConnection::CounterPages(uint32_t nic) {
  attach::NicRequest request{};
  request.nic = nic;
  StatusOr<AttachAnswer> answer = Ask(attach::Kind::kCounterPages, &request, sizeof(request), {});
  FERRY_RETURN_IF_ERROR(answer.status());
  if (answer->descriptors.size() != 1) {
    return Status(ErrorCode::kCorrupt, "ferryd's answer has no descriptor of a counter's page");
  }
  return std::move(answer->descriptors[0]);
}

// ---- Direct links ----

// Whether it was an order, or the rules. Call it with the lock held.
bool AttachConnection::KeepUnasked(const void* packet, size_t size_bytes) {
  attach::AttachHeader header{};
  std::memcpy(&header, packet, std::min(sizeof(header), size_bytes));
  if (header.kind == static_cast<uint32_t>(attach::Kind::kLink) &&
      size_bytes == sizeof(attach::LinkOrder)) {
    std::memcpy(&orders_.emplace_back(), packet, size_bytes);
    return true;
  }
  if (header.kind == static_cast<uint32_t>(attach::Kind::kLinkRules) &&
      size_bytes == sizeof(attach::LinkRules)) {
    std::memcpy(&rules_.emplace(), packet, size_bytes);
    rules_->source_address[sizeof(rules_->source_address) - 1] = '\0';
    return true;
  }
  return false;
}

// Takes what has come while nobody asked. Call it with the lock held.
void AttachConnection::ReadUnasked() {
  alignas(8) std::array<char, attach::kMaxPacketBytes> packet{};
  std::vector<UniqueFd> none;
  ssize_t size = 0;
  while ((size = ReceiveWithDescriptors(socket_.get(), std::as_writable_bytes(std::span(packet)),
                                        &none, MSG_DONTWAIT)) > 0) {
    attach::Reply goodbye{};
    if (KeepUnasked(packet.data(), static_cast<size_t>(size))) {
      continue;
    }
    std::memcpy(&goodbye, packet.data(), std::min(sizeof(goodbye), static_cast<size_t>(size)));
    if (goodbye.header.kind == static_cast<uint32_t>(attach::Kind::kGoodbye)) {
      goodbye_ = CheckReply(goodbye.code, goodbye.text);
    }
  }
}

std::optional<attach::LinkRules> AttachConnection::TakeRules() {
  std::lock_guard lock(mutex_);
  ReadUnasked();
  return std::exchange(rules_, std::nullopt);
}

std::optional<attach::LinkOrder> AttachConnection::TakeOrder() {
  std::lock_guard lock(mutex_);
  if (orders_.empty()) {
    ReadUnasked();
  }
  if (orders_.empty()) {
    return std::nullopt;
  }
  const attach::LinkOrder order = orders_.front();
  orders_.pop_front();
  return order;
}

Status AttachConnection::SendLinkReply(const attach::LinkReply& reply) {
  attach::LinkReply copy = reply;
  copy.header = {attach::kMagic, static_cast<uint32_t>(attach::Kind::kLinkReply), 0, kLayoutVersion,
                 kProtocolVersion};
  return SendWithDescriptors(socket_.get(), std::as_bytes(std::span(&copy, 1)), {}, 0) < 0
             ? StatusFromErrno(errno, "send to ferryd")
             : Status();
}

bool AttachConnection::AskForLife(uint32_t number) {
  attach::LifeQuestion question{};
  question.header = {attach::kMagic, static_cast<uint32_t>(attach::Kind::kLifeQuestion), 0,
                     kLayoutVersion, kProtocolVersion};
  question.number = number;
  return SendWithDescriptors(socket_.get(), std::as_bytes(std::span(&question, 1)), {},
                             MSG_DONTWAIT) >= 0;
}

void AttachConnection::GiveUp() { shutdown(socket_.get(), SHUT_RDWR); }

Status AttachConnection::Goodbye() {
  std::lock_guard lock(mutex_);
  return LastWords();
}

// For a connection that the daemon has closed. Call it with the lock held.
Status AttachConnection::LastWords() {
  ReadUnasked();
  return goodbye_.ok() ? Status(ErrorCode::kDaemonDied, "ferryd closed the connection") : goodbye_;
}

}  // namespace ferry::client
