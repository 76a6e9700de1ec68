#include "common/passed_descriptors.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace ferry {
namespace {

constexpr size_t kMaxOfMessage = 253;  // SCM_MAX_FD of the kernel
constexpr size_t kControlBytes = CMSG_SPACE(kMaxPassedDescriptors * sizeof(int));

void Take(msghdr* message, std::vector<UniqueFd>* descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      descriptors->emplace_back(fd);
    }
  }
}

}  // namespace

ssize_t SendWithDescriptors(int socket, std::span<const std::byte> bytes,
                            std::span<const int> descriptors, int flags) {
  if (descriptors.size() > kMaxPassedDescriptors) {
    errno = EINVAL;
    return -1;
  }
  alignas(cmsghdr) char control[kControlBytes] = {};
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  return sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

ssize_t ReceiveWithDescriptors(int socket, std::span<std::byte> bytes,
                               std::vector<UniqueFd>* descriptors, int flags, int* message_flags) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxOfMessage * sizeof(int))];
  iovec piece{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t size = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  if (size < 0 && errno == ECONNRESET) {
    // The other end has hung up with words of ours unread. The kernel says so once, before it gives
    // what that end had to say.
    size = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  }
  if (size >= 0) {
    const size_t before = descriptors->size();
    Take(&message, descriptors);
    if (message_flags != nullptr) {
      const bool is_surplus = descriptors->size() - before > kMaxPassedDescriptors;
      *message_flags = message.msg_flags | (is_surplus ? MSG_CTRUNC : 0);
    }
  }
  return size;
}

}  // namespace ferry
