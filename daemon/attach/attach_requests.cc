#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "common/hex_text.h"
#include "common/log.h"
#include "common/process_handle.h"
#include "common/version.h"
#include "daemon/attach/attach_connection.h"
#include "daemon/attach/attach_server.h"
#include "daemon/jobs/job_link_books.h"
#include "daemon/jobs/job_regions.h"
#include "daemon/session/session_segments.h"
#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

using attach::AttachHeader;
using attach::Kind;

std::string Versions(uint32_t layout, uint32_t protocol) {
  return "layout version " + std::to_string(layout) + ", protocol version " +
         std::to_string(protocol);
}

Status Malformed(const std::string& why) { return {ErrorCode::kCorrupt, "attach socket: " + why}; }

}  // namespace

void AttachConnection::Handle(SocketPacket& packet) {
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
  if (HandleCall(header, packet)) {
    return;
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
  } else if (const auto* nic = packet.As<attach::NicRequest>();
             nic && kind == Kind::kCounterPages) {
    status = HandleCounterPages(*nic, packet);
  } else if (const auto* user = packet.As<attach::UserRequest>(); user && kind == Kind::kUser) {
    status = HandleUser(*user);
  } else if (const auto* question = packet.As<attach::LifeQuestion>();
             question && kind == Kind::kLifeQuestion) {
    if (status = HandleLife(*question, packet); status.ok()) {
      return;  // which is answered in the session
    }
  } else if (const auto* link = packet.As<attach::LinkReply>(); link && kind == Kind::kLinkReply) {
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

Status AttachConnection::CheckPacket(const SocketPacket& packet) const {
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
            "the rank's libferry has " + Versions(header.layout_version, header.protocol_version) +
                "; ferryd " + kFerryVersion + " has " + Versions(kLayoutVersion, kProtocolVersion) +
                ": use the same release of Ferry on both sides"};
  }
  return {};
}

Status AttachConnection::ExpectSession(const SocketPacket& packet, size_t descriptors) const {
  if (session_ == nullptr) {
    return Malformed("a request came before kAttach");
  }
  if (packet.fds.size() != descriptors) {
    return Malformed("a request carries " + std::to_string(packet.fds.size()) +
                     " descriptors instead of " + std::to_string(descriptors));
  }
  return {};
}

// ---- Identity ----

void AttachConnection::HandleAttach(const attach::AttachRequest& request) {
  StatusOr<std::shared_ptr<Session>> session = AttachAs(request);
  if (session.ok()) {
    session_ = *session;
    ExpectSoon("segments");
    WaitForProcess();
  } else {
    LogRefused(session.status());
  }
  AnswerAttach(request.header, session.status());
}

StatusOr<std::shared_ptr<Session>> AttachConnection::AttachAs(
    const attach::AttachRequest& request) {
  if (identified()) {
    return Status(ErrorCode::kAlreadyExists, session_ != nullptr
                                                 ? "this connection is attached already"
                                                 : "this connection is a launcher's");
  }
  if (request.job_secret_bytes > sizeof(request.job_secret) || caller_.pid == 0) {
    return Malformed(caller_.pid == 0
                         ? "the rank's process is in a foreign pid namespace: run it in "
                           "ferryd's, or a child of it"
                         : "the secret is longer than its field");
  }
  AttachClaim claim;
  claim.job_id.assign(request.job_id, strnlen(request.job_id, sizeof(request.job_id)));
  claim.secret.assign(reinterpret_cast<const char*>(request.job_secret), request.job_secret_bytes);
  claim.rank = request.rank;
  claim.size = request.size;
  claim.pid = caller_.pid;
  claim.uid = caller_.uid;
  claim.shares_processes = server_.pid_namespace_ != 0 && server_.user_namespace_ != 0 &&
                           request.pid_namespace == server_.pid_namespace_ &&
                           request.user_namespace == server_.user_namespace_;
  StatusOr<std::shared_ptr<Session>> session = server_.registry_.Attach(claim, weak_from_this());
  if (!session.ok()) {
    return session;
  }
  (*session)->gid = caller_.gid;
  StatusOr<UniqueFd> process = OpenProcessHandle(caller_.pid);
  UniqueFd doorbell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!process.ok() || !doorbell.valid()) {
    const Status why =
        process.ok() ? StatusFromErrno(errno, "an eventfd for a rank") : process.status();
    server_.registry_.EndSession(**session, why);
    return why;
  }
  if (!claim.shares_processes) {
    spdlog::info(
        "rank {} of job {}: {}: the job's ranks here copy large messages from private memory "
        "through their heaps",
        claim.rank, (*session)->job_id,
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

Status AttachConnection::HandleUser(const attach::UserRequest& request) {
  if (identified()) {
    return {ErrorCode::kAlreadyExists,
            session_ != nullptr ? "this connection is a rank's: a launcher needs one of its own"
                                : "this connection is a launcher's already"};
  }
  const Launchers::Token token = server_.launchers_.Admit(caller_.uid);
  launcher_ = HexText(token);
  attach::UserReply reply{};
  reply.header = AnswerTo(request.header, Kind::kUserReply);
  reply.daemon_pid = static_cast<uint32_t>(getpid());
  reply.uid = caller_.uid;
  std::copy(token.begin(), token.end(), reply.token);
  server_.control_address_.copy(reply.control_address, sizeof(reply.control_address) - 1);
  Send(reply);
  return {};
}

// ---- A rank's segments and regions ----

Status AttachConnection::HandleSegments(const attach::SegmentsRequest& request,
                                        SocketPacket& packet) {
  FERRY_RETURN_IF_ERROR(ExpectSession(packet, 2));
  if (session_->session_map.valid()) {
    return Malformed("the segments came twice");
  }
  FERRY_RETURN_IF_ERROR(AdoptSegments(&packet.fds[0], request.session_bytes, &packet.fds[1],
                                      request.inbox_bytes, server_.memory_, session_.get()));
  session_->private_memory_reachable = ProbePrivateMemory(caller_.pid, caller_.uid);
  FERRY_RETURN_IF_ERROR(server_.registry_.Serve(*session_));
  is_served_ = true;
  const std::array<int, 2> fds = {session_->doorbell.get(), server_.daemon_pidfd_.get()};
  attach::Reply reply{};
  reply.peer_timeout_ms = static_cast<uint32_t>(server_.registry_.peer_timeout_ms());
  reply.flags = (server_.registry_.takes_dmabufs() ? attach::kRegionDmabuf : 0) |
                (server_.registry_.nic_defers() ? attach::kNicDefers : 0);
  SendReply(request.header, reply, std::span(fds).first(server_.daemon_pidfd_.valid() ? 2 : 1));
  if (auto rules = server_.registry_.link_books().RulesOf(*session_); rules) {
    rules->header = AnswerTo({}, Kind::kLinkRules);
    Send(*rules);
  }
  return {};
}

Status AttachConnection::HandleRegion(const attach::RegionRequest& request, SocketPacket& packet) {
  const bool by_stream = (request.flags & attach::kRegionByStream) != 0;
  const size_t dmabufs = by_stream && (request.flags & attach::kRegionDmabuf) != 0 ? 1 : 0;
  const bool is_by_handle = by_stream && packet.fds.size() == dmabufs;
  FERRY_RETURN_IF_ERROR(ExpectSession(packet, (is_by_handle ? 0 : 1) + dmabufs));
  const auto kind = static_cast<attach::MemoryKind>(request.kind);
  if (kind != attach::MemoryKind::kHostHeap && kind != attach::MemoryKind::kDevice) {
    return {ErrorCode::kInvalidArgument, "region " + std::to_string(request.region) +
                                             ": unknown kind " + std::to_string(request.kind)};
  }
  StatusOr<QuotaHold> hold = server_.registry_.regions().Reserve(*session_, request.size_bytes);
  FERRY_RETURN_IF_ERROR(hold.status());
  StatusOr<std::shared_ptr<Region>> region =
      AdoptRegion(is_by_handle ? nullptr : &packet.fds[0],
                  dmabufs == 0 ? nullptr : &packet.fds.back(), request, *session_, server_.memory_);
  FERRY_RETURN_IF_ERROR(region.status());
  (*region)->quota = std::move(*hold);
  (*region)->kind =
      kind == attach::MemoryKind::kDevice ? RegionKind::kDevice : RegionKind::kHostHeap;
  if (!(*region)->by_stream) {
    AddRegion(request.header, *region);
    return {};
  }
  server_.registry_.regions().Import(
      *session_, *region, [weak = weak_from_this(), header = request.header, region = *region] {
        if (const auto self = weak.lock(); self != nullptr && !self->is_ending_) {
          self->AddRegion(header, region);
        }
      });
  return {};
}

void AttachConnection::AddRegion(const attach::AttachHeader& asked,
                                 const std::shared_ptr<Region>& region) {
  if (const Status status = server_.registry_.regions().Add(*session_, region); !status.ok()) {
    return Answer(asked, status);
  }
  AnswerRegion(asked, *region);
}

Status AttachConnection::HandlePeerInbox(const attach::PeerRequest& request) {
  StatusOr<std::shared_ptr<Session>> peer = PeerOf(request);
  FERRY_RETURN_IF_ERROR(peer.status());
  const std::array<int, 1> fds = {(*peer)->inbox_fd.get()};
  Answer(request.header, {}, (*peer)->inbox_map.size_bytes(), fds);
  return {};
}

Status AttachConnection::HandlePeerRegion(const attach::PeerRequest& request) {
  StatusOr<std::shared_ptr<Session>> peer = PeerOf(request);
  FERRY_RETURN_IF_ERROR(peer.status());
  const std::shared_ptr<const Region> region = (*peer)->FindRegion(request.region);
  if (region == nullptr) {
    return {ErrorCode::kInvalidBuffer, "rank " + std::to_string(request.rank) + " has no region " +
                                           std::to_string(request.region)};
  }
  const int fd = region->fd.get();
  AnswerRegion(request.header, *region, std::span(&fd, region->fd.valid() ? 1 : 0));
  return {};
}

// A process that has the descriptor may do with the NIC all that ferryd may, so only ranks of
// ferryd's own user get it.
Status AttachConnection::HandleCounterPages(const attach::NicRequest& request,
                                            SocketPacket& packet) {
  FERRY_RETURN_IF_ERROR(ExpectSession(packet, 0));
  const std::array<int, 1> fds = {server_.registry_.CounterPages(request.nic)};
  if (fds[0] < 0 || caller_.uid != geteuid()) {
    return {ErrorCode::kNotFound, "this ferryd gives its ranks no pages of the counters of NIC " +
                                      std::to_string(request.nic)};
  }
  Answer(request.header, {}, 0, fds);
  return {};
}

StatusOr<std::shared_ptr<Session>> AttachConnection::PeerOf(
    const attach::PeerRequest& request) const {
  if (session_ == nullptr) {
    return Malformed("a request came before kAttach");
  }
  return server_.registry_.FindPeer(*session_, request.rank);
}

// ---- Direct links, and the daemon's life ----

Status AttachConnection::HandleLink(const attach::LinkReply& reply, SocketPacket& packet) {
  FERRY_RETURN_IF_ERROR(ExpectSession(packet, 0));
  return server_.registry_.link_books().OnReply(*session_, reply);
}

// One question of a rank at a time waits for the progress thread, which answers the last one.
Status AttachConnection::HandleLife(const attach::LifeQuestion& question, SocketPacket& packet) {
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

}  // namespace ferry::daemon
