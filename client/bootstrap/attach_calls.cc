// AttachConnection: the calls about jobs and persistent requests. See attach_connection.h.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "client/bootstrap/attach_connection.h"
#include "common/rank_table.h"
#include "common/unique_fd.h"

namespace ferry::client {
namespace {

// A NIC pins some 10 GB/s; one that is much slower than this limit is broken.
constexpr uint64_t kPinnedBytesPerMs = 128 << 10;

// All of it, in a memfd that cannot shrink.
StatusOr<UniqueFd> SealedCopy(const std::string& bytes) {
  UniqueFd fd(memfd_create("ferry-job", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() ||
      write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    return StatusFromErrno(errno, "memory for the list of a job's ranks");
  }
  return fd;
}

}  // namespace

StatusOr<AttachConnection::Membership> AttachConnection::Peers(uint32_t first) {
  attach::PeersRequest request{};
  request.first = first;
  StatusOr<CallAnswer> answer = Call(attach::Kind::kPeers, &request, timeout_ms_);
  FERRY_RETURN_IF_ERROR(answer.status());
  return Membership{answer->reply.node, answer->reply.node_count, std::move(answer->peers)};
}

StatusOr<AttachConnection::Membership> AttachConnection::Join(uint64_t first_ms,
                                                              const Waits& waits) {
  attach::JoinRequest request{};
  request.wait_ms = first_ms == 0 ? PollMs() : std::min(first_ms, PollMs());
  StatusOr<CallAnswer> answer = Call(attach::Kind::kJoin, &request, PollTimeoutMs());
  while (answer.ok() && (answer->reply.flags & attach::kStillWaiting) != 0) {
    waits(answer->text);
    answer = Call(attach::Kind::kJoin, &request, PollTimeoutMs());
  }
  FERRY_RETURN_IF_ERROR(answer.status());
  return Membership{answer->reply.node, answer->reply.node_count, std::move(answer->peers)};
}

Status AttachConnection::TakePlaces(Membership first, uint32_t size, const TakePlace& take) {
  StatusOr<Membership> some = std::move(first);
  uint32_t rank = 0;
  while (true) {
    for (const attach::PeerPlace& place : some->peers) {
      if (rank < size) {
        take(rank, place);
      }
      ++rank;
    }
    if (some->peers.empty() || rank >= size) {
      break;
    }
    some = Peers(rank);
    FERRY_RETURN_IF_ERROR(some.status());
  }
  return rank == size
             ? Status()
             : Status(ErrorCode::kCorrupt, "ferryd placed " + std::to_string(rank) +
                                               " ranks of a job of " + std::to_string(size));
}

Status AttachConnection::Detach() {
  attach::DetachRequest request{};
  request.wait_ms = PollMs();
  StatusOr<CallAnswer> answer = Call(attach::Kind::kDetach, &request, PollTimeoutMs());
  while (answer.ok() && (answer->reply.flags & attach::kStillWaiting) != 0) {
    answer = Call(attach::Kind::kDetach, &request, PollTimeoutMs());
  }
  return answer.status();
}

StatusOr<std::string> AttachConnection::Why() {
  attach::WhyRequest request{};
  StatusOr<CallAnswer> answer = Call(attach::Kind::kWhy, &request, timeout_ms_);
  FERRY_RETURN_IF_ERROR(answer.status());
  return std::move(answer->text);
}

Status AttachConnection::LeaveProfile(int fd, uint64_t size_bytes) {
  attach::ProfileRequest request{};
  request.segment_bytes = size_bytes;
  return Call(attach::Kind::kProfile, &request, timeout_ms_, {fd}).status();
}

Status AttachConnection::Abort(int exit_code, const char* reason) {
  attach::AbortRequest request{};
  request.exit_code = exit_code;
  const std::string text = reason == nullptr ? "" : reason;
  text.copy(request.reason, sizeof(request.reason) - 1);
  return Call(attach::Kind::kAbort, &request, timeout_ms_).status();
}

// Other ranks' memory may come first.
Status AttachConnection::EndRegion(uint32_t region, uint64_t size_bytes) {
  attach::RegionEndRequest request{};
  request.region = region;
  return Call(attach::Kind::kRegionEnd, &request, timeout_ms_ + size_bytes / kPinnedBytesPerMs)
      .status();
}

Status AttachConnection::OfferPairs(bool sends, std::span<const attach::PairOffer> offers) {
  std::vector<std::byte> packet(sizeof(attach::OfferRequest) + offers.size_bytes());
  attach::OfferRequest request{};
  request.sends = sends ? 1 : 0;
  request.count = static_cast<uint32_t>(offers.size());
  std::memcpy(packet.data(), &request, sizeof(request));
  std::memcpy(packet.data() + sizeof(request), offers.data(), offers.size_bytes());
  return Call(attach::Kind::kOffer, packet, timeout_ms_).status();
}

Status AttachConnection::WithdrawPair(bool send, const attach::PairKey& key, uint64_t rounds) {
  attach::WithdrawRequest request{};
  request.key = key;
  request.send = send ? 1 : 0;
  request.rounds = rounds;
  return Call(attach::Kind::kWithdraw, &request, timeout_ms_).status();
}

Status AttachConnection::CreateJob(const NewJob& job) {
  attach::JobRequest request{};
  if (job.id.size() > sizeof(request.job_id) || job.secret.size() > sizeof(request.job_secret)) {
    return {ErrorCode::kInvalidArgument, "a job's name or secret is too long"};
  }
  std::string list = PackNodes(job.node_of_rank);
  request.table_bytes = static_cast<uint32_t>(list.size());
  for (const std::string& address : job.addresses) {
    list.append(address.c_str(), address.size() + 1);
  }
  request.size = static_cast<uint32_t>(job.node_of_rank.size());
  request.node = job.node;
  request.node_count = static_cast<uint32_t>(job.addresses.size());
  request.list_bytes = static_cast<uint32_t>(list.size());
  job.id.copy(request.job_id, sizeof(request.job_id));
  std::memcpy(request.job_secret, job.secret.data(), job.secret.size());
  request.job_secret_bytes = static_cast<uint32_t>(job.secret.size());
  request.tree_radix = job.tree_radix;
  const StatusOr<UniqueFd> fd = SealedCopy(list);
  FERRY_RETURN_IF_ERROR(fd.status());
  return Call(attach::Kind::kCreateJob, &request, timeout_ms_, {fd->get()}).status();
}

}  // namespace ferry::client
