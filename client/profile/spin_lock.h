// A lock of a few instructions, for what threads of a rank note together. Unlike a mutex it makes
// no system call, and one byte of zeros is an open one.
//
// Calling thread: any. Blocks: while another thread is inside, which notes something and leaves. A
// thread that finds its holder descheduled gives up its core.
#pragma once

#include <sched.h>

#include <atomic>

#include "shm/wait_policy.h"

namespace ferry::client {

class SpinLock {
 public:
  void lock() {
    while (is_taken_.exchange(true, std::memory_order_acquire)) {  // pairs with unlock
      for (int i = 0; is_taken_.load(std::memory_order_relaxed); ++i) {
        if (i < kPauses) {
          shm::CpuPause();
        } else {
          sched_yield();
        }
      }
    }
  }
  void unlock() { is_taken_.store(false, std::memory_order_release); }

 private:
  static constexpr int kPauses = 100;

  std::atomic<bool> is_taken_{false};
};

// Holds a lock while it exists, where several threads may call at a time: one alone needs none, and
// an atomic exchange costs a third of what it notes.
class SharedLock {
 public:
  // `shared`: changes only while no thread is in a call.
  SharedLock(SpinLock* lock, bool shared) : lock_(shared ? lock : nullptr) {
    if (lock_ != nullptr) {
      lock_->lock();
    }
  }
  ~SharedLock() {
    if (lock_ != nullptr) {
      lock_->unlock();
    }
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SpinLock* const lock_;
};

}  // namespace ferry::client
