// Reports of a data plane on the requests of rings that have no answer.
#include "daemon/device_rings/ring_report.h"

#include <gmock/gmock.h>

#include <vector>

#include "common/clock.h"
#include "tests/daemon/device_rings/ring_operations_fixture.h"

namespace ferry::daemon {
namespace {

using Step = RingWait::Step;
using testing::IsEmpty;

TEST(RingWaitsTest, PutsTogetherWhatWaitsForTheSame) {
  RingWaits waits;
  RingWait wait;
  wait.step = Step::kCounter;
  wait.counter = {3, 0, 64};
  for (const uint64_t number : {7, 5, 6}) {
    wait.number = number;
    wait.since_ns = 100 + number;
    waits.Add(wait);
  }
  wait.counter = {3, 0, 128};
  wait.since_ns = 1;
  waits.Add(wait);
  const std::vector<RingWait> sorted = waits.Sorted();
  ASSERT_EQ(sorted.size(), 2U);
  EXPECT_EQ(sorted[0].counter.address, 128U);
  EXPECT_EQ(sorted[0].count, 1U);
  EXPECT_EQ(sorted[1].number, 5U) << "the oldest";
  EXPECT_EQ(sorted[1].count, 3U);
}

// A rank may have thousands of counters.
TEST(RingWaitsTest, IsBounded) {
  RingWaits waits;
  RingWait wait;
  for (uint64_t i = 0; i < 1000; ++i) {
    wait.counter.address = i * 64;
    waits.Add(wait);
  }
  EXPECT_EQ(waits.Sorted().size(), 64U);
}

class RingReportTest : public RingOperationsTest {
 protected:
  // Returns the report of the only ring of rank 0.
  RingReport Report() {
    const auto reports = dynamic_cast<const RingInspector&>(plane(0)).InspectRings(kJob, 0);
    EXPECT_EQ(reports.size(), 1U);
    return reports.empty() ? RingReport() : reports[0];
  }
  // Once the daemon has taken so many requests.
  RingReport ReportAfter(uint64_t requests) {
    EXPECT_TRUE(Eventually([&] { return ring_->requests() == requests; }));
    return Report();
  }
};

TEST_F(RingReportTest, ACounterThatDoesNotComeHasItsValue) {
  const uint64_t before_ns = MonotonicNs();
  StartRanks();
  EXPECT_THAT(Report().waits, IsEmpty());
  for (uint32_t i = 0; i < 2; ++i) {  // until it is 5, and until it is 3
    ring_->Post(Request(FERRY_DEVICE_RING_COUNTER_WAIT, kRegion, kCounters, 5 - 2 * i), i);
  }
  shm::StoreRelease(CounterAt(region_, kCounters)->value, uint64_t{1});
  RingReport report = ReportAfter(2);
  EXPECT_EQ(report.place, 0U);
  EXPECT_EQ(report.slots, 64U);
  ASSERT_EQ(report.waits.size(), 1U);
  EXPECT_EQ(report.waits[0].step, Step::kCounter);
  EXPECT_EQ(report.waits[0].number, 1U);
  EXPECT_EQ(report.waits[0].count, 2U);
  EXPECT_EQ(report.waits[0].counter.region, kRegion);
  EXPECT_EQ(report.waits[0].counter.address, kCounters);
  EXPECT_EQ(report.waits[0].value, 1U);
  EXPECT_EQ(report.waits[0].threshold, 5U);
  EXPECT_GE(report.waits[0].since_ns, before_ns);
  EXPECT_LE(report.waits[0].since_ns, MonotonicNs());
  EXPECT_FALSE(report.is_full);
  shm::StoreRelease(CounterAt(region_, kCounters)->value, uint64_t{5});
  EXPECT_EQ(ring_->Answer(0, 1), ErrorCode::kOk);
  EXPECT_EQ(ring_->Answer(1, 2), ErrorCode::kOk);
  EXPECT_THAT(Report().waits, IsEmpty());
  EXPECT_TRUE(dynamic_cast<const RingInspector&>(plane(0)).InspectRings(kJob, 1).empty());
  EXPECT_TRUE(dynamic_cast<const RingInspector&>(plane(0)).InspectRings(kJob, 99).empty());
}

TEST_F(RingReportTest, OperationsHaveThePeerThatHasNotAnswered) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  ASSERT_NO_FATAL_FAILURE(Start({2, 1}));
  MakeRing();
  ferry_device_ring_get(view_, Here(), There(kFar, 0), 100, 1);
  EXPECT_EQ(Put(kNear, 0, 8), ErrorCode::kOk);
  const RingReport report = ReportAfter(2);
  ASSERT_EQ(report.waits.size(), 1U);
  EXPECT_EQ(report.waits[0].step, Step::kUnderWay);
  EXPECT_EQ(report.waits[0].kind, shm::RingKind::kGet);
  EXPECT_EQ(report.waits[0].peer, kFar);
  EXPECT_EQ(report.waits[0].size_bytes, 100U);
  EXPECT_EQ(report.waits[0].number, 1U);
  ring_->Change();
  ASSERT_TRUE(Eventually([&] { return Report().is_closing; }));
  ASSERT_TRUE(Eventually([&] { return IsStalled(); }));
  plane(1).Faults(/*release=*/true);
  EXPECT_TRUE(ring_->IsSettled());
}

TEST_F(RingReportTest, AHeldOperationSaysForWhat) {
  StartRanks();
  gate(1).closed = true;
  ferry_device_ring_put(view_, There(kFar, 64), Here(), 1 << 20, 0, kSilent);
  ASSERT_TRUE(Eventually([&] { return gate(1).held != 0; }));
  PutSilently(kFar, 0, 1, kInOrder);
  PutSilently(kFar, 8, 1);
  const RingReport report = ReportAfter(3);
  ASSERT_EQ(report.waits.size(), 2U);
  EXPECT_EQ(report.waits[0].kind, shm::RingKind::kPut);
  EXPECT_EQ(report.waits[0].number, 1U);
  EXPECT_EQ(report.waits[1].step, Step::kHeld);
  EXPECT_EQ(report.waits[1].kind, shm::RingKind::kPutValue);
  EXPECT_EQ(report.waits[1].number, 2U);
  EXPECT_EQ(report.waits[1].count, 2U);
  ASSERT_NE(report.waits[1].wants, nullptr);
  EXPECT_STREQ(report.waits[1].wants, "it comes after long operations there, which are not over");
  gate(1).closed = false;
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_THAT(Report().waits, IsEmpty());
}

// A thread that was killed has left its slot unwritten, and nothing behind it is taken.
TEST_F(RingReportTest, AnUnwrittenSlotIsToldAtTheSecondLook) {
  StartRanks();
  ASSERT_EQ(ring_->Ask(Request(FERRY_DEVICE_RING_NOP, 0, 0, 1)), ErrorCode::kOk);
  const ferry_device_u64 number = ferry_device_ring_reserve(view_, 1);
  EXPECT_THAT(Report().waits, IsEmpty()) << "nothing stands behind it";
  const ferry_device_u64 behind = ring_->Post(Request(FERRY_DEVICE_RING_NOP, 0, 0, 2), 1);
  EXPECT_THAT(Report().waits, IsEmpty()) << "it may be written right now";
  const RingReport report = Report();
  ASSERT_EQ(report.waits.size(), 1U);
  EXPECT_EQ(report.waits[0].step, Step::kUnwritten);
  EXPECT_EQ(report.waits[0].number, number);
  ferry_device_ring_fill(view_, number, Request(FERRY_DEVICE_RING_NOP, 0, 0, 3));
  EXPECT_EQ(ring_->Answer(1, behind), ErrorCode::kOk);
  EXPECT_THAT(Report().waits, IsEmpty());
}

TEST_F(RingReportTest, ARingIsFullOnceNothingIsTakenOutOfIt) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  ASSERT_NO_FATAL_FAILURE(Start({2, 1}));
  MakeRing();
  for (int i = 0; i < 4096; ++i) {
    PutSilently(kFar, 0, 1);
  }
  EXPECT_FALSE(ReportAfter(4096).is_full) << "its slots are free";
  for (int i = 0; i < 63; ++i) {
    PutSilently(kFar, 0, 1);
  }
  EXPECT_FALSE(Report().is_full);
  PutSilently(kFar, 0, 1);
  const RingReport report = Report();
  EXPECT_TRUE(report.is_full);
  EXPECT_TRUE(report.is_partial);
  EXPECT_EQ(ring_->requests(), 4096U);
  ASSERT_FALSE(report.waits.empty());
  EXPECT_EQ(report.waits[0].number, 1U);
  EXPECT_EQ(report.waits[0].peer, kFar);
  ASSERT_TRUE(Eventually([&] { return IsStalled(); }));
  plane(1).Faults(/*release=*/true);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_FALSE(Report().is_full);
}

}  // namespace
}  // namespace ferry::daemon
