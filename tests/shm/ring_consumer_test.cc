// The daemon's end of a device's ring against producers as device code writes them.
#include "shm/ring_consumer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "ferry/device/ring.h"
#include "shm/mpsc_ring.h"
#include "tests/shm/shared_memory.h"

namespace ferry::shm {
namespace {

constexpr uint32_t kCapacity = 16;
constexpr uint32_t kCompletions = 64;
constexpr uint32_t kRegion = 7;
constexpr uint64_t kOffset = 4096;  // of the ring in its region

// Device code has the structs in its own words.
static_assert(sizeof(ferry_device_ring_request) == sizeof(RingRequest));
static_assert(offsetof(ferry_device_ring_request, completion_region) ==
              offsetof(RingRequest, completion_region));
static_assert(offsetof(ferry_device_ring_request, completion) == offsetof(RingRequest, completion));
static_assert(offsetof(ferry_device_ring_request, region) == offsetof(RingRequest, region));
static_assert(offsetof(ferry_device_ring_request, flags) == offsetof(RingRequest, flags));
static_assert(offsetof(ferry_device_ring_request, offset) == offsetof(RingRequest, offset));
static_assert(offsetof(ferry_device_ring_request, value) == offsetof(RingRequest, value));
static_assert(sizeof(ferry_device_ring_completion) == sizeof(RingCompletion));
static_assert(offsetof(ferry_device_ring_completion, done) == offsetof(RingCompletion, done));
static_assert(static_cast<uint32_t>(RingKind::kNop) == FERRY_DEVICE_RING_NOP);
static_assert(static_cast<uint32_t>(RingKind::kCounterAdd) == FERRY_DEVICE_RING_COUNTER_ADD);
static_assert(static_cast<uint32_t>(RingKind::kCounterWait) == FERRY_DEVICE_RING_COUNTER_WAIT);
static_assert(static_cast<uint32_t>(RingKind::kStart) == FERRY_DEVICE_RING_START);

class RingConsumerTest : public testing::Test {
 protected:
  static constexpr uint64_t kBytes =
      MpscRing::SizeBytes(kCapacity) + kCompletions * sizeof(RingCompletion);

  RingConsumerTest() {
    EXPECT_TRUE(MpscRing::Initialize(layout(), kCapacity).ok());
    layout()->completions = kCompletions;
    layout()->region = kRegion;
    layout()->completions_offset = kOffset + MpscRing::SizeBytes(kCapacity);
  }
  MpscRingLayout* layout() { return reinterpret_cast<MpscRingLayout*>(memory_.base()); }
  // Where a request wants its answer.
  RingCompletion* CompletionOf(const RingRequest& request) {
    EXPECT_EQ(request.completion_region, kRegion);
    return reinterpret_cast<RingCompletion*>(reinterpret_cast<uint8_t*>(layout()) +
                                             (request.completion - kOffset));
  }
  ferry_device_ring Open() { return ferry_device_ring_open(layout()); }
  // Takes the next one, answers `value` + 1, and says which it was.
  bool Serve() {
    RingRequest request{};
    uint64_t ticket = 0;
    if (!consumer_.Take(&request, &ticket)) {
      return false;
    }
    if (request.completion_region != 0) {
      RingConsumer::Answer(CompletionOf(request), ticket, request.value + 1, ErrorCode::kOk);
    }
    return true;
  }

  SharedMemory memory_{kBytes};
  RingConsumer consumer_{layout(), kCapacity};
};

TEST_F(RingConsumerTest, CarriesEveryWordOfARequest) {
  const ferry_device_ring ring = Open();
  EXPECT_EQ(ferry_device_ring_post(ring, {1, 2, 3, 4, 5, 6, 7, {8, 9}}), 1U);
  RingRequest request{};
  uint64_t ticket = 99;
  ASSERT_TRUE(consumer_.Take(&request, &ticket));
  EXPECT_EQ(ticket, 0U);
  EXPECT_EQ(request.kind, 1U);
  EXPECT_EQ(request.completion_region, 2U);
  EXPECT_EQ(request.completion, 3U);
  EXPECT_EQ(request.region, 4U);
  EXPECT_EQ(request.flags, 5U);
  EXPECT_EQ(request.offset, 6U);
  EXPECT_EQ(request.value, 7U);
  EXPECT_EQ(request.reserved[0], 8U);
  EXPECT_EQ(request.reserved[1], 9U);
  EXPECT_FALSE(consumer_.Take(&request, &ticket));
}

TEST_F(RingConsumerTest, HelpersSayWhatTheyAreFor) {
  const ferry_device_ring ring = Open();
  const ferry_device_place place{3, 0, 640};
  ferry_device_ring_nop(ring, 5, 2);
  ferry_device_ring_add(ring, place, 6, FERRY_DEVICE_RING_SILENT);
  ferry_device_ring_await(ring, place, 7, 0);
  ferry_device_ring_start(ring, place, 63);
  const RingRequest expected[] = {
      {1, kRegion, layout()->completions_offset + 2 * 16, 0, 0, 0, 5, {}},
      {2, 0, 0, 3, 0, 640, 6, {}},
      {3, kRegion, layout()->completions_offset, 3, 0, 640, 7, {}},
      {4, kRegion, layout()->completions_offset + 63 * 16, 3, 0, 640, 0, {}},
  };
  for (const RingRequest& wanted : expected) {
    RingRequest request{};
    uint64_t ticket = 0;
    ASSERT_TRUE(consumer_.Take(&request, &ticket));
    EXPECT_EQ(std::memcmp(&request, &wanted, sizeof(request)), 0) << "kind " << wanted.kind;
  }
}

TEST_F(RingConsumerTest, WrapsAround) {
  const ferry_device_ring ring = Open();
  for (uint64_t i = 0; i < 10 * kCapacity + 3; ++i) {
    const ferry_device_u64 number = ferry_device_ring_nop(ring, i, 1);
    EXPECT_EQ(number, i + 1);
    EXPECT_EQ(ferry_device_ring_test(ring, 1, number), FERRY_DEVICE_RING_PENDING);
    ASSERT_TRUE(Serve());
    EXPECT_EQ(ferry_device_ring_test(ring, 1, number), 0);
    EXPECT_EQ(ferry_device_ring_value(ring, 1), i + 1);
  }
}

TEST_F(RingConsumerTest, ProducersLookAtTheHeadOnlyWhenTheirTicketCouldPassIt) {
  const ferry_device_ring ring = Open();
  for (uint32_t i = 0; i < kCapacity; ++i) {
    ferry_device_ring_nop(ring, i, FERRY_DEVICE_RING_SILENT);
  }
  EXPECT_EQ(layout()->head_seen, 0U);  // no producer has seen another one
  while (Serve()) {
  }
  ferry_device_ring_nop(ring, 0, FERRY_DEVICE_RING_SILENT);
  EXPECT_EQ(layout()->head_seen, kCapacity);
  for (uint32_t i = 1; i < kCapacity - ferry_device_ring_spare(ring); ++i) {
    ferry_device_ring_nop(ring, i, FERRY_DEVICE_RING_SILENT);
    Serve();
  }
  EXPECT_EQ(layout()->head_seen, kCapacity);
  ferry_device_ring_nop(ring, 0, FERRY_DEVICE_RING_SILENT);
  EXPECT_EQ(layout()->head_seen, 2 * kCapacity - ferry_device_ring_spare(ring) - 1);
}

TEST_F(RingConsumerTest, AFullRingHoldsUpWhoComesAndLosesNothing) {
  const ferry_device_ring ring = Open();
  for (uint32_t i = 0; i < kCapacity; ++i) {
    ferry_device_ring_nop(ring, i, FERRY_DEVICE_RING_SILENT);
  }
  std::atomic<bool> posted = false;
  std::thread late([&] {
    ferry_device_ring_nop(ring, kCapacity, FERRY_DEVICE_RING_SILENT);
    posted = true;
  });
  while (LoadRelaxed(layout()->tickets) != kCapacity + 1) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(posted);
  RingRequest request{};
  uint64_t ticket = 0;
  ASSERT_TRUE(consumer_.Take(&request, &ticket));
  late.join();
  for (uint64_t i = 1; i <= kCapacity; ++i) {
    ASSERT_TRUE(consumer_.Take(&request, &ticket));
    EXPECT_EQ(request.value, i);
  }
}

TEST_F(RingConsumerTest, AnswersComeInAnyOrder) {
  const ferry_device_ring ring = Open();
  RingRequest requests[4] = {};
  uint64_t tickets[4] = {};
  for (uint32_t i = 0; i < 4; ++i) {
    ferry_device_ring_nop(ring, 10 * i, i);
    ASSERT_TRUE(consumer_.Take(&requests[i], &tickets[i]));
  }
  for (const uint32_t i : {2U, 0U, 3U, 1U}) {
    EXPECT_EQ(ferry_device_ring_test(ring, i, i + 1), FERRY_DEVICE_RING_PENDING);
    RingConsumer::Answer(CompletionOf(requests[i]), tickets[i], 10 * i + 1, ErrorCode::kNotFound);
    EXPECT_EQ(ferry_device_ring_wait(ring, i, i + 1), static_cast<int>(ErrorCode::kNotFound));
    EXPECT_EQ(ferry_device_ring_value(ring, i), 10 * i + 1);
  }
}

TEST_F(RingConsumerTest, ALateAnswerIsNotTakenForTheNext) {
  const ferry_device_ring ring = Open();
  RingRequest given_up{};
  uint64_t old_ticket = 0;
  ferry_device_ring_nop(ring, 1, 5);
  ASSERT_TRUE(consumer_.Take(&given_up, &old_ticket));
  const ferry_device_u64 number = ferry_device_ring_nop(ring, 2, 5);
  RingConsumer::Answer(CompletionOf(given_up), old_ticket, 1, ErrorCode::kOk);
  EXPECT_EQ(ferry_device_ring_test(ring, 5, number), FERRY_DEVICE_RING_PENDING);
  ASSERT_TRUE(Serve());
  EXPECT_EQ(ferry_device_ring_test(ring, 5, number), 0);
}

// Many more threads than slots, each with its own completion.
TEST_F(RingConsumerTest, ManyProducersLoseNothingAndGetTheirOwnAnswers) {
  constexpr uint32_t kThreads = 24;
  constexpr uint64_t kEach = 400;
  std::atomic<uint32_t> wrong = 0;
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const ferry_device_ring ring = Open();
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t value = uint64_t{thread} << 32 | i;
        const ferry_device_u64 number = ferry_device_ring_nop(ring, value, thread);
        wrong += ferry_device_ring_wait(ring, thread, number) != 0;
        wrong += ferry_device_ring_value(ring, thread) != value + 1;
      }
    });
  }
  for (uint64_t served = 0; served < kThreads * kEach;) {
    if (Serve()) {
      ++served;
    } else {
      std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_FALSE(Serve());
}

// Producers on CPUs try, and take no ticket of a full ring; those on devices take their place.
TEST_F(RingConsumerTest, BothKindsOfProducersShareARing) {
  constexpr uint64_t kEach = 5'000;
  const auto of_device = [&](uint64_t base) {
    const ferry_device_ring ring = Open();
    for (uint64_t i = 0; i < kEach; ++i) {
      ferry_device_ring_nop(ring, base + i, FERRY_DEVICE_RING_SILENT);
    }
  };
  const auto of_host = [&](uint64_t base) {
    MpscRing ring = *MpscRing::Attach(layout(), kBytes);
    for (uint64_t i = 0; i < kEach; ++i) {
      RingRequest request{};
      request.value = base + i;
      while (!ring.TryPush(&request, sizeof(request))) {
        std::this_thread::yield();
      }
    }
  };
  std::thread threads[] = {std::thread(of_device, 0), std::thread(of_device, kEach),
                           std::thread(of_host, 2 * kEach), std::thread(of_host, 3 * kEach)};
  std::vector<uint32_t> seen(4 * kEach);
  uint64_t next[4] = {};
  for (uint64_t taken = 0; taken < 4 * kEach;) {
    RingRequest request{};
    uint64_t ticket = 0;
    if (!consumer_.Take(&request, &ticket)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(ticket, taken++);
    ASSERT_LT(request.value, seen.size());
    ++seen[request.value];
    EXPECT_EQ(request.value % kEach, next[request.value / kEach]++);  // each in its own order
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1U), static_cast<ptrdiff_t>(4 * kEach));
}

TEST_F(RingConsumerTest, ProducersMayKeepTheirWordsElsewhere) {
  SharedMemory words(4096);
  layout()->producer_words = reinterpret_cast<uint64_t>(words.base());
  const ferry_device_ring ring = Open();
  for (uint32_t i = 0; i < 3 * kCapacity; ++i) {
    ferry_device_ring_nop(ring, i, FERRY_DEVICE_RING_SILENT);
    ASSERT_TRUE(Serve());
  }
  EXPECT_EQ(layout()->tickets, 0U);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(words.base()), 3U * kCapacity);
}

TEST_F(RingConsumerTest, TheEndOfARingEndsWaits) {
  const ferry_device_ring ring = Open();
  const ferry_device_u64 number = ferry_device_ring_nop(ring, 1, 0);
  std::atomic<int> status = -1;
  std::thread waits([&] { status = ferry_device_ring_wait(ring, 0, number); });
  std::vector<std::thread> post;
  std::atomic<uint32_t> refused = 0;
  for (uint32_t i = 0; i < kCapacity + 2; ++i) {  // three of them find no room
    post.emplace_back([&] {
      const ferry_device_u64 mine = ferry_device_ring_nop(ring, 1, 1);
      refused += mine == 0 && ferry_device_ring_wait(ring, 1, mine) == 15 ? 1 : 0;
    });
  }
  while (LoadRelaxed(layout()->tickets) != kCapacity + 3) {
    std::this_thread::yield();
  }
  consumer_.End(ErrorCode::kDaemonDied);
  waits.join();
  for (std::thread& thread : post) {
    thread.join();
  }
  EXPECT_EQ(status, static_cast<int>(ErrorCode::kDaemonDied));
  EXPECT_EQ(refused, 3U);
}

// A rank may write anything anywhere in its ring.
TEST_F(RingConsumerTest, ScribbledHeadersChangeNothingForTheConsumer) {
  const ferry_device_ring ring = Open();
  ferry_device_ring_nop(ring, 1, FERRY_DEVICE_RING_SILENT);
  ferry_device_ring_nop(ring, 2, FERRY_DEVICE_RING_SILENT);
  layout()->head = ~uint64_t{0};
  layout()->tickets = ~uint64_t{0} / 2;
  layout()->capacity = 1U << 31;
  RingRequest request{};
  uint64_t ticket = 0;
  ASSERT_TRUE(consumer_.Take(&request, &ticket));
  EXPECT_EQ(request.value, 1U);
  ASSERT_TRUE(consumer_.Take(&request, &ticket));
  EXPECT_EQ(request.value, 2U);
  EXPECT_FALSE(consumer_.Take(&request, &ticket));
  auto* const slots = reinterpret_cast<MpscSlot*>(layout() + 1);
  for (uint64_t number : {uint64_t{0}, uint64_t{2}, uint64_t{4}, ~uint64_t{0}}) {
    slots[2].number = number;
    EXPECT_FALSE(consumer_.Take(&request, &ticket)) << number;
  }
}

// Killed with a ticket: what was published before is still served, nothing after it is, and the
// consumer never waits.
TEST_F(RingConsumerTest, AKilledProducerStopsItsRingOnly) {
  const pid_t child = fork();
  if (child == 0) {
    const ferry_device_ring ring = Open();
    ferry_device_ring_nop(ring, 1, FERRY_DEVICE_RING_SILENT);
    (void)ferry_device_fetch_add(ring.producers, 1);  // as post does, and there it ends
    _exit(0);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const ferry_device_ring ring = Open();
  for (uint32_t i = 0; i < kCapacity - 2; ++i) {
    ferry_device_ring_nop(ring, 2, FERRY_DEVICE_RING_SILENT);
  }
  EXPECT_TRUE(Serve());
  EXPECT_FALSE(Serve());
  EXPECT_FALSE(Serve());
  EXPECT_EQ(consumer_.head(), 1U);
}

}  // namespace
}  // namespace ferry::shm
