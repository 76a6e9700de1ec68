// A core in each of two ranks, which serves it for its direct link: engines, cores and a wire.
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "engine/engine_options.h"
#include "shm/atomic.h"
#include "tests/internode/core/wired_cores.h"

namespace ferry::daemon {
namespace {

class ProgressRankHomeTest : public WiredCoresTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Start(/*by_link=*/true, {0, 1})); }

  uint32_t Send(uint32_t from, const std::vector<std::byte>& data, int32_t tag = kTag) {
    return rank(from).Send(1 - from, tag, data.data(), data.size());
  }
  void ExpectSent(uint32_t from, uint32_t request) {
    ASSERT_TRUE(rank(from).Test(request));
    if (request != 0) {
      EXPECT_EQ(rank(from).Wait(request), ErrorCode::kOk);
    }
  }
  const shm::PeerWords& WordsOf(uint32_t one) const {
    return ranks_[one]->view().by_rank.peers[1 - one];
  }
};

TEST_F(ProgressRankHomeTest, MovesMessagesOfAllSizesBothWays) {
  for (const uint64_t bytes :
       {0, 1, 32, 33, 8192, 8193, 65'536, 65'537, 524'288, 524'289, 3'000'000}) {
    for (const bool waits : {true, false}) {
      if (!waits && bytes > kMostParked && bytes <= 512 << 10) {
        continue;  // more than may be kept
      }
      for (const uint32_t from : {0U, 1U}) {
        SCOPED_TRACE(testing::Message() << bytes << " bytes from " << from << ", " << waits);
        const std::vector<std::byte> sent = Pattern(bytes, from + 1);
        std::vector<std::byte> got(bytes);
        uint32_t receive = waits ? Receive(1 - from, got) : 0;
        const uint32_t send = Send(from, sent);
        Settle();
        receive = waits ? receive : Receive(1 - from, got);
        Settle();
        ExpectReceived(1 - from, receive);
        ExpectSent(from, send);
        EXPECT_EQ(got, sent);
      }
    }
  }
  for (const uint32_t node : {0U, 1U}) {
    EXPECT_TRUE(cores_[node]->control().Idle());
    EXPECT_TRUE(cores_[node]->control().IsIdleWith(kJob, 1 - node));
    EXPECT_EQ(ranks_[node]->view().inbox.lane(shm::DaemonLane(1))->producer.tail, 0U)
        << "the daemon had nothing to do with it";
  }
}

// From the sender's buffer into the receiver's.
TEST_F(ProgressRankHomeTest, LongMessagesArePushedToTheirPlace) {
  const std::vector<std::byte> sent = Pattern(500'000, 1);
  std::vector<std::byte> got(sent.size());
  const uint32_t receive = Receive(1, got);
  const uint32_t send = Send(0, sent);
  Settle();
  ExpectReceived(1, receive);
  ExpectSent(0, send);
  ASSERT_EQ(ends_[1]->places.size(), 1U);
  EXPECT_EQ(ends_[1]->places[0], got.data());
  EXPECT_EQ(ends_[1]->reads(), 0U);
}

TEST_F(ProgressRankHomeTest, StreamsGoOnBeyondTheWindowOfWhatIsPushed) {
  constexpr uint32_t kMessages = 100;
  const std::vector<std::byte> sent = Pattern(100'000, 1);
  std::vector<std::byte> got(sent.size());
  uint32_t pushed = 0;
  for (uint32_t i = 0; i < kMessages; ++i) {
    const uint32_t receive = Receive(1, got);
    const uint32_t send = Send(0, sent);
    Settle();
    ExpectReceived(1, receive);
    ExpectSent(0, send);
    EXPECT_EQ(got, sent);
    pushed += sent.size();
  }
  EXPECT_EQ(WordsOf(0).pushed, pushed) << "each was pushed";
  EXPECT_EQ(WordsOf(1).pushed_taken, pushed);
  EXPECT_LE(WordsOf(0).pushed - WordsOf(0).pushed_credited, engine::kPushWindow / 2 + sent.size());
}

// Those beyond the window are fetched.
TEST_F(ProgressRankHomeTest, AReceiverThatIsLateGetsAllOfThemInOrder) {
  constexpr uint32_t kMessages = 30;
  std::vector<std::vector<std::byte>> sent;
  std::vector<uint32_t> sends;
  for (uint32_t i = 0; i < kMessages; ++i) {
    sent.push_back(Pattern(10'000, i));
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    sends.push_back(Send(0, sent[i]));
  }
  Settle();
  for (uint32_t i = 0; i < kMessages; ++i) {
    std::vector<std::byte> got(sent[i].size());
    const uint32_t receive = Receive(1, got);
    Settle();
    ExpectReceived(1, receive);
    EXPECT_EQ(got, sent[i]) << i;
    ExpectSent(0, sends[i]);
  }
}

TEST_F(ProgressRankHomeTest, SynchronousSendsWaitForTheirReceive) {
  const std::vector<std::byte> sent = Pattern(50'000, 1);
  std::vector<std::byte> got(sent.size());
  const uint32_t send =
      rank(0).SendFrom(1, kTag, Private(sent.data()), sent.size(), shm::kRequestSynchronous);
  Settle();
  EXPECT_FALSE(rank(0).Test(send));
  const uint32_t receive = Receive(1, got);
  Settle();
  ExpectReceived(1, receive);
  ExpectSent(0, send);
  EXPECT_EQ(got, sent);
}

// ferryd alone says who is gone: two would contradict each other.
TEST_F(ProgressRankHomeTest, OfALostLinkTheHomeIsToldAndNoRank) {
  const std::vector<std::byte> sent = Pattern(600'000, 1);
  (void)Send(0, sent);  // an RTS
  Settle();
  EXPECT_FALSE(cores_[0]->control().IsIdleWith(kJob, 1));
  EXPECT_FALSE(cores_[1]->control().IsIdleWith(kJob, 0));
  const uint32_t epochs[] = {rank(0).view().inbox.wake()->death_epoch,
                             rank(1).view().inbox.wake()->death_epoch};
  CutWire();
  Settle(/*progresses=*/false);
  ASSERT_EQ(ended_.size(), 2U);
  for (const uint32_t node : {0U, 1U}) {
    EXPECT_EQ(ended_[node], std::pair(1 - node, ErrorCode::kLinkDown));
    EXPECT_EQ(WordsOf(node).dead, 0U);
    EXPECT_EQ(ranks_[node]->view().by_rank.rtrs[1 - node].cuts, 0U);
    EXPECT_EQ(ranks_[node]->view().inbox.wake()->death_epoch, epochs[node]);
    EXPECT_TRUE(cores_[node]->control().IsIdleWith(kJob, 1 - node));
  }
  Mend(1);  // at once: the engines are the home's to part
}

}  // namespace
}  // namespace ferry::daemon
