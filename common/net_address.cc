#include "common/net_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "common/number_text.h"
#include "common/unique_fd.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kLoopbackNet = 127;

// Reads a numeric address, or "localhost" as 127.0.0.1; AF_UNSPEC for any other text.
sockaddr_storage NumericAddress(const std::string& host, uint16_t port, socklen_t* size) {
  sockaddr_storage storage{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  const char* text = host == "localhost" ? "127.0.0.1" : host.c_str();
  if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    *size = sizeof(*v4);
    return storage;
  }
  storage = {};
  if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    *size = sizeof(*v6);
  }
  return storage;
}

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == kLoopbackNet;
  }
  return address.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

// The first address of a name.
Status LookUp(const HostPort& address, sockaddr_storage* storage, socklen_t* size) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  if (const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return {ErrorCode::kInvalidArgument,
            "cannot listen at " + address.Text() + ": " + gai_strerror(error)};
  }
  *size = found->ai_addrlen;
  memcpy(storage, found->ai_addr, *size);
  freeaddrinfo(found);
  return {};
}

StatusOr<UniqueFd> Listen(const HostPort& address, const std::string& option) {
  socklen_t size = 0;
  sockaddr_storage storage = NumericAddress(address.host, address.port, &size);
  if (storage.ss_family == AF_UNSPEC) {
    FERRY_RETURN_IF_ERROR(LookUp(address, &storage, &size));
  }
  UniqueFd listener(socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) {
    return StatusFromErrno(errno, option + " " + address.host);
  }
  const int on = 1;
  const int off = 0;
  (void)setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  (void)setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (IsLoopback(storage)) {  // also while no interface has it: HasInterface
    (void)setsockopt(listener.get(), IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
  }
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&storage), size) == 0 &&
      listen(listener.get(), SOMAXCONN) == 0) {
    return listener;
  }
  const bool in_use = errno == EADDRINUSE;
  return Status(in_use ? ErrorCode::kAlreadyExists : ErrorCode::kInvalidArgument,
                "cannot listen at " + address.Text() + ": " + strerror(errno) +
                    (in_use ? "; choose another " + option + ", or 0 for a free one" : ""));
}

}  // namespace

std::string HostPort::Text() const {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

StatusOr<HostPort> ParseHostPort(const std::string& text, PortZero zero) {
  HostPort address;
  bool has_port = false;
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    const auto port = NumberIn<decltype(address.port)>(std::string_view(text).substr(colon + 1));
    has_port = port && (*port != 0 || zero == PortZero::kAllow);
    address.port = port.value_or(0);
  }
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  if (address.host.empty() || !has_port) {
    return Status(ErrorCode::kInvalidArgument,
                  "\"" + text + "\" is not an address: write HOST:PORT, such as 127.0.0.1:4000");
  }
  return address;
}

bool IsWildcard(const std::string& host) {
  socklen_t size = 0;
  const sockaddr_storage storage = NumericAddress(host, 0, &size);
  if (storage.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr == htonl(INADDR_ANY);
  }
  return storage.ss_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr);
}

Status CheckLoopback(const std::string& host) {
  socklen_t size = 0;
  if (IsLoopback(NumericAddress(host, 0, &size))) {
    return {};
  }
  return {ErrorCode::kPermissionDenied,
          "the control plane speaks to " + host +
              " only with TLS: set tls_ca_file, tls_cert_file and tls_key_file (`ferryctl certs` "
              "makes files to try), or use a loopback address (127.0.0.1, ::1)"};
}

bool HasInterface(const std::string& host) {
  socklen_t size = 0;
  const sockaddr_storage storage = NumericAddress(host, 0, &size);
  ifaddrs* list = nullptr;
  if (!IsLoopback(storage) || getifaddrs(&list) != 0) {
    return true;
  }
  bool found = false;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    constexpr unsigned kServes = IFF_LOOPBACK | IFF_UP;
    found |= entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == storage.ss_family &&
             (entry->ifa_flags & kServes) == kServes;
  }
  freeifaddrs(list);
  return found;
}

StatusOr<UniqueFd> ListenTcp(const HostPort& address, const std::string& option) {
  if (IsWildcard(address.host)) {
    StatusOr<UniqueFd> both = Listen({"::", address.port}, option);
    if (both.ok() || both.status().code() == ErrorCode::kAlreadyExists) {
      return both;
    }
  }
  return Listen(address, option);  // as it was asked for, where there is no IPv6
}

uint16_t PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

}  // namespace ferry::daemon
