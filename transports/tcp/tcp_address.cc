#include "transports/tcp/tcp_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

namespace ferry::transport {
namespace {

size_t IpBytes(uint16_t family) { return family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr); }

// Nothing for other families.
std::optional<TcpEndpoint> AddressOf(const sockaddr* socket_address) {
  TcpEndpoint address;
  if (socket_address == nullptr) {
    return std::nullopt;
  }
  address.family = socket_address->sa_family;
  if (address.family == AF_INET) {
    const auto* ip4 = reinterpret_cast<const sockaddr_in*>(socket_address);
    std::memcpy(address.ip.data(), &ip4->sin_addr, sizeof(ip4->sin_addr));
  } else if (address.family == AF_INET6) {
    const auto* ip6 = reinterpret_cast<const sockaddr_in6*>(socket_address);
    std::memcpy(address.ip.data(), &ip6->sin6_addr, sizeof(ip6->sin6_addr));
  } else {
    return std::nullopt;
  }
  return address;
}

std::string IpText(const TcpEndpoint& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(address.family, address.ip.data(), text.data(), text.size());
  return text.data();
}

bool IsOfAll(const TcpEndpoint& address) { return address.ip == std::array<std::byte, 16>{}; }

// "10.1.0.0/16".
std::string NetworkText(const TcpEndpoint& address, const sockaddr* mask) {
  TcpEndpoint network = address;
  int bits = 0;
  if (const std::optional<TcpEndpoint> of_mask = AddressOf(mask); of_mask) {
    for (size_t i = 0; i < network.ip.size(); i++) {
      network.ip[i] &= of_mask->ip[i];
      bits += std::popcount(static_cast<unsigned>(of_mask->ip[i]));
    }
  }
  return IpText(network) + "/" + std::to_string(bits);
}

using Interfaces = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

StatusOr<Interfaces> ListInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return StatusFromErrno(errno, "getifaddrs");
  }
  return Interfaces(list, &freeifaddrs);
}

Status NotOurs(const std::string& source) {
  return Status(ErrorCode::kInvalidArgument,
                "source address '" + source +
                    "' belongs to no interface of this machine; give one that does.");
}

StatusOr<std::vector<TcpEndpoint>> AddressesOf(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(name.c_str(), nullptr, &hints, &list); error != 0) {
    return Status(ErrorCode::kInvalidArgument,
                  "source address '" + name + "': " + gai_strerror(error));
  }
  std::vector<TcpEndpoint> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (const std::optional<TcpEndpoint> address = AddressOf(entry->ai_addr); address) {
      addresses.push_back(*address);
    }
  }
  freeaddrinfo(list);
  return addresses;
}

}  // namespace

bool IsEndpoint(const TcpEndpoint& endpoint) {
  return (endpoint.family == AF_INET || endpoint.family == AF_INET6) && endpoint.port != 0;
}

std::optional<TcpAddress> ParseTcpAddress(std::span<const std::byte> bytes) {
  TcpAddress address;
  if (bytes.size() != sizeof(address)) {
    return std::nullopt;
  }
  std::memcpy(&address, bytes.data(), sizeof(address));
  return IsEndpoint(address) ? std::optional(address) : std::nullopt;
}

std::string TcpAddressText(const TcpEndpoint& address) {
  const std::string ip = IpText(address);
  return (address.family == AF_INET6 ? "[" + ip + "]" : ip) + ":" + std::to_string(address.port);
}

SocketAddress SocketAddressOf(const TcpEndpoint& address) {
  SocketAddress result;
  if (address.family == AF_INET) {
    sockaddr_in ip4{};
    ip4.sin_family = AF_INET;
    ip4.sin_port = htons(address.port);
    std::memcpy(&ip4.sin_addr, address.ip.data(), IpBytes(AF_INET));
    std::memcpy(&result.storage, &ip4, sizeof(ip4));
    result.bytes = sizeof(ip4);
  } else {
    sockaddr_in6 ip6{};
    ip6.sin6_family = AF_INET6;
    ip6.sin6_port = htons(address.port);
    std::memcpy(&ip6.sin6_addr, address.ip.data(), IpBytes(AF_INET6));
    std::memcpy(&result.storage, &ip6, sizeof(ip6));
    result.bytes = sizeof(ip6);
  }
  return result;
}

bool IsLoopback(const TcpEndpoint& address) {
  if (address.family == AF_INET) {
    return address.ip[0] == std::byte{127};
  }
  in6_addr ip6{};
  std::memcpy(&ip6, address.ip.data(), sizeof(ip6));
  return address.family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&ip6);
}

StatusOr<LocalAddress> Resolve(const TransportOptions& options) {
  StatusOr<Interfaces> interfaces = ListInterfaces();
  FERRY_RETURN_IF_ERROR(interfaces.status());
  std::vector<TcpEndpoint> wanted;
  if (options.domain.empty()) {
    StatusOr<std::vector<TcpEndpoint>> addresses = AddressesOf(options.source_address);
    FERRY_RETURN_IF_ERROR(addresses.status());
    wanted = std::move(*addresses);
  }
  std::optional<LocalAddress> found;
  for (const ifaddrs* entry = interfaces->get(); entry != nullptr; entry = entry->ifa_next) {
    const std::optional<TcpEndpoint> address = AddressOf(entry->ifa_addr);
    if (!address || IsOfAll(*address)) {
      continue;
    }
    const TcpEndpoint* own = options.domain == entry->ifa_name ? &*address : nullptr;
    for (const TcpEndpoint& each : wanted) {
      // All of 127.0.0.0/8 is the loopback interface's, which lists one of them.
      const bool is_loopback =
          each.family == AF_INET && IsLoopback(each) && (entry->ifa_flags & IFF_LOOPBACK) != 0;
      if (address->family == each.family && (is_loopback || each == *address)) {
        own = &each;
      }
    }
    if (own != nullptr && !found) {
      found = LocalAddress{*own, entry->ifa_name, NetworkText(*own, entry->ifa_netmask)};
    }
  }
  if (found) {
    return *found;
  }
  if (!wanted.empty() && IsLoopback(wanted.front())) {
    return LocalAddress{wanted.front(), kNoInterface, kNoInterface};
  }
  return options.domain.empty()
             ? NotOurs(options.source_address)
             : Status(ErrorCode::kUnsupported, "provider 'ferry-tcp' is not available on domain '" +
                                                   options.domain +
                                                   "': no interface of that name has an address");
}

}  // namespace ferry::transport
