// A rank that writes nonsense ends its own session, whoever finds it, and no other rank's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

using shm::Descriptor;
using shm::DescriptorKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AccusationTest : public PlaneTest {
 protected:
  void SetUp() override { Start({3, 1}); }

  // Rank 1 writes into its lane to rank 0 what no correct rank writes.
  void PushNonsense() {
    Descriptor nonsense{};
    nonsense.kind = 99;
    shm::LaneProducer(rank(0).view().inbox.lane(1)).TryPush(nonsense);
    rank(0).wake().PublishLane(1);
  }
  std::vector<std::string> Violations() { return told_.Get(&Told::violations); }
  void ExpectOthersGoOn() {
    EXPECT_EQ(Carry(2, 0), ErrorCode::kOk);
    EXPECT_EQ(Carry(3, 0), ErrorCode::kOk);
    EXPECT_EQ(Carry(0, 3), ErrorCode::kOk);
    EXPECT_EQ(rank(0).wake().poison(), ErrorCode::kOk);
    EXPECT_EQ(rank(2).wake().poison(), ErrorCode::kOk);
    EXPECT_EQ(rank(3).wake().poison(), ErrorCode::kOk);
  }
};

TEST_F(AccusationTest, EndsTheProducerOfANonsenseDescriptor) {
  PushNonsense();
  rank(0).Progress();
  ASSERT_TRUE(Eventually([&] { return !Violations().empty(); }));
  EXPECT_THAT(Violations(),
              ElementsAre(HasSubstr("its lane to rank 0 holds a descriptor of kind 99")));
  EXPECT_EQ(rank(1).wake().poison(), ErrorCode::kCorrupt);
  ExpectOthersGoOn();
}

TEST_F(AccusationTest, TheWorkerFindsItForARankThatComputes) {
  if (in_own_home) {
    GTEST_SKIP() << "no worker looks after ranks there";
  }
  PushNonsense();
  shm::Wake(&rank(1).view().layout->daemon_wake).AnnounceLane(0);
  rank(1).RingDaemon();
  ASSERT_TRUE(Eventually([&] { return !Violations().empty(); }));
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("its lane to rank 0 holds")));
  ExpectOthersGoOn();
}

TEST_F(AccusationTest, WithoutProofPartsTheTwoAndEndsNobody) {
  uint64_t got = 0;
  const uint32_t receive = rank(0).Receive(1, 1, Private(&got), sizeof(got));
  const uint32_t back = rank(1).Receive(0, 1, Private(&got), sizeof(got));
  rank(0).PushToDaemon(MakeCommand(DescriptorKind::kAccuse, shm::Accusation{1, 0, {}}));
  EXPECT_EQ(rank(0).Wait(receive), ErrorCode::kPeerDied);
  EXPECT_EQ(rank(1).Wait(back), ErrorCode::kPeerDied);
  EXPECT_THAT(Violations(), IsEmpty());
  ExpectOthersGoOn();
  EXPECT_EQ(Carry(2, 1), ErrorCode::kOk);
}

TEST_F(AccusationTest, ASessionWhoseMatchTableIsCorruptEnds) {
  if (in_own_home) {
    GTEST_SKIP() << "no worker looks after ranks there";
  }
  uint64_t got = 0;
  rank(1).Receive(2, 1, Private(&got), sizeof(got));
  for (shm::MatchBucket& bucket : rank(1).view().match()->posted) {
    bucket.first = 1'000'000;
  }
  uint64_t word = 1;
  rank(2).Send(1, 1, &word, sizeof(word));
  shm::Wake(&rank(2).view().layout->daemon_wake).AnnounceLane(1);
  rank(2).RingDaemon();
  ASSERT_TRUE(Eventually([&] { return !Violations().empty(); }));
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("the match table names entry 1000000")));
  EXPECT_EQ(rank(1).wake().poison(), ErrorCode::kCorrupt);
  ExpectOthersGoOn();
}

}  // namespace
}  // namespace ferry::daemon
