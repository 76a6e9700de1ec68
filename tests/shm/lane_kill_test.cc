// A lane, and the MPSC ring, whose producer or consumer is killed, or stopped, at any instruction.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "shm/lane.h"
#include "shm/mpsc_ring.h"
#include "tests/shm/shared_memory.h"
#include "tests/shm/step_kill.h"

namespace ferry::shm {
namespace {

// ---- Lanes

constexpr uint8_t kFiller = 0xA5;

Descriptor Message(int32_t tag) {
  Descriptor descriptor;
  std::memset(&descriptor, kFiller, sizeof(descriptor));
  descriptor.tag = tag;
  return descriptor;
}

bool IsWhole(const Descriptor& descriptor, int32_t tag) {
  Descriptor expected = Message(tag);
  expected.stamp = descriptor.stamp;
  return std::memcmp(&descriptor, &expected, sizeof(Descriptor)) == 0;
}

// Takes all messages out; each must be whole.
std::vector<int32_t> Drain(LaneLayout* layout) {
  LaneConsumer consumer(layout);
  std::vector<int32_t> tags;
  while (const Descriptor* descriptor = consumer.Peek()) {
    EXPECT_TRUE(IsWhole(*descriptor, descriptor->tag)) << "a torn message";
    tags.push_back(descriptor->tag);
    consumer.Pop();
  }
  return tags;
}

uint32_t CellsInUse(const LaneLayout* layout) {
  uint32_t in_use = 0;
  for (uint8_t state : layout->cell_state) {
    in_use += state != static_cast<uint8_t>(CellState::kFree);
  }
  return in_use;
}

// A lane that has been around once, so that every slot holds an old message and an old stamp.
class LaneKillTest : public testing::Test {
 protected:
  void SetUp() override { FERRY_REQUIRE_STEPPING(); }

  void Reset() {
    std::memset(static_cast<void*>(layout_.get()), 0, offsetof(LaneLayout, cells));
    LaneProducer producer(layout_.get());
    for (uint32_t i = 0; i < kLaneSlots; ++i) {
      ASSERT_TRUE(producer.TryPush(Message(-1)));
    }
    Drain(layout_.get());
  }

  Shared<LaneLayout> layout_;
};

TEST_F(LaneKillTest, ProducerKilledAtAnyInstructionLeavesAWholeMessageOrNone) {
  uint64_t with_message = 0;
  const uint64_t points = ForEachInstruction(
      1, [this] { Reset(); }, [this] { LaneProducer(layout_.get()).TryPush(Message(1)); },
      [&](SteppedChild& child) {
        child.Kill();
        const std::vector<int32_t> left = Drain(layout_.get());
        if (!left.empty()) {
          EXPECT_EQ(left, std::vector<int32_t>{1});
          ++with_message;
        }
        LaneProducer successor(layout_.get());
        ASSERT_TRUE(successor.TryPush(Message(2)));
        ASSERT_TRUE(successor.TryPush(Message(3)));
        EXPECT_EQ(Drain(layout_.get()), (std::vector<int32_t>{2, 3}));
      });
  EXPECT_GT(with_message, 1U) << "no kill after the stamp was tried";
  EXPECT_LT(with_message, points) << "no kill before the stamp was tried";
}

TEST_F(LaneKillTest, ConsumerSeesNoTornMessageWhileTheProducerIsStopped) {
  ForEachInstruction(
      1, [this] { Reset(); }, [this] { LaneProducer(layout_.get()).TryPush(Message(1)); },
      [&](SteppedChild& child) {
        std::vector<int32_t> tags = Drain(layout_.get());
        ASSERT_TRUE(child.Finish());
        for (int32_t tag : Drain(layout_.get())) {
          tags.push_back(tag);
        }
        EXPECT_EQ(tags, std::vector<int32_t>{1});
        EXPECT_TRUE(LaneProducer(layout_.get()).TryPush(Message(2)));
        EXPECT_EQ(Drain(layout_.get()), std::vector<int32_t>{2});
      });
}

TEST_F(LaneKillTest, SuccessorKilledInTurnLosesNothing) {
  // The tail is one behind, as a producer killed between stamp and tail leaves it; the next is
  // killed too.
  ForEachInstruction(
      1,
      [this] {
        Reset();
        LaneProducer(layout_.get()).TryPush(Message(1));
        --layout_->producer.tail;
      },
      [this] { LaneProducer(layout_.get()).TryPush(Message(2)); },
      [&](SteppedChild& child) {
        child.Kill();
        ASSERT_TRUE(LaneProducer(layout_.get()).TryPush(Message(3)));
        const std::vector<int32_t> tags = Drain(layout_.get());
        if (tags.size() == 3) {
          EXPECT_EQ(tags, (std::vector<int32_t>{1, 2, 3}));
        } else {
          EXPECT_EQ(tags, (std::vector<int32_t>{1, 3}));
        }
      });
}

TEST_F(LaneKillTest, ProducerKilledWithACellLosesAtMostThatCell) {
  ForEachInstruction(
      1, [this] { Reset(); },
      [this] {
        LaneProducer producer(layout_.get());
        const uint32_t cell = producer.TryTakeCell();
        std::memset(producer.Cell(cell), kFiller, 64);
        Descriptor descriptor = Message(1);
        descriptor.cell = static_cast<uint16_t>(cell);
        producer.TryPush(descriptor);
      },
      [&](SteppedChild& child) {
        child.Kill();
        LaneConsumer consumer(layout_.get());
        if (const Descriptor* descriptor = consumer.Peek()) {
          const uint8_t* data = consumer.Cell(descriptor->cell);
          EXPECT_EQ(data[0], kFiller);
          EXPECT_EQ(data[63], kFiller);
          const uint32_t cell = descriptor->cell;
          consumer.Pop();
          consumer.ReleaseCell(cell);
          EXPECT_EQ(CellsInUse(layout_.get()), 0U);
        } else {
          EXPECT_LE(CellsInUse(layout_.get()), 1U);
        }
      });
}

TEST_F(LaneKillTest, ConsumerKilledAtAnyInstructionConsumesOnceOrNotAtAll) {
  ForEachInstruction(
      1,
      [this] {
        Reset();
        LaneProducer producer(layout_.get());
        producer.TryPush(Message(1));
        producer.TryPush(Message(2));
      },
      [this] {
        LaneConsumer consumer(layout_.get());
        if (consumer.Peek() != nullptr) {
          consumer.Pop();
        }
      },
      [&](SteppedChild& child) {
        child.Kill();
        const std::vector<int32_t> tags = Drain(layout_.get());
        if (tags.size() == 2) {
          EXPECT_EQ(tags, (std::vector<int32_t>{1, 2}));
        } else {
          EXPECT_EQ(tags, std::vector<int32_t>{2});
        }
      });
}

TEST_F(LaneKillTest, OpenKilledAtAnyInstructionCanBeRepeated) {
  // Every 7th instruction: opening enters the kernel and formats nothing, but is longer than a
  // push.
  ForEachInstruction(
      7, [this] { std::memset(static_cast<void*>(layout_.get()), 0, sizeof(LaneProducerWords)); },
      [this] { LaneProducer(layout_.get()).Open(5); },
      [&](SteppedChild& child) {
        child.Kill();
        LaneProducer successor(layout_.get());
        successor.Open(5);
        EXPECT_TRUE(successor.is_open());
        EXPECT_EQ(layout_->producer.producer_rank, 5U);
      });
}

// ---- Rings of several producers

constexpr uint32_t kCapacity = 4;

class MpscRingKillTest : public testing::Test {
 protected:
  void SetUp() override { FERRY_REQUIRE_STEPPING(); }

  MpscRingLayout* layout() { return reinterpret_cast<MpscRingLayout*>(memory_.base()); }
  MpscRing Ring() { return *MpscRing::Attach(layout(), memory_.size_bytes()); }

  // A ring that has been around once, so that every slot holds an old item.
  void Reset() {
    std::memset(memory_.base(), 0, memory_.size_bytes());
    ASSERT_TRUE(MpscRing::Initialize(layout(), kCapacity).ok());
    MpscRing ring = Ring();
    for (uint32_t i = 0; i < kCapacity; ++i) {
      Push(ring, 0xEE);
      ring.Pop();
    }
  }
  static bool Push(MpscRing& ring, uint8_t value) {
    uint8_t payload[kMpscPayloadBytes];
    std::memset(payload, value, sizeof(payload));
    return ring.TryPush(payload, sizeof(payload));
  }
  // Takes what can be had; each item must be whole.
  std::vector<int> Drain() {
    MpscRing ring = Ring();
    std::vector<int> values;
    while (const uint8_t* payload = ring.Peek()) {
      for (uint32_t i = 1; i < kMpscPayloadBytes; ++i) {
        EXPECT_EQ(payload[i], payload[0]) << "a torn item";
      }
      values.push_back(payload[0]);
      ring.Pop();
    }
    return values;
  }

  SharedMemory memory_{MpscRing::SizeBytes(kCapacity)};
};

TEST_F(MpscRingKillTest, ProducerKilledAtAnyInstructionLeavesAWholeItemOrAHoleToSkip) {
  uint64_t holes = 0;
  uint64_t whole = 0;
  const uint64_t points = ForEachInstruction(
      1, [this] { Reset(); },
      [this] {
        MpscRing ring = Ring();
        Push(ring, 1);
      },
      [&](SteppedChild& child) {
        child.Kill();
        MpscRing ring = Ring();
        ASSERT_TRUE(Push(ring, 2));
        std::vector<int> values = Drain();
        if (const auto stalled = ring.PeekStalled()) {
          EXPECT_TRUE(values.empty());
          EXPECT_TRUE(ring.SkipStalled(*stalled));
          values = Drain();
          ++holes;
        }
        if (values.size() == 2) {
          EXPECT_EQ(values, (std::vector<int>{1, 2}));
          ++whole;
        } else {
          EXPECT_EQ(values, std::vector<int>{2});
        }
        for (int lap = 0; lap < 3; ++lap) {
          for (uint32_t i = 0; i < kCapacity; ++i) {
            ASSERT_TRUE(Push(ring, 3));
          }
          EXPECT_EQ(Drain().size(), kCapacity);
        }
      });
  EXPECT_GT(holes, 0U) << "no kill between ticket and publication was tried";
  EXPECT_GT(whole, 0U);
  EXPECT_LT(holes + whole, points) << "no kill before the ticket was tried";
}

TEST_F(MpscRingKillTest, ProducerStoppedAtAnyInstructionDelaysButLosesNothing) {
  ForEachInstruction(
      1, [this] { Reset(); },
      [this] {
        MpscRing ring = Ring();
        Push(ring, 1);
      },
      [&](SteppedChild& child) {
        MpscRing ring = Ring();
        ASSERT_TRUE(Push(ring, 2));
        std::vector<int> values = Drain();
        ASSERT_TRUE(child.Finish());
        for (int value : Drain()) {
          values.push_back(value);
        }
        std::sort(values.begin(), values.end());
        EXPECT_EQ(values, (std::vector<int>{1, 2}));
        EXPECT_EQ(ring.PeekStalled(), std::nullopt);
      });
}

TEST_F(MpscRingKillTest, ConsumerKilledAtAnyInstructionConsumesOnceOrNotAtAll) {
  ForEachInstruction(
      1,
      [this] {
        Reset();
        MpscRing ring = Ring();
        Push(ring, 1);
        Push(ring, 2);
      },
      [this] {
        MpscRing ring = Ring();
        if (ring.Peek() != nullptr) {
          ring.Pop();
        }
      },
      [&](SteppedChild& child) {
        child.Kill();
        // Producers go on first, into the slot that was given back if there is one.
        MpscRing ring = Ring();
        std::vector<int> expected = {1, 2};
        for (int value = 3; Push(ring, static_cast<uint8_t>(value)); ++value) {
          expected.push_back(value);
        }
        if (expected.size() > kCapacity) {
          expected.erase(expected.begin());  // 1 was consumed
        }
        EXPECT_EQ(Drain(), expected);
      });
}

}  // namespace
}  // namespace ferry::shm
