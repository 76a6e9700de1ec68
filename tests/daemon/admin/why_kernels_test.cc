// Requests of device rings without an answer, as `why` tells and follows them.
#include "daemon/admin/why_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "daemon/admin/why_edges.h"
#include "shm/call_record.h"
#include "tests/daemon/admin/why_graph_fixture.h"

namespace ferry::daemon {
namespace {

using Step = RingWait::Step;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kNowNs = 100'000'000'000;
constexpr uint64_t kSecond = 1'000'000'000;

RingWait WaitFor(Step step, uint64_t number, uint64_t age_ns = 3 * kSecond + kSecond / 8) {
  RingWait wait;
  wait.step = step;
  wait.number = number;
  wait.since_ns = kNowNs - age_ns;
  return wait;
}

RingWait Counter(uint64_t number, uint64_t age_ns = 3 * kSecond) {
  RingWait wait = WaitFor(Step::kCounter, number, age_ns);
  wait.counter = {3, 0, 64};
  wait.value = 1;
  wait.threshold = 2;
  return wait;
}

RingWait Start(uint64_t number, uint64_t done) {
  RingWait wait = WaitFor(Step::kStart, number);
  wait.counter = {5, 0, done};
  return wait;
}

RingWait Operation(Step step, shm::RingKind kind, uint32_t peer) {
  RingWait wait = WaitFor(step, 9);
  wait.kind = kind;
  wait.peer = peer;
  wait.size_bytes = kind == shm::RingKind::kAtomic ? 0 : 8;
  return wait;
}

RingReport Ring(const std::vector<RingWait>& waits) {
  RingReport ring;
  ring.place = 2;
  ring.slots = 64;
  ring.waits = waits;
  return ring;
}

// Ranks below 4 are here; a matched receive of rank 7 is at byte 512 of region 5.
std::vector<KernelWait> Find(const std::vector<RingReport>& rings) {
  const KernelContext context{
      [](const shm::Location& done) {
        return done.region == 5 && done.address == 512 ? std::optional(StartedPair{7, 3, false})
                                                       : std::nullopt;
      },
      [](uint32_t rank) { return rank < 4; },
  };
  return FindKernelWaits(rings, context, kNowNs);
}

KernelWait FindOne(const RingWait& wait) {
  const auto found = Find({Ring({wait})});
  EXPECT_THAT(found, SizeIs(1));
  return found.empty() ? KernelWait() : found[0];
}

control::RankWait Look(const std::string& call, const std::vector<KernelWait>& waits) {
  control::RankWait look;
  look.set_detail(call.empty() ? "is outside Ferry" : "is in " + call);
  if (!call.empty()) {
    look.add_calls()->set_name(call);
    look.mutable_calls(0)->set_ends_by("its stream has not done all that was enqueued");
  }
  AddKernelCalls(waits, &look);
  return look;
}

const char* QueueWait() { return shm::CallText(shm::CallName::kFerryQueueWait); }

TEST(KernelWaitsTest, ACounterMayBeChangedByAnyRank) {
  const KernelWait wait = FindOne(Counter(7));
  EXPECT_EQ(wait.call, "ferry_device_ring_await");
  EXPECT_EQ(wait.phrase,
            "ferry_device_ring_await, request 7 of ring 2, until the counter at byte 64 of region "
            "3 is 2 (it is 1)");
  EXPECT_EQ(wait.for_ns, 3 * kSecond);
  EXPECT_EQ(wait.ends_by, kAnyRankMayChange);
  EXPECT_EQ(wait.needs, KernelNeeds::kAnyRank);
  EXPECT_FALSE(wait.peer.has_value());
}

TEST(KernelWaitsTest, AStartNamesItsMatchedRequest) {
  const KernelWait wait = FindOne(Start(4, 512));
  EXPECT_EQ(wait.phrase,
            "ferry_device_ring_start, request 4 of ring 2, to receive from rank 7, tag 3");
  EXPECT_EQ(wait.ends_by, "");
  EXPECT_EQ(wait.needs, KernelNeeds::kProgram);
  EXPECT_EQ(wait.peer, 7U);
  const KernelWait gone = FindOne(Start(4, 640));
  EXPECT_EQ(gone.phrase, "ferry_device_ring_start, request 4 of ring 2");
  EXPECT_EQ(gone.ends_by, "its matched request has ended");
  EXPECT_FALSE(gone.peer.has_value());
}

TEST(KernelWaitsTest, AnOperationNeedsTheOtherNode) {
  const KernelWait far = FindOne(Operation(Step::kUnderWay, shm::RingKind::kPutValue, 6));
  EXPECT_EQ(far.phrase, "ferry_device_ring_put_value, request 9 of ring 2, 8 B at rank 6");
  EXPECT_EQ(far.ends_by, "the ferryd of rank 6's node has not answered");
  EXPECT_EQ(far.needs, KernelNeeds::kNode);
  EXPECT_EQ(far.peer, 6U);
  const KernelWait near = FindOne(Operation(Step::kUnderWay, shm::RingKind::kGet, 1));
  EXPECT_EQ(near.ends_by, "ferryd has not ended it");
  EXPECT_FALSE(near.peer.has_value());
  RingWait held = Operation(Step::kHeld, shm::RingKind::kAtomic, 6);
  held.wants = "its memory is not registered with the network yet";
  EXPECT_EQ(FindOne(held).phrase, "ferry_device_ring_atomic, request 9 of ring 2, at rank 6");
  EXPECT_EQ(FindOne(held).ends_by,
            "it has not begun: its memory is not registered with the network yet");
  RingWait signalled = Operation(Step::kUnderWay, shm::RingKind::kPut, 6);
  signalled.is_signalled = true;
  EXPECT_EQ(FindOne(signalled).call, "ferry_device_ring_put_signal");
  EXPECT_EQ(FindOne(WaitFor(Step::kUnwritten, 3)).call, "ferry_device_ring_post");
}

TEST(KernelWaitsTest, TheStateOfTheRingIsTold) {
  RingReport ring = Ring({Operation(Step::kUnderWay, shm::RingKind::kPutValue, 6)});
  ring.waits[0].count = 4096;
  ring.is_full = true;
  EXPECT_EQ(Find({ring})[0].phrase,
            "ferry_device_ring_put_value, request 9 of ring 2, 8 B at rank 6, and 4095 like it; "
            "all 64 slots of the ring are taken");
  ring.is_partial = true;
  EXPECT_THAT(Find({ring})[0].phrase, testing::HasSubstr(", and at least 4095 like it; "));
  ring.is_full = false;
  ring.is_closing = true;
  EXPECT_THAT(
      Find({ring})[0].phrase,
      testing::EndsWith("; the rank destroys the ring, which first carries out its operations"));
}

TEST(KernelWaitsTest, TheLongestCountAndShortOnesDoNot) {
  EXPECT_THAT(Find({Ring({Counter(1, kSecond / 2 - 1)})}), IsEmpty());
  EXPECT_THAT(Find({Ring({Counter(1, kSecond / 2)})}), SizeIs(1));
  EXPECT_THAT(Find({Ring({WaitFor(Step::kUnwritten, 1, 0)})}), IsEmpty());
  RingWait ahead = Counter(1);
  ahead.since_ns = kNowNs + 5;  // the progress thread's clock is read at another time
  EXPECT_THAT(Find({Ring({ahead})}), IsEmpty());
  std::vector<RingReport> rings;
  for (uint64_t age = 1; age <= 9; ++age) {
    rings.push_back(Ring({Counter(age, age * kSecond)}));
  }
  const auto found = Find(rings);
  ASSERT_THAT(found, SizeIs(4));
  EXPECT_EQ(found[0].for_ns, 9 * kSecond);
  EXPECT_EQ(found[3].for_ns, 6 * kSecond);
}

TEST(KernelWaitsTest, AreTheCallsOfARankOutsideFerry) {
  const auto waits = Find({Ring({Start(4, 512), Counter(5)})});
  control::RankWait look = Look("", waits);
  ASSERT_EQ(look.calls_size(), 2);
  EXPECT_EQ(look.calls(0).name(), "ferry_device_ring_start");
  EXPECT_EQ(look.calls(0).for_ms(), 3125U);
  EXPECT_FALSE(look.calls(0).meets());
  EXPECT_EQ(look.calls(1).ends_by(), kAnyRankMayChange);
  EXPECT_THAT(TellKernels(waits, &look), ElementsAre(7));
  EXPECT_EQ(look.detail(),
            "is outside Ferry; a kernel of it has had no answer for 3.1 s to "
            "ferry_device_ring_start, request 4 of ring 2, to receive from rank 7, tag 3");
  EXPECT_EQ(NeedsOf(look), KernelNeeds::kProgram);
}

TEST(KernelWaitsTest, ExplainAQueue) {
  const auto waits = Find({Ring({Counter(5)})});
  control::RankWait look = Look(QueueWait(), waits);
  EXPECT_THAT(TellKernels(waits, &look), IsEmpty());
  EXPECT_THAT(look.detail(),
              testing::StartsWith("is in ferry_queue_wait: its stream has not done all that was "
                                  "enqueued; a kernel of it has had no answer for 3.0 s to "));
  EXPECT_EQ(look.calls(0).ends_by(), kAnyRankMayChange);
  EXPECT_EQ(NeedsOf(look), KernelNeeds::kAnyRank);
  EXPECT_TRUE(IsForAnybody(look));
  EXPECT_TRUE(IsAny(look));
  EXPECT_EQ(NeedsOf(Look(shm::CallText(shm::CallName::kFerryStreamSynchronize), waits)),
            KernelNeeds::kAnyRank);
}

// The wait of a rank's thread counts, and those of its kernels are told beside it.
TEST(KernelWaitsTest, DoNotChangeWhomACallWaitsFor) {
  control::RankWait look = Look("", {});
  look.add_calls()->set_name("MPI_Recv");
  AddKernelCalls(Find({Ring({Counter(5)})}), &look);
  look.add_edges()->set_peer(1);
  look.mutable_edges(0)->set_receives(true);
  EXPECT_EQ(NeedsOf(look), KernelNeeds::kNothing);
  EXPECT_FALSE(IsAny(look));
  EXPECT_FALSE(IsForAnybody(look));
  control::RankWait queue = Look(QueueWait(), Find({Ring({Counter(5)})}));
  *queue.add_edges() = look.edges(0);
  EXPECT_EQ(NeedsOf(queue), KernelNeeds::kNothing);
  EXPECT_TRUE(IsAhead(queue, queue.edges(0)));
  EXPECT_EQ(NeedsOf(Look("", {})), KernelNeeds::kNothing);
}

TEST(KernelWaitsTest, OneThingNeededCountsBeforeOthers) {
  const RingWait put = Operation(Step::kUnderWay, shm::RingKind::kPut, 6);
  EXPECT_EQ(NeedsOf(Look("", Find({Ring({Counter(5), put})}))), KernelNeeds::kNode);
  EXPECT_EQ(NeedsOf(Look("", Find({Ring({Counter(5), put, Start(1, 512)})}))),
            KernelNeeds::kProgram);
  const auto waits = Find({Ring({Counter(5), put, Start(1, 512)})});
  control::RankWait look = Look("", waits);
  EXPECT_THAT(TellKernels(waits, &look), ElementsAre(7)) << "only those that the need is for";
}

// ---- In the graph of waits ----------------------------------------------------------------------

// A rank outside Ferry, of which a kernel waits for those peers.
RankWait KernelWaits(uint32_t rank, KernelNeeds needs, const std::vector<uint32_t>& peers,
                     uint64_t for_ms = 3000) {
  KernelWait wait;
  wait.call = needs == KernelNeeds::kProgram   ? "ferry_device_ring_start"
              : needs == KernelNeeds::kAnyRank ? "ferry_device_ring_await"
                                               : "ferry_device_ring_put";
  wait.phrase = wait.call + ", request 1 of ring 0";
  wait.for_ns = for_ms * 1'000'000;
  wait.ends_by = needs == KernelNeeds::kAnyRank ? kAnyRankMayChange
                 : needs == KernelNeeds::kNode  ? "a ferryd has not answered"
                                                : "";
  wait.needs = needs;
  RankWait look = Does(rank, "waits", "is outside Ferry");
  look.set_waits_ms(for_ms);
  AddKernelCalls({wait}, &look);
  TellKernels({wait}, &look);
  for (const uint32_t peer : peers) {
    look.add_edges()->set_peer(peer);
  }
  return look;
}

constexpr char kCircle[] = "in a circle of kernels: ranks 0, 1 wait for each other";

class KernelGraphTest : public WhyGraphTest {};

TEST_F(KernelGraphTest, AChainGoesThroughKernels) {
  const RankWait told = Explain({Waits(2, {1}), KernelWaits(1, KernelNeeds::kProgram, {0}),
                                 Does(0, "computes", "computes outside Ferry")})[0];
  EXPECT_THAT(told.chain(), ElementsAre(2, 1, 0));
  EXPECT_EQ(told.verdict(),
            "rank 2 waits for rank 1, which waits for rank 0, which computes outside Ferry; rank 1 "
            "is outside Ferry; a kernel of it has had no answer for 3.0 s to "
            "ferry_device_ring_start, request 1 of ring 0");
}

TEST_F(KernelGraphTest, StartsThatWaitForEachOtherAreACircleAndNoDeadlock) {
  nodes_.Knows(KernelWaits(1, KernelNeeds::kProgram, {0}));
  const RankWait told = Explain({KernelWaits(0, KernelNeeds::kProgram, {1})})[0];
  EXPECT_FALSE(told.deadlock());
  EXPECT_THAT(told.chain(), ElementsAre(0, 1));
  EXPECT_THAT(told.verdict(), testing::HasSubstr(kCircle));
  EXPECT_EQ(told.verdict().find("deadlock"), std::string::npos);
  EXPECT_EQ(nodes_.paused.count(), 0);
}

TEST_F(KernelGraphTest, CountersAreACircleIfAllRanksThatMayChangeThemWait) {
  const RankWait first = KernelWaits(0, KernelNeeds::kAnyRank, {1});
  const RankWait told = Explain({first, KernelWaits(1, KernelNeeds::kAnyRank, {0})})[0];
  EXPECT_THAT(told.chain(), ElementsAre(0)) << "neither is to blame";
  EXPECT_THAT(told.verdict(),
              testing::HasSubstr(std::string(": ") + kAnyRankMayChange + "; " + kCircle));
  EXPECT_FALSE(told.deadlock());
  EXPECT_EQ(Explain({first, Does(1, "computes", "computes outside Ferry")})[0].verdict(),
            "rank 0 is outside Ferry; a kernel of it has had no answer for 3.0 s to "
            "ferry_device_ring_await, request 1 of ring 0: any rank may change the memory that it "
            "waits for");
  EXPECT_EQ(Explain({KernelWaits(0, KernelNeeds::kAnyRank, {1, 2}),
                     KernelWaits(1, KernelNeeds::kAnyRank, {0, 2}), Does(2, "computes", "")})[0]
                .verdict()
                .find("circle"),
            std::string::npos)
      << "rank 2 may";
}

TEST_F(KernelGraphTest, AThreadMayBePartOfTheCircle) {
  RankWait waits = Waits(1, {0});
  waits.add_calls()->set_name("MPI_Recv");
  waits.mutable_calls(0)->set_for_ms(3000);
  const auto told = Explain({KernelWaits(0, KernelNeeds::kAnyRank, {1}), waits});
  EXPECT_THAT(told[0].verdict(), testing::HasSubstr(kCircle));
  EXPECT_THAT(told[1].verdict(), testing::HasSubstr(kCircle));
  EXPECT_FALSE(told[1].deadlock());
}

// Waits of which one began after the look at another one need not have been there together.
TEST_F(KernelGraphTest, AWaitThatHasJustBegunIsInNoCircle) {
  const auto told = Explain(
      {KernelWaits(0, KernelNeeds::kProgram, {1}), KernelWaits(1, KernelNeeds::kProgram, {0}, 0)});
  EXPECT_EQ(told[0].verdict().find("circle"), std::string::npos);
}

TEST_F(KernelGraphTest, AnOperationNeedsTheNodeAndNotTheProgram) {
  const std::string alone =
      "rank 0 is outside Ferry; a kernel of it has had no answer for 3.0 s to "
      "ferry_device_ring_put, request 1 of ring 0: a ferryd has not answered";
  const RankWait first = KernelWaits(0, KernelNeeds::kNode, {1});
  EXPECT_EQ(Explain({first, Does(1, "computes", "computes outside Ferry")})[0].verdict(), alone);
  EXPECT_EQ(Explain({first, Waits(1, {2}), Does(2, "computes", "")})[0].verdict(), alone);
  EXPECT_EQ(Explain({first, KernelWaits(1, KernelNeeds::kNode, {0})})[0].verdict(), alone);
  EXPECT_THAT(Explain({first, Does(1, "stopped", "is stopped by a signal")})[0].chain(),
              ElementsAre(0, 1));
  nodes_.silent = true;
  const RankWait told = Explain({first})[0];
  EXPECT_THAT(told.chain(), ElementsAre(0, 1));
  EXPECT_THAT(told.verdict(),
              testing::StartsWith("rank 0 waits for rank 1, which is on node 1; rank 0 is outside "
                                  "Ferry; a kernel of it has had no answer"));
  EXPECT_THAT(told.troubles(), SizeIs(1));
}

// Two threads that wait for each other do so for ever, whatever kernels wait for meanwhile.
TEST_F(KernelGraphTest, KernelsHideNoDeadlockOfThreads) {
  RankWait waits = Waits(0, {1});
  waits.add_calls()->set_name("MPI_Recv");
  waits.add_calls()->set_name("ferry_device_ring_await");
  waits.mutable_calls(1)->set_ends_by(kAnyRankMayChange);
  EXPECT_TRUE(Explain({waits, Waits(1, {0})})[0].deadlock());
}

}  // namespace
}  // namespace ferry::daemon
