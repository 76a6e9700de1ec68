// Groups of threads on emulated devices, and atomic operations on words of both widths.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "ferry/device/atomics.h"
#include "ferry/device/bytes.h"
#include "ferry/device/emulated.h"
#include "ferry/device/groups.h"

namespace ferry::device {
namespace {

TEST(LaunchTest, NumbersThreadsGroupsAndSubGroups) {
  // Groups of 7 with sub-groups of 3, 3 and 1.
  std::vector<std::atomic<int>> seen(21);
  Launch({3, 7, 3}, [&] {
    const auto thread = static_cast<uint32_t>(ferry_device_thread());
    seen[thread].fetch_add(1);
    EXPECT_EQ(ferry_device_thread_count(), 21u);
    EXPECT_EQ(ferry_device_group(), thread / 7);
    EXPECT_EQ(ferry_device_group_thread(), thread % 7);
    EXPECT_EQ(ferry_device_group_size(), 7u);
    EXPECT_EQ(ferry_device_sub_group_thread(), thread % 7 % 3);
    EXPECT_EQ(ferry_device_sub_group_size(), thread % 7 == 6 ? 1u : 3u);
  });
  for (const std::atomic<int>& times : seen) {
    EXPECT_EQ(times, 1);
  }
}

TEST(LaunchTest, AThreadByItselfIsAGroup) {
  EXPECT_EQ(ferry_device_group_size(), 1u);
  EXPECT_EQ(ferry_device_sub_group_size(), 1u);
  ferry_device_group_barrier();  // no thread to wait for
  ferry_device_sub_group_barrier();
}

// Plain words: only the barriers order them.
template <typename Barrier>
void ExpectInStep(const Shape& shape, uint32_t kind, Barrier&& barrier) {
  std::vector<int> words(size_t{shape.groups} * shape.group_size);
  Launch(shape, [&] {
    const ferry_device_crew crew = ferry_device_crew_of(kind);
    const uint64_t first = ferry_device_thread() - crew.thread;
    for (int round = 1; round <= 50; ++round) {
      words[ferry_device_thread()] = round;
      barrier(crew);
      for (uint32_t i = 0; i < crew.count; ++i) {
        EXPECT_EQ(words[first + i], round);
      }
      barrier(crew);
    }
  });
}

TEST(BarrierTest, KeepsAGroupInStep) {
  ExpectInStep({3, 5}, FERRY_DEVICE_CREW_GROUP,
               [](ferry_device_crew) { ferry_device_group_barrier(); });
}
TEST(BarrierTest, KeepsASubGroupInStep) {
  ExpectInStep({2, 8, 3}, FERRY_DEVICE_CREW_SUB_GROUP,
               [](ferry_device_crew) { ferry_device_sub_group_barrier(); });
}
TEST(BarrierTest, KeepsACrewInStep) {
  for (const uint32_t kind :
       {FERRY_DEVICE_CREW_THREAD, FERRY_DEVICE_CREW_SUB_GROUP, FERRY_DEVICE_CREW_GROUP}) {
    ExpectInStep({2, 6, 4}, kind, ferry_device_crew_barrier);
  }
}

TEST(BroadcastTest, GivesAllThreadsOfACrewTheFirstOnesValue) {
  for (const uint32_t kind :
       {FERRY_DEVICE_CREW_THREAD, FERRY_DEVICE_CREW_SUB_GROUP, FERRY_DEVICE_CREW_GROUP}) {
    Launch({3, 7, 3}, [&] {
      const ferry_device_crew crew = ferry_device_crew_of(kind);
      const uint64_t first = ferry_device_thread() - crew.thread;
      for (uint64_t round = 1; round <= 50; ++round) {
        EXPECT_EQ(ferry_device_crew_broadcast(crew, (ferry_device_thread() << 40) + round),
                  (first << 40) + round);
      }
    });
  }
  EXPECT_EQ(ferry_device_group_broadcast(5), 5u);  // a thread by itself
}
TEST(BroadcastTest, IsABarrier) {
  ExpectInStep({2, 6, 4}, FERRY_DEVICE_CREW_GROUP,
               [](ferry_device_crew crew) { ferry_device_crew_broadcast(crew, 1); });
}

// ---- Words --------------------------------------------------------------------------------------

template <typename Word, typename Change>
void ExpectChanges(Change&& change) {
  const struct {
    uint32_t operation;
    Word value, after;
  } cases[] = {{FERRY_DEVICE_SET, 9, 9},
               {FERRY_DEVICE_ADD, static_cast<Word>(-3), 3},
               {FERRY_DEVICE_AND, 12, 4},
               {FERRY_DEVICE_OR, 9, 15},
               {FERRY_DEVICE_XOR, 5, 3}};
  for (const auto& one : cases) {
    Word word = 6;
    EXPECT_EQ(change(&word, one.operation, one.value), 6u) << one.operation;
    EXPECT_EQ(word, one.after) << one.operation;
  }
}

TEST(ChangeTest, ReturnsWhatWasThere) {
  ExpectChanges<ferry_device_u32>(ferry_device_change_32);
  ExpectChanges<ferry_device_u64>(ferry_device_change_64);
}

TEST(ChangeTest, OfManyThreadsLosesNothing) {
  constexpr int kTimes = 500;
  ferry_device_u32 sum = 0;
  ferry_device_u32 bits = 0;
  ferry_device_u64 long_sum = 0;
  ferry_device_u64 long_bits = 0;
  ferry_device_u32 swapped = 0;
  Launch({2, 4}, [&] {
    const auto thread = static_cast<uint32_t>(ferry_device_thread());
    for (int i = 0; i < kTimes + 1; ++i) {  // an odd number of times
      ferry_device_change_32(&sum, FERRY_DEVICE_ADD, 1);
      ferry_device_change_64(&long_sum, FERRY_DEVICE_ADD, 1);
      ferry_device_change_32(&bits, FERRY_DEVICE_XOR, 1u << thread);
      ferry_device_change_64(&long_bits, FERRY_DEVICE_XOR, ferry_device_u64{1} << (thread + 40));
      for (ferry_device_u32 expected = 0, found = 0;
           (found = ferry_device_compare_exchange_32(&swapped, expected, expected + 1)) != expected;
           expected = found) {
      }
    }
  });
  EXPECT_EQ(sum, 8u * (kTimes + 1));
  EXPECT_EQ(long_sum, 8u * (kTimes + 1));
  EXPECT_EQ(swapped, 8u * (kTimes + 1));
  EXPECT_EQ(bits, 0xffu);
  EXPECT_EQ(long_bits, ferry_device_u64{0xff} << 40);
}

TEST(WordTest, CarriesWhatWasStoredBefore) {
  ferry_device_u32 word = 0;
  int data = 0;
  Launch({1, 2}, [&] {
    if (ferry_device_thread() == 0) {
      data = 7;
      ferry_device_store_release_32(&word, 1);
      return;
    }
    while (ferry_device_load_acquire_32(&word) == 0) {
      ferry_device_pause();
    }
    EXPECT_EQ(data, 7);
  });
  EXPECT_EQ(ferry_device_exchange_32(&word, 5), 1u);
  EXPECT_EQ(word, 5u);
}

}  // namespace
}  // namespace ferry::device
