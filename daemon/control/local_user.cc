#include "daemon/control/local_user.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "common/unique_fd.h"

namespace ferry::daemon {
namespace {

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

// Where an IPv4 connection came to an IPv6 socket, the kernel keeps the other end as IPv4.
void SetAddress(const sockaddr_storage& address, uint8_t* family, __be32 (&words)[4],
                __be16* port) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    *family = AF_INET;
    words[0] = v4.sin_addr.s_addr;
    *port = v4.sin_port;
    return;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  *port = v6.sin6_port;
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    *family = AF_INET;
    memcpy(&words[0], &v6.sin6_addr.s6_addr[12], sizeof(words[0]));
  } else {
    *family = AF_INET6;
    memcpy(words, &v6.sin6_addr, sizeof(v6.sin6_addr));
  }
}

// The socket at the other end, by its addresses, which are ours the other way round.
bool MakeQuestion(int tcp_socket, Question* question) {
  sockaddr_storage ours{};
  sockaddr_storage theirs{};
  socklen_t our_size = sizeof(ours);
  socklen_t their_size = sizeof(theirs);
  if (getsockname(tcp_socket, reinterpret_cast<sockaddr*>(&ours), &our_size) != 0 ||
      getpeername(tcp_socket, reinterpret_cast<sockaddr*>(&theirs), &their_size) != 0 ||
      ours.ss_family != theirs.ss_family ||
      (ours.ss_family != AF_INET && ours.ss_family != AF_INET6)) {
    return false;
  }
  *question = {};
  question->header.nlmsg_len = sizeof(*question);
  question->header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question->header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = question->request;
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = ~0U;
  SetAddress(theirs, &request.sdiag_family, request.id.idiag_src, &request.id.idiag_sport);
  SetAddress(ours, &request.sdiag_family, request.id.idiag_dst, &request.id.idiag_dport);
  request.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return true;
}

}  // namespace

std::optional<uid_t> LocalUserOf(int tcp_socket) {
  Question question;
  if (!MakeQuestion(tcp_socket, &question)) {
    return std::nullopt;
  }
  const UniqueFd kernel(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!kernel.valid() || send(kernel.get(), &question, sizeof(question), 0) < 0) {
    return std::nullopt;
  }
  // The kernel has answered when send returns.
  alignas(nlmsghdr) char answer[1024];
  const ssize_t size = recv(kernel.get(), answer, sizeof(answer), MSG_DONTWAIT);
  nlmsghdr header{};
  inet_diag_msg found{};
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(found)))) {
    return std::nullopt;
  }
  memcpy(&header, answer, sizeof(header));
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) {
    return std::nullopt;
  }
  memcpy(&found, answer + NLMSG_HDRLEN, sizeof(found));
  // A lookup may end at a socket that only listens at that address.
  const bool is_the_other_end = found.id.idiag_sport == question.request.id.idiag_sport &&
                                found.id.idiag_dport == question.request.id.idiag_dport;
  return is_the_other_end ? std::optional<uid_t>(found.idiag_uid) : std::nullopt;
}

}  // namespace ferry::daemon
