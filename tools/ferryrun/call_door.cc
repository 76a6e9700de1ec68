#include "tools/ferryrun/call_door.h"

#include <netdb.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/counted.h"
#include "common/hex_text.h"
#include "common/net_address.h"
#include "config/environment.h"
#include "tools/ferryrun/hosts.h"

namespace ferry::tools {
namespace {

using client::MeetingStream;

constexpr uint64_t kSilenceNs = 10'000'000'000;
constexpr size_t kMostAddresses = 8;
constexpr size_t kSecretBytes = 32;

// The caller at the other end: "10.0.0.9".
std::string HostOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  std::array<char, NI_MAXHOST> host{};
  const bool is_known = getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                        getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host.data(),
                                    host.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  return is_known ? host.data() : "an unknown address";
}

// The addresses to call, the likeliest first.
StatusOr<std::vector<std::string>> AddressesToCall(const std::string& network) {
  const StatusOr<std::string> chosen = AddressOfThisHost(config::HostName(), network);
  if (!network.empty()) {
    FERRY_RETURN_IF_ERROR(chosen.status());
    return std::vector<std::string>{*chosen};
  }
  const StatusOr<std::vector<OwnAddress>> own = OwnAddresses();
  FERRY_RETURN_IF_ERROR(own.status());
  std::vector<std::string> addresses;
  if (chosen.ok()) {
    addresses.push_back(*chosen);
  }
  for (const OwnAddress& address : *own) {
    const bool is_known =
        std::find(addresses.begin(), addresses.end(), address.text) != addresses.end();
    const bool is_local = address.loopback || address.text.starts_with("fe80:");
    if (!is_known && !is_local && addresses.size() < kMostAddresses) {
      addresses.push_back(address.text);
    }
  }
  if (addresses.empty()) {
    addresses.emplace_back("127.0.0.1");  // then all hosts are this machine
  }
  return addresses;
}

StatusOr<std::string> DrawSecret() {
  std::array<uint8_t, kSecretBytes> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return StatusFromErrno(errno, "getrandom");
  }
  return HexText(bytes);
}

}  // namespace

Status CallDoor::Open(const std::string& network, const std::string& secret_of_job) {
  StatusOr<std::vector<std::string>> addresses = AddressesToCall(network);
  FERRY_RETURN_IF_ERROR(addresses.status());
  StatusOr<std::string> secret = DrawSecret();
  FERRY_RETURN_IF_ERROR(secret.status());
  key_ = client::KeyOfText(BothSecrets(*secret, secret_of_job));
  const std::string listens_at = addresses->size() == 1 ? addresses->front() : "::";
  StatusOr<UniqueFd> listener = daemon::ListenTcp({listens_at, 0}, "--network");
  FERRY_RETURN_IF_ERROR(listener.status());
  listener_ = std::move(*listener);
  place_ = {.port = daemon::PortOf(listener_.get()),
            .secret = std::move(*secret),
            .addresses = std::move(*addresses)};
  for (const std::string& address : place_.addresses) {
    where_ += (where_.empty() ? "" : ", ") + daemon::HostPort{address, place_.port}.Text();
  }
  return {};
}

void CallDoor::Serve(EventSet* events, size_t most, TakeCaller take,
                     std::function<void()> on_full) {
  events_ = events;
  most_ = most;
  take_ = std::move(take);
  on_full_ = std::move(on_full);
  events_->Add(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
}

void CallDoor::Shut() {
  while (!strangers_.empty()) {
    Drop(strangers_.begin()->first);
  }
  if (events_ != nullptr) {
    events_->Remove(listener_.get());
  }
  listener_.Reset();
}

void CallDoor::Accept() {
  while (listener_.valid()) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid() && (errno == EMFILE || errno == ENFILE)) {
      if (strangers_.empty()) {
        return on_full_();
      }
      DropOldest();
      continue;
    }
    if (!socket.valid() && (errno == EINTR || errno == ECONNABORTED)) {
      continue;
    }
    const StatusOr<Secret> number = socket.valid() ? client::DrawNumber() : Status();
    if (!socket.valid() || !number.ok()) {
      return;
    }
    const int on = 1;  // a host may be lost without a word
    (void)setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    if (strangers_.size() >= most_) {
      DropOldest();
    }
    const int fd = socket.get();
    std::string from = HostOf(fd);
    strangers_.emplace(
        fd, Stranger{MeetingStream(std::move(socket), MeetingStream::Side::kServer, key_, *number),
                     MonotonicNs() + kSilenceNs, std::move(from)});
    events_->Add(fd, EPOLLIN, [this, fd](uint32_t) { Hear(fd); });
  }
}

void CallDoor::Hear(int fd) {
  const auto found = strangers_.find(fd);
  if (found == strangers_.end()) {
    return;
  }
  const StatusOr<std::string> packet = found->second.stream.Turn();
  if (packet.status().code() == ErrorCode::kWouldBlock) {
    return;
  }
  if (packet.status().code() == ErrorCode::kPermissionDenied) {
    ++refused_;
    last_refused_ = found->second.from;
  }
  const std::optional<CallHello> hello = packet.ok() ? ReadCallHello(*packet) : std::nullopt;
  events_->Remove(fd);
  Stranger caller = std::move(found->second);
  strangers_.erase(found);
  if (hello) {
    take_(*hello, &caller.stream);
  }
}

void CallDoor::Drop(int fd) {
  events_->Remove(fd);
  strangers_.erase(fd);
}

void CallDoor::DropOldest() {
  const auto oldest = std::min_element(
      strangers_.begin(), strangers_.end(),
      [](const auto& a, const auto& b) { return a.second.end_ns < b.second.end_ns; });
  Drop(oldest->first);
}

void CallDoor::DropSilent(uint64_t now_ns) {
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    const int fd = stranger->first;
    const bool is_over = now_ns >= (stranger++)->second.end_ns;
    if (is_over) {
      Drop(fd);
    }
  }
}

std::string CallDoor::Remarks() const {
  return refused_ == 0
             ? ""
             : "; " + Counted(static_cast<int64_t>(refused_), "caller") +
                   " with another secret, the last from " + last_refused_ + ", had to be sent away";
}

}  // namespace ferry::tools
