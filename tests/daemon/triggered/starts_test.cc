// How a daemon reads the starts of an end.
#include <gtest/gtest.h>

#include <cstddef>

#include "daemon/triggered/pair.h"
#include "shm/atomic.h"
#include "shm/counter.h"

namespace ferry {
inline void PrintTo(ErrorCode code, std::ostream* out) { *out << ErrorCodeText(code); }
}  // namespace ferry

namespace ferry::daemon {
namespace {

struct alignas(64) Heap {
  shm::PairLayout end{};
  shm::CounterLayout doorbells[2] = {};
};

class StartsTest : public testing::Test {
 protected:
  void Share(int doorbell, uint64_t base, uint64_t until = UINT64_MAX) {
    heap_.end.shares = 1;
    heap_.end.shared_start = offsetof(Heap, doorbells) + doorbell * sizeof(shm::CounterLayout);
    heap_.end.shared_base = base;
    heap_.end.shared_until = until;
  }
  void Announce(uint64_t starts) { shm::StoreRelease(heap_.end.armed, starts); }
  void Ring(int doorbell, uint64_t value) {
    shm::StoreRelease(heap_.doorbells[doorbell].value, value);
  }

  Heap heap_;
  Starts starts_{&heap_.end, {reinterpret_cast<const std::byte*>(&heap_), sizeof(heap_)}};
};

TEST_F(StartsTest, CountsByTheEndsOwnDoorbell) {
  Announce(2);
  EXPECT_EQ(starts_.Refresh(true), ErrorCode::kOk);
  EXPECT_EQ(starts_.announced(), 2U);
  EXPECT_EQ(starts_.Made(), 0U);
  EXPECT_TRUE(starts_.IsArmed(1));
  EXPECT_FALSE(starts_.IsArmed(2));
  shm::StoreRelease(heap_.end.start.value, 1);
  EXPECT_EQ(starts_.Made(), 1U);
  EXPECT_FALSE(starts_.shared().Counts(1));
}

TEST_F(StartsTest, CountsByASharedDoorbell) {
  shm::StoreRelease(heap_.end.start.value, 5);  // by its own doorbell before
  Ring(1, 40);
  Share(1, static_cast<uint64_t>(5 - 40));
  Announce(7);
  EXPECT_EQ(starts_.Refresh(true), ErrorCode::kOk);
  EXPECT_EQ(starts_.Made(), 5U);
  Ring(1, 41);
  EXPECT_EQ(starts_.Made(), 6U);
  EXPECT_TRUE(starts_.shared().Counts(7));
  Ring(1, 60);
  EXPECT_EQ(starts_.Made(), 7U) << "what was not announced is others'";
  Ring(1, 3);
  EXPECT_EQ(starts_.Made(), 5U) << "of before it shared it";
}

TEST_F(StartsTest, StartsAfterTheLastSharedOneAreItsOwn) {
  Share(0, 0, 2);
  Announce(3);
  EXPECT_EQ(starts_.Refresh(true), ErrorCode::kOk);
  Ring(0, 3);
  EXPECT_EQ(starts_.Made(), 2U);
  EXPECT_FALSE(starts_.shared().Counts(3));
  shm::StoreRelease(heap_.end.start.value, 3);
  EXPECT_EQ(starts_.Made(), 3U);
}

// The rank sees the end of a message before the daemon does, and shares another doorbell then.
TEST_F(StartsTest, AnotherDoorbellIsTakenOverWhenNothingIsUnderWay) {
  Share(0, 0);
  Announce(1);
  EXPECT_EQ(starts_.Refresh(true), ErrorCode::kOk);
  Ring(0, 1);
  Share(1, 1);
  Announce(2);
  EXPECT_EQ(starts_.Refresh(false), ErrorCode::kOk);
  EXPECT_EQ(starts_.announced(), 1U);
  EXPECT_EQ(starts_.shared().word, &heap_.doorbells[0]);
  EXPECT_EQ(starts_.Refresh(true), ErrorCode::kOk);
  EXPECT_EQ(starts_.announced(), 2U);
  EXPECT_EQ(starts_.Made(), 1U);
  Ring(1, 1);
  EXPECT_EQ(starts_.Made(), 2U);
}

// A change of the last shared start is taken over at once: earlier ones are counted as before.
TEST_F(StartsTest, LeavingIsTakenOverWhileStartsAreUnderWay) {
  Share(0, 0);
  Announce(1);
  EXPECT_EQ(starts_.Refresh(true), ErrorCode::kOk);
  Share(0, 0, 1);
  Announce(2);
  EXPECT_EQ(starts_.Refresh(false), ErrorCode::kOk);
  EXPECT_EQ(starts_.announced(), 2U);
  EXPECT_FALSE(starts_.shared().Counts(2));
}

TEST_F(StartsTest, DoorbellsOutsideTheRegionAreRefused) {
  for (const uint64_t offset : {sizeof(Heap), sizeof(Heap) - 32, uint64_t{8}, UINT64_MAX - 63}) {
    Share(0, 0);
    heap_.end.shared_start = offset;
    Announce(starts_.announced() + 1);
    EXPECT_EQ(starts_.Refresh(true), ErrorCode::kCorrupt) << offset;
    EXPECT_EQ(starts_.Made(), 0U);
  }
}

}  // namespace
}  // namespace ferry::daemon
