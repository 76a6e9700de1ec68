// Many requests at once in a device's ring: of one thread, and of groups of threads.
#include "ferry/device/ring_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "ferry/device/emulated.h"
#include "shm/mpsc_ring.h"
#include "shm/ring_consumer.h"
#include "tests/shm/shared_memory.h"

namespace ferry::shm {
namespace {

constexpr uint32_t kCompletions = 256;

// A ring, and what plays the daemon.
class TestRing {
 public:
  explicit TestRing(uint32_t capacity)
      : memory_(MpscRing::SizeBytes(capacity) + kCompletions * sizeof(RingCompletion)),
        consumer_(layout(), capacity) {
    EXPECT_TRUE(MpscRing::Initialize(layout(), capacity).ok());
    layout()->completions = kCompletions;
    layout()->region = 1;
    layout()->completions_offset = MpscRing::SizeBytes(capacity);
  }
  MpscRingLayout* layout() { return reinterpret_cast<MpscRingLayout*>(memory_.base()); }
  ferry_device_ring Open() { return ferry_device_ring_open(layout()); }
  RingConsumer& consumer() { return consumer_; }
  uint64_t tickets() { return LoadRelaxed(layout()->tickets); }

  // Takes up to `most` at once until so many have come; each is answered with its value.
  std::vector<RingRequest> Serve(size_t count, size_t most = 8) {
    std::vector<RingRequest> all;
    std::vector<RingRequest> some(most);
    while (all.size() < count) {
      const uint64_t first = consumer_.head();
      const size_t came = consumer_.Take(some);
      EXPECT_LE(came, most);
      for (size_t i = 0; i < came; ++i) {
        if (some[i].completion_region != 0) {
          auto* const at = reinterpret_cast<uint8_t*>(layout()) + some[i].completion;
          RingConsumer::Answer(reinterpret_cast<RingCompletion*>(at), first + i, some[i].value,
                               ErrorCode::kOk);
        }
      }
      all.insert(all.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(came));
      if (came == 0) {
        std::this_thread::yield();
      }
    }
    EXPECT_EQ(consumer_.Take(some), 0u);
    return all;
  }

 private:
  SharedMemory memory_;
  RingConsumer consumer_;
};

ferry_device_ring_request Nop(const ferry_device_ring& ring, uint64_t value,
                              uint32_t completion = FERRY_DEVICE_RING_SILENT) {
  return ferry_device_ring_request_for(ring, FERRY_DEVICE_RING_NOP, {0, 0, 0}, value, completion);
}

// ---- The consumer -------------------------------------------------------------------------------

TEST(RingTakeTest, TakesWhatIsThereAndNoMoreThanItMay) {
  TestRing made(16);
  const ferry_device_ring ring = made.Open();
  std::array<RingRequest, 8> requests{};
  EXPECT_EQ(made.consumer().Take(requests), 0u);
  for (uint64_t i = 0; i < 13; ++i) {
    ferry_device_ring_post(ring, Nop(ring, i));
  }
  EXPECT_EQ(made.consumer().Take(requests), 8u);
  EXPECT_EQ(LoadRelaxed(made.layout()->head), 8u);
  EXPECT_EQ(made.consumer().Take(requests), 5u);
  for (uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(requests[i].value, 8 + i);
  }
  EXPECT_EQ(LoadRelaxed(made.layout()->head), 13u);
  EXPECT_EQ(made.consumer().Take({}), 0u);
}

// A ticket that is not published yet, or never, hides what is behind it.
TEST(RingTakeTest, StopsAtAHole) {
  TestRing made(16);
  const ferry_device_ring ring = made.Open();
  std::array<RingRequest, 8> requests{};
  ferry_device_ring_post(ring, Nop(ring, 0));
  const ferry_device_u64 hole = ferry_device_ring_reserve(ring, 2);
  EXPECT_EQ(hole, 2u);
  ferry_device_ring_fill(ring, hole + 1, Nop(ring, 2));
  ferry_device_ring_post(ring, Nop(ring, 3));
  EXPECT_EQ(made.consumer().Take(requests), 1u);
  EXPECT_EQ(made.consumer().Take(requests), 0u);
  ferry_device_ring_fill(ring, hole, Nop(ring, 1));
  EXPECT_EQ(made.consumer().Take(requests), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(requests[i].value, 1 + i);
  }
}

// ---- One thread ---------------------------------------------------------------------------------

TEST(RingBatchTest, NumbersFollowOneAnotherAroundTheRing) {
  TestRing made(16);
  const ferry_device_ring ring = made.Open();
  uint64_t value = 0;
  for (uint32_t round = 0; round < 50; ++round) {
    std::vector<ferry_device_ring_request> requests;
    const uint32_t count = 1 + round % 8;
    for (uint32_t i = 0; i < count; ++i) {
      requests.push_back(Nop(ring, value + i, i));
    }
    const ferry_device_u64 first = ferry_device_ring_post_many(ring, requests.data(), count);
    EXPECT_EQ(first, value + 1);
    made.Serve(count, 3);
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(ferry_device_ring_wait(ring, i, first + i), 0);
      EXPECT_EQ(ferry_device_ring_value(ring, i), value + i);
    }
    value += count;
  }
}

TEST(RingBatchTest, RefusesMoreThanHalfTheRingAndNothing) {
  TestRing made(16);
  const ferry_device_ring ring = made.Open();
  EXPECT_EQ(ferry_device_ring_most(ring), 8u);
  const std::vector<ferry_device_ring_request> requests(17, Nop(ring, 1));
  for (const uint32_t count : {0u, 9u, 17u, ~0u}) {
    const ferry_device_u64 number = ferry_device_ring_post_many(ring, requests.data(), count);
    EXPECT_EQ(number, 0u) << count;
    EXPECT_EQ(ferry_device_ring_wait(ring, 0, number),
              static_cast<int>(ErrorCode::kInvalidArgument));
  }
  EXPECT_EQ(made.tickets(), 0u);
  EXPECT_EQ(ferry_device_ring_post_many(ring, requests.data(), 8), 1u);
}

// A producer that waits for room, or would take the slots left for others, has no ticket: it leaves
// no hole when the ring ends meanwhile.
TEST(RingBatchTest, WhoWaitsForRoomHasNoTicket) {
  TestRing made(16);
  const ferry_device_ring ring = made.Open();
  EXPECT_EQ(ferry_device_ring_spare(ring), 2u);
  made.consumer().End(ErrorCode::kDaemonDied);
  for (uint32_t i = 0; i < 13; ++i) {
    EXPECT_EQ(ferry_device_ring_post(ring, Nop(ring, i)), i + 1);
  }
  const std::vector<ferry_device_ring_request> requests(2, Nop(ring, 1));
  EXPECT_EQ(ferry_device_ring_post_many(ring, requests.data(), 2), 0u);
  EXPECT_EQ(ferry_device_ring_wait(ring, 0, 0), static_cast<int>(ErrorCode::kDaemonDied));
  EXPECT_EQ(made.tickets(), 13u);
  EXPECT_EQ(ferry_device_ring_post(ring, Nop(ring, 1)), 14u);
  EXPECT_EQ(ferry_device_ring_post(ring, Nop(ring, 1)), 0u);
  EXPECT_EQ(made.tickets(), 14u);
}

// Not for ever: then it takes its place before those that come later.
TEST(RingBatchTest, ATicketIsTakenInTheEnd) {
  TestRing made(16);
  const ferry_device_ring ring = made.Open();
  for (uint32_t i = 0; i < 16; ++i) {  // the last ones take what is left for others
    EXPECT_EQ(ferry_device_ring_post(ring, Nop(ring, i)), i + 1);
  }
  std::thread late([&] {
    const std::vector<ferry_device_ring_request> requests(8, Nop(ring, 1));
    EXPECT_EQ(ferry_device_ring_post_many(ring, requests.data(), 8), 17u);
  });
  while (made.tickets() != 24) {
    std::this_thread::yield();
  }
  made.Serve(24);
  late.join();
}

// A large batch among small ones: each takes its place in the end.
TEST(RingBatchTest, ManyThreadsLoseNothingAndKeepTheirOrder) {
  constexpr uint32_t kThreads = 12;
  constexpr uint64_t kEach = 1500;
  TestRing made(16);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const ferry_device_ring ring = made.Open();
      const uint32_t batch = 1 + thread % 8;
      for (uint64_t at = 0; at < kEach;) {
        std::vector<ferry_device_ring_request> requests;
        for (; requests.size() < batch && at < kEach; ++at) {
          requests.push_back(Nop(ring, uint64_t{thread} << 32 | at));
        }
        EXPECT_NE(ferry_device_ring_post_many(ring, requests.data(),
                                              static_cast<uint32_t>(requests.size())),
                  0u);
      }
    });
  }
  std::array<uint64_t, kThreads> next{};
  for (const RingRequest& request : made.Serve(kThreads * kEach)) {
    const uint64_t thread = request.value >> 32;
    ASSERT_LT(thread, kThreads);
    EXPECT_EQ(request.value & 0xffffffff, next[thread]++);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(made.tickets(), kThreads * kEach);
}

// ---- Groups -------------------------------------------------------------------------------------

constexpr device::Shape kShape{3, 7, 3};  // sub-groups of 3, 3 and 1

// Launches `post(ring, value)` as all threads of kShape, again and again, each of which waits for
// its answer; `posts()` says which of them do. Returns what they posted, by thread.
template <typename Post, typename Posts>
void ExpectGroupsPost(uint32_t capacity, Post&& post, Posts&& posts) {
  constexpr uint64_t kRounds = 20;
  constexpr uint32_t kThreads = kShape.groups * kShape.group_size;
  TestRing made(capacity);
  std::atomic<uint64_t> posted = 0;
  std::atomic<uint32_t> running = kThreads;
  std::thread launch([&] {
    device::Launch(kShape, [&] {
      const ferry_device_ring ring = made.Open();
      const auto mine = static_cast<uint32_t>(ferry_device_thread());
      for (uint64_t round = 0; round < kRounds; ++round) {
        const uint64_t value = round << 32 | mine;
        const ferry_device_u64 number = post(ring, Nop(ring, value, mine));
        EXPECT_EQ(number != 0, posts());
        if (number != 0) {
          ++posted;
          EXPECT_EQ(ferry_device_ring_wait(ring, mine, number), 0);
          EXPECT_EQ(ferry_device_ring_value(ring, mine), value);
        }
      }
      --running;
    });
  });
  uint64_t served = 0;
  std::array<uint64_t, kThreads> next{};
  while (running != 0 || served != posted) {
    RingRequest request{};
    uint64_t ticket = 0;
    if (!made.consumer().Take(&request, &ticket)) {
      std::this_thread::yield();
      continue;
    }
    ++served;
    const uint64_t thread = request.value & 0xffffffff;
    ASSERT_LT(thread, kThreads);
    EXPECT_EQ(request.value >> 32, next[thread]++);
    RingConsumer::Answer(reinterpret_cast<RingCompletion*>(
                             reinterpret_cast<uint8_t*>(made.layout()) + request.completion),
                         ticket, request.value, ErrorCode::kOk);
  }
  launch.join();
  EXPECT_EQ(made.tickets(), served);
  EXPECT_GT(served, 0u);
  EXPECT_EQ(served % kRounds, 0u);
}

TEST(RingGroupTest, SubGroupsPostTogether) {
  for (const uint32_t count : {1u, 2u, 3u, 1000u}) {
    ExpectGroupsPost(
        64,
        [&](const ferry_device_ring& ring, const ferry_device_ring_request& request) {
          return ferry_device_ring_post_sub_group(ring, request, count);
        },
        [&] { return ferry_device_sub_group_thread() < count; });
  }
}

TEST(RingGroupTest, WorkGroupsPostTogether) {
  for (const uint32_t count : {1u, 5u, 7u, 1000u}) {
    std::array<ferry_device_u64, kShape.groups> words{};
    ExpectGroupsPost(
        64,
        [&](const ferry_device_ring& ring, const ferry_device_ring_request& request) {
          return ferry_device_ring_post_work_group(ring, request, count,
                                                   &words[ferry_device_group()]);
        },
        [&] { return ferry_device_group_thread() < count; });
  }
}

// They take turns.
TEST(RingGroupTest, AGroupMayBeLargerThanTheRing) {
  std::array<ferry_device_u64, kShape.groups> words{};
  const auto all = [] { return true; };
  for (const uint32_t capacity : {2u, 4u, 8u}) {
    ExpectGroupsPost(
        capacity,
        [](const ferry_device_ring& ring, const ferry_device_ring_request& request) {
          return ferry_device_ring_post_sub_group(ring, request, 3);
        },
        all);
    ExpectGroupsPost(
        capacity,
        [&](const ferry_device_ring& ring, const ferry_device_ring_request& request) {
          return ferry_device_ring_post_work_group(ring, request, 7, &words[ferry_device_group()]);
        },
        all);
  }
}

// One fetch-add gives a group numbers in a row, in the order of its threads.
TEST(RingGroupTest, NumbersOfAGroupAreInARow) {
  TestRing made(64);
  std::array<ferry_device_u64, kShape.groups> words{};
  std::array<std::atomic<ferry_device_u64>, kShape.groups> first{};
  device::Launch(kShape, [&] {
    const ferry_device_ring ring = made.Open();
    const uint32_t group = ferry_device_group();
    const ferry_device_u64 number =
        ferry_device_ring_post_work_group(ring, Nop(ring, 0), kShape.group_size, &words[group]);
    if (ferry_device_group_thread() == 0) {
      first[group] = number;
    }
    ferry_device_group_barrier();
    EXPECT_EQ(number, first[group] + ferry_device_group_thread());
  });
  EXPECT_EQ(made.tickets(), kShape.groups * kShape.group_size);
}

TEST(RingGroupTest, PostsOfNobodyTakeNothing) {
  TestRing made(64);
  std::array<ferry_device_u64, kShape.groups> words{};
  device::Launch(kShape, [&] {
    const ferry_device_ring ring = made.Open();
    EXPECT_EQ(ferry_device_ring_post_sub_group(ring, Nop(ring, 0), 0), 0u);
    EXPECT_EQ(
        ferry_device_ring_post_work_group(ring, Nop(ring, 0), 0, &words[ferry_device_group()]), 0u);
  });
  EXPECT_EQ(made.tickets(), 0u);
}

// All of its threads learn of it, those that would post first and last.
TEST(RingGroupTest, TheEndOfTheRingEndsItsGroups) {
  TestRing made(8);
  std::array<ferry_device_u64, kShape.groups> words{};
  std::atomic<uint32_t> posted = 0;
  std::atomic<uint32_t> refused = 0;
  std::thread launch([&] {
    device::Launch(kShape, [&] {
      const ferry_device_ring ring = made.Open();
      const auto count = [&](ferry_device_u64 number) {
        const int status = ferry_device_ring_wait(ring, 0, number);
        EXPECT_EQ(status, static_cast<int>(ErrorCode::kCancelled));
        (number != 0 ? posted : refused)++;
      };
      count(ferry_device_ring_post_sub_group(ring, Nop(ring, 0, 1), 3));
      count(ferry_device_ring_post_work_group(ring, Nop(ring, 0, 1), 7,
                                              &words[ferry_device_group()]));
    });
  });
  while (made.tickets() < 8) {  // no consumer takes them
    std::this_thread::yield();
  }
  made.consumer().End(ErrorCode::kCancelled);
  launch.join();
  EXPECT_GE(posted, 1u);
  EXPECT_LE(posted, 8u);
  EXPECT_EQ(posted + refused, 2 * kShape.groups * kShape.group_size);
}

}  // namespace
}  // namespace ferry::shm
