// The address of a TcpTransport: where it listens, and the secret by which its peers prove that
// they were told of it. Who knows it may connect: daemons pass it over their authenticated channel.
//
// Calling thread: any. Only Resolve may block, for the name service.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::transport {

using TcpSecret = std::array<std::byte, 16>;

// In the form in which it travels.
struct TcpAddress {
  uint16_t family = 0;  // AF_INET or AF_INET6
  uint16_t port = 0;    // in the order of the host
  uint32_t reserved = 0;
  std::array<std::byte, 16> ip{};  // IPv4 takes the first four
  TcpSecret secret{};

  auto operator<=>(const TcpAddress&) const = default;
};
static_assert(sizeof(TcpAddress) == 40);

// Nothing if these bytes are no such address.
std::optional<TcpAddress> ParseTcpAddress(std::span<const std::byte> bytes);

// Takes the same time for all secrets that differ.
bool SameSecret(const TcpSecret& a, const TcpSecret& b);

// "127.0.0.1:4711", "[::1]:4711".
std::string TcpAddressText(const TcpAddress& address);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
SocketAddress SocketAddressOf(const TcpAddress& address);

// An address of this machine, and the interface that has it.
struct LocalAddress {
  TcpAddress address;     // without port and secret
  std::string interface;  // "lo"
  std::string network;    // "127.0.0.0/8"
};

// LocalAddress::interface of a loopback address that none has: the loopback interface is down, as
// in a new network namespace. No node can be reached then, and one node needs none.
inline constexpr char kNoInterface[] = "none";

// The address that the options name by `source_address` (an IP address or a host name) or `domain`
// (an interface). Errors: kInvalidArgument (not of this machine, or of all; loopback addresses
// always are), kUnsupported (no such interface).
bool IsLoopback(const TcpAddress& address);
StatusOr<LocalAddress> Resolve(const TransportOptions& options);

}  // namespace ferry::transport
