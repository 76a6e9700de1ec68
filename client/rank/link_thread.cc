#include "client/rank/link_thread.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "common/clock.h"
#include "common/thread.h"
#include "shm/atomic.h"

namespace ferry::client {
namespace {

constexpr uint64_t kBusyNs = 50'000;         // it looks on for so long after the last thing it did
constexpr uint64_t kLeasePauseNs = 200'000;  // and waits so long for a lease that others have
constexpr uint64_t kStayPauseNs = 500'000;   // or, if it has to stay, for those who poll to leave

}  // namespace

Status LinkThread::Start(int wait_fd) {
  wait_fd_ = wait_fd;
  call_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!call_.valid()) {
    return StatusFromErrno(errno, "eventfd");
  }
  StatusOr<std::thread> thread =
      StartThread("ferry-link", "that serves direct links", [this] { Run(); });
  FERRY_RETURN_IF_ERROR(thread.status());
  thread_ = std::move(*thread);
  return {};
}

void LinkThread::Stop() {
  if (thread_.joinable()) {
    shm::StoreRelease(stops_, 1U);
    eventfd_write(call_.get(), 1);
    thread_.join();
  }
}

void LinkThread::Arm() {
  // Pairs with Disarm.
  if (call_.valid() && shm::Exchange(armed_, 1U, std::memory_order_seq_cst) == 0) {
    eventfd_write(call_.get(), 1);
  }
}

// True: it may sleep until it is armed. A thread of the rank that went to sleep, or left the
// library, before it armed this one is seen now; one that does so later will write the descriptor.
bool LinkThread::Disarm() {
  shm::Exchange(armed_, 0U, std::memory_order_seq_cst);
  return work_.IsPolled() || shm::Exchange(armed_, 1U, std::memory_order_seq_cst) != 0;
}

// Sleeps until somebody calls, something has come if it is armed, or the time is over. False: it is
// to stop.
bool LinkThread::AwaitCall(bool armed, uint64_t until_ns) {
  pollfd watched[] = {{call_.get(), POLLIN, 0}, {wait_fd_, POLLIN, 0}};
  const uint64_t left_ns = until_ns - std::min(until_ns, MonotonicNs());
  const timespec timeout = {static_cast<time_t>(left_ns / 1'000'000'000),
                            static_cast<long>(left_ns % 1'000'000'000)};
  (void)ppoll(watched, armed ? 2 : 1, until_ns == UINT64_MAX ? nullptr : &timeout, nullptr);
  eventfd_t calls = 0;
  (void)eventfd_read(call_.get(), &calls);
  return shm::LoadAcquire(stops_) == 0;
}

void LinkThread::Run() {
  bool armed = false;
  uint64_t busy_ns = 0;
  while (AwaitCall(armed, armed ? work_.NextTurnNs(MonotonicNs()) : UINT64_MAX)) {
    armed = shm::LoadAcquire(armed_) != 0;
    busy_ns = MonotonicNs();
    while (armed) {
      if (work_.IsPolled()) {
        if (!work_.MustStay()) {
          armed = !Disarm();
        } else if (!AwaitCall(false, MonotonicNs() + kStayPauseNs)) {
          return;
        }
        continue;
      }
      uint32_t done = 0;
      if (!work_.TryStep(&done)) {
        if (!AwaitCall(false, MonotonicNs() + kLeasePauseNs)) {
          return;
        }
        continue;
      }
      const uint64_t now_ns = MonotonicNs();
      if (done != 0) {
        busy_ns = now_ns;
      } else if (now_ns - busy_ns < kBusyNs) {
        sched_yield();
      } else if (work_.PrepareToSleep()) {
        break;
      }
    }
  }
}

}  // namespace ferry::client
