#include "daemon/progress/progress_thread.h"

#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "common/topology/affinity.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kNsPerS = 1'000 * kNsPerMs;
constexpr uint64_t kLongestSleepNs = 3'600 * kNsPerS;
constexpr int kEvents = 16;
// While data is on its way turns find nothing until a whole piece of it is there: a sleep, and the
// wake-up that ends it, would hold it up. After so long it is not coming soon; a piece that is long
// by itself may take longer, if the network moves a gigabyte a second.
constexpr uint64_t kTransferPatienceNs = 2'000'000;
constexpr uint64_t kMostPatienceNs = 20'000'000;

uint64_t PatienceNs(uint64_t bytes) {
  return std::min(kTransferPatienceNs + bytes, kMostPatienceNs);
}

void Add(int epoll, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

ProgressThread::ProgressThread(ProgressCore& core, Mailbox& mailbox, const shm::WaitPolicy& policy,
                               const topology::CpuSet& cpus)
    : core_(core), mailbox_(mailbox), policy_(policy), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  Add(epoll_.get(), mailbox_.fd(), EPOLLIN);
  if (const int fd = core_.transport().WaitFd(); fd >= 0) {
    Add(epoll_.get(), fd, EPOLLIN);
  }
  thread_ = std::thread([this] { Loop(); });
  pthread_setname_np(thread_.native_handle(), "ferry-progress");
  if (const Status status = cpus.empty() ? Status() : topology::Pin(thread_.native_handle(), cpus);
      !status.ok()) {
    spdlog::warn("the progress thread runs anywhere: {}", status.message());
  }
}

ProgressThread::~ProgressThread() {
  stop_.store(true, std::memory_order_relaxed);
  mailbox_.Ring();
  thread_.join();
}

void ProgressThread::Call(const std::function<void()>& call) {
  Until([&call] {
    call();
    return true;
  });
}

void ProgressThread::Until(const std::function<bool()>& step) {
  std::promise<void> done;
  Begin(step, [&done] { done.set_value(); });
  done.get_future().wait();
}

void ProgressThread::Begin(std::function<bool()> step, std::function<void()> done) {
  mailbox_.Post([this, pending = Pending{std::move(step), std::move(done)}]() mutable {
    pending_.push_back(std::move(pending));
  });
}

// Edge-triggered, so that nobody has to read it: a read could block at the rank's whim.
void ProgressThread::Watch(int doorbell) {
  if (doorbell >= 0) {
    Add(epoll_.get(), doorbell, EPOLLIN | EPOLLET);
  }
}

void ProgressThread::Unwatch(int doorbell) {
  if (doorbell >= 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, doorbell, nullptr);
  }
}

void ProgressThread::Loop() {
  shm::Waiter waiter(policy_);
  bool streams = false;
  uint64_t active_ns = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const uint64_t now_ns = MonotonicNs();
    uint32_t done = mailbox_.Open();
    done += core_.Turn(now_ns);
    done += RunPending();
    if (done != 0) {
      waiter.Reset();
      active_ns = now_ns;
    }
    // A turn that did something gives way, too: the rank that it was for may be waiting for this
    // core. Only where one message follows another the next turn looks for more at once.
    const bool received = core_.received();
    if (!(streams && received) && waiter.Idle() &&
        !(core_.HasTransfers() && now_ns - active_ns < PatienceNs(core_.transfer_bytes()))) {
      Sleep();
    }
    streams = received;
  }
}

uint32_t ProgressThread::RunPending() {
  return static_cast<uint32_t>(std::erase_if(pending_, [](Pending& pending) {
    if (!pending.step()) {
      return false;
    }
    pending.done();
    return true;
  }));
}

void ProgressThread::Sleep() {
  if (core_.PrepareToSleep()) {
    sleeps_.store(sleeps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    epoll_event events[kEvents];
    const timespec longest = LongestSleep(MonotonicNs());
    const int count = epoll_pwait2(epoll_.get(), events, kEvents, &longest, nullptr);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == mailbox_.fd()) {
        mailbox_.Silence();
      }
    }
  }
  core_.Wake();
}

timespec ProgressThread::LongestSleep(uint64_t now_ns) const {
  const uint64_t next_ns = pending_.empty() ? core_.NextTurnNs(now_ns) : now_ns + kNsPerMs;
  const uint64_t left_ns = std::min(next_ns > now_ns ? next_ns - now_ns : 0, kLongestSleepNs);
  return {static_cast<time_t>(left_ns / kNsPerS), static_cast<long>(left_ns % kNsPerS)};
}

}  // namespace ferry::daemon
