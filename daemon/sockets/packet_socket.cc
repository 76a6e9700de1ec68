#include "daemon/sockets/packet_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <utility>

#include "common/passed_descriptors.h"
#include "daemon/sockets/disposal.h"

namespace ferry::daemon {
namespace {

StatusOr<sockaddr_un> UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Status(ErrorCode::kRunDirectory,
                  "the path " + path + " is too long for a socket: choose a shorter run directory");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

StatusOr<UniqueFd> UnixSocket(int type) {
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    return StatusFromErrno(errno, "socket");
  }
  return fd;
}

}  // namespace

StatusOr<Received> ReceivePacket(int socket, SocketPacket* packet) {
  packet->fds.clear();
  int flags = 0;
  const ssize_t size =
      ReceiveWithDescriptors(socket, packet->bytes, &packet->fds, MSG_DONTWAIT, &flags);
  packet->size = size > 0 ? static_cast<size_t>(size) : 0;
  if (size < 0) {
    if (errno == EAGAIN || errno == EINTR) {
      return Received::kNothing;
    }
    if (errno == ECONNRESET || errno == EPIPE) {
      return Received::kHangUp;  // ECONNRESET: it hung up with our answers unread
    }
    return StatusFromErrno(errno, "recvmsg");
  }
  if ((flags & MSG_TRUNC) != 0) {
    return Status(ErrorCode::kCorrupt,
                  "a packet is longer than " + std::to_string(packet->bytes.size()) + " bytes");
  }
  if ((flags & MSG_CTRUNC) != 0) {
    return Status(ErrorCode::kCorrupt, "a packet carries more than " +
                                           std::to_string(kMaxPacketFds) +
                                           " descriptors, or the daemon has none left");
  }
  // A seqpacket socket reads an empty packet like a hang-up; both end the connection.
  return size == 0 ? Received::kHangUp : Received::kPacket;
}

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

Status SendPacket(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kMaxPacketFds) {
    return {ErrorCode::kInvalidArgument,
            "a packet carries at most " + std::to_string(kMaxPacketFds) + " descriptors"};
  }
  if (SendWithDescriptors(socket, bytes, fds, MSG_DONTWAIT) < 0) {
    if (errno == EAGAIN) {
      return {ErrorCode::kWouldBlock, "the receiver does not read"};
    }
    return StatusFromErrno(errno, "sendmsg");
  }
  return {};
}

StatusOr<UniqueFd> ListenUnix(const std::string& path, int type, unsigned mode) {
  StatusOr<sockaddr_un> address = UnixAddress(path);
  FERRY_RETURN_IF_ERROR(address.status());
  StatusOr<UniqueFd> fd = UnixSocket(type);
  if (!fd.ok()) {
    return fd;
  }
  // No client can connect before listen, so the mode is right in time.
  if (bind(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0 ||
      chmod(path.c_str(), mode) != 0 || listen(fd->get(), SOMAXCONN) != 0) {
    return StatusFromErrno(errno, "listen at " + path);
  }
  return fd;
}

StatusOr<UniqueFd> ConnectSeqpacket(const std::string& path) {
  StatusOr<sockaddr_un> address = UnixAddress(path);
  FERRY_RETURN_IF_ERROR(address.status());
  StatusOr<UniqueFd> fd = UnixSocket(SOCK_SEQPACKET);
  if (fd.ok() &&
      connect(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return StatusFromErrno(errno, "connect to " + path);
  }
  return fd;
}

}  // namespace ferry::daemon
