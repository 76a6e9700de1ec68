// Words that cores pass on for direct links: markers and credits, as they are and in order; and
// ranks' reports on their links.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "shm/atomic.h"
#include "shm/lane.h"
#include "shm/lease.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

using shm::Descriptor;
using shm::DescriptorKind;

template <typename Payload>
Descriptor To(uint32_t destination, DescriptorKind kind, const Payload& payload) {
  Descriptor command = MakeCommand(kind, payload);
  command.destination = destination;
  return command;
}

Descriptor Eager(uint32_t destination, int32_t tag) {
  Descriptor command{};
  command.kind = static_cast<uint8_t>(DescriptorKind::kEager);
  command.destination = destination;
  command.tag = tag;
  return command;
}

// Reads the lane of a core in place of the rank's engine.
std::optional<Descriptor> Take(shm::LaneConsumer& lane) {
  std::optional<Descriptor> taken;
  EXPECT_TRUE(Eventually([&] {
    const Descriptor* const next = lane.Peek();
    if (next != nullptr) {
      taken = *next;
      lane.Pop();
    }
    return next != nullptr;
  }));
  return taken;
}

template <typename Payload>
Payload PayloadOf(const Descriptor& descriptor) {
  Payload payload;
  std::memcpy(&payload, descriptor.payload, sizeof(payload));
  return payload;
}

class ProgressLinksTest : public PlaneTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
    HoldRanks();
  }
  void TearDown() override {
    leases_.clear();
    PlaneTest::TearDown();
  }
  // No worker reads their lanes in the meantime.
  void HoldRanks() {
    for (const auto& rank : ranks_) {
      leases_.emplace_back(&rank->view().layout->lease);
      ASSERT_TRUE(Eventually([this] { return leases_.back().TryAcquire(kHolder); }));
    }
  }
  shm::LaneConsumer LaneOf(uint32_t rank, uint32_t lane) {
    return shm::LaneConsumer(PlaneTest::rank(rank).view().inbox.lane(lane));
  }

  static constexpr uint32_t kHolder = 9;
  std::vector<shm::Lease> leases_;
};

TEST_F(ProgressLinksTest, AMarkerComesBehindWhatWasSentBeforeIt) {
  shm::LaneConsumer lane = LaneOf(1, shm::DaemonLane(1));
  for (int32_t tag = 0; tag < 3; ++tag) {
    rank(0).PushToDaemon(Eager(1, tag));
  }
  rank(0).PushToDaemon(To(1, DescriptorKind::kSwitch, shm::SwitchMarker{7, 0, {}}));
  rank(0).PushToDaemon(Eager(1, 3));
  for (int32_t tag = 0; tag < 3; ++tag) {
    const auto message = Take(lane);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->kind, static_cast<uint8_t>(DescriptorKind::kEager));
    EXPECT_EQ(message->tag, tag);
  }
  const auto marker = Take(lane);
  ASSERT_TRUE(marker);
  EXPECT_EQ(marker->kind, static_cast<uint8_t>(DescriptorKind::kSwitch));
  EXPECT_EQ(marker->source, 0U);
  EXPECT_EQ(PayloadOf<shm::SwitchMarker>(*marker).epoch, 7U);
  const auto last = Take(lane);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->tag, 3);
}

TEST_F(ProgressLinksTest, AllWordsOfACreditArePassedOn) {
  shm::LaneConsumer lane = LaneOf(0, shm::DaemonLane(1));
  rank(1).PushToDaemon(
      To(0, DescriptorKind::kCredit, shm::CreditReturn{5, shm::kCreditAll, 1 << 20, 9, {}}));
  const auto taken = Take(lane);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->kind, static_cast<uint8_t>(DescriptorKind::kCredit));
  EXPECT_EQ(taken->source, 1U);
  const auto credit = PayloadOf<shm::CreditReturn>(*taken);
  EXPECT_EQ(credit.count, 5U);
  EXPECT_EQ(credit.flags, shm::kCreditAll);
  EXPECT_EQ(credit.bytes, uint32_t{1} << 20);
  EXPECT_EQ(credit.epoch, 9U);
}

// Packets that still wait for the rank when its source is cut off are lost, markers like messages.
TEST_F(ProgressLinksTest, ACutTakesMarkersThatWaitAlong) {
  shm::LaneConsumer lane = LaneOf(1, shm::DaemonLane(1));
  for (uint32_t i = 0; i < shm::kLaneSlots; ++i) {
    rank(0).PushToDaemon(To(1, DescriptorKind::kCredit, shm::CreditReturn{i, 0, 0, 0, {}}));
    ASSERT_TRUE(Eventually([&] { return lane.Backlog() == i + 1; }));
  }
  rank(0).PushToDaemon(To(1, DescriptorKind::kSwitch, shm::SwitchMarker{1, 0, {}}));
  ASSERT_TRUE(Eventually([&] { return plane(1).Inspect(kJob, 1).arrivals_waiting == 1; }));
  Cut();
  EXPECT_EQ(plane(1).Inspect(kJob, 1).arrivals_waiting, 0U);
}

TEST_F(ProgressLinksTest, TheHomeHearsWhatRanksSayOfTheirLinks) {
  using shm::LinkMatter;
  for (const LinkMatter matter :
       {LinkMatter::kWanted, LinkMatter::kBroken, LinkMatter::kReturned}) {
    rank(1).PushToDaemon(
        To(0, DescriptorKind::kLinkWanted, shm::LinkCommand{static_cast<uint32_t>(matter), 0, {}}));
  }
  ASSERT_TRUE(Eventually([&] { return told_.Get(&Told::link_wishes).size() == 3; }));
  const auto wishes = told_.Get(&Told::link_wishes);
  EXPECT_EQ(wishes[0].rank, 1U);
  EXPECT_EQ(wishes[0].peer, 0U);
  EXPECT_EQ(wishes[0].matter, LinkMatter::kWanted);
  EXPECT_EQ(wishes[1].matter, LinkMatter::kBroken);
  EXPECT_EQ(wishes[2].matter, LinkMatter::kReturned);
}

TEST_F(ProgressLinksTest, ARankThatSaysAnythingElseOfItsLinksIsEnded) {
  rank(0).PushToDaemon(To(1, DescriptorKind::kLinkWanted, shm::LinkCommand{3, 0, {}}));
  ASSERT_TRUE(Eventually([&] { return !told_.Get(&Told::violations).empty(); }));
  EXPECT_EQ(told_.Get(&Told::violations).front(),
            "a command of kind 18, matter 3, about its direct link to rank 1");
}

// As a rank's own core serves it: by other lanes than ferryd.
class ProgressSeatTest : public ProgressLinksTest {
 protected:
  void SetUp() override {
    if (!in_own_home) {
      GTEST_SKIP() << "ferryd has its own seat";
    }
    seat_ = progress::LinkSeat;
    ASSERT_NO_FATAL_FAILURE(Start({2, 1}));
  }
  void Push(uint32_t from, const Descriptor& command) {
    shm::SessionLayout& session = *rank(from).view().layout;
    shm::LaneProducer lane(&session.to_link);
    lane.Open(from);
    ASSERT_TRUE(lane.TryPush(command));
    const uint32_t own = shm::LinkLane(rank(from).view().inbox.local_size);
    if (shm::Wake(&session.link_wake).AnnounceLane(own)) {
      const uint64_t one = 1;
      ASSERT_EQ(write(rank(from).session().doorbell.get(), &one, sizeof(one)), sizeof(one));
    }
  }
};

TEST_F(ProgressSeatTest, CommandsAndArrivalsTakeTheLanesOfTheLinks) {
  shm::LaneConsumer there = LaneOf(2, shm::LinkLane(1));
  shm::LaneConsumer back = LaneOf(1, shm::LinkLane(2));
  for (int32_t tag = 0; tag < 3; ++tag) {
    Push(1, Eager(2, tag));
    const auto message = Take(there);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->tag, tag);
    EXPECT_EQ(message->source, 1U);
    Push(2, To(1, DescriptorKind::kCredit,
               shm::CreditReturn{static_cast<uint32_t>(tag + 1), 0, 0, 0, {}}));
    const auto credit = Take(back);
    ASSERT_TRUE(credit);
    EXPECT_EQ(PayloadOf<shm::CreditReturn>(*credit).count, static_cast<uint32_t>(tag + 1));
  }
  EXPECT_EQ(LaneOf(2, shm::DaemonLane(1)).Peek(), nullptr);
  EXPECT_EQ(LaneOf(1, shm::DaemonLane(2)).Peek(), nullptr);
}

TEST_F(ProgressSeatTest, WhatIsForTheDaemonIsRefusedThere) {
  Push(0, To(2, DescriptorKind::kLinkWanted, shm::LinkCommand{}));
  ASSERT_TRUE(Eventually([&] { return !told_.Get(&Told::violations).empty(); }));
  EXPECT_TRUE(told_.Get(&Told::link_wishes).empty());
}

}  // namespace
}  // namespace ferry::daemon
