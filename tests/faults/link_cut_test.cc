// The link between two nodes is cut for a while, in a network namespace of the test's own: briefly,
// and nobody notices; for longer, and the ranks are told, then go on over the link that is back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "tests/faults/cut_fixture.h"

namespace ferry::faults {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kEndure[] = "tests/faults/ranks/endure";
constexpr char kStreams[] = "tests/faults/ranks/streams";
constexpr int kNodeUnreachable = 16;
constexpr int kLinkDown = 32;

class LinkCutTest : public CutTest {
 protected:
  void SetUp() override {
    CutTest::SetUp();
    if (!IsSkipped()) {
      Begin();
    }
  }
  virtual void Begin() {
    StartJob(2, {}, {kEndure});
    AwaitRanks();
  }
  void AwaitRanks() {
    ASSERT_TRUE(UnderWay(job_.get(), 2));
    FindRanks(kEndure, 2);
  }

  void CutFor(std::chrono::milliseconds duration) {
    SetLink("down");
    std::this_thread::sleep_for(duration);  // the fault itself
    SetLink("up");
    back_ns_ = MonotonicNs();
  }

  uint64_t back_ns_ = 0;
};

TEST_F(LinkCutTest, BrieflyAndNobodyNotices) {
  CutFor(Scaled(9000));
  EXPECT_THAT(Finish(), Not(HasSubstr(": cut at")));
}

TEST_F(LinkCutTest, ForLongerAndRanksAreToldThenGoOn) {
  CutFor(Scaled(25'000));
  for (const char* rank : {"rank 0", "rank 1"}) {
    EXPECT_NE(When(rank + std::string(": cut at ")), 0U);
    const uint64_t resumed_ns = When(rank + std::string(": back at "));
    std::printf("%s goes on %.1f s after the link is back\n", rank,
                (static_cast<double>(resumed_ns) - static_cast<double>(back_ns_)) / 1e9);
  }
  Finish();
}

TEST_F(LinkCutTest, TwiceAndTheySurviveBoth) {
  CutFor(Scaled(20'000));
  When("rank 1: back at ");
  When("rank 0: back at ");
  CutFor(Scaled(20'000));
  Finish();
}

// Streams wait for matched requests: a pair does not outlive the link, and its waits end.
class StreamCutTest : public LinkCutTest {
 protected:
  void Begin() override {
    StartJob(2, {}, {kStreams, "2"});
    ASSERT_TRUE(UnderWay(job_.get(), 2));
    FindRanks(kStreams, 2);
  }
};

TEST_F(StreamCutTest, WaitsEndAndSayWhy) {
  SetLink("down");
  When("rank 0: error ");
  When("rank 1: error ");
  const e2e::CommandResult result = job_->Wait();
  const std::vector<RankError> errors = ErrorsIn(result.out);
  ASSERT_THAT(errors, testing::SizeIs(2)) << result.out;
  for (const RankError& error : errors) {
    EXPECT_TRUE(error.code == kNodeUnreachable || error.code == kLinkDown) << result.out;
  }
}

// Nodes have a second NIC, whose address goes.
class RailCutTest : public LinkCutTest {
 protected:
  void Begin() override {
    StartJob(2, {"--fabric_rails=10.77.0.1", "--rail_stripe_bytes=65536"}, {kEndure, "timeouts"},
             /*operation_timeout_ms=*/4000, "ip link set lo up && ip addr add 10.77.0.1/32 dev lo");
    AwaitRanks();
  }
};

// Transfers on it fail by their deadline, once: then the first NIC carries everything.
TEST_F(RailCutTest, RanksAreToldOnceAtMostAndGoOnOverTheOther) {
  Ip({"addr", "del", "10.77.0.1/32", "dev", "lo"});
  std::this_thread::sleep_for(Scaled(50'000));  // two time-outs and a half: the fault itself
  const std::string out = Finish();
  for (const std::string rank : {"rank 0: cut at", "rank 1: cut at"}) {
    EXPECT_EQ(out.find(rank), out.rfind(rank)) << out;
  }
}

}  // namespace
}  // namespace ferry::faults
