// Preempts all others at random moments while it lives.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

namespace ferry::tests {

// Two threads a CPU that sleep for up to a millisecond and compute for up to a quarter of one: the
// kernel lets who wakes up go first. A load that never rests would do that less often, and leave
// those who wait by yielding, as ranks do, next to nothing.
class Load {
 public:
  Load() {
    for (unsigned i = 0; i < 2 * std::max(1U, std::thread::hardware_concurrency()); ++i) {
      threads_.emplace_back([this, i] { Run(i); });
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
  void Run(unsigned seed) {
    std::minstd_rand dice(seed + 1);
    std::uniform_int_distribution<int64_t> rest_us(0, 1'000);
    std::uniform_int_distribution<int64_t> work_us(0, 250);
    while (!is_over_.load(std::memory_order_relaxed)) {
      std::this_thread::sleep_for(std::chrono::microseconds(rest_us(dice)));
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(work_us(dice));
      while (std::chrono::steady_clock::now() < end) {
      }
    }
  }

  std::atomic<bool> is_over_{false};
  std::vector<std::thread> threads_;
};

}  // namespace ferry::tests
