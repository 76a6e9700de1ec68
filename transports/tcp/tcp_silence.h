// Detects that the kernel at the other end of a connection does not answer any more. The process
// that owns the connection there may be stopped, or compute: that is no silence.
//
// A living kernel acknowledges what comes, also where no process reads: then it says that there is
// no room, and answers when it is asked again if there is some by now. So TCP_USER_TIMEOUT does not
// do: it ends connections to peers that leave no room. From a kernel behind a network that has
// begun to swallow its packets nothing comes at all, however often ours tries again.
#pragma once

#include <cstdint>

namespace ferry::transport {

class TcpSilence {
 public:
  // Called now and then. True: sent bytes are not acknowledged, the kernel has tried again several
  // times, and for `limit_ns` nothing has come.
  bool IsDead(int fd, uint64_t now_ns, uint64_t limit_ns);
  // Returns true if sent bytes were not acknowledged at the last call of IsDead.
  bool waits() const { return waits_; }

 private:
  bool waits_ = false;
  uint32_t segments_ = 0;  // that have come,
  uint32_t tries_ = 0;     // the tries that had been made by then,
  uint64_t since_ns_ = 0;  // and when both were seen first
};

}  // namespace ferry::transport
