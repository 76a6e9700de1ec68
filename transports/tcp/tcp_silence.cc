#include "transports/tcp/tcp_silence.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <utility>

namespace ferry::transport {
namespace {

// An answer to the last one may be under way.
constexpr uint32_t kMostTries = 3;

}  // namespace

bool TcpSilence::IsDead(int fd, uint64_t now_ns, uint64_t limit_ns) {
  int untaken = 0;
  tcp_info info{};
  socklen_t bytes = sizeof(info);
  const bool waited = std::exchange(waits_, false);
  if (ioctl(fd, SIOCOUTQ, &untaken) != 0 || untaken == 0 ||
      getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) {
    return false;
  }
  waits_ = true;
  const uint32_t tries = info.tcpi_retransmits + info.tcpi_probes;
  if (!waited || info.tcpi_segs_in != segments_ || tries < tries_) {
    segments_ = info.tcpi_segs_in;
    tries_ = tries;
    since_ns_ = now_ns;
    return false;
  }
  return tries - tries_ >= kMostTries && now_ns - since_ns_ >= limit_ns;
}

}  // namespace ferry::transport
