// A NIC that takes long to pin memory: only the rank whose memory it is waits.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>

#include "tests/daemon/progress_fixture.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kRegion = 2;
constexpr uint64_t kMessageBytes = 1 << 20;

bool IsReady(const std::future<Status>& outcome) {
  return outcome.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

class RegistrationTest : public PlaneTest {
 protected:
  // Ranks 0 and 1 on node 0, rank 2 on node 1.
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Start({2, 1}));
    pinned_ = gate(0).pinned;
  }
  // A test that fails must not leave anybody waiting.
  void TearDown() override {
    for (const auto& gate : gates_) {
      gate->PinAtOnce();
    }
    registering_ = {};
    deregistering_ = {};
    PlaneTest::TearDown();
  }

  // Rank 0 registers one more region; returns when the NIC is at it.
  void Register(uint32_t rank, uint32_t id) {
    auto region = std::make_shared<Region>();
    region->id = id;
    region->fd = std::move(*shm::CreateSegment("test-region", kMessageBytes));
    region->mapping = std::move(*shm::MapSegment(region->fd.get(), 0));
    region_ = region;
    registering_ =
        std::async(std::launch::async, [this, rank, region = std::move(region)]() mutable {
          return planes_[NodeOf(rank)]->AddRegion(kJob, rank, std::move(region));
        });
  }
  void RegisterSlowly() {
    gate(0).pins_slowly = true;
    Register(0, kRegion);
    ASSERT_TRUE(Eventually([this] { return gate(0).pinning == 1; }));
  }
  void Deregister() {
    deregistering_ = std::async(std::launch::async, [this] {
      plane(0).RemoveRegion(kJob, 0, kRegion);
      return Status();
    });
  }

  // Within the node and between nodes, small and large, from heap to heap.
  void ExpectMessagesBetween(uint32_t from, uint32_t to) {
    for (const uint64_t size : {uint64_t{8}, kMessageBytes}) {
      const std::vector<std::byte> sent = Pattern(size, from + to);
      std::memcpy(rank(from).heap(), sent.data(), size);
      const uint32_t receive =
          rank(to).Receive(static_cast<int32_t>(from), 7, InHeap(kMessageBytes), size);
      const uint32_t send = rank(from).SendFrom(to, 7, InHeap(0), size);
      EXPECT_EQ(WaitTogether(to, receive), ErrorCode::kOk);
      EXPECT_EQ(WaitTogether(from, send), ErrorCode::kOk);
      EXPECT_EQ(std::memcmp(rank(to).heap() + kMessageBytes, sent.data(), size), 0);
    }
  }
  void ExpectEverybodyTalks() {
    ExpectMessagesBetween(1, 2);
    ExpectMessagesBetween(2, 1);
    ExpectMessagesBetween(0, 1);  // the rank itself, too, from other threads of it
    ExpectMessagesBetween(2, 0);
  }

  uint32_t pinned_ = 0;  // on node 0, before the test's own
  std::weak_ptr<const Region> region_;
  std::future<Status> registering_;
  std::future<Status> deregistering_;
};

TEST_F(RegistrationTest, PinningHoldsUpNobodyElse) {
  ASSERT_NO_FATAL_FAILURE(RegisterSlowly());
  ExpectEverybodyTalks();
  EXPECT_EQ(plane(0).Nic().provider, "net");  // who asks for its state gets an answer
  EXPECT_FALSE(IsReady(registering_));
  gate(0).PinAtOnce();
  EXPECT_TRUE(registering_.get().ok());
}

TEST_F(RegistrationTest, UnpinningHoldsUpNobodyElse) {
  Register(0, kRegion);
  ASSERT_TRUE(registering_.get().ok());
  EXPECT_EQ(gate(0).pinned, pinned_ + 1);
  gate(0).pins_slowly = true;
  Deregister();
  ASSERT_TRUE(Eventually([this] { return gate(0).unpinning == 1; }));
  ExpectEverybodyTalks();
  EXPECT_FALSE(IsReady(deregistering_));
  gate(0).PinAtOnce();
  deregistering_.wait();
  EXPECT_EQ(gate(0).pinned, pinned_);
  EXPECT_TRUE(region_.expired());
}

TEST_F(RegistrationTest, ARegionIsDeregisteredOnlyOnceItWasRegistered) {
  ASSERT_NO_FATAL_FAILURE(RegisterSlowly());
  Deregister();
  ExpectMessagesBetween(1, 2);
  EXPECT_FALSE(IsReady(deregistering_));
  gate(0).PinAtOnce();
  EXPECT_TRUE(registering_.get().ok());
  deregistering_.wait();
  EXPECT_EQ(gate(0).pinned, pinned_);
}

TEST_F(RegistrationTest, ANumberIsTakenWhileItsRegionIsPinned) {
  ASSERT_NO_FATAL_FAILURE(RegisterSlowly());
  auto again = std::make_shared<Region>();
  again->id = kRegion;
  again->fd = std::move(*shm::CreateSegment("test-region", kMessageBytes));
  again->mapping = std::move(*shm::MapSegment(again->fd.get(), 0));
  EXPECT_EQ(plane(0).AddRegion(kJob, 0, again).code(), ErrorCode::kAlreadyExists);
}

TEST_F(RegistrationTest, ARankThatDiesMeanwhileLeavesNothingPinned) {
  ASSERT_NO_FATAL_FAILURE(RegisterSlowly());
  plane(0).RemoveSession(kJob, 0);  // though the NIC is at it still
  const Status outcome = registering_.get();
  EXPECT_EQ(outcome.code(), ErrorCode::kCancelled);
  EXPECT_NE(outcome.message().find("rank 0 of job job ended while its region 2"), std::string::npos)
      << outcome.message();
  EXPECT_FALSE(region_.expired()) << "the NIC writes into memory that is gone";
  ExpectMessagesBetween(1, 2);
  gate(0).PinAtOnce();
  EXPECT_TRUE(Eventually([this] { return region_.expired(); }));
  EXPECT_TRUE(Eventually([this] { return gate(0).pinned == pinned_ - 1; }));  // without its heap
}

TEST_F(RegistrationTest, ADeadRanksRegionsWaitInVain) {
  ASSERT_NO_FATAL_FAILURE(RegisterSlowly());
  std::future<Status> first = std::move(registering_);
  Register(1, kRegion);  // behind that of rank 0
  ASSERT_NO_FATAL_FAILURE(ExpectMessagesBetween(1, 2));
  plane(0).RemoveSession(kJob, 1);
  EXPECT_EQ(registering_.get().code(), ErrorCode::kCancelled);
  const uint32_t begun = gate(0).begun;
  gate(0).PinAtOnce();
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(Eventually([this] { return region_.expired(); }));
  EXPECT_EQ(gate(0).begun, begun) << "pinned for nobody";
}

TEST_F(RegistrationTest, ADyingRankDoesNotWaitForUnpinning) {
  gate(0).pins_slowly = true;
  plane(0).RemoveSession(kJob, 0);
  EXPECT_TRUE(Eventually([this] { return gate(0).unpinning == 1; }));
  ExpectMessagesBetween(1, 2);
}

TEST_F(RegistrationTest, AnEndOfTheDaemonUndoesIt) {
  ASSERT_NO_FATAL_FAILURE(RegisterSlowly());
  plane(0).RemoveSession(kJob, 0);
  plane(0).RemoveSession(kJob, 1);
  const std::shared_ptr<Gate> gate = gates_[0];
  std::future<void> end = std::async(std::launch::async, [this] { planes_[0].reset(); });
  EXPECT_EQ(gate->pinning, 1U);
  gate->PinAtOnce();
  end.get();
  EXPECT_EQ(registering_.get().code(), ErrorCode::kCancelled);
  EXPECT_TRUE(region_.expired());
  EXPECT_EQ(gate->pinned, pinned_ - 2);  // the ranks' heaps
}

}  // namespace
}  // namespace ferry::daemon
