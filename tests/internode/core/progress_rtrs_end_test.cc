// Messages that are written into receives that RTRs name end early, at each step: by cuts, deaths,
// memory that goes, and faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <string>

#include "shm/atomic.h"
#include "tests/internode/core/progress_rtrs_fixture.h"

namespace ferry::daemon {
namespace {

TEST_F(ProgressRtrsTest, ACutInTheMiddleEndsBothSidesAndTheKey) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const uint32_t pinned = gate(1).pinned;
  ASSERT_NO_FATAL_FAILURE(BeginHeld());
  Cut();
  ExpectEnds(ErrorCode::kLinkDown);
  EXPECT_EQ(gate(1).pinned, pinned - 1) << "nobody writes by the old key any more";
  gate(0).closed = false;
  ASSERT_NO_FATAL_FAILURE(Return());
  OpenWindow();
  EXPECT_EQ(gate(1).pinned, pinned);
  ExpectWritten();
  ExpectNoHarm();
}

TEST_F(ProgressRtrsTest, ACutEndsRtrsOnBothSides) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  for (int i = 0; i < 3; ++i) {
    ASSERT_NO_FATAL_FAILURE(Post());
    Cut();
    EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kLinkDown);
    EXPECT_TRUE(Meanwhile([&] { return shm::LoadAcquire(book().held) == 0; }));
    ASSERT_NO_FATAL_FAILURE(Return());
    OpenWindow();
  }
  ExpectNoHarm();
}

// While the other node does not take packets of the next life yet, an RTR would be lost, and so
// would the question for it. A rank posts such a receive if it learns late of a cut.
TEST_F(ProgressRtrsTest, NothingIsAnnouncedToANodeThatIsNotBack) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  Cut();
  EXPECT_EQ(WaitTogether(1, receiver().Receive(0, kTag, InHeap(kInto), kBytes)),
            ErrorCode::kLinkDown);
  ++life_;
  ASSERT_TRUE(Meanwhile([&] { return Connect(1, 0, life_).ok(); }));
  uint32_t& dead = receiver().view().by_rank.peers[0].dead;
  const uint32_t cut = shm::LoadAcquire(dead);
  shm::StoreRelease(dead, 0U);  // as an engine believes that has not looked since
  const uint32_t receive = receiver().Receive(0, kTag, InHeap(kInto), kBytes);
  shm::StoreRelease(dead, cut);
  receiver().RingDaemon();
  receiver().Cancel(receive);
  EXPECT_EQ(WaitTogether(1, receive), ErrorCode::kCancelled);
  ASSERT_TRUE(Meanwhile([&] { return Connect(0, 1, life_).ok(); }));
  ReturnNodes();
  EXPECT_EQ(WaitTogether(0, sender().Send(receiver_, 9, "x", 1)), ErrorCode::kLinkDown);
  ExpectWritten();
  ExpectNoHarm();
}

// The memory of a receive that failed is used for something else: writes that its source's NIC
// still holds must not arrive there. Here that is a write by the old key, after the link is back.
TEST_F(ProgressRtrsTest, ALateWriteByTheOldKeyDoesNotArrive) {
  ASSERT_NO_FATAL_FAILURE(StartHeld());
  // Only the receiver's node notices the cut.
  plane(1).NodeFailed(Incarnation(0), ErrorCode::kLinkDown);
  EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kLinkDown);
  std::memset(receiver().heap() + kInto, 0x77, kBytes);
  gate(0).closed = false;
  EXPECT_NE(WaitTogether(0, send_), ErrorCode::kOk);
  EXPECT_TRUE(std::all_of(receiver().heap() + kInto, receiver().heap() + kInto + kBytes,
                          [](std::byte byte) { return byte == std::byte{0x77}; }));
}

TEST_F(ProgressRtrsTest, ADeadNodeEndsBothSides) {
  ASSERT_NO_FATAL_FAILURE(StartHeld());
  Cut(ErrorCode::kNodeUnreachable);
  ExpectEnds(ErrorCode::kNodeUnreachable);
  gate(0).closed = false;
  ExpectNoHarm();
}

// The sender's daemon reports how the write has ended.
TEST_F(ProgressRtrsTest, ADeadSenderEndsTheReceiveOnceNothingIsWritten) {
  ASSERT_NO_FATAL_FAILURE(StartHeld());
  auto removed = std::async(std::launch::async, [&] { RemoveRank(0); });
  plane(1).RankEnded(kJob, 0, ErrorCode::kPeerDied);
  receiver().Progress();
  EXPECT_EQ(removed.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_EQ(StateOf(receive_), shm::RequestState::kRemoteWait) << "it is written still";
  gate(0).closed = false;
  removed.wait();
  EXPECT_NE(receiver().Wait(receive_), ErrorCode::kInternal);
  ExpectNoHarm();
}

TEST_F(ProgressRtrsTest, ADeadSourceEndsAReceiveThatItKnowsOf) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(Post());
  RemoveRank(0);
  plane(1).RankEnded(kJob, 0, ErrorCode::kPeerDied);
  EXPECT_EQ(receiver().Wait(receive_), ErrorCode::kPeerDied);
  ExpectNoHarm();
}

// The source's daemon has forgotten the job, and does not answer.
TEST_F(ProgressRtrsTest, ASourceWhoseDaemonKnowsNothingEndsAReceive) {
  ASSERT_NO_FATAL_FAILURE(StartOpen({1, 1}, FastOptions(400)));
  ASSERT_NO_FATAL_FAILURE(Post());
  RemoveRank(0);
  plane(0).RankEnded(kJob, 0, ErrorCode::kNotFound);
  plane(0).RemoveJob(kJob);
  EXPECT_EQ(receiver().Wait(receive_), ErrorCode::kNotFound);
  EXPECT_TRUE(Eventually([this] { return plane(1).Idle(); }));
}

TEST_F(ProgressRtrsTest, ADeadReceiverEndsTheSend) {
  ASSERT_NO_FATAL_FAILURE(StartHeld());
  RemoveRank(1);  // keeps the memory for what may still arrive
  plane(0).RankEnded(kJob, 1, ErrorCode::kPeerDied);
  EXPECT_EQ(sender().Wait(send_), ErrorCode::kPeerDied);
  gate(0).closed = false;
  ExpectNoHarm();
}

TEST_F(ProgressRtrsTest, TheReceiversRegionGoesWhileItIsWritten) {
  // Long enough for the write that is let go, also on a busy machine.
  ASSERT_NO_FATAL_FAILURE(StartOpen({1, 1}, FastOptions(3000)));
  for (const bool held_on : {false, true}) {
    SCOPED_TRACE(held_on);
    ASSERT_NO_FATAL_FAILURE(BeginHeld());
    auto removed =
        std::async(std::launch::async, [&] { plane(1).RemoveRegion(kJob, 1, kHeapRegion); });
    if (held_on) {  // no rank waits for the NIC: the memory is kept instead
      removed.wait();
      gate(0).closed = false;
      EXPECT_NE(WaitTogether(1, receive_), ErrorCode::kOk);
      (void)WaitTogether(0, send_);
      break;
    }
    EXPECT_EQ(removed.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    gate(0).closed = false;
    removed.wait();
    EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kOk) << "it was written before";
    EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kOk);
    ASSERT_TRUE(plane(1).AddRegion(kJob, 1, receiver().MakeHeap()).ok());
    OpenWindow();
  }
  ExpectNoHarm();
}

TEST_F(ProgressRtrsTest, TheReceiversRegionGoesBeforeTheMessage) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(Post());
  plane(1).RemoveRegion(kJob, 1, kHeapRegion);
  Send();
  ExpectEnds(ErrorCode::kInvalidBuffer);
  ASSERT_TRUE(plane(1).AddRegion(kJob, 1, receiver().MakeHeap()).ok());
  OpenWindow();
  ExpectNoHarm();
}

TEST_F(ProgressRtrsTest, TheSendersRegionWaitsForTheWrite) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  // On a busy machine the removal may begin only after the write has ended well: then once more.
  for (ErrorCode ended = ErrorCode::kOk; ended == ErrorCode::kOk;) {
    ASSERT_NO_FATAL_FAILURE(BeginHeld());
    auto removed =
        std::async(std::launch::async, [&] { plane(0).RemoveRegion(kJob, 0, kHeapRegion); });
    EXPECT_EQ(removed.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    gate(0).closed = false;
    removed.wait();
    ended = WaitTogether(receiver_, receive_);
    ASSERT_TRUE(ended == ErrorCode::kOk || ended == ErrorCode::kInvalidBuffer);
    EXPECT_EQ(WaitTogether(0, send_), ended);
    ASSERT_TRUE(plane(0).AddRegion(kJob, 0, sender().MakeHeap()).ok());
  }
  ExpectWritten();
  ExpectNoHarm();
}

// Faults.

struct Step {
  const char* point;
  uint32_t node;
  bool cancels;  // cancels the receive instead of the send
};

class FaultAtStepTest : public ProgressRtrsTest, public testing::WithParamInterface<Step> {
 protected:
  // The point may be passed while the window opens, so the rule counts from a fresh start: the
  // first RTR that leaves, and what follows it.
  void StartWith(const char* action) {
    GiveFaults(GetParam().node, std::string(GetParam().point) + ":1:" + action);
    ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  }
  std::string State() { return plane(GetParam().node).Faults(false)[0].state; }
  // Sends messages one by one until one of them meets the fault. On a busy machine an RTR may
  // come to the sender before the send, after it, or not at all.
  void Meet(const std::string& state) {
    for (int32_t tag = 100; State() != state; ++tag) {
      ASSERT_LT(tag, 1000);
      receive_ = receiver().Receive(0, tag, InHeap(kInto), kBytes);
      HoldsRtr();
      if (GetParam().cancels) {
        EXPECT_TRUE(receiver().Cancel(receive_));
      } else {
        Send(kBytes, tag);
      }
      ASSERT_TRUE(Meanwhile([&] { return State() == state || receiver().Test(receive_); }));
      if (receiver().Test(receive_) && State() != state) {
        (void)receiver().Wait(receive_);
        if (!GetParam().cancels) {
          (void)WaitTogether(0, send_);
        }
      }
    }
  }
};

TEST_P(FaultAtStepTest, GoesOnAfterAStandstill) {
  ASSERT_NO_FATAL_FAILURE(StartWith("stall"));
  ASSERT_NO_FATAL_FAILURE(Meet("stalls"));
  plane(GetParam().node).Faults(true);
  if (GetParam().cancels) {
    EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kCancelled);
  } else {
    ExpectPassed();
  }
  OpenWindow();
  ExpectWritten();
  ExpectNoHarm();
}

TEST_P(FaultAtStepTest, ALossCutsTheLinkAndEndsBothSides) {
  if (std::string(GetParam().point) == "put.write") {
    GTEST_SKIP() << "no packet: it cannot be lost, only fail";
  }
  ASSERT_NO_FATAL_FAILURE(StartWith("lose"));
  ASSERT_NO_FATAL_FAILURE(Meet("done"));
  ASSERT_TRUE(Eventually([&] { return !told_.Get(&Told::lost_links).empty(); }));
  Cut();
  const ErrorCode received = WaitTogether(1, receive_);
  // The message may have come by an RTS, and been read, while the RTR was lost.
  const bool announced = std::string(GetParam().point) == "send.rtr";
  EXPECT_TRUE(received == ErrorCode::kLinkDown || (announced && received == ErrorCode::kOk) ||
              (GetParam().cancels && received == ErrorCode::kCancelled))
      << static_cast<int>(received);
  if (!GetParam().cancels) {
    const ErrorCode sent = WaitTogether(0, send_);
    // A sender that has written the whole message is through, as with a small message.
    EXPECT_TRUE(sent == ErrorCode::kLinkDown || sent == ErrorCode::kOk) << static_cast<int>(sent);
  }
  ASSERT_NO_FATAL_FAILURE(Return());
  OpenWindow();
  ExpectWritten();
  EXPECT_TRUE(AllIdle());
}

INSTANTIATE_TEST_SUITE_P(All, FaultAtStepTest,
                         testing::Values(Step{"send.rtr", 1, false}, Step{"send.put", 0, false},
                                         Step{"put.write", 0, false},
                                         Step{"send.put_done", 0, false},
                                         Step{"send.withdraw", 1, true},
                                         Step{"send.withdrawn", 0, true}),
                         [](const auto& info) {
                           std::string name = info.param.point;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

// A write that was given up may still arrive: the receive ends with its key, and others go on.
TEST_F(ProgressRtrsTest, AWriteThatFailsEndsWithItsKey) {
  if (in_own_home) {
    GTEST_SKIP() << "on a busy machine the send may leave by an RTS before the RTR has come";
  }
  GiveFaults(0, "put.write:2:SYSTEM");
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const uint32_t begun = gate(1).begun;
  // An RTR that is out is withdrawn, too, and its message announced.
  const uint32_t other = receiver().Receive(0, 50, InHeap(2 << 20), kBytes);
  ASSERT_NO_FATAL_FAILURE(Post());
  Send();
  ExpectEnds(ErrorCode::kSystem);
  Send(kBytes, 50);
  ExpectEnd({0, 1, send_, other});
  EXPECT_TRUE(std::equal(sent_.begin(), sent_.end(), receiver().heap() + (2 << 20)));
  OpenWindow();
  EXPECT_GT(gate(1).begun, begun);
  ExpectWritten();
  ExpectNoHarm();
}

TEST_F(ProgressRtrsTest, ANicThatRefusesTheWindowCostsNothingElse) {
  if (in_own_home) {
    GTEST_SKIP() << "there is no trial, which the fault counts";
  }
  GiveFaults(1, "memory.register:9:LIMIT");  // the first after the trial
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  for (int i = 0; i < 3; ++i) {
    receive_ = receiver().Receive(0, kTag, InHeap(kInto), kBytes);
    EXPECT_FALSE(HoldsRtr());
    Send();
    ExpectPassed();
  }
  EXPECT_EQ(plane(1).Faults(false)[0].state, "done");
  EXPECT_EQ(writes(0), 0U);
  plane(1).RemoveRegion(kJob, 1, kHeapRegion);
  ExpectNoHarm();
}

}  // namespace
}  // namespace ferry::daemon
