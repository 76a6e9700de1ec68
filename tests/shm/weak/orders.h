// Which orders of memory a scenario needs, by weak_machine.h.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shm/fence.h"
#include "tests/shm/weak/weak_machine.h"

namespace ferry::weak {

struct Needed {
  const char* name;
  Weakening weakening;
};

// An order of all accesses to these words.
template <typename Words>
Weakening Without(Order order, const Words& words) {
  return {order, &words, sizeof(words)};
}

inline Weakening Without(Order fence) { return {fence}; }

// As before EnableLightFence: heavy fences reach no other thread, as in a process that has not
// asked for them.
inline void EndLightFences() {
  shm::DisableLightFence();
  CoverThreads(false);
}

// The scenario runs well as it is, and the machine finds a run that does not for each order that is
// left out: so the scenario would notice a change of the code that loses the order. The rarest of
// today's takes some 40 runs.
inline void ExpectOrders(const Scenario& scenario, const std::vector<Needed>& orders,
                         uint32_t runs = 4'000) {
  EXPECT_EQ(Explore(scenario, runs).value_or(""), "");
  for (const Needed& needed : orders) {
    EXPECT_TRUE(Explore(scenario, runs, needed.weakening).has_value())
        << "no run notices that this is left out: " << needed.name;
  }
}

}  // namespace ferry::weak
