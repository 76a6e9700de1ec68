// Whether the kernel at the other end of a connection still answers, though whoever owns the
// connection there may be stopped, or compute.
//
// A living kernel acknowledges what comes, also where nobody reads: then it says that there is no
// room, and answers when it is asked whether there is some by now. So TCP_USER_TIMEOUT, which ends
// connections to those who leave no room, does not do. Of one that lies behind a network that has
// begun to swallow its packets nothing comes at all, however often ours tries again.
#pragma once

#include <cstdint>

namespace ferry::transport {

class TcpSilence {
 public:
  // To be called now and then. True: what was sent is not acknowledged, the kernel has tried again
  // several times, and for `limit_ns` nothing has come.
  bool IsDead(int fd, uint64_t now_ns, uint64_t limit_ns);
  // Whether something was not acknowledged when it was last called.
  bool waits() const { return waits_; }

 private:
  bool waits_ = false;
  uint32_t segments_ = 0;  // that have come,
  uint32_t tries_ = 0;     // the tries that had been made by then,
  uint64_t since_ns_ = 0;  // and when both were seen first
};

}  // namespace ferry::transport
