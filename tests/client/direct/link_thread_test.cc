// Ranks that compute, or do nothing at all.
#include "tests/client/direct/link_thread.h"

#include <cstring>

#include "common/clock.h"
#include "tests/client/direct/links_fixture.h"
#include "tests/client/direct/peer_process.h"

namespace ferry::client {
namespace {

class LinkThreadTest : public LinksTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(StartLinked()); }
  // Rank 0 makes calls; rank 1 is outside the library.
  bool WhileRankOneComputes(const std::function<bool()>& condition) {
    return Eventually([&] {
      (void)rank(0).Progress();
      return condition();
    });
  }
};

TEST_F(LinkThreadTest, TransfersEndWhileTheReceiverComputes) {
  TurningThread thread(rank(1));
  for (const uint64_t size : {65536ULL, 524288ULL, 1048576ULL, 4194304ULL}) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> sent = Pattern(size, 1);
    std::vector<std::byte> got(size);
    const uint32_t receive = rank(1).Receive(0, 7, Private(got.data()), size);
    thread.Arm();
    const uint32_t send = rank(0).SendFrom(1, 7, Private(sent.data()), size);
    EXPECT_TRUE(WhileRankOneComputes([&] { return rank(0).Test(send); }));
    EXPECT_TRUE(WhileRankOneComputes([&] { return rank(1).Test(receive); }));
    EXPECT_EQ(rank(0).Finish(send), ErrorCode::kOk);
    EXPECT_EQ(rank(1).Finish(receive), ErrorCode::kOk);
    ASSERT_EQ(got, sent);
  }
}

TEST_F(LinkThreadTest, TransfersEndWhileTheSenderComputes) {
  TurningThread thread(rank(1));
  for (const uint64_t size : {65536ULL, 1048576ULL, 4194304ULL}) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> sent = Pattern(size, 2);
    std::vector<std::byte> got(size);
    const uint32_t send = rank(1).SendFrom(0, 7, Private(sent.data()), size);
    thread.Arm();
    const uint32_t receive = rank(0).Receive(1, 7, Private(got.data()), size);
    EXPECT_TRUE(WhileRankOneComputes([&] { return rank(0).Test(receive) && rank(1).Test(send); }));
    EXPECT_EQ(rank(1).Finish(send), ErrorCode::kOk);
    EXPECT_EQ(rank(0).Finish(receive), ErrorCode::kOk);
    ASSERT_EQ(got, sent);
  }
}

// Both turn the same links; messages are lost or doubled by none of it.
TEST_F(LinkThreadTest, ThreadsOfARankTakeTurns) {
  TurningThread one(rank(0)), other(rank(1));
  constexpr uint64_t kSizes[] = {8, 3000, 40'000, 300'000, 1'200'000};
  for (uint32_t i = 0; i < 200; ++i) {
    const uint64_t size = kSizes[i % std::size(kSizes)];
    const std::vector<std::byte> sent = Pattern(size, i);
    std::vector<std::byte> got(size);
    Passage passage{i % 2, 1 - i % 2};
    passage.receive =
        rank(passage.to).Receive(static_cast<int32_t>(passage.from), 7, Private(got.data()), size);
    one.Arm();
    other.Arm();
    passage.send = rank(passage.from).Send(passage.to, 7, sent.data(), size);
    ExpectEnd(passage);
    ASSERT_EQ(got, sent) << i;
  }
}

TEST_F(LinkThreadTest, IdleLinkTakesNoTime) {
  TurningThread thread(rank(1));
  Carry(0, 1);
  ExpectIdle(0, 1);
  thread.Arm();
  ASSERT_TRUE(Eventually([&] { return thread.sleeps() == 1; }));
  const uint64_t wakes = thread.wakes();
  const uint64_t cpu_ns = thread.cpu_ns();
  // Only a time that passes shows that nothing happens in it.
  const uint64_t until_ns = MonotonicNs() + 300'000'000;
  ASSERT_TRUE(Eventually([&] { return MonotonicNs() >= until_ns; }));
  EXPECT_EQ(thread.sleeps(), 1U);
  EXPECT_EQ(thread.wakes(), wakes);
  EXPECT_LT(thread.cpu_ns() - cpu_ns, 200'000U);  // the end of what came before the sleep
  // And yet it wakes up for a message.
  const std::vector<std::byte> sent = Pattern(kHeapBytes / 4, 3);
  const uint32_t receive = rank(1).Receive(0, 7, InHeap(0), sent.size());
  thread.Arm();
  const uint32_t send = rank(0).SendFrom(1, 7, Private(sent.data()), sent.size());
  EXPECT_TRUE(WhileRankOneComputes([&] { return rank(0).Test(send) && rank(1).Test(receive); }));
  EXPECT_EQ(std::memcmp(rank(1).heap(), sent.data(), sent.size()), 0);
}

}  // namespace
}  // namespace ferry::client
