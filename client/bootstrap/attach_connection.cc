#include "client/bootstrap/attach_connection.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <iterator>
#include <utility>

#include "client/bootstrap/daemon_socket.h"
#include "common/clock.h"
#include "common/passed_descriptors.h"
#include "common/version.h"

namespace ferry::client {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

// Waits for something for a time in which this process could see it come. A process that was
// stopped, or did not get a core, for so long notices the end of the time late, and what has come
// meanwhile may be there: then the time begins anew.
class Patience {
 public:
  explicit Patience(uint64_t timeout_ms)
      : timeout_ns_(std::min<uint64_t>(timeout_ms, INT_MAX) * kNsPerMs),
        end_ns_(MonotonicNs() + timeout_ns_) {}
  uint64_t rest_ns() const {
    const uint64_t now_ns = MonotonicNs();
    return end_ns_ > now_ns ? end_ns_ - now_ns : 0;
  }
  // Call it when nothing has come.
  bool IsOver() {
    const uint64_t now_ns = MonotonicNs();
    if (now_ns < end_ns_) {
      return false;
    }
    if (now_ns - end_ns_ < std::max(timeout_ns_ / 8, kMomentNs)) {
      return true;
    }
    end_ns_ = now_ns + timeout_ns_;
    return false;
  }

 private:
  static constexpr uint64_t kMomentNs = 20 * kNsPerMs;
  const uint64_t timeout_ns_;
  uint64_t end_ns_;
};

// The text of a packet from the daemon, which may lack its final null byte.
std::string Text(const char* text) { return {text, strnlen(text, attach::kMaxText)}; }

Status CheckReply(int32_t code, const char* text) {
  return code == 0 ? Status() : Status(static_cast<ErrorCode>(code), Text(text));
}

attach::AttachHeader HeaderOf(attach::Kind kind, uint32_t serial) {
  return {attach::kMagic, static_cast<uint32_t>(kind), serial, kLayoutVersion, kProtocolVersion};
}

Status Unexpected() { return {ErrorCode::kCorrupt, "ferryd gave an unexpected answer"}; }

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
  reader_event_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!orders_event_.valid() || !reader_event_.valid()) {
    return StatusFromErrno(errno, "eventfd");
  }
  path_ = wanted.Path();
  timeout_ms_ = timeout_ms;
  socket_ = std::move(*connected);
  return {};
}

// ---- Questions and answers ----

StatusOr<AttachConnection::Packet> AttachConnection::Exchange(attach::Kind kind,
                                                              std::span<std::byte> request,
                                                              const std::vector<int>& descriptors,
                                                              uint64_t timeout_ms) {
  Question question;
  {
    std::lock_guard lock(mutex_);
    question.serial = next_serial_++;
    questions_.push_back(&question);
  }
  const attach::AttachHeader header = HeaderOf(kind, question.serial);
  std::memcpy(request.data(), &header, sizeof(header));
  Status status;
  if (SendWithDescriptors(socket_.get(), request, descriptors, 0) < 0) {
    status = errno == EPIPE || errno == ECONNRESET ? Goodbye()
                                                   : StatusFromErrno(errno, "send to ferryd");
  } else {
    status = Await(&question, timeout_ms);
  }
  std::lock_guard lock(mutex_);
  std::erase(questions_, &question);
  FERRY_RETURN_IF_ERROR(status);
  return std::move(*question.answer);
}

// One of the threads that wait reads for all. When it has its own answer, another one does.
Status AttachConnection::Await(Question* question, uint64_t timeout_ms) {
  Patience patience(timeout_ms);
  std::unique_lock lock(mutex_);
  while (!question->answer.has_value()) {
    if (is_over_) {
      return LastWords();
    }
    if (has_reader_) {
      changed_.wait_for(lock, std::chrono::nanoseconds(patience.rest_ns()));
    } else {
      ReadForAll(lock, patience.rest_ns());
    }
    if (!question->answer.has_value() && !is_over_ && patience.IsOver()) {
      return {ErrorCode::kTimeout, "ferryd at " + path_ + " has not answered for " +
                                       std::to_string(timeout_ms) + " ms: is it stopped?"};
    }
  }
  return {};
}

void AttachConnection::ReadForAll(std::unique_lock<std::mutex>& lock, uint64_t patience_ns) {
  has_reader_ = true;
  lock.unlock();
  pollfd watched[] = {{socket_.get(), POLLIN, 0}, {reader_event_.get(), POLLIN, 0}};
  (void)poll(watched, std::size(watched),
             static_cast<int>(std::min<uint64_t>(patience_ns / kNsPerMs + 1, INT_MAX)));
  lock.lock();
  has_reader_ = false;
  eventfd_t ignored = 0;
  (void)eventfd_read(reader_event_.get(), &ignored);
  const size_t orders = orders_.size();
  TakeAll();
  if (orders_.size() != orders) {
    eventfd_write(orders_event_.get(), 1);  // the watcher may have slept through it
  }
  changed_.notify_all();
}

// Takes what has come. Call it with the lock held.
void AttachConnection::TakeAll() {
  std::array<std::byte, attach::kMaxPacketBytes> bytes;
  bool has_hung_up = false;
  while (!is_over_) {
    Packet packet;
    const ssize_t size =
        ReceiveWithDescriptors(socket_.get(), bytes, &packet.descriptors, MSG_DONTWAIT);
    if (size > 0) {
      packet.bytes.assign(bytes.data(), bytes.data() + size);
      Take(std::move(packet));
      continue;
    }
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0 && errno == EAGAIN && !has_hung_up) {
      return;
    }
    // The kernel looks for a packet first, and then for the hang-up: if both have come between the
    // two looks, it reports the hang-up, and the last packet lies there still.
    is_over_ = std::exchange(has_hung_up, true);
  }
}

void AttachConnection::Take(Packet packet) {
  const auto header = packet.As<attach::AttachHeader>();
  if (header.magic != attach::kMagic) {
    goodbye_ = {ErrorCode::kCorrupt, "what listens on the attach socket is not ferryd"};
    is_over_ = true;
    return;
  }
  if (header.kind == static_cast<uint32_t>(attach::Kind::kGoodbye)) {
    const auto goodbye = packet.As<attach::Reply>();
    goodbye_ = CheckReply(goodbye.code, goodbye.text);
    return;
  }
  if (KeepUnasked(packet)) {
    return;
  }
  const auto asked = std::ranges::find(questions_, header.serial, &Question::serial);
  if (asked != questions_.end()) {
    (*asked)->answer = std::move(packet);
  }  // else it came too late for who has asked
}

template <typename Request, typename Reply>
StatusOr<AttachConnection::Packet> AttachConnection::ExchangeFor(
    attach::Kind kind, Request* request, const std::vector<int>& descriptors,
    attach::Kind reply_kind, Reply* reply) {
  StatusOr<Packet> answer =
      Exchange(kind, std::as_writable_bytes(std::span(request, 1)), descriptors, timeout_ms_);
  FERRY_RETURN_IF_ERROR(answer.status());
  if (answer->As<attach::AttachHeader>().kind != static_cast<uint32_t>(reply_kind)) {
    const auto refusal = answer->As<attach::Reply>();
    FERRY_RETURN_IF_ERROR(CheckReply(refusal.code, refusal.text));
    return Unexpected();
  }
  if (answer->bytes.size() != sizeof(Reply)) {
    return Status(ErrorCode::kCorrupt, "ferryd's answer has " +
                                           std::to_string(answer->bytes.size()) + " bytes, not " +
                                           std::to_string(sizeof(Reply)));
  }
  *reply = answer->As<Reply>();
  FERRY_RETURN_IF_ERROR(CheckReply(reply->code, reply->text));
  return answer;
}

StatusOr<attach::AttachReply> AttachConnection::Attach(const attach::AttachRequest& request) {
  attach::AttachRequest copy = request;
  attach::AttachReply reply{};
  const auto answer =
      ExchangeFor(attach::Kind::kAttach, &copy, {}, attach::Kind::kAttachReply, &reply);
  FERRY_RETURN_IF_ERROR(answer.status());
  return reply;
}

StatusOr<attach::UserReply> AttachConnection::IdentifyUser() {
  attach::UserRequest request{};
  attach::UserReply reply{};
  const auto answer =
      ExchangeFor(attach::Kind::kUser, &request, {}, attach::Kind::kUserReply, &reply);
  FERRY_RETURN_IF_ERROR(answer.status());
  reply.control_address[sizeof(reply.control_address) - 1] = '\0';
  return reply;
}

template <typename Request>
StatusOr<AttachAnswer> AttachConnection::Ask(attach::Kind kind, Request* request,
                                             const std::vector<int>& descriptors) {
  AttachAnswer answer;
  StatusOr<Packet> packet =
      ExchangeFor(kind, request, descriptors, attach::Kind::kReply, &answer.reply);
  FERRY_RETURN_IF_ERROR(packet.status());
  answer.size_bytes = answer.reply.size_bytes;
  answer.descriptors = std::move(packet->descriptors);
  return answer;
}

StatusOr<AttachConnection::CallAnswer> AttachConnection::Call(attach::Kind kind,
                                                              std::span<std::byte> request,
                                                              uint64_t timeout_ms,
                                                              const std::vector<int>& descriptors) {
  const StatusOr<Packet> packet = Exchange(kind, request, descriptors, timeout_ms);
  FERRY_RETURN_IF_ERROR(packet.status());
  CallAnswer answer;
  answer.reply = packet->As<attach::CallReply>();
  const size_t peers_bytes = size_t{answer.reply.peer_count} * sizeof(attach::PeerPlace);
  if (answer.reply.header.kind != static_cast<uint32_t>(attach::Kind::kCallReply) ||
      packet->bytes.size() != sizeof(answer.reply) + peers_bytes + answer.reply.text_bytes) {
    return Unexpected();
  }
  const std::byte* const behind = packet->bytes.data() + sizeof(answer.reply);
  answer.text.assign(reinterpret_cast<const char*>(behind) + peers_bytes, answer.reply.text_bytes);
  if (answer.reply.code != 0) {
    return Status(static_cast<ErrorCode>(answer.reply.code), answer.text);
  }
  answer.peers.resize(answer.reply.peer_count);
  if (peers_bytes != 0) {
    std::memcpy(answer.peers.data(), behind, peers_bytes);
  }
  return answer;
}

// ---- Segments and regions ----

StatusOr<AttachAnswer> AttachConnection::SendSegments(uint64_t session_bytes, int session_fd,
                                                      uint64_t inbox_bytes, int inbox_fd) {
  attach::SegmentsRequest request{};
  request.session_bytes = session_bytes;
  request.inbox_bytes = inbox_bytes;
  StatusOr<AttachAnswer> answer = Ask(attach::Kind::kSegments, &request, {session_fd, inbox_fd});
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
  return Ask(attach::Kind::kRegion, &request, descriptors);
}

StatusOr<AttachAnswer> AttachConnection::PeerInbox(uint32_t rank) {
  attach::PeerRequest request{};
  request.rank = rank;
  return Ask(attach::Kind::kPeerInbox, &request, {});
}

StatusOr<AttachAnswer> AttachConnection::PeerRegion(uint32_t rank, uint32_t region) {
  attach::PeerRequest request{};
  request.rank = rank;
  request.region = region;
  return Ask(attach::Kind::kPeerRegion, &request, {});
}

StatusOr<UniqueFd> AttachConnection::CounterPages(uint32_t nic) {
  attach::NicRequest request{};
  request.nic = nic;
  StatusOr<AttachAnswer> answer = Ask(attach::Kind::kCounterPages, &request, {});
  FERRY_RETURN_IF_ERROR(answer.status());
  if (answer->descriptors.size() != 1) {
    return Status(ErrorCode::kCorrupt, "ferryd's answer has no descriptor of a counter's page");
  }
  return std::move(answer->descriptors[0]);
}

// ---- Packets that the daemon sends unasked ----

// Returns true if the packet was an order of the daemon, or its rules. The caller holds the lock.
bool AttachConnection::KeepUnasked(const Packet& packet) {
  const auto kind = static_cast<attach::Kind>(packet.As<attach::AttachHeader>().kind);
  if (kind == attach::Kind::kLink && packet.bytes.size() == sizeof(attach::LinkOrder)) {
    orders_.push_back(packet.As<attach::LinkOrder>());
    return true;
  }
  if (kind == attach::Kind::kLinkRules && packet.bytes.size() == sizeof(attach::LinkRules)) {
    rules_ = packet.As<attach::LinkRules>();
    rules_->source_address[sizeof(rules_->source_address) - 1] = '\0';
    return true;
  }
  return false;
}

// Takes what has come, beside a thread that waits for its answer, perhaps. With the lock held.
void AttachConnection::TakeBeside() {
  TakeAll();
  if (!questions_.empty()) {
    eventfd_write(reader_event_.get(), 1);
    changed_.notify_all();
  }
}

std::optional<attach::LinkRules> AttachConnection::TakeRules() {
  std::lock_guard lock(mutex_);
  TakeBeside();
  return std::exchange(rules_, std::nullopt);
}

std::optional<attach::LinkOrder> AttachConnection::TakeOrder() {
  std::lock_guard lock(mutex_);
  if (orders_.empty()) {
    TakeBeside();
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
  copy.header = HeaderOf(attach::Kind::kLinkReply, 0);
  return SendWithDescriptors(socket_.get(), std::as_bytes(std::span(&copy, 1)), {}, 0) < 0
             ? StatusFromErrno(errno, "send to ferryd")
             : Status();
}

bool AttachConnection::AskForLife(uint32_t number) {
  attach::LifeQuestion question{};
  question.header = HeaderOf(attach::Kind::kLifeQuestion, 0);
  question.number = number;
  return SendWithDescriptors(socket_.get(), std::as_bytes(std::span(&question, 1)), {},
                             MSG_DONTWAIT) >= 0;
}

void AttachConnection::GiveUp() { shutdown(socket_.get(), SHUT_RDWR); }

Status AttachConnection::Goodbye() {
  std::lock_guard lock(mutex_);
  TakeBeside();
  return LastWords();
}

// For a connection that the daemon has closed. Call it with the lock held.
Status AttachConnection::LastWords() const {
  return goodbye_.ok() ? Status(ErrorCode::kDaemonDied, "ferryd closed the connection") : goodbye_;
}

}  // namespace ferry::client
