// Rank 0 leaves while a heap block, which stands in for its private buffer, waits for rank 1. It
// waits for some seconds, and leaves because rank 2 has died: otherwise it would wait for the
// others first. Rank 1 receives only after rank 0 is gone.
//
// Run it on three ranks. Rank 0 prints "rank 0: all right" before it leaves, rank 1 "rank 1: told:
// " and the error.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

constexpr size_t kSize = 64 << 10;
constexpr int kDataTag = 1;
constexpr int kPidTag = 2;

void SendAndLeave() {
  const std::vector<char> buffer(kSize);
  CHECK_OK(ferry_send(buffer.data(), kSize, 1, kDataTag));
  const pid_t self = getpid();
  CHECK_OK(ferry_send(&self, sizeof(self), 1, kPidTag));
  ferry::ranks::Say("all right");
}

void ReceiveTooLate() {
  pid_t sender = 0;
  CHECK_OK(ferry_recv(&sender, sizeof(sender), 0, kPidTag, nullptr));
  pollfd gone{static_cast<int>(syscall(SYS_pidfd_open, sender, 0)), POLLIN, 0};
  CHECK_EQ(gone.fd >= 0 || errno == ESRCH, true);
  if (gone.fd >= 0) {
    CHECK_EQ(poll(&gone, 1, -1), 1);
  }
  std::vector<char> buffer(kSize);
  CHECK_EQ(ferry_recv(buffer.data(), kSize, 0, kDataTag, nullptr), FERRY_ERR_NOT_FOUND);
  ferry::ranks::Say((std::string("told: ") + ferry_last_error()).c_str());
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_OK(ferry_barrier());  // rank 2 may not die while others still join
  switch (ferry_rank()) {
    case 0:
      SendAndLeave();
      break;
    case 1:
      ReceiveTooLate();
      break;
    default:
      raise(SIGKILL);
  }
  CHECK_OK(ferry_finalize());
  return 0;
}
