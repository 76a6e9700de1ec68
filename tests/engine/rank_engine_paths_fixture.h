// One rank with two paths to the ranks of other nodes: the test is its daemon, and its own core.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shm/atomic.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {

inline constexpr uint32_t kFar = 1;    // elsewhere, as
inline constexpr uint32_t kOther = 2;  // this one
inline constexpr int32_t kTag = 7;

class RankEnginePathsTest : public testing::Test {
 protected:
  TestRank& rank() { return node_[0]; }
  RankEngine& engine() { return rank().engine(); }
  shm::SessionLayout& session() { return *node_.view(0).layout; }
  shm::PeerWords& peer(uint32_t rank = kFar) { return node_.view(0).by_rank.peers[rank]; }
  shm::LinkWords& link(uint32_t rank = kFar) { return node_.view(0).by_rank.links[rank]; }
  shm::LinkState state(uint32_t rank = kFar) {
    return static_cast<shm::LinkState>(link(rank).state);
  }

  ErrorCode Use(uint32_t rank = kFar) {
    Effects effects;
    return engine().paths().UseLink(rank, effects);
  }
  void Leave(uint32_t rank = kFar) {
    Effects effects;
    engine().paths().LeaveLink(rank, effects);
  }
  void Fail(uint32_t rank = kFar) {
    Effects effects;
    engine().paths().FailLink(rank, effects);
  }
  // The peer answers the last marker, by the daemons.
  void Answer(uint32_t rank = kFar) {
    ASSERT_TRUE(daemon_.Push(
        shm::DescriptorKind::kCredit, rank, 0, 0,
        shm::CreditReturn{peer(rank).sent, shm::kCreditAll, 0, peer(rank).path_epoch, {}}));
    this->rank().Progress();
  }
  void UseAndAnswer(uint32_t rank = kFar) {
    ASSERT_EQ(Use(rank), ErrorCode::kOk);
    Answer(rank);
    ASSERT_EQ(engine().paths().PathTo(rank), shm::PeerPath::kLink);
  }
  // The peer's last word on the path of the core.
  void PeerSwitches(FakeDaemon& core, uint32_t epoch) {
    ASSERT_TRUE(
        core.Push(shm::DescriptorKind::kSwitch, kFar, 0, 0, shm::SwitchMarker{epoch, 0, {}}));
    rank().Progress();
  }
  std::vector<shm::LinkMatter> TakeMatters() {
    std::vector<shm::LinkMatter> matters;
    for (const shm::Descriptor& descriptor : daemon_.TakeOf(shm::DescriptorKind::kLinkWanted)) {
      EXPECT_EQ(descriptor.destination, kFar);
      matters.push_back(
          static_cast<shm::LinkMatter>(PayloadOf<shm::LinkCommand>(descriptor).matter));
    }
    return matters;
  }
  static std::vector<uint8_t> KindsOf(const std::vector<shm::Descriptor>& descriptors) {
    std::vector<uint8_t> kinds;
    for (const shm::Descriptor& descriptor : descriptors) {
      kinds.push_back(descriptor.kind);
    }
    return kinds;
  }
  uint32_t Rts(uint64_t size_bytes = 20'000, uint32_t flags = 0, uint32_t to = kFar) {
    return rank().IsendByRequest(to, kTag, std::string(size_bytes, 's'), flags);
  }
  std::string TextOf(const shm::Descriptor& descriptor) {
    return {reinterpret_cast<const char*>(descriptor.payload), descriptor.size_bytes};
  }

  // An RTS of the peer's that the core knows by `key`.
  void PeerRts(FakeDaemon& core, uint64_t key, uint64_t size_bytes = 20'000, uint8_t flags = 0) {
    shm::Descriptor descriptor{};
    descriptor.kind = static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts);
    descriptor.flags = flags;
    descriptor.source = kFar;
    descriptor.tag = kTag;
    descriptor.size_bytes = size_bytes;
    SetPayload(&descriptor, shm::RemoteRts{7, 3, key, {}});
    ASSERT_TRUE(core.Push(descriptor));
    rank().Progress();
  }

  EngineOptions options_ = [] {
    EngineOptions options;
    options.receiver_first_min_bytes = 100'000;
    return options;
  }();
  TestNode node_{NodeOptions{.local_ranks = 1, .remote_ranks = 2}, options_};
  FakeDaemon daemon_{node_.view(0)};
  FakeDaemon core_{node_.view(0), Core::kLink};
};

}  // namespace ferry::engine
