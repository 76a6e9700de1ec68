#include "transports/tcp/tcp_acceptor.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace ferry::transport {
namespace {

// After an error of accept4, such as that no descriptor is left, which would come at once again.
constexpr uint64_t kPauseNs = 100'000'000;
constexpr int kBacklog = 1024;
constexpr size_t kMostAccepted = 64;  // in one look

// Purposes of secrets.
constexpr uint64_t kCalls = 1;
constexpr uint64_t kAnswers = 2;

Status ListenError(int error, const TransportOptions& options) {
  switch (error) {
    case EADDRINUSE:
      return Status(ErrorCode::kAlreadyExists,
                    "port " + std::to_string(options.port) + " of " + options.source_address +
                        " is in use; choose another port, or 0 for any.");
    case EADDRNOTAVAIL:
      return Status(ErrorCode::kInvalidArgument,
                    "source address '" + options.source_address +
                        "' belongs to no interface of this machine; give one that does.");
    default:
      return StatusFromErrno(error, "listening at source address '" + options.source_address + "'");
  }
}

}  // namespace

StatusOr<std::unique_ptr<TcpAcceptor>> TcpAcceptor::Open(const TransportOptions& options,
                                                         const TcpEndpoint& local, int epoll,
                                                         uint64_t tag) {
  TcpEndpoint address = local;
  address.port = options.port;
  UniqueFd listener(socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) {
    return StatusFromErrno(errno, "socket");
  }
  const int yes = 1;
  if (IsLoopback(local)) {  // also while no interface has it
    setsockopt(listener.get(), IPPROTO_IP, IP_FREEBIND, &yes, sizeof(yes));
  }
  SocketAddress bound = SocketAddressOf(address);
  if (setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(listener.get(), bound.get(), bound.bytes) != 0 ||
      listen(listener.get(), kBacklog) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.bytes) != 0) {
    return ListenError(errno, options);
  }
  const bool is_ip4 = address.family == AF_INET;
  address.port = ntohs(is_ip4 ? reinterpret_cast<const sockaddr_in*>(&bound.storage)->sin_port
                              : reinterpret_cast<const sockaddr_in6*>(&bound.storage)->sin6_port);
  if (getrandom(&address.number, sizeof(address.number), 0) !=
      static_cast<ssize_t>(sizeof(address.number))) {
    return StatusFromErrno(errno, "getrandom");
  }
  const StatusOr<SecretSource> secrets = SecretSource::Draw();
  FERRY_RETURN_IF_ERROR(secrets.status());
  std::unique_ptr<TcpAcceptor> acceptor(
      new TcpAcceptor(std::move(listener), address, *secrets, epoll, tag));
  FERRY_RETURN_IF_ERROR(acceptor->Watch(acceptor->listener_.get(), tag));
  return acceptor;
}

TcpAcceptor::TcpAcceptor(UniqueFd listener, const TcpEndpoint& endpoint,
                         const SecretSource& secrets, int epoll, uint64_t tag)
    : listener_(std::move(listener)),
      endpoint_(endpoint),
      secrets_(secrets),
      epoll_(epoll),
      tag_(tag) {}

TcpAddress TcpAcceptor::AddressFor(uint64_t guest) const {
  return {endpoint_, guest, secrets_.For(guest, kCalls), secrets_.For(guest, kAnswers)};
}

Status TcpAcceptor::Watch(int fd, uint64_t tag) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0 ? Status()
                                                           : StatusFromErrno(errno, "epoll_ctl");
}

void TcpAcceptor::OnReadable(uint64_t tag, uint64_t now_ns,
                             const std::function<void(Proved)>& take) {
  const auto read = [&](Stranger* stranger) {
    if (auto proved = Read(stranger)) {
      take(std::move(*proved));
    }
  };
  if (tag != tag_) {
    Stranger* const stranger = &strangers_[tag - tag_ - 1];
    return stranger->fd.valid() ? read(stranger) : void();
  }
  // All that have come, or many: a peer's must not grow old behind those of others.
  for (size_t accepted = 0; accepted < kMostAccepted; accepted++) {
    Stranger* const stranger = Accept(now_ns);
    if (stranger == nullptr) {
      return;
    }
    read(stranger);  // a peer has often said its Hello already
  }
}

bool TcpAcceptor::HasFreePlace() const {
  return !std::ranges::all_of(strangers_, [](const Stranger& one) { return one.fd.valid(); });
}

// Stops listening for a while. Peers that connect meanwhile wait.
void TcpAcceptor::PauseUntil(uint64_t ns) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_.get(), nullptr);
  resume_ns_ = ns;
}

// Returns a free place, or that of the stranger who has been here for longest. Null: all are young.
TcpAcceptor::Stranger* TcpAcceptor::FindPlace(uint64_t now_ns) {
  Stranger* const place = std::ranges::min_element(strangers_, {}, [](const Stranger& stranger) {
    return stranger.fd.valid() ? stranger.deadline_ns : 0;
  });
  const uint64_t old_ns = place->deadline_ns - kPatienceNs + kYoungNs;
  if (place->fd.valid() && now_ns < old_ns) {
    PauseUntil(old_ns);
    awaits_place_ = true;
    return nullptr;
  }
  return place;
}

// Accepts a stranger. Null: there is none, or no place for it.
TcpAcceptor::Stranger* TcpAcceptor::Accept(uint64_t now_ns) {
  Stranger* const place = FindPlace(now_ns);
  if (place == nullptr) {
    return nullptr;
  }
  UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      PauseUntil(now_ns + kPauseNs);
    }
    return nullptr;
  }
  *place = Stranger();
  place->fd = std::move(fd);
  place->deadline_ns = now_ns + kPatienceNs;
  const uint64_t tag = tag_ + 1 + static_cast<uint64_t>(place - strangers_.data());
  if (!Watch(place->fd.get(), tag).ok()) {
    place->fd.Reset();
    return nullptr;
  }
  return place;
}

std::optional<TcpAcceptor::Proved> TcpAcceptor::Read(Stranger* stranger) {
  TcpHello& hello = stranger->hello;
  const ssize_t count =
      recv(stranger->fd.get(), reinterpret_cast<std::byte*>(&hello) + stranger->bytes,
           sizeof(hello) - stranger->bytes, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return std::nullopt;
  }
  stranger->bytes += count > 0 ? static_cast<size_t>(count) : 0;
  if (count > 0 && stranger->bytes < sizeof(hello)) {
    return std::nullopt;
  }
  UniqueFd fd = std::move(stranger->fd);
  if (count <= 0 || hello.magic != kTcpMagic || !IsEndpoint(hello.from) ||
      !SameSecret(hello.proof, secrets_.For(hello.guest, kCalls))) {
    return std::nullopt;  // closes it
  }
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd.get(), nullptr);
  if (hello.version != kTcpVersion) {
    TcpWelcome ours;  // its version says why
    ours.proof = secrets_.For(hello.guest, kAnswers);
    (void)send(fd.get(), &ours, sizeof(ours), MSG_NOSIGNAL | MSG_DONTWAIT);
    return std::nullopt;
  }
  return Proved{std::move(fd), hello.guest, hello.from};
}

void TcpAcceptor::Advance(uint64_t now_ns) {
  for (Stranger& stranger : strangers_) {
    if (stranger.fd.valid() && stranger.deadline_ns <= now_ns) {
      stranger.fd.Reset();
    }
  }
  if (resume_ns_ != 0 && (resume_ns_ <= now_ns || (awaits_place_ && HasFreePlace()))) {
    awaits_place_ = false;
    resume_ns_ = Watch(listener_.get(), tag_).ok() ? 0 : now_ns + kPauseNs;
  }
}

uint64_t TcpAcceptor::NextNs() const {
  uint64_t next_ns = resume_ns_ != 0 ? resume_ns_ : UINT64_MAX;
  for (const Stranger& stranger : strangers_) {
    next_ns = stranger.fd.valid() ? std::min(next_ns, stranger.deadline_ns) : next_ns;
  }
  return next_ns;
}

void TcpAcceptor::Postpone(uint64_t ns) {
  for (Stranger& stranger : strangers_) {
    stranger.deadline_ns += ns;
  }
}

}  // namespace ferry::transport
