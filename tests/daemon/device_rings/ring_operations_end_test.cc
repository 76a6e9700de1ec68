// Rings of devices: what ends their operations, and what bounds them.
#include <cstring>
#include <thread>
#include <vector>

#include "tests/daemon/device_rings/ring_operations_fixture.h"
#include "tests/internode/core/forged_packets.h"

namespace ferry::daemon {
namespace {

TEST_F(RingOperationsTest, ARankThatDiesEndsWhatIsUnderWayWithIt) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  ASSERT_NO_FATAL_FAILURE(Start({2, 2}));
  MakeRing();
  const ferry_device_u64 get = ferry_device_ring_get(view_, Here(), There(kFar, 0), 100, 1);
  for (int i = 0; i < 10; ++i) {
    PutSilently(kFar, 0, 1);
  }
  PutSilently(kNear, 0, 3);
  ASSERT_TRUE(Eventually([&] { return ring_->requests() == 12; }));
  EXPECT_EQ(shm::LoadAcquire(ring_->layout()->over), 0U);
  plane(0).RankEnded(kJob, kFar, ErrorCode::kPeerDied);
  EXPECT_EQ(ring_->Answer(1, get), ErrorCode::kPeerDied);
  EXPECT_EQ(Quiet(), ErrorCode::kPeerDied);
  EXPECT_EQ(Put(kFar, 0, 100), ErrorCode::kPeerDied);  // from now on they fail at once
  EXPECT_EQ(Get(kFar, 0, 100'000), ErrorCode::kPeerDied);
  EXPECT_EQ(Add(kFar, 0, 1), ErrorCode::kPeerDied);
  EXPECT_EQ(Word(kNear, 0), 3U);
  EXPECT_EQ(Add(kNear, 0, 1), ErrorCode::kOk);
}

TEST_F(RingOperationsTest, ARankOfTheNodeThatIsGoneFailsByName) {
  StartRanks();
  ferry_device_ring_put(view_, There(kNear, 0), Here(), 2 << 20, 0, kSilent);
  plane(0).RankEnded(kJob, kNear, ErrorCode::kPeerDied);
  RemoveRank(kNear);
  EXPECT_EQ(Put(kNear, 0, 8), ErrorCode::kPeerDied);
  EXPECT_EQ(Put(kNear, 0, 100'000), ErrorCode::kPeerDied);
  EXPECT_EQ(Get(kNear, 0, 8), ErrorCode::kPeerDied);
  EXPECT_EQ(Add(kNear, 0, 8), ErrorCode::kPeerDied);
  EXPECT_EQ(Add(kFar, 0, 1), ErrorCode::kOk);
}

TEST_F(RingOperationsTest, ARankThatDiesEndsLongOnes) {
  for (const bool is_put : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(Start({2, 1}));
    MakeRing();
    gate(is_put ? 1 : 0).closed = true;
    const ferry_device_u64 number =
        is_put ? ferry_device_ring_put(view_, There(kFar, 0), Here(), 1 << 20, 0, 1)
               : ferry_device_ring_get(view_, Here(), There(kFar, 0), 1 << 20, 1);
    ASSERT_TRUE(Eventually([&] { return gate(is_put ? 1 : 0).held != 0; }));
    plane(0).RankEnded(kJob, kFar, ErrorCode::kPeerDied);
    (void)plane(0).Inspect(kJob, 0);  // it has heard of it
    gate(is_put ? 1 : 0).closed = false;
    EXPECT_EQ(ring_->Answer(1, number), ErrorCode::kPeerDied);
    EXPECT_EQ(Quiet(), ErrorCode::kOk);  // the answer has told it
    Stop();
  }
}

// Operations lost with the link are reported, and no signal comes without its data.
TEST_F(RingOperationsTest, ACutLinkEndsWhatIsUnderWayAndTheNextLifeCarriesOn) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  StartRanks();
  PutSilently(kFar, 0, 2);
  ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(Word(kFar, 0)) == 2; }));
  Cut();
  EXPECT_EQ(Quiet(), ErrorCode::kLinkDown);
  ASSERT_NO_FATAL_FAILURE(Reconnect(1));
  ReturnNodes();
  PutSilently(kFar, 8, 1, kInOrder);
  EXPECT_EQ(Add(kFar, 0, 4), ErrorCode::kOk);
  EXPECT_EQ(Quiet(), ErrorCode::kLinkDown);
  EXPECT_EQ(Word(kFar, 0), 6U);
  EXPECT_EQ(Word(kFar, 8), 0U);
}

TEST_F(RingOperationsTest, ADestroyedRingHasDoneWhatItWasAskedFor) {
  StartRanks();
  constexpr uint64_t kBytes = 1 << 20;
  const std::vector<std::byte> data = Pattern(kBytes, 2);
  std::memcpy(own(), data.data(), kBytes);
  gate(1).closed = true;
  ferry_device_ring_put(view_, There(kFar, 64), Here(), kBytes, 0, kSilent);
  PutSilently(kFar, 0, 1, kInOrder);
  ring_->Change();
  ASSERT_TRUE(Eventually([&] { return gate(1).held != 0 && ring_->requests() == 2; }));
  EXPECT_NE(shm::LoadAcquire(ring_->words().life_seen), ring_->words().life);
  gate(1).closed = false;
  ASSERT_TRUE(ring_->IsSettled());
  EXPECT_EQ(std::memcmp(rank(kFar).heap() + 64, data.data(), kBytes), 0);
  EXPECT_TRUE(Eventually([&] { return shm::LoadAcquire(Word(kFar, 0)) == 1; }));
  EXPECT_EQ(ring_->errors(), 0U);
  ExpectNothingLeft();
}

// The rank's own memory goes while bytes are on their way to it.
TEST_F(RingOperationsTest, ARegionThatGoesFailsLongGetsIntoIt) {
  StartRanks();
  const auto other = AddRegion(0, kRegion + 1);
  const ferry_device_place into = {kRegion + 1, 0, 0};
  gate(0).closed = true;
  const ferry_device_u64 get = ferry_device_ring_get(view_, into, There(kFar, 0), 500'000, 2);
  ASSERT_TRUE(Eventually([&] { return gate(0).held != 0; }));
  std::thread remove([&] { plane(0).RemoveRegion(kJob, 0, kRegion + 1); });
  EXPECT_TRUE(Eventually([&] {  // it has begun
    return ring_->Answer(3, ferry_device_ring_put(view_, There(kNear, 0), into, 8, 0, 3)) ==
           ErrorCode::kInvalidBuffer;
  }));
  gate(0).closed = false;
  remove.join();
  EXPECT_EQ(ring_->Answer(2, get), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(Add(kFar, 0, 1), ErrorCode::kOk);
  ExpectNothingLeft();
}

// A put waits until its bytes are pinned, and a signal behind it.
TEST_F(RingOperationsTest, ARegionThatGoesFailsPutsThatWaitForIt) {
  StartRanks();
  const auto other = AddRegion(0, kRegion + 1);
  gate(0).pins_slowly = true;
  ferry_device_ring_put(view_, There(kFar, 64), {kRegion + 1, 0, 0}, 500'000, 0, kSilent);
  PutSilently(kFar, 0, 1, kInOrder);
  ASSERT_TRUE(Eventually([&] { return gate(0).pinning != 0; }));
  std::thread remove([&] { plane(0).RemoveRegion(kJob, 0, kRegion + 1); });
  EXPECT_EQ(Quiet(), ErrorCode::kInvalidBuffer);
  gate(0).PinAtOnce();
  remove.join();
  EXPECT_EQ(Word(kFar, 0), 0U);
  EXPECT_EQ(ring_->errors(), 2U);
  ExpectNothingLeft();
}

TEST_F(RingOperationsTest, ARegionThatGoesFailsShortGetsIntoIt) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  StartRanks();
  const auto other = AddRegion(0, kRegion + 1);
  const ferry_device_u64 get =
      ferry_device_ring_get(view_, {kRegion + 1, 0, 0}, There(kFar, 0), 100, 1);
  ASSERT_TRUE(Eventually([&] { return IsStalled(); }));
  plane(0).RemoveRegion(kJob, 0, kRegion + 1);
  (void)plane(1).Faults(true);
  EXPECT_EQ(ring_->Answer(1, get), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(Add(kFar, 0, 1), ErrorCode::kOk);
}

// The ring's memory goes under what it has asked for.
TEST_F(RingOperationsTest, ARingThatGoesIsToldNothingMore) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  StartRanks();
  const auto other = AddRegion(0, kRegion + 1);
  std::memset(rank(kFar).heap(), 1, 100);
  ferry_device_ring_get(view_, {kRegion + 1, 0, 0}, There(kFar, 0), 100, kSilent);
  ASSERT_TRUE(Eventually([&] { return IsStalled(); }));
  plane(0).RemoveRegion(kJob, 0, kRegion);
  EXPECT_EQ(ferry_device_ring_quiet(view_), static_cast<int>(ErrorCode::kInvalidBuffer));
  (void)plane(1).Faults(true);
  TestRing again(rank(0), other, 1, 64 << 10);
  ASSERT_EQ(again.error(), ErrorCode::kOk);
  EXPECT_EQ(again.Ask(Request(FERRY_DEVICE_RING_NOP, 0, 0, 4)), ErrorCode::kOk);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(other->mapping.base()[i], std::byte{0}) << i;
  }
}

// The other daemon keeps answers that its link does not take: so there are not many at a time.
TEST_F(RingOperationsTest, GetsWaitForABoundedNumberOfAnswers) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  StartRanks();
  constexpr uint64_t kGets = 100, kBytes = 8192, kLast = 1 << 20;
  for (uint64_t i = 0; i < kGets; ++i) {
    ferry_device_ring_get(view_, Here(), There(kFar, 0), kBytes, kSilent);
  }
  PutSilently(kFar, kLast, 7);  // held with the last gets
  ASSERT_TRUE(Eventually([&] { return ring_->requests() == kGets + 1; }));
  AddByLane(kLast + 8);  // leaves after all that was not held
  ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(Word(kFar, kLast + 8)) == 1; }));
  EXPECT_EQ(shm::LoadAcquire(Word(kFar, kLast)), 0U);
  (void)plane(1).Faults(true);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(Word(kFar, kLast), 7U);
}

// So its limits hold.
TEST_F(RingOperationsTest, ARingThatIsMadeAgainAtOnceEndsFirst) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  StartRanks();
  TestRing other(rank(0), AddRegion(0, kRegion + 1), 1);
  ASSERT_EQ(other.error(), ErrorCode::kOk);
  PutSilently(kFar, 0, 2);
  ASSERT_TRUE(Eventually([&] { return IsStalled(); }));
  ring_->Change();
  ring_->Change();
  EXPECT_EQ(other.Ask(Request(FERRY_DEVICE_RING_NOP, 0, 0, 4)), ErrorCode::kOk);
  EXPECT_NE(shm::LoadAcquire(ring_->words().life_seen), ring_->words().life);
  (void)plane(1).Faults(true);
  EXPECT_EQ(ring_->error(), ErrorCode::kOk);
}

// Answers have the request's number above 16 bits of error.
TEST_F(RingOperationsTest, AnErrorOfAnotherDaemonThatIsNoneIsCorrupt) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  StartRanks();
  const ferry_device_u64 number = ferry_device_ring_atomic(
      view_, There(kFar, 0), FERRY_DEVICE_RING_ADD, 8, 1, 0, 0, /*completion=*/0);
  ASSERT_TRUE(Eventually([&] { return IsStalled(); }));
  progress::PacketHeader header = ForgedHeader(1, 0, progress::PacketKind::kOneSidedDone);
  header.source = kFar;
  progress::WireOneSidedDone done{};
  done.number = 1;
  done.error = -5;
  done.stream = 1;
  header.body_bytes = sizeof(done);
  ASSERT_NO_FATAL_FAILURE(SayAsStranger(plane(0), header, BytesOf(done)));
  EXPECT_EQ(ring_->Answer(0, number), ErrorCode::kCorrupt);
}

// No more is taken out of the ring than may be under way.
TEST_F(RingOperationsTest, TooMuchUnderWayWaitsInTheRing) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  StartRanks();
  constexpr uint64_t kPuts = 6000, kMost = 4096;
  std::thread device([&] {
    for (uint64_t i = 1; i <= kPuts; ++i) {
      PutSilently(kFar, 0, i);
    }
  });
  EXPECT_TRUE(Eventually([&] {
    return ring_->requests() == kMost && ferry_device_load_relaxed(view_.producers) > kMost + 1;
  }));
  for (int i = 0; i < 2; ++i) {
    (void)plane(0).Inspect(kJob, 0);  // between these it has looked at what waits
  }
  EXPECT_EQ(ring_->requests(), kMost);
  // All may be taken before the far node says anything: what does not stall yet is not released.
  EXPECT_TRUE(Eventually([&] { return IsStalled(); }));
  (void)plane(1).Faults(true);
  const bool is_all_taken = Eventually([&] { return ring_->requests() == kPuts; });
  if (!is_all_taken) {
    plane(0).RemoveRegion(kJob, 0, kRegion);  // or the device waits for room for ever
  }
  device.join();
  ASSERT_TRUE(is_all_taken);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(Word(kFar, 0), kPuts);
}

}  // namespace
}  // namespace ferry::daemon
