#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/triggered/deferred_nics.h"

namespace ferry::daemon {
namespace {

using Place = DeferredPool::Place;

// Begins operations until one is refused, which ends at once. Returns the number of them that run
// on the NIC.
uint32_t Fill(DeferredPool& pool, DeferredPool::Job job) {
  uint32_t begun = 0;
  while (pool.Begin(job) == Place::kNic) {
    begun++;
  }
  pool.End(job, Place::kSoftware);
  return begun;
}

TEST(DeferredPoolTest, OneJobMayHaveAllEntries) {
  DeferredPool pool(16);
  pool.Join(1, 1);
  pool.Join(2, 100);  // wants nothing
  EXPECT_EQ(Fill(pool, 1), 16U);
  EXPECT_EQ(pool.in_use(), 16U);
  EXPECT_EQ(pool.HeldBy(1), 16U);
  EXPECT_EQ(pool.counts().on_nic, 16U);
  EXPECT_EQ(pool.counts().in_software, 1U);
  EXPECT_EQ(pool.CountsOf(1).in_software, 1U);
  EXPECT_EQ(pool.CountsOf(2).on_nic, 0U);
}

TEST(DeferredPoolTest, WhatIsLentComesBackAsOperationsEnd) {
  DeferredPool pool(16);
  pool.Join(1, 1);
  pool.Join(2, 1);
  Fill(pool, 1);
  EXPECT_EQ(pool.Begin(2), Place::kSoftware) << "nothing is taken away";
  for (uint32_t held = 0; held < 8; held++) {
    EXPECT_EQ(pool.HeldBy(2), held);
    pool.End(1, Place::kNic);
    EXPECT_EQ(pool.Begin(1), Place::kSoftware) << "the other one wants its share";
    EXPECT_EQ(pool.Begin(2), Place::kNic);
    pool.End(1, Place::kSoftware);
  }
  EXPECT_EQ(pool.HeldBy(1), 8U);
  EXPECT_EQ(pool.HeldBy(2), 8U);
}

TEST(DeferredPoolTest, NothingIsKeptForOneThatWantsNothingMore) {
  DeferredPool pool(8);
  pool.Join(1, 1);
  pool.Join(2, 1);
  Fill(pool, 1);
  EXPECT_EQ(pool.Begin(2), Place::kSoftware);
  pool.End(1, Place::kNic);
  EXPECT_EQ(pool.Begin(1), Place::kSoftware);
  pool.End(2, Place::kSoftware);  // ended in software, and wants no other place
  EXPECT_EQ(pool.Begin(1), Place::kNic);
}

TEST(DeferredPoolTest, NoEntriesMeansSoftware) {
  DeferredPool pool(0);
  pool.Join(1, 1);
  EXPECT_EQ(pool.Begin(1), Place::kSoftware);
  pool.End(1, Place::kSoftware);
  pool.Leave(1);
  EXPECT_EQ(pool.HeldBy(1), 0U);
}

TEST(DeferredPoolTest, WhatTheNicRefusesRunsInSoftware) {
  DeferredPool pool(4);
  pool.Join(1, 1);
  EXPECT_EQ(pool.Begin(1), Place::kNic);
  pool.Refused(1);
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(pool.counts().on_nic, 0U);
  EXPECT_EQ(pool.CountsOf(1).in_software, 1U);
  pool.End(1, Place::kSoftware);
  pool.Leave(1);
}

struct Contention {
  const char* name;
  uint32_t entries;
  std::vector<uint32_t> weights;
  uint32_t depth;  // operations that each job has under way
};
void PrintTo(const Contention& contention, std::ostream* out) { *out << contention.name; }

class DeferredPoolContentionTest : public testing::TestWithParam<Contention> {};

// There are tens of thousands of requests; operations end in random order, and their jobs begin
// others.
TEST_P(DeferredPoolContentionTest, SharesByWeightAndStaysWithinTheLimit) {
  const Contention& parameters = GetParam();
  const size_t jobs = parameters.weights.size();
  DeferredPool pool(parameters.entries);
  std::mt19937 random(20261122);
  uint64_t weights = 0;
  for (size_t job = 0; job < jobs; job++) {
    pool.Join(job, parameters.weights[job]);
    weights += parameters.weights[job];
  }
  std::vector<std::pair<DeferredPool::Job, Place>> running;
  for (uint32_t i = 0; i < parameters.depth; i++) {
    for (size_t job = 0; job < jobs; job++) {
      running.emplace_back(job, pool.Begin(job));
    }
  }
  std::vector<double> held(jobs);
  constexpr int kRequests = 60'000;
  int measured = 0;
  for (int i = 0; i < kRequests; i++) {
    auto& [job, place] = running[random() % running.size()];
    pool.End(job, place);
    place = pool.Begin(job);
    ASSERT_LE(pool.in_use(), parameters.entries);
    if (i < kRequests / 4) {
      continue;  // the first jobs' places come back first
    }
    measured++;
    for (size_t one = 0; one < jobs; one++) {
      held[one] += pool.HeldBy(one);
    }
  }
  double all = 0;
  for (size_t job = 0; job < jobs; job++) {
    const double share =
        double{1} * parameters.entries * parameters.weights[job] / static_cast<double>(weights);
    const double mean = held[job] / measured;
    all += mean;
    EXPECT_NEAR(mean, share, 0.2 * share) << "job " << job;
    EXPECT_GT(pool.CountsOf(job).on_nic, 0U) << "job " << job << " starves";
  }
  EXPECT_GT(all, 0.9 * parameters.entries) << "entries lie idle";
}

INSTANTIATE_TEST_SUITE_P(
    Loads, DeferredPoolContentionTest,
    testing::Values(Contention{"TwoEqual", 504, {1, 1}, 600},
                    Contention{"OneToThree", 504, {1, 3}, 600}, Contention{"Few", 16, {1, 3}, 40},
                    Contention{"Many", 504, {1, 2, 3, 4, 5, 6, 7, 8}, 300},
                    Contention{"MoreJobsThanEntries", 4, std::vector<uint32_t>(12, 1), 5}),
    [](const auto& info) { return std::string(info.param.name); });

// Jobs come, go, and want much or little; nothing is lost or counted twice.
TEST(DeferredPoolTest, CountsStayRightWhateverComes) {
  std::mt19937 random(7);
  DeferredPool pool(50);
  std::map<DeferredPool::Job, std::vector<Place>> running;
  uint64_t begun = 0;
  DeferredPool::Job next = 0;
  for (int i = 0; i < 50'000; i++) {
    const uint32_t dice = random() % 100;
    if (running.empty() || (dice == 0 && running.size() < 20)) {
      pool.Join(next, 1 + random() % 5);
      running[next++];
      continue;
    }
    auto one = running.begin();
    std::advance(one, random() % running.size());
    auto& [job, places] = *one;
    if (dice < 50) {
      places.push_back(pool.Begin(job));
      begun++;
    } else if (!places.empty()) {
      std::swap(places[random() % places.size()], places.back());
      pool.End(job, places.back());
      places.pop_back();
    } else if (dice > 97) {
      pool.Leave(job);
      running.erase(one);
    }
    uint32_t held = 0;
    for (const auto& [each, its] : running) {
      held += static_cast<uint32_t>(std::count(its.begin(), its.end(), Place::kNic));
    }
    ASSERT_EQ(pool.in_use(), held);
    ASSERT_LE(held, 50U);
  }
  EXPECT_EQ(pool.counts().on_nic + pool.counts().in_software, begun);
}

}  // namespace
}  // namespace ferry::daemon
