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

  std::string Text() const;  // with brackets where there must be some
};

// Port 0 is an address to listen at only. kInvalidArgument.
enum class PortZero { kRefuse, kAllow };
StatusOr<HostPort> ParseHostPort(const std::string& text, PortZero zero = PortZero::kRefuse);

// Whether `host` means every address of this machine ("0.0.0.0", "::"): to listen at, not to call.
bool IsWildcard(const std::string& host);

// Without TLS, daemons use only loopback addresses: kPermissionDenied says so.
Status CheckLoopback(const std::string& host);

// False for a loopback address that no interface has, as while the loopback interface is down: one
// may listen there all the same, but nobody can call. True for addresses of other kinds.
bool HasInterface(const std::string& host);

// A nonblocking TCP socket that listens there (port 0: at any port); at every address for one
// that means all, IPv6 and IPv4. kAlreadyExists (port in use), kInvalidArgument (not an address of
// this machine, or an unknown name). `option` is the port's option, for the message.
StatusOr<UniqueFd> ListenTcp(const HostPort& address, const std::string& option);
// The port that a listening socket got.
uint16_t PortOf(int socket);

}  // namespace ferry::daemon
