// Lanes, and how short messages are copied into them.
#include "shm/lane.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "shm/wait_policy.h"
#include "tests/shm/child_process.h"
#include "tests/shm/shared_memory.h"

namespace ferry::shm {
namespace {

// ---- Lanes

constexpr uint64_t kMessages = 100'000;
constexpr uint32_t kRank = 3;

// A word that depends on every bit of `n` (the finaliser of MurmurHash3).
uint64_t Mix(uint64_t n) {
  n = (n ^ (n >> 33)) * 0xff51afd7ed558ccdULL;
  n = (n ^ (n >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return n ^ (n >> 33);
}

void Fill(uint8_t* bytes, uint32_t size_bytes, uint64_t n) {
  for (uint32_t at = 0; at < size_bytes; at += sizeof(uint64_t)) {
    const uint64_t word = Mix(n + at);
    std::memcpy(bytes + at, &word, sizeof(word));
  }
}

bool IsFilled(const uint8_t* bytes, uint32_t size_bytes, uint64_t n) {
  for (uint32_t at = 0; at < size_bytes; at += sizeof(uint64_t)) {
    const uint64_t word = Mix(n + at);
    if (std::memcmp(bytes + at, &word, sizeof(word)) != 0) {
      return false;
    }
  }
  return true;
}

Descriptor Message(uint64_t n) {
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(DescriptorKind::kEager);
  descriptor.source = kRank;
  descriptor.tag = static_cast<int32_t>(n);
  descriptor.size_bytes = n;
  Fill(descriptor.payload, kInlineBytes, n);
  return descriptor;
}

bool IsMessage(const Descriptor& descriptor, uint64_t n) {
  return descriptor.size_bytes == n && descriptor.tag == static_cast<int32_t>(n) &&
         descriptor.source == kRank && IsFilled(descriptor.payload, kInlineBytes, n);
}

// Every third message carries `kTestCellBytes` in a cell, if one is free.
constexpr uint32_t kTestCellBytes = 256;

bool Produce(LaneLayout* layout) {
  LaneProducer producer(layout);
  producer.Open(kRank);
  Waiter waiter(WaitPolicy{});
  for (uint64_t n = 0; n < kMessages; ++n) {
    Descriptor descriptor = Message(n);
    const uint32_t cell = n % 3 == 0 ? producer.TryTakeCell() : kNoCell;
    if (cell != kNoCell) {
      descriptor.flags = kFlagCell;
      descriptor.cell = static_cast<uint16_t>(cell);
      Fill(producer.Cell(cell), kTestCellBytes, n);
    }
    while (!producer.TryPush(descriptor)) {
      waiter.Idle();
    }
    waiter.Reset();
  }
  return true;
}

// Returns whether all messages came whole and in order.
bool Consume(LaneLayout* layout) {
  LaneConsumer consumer(layout);
  Waiter waiter(WaitPolicy{});
  for (uint64_t n = 0; n < kMessages; ++n) {
    const Descriptor* descriptor = consumer.Peek();
    while (descriptor == nullptr) {
      waiter.Idle();
      descriptor = consumer.Peek();
    }
    waiter.Reset();
    if (!IsMessage(*descriptor, n)) {
      return false;
    }
    const bool has_cell = (descriptor->flags & kFlagCell) != 0;
    const uint32_t cell = descriptor->cell;
    if (has_cell && !IsFilled(consumer.Cell(cell), kTestCellBytes, n)) {
      return false;
    }
    consumer.Pop();
    if (has_cell) {
      consumer.ReleaseCell(cell);
    }
  }
  return consumer.Peek() == nullptr;
}

TEST(LaneTest, CarriesEverythingInOrderBetweenThreads) {
  Shared<LaneLayout> lane;
  std::thread producer([&] { Produce(lane.get()); });
  EXPECT_TRUE(Consume(lane.get()));
  producer.join();
}

TEST(LaneTest, CarriesEverythingInOrderBetweenProcesses) {
  Shared<LaneLayout> lane;
  ChildProcess producer([&] { return Produce(lane.get()); });
  EXPECT_TRUE(Consume(lane.get()));
  EXPECT_TRUE(producer.Join());
}

TEST(LaneTest, EmptyLaneHoldsNothing) {
  Shared<LaneLayout> lane;
  LaneConsumer consumer(lane.get());
  EXPECT_EQ(consumer.Peek(), nullptr);
  EXPECT_EQ(consumer.Backlog(), 0U);
}

TEST(LaneTest, OpenRecordsTheProducerOnce) {
  Shared<LaneLayout> lane;
  LaneProducer producer(lane.get());
  EXPECT_FALSE(producer.is_open());
  producer.Open(kRank);
  EXPECT_TRUE(producer.is_open());
  EXPECT_EQ(lane->producer.producer_rank, kRank);
  ASSERT_TRUE(producer.TryPush(Message(0)));
  producer.Open(kRank);
  EXPECT_EQ(LaneConsumer(lane.get()).Backlog(), 1U);
}

// How many pages of shared memory the lane has taken.
size_t PagesOf(const LaneLayout* lane) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> here(sizeof(LaneLayout) / page);
  EXPECT_EQ(mincore(const_cast<LaneLayout*>(lane), sizeof(LaneLayout), here.data()), 0);
  return static_cast<size_t>(std::count_if(here.begin(), here.end(),
                                           [](unsigned char state) { return (state & 1) != 0; }));
}

TEST(LaneTest, TakesMemoryForWhatIsInUseOnly) {
  Shared<LaneLayout> lane;
  LaneProducer producer(lane.get());
  LaneConsumer consumer(lane.get());
  producer.Open(kRank);
  EXPECT_EQ(PagesOf(lane.get()), 1U);
  const auto send = [&](uint64_t n) {
    const uint32_t cell = producer.TryTakeCell();
    ASSERT_NE(cell, kNoCell);
    std::memset(producer.Cell(cell), 1, kCellBytes);
    Descriptor message = Message(n);
    message.cell = static_cast<uint16_t>(cell);
    ASSERT_TRUE(producer.TryPush(message));
  };
  const auto receive = [&] {
    ASSERT_NE(consumer.Peek(), nullptr);
    const uint32_t cell = consumer.Peek()->cell;
    consumer.Pop();
    consumer.ReleaseCell(cell);
  };
  // Three at a time, for as long as they like.
  for (uint64_t n = 0; n < uint64_t{2} * kLaneSlots; ++n) {
    send(n);
    if (n >= 2) {
      receive();
    }
  }
  constexpr size_t kRing = offsetof(LaneLayout, cells) / 4096;
  EXPECT_LE(PagesOf(lane.get()), kRing + 4 * kCellBytes / 4096);
}

TEST(LaneTest, FullLaneRefusesAndKeepsWhatItHolds) {
  Shared<LaneLayout> lane;
  LaneProducer producer(lane.get());
  LaneConsumer consumer(lane.get());
  for (uint64_t n = 0; n < kLaneSlots; ++n) {
    ASSERT_TRUE(producer.HasRoom());
    ASSERT_TRUE(producer.TryPush(Message(n)));
  }
  EXPECT_FALSE(producer.HasRoom());
  EXPECT_FALSE(producer.TryPush(Message(kLaneSlots)));
  EXPECT_EQ(producer.TryReserve(), nullptr);
  EXPECT_EQ(consumer.Backlog(), kLaneSlots);
  consumer.Pop();
  EXPECT_TRUE(producer.TryPush(Message(kLaneSlots)));
  EXPECT_FALSE(producer.TryPush(Message(kLaneSlots + 1)));
  for (uint64_t n = 1; n <= kLaneSlots; ++n) {
    const Descriptor* descriptor = consumer.Peek();
    ASSERT_NE(descriptor, nullptr);
    EXPECT_TRUE(IsMessage(*descriptor, n));
    consumer.Pop();
  }
  EXPECT_EQ(consumer.Peek(), nullptr);
}

TEST(LaneTest, ReservedSlotIsNotVisibleUntilPublished) {
  Shared<LaneLayout> lane;
  LaneProducer producer(lane.get());
  LaneConsumer consumer(lane.get());
  Descriptor* slot = producer.TryReserve();
  ASSERT_NE(slot, nullptr);
  slot->tag = 5;
  EXPECT_EQ(consumer.Peek(), nullptr);
  EXPECT_EQ(producer.TryReserve(), slot) << "a reservation takes nothing";
  producer.Publish(slot);
  ASSERT_EQ(consumer.Peek(), slot);
  EXPECT_EQ(consumer.Peek()->tag, 5);
}

TEST(LaneTest, AnotherProducerEndContinuesWhereTheFirstStopped) {
  Shared<LaneLayout> lane;
  LaneProducer ends[] = {LaneProducer(lane.get()), LaneProducer(lane.get())};
  LaneConsumer consumer(lane.get());
  for (uint64_t n = 0; n < uint64_t{3} * kLaneSlots; ++n) {
    ASSERT_TRUE(ends[n % 2].TryPush(Message(n)));
    const Descriptor* descriptor = consumer.Peek();
    ASSERT_NE(descriptor, nullptr);
    EXPECT_TRUE(IsMessage(*descriptor, n));
    consumer.Pop();
  }
}

TEST(LaneTest, StampsSurviveTheirWrap) {
  Shared<LaneLayout> lane;
  // The last lap before the stamps wrap, with what the lap before left in the slots.
  const uint64_t start = ((uint64_t{1} << 32) - 1) * kLaneSlots;
  static_assert(StampOf(((uint64_t{1} << 32) - 1) * kLaneSlots) == 0);
  lane->producer.tail = start;
  lane->consumer.head = start;
  for (Descriptor& slot : lane->slots) {
    slot.stamp = StampOf(start - 1);
  }
  LaneProducer producer(lane.get());
  LaneConsumer consumer(lane.get());
  for (uint64_t n = start; n < start + uint64_t{2} * kLaneSlots; ++n) {
    ASSERT_EQ(consumer.Peek(), nullptr);
    ASSERT_TRUE(producer.TryPush(Message(n)));
    ASSERT_NE(consumer.Peek(), nullptr);
    EXPECT_TRUE(IsMessage(*consumer.Peek(), n));
    consumer.Pop();
  }
}

TEST(LaneTest, CorruptHeadStopsTheProducerInsteadOfOverwriting) {
  Shared<LaneLayout> lane;
  LaneProducer producer(lane.get());
  for (uint64_t n = 0; n < kLaneSlots; ++n) {
    ASSERT_TRUE(producer.TryPush(Message(n)));
  }
  lane->consumer.head = 1'000'000;  // past the tail
  EXPECT_FALSE(producer.TryPush(Message(kLaneSlots)));
  EXPECT_EQ(LaneConsumer(lane.get()).Backlog(), 0U);
}

TEST(LaneTest, CorruptTailCannotClaimMoreThanTheSlots) {
  Shared<LaneLayout> lane;
  lane->producer.tail = ~uint64_t{0};
  EXPECT_EQ(LaneConsumer(lane.get()).Backlog(), kLaneSlots);
}

TEST(LaneTest, CellsAreGivenOutOnceUntilGivenBack) {
  Shared<LaneLayout> lane;
  LaneProducer producer(lane.get());
  std::set<uint32_t> cells;
  for (uint32_t i = 0; i < kLaneCells; ++i) {
    const uint32_t cell = producer.TryTakeCell();
    ASSERT_TRUE(LaneConsumer::IsCell(cell));
    EXPECT_TRUE(cells.insert(cell).second) << "cell " << cell << " was given out twice";
  }
  EXPECT_EQ(producer.TryTakeCell(), kNoCell);
  LaneConsumer(lane.get()).ReleaseCell(17);
  EXPECT_EQ(producer.TryTakeCell(), 17U);
  producer.ReturnCell(40);
  EXPECT_EQ(producer.TryTakeCell(), 40U);
  EXPECT_EQ(producer.TryTakeCell(), kNoCell);
}

TEST(LaneTest, RunsOfCellsAreNeighboursAndGoBackTogether) {
  Shared<LaneLayout> lane;
  LaneProducer producer(lane.get());
  LaneConsumer consumer(lane.get());
  EXPECT_EQ(producer.TryTakeCells(kRunCells), 0U);
  EXPECT_EQ(producer.TryTakeCell(), kRunCells);
  EXPECT_EQ(producer.TryTakeCells(3), kRunCells + 1);
  while (producer.TryTakeCell() != kNoCell) {
  }
  consumer.ReleaseCell(20);
  consumer.ReleaseCell(22);
  EXPECT_EQ(producer.TryTakeCells(2), kNoCell);
  consumer.ReleaseCells(0, kRunBytes);
  EXPECT_EQ(producer.TryTakeCells(kRunCells + 1), kNoCell);
  EXPECT_EQ(producer.TryTakeCells(kRunCells), 0U);
  EXPECT_EQ(producer.TryTakeCells(1), 20U);
}

TEST(LaneTest, ARunMustLieWithinTheLane) {
  EXPECT_EQ(CellsFor(0), 1U);
  EXPECT_EQ(CellsFor(kCellBytes), 1U);
  EXPECT_EQ(CellsFor(kCellBytes + 1), 2U);
  EXPECT_TRUE(LaneConsumer::IsRun(kLaneCells - 1, kCellBytes));
  EXPECT_FALSE(LaneConsumer::IsRun(kLaneCells - 1, kCellBytes + 1));
  EXPECT_TRUE(LaneConsumer::IsRun(kLaneCells - kRunCells, kRunBytes));
  EXPECT_FALSE(LaneConsumer::IsRun(0, kRunBytes + 1));
  EXPECT_FALSE(LaneConsumer::IsRun(kLaneCells, 1));
}

TEST(LaneTest, ReleaseOfACellThatDoesNotExistIsIgnored) {
  Shared<LaneLayout> lane;
  LaneProducer producer(lane.get());
  while (producer.TryTakeCell() != kNoCell) {
  }
  LaneLayout before;
  std::memcpy(static_cast<void*>(&before), lane.get(), offsetof(LaneLayout, cells));
  LaneConsumer consumer(lane.get());
  consumer.ReleaseCell(kLaneCells);
  consumer.ReleaseCell(0xFFFF);
  consumer.ReleaseCell(kNoCell);
  consumer.ReleaseCells(kLaneCells, ~uint64_t{0});
  EXPECT_EQ(std::memcmp(&before, lane.get(), offsetof(LaneLayout, cells)), 0);
}

}  // namespace
}  // namespace ferry::shm
