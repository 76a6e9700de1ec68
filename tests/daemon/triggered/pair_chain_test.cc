// Sends that follow receives (shm::FollowWords), by packets of the daemons: rank 1 passes on to
// rank 0 what has come from it.
#include <gtest/gtest.h>

#include <cstring>

#include "shm/atomic.h"
#include "shm/counter.h"
#include "tests/daemon/device_rings/ring_fixture.h"

namespace ferry::daemon {
namespace {

class PairsTest : public RingsTest {
 protected:
  static constexpr uint64_t kEnds = 640 << 10;     // in each region
  static constexpr uint64_t kWindows = 768 << 10;  // likewise
  static constexpr uint64_t kBytes = 600;
  static constexpr uint64_t kThere = 1;
  static constexpr uint64_t kBack = 2;
  static constexpr uint64_t kApart = 3;  // another one that goes there

  static uint64_t EndAt(uint64_t number) { return kEnds + number * sizeof(shm::PairLayout); }
  // Messages of rank 1 lie where they are received.
  static uint64_t WindowAt(uint32_t of_rank, uint64_t number) {
    return kWindows + (of_rank == 1 && number == kBack ? kThere : number) * 1024;
  }
  void AddPairs(uint64_t bytes = kBytes) {
    ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
    for (uint32_t i = 0; i < 2; ++i) {
      regions_[i] = AddRegion(i);
    }
    for (const uint64_t number : {kThere, kBack, kApart}) {
      for (uint32_t i = 0; i < 2; ++i) {
        PairPlan plan;
        plan.name = {kJob, i, number};
        plan.peer = 1 - i;
        plan.is_send = (number == kBack) == (i == 1);
        plan.size_bytes = bytes;
        plan.peer_number = number;
        plan.end = {regions_[i], EndAt(number)};
        plan.window = {regions_[i], WindowAt(i, number)};
        const Status status = plane(i).AddPair(plan);
        ASSERT_TRUE(status.ok()) << status.ToString();
      }
    }
  }
  shm::PairLayout& End(uint32_t of_rank, uint64_t number) {
    return *reinterpret_cast<shm::PairLayout*>(regions_[of_rank]->mapping.base() + EndAt(number));
  }
  std::byte* Message(uint32_t of_rank, uint64_t number) {
    return regions_[of_rank]->mapping.base() + WindowAt(of_rank, number);
  }
  void Follow(uint32_t count, uint64_t first_end) {
    shm::FollowWords& words = End(1, kBack).follows;
    words.count = count;
    words.ends[0] = first_end;
  }
  void StartEnd(uint32_t of_rank, uint64_t number, uint64_t round) {
    shm::StoreRelease(End(of_rank, number).armed, round);
    shm::FetchAdd(rank(of_rank).view().layout->pairs_armed, uint64_t{1}, std::memory_order_seq_cst);
    rank(of_rank).RingDaemon();
    shm::StoreRelease(End(of_rank, number).start.value, round);
  }
  uint64_t Done(uint32_t of_rank, uint64_t number) {
    const uint64_t value = shm::LoadAcquire(End(of_rank, number).done.value);
    return value >= shm::kCounterFailure ? value - shm::kCounterFailure : value;
  }
  ErrorCode ErrorOf(uint32_t of_rank, uint64_t number) {
    return shm::Counter(&End(of_rank, number).done).error();
  }
  bool Fails(uint32_t of_rank, uint64_t number) {
    return Eventually([&] { return ErrorOf(of_rank, number) != ErrorCode::kOk; });
  }
  // A message goes there and comes back as another one.
  void ExpectRound(uint64_t round) {
    std::memset(Message(0, kThere), static_cast<int>(round), kBytes);
    StartEnd(0, kBack, round);
    StartEnd(1, kBack, round);
    StartEnd(1, kThere, round);
    StartEnd(0, kThere, round);
    ASSERT_TRUE(Eventually([&] { return Done(0, kBack) == round && Done(1, kBack) == round; }));
    EXPECT_EQ(std::memcmp(Message(0, kBack), Message(0, kThere), kBytes), 0) << round;
  }

  std::shared_ptr<Region> regions_[2];
};

TEST_F(PairsTest, ASendFollowsWhatHasCome) {
  ASSERT_NO_FATAL_FAILURE(AddPairs());
  Follow(1, EndAt(kThere));
  for (uint64_t round = 1; round <= 50; ++round) {
    ASSERT_NO_FATAL_FAILURE(ExpectRound(round));
  }
}

// All of its own is there; another message comes and goes meanwhile.
TEST_F(PairsTest, ASendWaitsForWhatItFollows) {
  ASSERT_NO_FATAL_FAILURE(AddPairs());
  Follow(1, EndAt(kThere));
  StartEnd(0, kBack, 1);
  StartEnd(1, kBack, 1);
  StartEnd(1, kThere, 1);
  for (uint64_t round = 1; round <= 20; ++round) {
    StartEnd(0, kApart, round);
    StartEnd(1, kApart, round);
    ASSERT_TRUE(Eventually([&] { return Done(1, kApart) == round; }));
  }
  EXPECT_EQ(Done(1, kBack), 0U);
  StartEnd(0, kThere, 1);
  EXPECT_TRUE(Eventually([&] { return Done(0, kBack) == 1; }));
}

// A receive that fails takes the send along, once it has moved what had come.
TEST_F(PairsTest, ASendMovesWhatHasComeAndThenFails) {
  ASSERT_NO_FATAL_FAILURE(AddPairs());
  Follow(1, EndAt(kThere));
  ASSERT_NO_FATAL_FAILURE(ExpectRound(1));
  StartEnd(1, kThere, 2);
  StartEnd(0, kThere, 2);
  ASSERT_TRUE(Eventually([&] { return Done(1, kThere) == 2; }));
  StartEnd(1, kBack, 2);
  plane(1).EndPair({kJob, 1, kThere}, 2, ErrorCode::kInvalidRequest);
  ASSERT_TRUE(Fails(1, kThere));
  EXPECT_EQ(ErrorOf(1, kBack), ErrorCode::kOk);
  StartEnd(0, kBack, 2);  // clear to send
  EXPECT_TRUE(Eventually([&] { return Done(0, kBack) == 2; }));
  ASSERT_TRUE(Fails(1, kBack));
  EXPECT_EQ(ErrorOf(1, kBack), ErrorCode::kInvalidRequest);
  EXPECT_EQ(Done(1, kBack), 2U);
  ASSERT_TRUE(Fails(0, kBack));
  EXPECT_EQ(Done(0, kBack), 2U);
}

// Streams wait for all messages of a chain before they look at what has failed. So the daemon tells
// the other end of a send whose message will never be there, without the rank.
TEST_F(PairsTest, AFailureGoesAlongTheChainWithoutTheRanks) {
  for (const bool has_started : {true, false}) {
    SCOPED_TRACE(has_started ? "after the start" : "before it");
    ASSERT_NO_FATAL_FAILURE(AddPairs());
    Follow(1, EndAt(kThere));
    StartEnd(0, kBack, 1);
    if (has_started) {
      StartEnd(1, kThere, 1);
      StartEnd(1, kBack, 1);
      StartEnd(0, kApart, 1);  // after it the daemon has seen the starts
      StartEnd(1, kApart, 1);
      ASSERT_TRUE(Eventually([&] { return Done(1, kApart) == 1; }));
    }
    plane(1).EndPair({kJob, 1, kThere}, 0, ErrorCode::kPeerDied);
    if (!has_started) {
      ASSERT_TRUE(Fails(1, kThere));
      StartEnd(1, kBack, 1);
    }
    ASSERT_TRUE(Fails(0, kBack));
    EXPECT_EQ(ErrorOf(0, kBack), ErrorCode::kInvalidRequest) << "its partner has not died";
    EXPECT_EQ(ErrorOf(1, kBack), ErrorCode::kPeerDied);
    EXPECT_EQ(ErrorOf(0, kApart), ErrorCode::kOk);
    Stop();
  }
}

// The news of a rank's end say why, so its daemon says nothing before.
TEST_F(PairsTest, TheChainOfARankThatEndsIsLeftToTheNews) {
  ASSERT_NO_FATAL_FAILURE(AddPairs());
  Follow(1, EndAt(kThere));
  ASSERT_NO_FATAL_FAILURE(ExpectRound(1));
  plane(1).RemovePair({kJob, 1, kThere});
  ASSERT_TRUE(Fails(1, kBack));
  plane(1).RemovePair({kJob, 1, kBack});
  StartEnd(1, kApart, 1);
  StartEnd(0, kApart, 1);
  ASSERT_TRUE(Eventually([&] { return Done(1, kApart) == 1; }));
  EXPECT_EQ(ErrorOf(0, kBack), ErrorCode::kOk);
  plane(0).EndPair({kJob, 0, kBack}, 0, ErrorCode::kPeerDied);
  ASSERT_TRUE(Fails(0, kBack));
  EXPECT_EQ(ErrorOf(0, kBack), ErrorCode::kPeerDied);
}

// The one that it follows had failed before its first start.
TEST_F(PairsTest, ASendThatComesTooLateFails) {
  ASSERT_NO_FATAL_FAILURE(AddPairs());
  Follow(1, EndAt(kThere));
  plane(1).EndPair({kJob, 1, kThere}, 0, ErrorCode::kPeerDied);
  ASSERT_TRUE(Fails(1, kThere));
  StartEnd(1, kBack, 1);
  ASSERT_TRUE(Fails(1, kBack));
  EXPECT_EQ(ErrorOf(1, kBack), ErrorCode::kPeerDied);
}

TEST_F(PairsTest, TheReceiveThatIsFollowedMayGo) {
  ASSERT_NO_FATAL_FAILURE(AddPairs());
  Follow(1, EndAt(kThere));
  ASSERT_NO_FATAL_FAILURE(ExpectRound(1));
  plane(1).RemovePair({kJob, 1, kThere});
  EXPECT_TRUE(Fails(1, kBack));
  plane(1).RemovePair({kJob, 1, kBack});
  StartEnd(0, kApart, 1);
  StartEnd(1, kApart, 1);
  EXPECT_TRUE(Eventually([&] { return Done(1, kApart) == 1; }));
}

TEST_F(PairsTest, ASendThatFollowsNonsenseFailsAlone) {
  const struct {
    const char* what;
    uint32_t count;
    uint64_t end;
    ErrorCode error;
  } cases[] = {
      {"too many", shm::kMostFollowed + 1, EndAt(kThere), ErrorCode::kCorrupt},
      {"more than there are", UINT32_MAX, EndAt(kThere), ErrorCode::kCorrupt},
      {"itself", 1, EndAt(kBack), ErrorCode::kInvalidRequest},
      {"nobody's end", 1, EndAt(kThere) + 8, ErrorCode::kInvalidRequest},
      {"beyond the region", 1, UINT64_MAX, ErrorCode::kInvalidRequest},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.what);
    ASSERT_NO_FATAL_FAILURE(AddPairs());
    Follow(each.count, each.end);
    StartEnd(1, kBack, 1);
    ASSERT_TRUE(Fails(1, kBack));
    EXPECT_EQ(ErrorOf(1, kBack), each.error);
    EXPECT_TRUE(Fails(0, kBack));
    StartEnd(0, kThere, 1);
    StartEnd(1, kThere, 1);
    EXPECT_TRUE(Eventually([&] { return Done(1, kThere) == 1; }));
    Stop();
  }
}

// One receive named twice would be counted twice.
TEST_F(PairsTest, ASendFollowsAReceiveOnce) {
  ASSERT_NO_FATAL_FAILURE(AddPairs());
  Follow(2, EndAt(kThere));
  End(1, kBack).follows.ends[1] = EndAt(kThere);
  StartEnd(1, kBack, 1);
  ASSERT_TRUE(Fails(1, kBack));
  EXPECT_EQ(ErrorOf(1, kBack), ErrorCode::kInvalidRequest);
}

}  // namespace
}  // namespace ferry::daemon
