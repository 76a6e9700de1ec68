// How a thread waits among others: all of this runs on one core.
#include "shm/wait_policy.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "shm/atomic.h"

namespace ferry::shm {
namespace {

constexpr uint64_t kIdleNs = 200'000;

class CrowdedWaitTest : public testing::Test {
 protected:
  CrowdedWaitTest() {
    sched_getaffinity(0, sizeof(before_), &before_);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof(one), &one);
        break;
      }
    }
  }
  ~CrowdedWaitTest() override {
    Disperse();
    sched_setaffinity(0, sizeof(before_), &before_);
  }

  // From now on others take turns on this core with whoever yields there.
  void Crowd() {
    for (std::thread& other : others_) {
      other = std::thread([this] {
        while (LoadRelaxed(is_over_) == 0) {
          sched_yield();
        }
      });
    }
  }
  void Disperse() {
    StoreRelaxed(is_over_, 1U);
    for (std::thread& other : others_) {
      if (other.joinable()) {
        other.join();
      }
    }
  }
  // How often one looks for something that does not come before it is time to sleep.
  static int CountLooks(bool counts_others) {
    Waiter waiter(
        {.spin_pauses = 0, .idle_before_sleep_ns = kIdleNs, .counts_others = counts_others});
    int looks = 1;
    while (!waiter.Idle()) {
      ++looks;
    }
    return looks;
  }

 private:
  cpu_set_t before_;
  uint32_t is_over_ = 0;
  std::thread others_[8];
};

// Each until it is seen: what else runs on the machine may hide it for a while.
TEST_F(CrowdedWaitTest, AYieldSaysWhetherOthersRan) {
  while (YieldToOthers() != 0 || IsCrowded()) {
  }
  Crowd();
  while (YieldToOthers() == 0 || !IsCrowded()) {
  }
}

uint32_t told = 0;

// So that it can go where it has a core to itself.
TEST_F(CrowdedWaitTest, AWaitTellsThatOthersRunAgainAndAgain) {
  SetCrowdedHook([] { StoreRelaxed(told, LoadRelaxed(told) + 1); });
  Crowd();
  while (LoadRelaxed(told) < 2) {
    (void)YieldToOthers();
  }
  SetCrowdedHook(nullptr);
}

TEST_F(CrowdedWaitTest, WhoDoesNotCountTheTurnsOfOthersLooksMoreOften) {
  Crowd();
  while (CountLooks(false) < 2 * CountLooks(true)) {
  }
}

// Its turn is longer than any budget: the core is better left to it.
TEST_F(CrowdedWaitTest, WhoComputesIsCountedForAllThat) {
  uint32_t is_over = 0;
  std::thread computes([&is_over] {
    while (LoadRelaxed(is_over) == 0) {
    }
  });
  while (CountLooks(false) > 2) {
  }
  StoreRelaxed(is_over, 1U);
  computes.join();
}

}  // namespace
}  // namespace ferry::shm
