// Connections between daemons that end while nothing is under way by them.
#include <gtest/gtest.h>

#include <vector>

#include "tests/internode/core/wired_cores.h"

namespace ferry::daemon {
namespace {

class LostConnectionTest : public WiredCoresTest {
 protected:
  void SetUp() override {
    judges_ = true;
    ASSERT_NO_FATAL_FAILURE(WiredCoresTest::Start(/*by_link=*/false, {0, 1}));
  }
  void Carry() {
    const std::vector<std::byte> sent(16, std::byte{7});
    std::vector<std::byte> got(sent.size());
    const uint32_t receive = Receive(1, got);
    EXPECT_EQ(rank(0).Send(1, kTag, sent.data(), sent.size()), 0U);
    Settle();
    ExpectReceived(1, receive);
    EXPECT_EQ(got, sent);
  }
};

// Bytes that the kernel had taken may not have arrived, so the life of the link is over, as after a
// break with messages under way.
TEST_F(LostConnectionTest, ALossIsJudged) {
  Carry();
  ends_[0]->Lose(/*lossless=*/false);
  Settle();
  EXPECT_EQ(lost_, std::vector<uint64_t>{kFirstLink + 1});
  // Nothing is sent before that.
  std::vector<std::byte> got(1);
  const uint32_t receive = Receive(1, got);
  const std::byte word{9};
  EXPECT_EQ(rank(0).Send(1, kTag, &word, 1), 0U);
  Settle();
  EXPECT_FALSE(rank(1).Test(receive));
  EXPECT_EQ(lost_.size(), 1U);
  CutWire();
  Settle();
  ExpectReceived(1, receive, ErrorCode::kLinkDown);
  Mend(1);
  Settle();
  const uint32_t told = rank(0).Send(1, kTag, &word, 1);  // each rank is told of a cut once
  ASSERT_NE(told, 0U);
  EXPECT_EQ(rank(0).Wait(told), ErrorCode::kLinkDown);
  Carry();
}

// The thread of a core sleeps while ranks say nothing, for as long as they like.
TEST_F(LostConnectionTest, AMessageHasItsOwnTimeAfterALongSleep) {
  constexpr uint64_t kHourNs = 3'600'000'000'000;
  Carry();
  ends_[0]->Lose(/*lossless=*/false);
  Settle();
  now_ns_ += kHourNs;
  const std::byte word{9};
  EXPECT_EQ(rank(0).Send(1, kTag, &word, 1), 0U);
  Settle();
  EXPECT_TRUE(violations_.empty()) << violations_.front();
  now_ns_ += kHourNs;  // in which it waits, for a node of which nothing is heard
  Settle();
  ASSERT_EQ(violations_.size(), 1U);
  EXPECT_EQ(violations_.front(),
            "its next message has waited too long for a node that is not connected");
}

TEST_F(LostConnectionTest, AConnectionThatIsClosedInGoodOrderIsNone) {
  Carry();
  ends_[0]->Lose(/*lossless=*/true);
  Settle();
  EXPECT_TRUE(lost_.empty());
  Carry();
}

// The control plane keeps no link where there is no job, and would not judge it.
TEST_F(LostConnectionTest, WithoutAJobTheNextOneBeginsAnew) {
  Carry();
  bool says_no_more = false;
  for (int n = 0; n < 100 && !cores_[0]->control().TryRemoveSession(kJob, 0, 0, &says_no_more);
       ++n) {
    Turn();
  }
  cores_[0]->control().RemoveJob(kJob);
  ends_[0]->Lose(/*lossless=*/false);
  Turn();
  EXPECT_TRUE(lost_.empty());
  ASSERT_TRUE(cores_[0]->control().AddJob(PlanFor(0)).ok());
  const NodeRoute route{{}, 10, 11, kFirstLink + 1, 0};
  const Status status = cores_[0]->control().AddNode(kJob, 1, route);
  EXPECT_TRUE(status.ok()) << status.ToString();
  ends_[0]->Lose(/*lossless=*/false);  // which is a link that works
  Turn();
  EXPECT_EQ(lost_, std::vector<uint64_t>{kFirstLink + 1});
}

}  // namespace
}  // namespace ferry::daemon
