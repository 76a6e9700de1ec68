#include "tests/client/direct/link_thread.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <ctime>

#include "common/clock.h"

namespace ferry::client {
namespace {

constexpr uint64_t kQuietNs = 50'000;

int WatchBoth(int told, int links) {
  const int set = epoll_create1(EPOLL_CLOEXEC);
  for (const int fd : {told, links}) {
    epoll_event event{};
    event.events = EPOLLIN;
    EXPECT_EQ(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
  }
  return set;
}

}  // namespace

TurningThread::TurningThread(LinkedRank& rank)
    : rank_(rank),
      told_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      armed_set_(WatchBoth(told_.get(), rank.links().WaitFd())),
      thread_([this] { Run(); }) {}

TurningThread::~TurningThread() {
  stop_ = true;
  Arm();
  thread_.join();
}

void TurningThread::Arm() { eventfd_write(told_.get(), 1); }

uint64_t TurningThread::cpu_ns() const {
  clockid_t clock;
  timespec time{};
  EXPECT_EQ(pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &time), 0);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// True: something came.
bool TurningThread::Await(bool armed, uint64_t next_ns) const {
  const uint64_t now_ns = MonotonicNs();
  const int timeout_ms =
      next_ns == UINT64_MAX
          ? -1
          : static_cast<int>((std::max(next_ns, now_ns) - now_ns + 999'999) / 1'000'000);
  pollfd one{armed ? armed_set_.get() : told_.get(), POLLIN, 0};
  return poll(&one, 1, timeout_ms) > 0;
}

void TurningThread::Run() {
  bool armed = false;
  uint64_t next_ns = UINT64_MAX;
  while (!stop_) {
    if (Await(armed, next_ns) && armed) {
      ++wakes_;
    }
    eventfd_t told = 0;
    armed |= eventfd_read(told_.get(), &told) == 0;
    next_ns = UINT64_MAX;
    if (armed && !stop_) {
      armed = rank_.TryRest(kQuietNs, &next_ns);
      sleeps_ += armed ? 1 : 0;
    }
  }
}

}  // namespace ferry::client
