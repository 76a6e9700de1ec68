// The address of a TcpTransport: where it listens, and two secrets that it shares with the peer
// that the address is for. The side that connects shows the first, and so proves who it is; the
// side that answers shows the second, and so proves that it is the transport and not a process that
// has taken its port. Neither is of any use elsewhere, and another peer has others. Daemons pass
// addresses over their authenticated channel.
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
#include <type_traits>

#include "common/secret.h"
#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::transport {

// Where a transport listens, which is no secret. In the form in which it travels.
struct TcpEndpoint {
  uint16_t family = 0;             // AF_INET or AF_INET6
  uint16_t port = 0;               // in the order of the host
  uint32_t number = 0;             // random: tells it from others that have had this port
  std::array<std::byte, 16> ip{};  // IPv4 takes the first four

  auto operator<=>(const TcpEndpoint&) const = default;
};
static_assert(sizeof(TcpEndpoint) == 24);

// The address in the form in which it travels.
struct TcpAddress : TcpEndpoint {
  uint64_t guest = 0;  // the peer that it is for: Transport::AddressFor
  Secret calls{};      // proves the side that connects
  Secret answers{};    // proves the side that answers

  auto operator<=>(const TcpAddress&) const = default;
};
static_assert(sizeof(TcpAddress) == 64 && std::is_trivially_copyable_v<TcpAddress>);

// Returns true if a transport can listen there.
bool IsEndpoint(const TcpEndpoint& endpoint);
// Returns the address that these bytes are; nothing if they are none.
std::optional<TcpAddress> ParseTcpAddress(std::span<const std::byte> bytes);

// "127.0.0.1:4711", "[::1]:4711".
std::string TcpAddressText(const TcpEndpoint& address);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
SocketAddress SocketAddressOf(const TcpEndpoint& address);

// An address of this machine, and the interface that has it.
struct LocalAddress {
  TcpEndpoint address;    // without port
  std::string interface;  // "lo"
  std::string network;    // "127.0.0.0/8"
};

// LocalAddress::interface of a loopback address that none has: the loopback interface is down, as
// in a new network namespace. No node can be reached then, and one node needs none.
inline constexpr char kNoInterface[] = "none";

// IsLoopback: true for a loopback address. Resolve: returns the address that the options name by
// `source_address` (an IP address or a host name) or `domain` (an interface). Errors:
// kInvalidArgument (not of this machine, or of all; loopback addresses always are), kUnsupported
// (no such interface).
bool IsLoopback(const TcpEndpoint& address);
StatusOr<LocalAddress> Resolve(const TransportOptions& options);

}  // namespace ferry::transport
