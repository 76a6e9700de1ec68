#include "common/peer_credentials.h"

#include <errno.h>

namespace ferry {

StatusOr<ucred> PeerCredentials(int unix_socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(unix_socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return StatusFromErrno(errno, "asking who is at the other end of a socket");
  }
  return credentials;
}

}  // namespace ferry
