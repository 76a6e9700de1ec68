// The progress thread: turns the core, and sleeps when there is nothing to do.
//
// Calling thread: any but the progress thread itself, for Call, Until and Watch; the first two
// block until the progress thread has carried out what they were given. Begin and Unwatch: any.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "common/topology/cpu_set.h"
#include "common/unique_fd.h"
#include "daemon/plane/mailbox.h"
#include "daemon/progress/progress_core.h"
#include "shm/wait_policy.h"

namespace ferry::daemon {

// How the thread spends its time; only ever grow.
struct TurnStatistics {
  uint64_t turns = 0;
  uint64_t sleeps = 0;
};

class ProgressThread {
 public:
  // Both outlive this. Starts the thread, on these CPUs (empty: on any).
  ProgressThread(ProgressCore& core, Mailbox& mailbox, const shm::WaitPolicy& policy,
                 const topology::CpuSet& cpus = {});
  // Stops the thread; what Until was given must be done.
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Carries out `call` on the thread.
  void Call(const std::function<void()>& call);
  // Carries out `step` after each turn until it returns true.
  void Until(const std::function<bool()>& step);
  // The same without waiting for it: then the thread calls `done`. At the end of the thread what
  // has not been done is dropped.
  void Begin(std::function<bool()> step, std::function<void()> done);
  // A write to this eventfd ends a sleep. It is never read: a rank holds it too.
  void Watch(int doorbell);
  void Unwatch(int doorbell);

  TurnStatistics statistics() const {
    return {turns_.load(std::memory_order_relaxed), sleeps_.load(std::memory_order_relaxed)};
  }

 private:
  struct Pending {
    std::function<bool()> step;
    std::function<void()> done;
  };

  void Loop();
  uint32_t RunPending();
  void Sleep();
  timespec LongestSleep(uint64_t now_ns) const;

  ProgressCore& core_;
  Mailbox& mailbox_;
  const shm::WaitPolicy policy_;
  UniqueFd epoll_;
  std::vector<Pending> pending_;  // the thread's
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> turns_{0};
  std::atomic<uint64_t> sleeps_{0};
  std::thread thread_;
};

}  // namespace ferry::daemon
