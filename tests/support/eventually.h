// Waits for a condition, as long as a test's patience lasts.
#pragma once

#include <chrono>
#include <thread>

#include "tests/support/patience.h"

namespace ferry::tests {

// Asks `condition()` until it holds, and between two looks sleeps for `pause`, or only yields where
// there is none: for conditions that carry work on themselves. Returns false if it has not come
// true within kPatience.
template <typename Condition>
bool Eventually(Condition&& condition, std::chrono::milliseconds pause = {}) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) {
      return false;
    }
    pause.count() > 0 ? std::this_thread::sleep_for(pause) : std::this_thread::yield();
  }
  return true;
}

}  // namespace ferry::tests
