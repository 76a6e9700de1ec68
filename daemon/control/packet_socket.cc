#include "daemon/control/packet_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

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

StatusOr<UniqueFd> SeqpacketSocket() {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    return StatusFromErrno(errno, "socket");
  }
  return fd;
}

void TakeFds(msghdr* header, std::vector<UniqueFd>* fds) {
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds->emplace_back(fd);
    }
  }
}

}  // namespace

StatusOr<Received> ReceivePacket(int socket, Packet* packet) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxPacketFds * sizeof(int))];
  iovec part{packet->bytes.data(), packet->bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t size = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  packet->fds.clear();
  packet->size = size > 0 ? static_cast<size_t>(size) : 0;
  if (size < 0) {
    if (errno == EAGAIN || errno == EINTR) {
      return Received::kNothing;
    }
    return Received::kHangUp;  // ECONNRESET: it hung up with our answers unread
  }
  TakeFds(&header, &packet->fds);
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    return Status(ErrorCode::kCorrupt,
                  "a packet is longer than " + std::to_string(packet->bytes.size()) + " bytes");
  }
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    return Status(ErrorCode::kCorrupt, "a packet carries more than " +
                                           std::to_string(kMaxPacketFds) +
                                           " descriptors, or the daemon has none left");
  }
  // A seqpacket socket reads an empty packet like a hang-up; both end the connection.
  return size == 0 ? Received::kHangUp : Received::kPacket;
}

Status SendPacket(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kMaxPacketFds) {
    return {ErrorCode::kInvalidArgument,
            "a packet carries at most " + std::to_string(kMaxPacketFds) + " descriptors"};
  }
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxPacketFds * sizeof(int))] = {};
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  if (sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno == EAGAIN) {
      return {ErrorCode::kWouldBlock, "the receiver does not read"};
    }
    return StatusFromErrno(errno, "sendmsg");
  }
  return {};
}

StatusOr<UniqueFd> ListenSeqpacket(const std::string& path, unsigned mode) {
  StatusOr<sockaddr_un> address = UnixAddress(path);
  FERRY_RETURN_IF_ERROR(address.status());
  StatusOr<UniqueFd> fd = SeqpacketSocket();
  if (!fd.ok()) {
    return fd;
  }
  // Nobody can connect before listen, so the mode is right in time.
  if (bind(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0 ||
      chmod(path.c_str(), mode) != 0 || listen(fd->get(), SOMAXCONN) != 0) {
    return StatusFromErrno(errno, "listen at " + path);
  }
  return fd;
}

StatusOr<UniqueFd> ConnectSeqpacket(const std::string& path) {
  StatusOr<sockaddr_un> address = UnixAddress(path);
  FERRY_RETURN_IF_ERROR(address.status());
  StatusOr<UniqueFd> fd = SeqpacketSocket();
  if (fd.ok() &&
      connect(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return StatusFromErrno(errno, "connect to " + path);
  }
  return fd;
}

}  // namespace ferry::daemon
