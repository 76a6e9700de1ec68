#include "tools/ferryrun/pmix_door.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

namespace ferry::tools {
namespace {

constexpr int kMostWaiting = 1024;
constexpr size_t kMostUnsentBytes = 1 << 20;  // for an end that does not read

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

const sockaddr* AsAddress(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

bool IsOfThisUser(int fd, uint16_t own_port) {
  sockaddr_in peer{};
  socklen_t size = sizeof(peer);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    return false;
  }
  std::ostringstream table;
  table << std::ifstream("/proc/net/tcp").rdbuf();
  return OwnerOfPeer(table.str(), own_port, ntohs(peer.sin_port)) ==
         static_cast<int64_t>(geteuid());
}

UniqueFd ConnectTo(uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  // The server listens already, so this does not wait.
  if (!fd.valid() || connect(fd.get(), AsAddress(address), sizeof(address)) != 0 ||
      fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) {
    return UniqueFd();
  }
  return fd;
}

}  // namespace

// "  12: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000 ..."
int64_t OwnerOfPeer(const std::string& table, uint16_t own_port, uint16_t peer_port) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    unsigned local = 0;
    unsigned remote = 0;
    long long uid = -1;
    if (std::sscanf(line.c_str(), "%*d: 0100007F:%x 0100007F:%x %*x %*x:%*x %*x:%*x %*x %lld",
                    &local, &remote, &uid) == 3 &&
        local == peer_port && remote == own_port) {
      return uid;
    }
  }
  return -1;
}

PmixDoor::PmixDoor(EventSet* events, std::function<StatusOr<uint16_t>()> start)
    : events_(events), start_(std::move(start)) {}

void PmixDoor::Close() {
  while (!relays_.empty()) {
    Remove(relays_.begin()->first);
  }
  if (listener_.valid()) {
    events_->Remove(listener_.get());
    listener_.Reset();
  }
}

Status PmixDoor::Open() {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (!listener.valid() || bind(listener.get(), AsAddress(address), sizeof(address)) != 0 ||
      listen(listener.get(), kMostWaiting) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return StatusFromErrno(errno, "cannot listen on the loopback address");
  }
  port_ = ntohs(address.sin_port);
  listener_ = std::move(listener);
  events_->Add(listener_.get(), EPOLLIN, [this](uint32_t) { OnKnock(); });
  return {};
}

void PmixDoor::OnKnock() {
  UniqueFd rank(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!rank.valid() || failed_ || !IsOfThisUser(rank.get(), port_)) {
    return;
  }
  const StatusOr<uint16_t> port = start_();
  failed_ = !port.ok();
  UniqueFd server = failed_ ? UniqueFd() : ConnectTo(*port);
  if (!server.valid()) {
    return;
  }
  auto made = std::make_unique<Relay>();
  Relay* const relay = made.get();
  relay->ends[0].fd = std::move(rank);
  relay->ends[1].fd = std::move(server);
  relays_[relay] = std::move(made);
  for (const int end : {0, 1}) {
    events_->Add(relay->ends[end].fd.get(), EPOLLIN,
                 [this, relay, end](uint32_t events) { OnEvents(relay, end, events); });
  }
}

void PmixDoor::OnEvents(Relay* relay, int end, uint32_t events) {
  End* const own = &relay->ends[end];
  End* const other = &relay->ends[1 - end];
  bool lives = (events & EPOLLOUT) == 0 || Send(own);
  if (lives && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    lives = Pass(own, other);
  }
  if (lives) {
    Watch(*relay);
  } else {
    Remove(relay);
  }
}

// False: the connection has ended.
bool PmixDoor::Pass(End* from, End* to) {
  std::array<char, 65536> bytes;
  const ssize_t size = read(from->fd.get(), bytes.data(), bytes.size());
  if (size <= 0) {
    return size < 0 && (errno == EINTR || errno == EAGAIN);
  }
  to->unsent.append(bytes.data(), static_cast<size_t>(size));
  return Send(to);
}

bool PmixDoor::Send(End* end) {
  while (!end->unsent.empty()) {
    const ssize_t size =
        send(end->fd.get(), end->unsent.data(), end->unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0) {
      return errno == EAGAIN;
    }
    end->unsent.erase(0, static_cast<size_t>(size));
  }
  return true;
}

// An end is not read while the other one does not take what has come.
void PmixDoor::Watch(const Relay& relay) {
  for (const int end : {0, 1}) {
    events_->Change(relay.ends[end].fd.get(),
                    (relay.ends[1 - end].unsent.size() < kMostUnsentBytes ? uint32_t{EPOLLIN} : 0) |
                        (relay.ends[end].unsent.empty() ? 0 : uint32_t{EPOLLOUT}));
  }
}

void PmixDoor::Remove(Relay* relay) {
  for (const End& end : relay->ends) {
    events_->Remove(end.fd.get());
  }
  relays_.erase(relay);
}

}  // namespace ferry::tools
