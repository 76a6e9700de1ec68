// Descriptors that no correct peer writes into a lane stay there, and the daemon is told who wrote
// them; or they fail one request. Descriptors that no correct daemon writes poison the rank with
// kCorrupt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>

#include "shm/atomic.h"
#include "shm/fault.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestState;

constexpr uint32_t kFar = 2;  // ranks 0 and 1 are here
constexpr uint32_t kDaemon = ~uint32_t{0};

Descriptor Make(DescriptorKind kind, uint32_t source, int32_t tag = 7) {
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(kind);
  descriptor.source = source;
  descriptor.tag = tag;
  return descriptor;
}

struct Corruption {
  const char* name;
  uint32_t lane;  // the lane of local rank 1, or kDaemon
  Descriptor descriptor;
};

template <typename Change>
Descriptor With(const Descriptor& descriptor, Change&& change) {
  Descriptor changed = descriptor;
  change(changed);
  return changed;
}

Descriptor RtsOf(uint32_t transfer, uint32_t generation = 1) {
  return With(Make(DescriptorKind::kRts, 1), [&](Descriptor& d) {
    d.size_bytes = 100;
    SetPayload(&d, shm::LocalRts{transfer, generation, {}});
  });
}

const Corruption kCorruptions[] = {
    {"NoKind", 1, Make(DescriptorKind::kNone, 1)},
    {"UnknownKind", 1, Make(static_cast<DescriptorKind>(200), 1)},
    {"NoKindFromDaemon", kDaemon, Make(DescriptorKind::kNone, kFar)},
    {"EagerTag", 1, Make(DescriptorKind::kEager, 1, -1)},
    {"EagerTooLong", 1,
     With(Make(DescriptorKind::kEager, 1), [](Descriptor& d) { d.size_bytes = 33; })},
    {"EagerHuge", 1,
     With(Make(DescriptorKind::kEager, 1), [](Descriptor& d) { d.size_bytes = ~uint64_t{0}; })},
    {"CellTooLong", 1,
     With(Make(DescriptorKind::kEager, 1),
          [](Descriptor& d) {
            d.flags = shm::kFlagCell;
            d.size_bytes = shm::kCellBytes + 1;
          })},
    {"CellIndex", 1,
     With(Make(DescriptorKind::kEager, 1),
          [](Descriptor& d) {
            d.flags = shm::kFlagCell;
            d.cell = shm::kLaneCells;
          })},
    {"CellIndexHuge", 1,
     With(Make(DescriptorKind::kEager, 1),
          [](Descriptor& d) {
            d.flags = shm::kFlagCell;
            d.cell = 0xFFFF;
          })},
    {"EagerSource", kDaemon, Make(DescriptorKind::kEager, 3)},
    {"EagerSourceHuge", kDaemon, Make(DescriptorKind::kEager, ~uint32_t{0})},
    {"RtsTag", 1, With(RtsOf(1), [](Descriptor& d) { d.tag = -5; })},
    {"RtsNoTransfer", 1, RtsOf(0)},
    {"RtsTransferOutOfRange", 1, RtsOf(1024)},
    {"RtsTransferHuge", 1, RtsOf(~uint32_t{0})},
    {"RtsFromDaemon", kDaemon, With(RtsOf(1), [](Descriptor& d) { d.source = kFar; })},
    {"RemoteRtsFromPeer", 1, Make(DescriptorKind::kRemoteRts, 1)},
    {"RemoteRtsTag", kDaemon, Make(DescriptorKind::kRemoteRts, kFar, -1)},
    {"RemoteRtsSource", kDaemon, Make(DescriptorKind::kRemoteRts, 3)},
    {"PullFromPeer", 1, Make(DescriptorKind::kRndvGet, 1)},
    {"PullFromDaemon", kDaemon, Make(DescriptorKind::kRndvGet, kFar)},
    {"PullDoneFromPeer", 1, Make(DescriptorKind::kRndvGetDone, 1)},
    {"SendDoneFromPeer", 1, Make(DescriptorKind::kSendDone, 1)},
    {"CreditFromPeer", 1, Make(DescriptorKind::kCredit, 1)},
    {"CreditSource", kDaemon, Make(DescriptorKind::kCredit, 3)},
    {"CreditSourceHuge", kDaemon, Make(DescriptorKind::kCredit, ~uint32_t{0})},
};

// By index: a Corruption is aligned more strictly than parameters are passed.
class CorruptDescriptorTest : public testing::TestWithParam<size_t> {};

INSTANTIATE_TEST_SUITE_P(Each, CorruptDescriptorTest,
                         testing::Range<size_t>(0, std::size(kCorruptions)), [](const auto& info) {
                           return std::string(kCorruptions[info.param].name);
                         });

TEST_P(CorruptDescriptorTest, IsLeftToTheDaemonAndMatchesNothing) {
  const Corruption& corruption = kCorruptions[GetParam()];
  TestNode node(NodeOptions{.local_ranks = 2, .remote_ranks = 1});
  FakeDaemon daemon(node.view(0));
  const uint32_t any = node[0].Irecv(shm::kAnySource, shm::kAnyTag, 16);
  const uint32_t lane =
      corruption.lane == kDaemon ? shm::DaemonLane(node.local_ranks()) : corruption.lane;
  shm::LaneProducer(node.view(0).inbox.lane(lane)).TryPush(corruption.descriptor);
  shm::Wake(node.view(0).inbox.wake()).PublishLane(lane);
  node[0].Progress();
  EXPECT_EQ(node[1].poison(), ErrorCode::kOk);
  const std::vector<Descriptor> told = daemon.Take();
  if (corruption.lane == kDaemon) {
    EXPECT_EQ(node[0].poison(), ErrorCode::kCorrupt);
    EXPECT_THAT(shm::Describe(shm::ReadFault(node.view(0).layout->fault)),
                testing::HasSubstr("the daemon's lane"));
    EXPECT_TRUE(told.empty());
  } else {
    EXPECT_EQ(node[0].poison(), ErrorCode::kOk);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].kind, static_cast<uint8_t>(DescriptorKind::kAccuse));
    EXPECT_EQ(PayloadOf<shm::Accusation>(told[0]).lane, lane);
  }
  EXPECT_TRUE(node[0].rang_daemon);
  EXPECT_NE(shm::LaneConsumer(node.view(0).inbox.lane(lane)).Peek(), nullptr) << "the proof";
  EXPECT_EQ(node[0].state(any), RequestState::kPosted) << "it must match nothing";
  EXPECT_FALSE(node[0].engine().HasArrivals());
  EXPECT_EQ(shm::Statistics(node.view(0).layout->counters).Read(shm::Statistic::kErrors), 1U);
}

TEST(RankEngineCorruptTest, RandomDescriptorsNeverCrash) {
  uint64_t seed = 1;
  const auto next = [&seed] {
    seed = seed * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    return seed >> 33;
  };
  for (uint32_t round = 0; round < 200; ++round) {
    TestNode node(NodeOptions{.local_ranks = 2, .remote_ranks = 1, .request_limit = 64});
    FakeDaemon daemon(node.view(0));
    std::vector<uint32_t> receives;
    for (uint32_t i = 0; i < 50; ++i) {
      Descriptor descriptor{};
      auto* bytes = reinterpret_cast<uint8_t*>(&descriptor);
      for (uint32_t k = 0; k < sizeof(descriptor); ++k) {
        bytes[k] = static_cast<uint8_t>(next() % 4 == 0 ? next() : 0);
      }
      descriptor.kind = static_cast<uint8_t>(next() % 9);
      const auto lane = static_cast<uint32_t>(next() % 3);
      shm::LaneProducer(node.view(0).inbox.lane(lane)).TryPush(descriptor);
      shm::Wake(node.view(0).inbox.wake()).PublishLane(lane);
      if (receives.size() < 60) {
        receives.push_back(node[0].Irecv(shm::kAnySource, shm::kAnyTag, 16));
      }
      node[0].Progress();
      daemon.Take();
    }
  }
}

// An RTS names a transfer that is not announced: a withdrawn one looks the same.
class StaleRtsTest : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(PostedFirst, StaleRtsTest, testing::Bool());

TEST_P(StaleRtsTest, IsDropped) {
  TestNode node;
  uint32_t receive = GetParam() ? node[0].Irecv(1, 7, 100) : 0;
  shm::LaneProducer(node.view(0).inbox.lane(1)).TryPush(RtsOf(5));
  shm::Wake(node.view(0).inbox.wake()).PublishLane(1);
  node[0].Progress();
  if (!GetParam()) {
    receive = node[0].Irecv(1, 7, 100);
  }
  EXPECT_EQ(node[0].state(receive), RequestState::kPosted);
  node[1].Isend(0, 7, "the next");
  EXPECT_EQ(node[0].Wait(receive).data, "the next");
}

TEST(RankEngineCorruptTest, AnRtsOfAnotherGenerationIsDropped) {
  TestNode node;
  const uint32_t send = node[1].IsendByRequest(0, 6, Pattern(20'000, 1));
  const uint32_t receive = node[0].Irecv(1, 7, 100);
  shm::LaneProducer(node.view(0).inbox.lane(1))
      .TryPush(RtsOf(send, node[1].slot(send).generation + 1));
  node[0].Progress();
  EXPECT_EQ(node[0].state(receive), RequestState::kPosted);
  EXPECT_EQ(node[0].Receive(1, 6, 20'000).data, Pattern(20'000, 1));
}

// Pushes a descriptor into rank 0's lane from `source` that no correct rank pushes.
void PushNonsense(TestNode& node, uint32_t source) {
  shm::LaneProducer(node.view(0).inbox.lane(source))
      .TryPush(Make(static_cast<DescriptorKind>(99), source));
  shm::Wake(node.view(0).inbox.wake()).PublishLane(source);
}

TEST(RankEngineCorruptTest, OtherLanesGoOnWhileOneIsClosed) {
  TestNode node(NodeOptions{.local_ranks = 3});
  FakeDaemon daemon(node.view(0));
  const uint32_t from_bad = node[0].Irecv(1, 7, 16);
  PushNonsense(node, 1);
  node[1].Isend(0, 7, "behind it");
  node[2].Isend(0, 7, "sound");
  EXPECT_EQ(node[0].Receive(2, 7, 16).data, "sound");
  node[0].Progress();
  EXPECT_EQ(node[0].state(from_bad), RequestState::kPosted);
  EXPECT_EQ(daemon.Take().size(), 1U) << "accused once, however often it looks";
  node.MarkDead(0, 1);
  EXPECT_EQ(node[0].Wait(from_bad).error, ErrorCode::kPeerDied);
  node[2].Isend(0, 8, "still");
  EXPECT_EQ(node[0].Receive(2, 8, 16).data, "still");
  EXPECT_EQ(node[0].poison(), ErrorCode::kOk);
}

TEST(RankEngineCorruptTest, AnAccusationWaitsForRoomInTheLaneToTheDaemon) {
  TestNode node(NodeOptions{.local_ranks = 2, .remote_ranks = 1});
  FakeDaemon daemon(node.view(0));
  shm::LaneProducer to_daemon(&node.view(0).layout->to_daemon);
  while (to_daemon.TryPush(Make(DescriptorKind::kCredit, 0))) {
  }
  PushNonsense(node, 1);
  node[0].Progress();
  EXPECT_EQ(daemon.Take(shm::kLaneSlots).size(), shm::kLaneSlots);
  node[0].Progress();
  const std::vector<Descriptor> told = daemon.Take();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].kind, static_cast<uint8_t>(DescriptorKind::kAccuse));
}

TEST(RankEngineCorruptTest, CreditsBeyondWhatWasSentAreIgnored) {
  TestNode node(NodeOptions{.local_ranks = 1, .remote_ranks = 1});
  FakeDaemon daemon(node.view(0));
  for (int i = 0; i < 3; ++i) {
    node[0].Isend(1, 7, "x");
  }
  daemon.Credit(1, ~uint32_t{0});
  node[0].Progress();
  const shm::PeerWords& peer = node.view(0).by_rank.peers[1];
  EXPECT_EQ(peer.sent - peer.credited, 3U);
  for (uint32_t i = 0; i < 2 * kRemoteWindow; ++i) {
    node[0].Isend(1, 7, "x");
  }
  EXPECT_EQ(peer.sent - peer.credited, kRemoteWindow);
}

TEST(RankEngineCorruptTest, CorruptMatchTablePoisonsTheRank) {
  for (const bool arrives : {true, false}) {
    TestNode node(NodeOptions{.unexpected_limit = 64});
    node[0].Irecv(1, 7, 16);
    for (uint32_t bucket = 0; bucket < shm::kMatchBuckets; ++bucket) {
      node.view(0).match()->posted[bucket] = {9999, 9999};
    }
    if (arrives) {
      node[1].Isend(0, 7, "x");
      node[0].Progress();
    } else {
      node[0].Irecv(1, 7, 16);
      EXPECT_EQ(node[0].start_error(), ErrorCode::kCorrupt);
    }
    EXPECT_EQ(node[0].poison(), ErrorCode::kCorrupt);
  }
}

TEST(RankEngineCorruptTest, PostedEntryThatNamesNoRequestPoisonsTheRank) {
  TestNode node;
  const uint32_t receive = node[0].Irecv(1, 7, 16);
  auto* entries = reinterpret_cast<shm::MatchEntry*>(node.view(0).match() + 1);
  entries[node[0].slot(receive).match_entry].request = 1'000'000;
  node[1].Isend(0, 7, "x");
  node[0].Progress();
  EXPECT_EQ(node[0].poison(), ErrorCode::kCorrupt);
}

TEST(RankEngineCorruptTest, ActivityOfNoLaneIsIgnored) {
  TestNode node;
  for (uint32_t word = 0; word < shm::kActivityWords; ++word) {
    node.view(0).inbox.wake()->activity[word] = ~uint64_t{0};
  }
  EXPECT_EQ(node[0].Progress(), 0U);
  node[1].Isend(0, 7, "x");
  EXPECT_EQ(node[0].Receive(1, 7, 16).data, "x");
}

TEST(RankEngineCorruptTest, CircularQueueEndsTheSearch) {
  TestNode node(NodeOptions{.request_limit = 16});
  Effects effects;
  node[0].engine().sends().OpenLane(1);
  while (node[0].engine().sends().TrySendInline({1, 0, 7, 0}, "", effects)) {
  }
  const uint32_t first = node[0].Isend(1, 7, "a");
  const uint32_t second = node[0].Isend(1, 7, "b");
  const uint32_t third = node[0].Isend(1, 7, "c");
  node[0].slot(second).next = first;
  EXPECT_TRUE(node[0].Cancel(third));
}

}  // namespace
}  // namespace ferry::engine
