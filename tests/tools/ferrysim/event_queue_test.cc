#include "tools/ferrysim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace ferry::sim {
namespace {

struct Log {
  EventQueue queue;
  std::vector<uint64_t> seen;
  std::vector<Time> times;

  Action Note(uint64_t what) {
    return {[](void* self, uint64_t a, uint64_t) {
              auto& log = *static_cast<Log*>(self);
              log.seen.push_back(a);
              log.times.push_back(log.queue.now());
            },
            this, what, 0};
  }
};

TEST(EventQueueTest, RunsInTheOrderOfTime) {
  Log log;
  for (const Time at : {50, 10, 40, 20, 30}) {
    log.queue.At(at, log.Note(at));
  }
  EXPECT_TRUE(log.queue.Run());
  EXPECT_EQ(log.seen, (std::vector<uint64_t>{10, 20, 30, 40, 50}));
  EXPECT_EQ(log.times, (std::vector<Time>{10, 20, 30, 40, 50}));
  EXPECT_EQ(log.queue.ran(), 5U);
}

TEST(EventQueueTest, SortsWhateverComes) {
  Log log;
  std::mt19937 random(1);
  std::vector<Time> times;
  for (int i = 0; i < 5000; ++i) {
    times.push_back(random() % 700);
    log.queue.At(times.back(), log.Note(static_cast<uint64_t>(i)));
  }
  log.queue.Run();
  std::vector<uint64_t> expected(times.size());
  std::iota(expected.begin(), expected.end(), 0);
  std::stable_sort(expected.begin(), expected.end(),
                   [&](uint64_t a, uint64_t b) { return times[a] < times[b]; });
  EXPECT_EQ(log.seen, expected);
}

TEST(EventQueueTest, KeepsTheOrderOfMakingAtEqualTimes) {
  Log log;
  for (uint64_t i = 0; i < 100; ++i) {
    log.queue.At(7, log.Note(i));
  }
  log.queue.Run();
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(log.seen[i], i);
  }
}

TEST(EventQueueTest, EventsMakeEventsAtTheSameTime) {
  Log log;
  log.queue.At(5, {[](void* self, uint64_t, uint64_t) {
                     auto& inner = *static_cast<Log*>(self);
                     inner.queue.At(inner.queue.now(), inner.Note(2));
                   },
                   &log, 0, 0});
  log.queue.At(5, log.Note(1));
  log.queue.At(6, log.Note(3));
  log.queue.Run();
  EXPECT_EQ(log.seen, (std::vector<uint64_t>{1, 2, 3}));
}

TEST(EventQueueTest, StopsAtItsLimit) {
  Log log;
  log.queue.At(1, log.Note(1));
  log.queue.At(2, log.Note(2));
  EXPECT_FALSE(log.queue.Run(1));
  EXPECT_EQ(log.seen.size(), 1U);
  EXPECT_TRUE(log.queue.Run(5));
  EXPECT_FALSE(log.queue.RunOne());
}

TEST(EventQueueDeathTest, NobodyChangesThePast) {
  Log log;
  log.queue.At(10, log.Note(1));
  log.queue.Run();
  EXPECT_DEATH(log.queue.At(9, log.Note(2)), "");
}

}  // namespace
}  // namespace ferry::sim
