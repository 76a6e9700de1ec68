// Takes the CPUs while it lives, so that all others are preempted where it hurts.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace ferry::tests {

// One thread a CPU, which never rests.
class Load {
 public:
  Load() {
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      threads_.emplace_back([this] {
        while (!is_over_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~Load() {
    is_over_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  std::atomic<bool> is_over_{false};
  std::vector<std::thread> threads_;
};

}  // namespace ferry::tests
