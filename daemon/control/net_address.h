// Addresses of the control plane between daemons: "127.0.0.1:4000", "[::1]:4000", "localhost:4000".
//
// Any thread; no name service is asked, so nothing blocks.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"

namespace ferry::daemon {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;

  std::string Text() const;  // with brackets where there must be some
};

// kInvalidArgument.
StatusOr<HostPort> ParseHostPort(const std::string& text);

// Until daemons speak TLS, only loopback addresses may be used: kPermissionDenied says so.
Status CheckLoopback(const std::string& host);

// Whether we could listen there (port 0: any): kAlreadyExists (port in use), kInvalidArgument (not
// an address of this machine). `option` is the option's name, for the message.
Status ProbeListen(const HostPort& address, const std::string& option);

}  // namespace ferry::daemon
