#include "shm/counters.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

namespace ferry::shm {
namespace {

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
