// The calls of ranks, and the one of launchers, at the attach socket.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/rank_table.h"
#include "daemon/attach/attach_connection.h"
#include "daemon/attach/attach_server.h"
#include "daemon/jobs/job_members.h"
#include "daemon/jobs/job_pair_books.h"
#include "daemon/jobs/job_profiles.h"
#include "daemon/jobs/job_regions.h"

namespace ferry::daemon {
namespace {

using attach::AttachHeader;
using attach::Kind;

// Of one rank, for which the NIC has to have memory first: its threads may match at the same time.
constexpr uint32_t kMostOffersWaiting = 16;
// The daemon unpacks no table of more ranks than this: a few bytes can stand for any number of
// them, and max_ranks is compared only afterwards.
constexpr uint32_t kMostRanks = 1U << 20;

// The offers of a packet; nothing if it has not as many as it says.
std::optional<std::span<const attach::PairOffer>> OffersOf(const SocketPacket& packet) {
  attach::OfferRequest request{};
  if (packet.size < sizeof(request)) {
    return std::nullopt;
  }
  memcpy(&request, packet.bytes.data(), sizeof(request));
  if (request.count > attach::kMostOffers ||
      packet.size != sizeof(request) + request.count * sizeof(attach::PairOffer)) {
    return std::nullopt;
  }
  static_assert(sizeof(request) % alignof(attach::PairOffer) == 0);
  return std::span(
      reinterpret_cast<const attach::PairOffer*>(packet.bytes.data() + sizeof(request)),
      request.count);
}

// All of a memfd that cannot shrink. Nothing else is read from: its server might hold us up.
StatusOr<std::string> ReadList(int fd, uint32_t size_bytes) {
  if (size_bytes > attach::kMostListBytes) {
    return Status(ErrorCode::kLimitExceeded, "a job's list of ranks and nodes has " +
                                                 std::to_string(size_bytes) + " bytes: at most " +
                                                 std::to_string(attach::kMostListBytes));
  }
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Status(ErrorCode::kCorrupt,
                  "attach socket: a job's list of ranks and nodes is no sealed memfd");
  }
  std::string list(size_bytes, '\0');
  const ssize_t size = pread(fd, list.data(), list.size(), 0);
  if (size != static_cast<ssize_t>(list.size())) {
    return Status(ErrorCode::kCorrupt, "attach socket: a job's list of ranks and nodes has not " +
                                           std::to_string(size_bytes) + " bytes");
  }
  return list;
}

StatusOr<control::CreateJobRequest> JobFrom(const attach::JobRequest& request,
                                            std::string_view list) {
  if (request.node_count > request.size) {
    return Status(ErrorCode::kLimitExceeded, "a job has at most as many nodes as ranks");
  }
  if (request.size > kMostRanks) {
    return Status(ErrorCode::kLimitExceeded,
                  "a job has at most " + std::to_string(kMostRanks) + " ranks");
  }
  const StatusOr<std::vector<uint32_t>> nodes =
      UnpackNodes(list.substr(0, request.table_bytes), request.size);
  if (request.job_secret_bytes > sizeof(request.job_secret) || request.table_bytes > list.size() ||
      !nodes.ok()) {
    return Status(ErrorCode::kCorrupt,
                  "attach socket: a job's secret, or its list of ranks, is cut off");
  }
  control::CreateJobRequest job;
  job.set_job_id(request.job_id, strnlen(request.job_id, sizeof(request.job_id)));
  job.set_secret(request.job_secret, request.job_secret_bytes);
  job.set_size(request.size);
  job.set_node(request.node);
  job.set_tree_radix(request.tree_radix);
  job.mutable_node_of_rank()->Add(nodes->begin(), nodes->end());
  list.remove_prefix(request.table_bytes);
  for (uint32_t node = 0; node < request.node_count; ++node) {
    const size_t end = list.find('\0');
    if (end == list.npos) {
      return Status(ErrorCode::kCorrupt, "attach socket: a job's list of nodes is cut off");
    }
    job.add_node_addresses(std::string(list.substr(0, end)));
    list.remove_prefix(end + 1);
  }
  return job;
}

}  // namespace

Status AttachConnection::ExpectServed(const SocketPacket& packet) const {
  FERRY_RETURN_IF_ERROR(ExpectSession(packet, 0));
  return server_.registry_.CheckServed(*session_);
}

bool AttachConnection::HandleCall(const AttachHeader& header, SocketPacket& packet) {
  const auto kind = static_cast<Kind>(header.kind);
  Status status = ExpectServed(packet);
  const auto served = [&status](auto handle) {
    if (status.ok()) {
      status = handle();
    }
  };
  if (const auto* join = packet.As<attach::JoinRequest>(); join && kind == Kind::kJoin) {
    served([&] { return HandleJoin(*join); });
  } else if (const auto* detach = packet.As<attach::DetachRequest>();
             detach && kind == Kind::kDetach) {
    status = ExpectSession(packet, 0);  // the session of one that asks again has ended
    served([&] { return HandleDetach(*detach); });
  } else if (const auto* peers = packet.As<attach::PeersRequest>(); peers && kind == Kind::kPeers) {
    served([&] { return HandlePeers(*peers); });
  } else if (const auto* region = packet.As<attach::RegionEndRequest>();
             region && kind == Kind::kRegionEnd) {
    served([&] { return HandleRegionEnd(*region); });
  } else if (const auto* abort = packet.As<attach::AbortRequest>(); abort && kind == Kind::kAbort) {
    served([&] { return HandleAbort(*abort); });
  } else if (kind == Kind::kOffer && OffersOf(packet).has_value()) {
    served([&] { return HandleOffer(packet); });
  } else if (const auto* withdraw = packet.As<attach::WithdrawRequest>();
             withdraw && kind == Kind::kWithdraw) {
    served([&] {
      server_.registry_.pair_books().Withdraw(*session_, *withdraw);
      AnswerCall(withdraw->header, {});
      return Status();
    });
  } else if (const auto* why = packet.As<attach::WhyRequest>(); why && kind == Kind::kWhy) {
    served([&] { return HandleWhy(*why); });
  } else if (const auto* profile = packet.As<attach::ProfileRequest>();
             profile && kind == Kind::kProfile) {
    status = HandleProfile(*profile, packet);
  } else if (const auto* job = packet.As<attach::JobRequest>(); job && kind == Kind::kCreateJob) {
    status = HandleCreateJob(*job, packet);
  } else {
    return false;
  }
  if (status.code() == ErrorCode::kCorrupt) {
    Refuse(header, status);
  } else if (!status.ok()) {
    AnswerCall(header, status);
  }
  return true;
}

Status AttachConnection::HandleJoin(const attach::JoinRequest& request) {
  server_.registry_.members().Join(
      *session_, request.wait_ms,
      [weak = weak_from_this(), asked = request.header](const Status& status,
                                                        const JoinAnswer& answer) {
        const auto self = weak.lock();
        if (self == nullptr) {
          return;
        }
        if (!status.ok() || answer.waiting) {
          return self->AnswerCall(asked, status,
                                  {answer.waiting ? attach::kStillWaiting : 0, answer.missing, {}});
        }
        self->AnswerPeers(asked, 0);
      });
  return {};
}

Status AttachConnection::HandlePeers(const attach::PeersRequest& request) {
  AnswerPeers(request.header, request.first);
  return {};
}

void AttachConnection::AnswerPeers(const AttachHeader& asked, uint32_t first) {
  StatusOr<JobMembers::Places> places =
      server_.registry_.members().PlacesOf(*session_, first, attach::kMostPeers);
  AnswerCall(asked, places.status(),
             places.ok() ? CallAnswer{0, "", std::move(*places)} : CallAnswer());
}

Status AttachConnection::HandleDetach(const attach::DetachRequest& request) {
  server_.registry_.members().Detach(
      *session_, request.wait_ms, [weak = weak_from_this(), asked = request.header](bool left) {
        if (const auto self = weak.lock(); self != nullptr) {
          self->AnswerCall(asked, {}, {left ? 0 : attach::kStillWaiting, "", {}});
        }
      });
  return {};
}

Status AttachConnection::HandleAbort(const attach::AbortRequest& request) {
  server_.registry_.Abort(
      *session_, request.exit_code,
      std::string(request.reason, strnlen(request.reason, sizeof(request.reason))));
  AnswerCall(request.header, {});
  return {};
}

Status AttachConnection::HandleOffer(const SocketPacket& packet) {
  attach::OfferRequest request{};
  memcpy(&request, packet.bytes.data(), sizeof(request));
  if (offers_waiting_ == kMostOffersWaiting) {
    return {ErrorCode::kLimitExceeded,
            "rank " + std::to_string(session_->rank) + " waits for the answers to " +
                std::to_string(kMostOffersWaiting) + " offers: offer again once they have come"};
  }
  ++offers_waiting_;
  server_.registry_.pair_books().Offer(
      session_, request.sends != 0, *OffersOf(packet),
      [weak = weak_from_this(), asked = request.header](const Status& status) {
        if (const auto self = weak.lock(); self != nullptr) {
          --self->offers_waiting_;
          self->AnswerCall(asked, status);
        }
      });
  return {};
}

Status AttachConnection::HandleRegionEnd(const attach::RegionEndRequest& request) {
  server_.registry_.regions().Remove(
      *session_, request.region,
      [weak = weak_from_this(), asked = request.header](const Status& status) {
        if (const auto self = weak.lock(); self != nullptr) {
          self->AnswerCall(asked, status);
        }
      });
  return {};
}

Status AttachConnection::HandleWhy(const attach::WhyRequest& request) {
  return server_.AskWhy(session_, [weak = weak_from_this(),
                                   asked = request.header](const StatusOr<std::string>& verdict) {
    if (const auto self = weak.lock(); self != nullptr) {
      self->AnswerCall(asked, verdict.status(), {0, verdict.ok() ? *verdict : "", {}});
    }
  });
}

Status AttachConnection::HandleProfile(const attach::ProfileRequest& request,
                                       SocketPacket& packet) {
  FERRY_RETURN_IF_ERROR(ExpectSession(packet, 1));
  FERRY_RETURN_IF_ERROR(server_.registry_.CheckServed(*session_));
  FERRY_RETURN_IF_ERROR(
      server_.registry_.profiles().Keep(session_, std::move(packet.fds[0]), request.segment_bytes));
  AnswerCall(request.header, {});
  return {};
}

Status AttachConnection::HandleCreateJob(const attach::JobRequest& request, SocketPacket& packet) {
  if (packet.fds.size() != 1) {
    return {ErrorCode::kCorrupt, "attach socket: a job comes with " +
                                     std::to_string(packet.fds.size()) +
                                     " descriptors instead of 1"};
  }
  if (launcher_.empty()) {
    return {ErrorCode::kPermissionDenied,
            "only launchers start jobs, and this connection is none: it has not said so (kUser)"};
  }
  const StatusOr<std::string> list = ReadList(packet.fds[0].get(), request.list_bytes);
  FERRY_RETURN_IF_ERROR(list.status());
  const StatusOr<control::CreateJobRequest> job = JobFrom(request, *list);
  FERRY_RETURN_IF_ERROR(job.status());
  StatusOr<JobSpec> spec = SpecFrom(*job);
  FERRY_RETURN_IF_ERROR(spec.status());
  FERRY_RETURN_IF_ERROR(server_.launchers_.CreateJob(launcher_, std::move(*spec)));
  AnswerCall(request.header, {});
  return {};
}

void AttachConnection::AnswerCall(const AttachHeader& asked, const Status& status,
                                  const CallAnswer& answer) {
  const std::string& text = status.ok() ? answer.text : status.message();
  attach::CallReply reply{};
  reply.header = AnswerTo(asked, Kind::kCallReply);
  reply.code = static_cast<int32_t>(status.code());
  reply.flags = answer.flags;
  reply.node = answer.places.node;
  reply.node_count = answer.places.node_count;
  reply.job_size = answer.places.job_size;
  reply.peer_count = static_cast<uint32_t>(answer.places.peers.size());
  reply.text_bytes = std::min<uint32_t>(static_cast<uint32_t>(text.size()), attach::kMostCallText);
  std::array<std::byte, attach::kMaxPacketBytes> bytes;
  const size_t places_bytes = reply.peer_count * sizeof(attach::PeerPlace);
  memcpy(bytes.data(), &reply, sizeof(reply));
  if (places_bytes != 0) {
    memcpy(bytes.data() + sizeof(reply), answer.places.peers.data(), places_bytes);
  }
  memcpy(bytes.data() + sizeof(reply) + places_bytes, text.data(), reply.text_bytes);
  SendBytes(std::span(bytes).first(sizeof(reply) + places_bytes + reply.text_bytes), {});
}

}  // namespace ferry::daemon
