#include "client/bootstrap/environment_meeting.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "client/bootstrap/node_ranks.h"
#include "common/clock.h"
#include "common/process_stat.h"
#include "common/sleep.h"

namespace ferry::client {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
// Between two calls of a rank 0 that does not listen yet.
constexpr uint64_t kFirstPauseMs = 5;
constexpr uint64_t kLastPauseMs = 200;
// For one attempt to connect: a host that is being started drops the first ones.
constexpr int kConnectMs = 3000;
constexpr int kMostGenerations = 64;

// Waits for a connection that is under way; 0 or an errno.
int FinishConnect(int socket) {
  pollfd waiting{socket, POLLOUT, 0};
  if (poll(&waiting, 1, kConnectMs) == 0) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// kNodeUnreachable: the name is unknown. kNotFound: no process listens there.
StatusOr<UniqueFd> CallPort(const daemon::HostPort& address) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error =
          getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
      error != 0) {
    return Status(ErrorCode::kNodeUnreachable, gai_strerror(error));
  }
  UniqueFd connected;
  int error = 0;
  for (const addrinfo* one = found; one != nullptr && !connected.valid(); one = one->ai_next) {
    UniqueFd fd(
        socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, one->ai_protocol));
    error = fd.valid() && (connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) ? 0 : errno;
    if (fd.valid() && error == EINPROGRESS) {
      error = FinishConnect(fd.get());
    }
    if (error == 0) {
      connected = std::move(fd);
    }
  }
  freeaddrinfo(found);
  if (!connected.valid()) {
    return Status(ErrorCode::kNotFound, std::strerror(error));
  }
  WatchHost(connected.get(), true);
  return connected;
}

// Processes that a rank starts inherit its variables. So while a rank is in its job, it listens at
// a local name with its pid in it, and a process that is to be a rank looks for its ancestors
// there.
std::string MarkOf(const MeetingPlace& place, pid_t pid) {
  return place.local_name + "-pid-" + std::to_string(pid);
}

Status CheckStartedByNoRank(const MeetingPlace& place) {
  pid_t ancestor = getppid();
  for (int generation = 0; generation < kMostGenerations && ancestor > 1; ++generation) {
    if (CallLocally(MarkOf(place, ancestor)).ok()) {
      return {ErrorCode::kConfiguration,
              "pid " + std::to_string(ancestor) + ", a rank of a job, has started this process, " +
                  "which inherits RANK=" + std::to_string(place.rank) +
                  " from it and would be that rank once more: start it by `env -u RANK -u "
                  "WORLD_SIZE PROGRAM` if it is to be a job of its own, or by ferryrun"};
    }
    ancestor = ReadProcessStat(ancestor).parent;
  }
  return {};
}

}  // namespace

EnvironmentMeeting::EnvironmentMeeting(const MeetingPlace& place, uint64_t answer_ms)
    : place_(place), answer_ms_(answer_ms) {
  // While rank 0 is not there, one rank of each node says so: of rank 0's own node the next one.
  const uint32_t speaker = place.local_rank == place.rank ? 1 : 0;
  if (place.rank != 0 && place.local_rank > speaker) {
    local_ranks_.push_back(speaker);
  }
  local_ranks_.push_back(place.rank);
}

StatusOr<std::unique_ptr<EnvironmentMeeting>> EnvironmentMeeting::Open(const MeetingPlace& place,
                                                                       uint64_t answer_ms) {
  if (place.size > 1) {
    FERRY_RETURN_IF_ERROR(CheckStartedByNoRank(place));
  }
  std::unique_ptr<EnvironmentMeeting> meeting(new EnvironmentMeeting(place, answer_ms));
  if (StatusOr<UniqueFd> mark = ListenLocally(MarkOf(place, getpid())); mark.ok()) {
    meeting->mark_ = std::move(*mark);
  }
  if (place.rank == 0) {
    meeting->server_ = std::make_unique<MeetingServer>(place, answer_ms);
    if (place.size > 1) {
      FERRY_RETURN_IF_ERROR(meeting->server_->Listen());
    }
  }
  return meeting;
}

std::string EnvironmentMeeting::Where() const {
  return place_.calls_locally ? "@" + place_.local_name
                              : place_.address.Text() + " (MASTER_ADDR; FERRY_MEETING_PORT)";
}

void EnvironmentMeeting::SetTrouble(const std::string& words) {
  const std::lock_guard lock(mutex_);
  trouble_ = words;
}

std::string EnvironmentMeeting::Missing() const {
  if (server_ != nullptr) {
    return server_->Missing();
  }
  const std::lock_guard lock(mutex_);
  return trouble_;
}

// ---- Meeting ------------------------------------------------------------------------------------

Status EnvironmentMeeting::Meet() {
  if (server_ == nullptr) {
    FERRY_RETURN_IF_ERROR(CallRankZero());
  }
  StatusOr<std::vector<uint32_t>> ranks = FindRanksOfNode(this);
  FERRY_RETURN_IF_ERROR(ranks.status());
  local_ranks_ = std::move(*ranks);
  return {};
}

// Calls until rank 0 listens, for as long as that takes. Anything else that is wrong may be right
// soon, while a job starts: a host's name is not known yet; rank 0 hangs up, because many call it
// at once. So that is an error only when it lasts.
Status EnvironmentMeeting::CallRankZero() {
  uint64_t pause_ms = kFirstPauseMs;
  std::optional<uint64_t> wrong_since_ns;
  for (;;) {
    StatusOr<UniqueFd> connection =
        place_.calls_locally ? CallLocally(place_.local_name) : CallPort(place_.address);
    Status trouble = connection.status();
    if (connection.ok()) {
      const StatusOr<bool> is_admitted = Introduce(std::move(*connection));
      if (!is_admitted.ok() || *is_admitted) {
        SetTrouble("");
        return is_admitted.status();
      }
      trouble = Status(ErrorCode::kCorrupt, "the process that listens there hangs up");
    }
    const uint64_t now_ns = MonotonicNs();
    const bool is_wrong = trouble.code() != ErrorCode::kNotFound;
    wrong_since_ns = is_wrong ? std::optional(wrong_since_ns.value_or(now_ns)) : std::nullopt;
    if (trouble.code() == ErrorCode::kPermissionDenied ||
        (is_wrong && now_ns - *wrong_since_ns >= answer_ms_ * kNsPerMs)) {
      return Cannot(trouble);
    }
    SetTrouble("rank 0, which the others call at " + Where() + ", is not there yet (" +
               trouble.message() + ")");
    SleepUntilNs(now_ns + pause_ms * kNsPerMs);
    pause_ms = std::min(2 * pause_ms, kLastPauseMs);
  }
}

Status EnvironmentMeeting::Cannot(const Status& why) const {
  return {why.code(), "the ranks cannot meet at " + Where() + ": " + why.message()};
}

// Returns false if rank 0 hangs up. An error is there to stay.
StatusOr<bool> EnvironmentMeeting::Introduce(UniqueFd connection) {
  const StatusOr<Secret> number = DrawNumber();
  FERRY_RETURN_IF_ERROR(number.status());
  rank_zero_.emplace(std::move(connection), MeetingStream::Side::kCaller, KeyOfText(place_.secret),
                     *number);
  rank_zero_->Put(MeetingHello{place_.job, place_.size, place_.rank, NameOfProcess()}.Write());
  const StatusOr<std::string> packet = Hear(MonotonicNs() + answer_ms_ * kNsPerMs);
  if (packet.ok() && IsOf(MeetingKind::kWelcome, *packet)) {
    return true;
  }
  if (packet.ok()) {
    return ReadEnd(FieldsOf(*packet));
  }
  switch (packet.status().code()) {
    case ErrorCode::kSystem:
      return false;
    case ErrorCode::kTimeout:
      return Cannot({ErrorCode::kTimeout,
                     "the process that listens there has not answered for " +
                         std::to_string(answer_ms_) +
                         " ms: it stands still, or it is not rank 0 (see FERRY_MEETING_PORT)"});
    case ErrorCode::kPermissionDenied:
      return Cannot({ErrorCode::kPermissionDenied,
                     "rank 0 has another secret than this rank, or none: give all of them the same "
                     "FERRY_JOB_SECRET or FERRY_JOB_SECRET_FILE"});
    default:
      return Cannot(packet.status());
  }
}

// Waits for the next packet. kTimeout, and the errors of MeetingStream::Turn.
StatusOr<std::string> EnvironmentMeeting::Hear(std::optional<uint64_t> until_ns) {
  for (;;) {
    StatusOr<std::string> packet = rank_zero_->Turn();
    if (packet.status().code() != ErrorCode::kWouldBlock) {
      return packet;
    }
    int wait_ms = -1;
    if (until_ns) {
      const uint64_t now_ns = MonotonicNs();
      if (now_ns >= *until_ns) {
        return Status(ErrorCode::kTimeout, "");
      }
      wait_ms = static_cast<int>((*until_ns - now_ns) / kNsPerMs + 1);
    }
    pollfd waiting{rank_zero_->fd(), rank_zero_->events(), 0};
    if (poll(&waiting, 1, wait_ms) < 0 && errno != EINTR) {
      return StatusFromErrno(errno, "poll");
    }
  }
}

// ---- The exchange -------------------------------------------------------------------------------

Status EnvironmentMeeting::Put(const std::string& name, const std::string& words) {
  puts_.emplace_back(name, words);
  return {};
}

Status EnvironmentMeeting::Fence() {
  const MeetingPuts puts = std::exchange(puts_, {});
  if (server_ != nullptr) {
    return server_->Fence(puts, &table_);
  }
  WatchHost(rank_zero_->fd(), true);
  rank_zero_->Put(WritePuts(puts));
  const StatusOr<std::string> packet = Hear(std::nullopt);
  WatchHost(rank_zero_->fd(), false);  // until the next one, the rank computes
  if (!packet.ok()) {
    return {ErrorCode::kPeerDied, "rank 0, which the others have called at " + Where() +
                                      ", has ended while the ranks meet, or lost its connection "
                                      "to rank " +
                                      std::to_string(place_.rank)};
  }
  const std::string_view fields = FieldsOf(*packet);
  if (IsOf(MeetingKind::kEnd, *packet)) {
    return ReadEnd(fields);
  }
  if (!IsOf(MeetingKind::kTable, *packet) || !ReadTable(fields, &table_)) {
    return {ErrorCode::kCorrupt, "rank 0 says what no rank of this version of Ferry says"};
  }
  return {};
}

StatusOr<std::string> EnvironmentMeeting::Get(uint32_t rank, const std::string& name) {
  const auto found = table_.find({rank, name});
  return found == table_.end()
             ? StatusOr<std::string>(Status(
                   ErrorCode::kNotFound, "rank " + std::to_string(rank) + " has said no " + name))
             : found->second;
}

}  // namespace ferry::client
