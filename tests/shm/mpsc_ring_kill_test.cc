// The MPSC ring with a producer or the consumer killed, or stopped, at any instruction.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "shm/mpsc_ring.h"
#include "tests/shm/shared_memory.h"
#include "tests/shm/step_kill.h"

namespace ferry::shm {
namespace {

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
