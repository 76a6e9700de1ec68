// The machine itself, by the litmus tests of the literature: which values threads may read
// together, and which not.
#include "tests/shm/weak/weak_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "shm/atomic.h"
#include "shm/fence.h"
#include "tests/shm/weak/orders.h"

namespace ferry::weak {
namespace {

using shm::FetchAdd;
using shm::Load;
using shm::LoadAcquire;
using shm::LoadRelaxed;
using shm::StoreRelaxed;
using shm::StoreRelease;

constexpr uint32_t kRuns = 5'000;
constexpr auto kSequential = std::memory_order_seq_cst;

class WeakMachineTest : public ::testing::Test {
 protected:
  // Returns the values that the threads have read, as digits, of all runs.
  std::set<std::string> Outcomes(const std::vector<Body>& bodies) {
    std::set<std::string> outcomes;
    bool is_first = true;
    const auto note = [&] {
      std::string read;
      for (const uint32_t value : read_) {
        read += std::to_string(value);
      }
      outcomes.insert(read);
    };
    const auto failure = Explore(
        [&] {
          if (!is_first) {
            note();
          }
          is_first = false;
          x_ = y_ = 0;
          std::fill(std::begin(read_), std::end(read_), 0);
          return bodies;
        },
        kRuns);
    note();
    EXPECT_EQ(failure.value_or(""), "");
    return outcomes;
  }
  static std::set<std::string> Only(std::initializer_list<std::string> outcomes) {
    return outcomes;
  }

  uint32_t x_ = 0;
  uint32_t y_ = 0;
  uint32_t plain_ = 0;
  uint32_t read_[4] = {};
};

TEST_F(WeakMachineTest, AStoreMayWaitForALoadBehindIt) {
  EXPECT_EQ(Outcomes({[&] {
                        StoreRelease(x_, 1);
                        read_[0] = LoadAcquire(y_);
                      },
                      [&] {
                        StoreRelease(y_, 1);
                        read_[1] = LoadAcquire(x_);
                      }}),
            Only({"0000", "0100", "1000", "1100"}));
}

TEST_F(WeakMachineTest, SequentiallyConsistentOnesDoNot) {
  EXPECT_EQ(Outcomes({[&] {
                        FetchAdd(x_, 1, kSequential);
                        read_[0] = Load(y_, kSequential);
                      },
                      [&] {
                        FetchAdd(y_, 1, kSequential);
                        read_[1] = Load(x_, kSequential);
                      }}),
            Only({"0100", "1000", "1100"}));
}

// On x86 this does not show: its exchange is a fence.
TEST_F(WeakMachineTest, ALoadMayComeBeforeAnExchange) {
  const auto with = [&](const Body& fence) {
    return Outcomes({[&] {
                       FetchAdd(x_, 1, kSequential);
                       fence();
                       read_[0] = LoadAcquire(y_);
                     },
                     [&] {
                       FetchAdd(y_, 1, kSequential);
                       fence();
                       read_[1] = LoadAcquire(x_);
                     }});
  };
  EXPECT_EQ(with([] {}), Only({"0000", "0100", "1000", "1100"}));
  EXPECT_EQ(with([] { shm::FullFence(); }), Only({"0100", "1000", "1100"}));
  EXPECT_EQ(with([] { shm::FenceAfterUpdate(); }), Only({"0100", "1000", "1100"}));
}

TEST_F(WeakMachineTest, AHeavyFenceServesBothSides) {
  const auto outcomes = [&] {
    return Outcomes({[&] {
                       StoreRelaxed(x_, 1);
                       shm::LightFence();
                       read_[0] = LoadRelaxed(y_);
                     },
                     [&] {
                       StoreRelaxed(y_, 1);
                       shm::HeavyFence();
                       read_[1] = LoadRelaxed(x_);
                     }});
  };
  EXPECT_EQ(outcomes(), Only({"0000", "0100", "1000", "1100"}));
  shm::EnableLightFence();
  EXPECT_EQ(outcomes(), Only({"0100", "1000", "1100"}));
  EndLightFences();
}

TEST_F(WeakMachineTest, OnlyAReleaseThatIsAcquiredPassesAMessage) {
  const auto outcomes = [&](std::memory_order store, std::memory_order load) {
    return Outcomes({[&, store] {
                       StoreRelaxed(x_, 1);
                       StoreWord(&y_, sizeof(y_), 1, store);
                     },
                     [&, load] {
                       read_[0] = Load(y_, load);
                       read_[1] = LoadRelaxed(x_);
                     }});
  };
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const auto all = Only({"0000", "0100", "1000", "1100"});
  EXPECT_EQ(outcomes(kRelaxed, kRelaxed), all);
  EXPECT_EQ(outcomes(std::memory_order_release, kRelaxed), all);
  EXPECT_EQ(outcomes(kRelaxed, std::memory_order_acquire), all);
  EXPECT_EQ(outcomes(std::memory_order_release, std::memory_order_acquire),
            Only({"0000", "0100", "1100"}));
}

TEST_F(WeakMachineTest, AnUpdateGoesOnWithTheReleaseBeforeIt) {
  const auto outcomes = Outcomes({[&] {
                                    StoreRelaxed(x_, 1);
                                    StoreRelease(y_, 1);
                                  },
                                  [&] { FetchAdd(y_, 2, std::memory_order_relaxed); },
                                  [&] {
                                    read_[0] = LoadAcquire(y_);
                                    read_[1] = LoadRelaxed(x_);
                                  }});
  EXPECT_EQ(outcomes.count("3100"), 1U);
  EXPECT_EQ(outcomes.count("3000"), 0U);
}

TEST_F(WeakMachineTest, ValuesOfOneWordDoNotGoBack) {
  const auto outcomes = Outcomes({[&] {
                                    StoreRelaxed(x_, 1);
                                    StoreRelaxed(x_, 2);
                                  },
                                  [&] {
                                    read_[0] = LoadRelaxed(x_);
                                    read_[1] = LoadRelaxed(x_);
                                  }});
  EXPECT_EQ(outcomes, Only({"0000", "0100", "0200", "1100", "1200", "2200"}));
}

TEST_F(WeakMachineTest, TwoReadersMayDisagreeUnlessAllIsSequential) {
  const auto outcomes = [&](std::memory_order store, std::memory_order load) {
    return Outcomes({[&, store] { StoreWord(&x_, sizeof(x_), 1, store); },
                     [&, store] { StoreWord(&y_, sizeof(y_), 1, store); },
                     [&, load] {
                       read_[0] = Load(x_, load);
                       read_[1] = Load(y_, load);
                     },
                     [&, load] {
                       read_[2] = Load(y_, load);
                       read_[3] = Load(x_, load);
                     }})
        .count("1010");
  };
  EXPECT_EQ(outcomes(std::memory_order_release, std::memory_order_acquire), 1U);
  EXPECT_EQ(outcomes(kSequential, kSequential), 0U);
}

// ---- What fails ---------------------------------------------------------------------------------

TEST_F(WeakMachineTest, PlainMemoryIsPassedOnByARelease) {
  const Scenario scenario = [&] {
    x_ = 0;
    return std::vector<Body>{[&] {
                               Write(&plain_, sizeof(plain_));
                               StoreRelease(x_, 1);
                             },
                             [&] {
                               while (LoadAcquire(x_) == 0) {
                                 Yield();
                               }
                               Read(&plain_, sizeof(plain_));
                             }};
  };
  EXPECT_EQ(Explore(scenario, kRuns).value_or(""), "");
  EXPECT_NE(Explore(scenario, kRuns, Weakening{Order::kRelease, &x_, sizeof(x_)}), std::nullopt);
  EXPECT_NE(Explore(scenario, kRuns, Weakening{Order::kAcquire, &x_, sizeof(x_)}), std::nullopt);
}

TEST_F(WeakMachineTest, AReadMustBeOverBeforeAWrite) {
  const Scenario scenario = [&] {
    x_ = 0;
    return std::vector<Body>{[&] {
                               Read(&plain_, sizeof(plain_));
                               StoreRelease(x_, 1);
                             },
                             [&] {
                               while (LoadAcquire(x_) == 0) {
                                 Yield();
                               }
                               Write(&plain_, sizeof(plain_));
                             }};
  };
  EXPECT_EQ(Explore(scenario, kRuns).value_or(""), "");
  EXPECT_NE(Explore(scenario, kRuns, Weakening{Order::kRelease, &x_, sizeof(x_)}), std::nullopt);
}

TEST_F(WeakMachineTest, ASleeperIsWoken) {
  const auto scenario = [&](bool wakes) {
    return [this, wakes] {
      x_ = 0;
      return std::vector<Body>{[&, wakes] {
                                 StoreRelaxed(x_, 1);
                                 if (wakes) {
                                   FutexWake(&x_);
                                 }
                               },
                               [&] {
                                 while (LoadRelaxed(x_) == 0) {
                                   FutexWait(&x_, 0);
                                 }
                               }};
    };
  };
  EXPECT_EQ(Explore(scenario(true), kRuns).value_or(""), "");
  EXPECT_EQ(Explore(scenario(false), kRuns).value_or("").substr(0, 24), "a thread sleeps for ever");
}

TEST_F(WeakMachineTest, AThreadThatWaitsForNothingDoesNotEnd) {
  const auto failure = Explore(
      [&] {
        x_ = 0;
        return std::vector<Body>{[&] {
          while (LoadRelaxed(x_) == 0) {
            Yield();
          }
        }};
      },
      1);
  EXPECT_EQ(failure.value_or("").substr(0, 22), "the threads do not end");
}

}  // namespace
}  // namespace ferry::weak
