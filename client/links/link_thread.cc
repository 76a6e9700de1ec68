#include "client/links/link_thread.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "common/clock.h"
#include "common/thread.h"
#include "shm/atomic.h"
#include "shm/fence.h"
#include "shm/wait_policy.h"

namespace ferry::client {
namespace {

constexpr uint64_t kBusyNs = 50'000;  // it looks on for so long after the last thing it did,
                                      // unless others wait for its core
// Pauses between looks at a rank whose threads turn the links.
constexpr uint64_t kFirstPauseNs = 50'000;
constexpr uint64_t kLongestPauseNs = 500'000;
constexpr uint64_t kLastPauseNs = 8 * kLongestPauseNs;  // counted up to here, it sleeps for good

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
  // Pairs with Become. While it watches the links it does not see what waits for their turn.
  const uint32_t armed = shm::Load(armed_, std::memory_order_seq_cst);
  if (armed == static_cast<uint32_t>(Armed::kNo) ||
      armed == static_cast<uint32_t>(Armed::kWatches)) {
    Call();
  }
}

void LinkThread::Call() {
  constexpr auto kWorks = static_cast<uint32_t>(Armed::kWorks);
  // Both pair with Become.
  if (call_.valid() && shm::Load(armed_, std::memory_order_seq_cst) != kWorks &&
      shm::Exchange(armed_, kWorks, std::memory_order_seq_cst) != kWorks) {
    eventfd_write(call_.get(), 1);
  }
}

// Stores that other threads made before they call are visible after this, or their call writes the
// descriptor. The fence is for what this thread looks at next: on Arm, loads that are not
// sequentially consistent can overtake the store of an exchange.
void LinkThread::Become(Armed armed) {
  shm::Exchange(armed_, static_cast<uint32_t>(armed), std::memory_order_seq_cst);
  shm::FullFence();
}

// True: it may sleep until it is armed. A thread of the rank that went to sleep, or left the
// library, before it armed this one is seen now.
bool LinkThread::Disarm() {
  Become(Armed::kNo);
  const Work::Threads threads = work_.RankThreads();
  if (threads == Work::Threads::kPoll || threads == Work::Threads::kIdle) {
    return true;
  }
  Become(Armed::kWorks);
  return false;
}

// Sleeps until another thread calls, the time is over, or, if it watches the links, their
// descriptor is readable. False: the thread is to stop.
bool LinkThread::Sleep(bool watches_links, uint64_t until_ns) {
  pollfd watched[] = {{call_.get(), POLLIN, 0}, {wait_fd_, POLLIN, 0}};
  const uint64_t left_ns = until_ns - std::min(until_ns, MonotonicNs());
  const timespec timeout = {static_cast<time_t>(left_ns / 1'000'000'000),
                            static_cast<long>(left_ns % 1'000'000'000)};
  (void)ppoll(watched, watches_links ? 2 : 1, until_ns == UINT64_MAX ? nullptr : &timeout, nullptr);
  eventfd_t calls = 0;
  if (eventfd_read(call_.get(), &calls) == 0) {
    pause_ns_ = kFirstPauseNs;
  }
  return shm::LoadAcquire(stops_) == 0;
}

bool LinkThread::Doze() {
  Become(Armed::kDozes);
  if (work_.RankThreads() ==
      Work::Threads::kSleep) {  // since the last look, or others have the lease
    return Sleep(false, MonotonicNs() + kFirstPauseNs);
  }
  const uint64_t pause_ns = std::min(pause_ns_, kLongestPauseNs);
  pause_ns_ = std::min(2 * pause_ns_, kLastPauseNs);
  return Sleep(false, MonotonicNs() + pause_ns);
}

bool LinkThread::Watch(uint64_t now_ns) {
  Become(Armed::kWatches);
  const bool may_sleep = work_.PrepareToSleep();
  const bool goes_on = !may_sleep || Sleep(true, work_.NextTurnNs(now_ns));
  Become(Armed::kWorks);
  return goes_on;
}

// Returns true if the rank's threads have turned the links since the last look, or are about to.
// Threads that only test their requests wait nowhere.
bool LinkThread::DoRankThreadsTurn() {
  const uint32_t before = std::exchange(turns_, work_.Turns());
  switch (work_.RankThreads()) {
    case Work::Threads::kSleep:
      return false;
    case Work::Threads::kAway:
      return turns_ != before;
    default:
      return true;
  }
}

void LinkThread::Run() {
  while (Sleep(false, UINT64_MAX) && Serve()) {
  }
}

// Until it is disarmed (true), or is to stop. A thread that has just called may be about to wait.
bool LinkThread::Serve() {
  pause_ns_ = kFirstPauseNs;
  turns_ = work_.Turns() - 1;
  uint64_t busy_ns = MonotonicNs();
  bool crowded = false;
  while (shm::LoadAcquire(armed_) != static_cast<uint32_t>(Armed::kNo)) {
    uint32_t done = 0;
    if (DoRankThreadsTurn() || !work_.TryStep(&done)) {
      if (pause_ns_ == kLastPauseNs && !work_.MustStay() && Disarm()) {
        return true;
      }
      if (!Doze()) {
        return false;
      }
      busy_ns = MonotonicNs();
      continue;
    }
    turns_ = work_.Turns();  // these were its own
    pause_ns_ = kFirstPauseNs;
    const uint64_t now_ns = MonotonicNs();
    if (done != 0) {
      busy_ns = now_ns;
    } else if (now_ns - busy_ns < kBusyNs && !crowded) {
      crowded = shm::YieldToOthers() != 0;
    } else if (!Watch(now_ns)) {
      return false;
    } else {
      busy_ns = MonotonicNs();
      crowded = false;
    }
  }
  return true;
}

}  // namespace ferry::client
