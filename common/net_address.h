// Addresses of the control plane between daemons: "10.0.0.7:4000", "[::1]:4000", "node7:4000".
//
// Any thread; only ListenTcp asks the name service, and may block for it.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::daemon {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;

  std::string Text() const;  // with brackets around an IPv6 address
};

// Parses an address. Port 0 is allowed only in an address to listen at. kInvalidArgument.
enum class PortZero { kRefuse, kAllow };
StatusOr<HostPort> ParseHostPort(const std::string& text, PortZero zero = PortZero::kRefuse);

// Returns true if `host` means every address of this machine ("0.0.0.0", "::"): to listen at, not
// to call.
bool IsWildcard(const std::string& host);

// Returns kPermissionDenied for an address that is not loopback: without TLS, daemons use no
// others.
Status CheckLoopback(const std::string& host);

// Returns false for a loopback address that no interface has, as while the loopback interface is
// down: a process may listen there all the same, but none can call it. True for addresses of other
// kinds.
bool HasInterface(const std::string& host);

// Makes a nonblocking TCP socket that listens at the address (port 0: at any port); at every
// address, IPv6 and IPv4, for a wildcard. kAlreadyExists (port in use), kInvalidArgument (not an
// address of this machine, or an unknown name). `option` is the port's option, for the message.
StatusOr<UniqueFd> ListenTcp(const HostPort& address, const std::string& option);
// Returns the port that a listening socket got.
uint16_t PortOf(int socket);

}  // namespace ferry::daemon
