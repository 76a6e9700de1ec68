#include "shm/mpsc_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tests/shm/child_process.h"
#include "tests/shm/shared_memory.h"

namespace ferry::shm {
namespace {

using testing::HasSubstr;

// An item of the tests: its producer, its number, and a word made of both.
struct Item {
  uint32_t producer;
  uint32_t number;
  uint64_t check;
};
constexpr uint64_t CheckOf(uint32_t producer, uint32_t number) {
  return ((uint64_t{producer} << 32 | number) + 1) * 0x9e3779b97f4a7c15ULL;
}
Item ItemOf(uint32_t producer, uint32_t number) {
  return {producer, number, CheckOf(producer, number)};
}

class MpscRingTest : public testing::Test {
 protected:
  static constexpr uint32_t kCapacity = 16;

  MpscRing MakeRing(uint32_t capacity = kCapacity) {
    EXPECT_TRUE(MpscRing::Initialize(layout(), capacity).ok());
    StatusOr<MpscRing> ring = MpscRing::Attach(layout(), memory_.size_bytes());
    EXPECT_TRUE(ring.ok()) << ring.status().ToString();
    return *ring;
  }
  MpscRingLayout* layout() { return reinterpret_cast<MpscRingLayout*>(memory_.base()); }

  SharedMemory memory_{MpscRing::SizeBytes(kCapacity)};
};

bool Push(MpscRing& ring, uint32_t producer, uint32_t number) {
  const Item item = ItemOf(producer, number);
  return ring.TryPush(&item, sizeof(item));
}

Item PopItem(MpscRing& ring) {
  const uint8_t* payload = ring.Peek();
  Item item{~0U, ~0U, 0};
  if (payload != nullptr) {
    std::memcpy(&item, payload, sizeof(item));
    ring.Pop();
  }
  return item;
}

TEST_F(MpscRingTest, RejectsNonPowerOfTwoCapacity) {
  for (uint32_t capacity : {0U, 3U, 12U, 0xFFFF'FFFFU}) {
    const Status status = MpscRing::Initialize(layout(), capacity);
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(std::to_string(capacity) + " is not a power of two"));
  }
}

TEST_F(MpscRingTest, AttachRefusesWhatIsNoRing) {
  const uint64_t size_bytes = memory_.size_bytes();
  EXPECT_EQ(MpscRing::Attach(layout(), size_bytes).status().code(), ErrorCode::kNotInitialized);
  layout()->capacity = 12;
  EXPECT_EQ(MpscRing::Attach(layout(), size_bytes).status().code(), ErrorCode::kCorrupt);
  layout()->capacity = 2 * kCapacity;
  const Status too_large = MpscRing::Attach(layout(), size_bytes).status();
  EXPECT_EQ(too_large.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(too_large.message(), HasSubstr("capacity of 32"));
  EXPECT_EQ(MpscRing::Attach(layout(), 100).status().code(), ErrorCode::kCorrupt);
}

TEST_F(MpscRingTest, KeepsOrderAroundManyLaps) {
  MpscRing ring = MakeRing();
  EXPECT_EQ(ring.Peek(), nullptr);
  for (uint32_t n = 0; n < 10 * kCapacity; ++n) {
    ASSERT_TRUE(Push(ring, 1, n));
    EXPECT_EQ(PopItem(ring).number, n);
  }
  EXPECT_EQ(ring.Peek(), nullptr);
}

TEST_F(MpscRingTest, RingOfOneSlotWorks) {
  MpscRing ring = MakeRing(1);
  for (uint32_t n = 0; n < 5; ++n) {
    ASSERT_TRUE(Push(ring, 1, n));
    ASSERT_FALSE(Push(ring, 1, n + 1));
    EXPECT_EQ(PopItem(ring).number, n);
    EXPECT_EQ(ring.Peek(), nullptr);
  }
}

TEST_F(MpscRingTest, FullRingTakesNoTicket) {
  MpscRing ring = MakeRing();
  for (uint32_t n = 0; n < kCapacity; ++n) {
    ASSERT_TRUE(Push(ring, 1, n));
  }
  EXPECT_FALSE(Push(ring, 1, kCapacity));
  EXPECT_EQ(layout()->tickets, kCapacity);
  EXPECT_EQ(PopItem(ring).number, 0U);
  EXPECT_TRUE(Push(ring, 1, kCapacity));
  for (uint32_t n = 1; n <= kCapacity; ++n) {
    EXPECT_EQ(PopItem(ring).number, n);
  }
}

TEST_F(MpscRingTest, ReservedTicketsArriveInTheirOrder) {
  MpscRing ring = MakeRing();
  const uint64_t first = ring.Reserve();
  const uint64_t second = ring.Reserve();
  ASSERT_TRUE(ring.IsTurn(first));
  const Item late = ItemOf(2, 0);
  ring.Publish(second, &late, sizeof(late));
  EXPECT_EQ(ring.Peek(), nullptr) << "the first ticket is not published yet";
  EXPECT_EQ(ring.PeekStalled(), first);
  const Item early = ItemOf(1, 0);
  ring.Publish(first, &early, sizeof(early));
  EXPECT_EQ(ring.PeekStalled(), std::nullopt);
  EXPECT_EQ(PopItem(ring).producer, 1U);
  EXPECT_EQ(PopItem(ring).producer, 2U);
}

TEST_F(MpscRingTest, TicketBeyondTheRingWaitsForItsTurn) {
  MpscRing ring = MakeRing();
  for (uint32_t n = 0; n < kCapacity; ++n) {
    ASSERT_TRUE(Push(ring, 1, n));
  }
  const uint64_t ticket = ring.Reserve();
  EXPECT_FALSE(ring.IsTurn(ticket));
  EXPECT_FALSE(Push(ring, 2, 0)) << "it would overtake the waiting ticket";
  PopItem(ring);
  EXPECT_TRUE(ring.IsTurn(ticket));
}

TEST_F(MpscRingTest, SkippedTicketLetsTheOthersThrough) {
  MpscRing ring = MakeRing();
  const uint64_t dead = ring.Reserve();
  ASSERT_TRUE(Push(ring, 1, 0));
  EXPECT_EQ(ring.Peek(), nullptr);
  ASSERT_EQ(ring.PeekStalled(), dead);
  EXPECT_FALSE(ring.SkipStalled(dead + 1)) << "not the ticket at the head";
  EXPECT_TRUE(ring.SkipStalled(dead));
  EXPECT_FALSE(ring.SkipStalled(dead));
  EXPECT_EQ(PopItem(ring).producer, 1U);
  for (uint32_t n = 1; n < 3 * kCapacity; ++n) {
    ASSERT_TRUE(Push(ring, 1, n));
    EXPECT_EQ(PopItem(ring).number, n);
  }
}

TEST_F(MpscRingTest, PublishedTicketIsNotSkipped) {
  MpscRing ring = MakeRing();
  ASSERT_TRUE(Push(ring, 1, 0));
  EXPECT_EQ(ring.PeekStalled(), std::nullopt);
  EXPECT_FALSE(ring.SkipStalled(0));
  EXPECT_EQ(PopItem(ring).number, 0U);
}

constexpr uint32_t kProducers = 3;
constexpr uint32_t kItems = 30'000;

// Even producers try, odd ones reserve.
bool Produce(MpscRing ring, uint32_t producer) {
  Waiter waiter(WaitPolicy{});
  for (uint32_t n = 0; n < kItems; ++n) {
    const Item item = ItemOf(producer, n);
    if (producer % 2 == 1) {
      ring.Push(&item, sizeof(item));
      continue;
    }
    while (!ring.TryPush(&item, sizeof(item))) {
      waiter.Idle();
    }
    waiter.Reset();
  }
  return true;
}

// Returns whether each producer's items came whole and in order.
bool ConsumeAll(MpscRing ring) {
  uint32_t next[kProducers] = {};
  Waiter waiter(WaitPolicy{});
  for (uint32_t left = kProducers * kItems; left != 0;) {
    if (ring.Peek() == nullptr) {
      waiter.Idle();
      continue;
    }
    waiter.Reset();
    const Item item = PopItem(ring);
    if (item.producer >= kProducers || item.number != next[item.producer]++ ||
        item.check != CheckOf(item.producer, item.number)) {
      return false;
    }
    --left;
  }
  return ring.Peek() == nullptr;
}

TEST_F(MpscRingTest, CarriesEverythingFromManyThreads) {
  MpscRing ring = MakeRing();
  std::vector<std::thread> producers;
  for (uint32_t producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([ring, producer] { Produce(ring, producer); });
  }
  EXPECT_TRUE(ConsumeAll(ring));
  for (std::thread& producer : producers) {
    producer.join();
  }
}

TEST_F(MpscRingTest, CarriesEverythingFromManyProcesses) {
  MpscRing ring = MakeRing();
  std::vector<std::unique_ptr<ChildProcess>> producers;
  for (uint32_t producer = 0; producer < kProducers; ++producer) {
    producers.push_back(
        std::make_unique<ChildProcess>([ring, producer] { return Produce(ring, producer); }));
  }
  EXPECT_TRUE(ConsumeAll(ring));
  for (auto& producer : producers) {
    EXPECT_TRUE(producer->Join());
  }
}

}  // namespace
}  // namespace ferry::shm
