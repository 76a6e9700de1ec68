// Finds the user whose process, on this machine, is at the other end of a TCP connection.
//
// Any thread; asks the kernel (sock_diag) and does not block.
#pragma once

#include <sys/types.h>

#include <optional>

namespace ferry::daemon {

// Nothing when the other end is on another machine, or has closed its socket already, or when the
// kernel does not tell.
std::optional<uid_t> LocalUserOf(int tcp_socket);

}  // namespace ferry::daemon
