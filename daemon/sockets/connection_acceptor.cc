#include "daemon/sockets/connection_acceptor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/peer_credentials.h"
#include "daemon/sockets/disposal.h"

namespace ferry::daemon {
namespace {

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

// Where an IPv4 connection came to an IPv6 socket, the kernel keeps the other end as IPv4.
void SetAddress(const sockaddr_storage& address, uint8_t* family, __be32 (&words)[4],
                __be16* port) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    *family = AF_INET;
    words[0] = v4.sin_addr.s_addr;
    *port = v4.sin_port;
    return;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  *port = v6.sin6_port;
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    *family = AF_INET;
    memcpy(&words[0], &v6.sin6_addr.s6_addr[12], sizeof(words[0]));
  } else {
    *family = AF_INET6;
    memcpy(words, &v6.sin6_addr, sizeof(v6.sin6_addr));
  }
}

// The socket at the other end, by its addresses, which are ours the other way round.
bool MakeQuestion(int tcp_socket, Question* question) {
  sockaddr_storage ours{};
  sockaddr_storage theirs{};
  socklen_t our_size = sizeof(ours);
  socklen_t their_size = sizeof(theirs);
  if (getsockname(tcp_socket, reinterpret_cast<sockaddr*>(&ours), &our_size) != 0 ||
      getpeername(tcp_socket, reinterpret_cast<sockaddr*>(&theirs), &their_size) != 0 ||
      ours.ss_family != theirs.ss_family ||
      (ours.ss_family != AF_INET && ours.ss_family != AF_INET6)) {
    return false;
  }
  *question = {};
  question->header.nlmsg_len = sizeof(*question);
  question->header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question->header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = question->request;
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = ~0U;
  SetAddress(theirs, &request.sdiag_family, request.id.idiag_src, &request.id.idiag_sport);
  SetAddress(ours, &request.sdiag_family, request.id.idiag_dst, &request.id.idiag_dport);
  request.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return true;
}

constexpr int kAtOnce = 64;  // then it is others' turn on the control thread
constexpr std::chrono::milliseconds kRetry(100);

std::string AddressText(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text,
              sizeof(text));
  }
  return text;
}

Caller CallerOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  const bool known = getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (known && address.ss_family != AF_UNIX) {
    const std::optional<uid_t> user = LocalUserOf(socket);
    return user ? Caller{"uid " + std::to_string(*user), *user}
                : Caller{"address " + AddressText(address)};
  }
  const StatusOr<ucred> caller = PeerCredentials(socket);
  return caller.ok()
             ? Caller{"uid " + std::to_string(caller->uid), caller->uid, caller->gid, caller->pid}
             : Caller{"a caller who has left"};
}

// Returns true if a connection waits. accept4 does not tell: without a free descriptor it fails
// before it looks.
bool SomebodyWaits(int listener) {
  pollfd waiting{listener, POLLIN, 0};
  return poll(&waiting, 1, 0) > 0;
}

ino_t InodeOf(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

}  // namespace

// ---- LocalUser ----

std::optional<uid_t> LocalUserOf(int tcp_socket) {
  Question question;
  if (!MakeQuestion(tcp_socket, &question)) {
    return std::nullopt;
  }
  const UniqueFd kernel(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!kernel.valid() || send(kernel.get(), &question, sizeof(question), 0) < 0) {
    return std::nullopt;
  }
  // The kernel has answered when send returns.
  alignas(nlmsghdr) char answer[1024];
  const ssize_t size = recv(kernel.get(), answer, sizeof(answer), MSG_DONTWAIT);
  nlmsghdr header{};
  inet_diag_msg found{};
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(found)))) {
    return std::nullopt;
  }
  memcpy(&header, answer, sizeof(header));
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) {
    return std::nullopt;
  }
  memcpy(&found, answer + NLMSG_HDRLEN, sizeof(found));
  // A lookup may end at a socket that only listens at that address.
  const bool is_the_other_end = found.id.idiag_sport == question.request.id.idiag_sport &&
                                found.id.idiag_dport == question.request.id.idiag_dport;
  return is_the_other_end ? std::optional<uid_t>(found.idiag_uid) : std::nullopt;
}

bool LacksRoom(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

// ---- ConnectionAcceptor ----

ConnectionAcceptor::ConnectionAcceptor(boost::asio::io_context& context, std::string socket,
                                       const ConnectionLimits& limits, Handlers handlers)
    : context_(context),
      socket_(std::move(socket)),
      limits_(limits),
      handlers_(std::move(handlers)),
      listener_(context) {}

void ConnectionAcceptor::Start(UniqueFd listener) {
  (void)HasSpare();
  listener_.assign(listener.Release());
  AcceptSoon();
}

void ConnectionAcceptor::Forget(int fd) {
  for (auto caller_open = open_.begin(); caller_open != open_.end();) {
    std::vector<Open>& connections = caller_open->second;
    counted_ -= std::erase_if(connections, [fd](const Open& open) { return open.fd == fd; });
    caller_open = connections.empty() ? open_.erase(caller_open) : std::next(caller_open);
  }
}

void ConnectionAcceptor::Stop() {
  if (listener_.is_open()) {  // with connections that no call has accepted
    Disposal::Instance().CloseSocket(UniqueFd(listener_.release()));
  }
  retry_.reset();
  spare_.Reset();
  open_.clear();
  counted_ = 0;
}

// ---- Accepting ----

void ConnectionAcceptor::AcceptSoon() {
  listener_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                       [this](const boost::system::error_code& error) {
                         if (!error && listener_.is_open()) {
                           AcceptSome();
                         }
                       });
}

void ConnectionAcceptor::AcceptSome() {
  for (int count = 0; count < kAtOnce && listener_.is_open(); ++count) {
    UniqueFd fd(accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid() && HasSpare()) {
      Accept(std::move(fd));
    } else if (fd.valid()) {
      RefuseForWantOfDescriptors(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE) {
      if (!SomebodyWaits(listener_.native_handle())) {
        break;
      }
      if (!RefuseOne()) {
        return RetryLater("file descriptors: raise ulimit -n");
      }
    } else if (LacksRoom(errno)) {
      return RetryLater("memory");
    } else if (errno != ECONNABORTED && errno != EINTR) {
      break;
    }
  }
  if (listener_.is_open()) {
    AcceptSoon();
  }
}

void ConnectionAcceptor::Accept(UniqueFd fd) {
  const Caller caller = CallerOf(fd.get());
  if (const Status refusal = CheckLimits(caller); !refusal.ok()) {
    return handlers_.refuse(std::move(fd), caller, refusal);
  }
  open_[caller.name].push_back({fd.get(), InodeOf(fd.get())});
  ++counted_;
  handlers_.take(std::move(fd), caller);
}

// ---- Out of descriptors ----

// Returns true if there is a spare descriptor, as there must be for a connection to be taken.
bool ConnectionAcceptor::HasSpare() {
  if (!spare_.valid()) {
    spare_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  return spare_.valid();
}

// Refuses one connection by the spare descriptor. Returns false if there is not even that, or no
// connection waits.
bool ConnectionAcceptor::RefuseOne() {
  if (!HasSpare() && handlers_.make_room) {
    handlers_.make_room();
  }
  if (!HasSpare()) {
    return false;
  }
  spare_.Reset();
  UniqueFd fd(accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) {
    return false;
  }
  RefuseForWantOfDescriptors(std::move(fd));
  return true;
}

void ConnectionAcceptor::RefuseForWantOfDescriptors(UniqueFd fd) {
  const Caller caller = CallerOf(fd.get());
  handlers_.refuse(std::move(fd), caller, OutOfDescriptors());
}

Status ConnectionAcceptor::OutOfDescriptors() {
  return {ErrorCode::kLimitExceeded,
          "ferryd is out of file descriptors: try again later, or raise its limit (ulimit -n, "
          "LimitNOFILE in the unit)"};
}

// Those who wait stay in the queue; asking for them at once would only burn the processor.
void ConnectionAcceptor::RetryLater(const char* lack) {
  LogLimited(shortages_, spdlog::level::err, "{}: out of {}", socket_, lack);
  retry_.emplace(context_, kRetry);
  retry_->async_wait([this](const boost::system::error_code& error) {
    if (!error && listener_.is_open()) {
      AcceptSome();
    }
  });
}

// ---- Limits ----

size_t ConnectionAcceptor::CountOpen(std::vector<Open>& connections) {
  std::erase_if(connections, [](const Open& open) { return InodeOf(open.fd) != open.inode; });
  return connections.size();
}

std::string ConnectionAcceptor::Callers() {
  std::string names;
  for (auto& [name, connections] : open_) {
    counted_ -= connections.size();
    if (CountOpen(connections) != 0) {
      names += (names.empty() ? "" : " or ") + name;
    }
    counted_ += connections.size();
  }
  return names;
}

Status ConnectionAcceptor::CheckLimits(const Caller& caller) {
  if (const auto found = open_.find(caller.name);
      found != open_.end() && found->second.size() >= limits_.of_user) {
    counted_ -= found->second.size();
    const size_t count = CountOpen(found->second);
    counted_ += count;
    if (count >= limits_.of_user) {
      return {ErrorCode::kLimitExceeded,
              caller.name + " has " + std::to_string(count) + " connections to " + socket_ +
                  ", as many as one user may have (max_local_ranks and some more): end ranks or "
                  "launchers"};
    }
  }
  if (counted_ >= limits_.in_all) {
    counted_ = 0;
    for (auto caller_open = open_.begin(); caller_open != open_.end();) {
      const size_t count = CountOpen(caller_open->second);
      counted_ += count;
      caller_open = count == 0 ? open_.erase(caller_open) : std::next(caller_open);
    }
    if (counted_ >= limits_.in_all) {
      return {ErrorCode::kLimitExceeded,
              socket_ + " has " + std::to_string(counted_) +
                  " connections, as many as all users together may have: try again later"};
    }
  }
  return {};
}

}  // namespace ferry::daemon
