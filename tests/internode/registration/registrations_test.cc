#include "internode/registration/registrations.h"

#include <gtest/gtest.h>

#include <semaphore>
#include <string>
#include <vector>

#include "shm/segment.h"
#include "tests/internode/core/fake_transport.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kTimeoutNs = 1000;
constexpr uint64_t kRegionBytes = 64 << 10;

class RegistrationsTest : public testing::Test {
 protected:
  void Start(const progress::RegistrationCache::Limits& limits,
             uint64_t piece_bytes = kRegionBytes) {
    progress::RegistrationOptions options;
    options.limits = limits;
    options.piece_bytes = piece_bytes;
    options.timeout_ns = kTimeoutNs;
    options.on_refused = [this](const std::string& text) { refusals_.push_back(text); };
    registrations_ = std::make_unique<progress::Registrations>(*registrar_, options);
  }
  void SetUp() override { Start({}); }

  progress::ClaimableRegion MakeRegion(uint64_t number, uint64_t allocation = 0) {
    const UniqueFd fd = std::move(*shm::CreateSegment("test-region", kRegionBytes));
    auto mapping = std::make_shared<shm::Mapping>(std::move(*shm::MapSegment(fd.get(), 0)));
    progress::ClaimableRegion region;
    region.base = mapping->base();
    region.size_bytes = mapping->size_bytes();
    region.identity = {number, allocation};
    region.name = "region " + std::to_string(number);
    region.keep_alive = std::move(mapping);
    return region;
  }
  ErrorCode Ask(const progress::ClaimableRegion& region, progress::Claim* claim,
                uint64_t offset = 0, uint64_t bytes = 100,
                progress::UseFor use = progress::UseFor::kTransfer) {
    return registrations_->Hold(region, offset, bytes, use, now_ns_, claim);
  }
  // Waits until the registrar has nothing left to report.
  void Collect() {
    while (registrar_->pending() != 0) {
      done_.acquire();
      registrar_->Collect();
    }
    registrations_->Advance(now_ns_);
  }
  void Hold(const progress::ClaimableRegion& region, progress::Claim* claim, uint64_t offset = 0,
            uint64_t bytes = 100) {
    if (Ask(region, claim, offset, bytes) == ErrorCode::kWouldBlock) {
      Collect();
    }
    EXPECT_EQ(Ask(region, claim, offset, bytes), ErrorCode::kOk);
    EXPECT_TRUE(claim->held());
  }
  bool TryRetire(const progress::ClaimableRegion& region, uint64_t deadline_ns = UINT64_MAX) {
    return registrations_->TryRetire(region, now_ns_, deadline_ns, nullptr);
  }
  progress::RegistrationStatistics Statistics() const { return registrations_->Statistics(); }

  uint64_t now_ns_ = 10'000;
  std::vector<std::string> refusals_;
  std::counting_semaphore<> done_{0};
  // Declared in the order in which the progress thread's core has them.
  std::unique_ptr<progress::Registrations> registrations_;
  FakeTransport transport_;
  std::unique_ptr<progress::Registrar> registrar_ =
      std::make_unique<progress::Registrar>(transport_, [this] { done_.release(); });
};

TEST_F(RegistrationsTest, AClaimWaitsUntilItsMemoryIsPinned) {
  const progress::ClaimableRegion region = MakeRegion(1);
  progress::Claim claim;
  EXPECT_EQ(Ask(region, &claim), ErrorCode::kWouldBlock);
  EXPECT_TRUE(claim.waiting());
  EXPECT_FALSE(claim.held());
  const uint64_t changes = registrations_->changes();
  Collect();
  EXPECT_NE(registrations_->changes(), changes);
  EXPECT_TRUE(claim.held());
  EXPECT_EQ(Ask(region, &claim), ErrorCode::kOk);
  EXPECT_EQ(claim.RemoteAddress(region.base + 10), 10U);
}

TEST_F(RegistrationsTest, WhereNothingIsPinnedAClaimIsServedAtOnce) {
  transport_.PinNothing();
  registrar_ = std::make_unique<progress::Registrar>(transport_, [this] { done_.release(); });
  Start({});
  const progress::ClaimableRegion region = MakeRegion(1);
  progress::Claim claim, refused;
  EXPECT_EQ(Ask(region, &claim), ErrorCode::kOk);
  EXPECT_EQ(transport_.regions(), 1U);
  transport_.RefuseMemory();
  EXPECT_EQ(Ask(MakeRegion(2), &refused), ErrorCode::kLimitExceeded);
  EXPECT_EQ(refusals_.size(), 1U);
  claim.Drop();
  EXPECT_TRUE(TryRetire(region));
  EXPECT_EQ(transport_.regions(), 0U);
}

TEST_F(RegistrationsTest, TheSecondOneIsServedAtOnce) {
  const progress::ClaimableRegion region = MakeRegion(1);
  progress::Claim first, second;
  Hold(region, &first);
  EXPECT_EQ(Ask(region, &second, 5000, 1000), ErrorCode::kOk);
  EXPECT_EQ(first.key(), second.key());
  EXPECT_EQ(Statistics().hits, 1U);
  EXPECT_EQ(Statistics().misses, 1U);
}

// Memory is freed and mapped anew: the same bytes stand for it here.
TEST_F(RegistrationsTest, OtherMemoryAtTheSameAddressGetsAnotherKey) {
  const progress::ClaimableRegion old = MakeRegion(1);
  progress::ClaimableRegion anew = old;
  anew.identity.region = 2;
  progress::Claim claim;
  Hold(old, &claim);
  const uint64_t key = claim.key();
  claim.Drop();
  EXPECT_EQ(Ask(anew, &claim), ErrorCode::kWouldBlock) << "a stale hit";
  Collect();
  EXPECT_NE(claim.key(), key);
  EXPECT_EQ(Statistics().stale, 1U);
  EXPECT_EQ(transport_.regions(), 1U) << "the stale one is not unpinned";
}

// The region stays: that of all memory of a process, say.
TEST_F(RegistrationsTest, WhatIsForgottenIsUnpinnedBeforeMoreIsPinned) {
  Start({1, 0});  // nor does it take the room
  progress::ClaimableRegion anew = MakeRegion(1);
  progress::ClaimableRegion old = anew;
  old.keep_alive = std::make_shared<std::shared_ptr<const void>>(anew.keep_alive);
  const std::weak_ptr<const void> pinned = old.keep_alive;
  bool was_unpinned = false;
  anew.pin = [&](std::byte* base, uint64_t bytes) {
    was_unpinned = pinned.expired();
    return transport_.PrepareMemory(base, bytes, transport::Access::kRemoteRead);
  };
  progress::Claim claim;
  Hold(old, &claim);
  claim.Drop();
  old.keep_alive.reset();
  const auto begin = reinterpret_cast<uintptr_t>(old.base);
  registrations_->Forget(old, begin, begin + 1);
  EXPECT_EQ(Ask(anew, &claim), ErrorCode::kWouldBlock);
  EXPECT_FALSE(claim.wants_room());
  Collect();
  EXPECT_TRUE(claim.held());
  EXPECT_TRUE(was_unpinned);
}

// Of another region, too.
TEST_F(RegistrationsTest, WhatIsStaleMakesRoomAtOnce) {
  Start({1, 0});
  const progress::ClaimableRegion old = MakeRegion(1);
  progress::ClaimableRegion anew = old;
  anew.identity.region = 2;
  progress::Claim claim;
  Hold(old, &claim);
  claim.Drop();
  EXPECT_EQ(Ask(anew, &claim), ErrorCode::kWouldBlock);
  EXPECT_FALSE(claim.wants_room());
  Collect();
  EXPECT_TRUE(claim.held());
}

TEST_F(RegistrationsTest, AnotherDeviceAllocationGetsAnotherKey) {
  const progress::ClaimableRegion old = MakeRegion(1, 77);
  progress::ClaimableRegion anew = old;
  anew.identity.allocation = 78;
  progress::Claim claim;
  Hold(old, &claim);
  const uint64_t key = claim.key();
  EXPECT_EQ(Ask(anew, &claim), ErrorCode::kWouldBlock) << "a claim for something else";
  Collect();
  EXPECT_NE(claim.key(), key);
}

TEST_F(RegistrationsTest, ARetiredRegionIsReleasedBeforeItsMemoryGoes) {
  progress::ClaimableRegion region = MakeRegion(1);
  const std::weak_ptr<const void> memory = region.keep_alive;
  progress::Claim claim;
  Hold(region, &claim);
  claim.Drop();
  auto signal = std::make_shared<progress::UnpinSignal>();
  auto unpinned = signal->done.get_future();
  EXPECT_TRUE(registrations_->TryRetire(region, now_ns_, UINT64_MAX, signal));
  signal.reset();
  region.keep_alive.reset();
  unpinned.wait();
  EXPECT_TRUE(memory.expired());
  EXPECT_EQ(transport_.regions(), 0U);
  EXPECT_EQ(Statistics().entries, 0U);
}

TEST_F(RegistrationsTest, ARegionInUseIsRetiredOnlyAfterwards) {
  const progress::ClaimableRegion region = MakeRegion(1);
  progress::Claim claim;
  Hold(region, &claim);
  EXPECT_FALSE(TryRetire(region));
  EXPECT_EQ(transport_.regions(), 1U);
  claim.Drop();
  EXPECT_TRUE(TryRetire(region));
  EXPECT_EQ(transport_.regions(), 0U);
}

TEST_F(RegistrationsTest, WhatTheNicHoldsIsKeptFromTheDeadlineOn) {
  progress::ClaimableRegion region = MakeRegion(1);
  const std::weak_ptr<const void> memory = region.keep_alive;
  progress::Claim claim;
  Hold(region, &claim);
  transport_.Hold(claim.handle());
  claim.Drop();
  EXPECT_FALSE(TryRetire(region, now_ns_ + 1));
  now_ns_ += 1;
  EXPECT_TRUE(TryRetire(region, now_ns_));
  region.keep_alive.reset();
  EXPECT_FALSE(memory.expired());
  EXPECT_TRUE(registrations_->any_leaving());
  transport_.LetGo();
  registrations_->Sweep(now_ns_);
  EXPECT_EQ(transport_.regions(), 0U);
  EXPECT_FALSE(registrations_->any_leaving());
}

TEST_F(RegistrationsTest, WhatAPeerMayReadIsKeptForAWhile) {
  progress::RegistrationCache::Limits one{1, 0};
  Start(one);
  progress::ClaimableRegion region = MakeRegion(1);
  progress::Claim claim;
  Hold(region, &claim);
  claim.DropLater();
  EXPECT_TRUE(TryRetire(region));
  EXPECT_EQ(transport_.regions(), 1U);
  now_ns_ += kTimeoutNs - 1;
  registrations_->Sweep(now_ns_);
  EXPECT_EQ(transport_.regions(), 1U);
  now_ns_ += 1;
  registrations_->Sweep(now_ns_);
  EXPECT_EQ(transport_.regions(), 0U);
}

TEST_F(RegistrationsTest, NorIsItEvictedMeanwhile) {
  Start({1, 0});
  const progress::ClaimableRegion first = MakeRegion(1);
  const progress::ClaimableRegion second = MakeRegion(2);
  progress::Claim claim;
  Hold(first, &claim);
  claim.DropLater();
  EXPECT_EQ(Ask(second, &claim), ErrorCode::kWouldBlock);
  EXPECT_EQ(registrar_->pending(), 0U);
  now_ns_ += kTimeoutNs;
  EXPECT_EQ(Ask(second, &claim), ErrorCode::kWouldBlock);
  Collect();
  EXPECT_TRUE(claim.held());
  EXPECT_EQ(Statistics().evictions, 1U);
}

TEST_F(RegistrationsTest, ThoseWhoWaitForRoomGetItInTheirOrder) {
  Start({1, 0});
  const progress::ClaimableRegion regions[] = {MakeRegion(1), MakeRegion(2), MakeRegion(3)};
  progress::Claim first, second, third;
  Hold(regions[0], &first);
  EXPECT_EQ(Ask(regions[1], &second), ErrorCode::kWouldBlock);
  EXPECT_EQ(Ask(regions[2], &third), ErrorCode::kWouldBlock);
  EXPECT_STREQ(third.wants(), "room in the registration cache");
  EXPECT_EQ(Statistics().waiting, 2U);
  progress::Claim hit;
  EXPECT_EQ(Ask(regions[0], &hit), ErrorCode::kOk) << "what needs no room does not wait";
  hit.Drop();
  first.Drop();
  EXPECT_EQ(Ask(regions[2], &third), ErrorCode::kWouldBlock);
  EXPECT_EQ(registrar_->pending(), 0U) << "out of order";
  EXPECT_EQ(Ask(regions[1], &second), ErrorCode::kWouldBlock);
  Collect();
  EXPECT_TRUE(second.held());
  second.Drop();
  EXPECT_EQ(Ask(regions[2], &third), ErrorCode::kWouldBlock);
  Collect();
  EXPECT_TRUE(third.held());
  EXPECT_EQ(Statistics().misses, 3U);
}

TEST_F(RegistrationsTest, PeersNeverTakeTheRoomThatTransfersNeed) {
  Start({4, 0});
  const progress::ClaimableRegion regions[] = {MakeRegion(1), MakeRegion(2), MakeRegion(3),
                                               MakeRegion(4)};
  progress::Claim sent_rts[3], transfers[2];
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Ask(regions[i], &sent_rts[i], 0, 100, progress::UseFor::kPeer),
              ErrorCode::kWouldBlock);
  }
  Collect();
  EXPECT_TRUE(sent_rts[0].held() && sent_rts[1].held());
  EXPECT_TRUE(sent_rts[2].waiting()) << "more than half";
  Hold(regions[2], &transfers[0]);  // does not wait behind it
  Hold(regions[3], &transfers[1]);
  EXPECT_EQ(Ask(regions[2], &sent_rts[2], 0, 100, progress::UseFor::kPeer), ErrorCode::kWouldBlock)
      << "registered, but the share is used up";
  progress::Claim again;
  EXPECT_EQ(Ask(regions[0], &again, 200, 100, progress::UseFor::kPeer), ErrorCode::kOk);
  sent_rts[0].Drop();
  EXPECT_EQ(Ask(regions[2], &sent_rts[2], 0, 100, progress::UseFor::kPeer), ErrorCode::kWouldBlock);
  again.Drop();
  EXPECT_EQ(Ask(regions[2], &sent_rts[2], 0, 100, progress::UseFor::kPeer), ErrorCode::kOk);
}

TEST_F(RegistrationsTest, NorTheBytes) {
  Start({0, 2 * kRegionBytes});
  const progress::ClaimableRegion first = MakeRegion(1), second = MakeRegion(2);
  progress::Claim rts, other, transfer;
  EXPECT_EQ(Ask(first, &rts, 0, kRegionBytes, progress::UseFor::kPeer), ErrorCode::kWouldBlock);
  EXPECT_EQ(Ask(second, &other, 0, 1, progress::UseFor::kPeer), ErrorCode::kWouldBlock);
  Collect();
  EXPECT_TRUE(rts.held());
  EXPECT_FALSE(other.held());
  Hold(second, &transfer, 0, kRegionBytes);
  transfer.Drop();
  rts.Drop();
  EXPECT_EQ(Ask(second, &other, 0, 1, progress::UseFor::kPeer), ErrorCode::kOk);
}

TEST_F(RegistrationsTest, WhoGivesUpLetsTheNextOneThrough) {
  Start({1, 0});
  const progress::ClaimableRegion regions[] = {MakeRegion(1), MakeRegion(2), MakeRegion(3)};
  progress::Claim first, third;
  Hold(regions[0], &first);
  {
    progress::Claim second;
    EXPECT_EQ(Ask(regions[1], &second), ErrorCode::kWouldBlock);
    EXPECT_EQ(Ask(regions[2], &third), ErrorCode::kWouldBlock);
    first.Drop();
  }
  EXPECT_EQ(Ask(regions[2], &third), ErrorCode::kWouldBlock);
  Collect();
  EXPECT_TRUE(third.held());
}

TEST_F(RegistrationsTest, NoRoomInTimeIsARefusalUntilTheClaimIsDropped) {
  Start({1, 0});
  const progress::ClaimableRegion first = MakeRegion(1);
  const progress::ClaimableRegion second = MakeRegion(2);
  progress::Claim held, claim;
  Hold(first, &held);
  EXPECT_EQ(Ask(second, &claim), ErrorCode::kWouldBlock);
  now_ns_ += kTimeoutNs;
  EXPECT_EQ(Ask(second, &claim), ErrorCode::kWouldBlock);
  now_ns_ += 1;
  EXPECT_EQ(Ask(second, &claim), ErrorCode::kLimitExceeded);
  held.Drop();
  EXPECT_EQ(Ask(second, &claim), ErrorCode::kLimitExceeded);
  claim.Drop();
  Hold(second, &claim);
  ASSERT_EQ(refusals_.size(), 1U);
  EXPECT_NE(refusals_[0].find("region 2 cannot be registered with the network: the registration "
                              "cache is full of memory in use (1 registrations, 65536 bytes"),
            std::string::npos)
      << refusals_[0];
}

TEST_F(RegistrationsTest, ARefusalByTheNicIsToldToAllWhoWaitAndNotKept) {
  const progress::ClaimableRegion region = MakeRegion(1);
  transport_.RefuseMemory();
  progress::Claim first, second;
  EXPECT_EQ(Ask(region, &first), ErrorCode::kWouldBlock);
  EXPECT_EQ(Ask(region, &second), ErrorCode::kWouldBlock);
  Collect();
  EXPECT_EQ(Ask(region, &first), ErrorCode::kLimitExceeded);
  EXPECT_EQ(Ask(region, &second), ErrorCode::kLimitExceeded);
  registrations_->Advance(now_ns_);
  EXPECT_EQ(Statistics().entries, 0U);
  EXPECT_EQ(Statistics().refusals, 1U);
  ASSERT_EQ(refusals_.size(), 1U);
  EXPECT_NE(refusals_[0].find("no more registrations"), std::string::npos) << refusals_[0];
  transport_.RefuseMemory(false);
  first.Drop();
  Hold(region, &first);
}

TEST_F(RegistrationsTest, RegistersThePiecesThatAreTouched) {
  Start({}, 16 << 10);
  const progress::ClaimableRegion region = MakeRegion(1);
  progress::Claim first, second, third;
  Hold(region, &first, (16 << 10) + 5, 100);
  EXPECT_EQ(Statistics().bytes, 16U << 10);
  EXPECT_EQ(first.RemoteAddress(region.base + (16 << 10)), 0U);
  Hold(region, &second, (32 << 10) - 1, 2);
  EXPECT_EQ(Statistics().bytes, 48U << 10);
  EXPECT_EQ(second.RemoteAddress(region.base + (32 << 10)), 16U << 10);
  EXPECT_EQ(Ask(region, &third, 16 << 10, 100), ErrorCode::kOk);
  EXPECT_EQ(third.key(), second.key()) << "the longer one serves in place of the other";
  first.Drop();
  registrations_->Advance(now_ns_);
  EXPECT_EQ(Statistics().bytes, 32U << 10);
}

TEST_F(RegistrationsTest, AClaimThatMovesIsOneClaim) {
  const progress::ClaimableRegion region = MakeRegion(1);
  progress::Claim claim;
  Hold(region, &claim);
  progress::Claim moved = std::move(claim);
  EXPECT_TRUE(moved.held());
  claim.Drop();  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move): has no effect
  EXPECT_FALSE(TryRetire(region));
  moved = progress::Claim();
  EXPECT_TRUE(TryRetire(region));
}

}  // namespace
}  // namespace ferry::daemon
