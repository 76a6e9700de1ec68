// The orders of memory that lanes, and rings of many producers, rely on.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <vector>

#include "shm/fence.h"
#include "shm/lane.h"
#include "shm/mpsc_ring.h"
#include "tests/shm/weak/orders.h"

namespace ferry::shm {
namespace {

using weak::Body;
using weak::ExpectOrders;
using weak::Order;
using weak::Without;

LaneLayout lane;

// Empty but for the words of `messages` that have been sent and not received.
void ResetLane(uint64_t messages) {
  std::memset(static_cast<void*>(&lane), 0, offsetof(LaneLayout, cells));
  for (uint64_t n = 0; n < messages; ++n) {
    lane.slots[n].stamp = StampOf(n);
  }
  lane.producer.tail = messages;
}

Descriptor MessageOf(int tag) {
  Descriptor made{};
  made.tag = tag;
  return made;
}

const Descriptor& Await(LaneConsumer& consumer) {
  const Descriptor* next = consumer.Peek();
  while (next == nullptr) {
    weak::Yield();
    next = consumer.Peek();
  }
  weak::Read(&next->kind, sizeof(Descriptor) - sizeof(next->stamp));
  return *next;
}

TEST(LaneOrdersTest, AMessageIsWholeWhenItsStampIsThere) {
  ExpectOrders(
      [] {
        ResetLane(0);
        return std::vector<Body>{[] {
                                   LaneProducer producer(&lane);
                                   for (int tag = 1; tag <= 2; ++tag) {
                                     weak::Check(producer.TryPush(MessageOf(tag)), "no room");
                                   }
                                 },
                                 [] {
                                   LaneConsumer consumer(&lane);
                                   for (int tag = 1; tag <= 2; ++tag) {
                                     weak::Check(Await(consumer).tag == tag, "another message");
                                     consumer.Pop();
                                   }
                                 }};
      },
      {{"LaneProducer::Publish", Without(Order::kRelease, lane.slots)},
       {"LaneConsumer::Peek", Without(Order::kAcquire, lane.slots)}});
}

TEST(LaneOrdersTest, ASlotIsFilledAfterItWasRead) {
  ExpectOrders(
      [] {
        ResetLane(kLaneSlots);
        return std::vector<Body>{[] {
                                   LaneProducer producer(&lane);
                                   for (int tag = 1; tag <= 2; ++tag) {
                                     while (!producer.TryPush(MessageOf(tag))) {
                                       weak::Yield();
                                     }
                                   }
                                 },
                                 [] {
                                   LaneConsumer consumer(&lane);
                                   for (int i = 0; i < 2; ++i) {
                                     weak::Check(Await(consumer).tag == 0, "not an old message");
                                     consumer.Pop();
                                   }
                                 }};
      },
      {{"LaneConsumer::Pop", Without(Order::kRelease, lane.consumer.head)},
       {"LaneProducer::HasRoomAt", Without(Order::kAcquire, lane.consumer.head)}});
}

TEST(LaneOrdersTest, ACellIsFilledAfterItWasRead) {
  ExpectOrders(
      [] {
        ResetLane(0);
        std::memset(&lane.cell_state[1], static_cast<int>(CellState::kInUse), kLaneCells - 1);
        return std::vector<Body>{[] {
                                   LaneProducer producer(&lane);
                                   for (int tag = 1; tag <= 2; ++tag) {
                                     uint32_t cell = producer.TryTakeCell();
                                     while (cell == kNoCell) {
                                       weak::Yield();
                                       cell = producer.TryTakeCell();
                                     }
                                     weak::Write(producer.Cell(cell), 1);
                                     *producer.Cell(cell) = static_cast<uint8_t>(tag);
                                     Descriptor made = MessageOf(tag);
                                     made.cell = static_cast<uint16_t>(cell);
                                     weak::Check(producer.TryPush(made), "no room");
                                   }
                                 },
                                 [] {
                                   LaneConsumer consumer(&lane);
                                   for (int tag = 1; tag <= 2; ++tag) {
                                     const uint32_t cell = Await(consumer).cell;
                                     weak::Read(consumer.Cell(cell), 1);
                                     weak::Check(*consumer.Cell(cell) == tag,
                                                 "another message's data");
                                     consumer.ReleaseCell(cell);
                                     consumer.Pop();
                                   }
                                 }};
      },
      {{"LaneConsumer::ReleaseCell", Without(Order::kRelease, lane.cell_state)},
       {"LaneProducer::FindCell", Without(Order::kAcquire, lane.cell_state)}},
      400);  // each takes as many steps as there are cells
}

// One notice stands for those that a consumer gives in a lap of the lane.
TEST(LaneOrdersTest, AProducerThatAsksForRoomIsNoticed) {
  static uint32_t bell = 0;
  ExpectOrders(
      [] {
        ResetLane(kLaneSlots);
        bell = 0;
        return std::vector<Body>{
            [] {
              LaneProducer producer(&lane);
              while (!producer.TryPush(MessageOf(1))) {
                producer.AskForRoom();
                if (!producer.HasRoom()) {
                  weak::FutexWait(&bell, 0);
                }
              }
            },
            [] {
              LaneConsumer consumer(&lane);
              (void)Await(consumer);
              consumer.Pop();
              FullFence();
              if (Load(lane.producer.waiting, std::memory_order_seq_cst) != 0) {
                StoreRelaxed(bell, 1);
                weak::FutexWake(&bell);
              }
            }};
      },
      {{"the fence of LaneProducer::AskForRoom", Without(Order::kFullFence)}});
}

// ---- Rings of many producers --------------------------------------------------------------------

constexpr uint32_t kCapacity = 2;

struct RingMemory {
  MpscRingLayout layout;
  MpscSlot slots[kCapacity];
};
RingMemory memory;

MpscRing Ring() { return *MpscRing::Attach(&memory.layout, sizeof(memory)); }

TEST(LaneOrdersTest, APayloadOfARingIsWholeAndItsSlotIsFilledAfterItWasRead) {
  static constexpr uint32_t kEach = 2;
  const auto produce = [](uint32_t first) {
    return [first] {
      MpscRing ring = Ring();
      for (uint32_t i = 0; i < kEach; ++i) {
        const uint32_t payload = first + i;
        while (!ring.TryPush(&payload, sizeof(payload))) {
          weak::Yield();
        }
      }
    };
  };
  ExpectOrders(
      [&] {
        std::memset(static_cast<void*>(&memory), 0, sizeof(memory));
        (void)MpscRing::Initialize(&memory.layout, kCapacity);
        return std::vector<Body>{produce(1), produce(1 + kEach), [] {
                                   MpscRing ring = Ring();
                                   uint32_t sum = 0;
                                   for (uint32_t i = 0; i < 2 * kEach; ++i) {
                                     const uint8_t* next = ring.Peek();
                                     while (next == nullptr) {
                                       weak::Yield();
                                       next = ring.Peek();
                                     }
                                     uint32_t payload = 0;
                                     std::memcpy(&payload, next, sizeof(payload));
                                     sum += payload;
                                     ring.Pop();
                                   }
                                   weak::Check(sum == 10, "another payload");
                                 }};
      },
      {{"MpscRing::Publish", Without(Order::kRelease, memory.slots)},
       {"MpscRing::IsPublished", Without(Order::kAcquire, memory.slots)},
       {"MpscRing::Pop", Without(Order::kRelease, memory.layout.head)},
       {"the head, in MpscRing::IsTurn", Without(Order::kAcquire, memory.layout.head)},
       {"MpscRing::IsTurn, for other producers", Without(Order::kRelease, memory.layout.head_seen)},
       {"what another producer saw", Without(Order::kAcquire, memory.layout.head_seen)}});
}

}  // namespace
}  // namespace ferry::shm
