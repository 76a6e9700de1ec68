// Memory is registered with the NIC when it is first needed. The NIC may be slow to pin it, refuse
// it, or be at its limit: only transfers that need that memory wait, or fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>

#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kRegion = 2;
constexpr uint64_t kMessageBytes = 1 << 20;
constexpr int32_t kTag = 7;

shm::Location InRegion(uint32_t region, uint64_t offset) { return {region, 0, offset}; }

class RegistrationTest : public PlaneTest {
 protected:
  // Ranks 0 and 1 on node 0, rank 2 on node 1.
  void Start(const config::Options& options = FastOptions()) {
    ASSERT_NO_FATAL_FAILURE(PlaneTest::Start({2, 1}, options));
    pinned_ = gate(0).pinned;
    begun_ = gate(0).begun;
  }
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Start()); }
  // A failed test must not leave anybody waiting.
  void TearDown() override {
    for (const auto& gate : gates_) {
      gate->PinAtOnce();
    }
    removing_ = {};
    PlaneTest::TearDown();
  }

  // A second region of the rank. Returns its memory.
  std::byte* AddRegion(uint32_t rank, uint32_t id = kRegion, uint64_t bytes = kMessageBytes) {
    std::shared_ptr<Region> region = MakeRegion(id, bytes);
    std::byte* const base = region->mapping.base();
    region_ = region;
    const Status status = planes_[NodeOf(rank)]->AddRegion(kJob, rank, std::move(region));
    EXPECT_TRUE(status.ok()) << status.ToString();
    return base;
  }
  void RemoveRegion(uint32_t rank, uint32_t id = kRegion) {
    removing_ = std::async(std::launch::async, [this, rank, id] {
      planes_[NodeOf(rank)]->RemoveRegion(kJob, rank, id);
    });
  }
  bool HasRemoved() const {
    return removing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  struct Message : Passage {
    std::vector<std::byte> sent;
  };
  // A message from heap to heap; each pair of ranks has its own places.
  Message Begin(uint32_t from, uint32_t to, uint64_t size = kMessageBytes) {
    const std::vector<std::byte> sent = Pattern(size, from + to);
    std::memcpy(rank(from).heap() + to * kMessageBytes, sent.data(), size);
    return {PlaneTest::Begin(from, to, InHeap(to * kMessageBytes),
                             InHeap((4 + from) * kMessageBytes), size, kTag),
            sent};
  }
  void ExpectPassed(const Message& message) {
    ExpectEnd(message);
    EXPECT_EQ(std::memcmp(rank(message.to).heap() + (4 + message.from) * kMessageBytes,
                          message.sent.data(), message.sent.size()),
              0);
  }
  // From rank 0's second region to rank 2's heap, and back.
  Passage BeginFromRegion() {
    return PlaneTest::Begin(0, 2, InRegion(kRegion, 0), InHeap(0), kMessageBytes, kTag);
  }
  Passage BeginIntoRegion() {
    return PlaneTest::Begin(2, 0, InHeap(0), InRegion(kRegion, 0), kMessageBytes, kTag);
  }
  bool IsPending(const Message& message) {
    ProgressAll();
    return !rank(message.from).Test(message.send) && !rank(message.to).Test(message.receive);
  }
  void Pass(uint32_t from, uint32_t to) { ExpectPassed(Begin(from, to)); }

  // Rank 0's memory is being pinned, slowly, for a message to rank 2; the other ranks' memory is
  // pinned.
  Message BeginSlowly() {
    Pass(1, 2);
    Pass(2, 1);
    begun_ = gate(0).begun;
    pinned_ = gate(0).pinned;
    gate(0).pins_slowly = true;
    const Message message = Begin(0, 2);
    EXPECT_TRUE(Eventually([this] { return gate(0).pinning == 1; }));
    return message;
  }
  void ExpectOthersTalk() {
    Pass(1, 2);
    Pass(2, 1);
    Pass(0, 1);  // inside the node rank 0 needs no NIC
    Pass(1, 0);
    EXPECT_EQ(plane(0).Nic().provider, "net");  // the state is still reported
  }
  RegistrationStatistics Registered(uint32_t node) { return plane(node).Registered(); }

  uint32_t pinned_ = 0;  // on node 0
  uint32_t begun_ = 0;
  std::weak_ptr<const Region> region_;
  std::future<void> removing_;
};

// ---- When --------------------------------------------------------------------------------------

TEST_F(RegistrationTest, WhatStaysOnItsNodePinsNothing) {
  Pass(0, 1);
  Pass(1, 0);
  AddRegion(0);
  plane(0).RemoveRegion(kJob, 0, kRegion);
  EXPECT_EQ(gate(0).begun, begun_);
  EXPECT_EQ(Registered(0).entries, 0U);
}

TEST_F(RegistrationTest, MemoryIsRegisteredOnceAtFirstUse) {
  for (int i = 0; i < 3; ++i) {
    Pass(0, 2);
  }
  EXPECT_EQ(gate(0).begun, begun_ + 1);  // its own heap; the heap of rank 1 was not used
  for (const uint32_t node : {0U, 1U}) {
    const RegistrationStatistics registered = Registered(node);
    EXPECT_EQ(registered.entries, 1U);
    EXPECT_EQ(registered.bytes, kHeapBytes);
    EXPECT_EQ(registered.misses, 1U);
    EXPECT_EQ(registered.hits, 2U);
    EXPECT_EQ(registered.evictions + registered.refusals + registered.waiting, 0U);
  }
  Pass(2, 0);  // the same memory, in the other role
  EXPECT_EQ(gate(0).begun, begun_ + 1);
  EXPECT_EQ(Registered(0).hits, 3U);
}

TEST_F(RegistrationTest, OfALongRegionOnlyThePiecesInUse) {
  Stop();
  config::Options options = FastOptions();
  options.registration_piece_bytes = 2 << 20;
  ASSERT_NO_FATAL_FAILURE(Start(options));
  Pass(0, 2);
  EXPECT_EQ(Registered(0).bytes, 2U << 20);
  EXPECT_EQ(Registered(1).bytes, 2U << 20);
  // Crosses the border between two pieces, in both heaps.
  const std::vector<std::byte> sent = Pattern(3 << 20, 5);
  std::memcpy(rank(0).heap() + (1 << 20), sent.data(), sent.size());
  ExpectEnd(PlaneTest::Begin(0, 2, InHeap(1 << 20), InHeap((3 << 20) + 5), sent.size(), kTag));
  EXPECT_EQ(std::memcmp(rank(2).heap() + (3 << 20) + 5, sent.data(), sent.size()), 0);
  // Both pieces, instead of the one.
  EXPECT_TRUE(Eventually([this] { return Registered(0).bytes == 4U << 20; }));
  EXPECT_EQ(Registered(0).entries, 1U);
}

// ---- Slowly ------------------------------------------------------------------------------------

TEST_F(RegistrationTest, PinningHoldsUpNobodyElse) {
  const Message message = BeginSlowly();
  ExpectOthersTalk();
  EXPECT_TRUE(IsPending(message));
  EXPECT_EQ(Registered(0).waiting, 1U);
  gate(0).PinAtOnce();
  ExpectPassed(message);
  EXPECT_EQ(Registered(0).waiting, 0U);
}

TEST_F(RegistrationTest, WhatComesBehindItKeepsItsOrder) {
  const Message large = BeginSlowly();
  const Message small = Begin(0, 2, 8);  // of the same tag: it must not match first
  ExpectOthersTalk();
  EXPECT_TRUE(IsPending(large));
  EXPECT_FALSE(rank(2).Test(small.receive));
  gate(0).PinAtOnce();
  EXPECT_EQ(WaitTogether(2, large.receive), ErrorCode::kOk);
  EXPECT_EQ(rank(2).MessageBytes(large.receive), kMessageBytes);
  EXPECT_EQ(WaitTogether(2, small.receive), ErrorCode::kOk);
  EXPECT_EQ(rank(2).MessageBytes(small.receive), 8U);
}

TEST_F(RegistrationTest, AReceiverWaitsForItsMemoryToo) {
  Pass(0, 1);
  gate(1).pins_slowly = true;
  const Message message = Begin(1, 2);
  ASSERT_TRUE(Meanwhile([this] { return gate(1).pinning == 1; }));
  const RankReport report = plane(1).Inspect(kJob, 2);
  ASSERT_EQ(report.transfers.size(), 1U);
  EXPECT_STREQ(report.transfers[0].wants, "its memory to be registered with the network");
  EXPECT_TRUE(IsPending(message));
  const Message small = Begin(0, 2, 8);
  ExpectPassed(small);
  gate(1).PinAtOnce();
  ExpectPassed(message);
}

TEST_F(RegistrationTest, PeopleAreToldWhatTheNextCommandWaitsFor) {
  const Message message = BeginSlowly();
  ASSERT_TRUE(Eventually([this] { return plane(0).Inspect(kJob, 0).held_ns != 0; }));
  EXPECT_STREQ(plane(0).Inspect(kJob, 0).held_for, "its memory to be registered with the network");
  gate(0).PinAtOnce();
  ExpectPassed(message);
}

TEST_F(RegistrationTest, PinningMayTakeLongerThanAnOperation) {
  Stop();
  ASSERT_NO_FATAL_FAILURE(Start(FastOptions(200)));
  gate(0).pins_slowly = true;
  const Message message = Begin(0, 2);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(600);
  ASSERT_TRUE(Eventually([&] { return std::chrono::steady_clock::now() > end; }));
  EXPECT_TRUE(IsPending(message));
  EXPECT_TRUE(told_.violations.empty());
  gate(0).PinAtOnce();
  ExpectPassed(message);
}

TEST_F(RegistrationTest, UnpinningHoldsUpNobodyElse) {
  AddRegion(0);
  ExpectEnd(BeginFromRegion());
  Pass(0, 2);
  Pass(1, 2);
  pinned_ = gate(0).pinned;
  gate(0).pins_slowly = true;
  RemoveRegion(0);
  ASSERT_TRUE(Eventually([this] { return gate(0).unpinning == 1; }));
  ExpectOthersTalk();
  Pass(0, 2);
  EXPECT_FALSE(HasRemoved());
  gate(0).PinAtOnce();
  removing_.wait();
  EXPECT_EQ(gate(0).pinned, pinned_ - 1);
  EXPECT_TRUE(region_.expired());
}

// ---- Ends in the middle ------------------------------------------------------------------------

TEST_F(RegistrationTest, ARegionThatIsFreedMeanwhileIsUnpinnedAndItsMessageFails) {
  AddRegion(0);
  Pass(0, 2);
  Pass(2, 0);
  pinned_ = gate(0).pinned;
  gate(0).pins_slowly = true;
  const Passage passage = BeginFromRegion();
  ASSERT_TRUE(Eventually([this] { return gate(0).pinning == 1; }));
  RemoveRegion(0);
  ExpectEnd(passage, ErrorCode::kInvalidBuffer);
  EXPECT_FALSE(HasRemoved()) << "the NIC is at it still";
  EXPECT_FALSE(region_.expired());
  gate(0).PinAtOnce();
  removing_.wait();
  EXPECT_EQ(gate(0).pinned, pinned_);
  EXPECT_TRUE(region_.expired());
  Pass(0, 2);
}

TEST_F(RegistrationTest, ADestinationThatIsFreedMeanwhileFailsItsMessage) {
  AddRegion(0);
  Pass(0, 2);
  gate(0).pins_slowly = true;
  const Passage passage = BeginIntoRegion();
  ASSERT_TRUE(Meanwhile([this] { return gate(0).pinning == 1; }));
  RemoveRegion(0);
  ExpectEnd(passage, ErrorCode::kInvalidBuffer);
  gate(0).PinAtOnce();
  removing_.wait();
  Pass(2, 0);
}

TEST_F(RegistrationTest, OtherMemoryUnderTheSameNumberIsRegisteredAnew) {
  for (uint32_t turn = 0; turn < 3; ++turn) {
    std::byte* const base = AddRegion(0);
    const std::vector<std::byte> sent = Pattern(kMessageBytes, turn);
    std::memcpy(base, sent.data(), sent.size());
    ExpectEnd(BeginFromRegion());
    EXPECT_EQ(std::memcmp(rank(2).heap(), sent.data(), sent.size()), 0) << turn;
    EXPECT_EQ(gate(0).begun, begun_ + turn + 1);
    plane(0).RemoveRegion(kJob, 0, kRegion);
    EXPECT_TRUE(region_.expired());
    EXPECT_EQ(gate(0).pinned, pinned_);
  }
}

TEST_F(RegistrationTest, ARankThatDiesMeanwhileLeavesNothingPinned) {
  AddRegion(0);
  Pass(1, 2);
  Pass(2, 1);
  pinned_ = gate(0).pinned;
  gate(0).pins_slowly = true;
  const uint32_t send = rank(0).SendFrom(2, kTag, InRegion(kRegion, 0), kMessageBytes);
  EXPECT_NE(send, 0U);
  ASSERT_TRUE(Eventually([this] { return gate(0).pinning == 1; }));
  RemoveRank(0);  // though the NIC is still pinning
  EXPECT_FALSE(region_.expired()) << "the NIC writes into memory that is gone";
  Pass(1, 2);
  gate(0).PinAtOnce();
  EXPECT_TRUE(Eventually([this] { return region_.expired(); }));
  EXPECT_TRUE(Eventually([this] { return gate(0).pinned == pinned_; }));
  EXPECT_TRUE(Eventually([this] { return Registered(0).entries == 1; }));  // rank 1's heap
}

TEST_F(RegistrationTest, ADeadRanksMemoryIsNotPinnedForNobody) {
  const Message first = BeginSlowly();
  AddRegion(1);
  (void)rank(1).SendFrom(2, kTag, InRegion(kRegion, 0), kMessageBytes);
  ASSERT_TRUE(Eventually([this] { return Registered(0).waiting == 2; }));
  RemoveRank(1);
  const uint32_t begun = gate(0).begun;
  gate(0).PinAtOnce();
  ExpectPassed(first);
  EXPECT_TRUE(Eventually([this] { return region_.expired(); }));
  EXPECT_EQ(gate(0).begun, begun);
}

TEST_F(RegistrationTest, ADyingRankDoesNotWaitForUnpinning) {
  Pass(0, 2);
  Pass(1, 2);
  gate(0).pins_slowly = true;
  RemoveRank(0);
  EXPECT_TRUE(Eventually([this] { return gate(0).unpinning == 1; }));
  Pass(1, 2);
}

TEST_F(RegistrationTest, AnEndOfTheDaemonUndoesIt) {
  const uint32_t before = pinned_;
  AddRegion(0);
  gate(0).pins_slowly = true;
  (void)rank(0).SendFrom(2, kTag, InRegion(kRegion, 0), kMessageBytes);
  ASSERT_TRUE(Eventually([this] { return gate(0).pinning == 1; }));
  RemoveRank(0);
  RemoveRank(1);
  const std::shared_ptr<Gate> gate = gates_[0];
  std::future<void> end = std::async(std::launch::async, [this] { planes_[0].reset(); });
  EXPECT_EQ(gate->pinning, 1U);
  gate->PinAtOnce();
  end.get();
  EXPECT_TRUE(region_.expired());
  EXPECT_EQ(gate->pinned, before);
}

// ---- Staging memory ----------------------------------------------------------------------------

TEST_F(RegistrationTest, StagingMemoryIsPinnedWithoutHoldingUpAnybody) {
  Pass(0, 2);
  Pass(1, 2);
  Pass(2, 1);
  gate(0).pins_slowly = true;
  const std::vector<std::byte> sent = Pattern(kMessageBytes, 9);
  const Passage passage =
      PlaneTest::Begin(0, 2, Private(sent.data()), InHeap(0), kMessageBytes, kTag);
  ASSERT_TRUE(Meanwhile([this] { return gate(0).pinning == 1; }));
  ExpectOthersTalk();
  EXPECT_FALSE(rank(0).Test(passage.send));
  gate(0).PinAtOnce();
  ExpectEnd(passage);
  EXPECT_EQ(std::memcmp(rank(2).heap(), sent.data(), sent.size()), 0);
}

// ---- Refused -----------------------------------------------------------------------------------

TEST_F(RegistrationTest, BothEndsAreToldThatTheNicRefuses) {
  for (const uint32_t node : {1U, 0U}) {
    gate(node).refuses = true;
    ExpectEnd(Begin(node, 2), ErrorCode::kOutOfMemory);  // from another heap each time
    EXPECT_EQ(Registered(node).refusals, 1U);
    Pass(0, 1);
    gate(node).refuses = false;
  }
  EXPECT_EQ(Registered(0).entries, 1U);
  const std::vector<std::string> refusals = told_.TakeRefusals();
  ASSERT_EQ(refusals.size(), 2U);
  EXPECT_THAT(refusals[1], testing::AllOf(testing::HasSubstr("region 1 of rank 0 of job job"),
                                          testing::HasSubstr("the network refuses 8388608 bytes"),
                                          testing::HasSubstr("the gate has no room")));
  Pass(0, 2);
}

// ---- Limits ------------------------------------------------------------------------------------

class RegistrationLimitTest : public RegistrationTest {
 protected:
  void SetUp() override {}
  // Only node 0 has these limits.
  void StartWith(uint64_t entries, uint64_t bytes, uint64_t timeout_ms = 10'000) {
    amend_options_ = [=](uint32_t node, config::Options& options) {
      options.registration_cache_entries = node == 0 ? entries : 0;
      options.registration_cache_bytes = node == 0 ? bytes : 0;
    };
    ASSERT_NO_FATAL_FAILURE(Start(FastOptions(timeout_ms)));
  }
  // A message that is announced and not received, so that its memory is in use. The test posts the
  // receive later.
  uint32_t SentRts(uint32_t from) {
    const uint32_t send =
        rank(from).SendFrom(2, 100 + static_cast<int32_t>(from), InHeap(0), kMessageBytes);
    EXPECT_TRUE(Eventually([this] {
      rank(2).Progress();
      return rank(2).Statistic(shm::Statistic::kUnexpectedMessages) != 0;
    }));
    return send;
  }
  void ReceiveRts(uint32_t from, uint32_t send) {
    const uint32_t receive =
        rank(2).Receive(static_cast<int32_t>(from), 100 + static_cast<int32_t>(from),
                        InHeap(7 * kMessageBytes), kMessageBytes);
    ExpectEnd({from, 2, send, receive});
  }
  bool IsFull() { return Registered(0).waiting != 0; }
};

TEST_F(RegistrationLimitTest, WhatWasUsedLongestAgoGoes) {
  ASSERT_NO_FATAL_FAILURE(StartWith(1, 0));
  for (int i = 0; i < 3; ++i) {
    Pass(0, 2);
    Pass(1, 2);
    Pass(2, 1);
  }
  const RegistrationStatistics registered = Registered(0);
  EXPECT_EQ(registered.entries, 1U);
  EXPECT_EQ(registered.entries_limit, 1U);
  EXPECT_EQ(registered.bytes, kHeapBytes);
  EXPECT_EQ(registered.misses, 6U);
  EXPECT_EQ(registered.evictions, 5U);
  EXPECT_EQ(registered.hits, 3U);
  EXPECT_TRUE(Eventually([this] { return gate(0).pinned == pinned_ + 1; }));
}

TEST_F(RegistrationLimitTest, SoDoesWhatTakesTooManyBytes) {
  ASSERT_NO_FATAL_FAILURE(StartWith(0, 2 * kHeapBytes));
  AddRegion(0);
  Pass(0, 2);
  Pass(1, 2);
  Pass(0, 2);
  EXPECT_EQ(Registered(0).evictions, 0U);
  ExpectEnd(BeginIntoRegion());
  EXPECT_EQ(Registered(0).evictions, 1U);
  EXPECT_EQ(Registered(0).bytes, kHeapBytes + kMessageBytes);
  Pass(0, 2);
  EXPECT_EQ(Registered(0).misses, 3U) << "the newer one went";
}

// A node's own RTSs leave room for what it is to receive: if they took all of it, it would wait
// for ever.
TEST_F(RegistrationLimitTest, RtsLeaveRoomForWhatArrives) {
  amend_options_ = [](uint32_t, config::Options& options) {
    options.registration_cache_entries = 2;
    options.registration_piece_bytes = kMessageBytes;
  };
  ASSERT_NO_FATAL_FAILURE(Start());
  std::vector<std::pair<uint32_t, uint32_t>> requests;  // rank, request
  for (const auto& [from, to] : {std::pair<uint32_t, uint32_t>{0, 2}, {2, 0}}) {
    for (uint64_t i = 0; i < 4; ++i) {
      requests.emplace_back(
          from, rank(from).SendFrom(to, kTag, InHeap(i * kMessageBytes), kMessageBytes));
      requests.emplace_back(to, rank(to).Receive(static_cast<int32_t>(from), kTag,
                                                 InHeap((4 + i) * kMessageBytes), kMessageBytes));
    }
  }
  for (const auto& [waiter, request] : requests) {
    EXPECT_EQ(WaitTogether(waiter, request), ErrorCode::kOk);
  }
  EXPECT_TRUE(told_.TakeRefusals().empty());
  EXPECT_GT(Registered(0).evictions, 0U);
  EXPECT_GT(Registered(1).evictions, 0U);
}

TEST_F(RegistrationLimitTest, WhatIsInUseStaysAndOthersWait) {
  ASSERT_NO_FATAL_FAILURE(StartWith(1, 0));
  const uint32_t announced = SentRts(0);
  const Message message = Begin(1, 2);
  ASSERT_TRUE(Eventually([this] { return IsFull(); }));
  Pass(0, 1);
  EXPECT_TRUE(IsPending(message));
  ASSERT_TRUE(Eventually([this] { return plane(0).Inspect(kJob, 1).held_ns != 0; }));
  EXPECT_STREQ(plane(0).Inspect(kJob, 1).held_for, "room in the registration cache");
  EXPECT_EQ(Registered(0).evictions, 0U);
  ReceiveRts(0, announced);
  ExpectPassed(message);
  EXPECT_EQ(Registered(0).evictions, 1U);
}

TEST_F(RegistrationLimitTest, AReceiverWaitsForRoomToo) {
  ASSERT_NO_FATAL_FAILURE(StartWith(1, 0));
  const uint32_t announced = SentRts(0);
  const Message message = Begin(2, 1);
  ASSERT_TRUE(Meanwhile([this] { return IsFull(); }));
  EXPECT_TRUE(IsPending(message));
  ReceiveRts(0, announced);
  ExpectPassed(message);
}

TEST_F(RegistrationLimitTest, NothingFreeInTimeIsAnErrorForThatMessageAlone) {
  ASSERT_NO_FATAL_FAILURE(StartWith(1, 0, 1500));
  const uint32_t announced = SentRts(0);
  ExpectEnd(Begin(1, 2), ErrorCode::kLimitExceeded);
  ExpectEnd(Begin(2, 1), ErrorCode::kLimitExceeded);
  EXPECT_TRUE(told_.violations.empty());
  const std::vector<std::string> refusals = told_.TakeRefusals();
  ASSERT_EQ(refusals.size(), 2U);
  EXPECT_THAT(refusals[0], testing::AllOf(testing::HasSubstr("region 1 of rank 1 of job job"),
                                          testing::HasSubstr("registration_cache_entries is 1,"),
                                          testing::HasSubstr("nothing became free in 1500 ms")));
  ReceiveRts(0, announced);
  Pass(1, 2);
}

TEST_F(RegistrationLimitTest, AMessageThatNeverFitsFailsAtOnce) {
  ASSERT_NO_FATAL_FAILURE(StartWith(0, 512 << 10));
  ExpectEnd(Begin(0, 2), ErrorCode::kLimitExceeded);
  ExpectEnd(Begin(2, 0), ErrorCode::kLimitExceeded);
  const std::vector<std::string> refusals = told_.TakeRefusals();
  ASSERT_EQ(refusals.size(), 2U);
  EXPECT_THAT(refusals[0],
              testing::AllOf(testing::HasSubstr("1048576 bytes must be registered at once"),
                             testing::HasSubstr("registration_cache_bytes is 524288")));
  // Evicts no more than it needs.
  const Message message = Begin(0, 2, 256 << 10);
  ExpectPassed(message);
  EXPECT_EQ(Registered(0).bytes, 256U << 10);
}

TEST_F(RegistrationLimitTest, ADeadRankGivesUpItsPlaceInTheQueue) {
  ASSERT_NO_FATAL_FAILURE(StartWith(1, 0));
  const uint32_t announced = SentRts(0);
  (void)rank(1).SendFrom(2, kTag, InHeap(0), kMessageBytes);
  ASSERT_TRUE(Eventually([this] { return IsFull(); }));
  RemoveRank(1);
  EXPECT_EQ(Registered(0).waiting, 0U);
  AddRegion(0);
  const Passage passage = BeginFromRegion();
  ASSERT_TRUE(Eventually([this] { return IsFull(); }));
  ReceiveRts(0, announced);
  ExpectEnd(passage);
}

TEST_F(RegistrationLimitTest, WhatAPeerMayStillReadStaysForAWhile) {
  ASSERT_NO_FATAL_FAILURE(StartWith(1, 0, 2000));
  SentRts(0);
  plane(0).RankEnded(kJob, 2, ErrorCode::kPeerDied);  // its daemon may be reading
  const uint64_t begun = gate(0).begun;
  EXPECT_EQ(Registered(0).entries, 1U);
  plane(0).RemoveRegion(kJob, 0, kHeapRegion);
  EXPECT_EQ(Registered(0).entries, 1U);
  EXPECT_EQ(gate(0).pinned, pinned_ + 1);
  EXPECT_TRUE(Eventually([this] { return Registered(0).entries == 0; }));
  EXPECT_TRUE(Eventually([this] { return gate(0).pinned == pinned_; }));
  EXPECT_EQ(gate(0).begun, begun);
}

}  // namespace
}  // namespace ferry::daemon
