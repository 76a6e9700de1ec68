// Who is at the other end of a Unix socket.
#pragma once

#include <sys/socket.h>

#include "common/status.h"

namespace ferry {

// The process that connected, or that listens, as it was when it did that; its pid is 0 where this
// process's pid namespace does not show it. kSystem: it is no such socket. Any thread; does not
// block. unix(7), SO_PEERCRED.
StatusOr<ucred> PeerCredentials(int unix_socket);

}  // namespace ferry
