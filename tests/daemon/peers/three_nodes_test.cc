// The news that the daemon of one node of a job may send about the others' ranks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/tls/secrets.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/peers/fake_peer.h"
#include "tests/daemon/test_daemon.h"

namespace ferry::daemon {
namespace {

// A node of a job knows the job's secret, and who the other nodes' daemons are.
class ThreeNodesTest : public testing::Test {
 protected:
  ThreeNodesTest()
      : a_(TestOptions(directory_.path() + "/a")), b_(TestOptions(directory_.path() + "/b")) {}

  // The job of `a_`, `b_` and the fake peer, with a rank on each.
  void SetUp() override {
    const std::vector<std::string> addresses = {a_.address(), b_.address(), c_.address()};
    ASSERT_TRUE(a_.CreateJob(TestDaemon::JobRequest("job", {0, 1, 2}, addresses, 0)).ok());
    ASSERT_TRUE(b_.CreateJob(TestDaemon::JobRequest("job", {0, 1, 2}, addresses, 1)).ok());
    ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1"));
    ASSERT_TRUE(a_.plane.WaitFor("AddNode job 2"));
    ASSERT_TRUE(b_.plane.WaitFor("AddNode job 2"));
  }
  // The news that a rank of that daemon has ended, with the job's proof.
  static control::LeftRequest EndOf(uint32_t rank, uint64_t incarnation) {
    control::LeftRequest request;
    request.set_incarnation(incarnation);
    request.set_job_id("job");
    request.set_job_proof(JobProof(kTestSecret, "job", incarnation));
    request.add_ranks()->set_rank(rank);
    return request;
  }

  // Sends `a_` the news of the daemon at `address` that a rank has left, with that token.
  Status Left(const std::string& address, const std::string& token,
              const control::LeftRequest& request) {
    return TellAs(address, token, a_.stub<PeerStub>(), &PeerStub::Left, request);
  }

  TemporaryDirectory directory_;
  TestDaemon a_;
  TestDaemon b_;
  FakePeer c_;
};

TEST_F(ThreeNodesTest, ANodeOfAJobCannotSpeakForAnother) {
  const uint64_t b = b_.GetStatus().node().incarnation();
  const control::LeftRequest end = EndOf(1, b);
  const std::string shown_to_c = c_.token_of(b_.address());  // which it might use elsewhere
  ASSERT_FALSE(shown_to_c.empty());
  for (const std::string& token : {std::string(), std::string(FakePeer::kToken), shown_to_c}) {
    ExpectError(Left(b_.address(), token, end), ErrorCode::kPermissionDenied,
                "has not shown that it is the daemon at " + b_.address());
  }
  ExpectError(Left(c_.address(), FakePeer::kToken, end), ErrorCode::kNodeUnreachable,
              "another incarnation");
  ExpectError(Left(c_.address(), FakePeer::kToken, EndOf(1, c_.identity().incarnation())),
              ErrorCode::kPermissionDenied, "is not node 1 of job job");
  ExpectError(Left(c_.address(), FakePeer::kToken, EndOf(0, c_.identity().incarnation())),
              ErrorCode::kInvalidArgument, "is not of the caller's node");
  EXPECT_EQ(a_.plane.Count("RankEnded"), 0U);
  EXPECT_TRUE(Left(c_.address(), FakePeer::kToken, EndOf(2, c_.identity().incarnation())).ok());
  EXPECT_TRUE(a_.plane.WaitFor("RankEnded job 2"));
}

// Each would take a turn of the data plane's thread, for which the control thread waits.
TEST_F(ThreeNodesTest, EndsThatAreToldTogetherReachTheDataPlaneTogether) {
  const std::vector<std::string> addresses = {a_.address(), b_.address(), c_.address()};
  ASSERT_TRUE(a_.CreateJob(TestDaemon::JobRequest("many", {0, 1, 2, 2, 2}, addresses, 0)).ok());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode many 2"));
  const uint64_t c = c_.identity().incarnation();
  control::LeftRequest ends = EndOf(2, c);
  ends.set_job_id("many");
  ends.set_job_proof(JobProof(kTestSecret, "many", c));
  ends.add_ranks()->set_rank(3);
  ends.add_ranks()->set_rank(4);
  EXPECT_TRUE(Left(c_.address(), FakePeer::kToken, ends).ok());
  EXPECT_EQ(a_.plane.Count("RanksEnded many 3"), 1U);
  for (const char* const rank : {"2", "3", "4"}) {
    EXPECT_EQ(a_.plane.Count(std::string("RankEnded many ") + rank), 1U);
  }
  EXPECT_TRUE(Left(c_.address(), FakePeer::kToken, ends).ok());  // again: nothing new
  EXPECT_EQ(a_.plane.Count("RankEnded many"), 3U);
  // Some that are refused keep none back that came before.
  ASSERT_TRUE(a_.CreateJob(TestDaemon::JobRequest("mixed", {0, 1, 2, 2}, addresses, 0)).ok());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode mixed 2"));
  ends.set_job_id("mixed");
  ends.set_job_proof(JobProof(kTestSecret, "mixed", c));
  ends.mutable_ranks(1)->set_rank(1);  // of b
  EXPECT_FALSE(Left(c_.address(), FakePeer::kToken, ends).ok());
  EXPECT_EQ(a_.plane.Count("RankEnded mixed"), 1U);
}

TEST_F(ThreeNodesTest, OnlyANodeOfTheJobEndsIt) {
  FakePeer d;  // of another job of `a_`'s, and knows the first one's secret
  ASSERT_TRUE(a_.CreateJobWith("other", 0, d.address()).ok());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode other"));
  control::LeftRequest abort = EndOf(2, d.identity().incarnation());
  abort.clear_ranks();
  abort.set_job_aborted(true);
  ExpectError(Left(d.address(), FakePeer::kToken, abort), ErrorCode::kPermissionDenied,
              "is no node of job job");
  EXPECT_EQ(a_.plane.Count("PoisonJob"), 0U);
}

}  // namespace
}  // namespace ferry::daemon
