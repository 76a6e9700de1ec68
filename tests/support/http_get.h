// Asks an HTTP server of this machine for a page, as this user or another one.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "common/unique_fd.h"

namespace ferry::tests {

// While it lives, this thread alone is another user for the kernel (sockets that it makes, files
// that it opens). Only root can become one, and has none of root's rights meanwhile.
class ThreadOfUser {
 public:
  explicit ThreadOfUser(uid_t uid) { Become(uid); }
  ~ThreadOfUser() { Become(0); }
  ThreadOfUser(const ThreadOfUser&) = delete;
  ThreadOfUser& operator=(const ThreadOfUser&) = delete;

 private:
  // The C library's function would take all threads along.
  static void Become(uid_t uid) { (void)syscall(SYS_setresuid, -1, uid, -1); }
};

// Connects to 127.0.0.1, at the port of `address`; nothing if no server listens. `buffer_bytes`: of
// the kernel's memory for what comes, and the length of segments; 0: as usual.
inline UniqueFd ConnectTo(const std::string& address, int buffer_bytes = 0) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (buffer_bytes != 0) {
    constexpr int kMaxSegment = 2;  // TCP_MAXSEG
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
    setsockopt(fd.get(), IPPROTO_TCP, kMaxSegment, &buffer_bytes, sizeof(buffer_bytes));
  }
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoul(address.substr(address.rfind(':') + 1))));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
    fd.Reset();
  }
  return fd;
}

// All that the server answers to a request ("GET /metrics"), with its head.
inline std::string Ask(const std::string& address, const std::string& request) {
  const UniqueFd fd = ConnectTo(address);
  const std::string text = request + " HTTP/1.0\r\nHost: " + address + "\r\n\r\n";
  if (!fd.valid() || send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) {
    return "";
  }
  std::string answer;
  char bytes[4096];
  for (ssize_t size = 0; (size = read(fd.get(), bytes, sizeof(bytes))) > 0;) {
    answer.append(bytes, static_cast<size_t>(size));
  }
  return answer;
}

// The page alone; empty unless the server says 200.
inline std::string Get(const std::string& address, const std::string& path) {
  const std::string answer = Ask(address, "GET " + path);
  const size_t body = answer.find("\r\n\r\n");
  return answer.find(" 200 ") != 8 || body == answer.npos ? "" : answer.substr(body + 4);
}

}  // namespace ferry::tests
