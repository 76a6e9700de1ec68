#include "daemon/sockets/foreign_packet.h"

#include <string>
#include <utility>

#include "daemon/sockets/disposal.h"

namespace ferry::daemon {

ForeignPacket::~ForeignPacket() {
  if (!fds.empty()) {
    Disposal::Instance().CloseUnasked(sender_, std::move(fds));
  }
}

StatusOr<Received> ReceiveForeignPacket(int socket, ForeignPacket* packet) {
  if (!Disposal::Instance().MayPass(packet->sender())) {
    return Status(ErrorCode::kLimitExceeded,
                  "uid " + std::to_string(packet->sender()) +
                      " has passed descriptors that were not asked for and that cannot be closed: "
                      "end what serves them");
  }
  return ReceivePacket(socket, packet);
}

}  // namespace ferry::daemon
