// Counters that others wait for, and the statistics of a rank.
#include "shm/counter.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "shm/counters.h"
#include "tests/shm/shared_memory.h"

namespace ferry::shm {
namespace {

// ---- Counters

TEST(CounterTest, ReachesItsThreshold) {
  Shared<CounterLayout> layout;
  Counter counter(layout.get());
  counter.Add(2);
  EXPECT_FALSE(counter.Reached(3));
  counter.Add(1);
  EXPECT_TRUE(counter.Reached(3));
  EXPECT_EQ(counter.Value(), 3U);
  EXPECT_EQ(counter.error(), ErrorCode::kOk);
}

TEST(CounterTest, FailureFiresEveryWaitAndSaysWhy) {
  Shared<CounterLayout> layout;
  Counter counter(layout.get());
  counter.Add(5);
  counter.Fail(ErrorCode::kPeerDied);
  EXPECT_TRUE(counter.Reached(kCounterFailure - 1));
  EXPECT_EQ(counter.error(), ErrorCode::kPeerDied);
  EXPECT_EQ(counter.Value(), kCounterFailure + 5);
}

TEST(CounterTest, SecondFailureChangesNothing) {
  Shared<CounterLayout> layout;
  Counter counter(layout.get());
  counter.Fail(ErrorCode::kPeerDied);
  counter.Fail(ErrorCode::kDaemonDied);
  EXPECT_EQ(counter.error(), ErrorCode::kPeerDied);
  EXPECT_EQ(counter.Value(), kCounterFailure);
}

TEST(CounterTest, FailureLeftHalfDoneByAKilledProcessIsCompleted) {
  Shared<CounterLayout> layout;
  layout->error = static_cast<int32_t>(ErrorCode::kTimeout);
  Counter counter(layout.get());
  EXPECT_EQ(counter.error(), ErrorCode::kOk) << "not failed before the value says so";
  counter.Fail(ErrorCode::kDaemonDied);
  EXPECT_EQ(counter.error(), ErrorCode::kTimeout);
  EXPECT_EQ(counter.Value(), kCounterFailure);
}

TEST(CounterTest, ManyThreadsAddAndFailWithoutLoss) {
  constexpr uint64_t kAdds = 20'000;
  Shared<CounterLayout> layout;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Counter counter(layout.get());
      for (uint64_t n = 0; n < kAdds; ++n) {
        counter.Add(1);
        if (n == kAdds / 2) {
          counter.Fail(ErrorCode::kAborted);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(Counter(layout.get()).Value(), kCounterFailure + 4 * kAdds);
}

// ---- Statistics

TEST(StatisticsTest, EveryIdHasALabelOfItsOwn) {
  std::set<std::string> names;
  for (const StatisticLabel& label : StatisticLabels()) {
    EXPECT_TRUE(names.insert(label.name).second) << label.name << " is used twice";
    EXPECT_STRNE(label.unit, "");
    EXPECT_STRNE(label.help, "");
    EXPECT_EQ(std::string(label.name).find_first_not_of("abcdefghijklmnopqrstuvwxyz_"),
              std::string::npos)
        << label.name;
  }
  EXPECT_EQ(names.size(), kStatisticCount);
}

// Ids are places in shared memory: one that changes breaks every reader.
TEST(StatisticsTest, IdsStayWhereTheyAre) {
  EXPECT_EQ(static_cast<uint32_t>(Statistic::kMessagesSent), 0U);
  EXPECT_EQ(static_cast<uint32_t>(Statistic::kPathInlineMessages), 4U);
  EXPECT_EQ(static_cast<uint32_t>(Statistic::kPathStagedBytes), 17U);
  EXPECT_EQ(static_cast<uint32_t>(Statistic::kPathPacketBytes), 19U);
  EXPECT_EQ(static_cast<uint32_t>(Statistic::kErrors), 26U);
  EXPECT_STREQ(StatisticLabels()[0].name, "messages_sent");
  EXPECT_STREQ(StatisticLabels()[26].name, "errors");
}

TEST(StatisticsTest, PathsCountMessagesAndBytes) {
  uint64_t words[kCounterWords] = {};
  Statistics statistics(words);
  statistics.AddMessage(Path::kProcessVm, 1000);
  statistics.AddMessage(Path::kProcessVm, 24);
  EXPECT_EQ(statistics.Read(Statistic::kPathProcessVmMessages), 2U);
  EXPECT_EQ(statistics.Read(Statistic::kPathProcessVmBytes), 1024U);
  EXPECT_EQ(statistics.Read(Statistic::kPathBounceMessages), 0U);
}

TEST(StatisticsTest, SharedAddsFromManyThreadsAreAllCounted) {
  uint64_t words[kCounterWords] = {};
  auto add = [&words] {
    Statistics statistics(words);
    for (int i = 0; i < 10'000; ++i) {
      statistics.AddShared(Statistic::kErrors);
    }
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(Statistics(words).Read(Statistic::kErrors), 20'000U);
}

}  // namespace
}  // namespace ferry::shm
