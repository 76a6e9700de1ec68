// A rank's side of the attach socket, step by step, and right or wrong as a test wants it.
#pragma once

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/hex_text.h"
#include "common/version.h"
#include "daemon/sockets/packet_socket.h"
#include "daemon/tls/secrets.h"
#include "shm/layout/inbox_layout.h"
#include "shm/layout/request_layout.h"
#include "shm/layout/session_layout.h"
#include "shm/segment.h"
#include "shm/session_by_rank.h"
#include "tests/support/patience.h"

namespace ferry::daemon {

inline constexpr char kTestSecret[] = "0123456789abcdef0123456789abcdef";
inline constexpr uint32_t kTestRequests = 64;
inline constexpr uint32_t kTestMatches = 128;

// The result of a read: a packet, or the daemon's hang-up.
struct Answer {
  bool hang_up = false;
  SocketPacket packet;
  attach::AttachReply attach{};  // if the packet was one
  attach::Reply reply{};         // if the packet was one
  attach::CallReply call{};      // if the packet was one, with what stood behind it
  std::vector<attach::PeerPlace> peers;
  std::string call_text;
  const attach::AttachHeader& header() const {
    return attach.header.magic != 0 ? attach.header
           : call.header.magic != 0 ? call.header
                                    : reply.header;
  }
  ErrorCode code() const {
    return static_cast<ErrorCode>(attach.header.magic != 0 ? attach.code
                                  : call.header.magic != 0 ? call.code
                                                           : reply.code);
  }
  std::string text() const {
    return attach.header.magic != 0 ? attach.text : call.header.magic != 0 ? call_text : reply.text;
  }
  attach::Kind kind() const { return static_cast<attach::Kind>(header().kind); }
  bool still_waiting() const { return (call.flags & attach::kStillWaiting) != 0; }
  // The daemon's outcome of a request.
  Status status() const {
    return header().magic == 0 ? Status(ErrorCode::kDaemonDied, "no answer")
                               : Status(code(), text());
  }
};

class TestRank {
 public:
  TestRank(std::string job_id, uint32_t rank, uint32_t size, uint32_t local_size)
      : job_id_(std::move(job_id)), rank_(rank), size_(size), local_size_(local_size) {}

  Status Connect(const std::string& path) {
    StatusOr<UniqueFd> socket = ConnectSeqpacket(path);
    if (!socket.ok()) {
      return socket.status();
    }
    socket_ = std::move(*socket);
    return {};
  }

  attach::AttachHeader Header(attach::Kind kind) {
    return {attach::kMagic, static_cast<uint32_t>(kind), ++serial_, kLayoutVersion,
            kProtocolVersion};
  }
  attach::AttachRequest AttachRequest() {
    attach::AttachRequest request{};
    request.header = Header(attach::Kind::kAttach);
    request.pid = static_cast<uint32_t>(getpid());
    request.pid_namespace = InodeOf("/proc/self/ns/pid");
    request.user_namespace = InodeOf("/proc/self/ns/user");
    request.rank = rank_;
    request.size = size_;
    job_id_.copy(request.job_id, sizeof(request.job_id) - 1);
    std::memcpy(request.job_secret, kTestSecret, sizeof(kTestSecret) - 1);
    request.job_secret_bytes = sizeof(kTestSecret) - 1;
    return request;
  }
  shm::SegmentHeader SegmentHeader(shm::SegmentKind kind) const {
    shm::SegmentHeader header{};
    header.kind = static_cast<uint32_t>(kind);
    header.rank = rank_;
    header.job_size = size_;
    header.local_size = local_size_;
    header.request_limit = kTestRequests;
    return header;
  }

  attach::RegionRequest RegionRequest(uint32_t region, uint64_t size_bytes, uint32_t flags = 0) {
    attach::RegionRequest request{};
    request.header = Header(attach::Kind::kRegion);
    request.region = region;
    request.flags = flags;
    request.kind = static_cast<uint32_t>((flags & attach::kRegionByStream) != 0
                                             ? attach::MemoryKind::kDevice
                                             : attach::MemoryKind::kHostHeap);
    request.size_bytes = size_bytes;
    return request;
  }
  template <typename T>
  Answer Ask(const T& request, const std::vector<int>& fds = {}) {
    return AskBytes(std::as_bytes(std::span(&request, 1)), fds);
  }
  Answer AskBytes(std::span<const std::byte> request, const std::vector<int>& fds = {}) {
    (void)SendPacket(socket_.get(), request, fds).ok();
    if (!reads_) {
      return {};
    }
    Answer answer = Read();
    while (answer.packet.template As<attach::LinkRules>() != nullptr) {
      answer = Read();  // they come by themselves, once the rank has its segments
    }
    return answer;
  }
  // From now on it asks, and does not read what it is told.
  void StopReading() { reads_ = false; }
  // Blocks until something comes (the daemon always answers or hangs up).
  Answer Read() {
    Answer answer;
    pollfd waiting{socket_.get(), POLLIN, 0};
    poll(&waiting, 1, tests::kPatienceMs);
    const auto received = ReceivePacket(socket_.get(), &answer.packet);
    if (!received.ok() || *received != Received::kPacket) {
      answer.hang_up = received.ok() && *received == Received::kHangUp;
    } else if (const auto* attach = answer.packet.As<attach::AttachReply>(); attach != nullptr) {
      answer.attach = *attach;
    } else if (const auto* reply = answer.packet.As<attach::Reply>(); reply != nullptr) {
      answer.reply = *reply;
    } else {
      ReadCall(&answer);
    }
    return answer;
  }

  Answer Attach() { return Ask(AttachRequest()); }
  // Segments as a correct rank makes them, unless `session` and `inbox` say otherwise.
  Answer SendSegments() {
    return SendSegments(SegmentHeader(shm::SegmentKind::kSession),
                        SegmentHeader(shm::SegmentKind::kInbox));
  }
  // Makes the segments larger than their headers say.
  void Enlarge(uint64_t session_bytes, uint64_t inbox_bytes) {
    more_session_bytes_ = session_bytes;
    more_inbox_bytes_ = inbox_bytes;
  }
  Answer SendSegments(const shm::SegmentHeader& session, const shm::SegmentHeader& inbox) {
    const uint64_t session_bytes =
        shm::SessionSizeBytes(size_, kTestRequests, kTestMatches) + more_session_bytes_;
    const uint64_t inbox_bytes =
        shm::InboxSizeBytes(local_size_, kTestRequests) + more_inbox_bytes_;
    session_fd_ = MakeSegment(session, session_bytes, &session_);
    inbox_fd_ = MakeSegment(inbox, inbox_bytes, &inbox_);
    auto* table = reinterpret_cast<shm::MatchTableLayout*>(
        session_.base() + shm::PlacesOfSession(size_, kTestRequests).match);
    table->capacity = kTestMatches;
    attach::SegmentsRequest request{};
    request.header = Header(attach::Kind::kSegments);
    request.session_bytes = session_bytes;
    request.inbox_bytes = inbox_bytes;
    return Ask(request, {session_fd_.get(), inbox_fd_.get()});
  }
  Answer SendRegion(uint32_t region, uint64_t size_bytes) {
    StatusOr<UniqueFd> fd = shm::CreateSegment("test-region", size_bytes);
    return SendRegion(region, size_bytes, fd->get());
  }
  // Claims that `fd` has `size_bytes`.
  Answer SendRegion(uint32_t region, uint64_t size_bytes, int fd, uint32_t flags = 0) {
    return Ask(RegionRequest(region, size_bytes, flags), {fd});
  }
  // Offers device memory that only streams reach. The answer may take long.
  void OfferDevice(uint32_t region, uint64_t size_bytes) {
    (void)SendPacket(socket_.get(), RegionRequest(region, size_bytes, attach::kRegionByStream))
        .ok();
  }
  Answer AskPeer(attach::Kind kind, uint32_t rank, uint32_t region = 0) {
    attach::PeerRequest request{};
    request.header = Header(kind);
    request.rank = rank;
    request.region = region;
    return Ask(request);
  }
  // ---- Calls; each blocks until it is answered ----
  Answer Join(uint64_t wait_ms = 0) {
    return Ask(attach::JoinRequest{Header(attach::Kind::kJoin), wait_ms});
  }
  Answer Peers(uint32_t first) {
    return Ask(attach::PeersRequest{Header(attach::Kind::kPeers), first, 0});
  }
  Answer EndRegion(uint32_t region) {
    return Ask(attach::RegionEndRequest{Header(attach::Kind::kRegionEnd), region, 0});
  }
  Answer Detach(uint64_t wait_ms = 0) {
    return Ask(attach::DetachRequest{Header(attach::Kind::kDetach), wait_ms});
  }
  Answer Why() { return Ask(attach::WhyRequest{Header(attach::Kind::kWhy)}); }
  Answer Abort(int32_t exit_code, const std::string& reason) {
    attach::AbortRequest request{Header(attach::Kind::kAbort), exit_code, 0, {}};
    reason.copy(request.reason, sizeof(request.reason));
    return Ask(request);
  }
  // Says that it offers `count`.
  Answer Offer(bool sends, const std::vector<attach::PairOffer>& offers, uint32_t count) {
    const attach::OfferRequest request{Header(attach::Kind::kOffer), sends ? 1U : 0U, count};
    std::vector<std::byte> bytes(sizeof(request) + offers.size() * sizeof(attach::PairOffer));
    std::memcpy(bytes.data(), &request, sizeof(request));
    if (!offers.empty()) {
      std::memcpy(bytes.data() + sizeof(request), offers.data(), bytes.size() - sizeof(request));
    }
    return AskBytes(bytes);
  }
  Answer Withdraw(bool send, const attach::PairKey& key) {
    return Ask(attach::WithdrawRequest{Header(attach::Kind::kWithdraw), key, 0, send ? 1U : 0U, 0});
  }
  // Attaches with everything; true if the daemon accepted.
  bool Enter(const std::string& path) {
    return Connect(path).ok() && Attach().code() == ErrorCode::kOk &&
           SendSegments().code() == ErrorCode::kOk;
  }
  void HangUp() { socket_.Reset(); }

  int socket() const { return socket_.get(); }
  shm::RequestLayout& request(uint32_t index) {
    return reinterpret_cast<shm::RequestLayout*>(session_.base() +
                                                 shm::SessionRequestsOffset())[index];
  }
  shm::SessionLayout* session() { return reinterpret_cast<shm::SessionLayout*>(session_.base()); }
  shm::SessionByRank by_rank() {
    return shm::SessionByRank::In(session_.base(), size_, kTestRequests);
  }
  shm::InboxLayout* inbox() { return reinterpret_cast<shm::InboxLayout*>(inbox_.base()); }

 private:
  static uint32_t InodeOf(const char* path) {
    struct stat info {};
    return stat(path, &info) == 0 ? static_cast<uint32_t>(info.st_ino) : 0;
  }
  static void ReadCall(Answer* answer) {
    const SocketPacket& packet = answer->packet;
    attach::CallReply call{};
    if (packet.size < sizeof(call)) {
      return;
    }
    std::memcpy(&call, packet.bytes.data(), sizeof(call));
    const size_t peers_bytes = call.peer_count * sizeof(attach::PeerPlace);
    if (call.header.kind != static_cast<uint32_t>(attach::Kind::kCallReply) ||
        packet.size != sizeof(call) + peers_bytes + call.text_bytes) {
      return;
    }
    answer->call = call;
    answer->peers.resize(call.peer_count);
    if (peers_bytes != 0) {
      std::memcpy(answer->peers.data(), packet.bytes.data() + sizeof(call), peers_bytes);
    }
    answer->call_text.assign(
        reinterpret_cast<const char*>(packet.bytes.data()) + sizeof(call) + peers_bytes,
        call.text_bytes);
  }
  static UniqueFd MakeSegment(const shm::SegmentHeader& fields, uint64_t size_bytes,
                              shm::Mapping* mapping) {
    StatusOr<UniqueFd> fd = shm::CreateSegment("test-segment", size_bytes);
    *mapping = std::move(*shm::MapSegment(fd->get(), size_bytes));
    shm::SegmentHeader header = fields;
    header.size_bytes = size_bytes;
    shm::PublishHeader(reinterpret_cast<shm::SegmentHeader*>(mapping->base()), header);
    return std::move(*fd);
  }

  const std::string job_id_;
  const uint32_t rank_;
  const uint32_t size_;
  const uint32_t local_size_;
  uint32_t serial_ = 0;
  bool reads_ = true;
  uint64_t more_session_bytes_ = 0;
  uint64_t more_inbox_bytes_ = 0;
  UniqueFd socket_;
  UniqueFd session_fd_;
  UniqueFd inbox_fd_;
  shm::Mapping session_;
  shm::Mapping inbox_;
};

// A launcher's side of the attach socket.
class TestLauncher {
 public:
  // Connects and asks to be a launcher; the token is empty if it was refused.
  explicit TestLauncher(const std::string& path) : rank_("", 0, 0, 0) {
    attach::UserReply reply{};
    if (rank_.Connect(path).ok()) {
      const Answer answer = rank_.Ask(attach::UserRequest{rank_.Header(attach::Kind::kUser)});
      if (const auto* user = answer.packet.As<attach::UserReply>(); user != nullptr) {
        reply = *user;
      }
    }
    if (reply.header.magic == attach::kMagic && reply.code == 0) {
      token_ = HexText(reply.token);
      uid_ = reply.uid;
      control_address_ = reply.control_address;
    }
  }
  void HangUp() { rank_.HangUp(); }
  const std::string& token() const { return token_; }
  uid_t uid() const { return uid_; }
  const std::string& control_address() const { return control_address_; }
  TestRank& rank() { return rank_; }

 private:
  TestRank rank_;
  std::string token_;
  uid_t uid_ = 0;
  std::string control_address_;
};

// Returns true if this process can become another user: it is root, in a namespace that knows other
// users.
inline bool CanBecomeOthers() {
  const bool can = geteuid() == 0 && seteuid(12345) == 0;
  return can && seteuid(0) == 0;
}

// How many mappings this process has whose lines in /proc/self/maps contain `name`.
inline size_t OwnMappings(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find(name) != std::string::npos ? 1 : 0;
  }
  return count;
}

// How many descriptors this process has open.
inline size_t OpenDescriptors() {
  using Iterator = std::filesystem::directory_iterator;
  return static_cast<size_t>(std::distance(Iterator("/proc/self/fd"), Iterator()));
}
// Returns OpenDescriptors() once they are at most `most`, or kPatience is over: detached threads
// close ferryd's sockets, and the descriptors that were passed to it.
inline size_t SettledDescriptors(size_t most) {
  const auto end = std::chrono::steady_clock::now() + tests::kPatience;
  size_t open = OpenDescriptors();
  while (open > most && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
    open = OpenDescriptors();
  }
  return open;
}

}  // namespace ferry::daemon
