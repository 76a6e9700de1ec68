#include "transports/ofi/segment_limit.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace ferry::transport {
namespace {

bool ListensAt(int fd, std::span<const std::byte> name) {
  int listens = 0;
  socklen_t bytes = sizeof(listens);
  sockaddr_storage own{};
  socklen_t own_bytes = sizeof(own);
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && listens != 0 &&
         getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_bytes) == 0 &&
         own_bytes == name.size() && std::memcmp(&own, name.data(), name.size()) == 0;
}

}  // namespace

bool LimitSegments(std::span<const std::byte> name) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string number = entry.path().filename();
    int fd = -1;
    std::from_chars(number.data(), number.data() + number.size(), fd);
    if (fd >= 0 && ListensAt(fd, name)) {
      // Accepted connections inherit the limit, and tell the other side.
      return setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &kMostSegmentBytes,
                        sizeof(kMostSegmentBytes)) == 0;
    }
  }
  return false;
}

}  // namespace ferry::transport
