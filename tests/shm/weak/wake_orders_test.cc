// The orders of memory that publishers and sleepers rely on: that neither misses the other.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "shm/counter.h"
#include "shm/fence.h"
#include "shm/lane.h"
#include "shm/pair_move.h"
#include "shm/wake.h"
#include "tests/shm/weak/orders.h"

namespace ferry::shm {
namespace {

using weak::Body;
using weak::ExpectOrders;
using weak::Needed;
using weak::Order;
using weak::Without;

constexpr uint32_t kLane = 0;

WakeLayout layout;
LaneLayout lane;
uint32_t word = 0;
uint32_t bell = 0;

void Reset() {
  layout = {};
  std::memset(static_cast<void*>(&lane), 0, offsetof(LaneLayout, cells));
  word = 0;
  bell = 0;
}

class WakeOrdersTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      EnableLightFence();
    }
  }
  void TearDown() override { weak::EndLightFences(); }

  // Without light fences publishers pay for an update, which takes the place of the heavy fence.
  static std::vector<Needed> Fences() {
    if (GetParam()) {
      return {{"Wake::OrderMessage and PrepareToSleep", Without(Order::kHeavyFence)}};
    }
    return {{"Wake::OrderMessage", Without(Order::kSequential, layout.sequence)},
            {"Wake::WakeSleepers", Without(Order::kSequential, layout.sleepers)}};
  }
};

INSTANTIATE_TEST_SUITE_P(, WakeOrdersTest, ::testing::Bool(),
                         [](const auto& light) { return light.param ? "LightFences" : "Updates"; });

void Publish(int messages) {
  LaneProducer producer(&lane);
  for (int i = 0; i < messages; ++i) {
    weak::Check(producer.TryPush({}), "no room");
    Wake(&layout).PublishLane(kLane);
  }
}

// As a rank waits: it looks at the lanes whose bits are set, and forgets them before it sleeps but
// for a last look.
void Receive(int messages) {
  Wake wake(&layout);
  LaneConsumer consumer(&lane);
  int received = 0;
  while (received < messages) {
    if ((wake.Activity(0) & 1) != 0 && consumer.Peek() != nullptr) {
      consumer.Pop();
      ++received;
      continue;
    }
    const uint64_t forgotten = wake.TakeActivity(0);
    const uint32_t sequence = wake.PrepareToSleep();
    if (((forgotten | wake.Activity(0)) & 1) != 0 && consumer.Peek() != nullptr) {
      wake.RestoreActivity(kLane);
      wake.CancelSleep();
    } else {
      wake.Sleep(sequence, 0);
    }
  }
}

TEST_P(WakeOrdersTest, AMessageWakesItsReceiver) {
  ExpectOrders(
      [] {
        Reset();
        return std::vector<Body>{[] { Publish(2); }, [] { Receive(2); }};
      },
      Fences());
}

// Without light fences the futex itself notices an update of the word that it sleeps on.
TEST_P(WakeOrdersTest, AChangeOfStateWakesASleeper) {
  std::vector<Needed> fences = Fences();
  ExpectOrders(
      [] {
        Reset();
        return std::vector<Body>{[] {
                                   StoreRelease(word, 1);
                                   Wake(&layout).Publish();
                                 },
                                 [] {
                                   Wake wake(&layout);
                                   while (LoadAcquire(word) == 0) {
                                     const uint32_t sequence = wake.PrepareToSleep();
                                     if (LoadAcquire(word) == 0) {
                                       wake.Sleep(sequence, 0);
                                     } else {
                                       wake.CancelSleep();
                                     }
                                   }
                                 }};
      },
      {fences.back()});
}

// A heavy fence does for the orders of the words, too.
TEST_P(WakeOrdersTest, AChangeOfMemoryWakesAThreadThatRests) {
  const std::vector<Needed> orders = {
      {"Wake::PublishChange", Without(Order::kSequential, layout.changes)},
      {"Wake::BeginRest", Without(Order::kSequential, layout.resting)}};
  ExpectOrders(
      [] {
        Reset();
        return std::vector<Body>{[] {
                                   StoreRelaxed(word, 1);
                                   Wake(&layout).PublishChange();
                                 },
                                 [] {
                                   Wake wake(&layout);
                                   wake.BeginRest();
                                   uint32_t seen = wake.changes();
                                   while (LoadRelaxed(word) == 0) {
                                     const uint32_t sequence = wake.PrepareToSleep();
                                     if (wake.changes() == seen) {
                                       wake.Sleep(sequence, 0);
                                     } else {
                                       wake.CancelSleep();
                                     }
                                     seen = wake.changes();
                                   }
                                   wake.EndRest();
                                 }};
      },
      GetParam() ? std::vector<Needed>() : orders);
}

// ---- A rank and its daemon ----------------------------------------------------------------------

// As a daemon waits: by a bell, which a rank rings where the word says so.
TEST(DaemonOrdersTest, ACommandRingsTheBell) {
  ExpectOrders(
      [] {
        Reset();
        return std::vector<Body>{[] {
                                   LaneProducer producer(&lane);
                                   weak::Check(producer.TryPush({}), "no room");
                                   if (Wake(&layout).MustRing()) {
                                     StoreRelaxed(bell, 1);
                                     weak::FutexWake(&bell);
                                   }
                                 },
                                 [] {
                                   LaneConsumer consumer(&lane);
                                   Exchange(layout.sleepers, 1U, std::memory_order_seq_cst);
                                   FullFence();
                                   if (consumer.Peek() == nullptr) {
                                     weak::FutexWait(&bell, 0);
                                   }
                                 }};
      },
      {{"Wake::MustRing", Without(Order::kFullFence)}});
}

TEST(DaemonOrdersTest, AnAnnouncedMessageRingsTheBellAndIsFound) {
  ExpectOrders(
      [] {
        Reset();
        return std::vector<Body>{[] {
                                   LaneProducer producer(&lane);
                                   for (int i = 0; i < 2; ++i) {
                                     weak::Check(producer.TryPush({}), "no room");
                                     if (Wake(&layout).AnnounceLane(kLane)) {
                                       StoreRelaxed(bell, 1);
                                       weak::FutexWake(&bell);
                                     }
                                   }
                                 },
                                 [] {
                                   Wake wake(&layout);
                                   LaneConsumer consumer(&lane);
                                   for (int received = 0; received < 2;) {
                                     if (wake.TakeActivity(0) != 0) {
                                       while (consumer.Peek() != nullptr) {
                                         consumer.Pop();
                                         ++received;
                                       }
                                       continue;
                                     }
                                     StoreRelaxed(bell, 0);
                                     Exchange(layout.sleepers, 1U, std::memory_order_seq_cst);
                                     FullFence();
                                     if (!wake.HasActivity()) {
                                       weak::FutexWait(&bell, 0);
                                     }
                                     StoreRelaxed(layout.sleepers, 0);
                                   }
                                 }};
      },
      {{"Wake::AnnounceLane, the look at the sleepers",
        Without(Order::kSequential, layout.sleepers)},
       {"Wake::MarkActive and TakeActivity", Without(Order::kSequential, layout.activity)}});
}

TEST(DaemonOrdersTest, UrgentWorkHasAThreadThatLooks) {
  static int threads_over = 0;
  static bool attended = false;
  const auto end = [](bool looks) {
    attended |= looks;
    weak::Check(++threads_over < 2 || attended, "the work is left alone");
  };
  ExpectOrders(
      [&] {
        Reset();
        threads_over = 0;
        attended = false;
        return std::vector<Body>{[&] {
                                   StoreRelaxed(word, 1);
                                   end(Wake(&layout).MustAttend());
                                 },
                                 [&] {
                                   Wake wake(&layout);
                                   wake.Enter();
                                   const bool sees = LoadRelaxed(word) != 0;
                                   wake.Leave();
                                   end(wake.TakeUrgent() || sees);
                                 }};
      },
      {{"Wake::MustAttend", Without(Order::kSequential, layout.urgent)},
       {"Wake::Leave", Without(Order::kSequential, layout.inside)}});
}

// ---- Pairs --------------------------------------------------------------------------------------

PairLayout own;
PairLayout other;
uint32_t moved = 0;

TEST(PairOrdersTest, AMovedMessageWakesItsReceiver) {
  ExpectOrders(
      [] {
        own = {};
        other = {};
        return std::vector<Body>{[] {
                                   const PairEnds ends{.own = &own, .other = &other};
                                   weak::Check(BeginMove(ends, true, false), "it is closed");
                                   weak::Write(&moved, sizeof(moved));
                                   CompleteMove(ends);
                                 },
                                 [] {
                                   const auto is_there = [] {
                                     return Counter(&other.done).Reached(1);
                                   };
                                   while (!is_there()) {
                                     SleepUnless(other, 1, is_there);
                                   }
                                   weak::Read(&moved, sizeof(moved));
                                 }};
      },
      {{"BeginToSleep", Without(Order::kFullFence)},
       {"WakeWaiting", Without(Order::kSequential, other.sleeps)},
       {"CompleteMove", Without(Order::kRelease, other.done.value)}});
}

// The end that starts second has what the first put there, whichever it is.
TEST(PairOrdersTest, TheSecondEndMovesAndNoneAfterItIsClosed) {
  ExpectOrders(
      [] {
        own = {};
        other = {};
        return std::vector<Body>{[] {
                                   const PairEnds ends{.own = &own, .other = &other};
                                   weak::Write(&moved, sizeof(moved));
                                   if (BeginMove(ends, true, true)) {
                                     CompleteMove(ends);
                                   }
                                 },
                                 [] {
                                   const PairEnds ends{.own = &other, .other = &own};
                                   if (BeginMove(ends, false, true)) {
                                     weak::Read(&moved, sizeof(moved));
                                     CompleteMove(ends);
                                   }
                                   while (!Counter(&other.done).Reached(1)) {
                                     weak::Yield();
                                   }
                                   ClosePair(ends);
                                   weak::Write(&moved, sizeof(moved));
                                 }};
      },
      {{"BeginMove, of the first end", Without(Order::kRelease, own.meet.value)},
       {"BeginMove, of the second", Without(Order::kAcquire, own.meet.value)}});
}

}  // namespace
}  // namespace ferry::shm
