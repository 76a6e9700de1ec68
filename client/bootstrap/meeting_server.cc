#include "client/bootstrap/meeting_server.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "common/net_address.h"
#include "common/peer_credentials.h"

namespace ferry::client {
namespace {

// More strangers than ranks that are still to come.
constexpr size_t kMoreStrangers = 64;
// After a failure: for ranks that have not come yet, to hear of it.
constexpr std::chrono::seconds kTellTime(3);

std::string NameOf(uint32_t rank, const std::string& process) {
  return "rank " + std::to_string(rank) + " (" + process + ")";
}

// The caller at the other end: "10.0.0.9".
std::string HostOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  std::array<char, NI_MAXHOST> host{};
  const bool is_known = getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                        getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host.data(),
                                    host.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  if (!is_known) {
    return "an unknown address";
  }
  // An IPv4 address at a socket that takes IPv6, too.
  constexpr std::string_view kMapped = "::ffff:";
  const std::string_view name = host.data();
  return std::string(name.starts_with(kMapped) ? name.substr(kMapped.size()) : name);
}

socklen_t FillAbstract(const std::string& name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const size_t size = std::min(name.size(), sizeof(address->sun_path) - 1);
  std::memcpy(address->sun_path + 1, name.data(), size);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

UniqueFd LocalSocket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

StatusOr<UniqueFd> ListenLocally(const std::string& name) {
  sockaddr_un address;
  const socklen_t size = FillAbstract(name, &address);
  UniqueFd listener = LocalSocket();
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      listen(listener.get(), SOMAXCONN) == 0) {
    return listener;
  }
  return errno == EADDRINUSE
             ? Status(ErrorCode::kAlreadyExists, "another process of this node listens at @" + name)
             : StatusFromErrno(errno, "cannot listen at @" + name);
}

StatusOr<UniqueFd> CallLocally(const std::string& name) {
  sockaddr_un address;
  const socklen_t size = FillAbstract(name, &address);
  UniqueFd caller = LocalSocket();
  if (connect(caller.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    return Status(ErrorCode::kNotFound, std::strerror(errno));
  }
  const StatusOr<ucred> other = PeerCredentials(caller.get());
  FERRY_RETURN_IF_ERROR(other.status());
  if (other->uid != geteuid()) {
    return Status(ErrorCode::kPermissionDenied, "user " + std::to_string(other->uid) +
                                                    " listens there, and this is user " +
                                                    std::to_string(geteuid()));
  }
  return caller;
}

MeetingServer::MeetingServer(const MeetingPlace& place, uint64_t stranger_ms)
    : place_(place),
      stranger_time_(stranger_ms),
      key_(KeyOfText(place.secret)),
      have_come_(place.size) {}

Status MeetingServer::Listen() {
  const auto explain = [&](const Status& status) {
    return status.code() != ErrorCode::kAlreadyExists
               ? status
               : Status(status.code(),
                        "rank 0 cannot serve the meeting of the ranks: " + status.message() +
                            ". If another job uses this MASTER_PORT, give each its own; else set "
                            "FERRY_MEETING_PORT to a free port of this host, on all ranks");
  };
  StatusOr<UniqueFd> local = ListenLocally(place_.local_name);
  FERRY_RETURN_IF_ERROR(explain(local.status()));
  local_ = std::move(*local);
  if (!place_.serves_port) {
    return {};
  }
  // At all addresses: MASTER_ADDR may stand for a service, or be this host's name for itself.
  StatusOr<UniqueFd> port = daemon::ListenTcp({"::", place_.address.port}, "FERRY_MEETING_PORT");
  if (port.status().code() == ErrorCode::kAlreadyExists) {
    return explain(Status(port.status().code(), "another process listens at port " +
                                                    std::to_string(place_.address.port)));
  }
  FERRY_RETURN_IF_ERROR(port.status());
  port_ = std::move(*port);
  return {};
}

uint16_t MeetingServer::port() const { return port_.valid() ? daemon::PortOf(port_.get()) : 0; }

// ---- Connections --------------------------------------------------------------------------------

void MeetingServer::Serve(std::optional<Clock::time_point> until) {
  std::vector<pollfd> waits;
  if (local_.valid()) {
    waits.push_back({local_.get(), POLLIN, 0});
  }
  if (port_.valid()) {
    waits.push_back({port_.get(), POLLIN, 0});
  }
  for (const Stranger& stranger : strangers_) {
    waits.push_back({stranger.stream.fd(), stranger.stream.events(), 0});
    until = std::min(until.value_or(stranger.until), stranger.until);
  }
  for (const auto& [rank, member] : members_) {
    if (!member.is_gone) {
      waits.push_back({member.stream.fd(), member.stream.events(), 0});
    }
  }
  int wait_ms = -1;
  if (until) {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now());
    wait_ms = static_cast<int>(std::max<int64_t>(rest.count(), 0));
  }
  if (poll(waits.data(), waits.size(), wait_ms) < 0 && errno != EINTR) {
    return Fail(ErrorCode::kSystem, std::string("poll: ") + std::strerror(errno));
  }
  std::unordered_set<int> ready;
  for (const pollfd& wait : waits) {
    if (wait.revents != 0) {
      ready.insert(wait.fd);
    }
  }
  for (auto& [rank, member] : members_) {
    if (!member.is_gone && ready.contains(member.stream.fd())) {
      HearMember(rank, &member);
    }
  }
  const Clock::time_point now = Clock::now();
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    const bool stays = !ready.contains(stranger->stream.fd()) || HearStranger(&*stranger);
    stranger = stays && now < stranger->until ? std::next(stranger) : strangers_.erase(stranger);
  }
  for (const bool is_local : {true, false}) {
    const int listener = is_local ? local_.get() : port_.get();
    if (ready.contains(listener)) {
      Accept(listener, is_local);
    }
  }
}

void MeetingServer::Accept(int listener, bool is_local) {
  for (;;) {
    UniqueFd connection(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.valid()) {
      Meet(std::move(connection), is_local);
      continue;
    }
    const bool has_no_descriptor = errno == EMFILE || errno == ENFILE;
    if (has_no_descriptor && !strangers_.empty()) {
      strangers_.pop_front();
      continue;
    }
    if (has_no_descriptor) {
      Fail(ErrorCode::kLimitExceeded, "rank 0 has no descriptor left for the connections of " +
                                          std::to_string(place_.size - 1) +
                                          " other ranks: raise `ulimit -n` there");
    }
    if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void MeetingServer::Meet(UniqueFd connection, bool is_local) {
  std::string from;
  if (is_local) {
    const StatusOr<ucred> caller = PeerCredentials(connection.get());
    if (!caller.ok() || caller->uid != geteuid()) {
      return;
    }
    from = "pid " + std::to_string(caller->pid) + " of this node";
  } else {
    from = HostOf(connection.get());
    WatchHost(connection.get(), true);
  }
  const StatusOr<Secret> number = DrawNumber();
  if (!number.ok()) {
    return Fail(number.status().code(), number.status().message());
  }
  if (strangers_.size() >= place_.size - members_.size() + kMoreStrangers) {
    strangers_.pop_front();
  }
  strangers_.push_back(
      {MeetingStream(std::move(connection), MeetingStream::Side::kServer, key_, *number),
       Clock::now() + stranger_time_, std::move(from), is_local});
}

bool MeetingServer::HearStranger(Stranger* stranger) {
  const StatusOr<std::string> packet = stranger->stream.Turn();
  if (packet.status().code() == ErrorCode::kWouldBlock) {
    return true;
  }
  if (packet.status().code() == ErrorCode::kPermissionDenied) {
    {
      const std::lock_guard lock(mutex_);
      ++refused_;
      last_refused_ = stranger->from;
    }
    if (stranger->is_local) {
      ++told_strangers_;
      Fail(ErrorCode::kPermissionDenied,
           "two ranks of this node have different secrets (FERRY_JOB_SECRET): " + stranger->from +
               " and rank 0 (" + NameOfProcess() + ")");
    }
  }
  if (packet.ok() && IsOf(MeetingKind::kHello, *packet)) {
    if (const auto hello = MeetingHello::Read(FieldsOf(*packet))) {
      Admit(stranger, *hello);
    }
  }
  return false;
}

void MeetingServer::Admit(Stranger* stranger, const MeetingHello& hello) {
  const std::string name = NameOf(hello.rank, hello.process);
  const std::string self = NameOf(0, NameOfProcess());
  const auto send_away = [stranger](const Status& status) {
    stranger->stream.Put(WriteEnd(status));
    (void)stranger->stream.Turn().ok();
  };
  if (hello.job != place_.job) {
    return send_away({ErrorCode::kConfiguration, name + " belongs to the run \"" + hello.job +
                                                     "\" (TORCHELASTIC_RUN_ID), and " + self +
                                                     ", to which it was led, to \"" + place_.job +
                                                     "\": give each job a MASTER_PORT of its own"});
  }
  const auto twin = members_.find(hello.rank);
  if (hello.size != place_.size) {
    Fail(ErrorCode::kConfiguration, name + " says that there are " + std::to_string(hello.size) +
                                        " ranks (WORLD_SIZE), and " + self + " says " +
                                        std::to_string(place_.size));
  } else if (hello.rank >= place_.size) {
    Fail(ErrorCode::kConfiguration, name + " is none of the " + std::to_string(place_.size) +
                                        " ranks from 0 on (RANK, WORLD_SIZE)");
  } else if (hello.rank == 0 || twin != members_.end()) {
    Fail(ErrorCode::kConfiguration,
         "two processes say that they are rank " + std::to_string(hello.rank) +
             " (RANK): " + (hello.rank == 0 ? NameOfProcess() : twin->second.process) + ", and " +
             hello.process + ": do two jobs use one MASTER_ADDR and MASTER_PORT?");
  }
  if (!failure_.ok()) {
    ++told_strangers_;
    return send_away(failure_);
  }
  Member& member =
      members_.emplace(hello.rank, Member{std::move(stranger->stream), hello.process, {}, false})
          .first->second;
  member.stream.Put(std::string(1, static_cast<char>(MeetingKind::kWelcome)));
  HearMember(hello.rank, &member);
}

void MeetingServer::HearMember(uint32_t rank, Member* member) {
  for (;;) {
    const StatusOr<std::string> packet = member->stream.Turn();
    if (packet.status().code() == ErrorCode::kWouldBlock) {
      return;
    }
    if (!packet.ok()) {
      member->is_gone = true;
      return Fail(ErrorCode::kPeerDied, NameOf(rank, member->process) +
                                            " has ended while the ranks meet, or lost its "
                                            "connection to rank 0");
    }
    TakePuts(rank, member, *packet);
  }
}

void MeetingServer::TakePuts(uint32_t rank, Member* member, std::string_view packet) {
  std::optional<MeetingPuts> puts;
  if (IsOf(MeetingKind::kPuts, packet)) {
    puts = ReadPuts(FieldsOf(packet));
  }
  if (!puts || member->puts) {
    return Fail(ErrorCode::kCorrupt,
                NameOf(rank, member->process) + " says what no rank of this version of Ferry says");
  }
  member->puts = std::move(puts);
  const std::lock_guard lock(mutex_);
  have_come_[rank] = true;
}

// ---- Fences -------------------------------------------------------------------------------------

Status MeetingServer::Fence(const MeetingPuts& own, MeetingTable* table) {
  WatchHosts(true);
  while (failure_.ok() && !HaveAllCome()) {
    Serve(std::nullopt);
  }
  if (!failure_.ok()) {
    return TellFailure();
  }
  // All are there: a process that comes now is of another job.
  local_.Reset();
  port_.Reset();
  strangers_.clear();
  SendTable(own, table);
  WatchHosts(false);
  return {};
}

// Between fences ranks compute, and nothing is to disturb them.
void MeetingServer::WatchHosts(bool are_watched) {
  for (const auto& [rank, member] : members_) {
    WatchHost(member.stream.fd(), are_watched);
  }
}

bool MeetingServer::HaveAllCome() const {
  return members_.size() + 1 == place_.size &&
         std::all_of(members_.begin(), members_.end(),
                     [](const auto& one) { return one.second.puts.has_value(); });
}

bool MeetingServer::HasOutput() const {
  return std::any_of(members_.begin(), members_.end(), [](const auto& one) {
    return !one.second.is_gone && one.second.stream.has_output();
  });
}

void MeetingServer::SendTable(const MeetingPuts& own, MeetingTable* table) {
  std::string packet;
  AddToTable(0, own, &packet);
  for (auto& [rank, member] : members_) {
    AddToTable(rank, *member.puts, &packet);
    member.puts.reset();
  }
  {
    const std::lock_guard lock(mutex_);
    have_come_.assign(place_.size, false);
  }
  (void)ReadTable(FieldsOf(packet), table);
  for (auto& [rank, member] : members_) {
    member.stream.Put(packet);
    HearMember(rank, &member);
  }
  while (HasOutput()) {
    Serve(std::nullopt);
  }
}

Status MeetingServer::TellFailure() {
  const Clock::time_point until = Clock::now() + kTellTime;
  const std::string end = WriteEnd(failure_);
  for (auto& [rank, member] : members_) {
    if (!member.is_gone) {
      member.stream.Put(end);
      HearMember(rank, &member);
    }
  }
  while (Clock::now() < until &&
         (HasOutput() || members_.size() + told_strangers_ + 1 < place_.size)) {
    Serve(until);
  }
  return failure_;
}

void MeetingServer::Fail(ErrorCode code, const std::string& words) {
  if (failure_.ok()) {
    failure_ = Status(code, words);
  }
}

std::string MeetingServer::Missing() const {
  const std::lock_guard lock(mutex_);
  std::vector<uint32_t> missing;
  for (uint32_t rank = 1; rank < have_come_.size(); ++rank) {
    if (!have_come_[rank]) {
      missing.push_back(rank);
    }
  }
  if (missing.empty()) {
    return "";
  }
  return "missing: " + NameRanks(missing) +
         (refused_ == 0 ? ""
                        : "; callers refused for another secret: " + std::to_string(refused_) +
                              ", the last one from " + last_refused_);
}

}  // namespace ferry::client
