// A packet from a process that may pass anything with it (daemon/sockets/packet_socket.h).
//
// Any thread; never blocks, whatever the packet carries.
#pragma once

#include <sys/types.h>

#include "common/status.h"
#include "daemon/sockets/packet_socket.h"

namespace ferry::daemon {

// A packet of another process. Descriptors left in it at its end were passed unasked (Disposal).
class ForeignPacket : public SocketPacket {
 public:
  explicit ForeignPacket(uid_t sender) : sender_(sender) {}
  ~ForeignPacket();
  ForeignPacket(const ForeignPacket&) = delete;
  ForeignPacket& operator=(const ForeignPacket&) = delete;

  uid_t sender() const { return sender_; }

 private:
  const uid_t sender_;
};

// ReceivePacket, for a packet that is used once. kLimitExceeded: the sender has passed so much that
// cannot be closed that nothing more is taken of him.
StatusOr<Received> ReceiveForeignPacket(int socket, ForeignPacket* packet);

}  // namespace ferry::daemon
