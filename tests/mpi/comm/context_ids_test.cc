#include "client/mpi/comm/context_ids.h"

#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

TEST(ContextIdsTest, GivesEachKindOfTrafficAContext) {
  std::set<uint32_t> contexts;
  for (uint32_t number : {kWorldNumber, kSelfNumber, kReservedNumbers}) {
    for (Traffic traffic : {Traffic::kPointToPoint, Traffic::kCollective, Traffic::kAgreement,
                            Traffic::kGroupCreation, Traffic::kLeaders, Traffic::kIdup,
                            Traffic::kPartitioned, Traffic::kFromGroup}) {
      EXPECT_TRUE(contexts.insert(ContextOf(number, traffic)).second);
    }
  }
  EXPECT_GE(*contexts.begin(), kContextsPerCommunicator);
  EXPECT_GT(ContextOf(kNumberLimit - 1, Traffic::kPartitioned), uint32_t{1} << 31);
}

TEST(ContextIdsTest, NoTwoProcessesEverMakeTheSameNumber) {
  std::set<uint32_t> numbers;
  for (int rank = 0; rank < 5; ++rank) {
    ContextIds ids(rank, 5);
    for (uint32_t count : {1u, 3u, 0u, 2u, 1u}) {
      uint32_t first = 0;
      ASSERT_TRUE(ids.Make(count, &first).ok());
      for (uint32_t i = 0; i < count; ++i) {
        EXPECT_GE(first, kReservedNumbers);
        EXPECT_TRUE(numbers.insert(first + i * ids.step()).second);
      }
    }
  }
  EXPECT_EQ(numbers.size(), 35u);
}

TEST(ContextIdsTest, NoTwoThreadsEverMakeTheSameNumber) {
  ContextIds ids(1, 3);
  std::mutex mutex;
  std::set<uint32_t> numbers;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        uint32_t first = 0;
        EXPECT_TRUE(ids.Make(2, &first).ok());
        std::lock_guard lock(mutex);
        numbers.insert(first);
        numbers.insert(first + ids.step());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(numbers.size(), 8000u);
}

TEST(ContextIdsTest, SaysWhenNumbersHaveRunOut) {
  ContextIds ids(2, 4);
  uint32_t first = 0;
  uint32_t all = (kNumberLimit - kReservedNumbers) / 4;
  ASSERT_TRUE(ids.Make(all - 1, &first).ok());
  EXPECT_EQ(ids.Make(2, &first).error_class, MPI_ERR_INTERN);
  ASSERT_TRUE(ids.Make(1, &first).ok());
  EXPECT_LT(first, kNumberLimit);
  Failure failure = ids.Make(1, &first);
  EXPECT_EQ(failure.error_class, MPI_ERR_INTERN);
  EXPECT_NE(failure.text.find(std::to_string(all)), std::string::npos) << failure.text;
  EXPECT_EQ(ContextIds(0, 1).Make(~uint32_t{0}, &first).error_class, MPI_ERR_INTERN);
}

}  // namespace
}  // namespace ferry::mpi
