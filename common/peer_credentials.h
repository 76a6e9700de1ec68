// The process at the other end of a Unix socket.
#pragma once

#include <sys/socket.h>

#include "common/status.h"

namespace ferry {

// Returns the credentials of the process that connected, or that listens, from the time when it did
// so; its pid is 0 where this process's pid namespace does not show it. kSystem: not a connected
// Unix socket. Any thread; does not block. unix(7), SO_PEERCRED.
StatusOr<ucred> PeerCredentials(int unix_socket);

}  // namespace ferry
