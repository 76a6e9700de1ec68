// Chains of waiting ranks that lead over several nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "daemon/admin/reporter.h"
#include "shm/layout/request_layout.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/peers/fake_peer.h"
#include "tests/daemon/test_daemon.h"

namespace ferry::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

control::RankWait Wait(const std::vector<uint32_t>& chain, bool leaves_node,
                       const std::string& end) {
  control::RankWait wait;
  wait.set_rank(chain.front());
  wait.mutable_chain()->Add(chain.begin(), chain.end());
  wait.set_leaves_node(leaves_node);
  wait.set_end(end);
  wait.set_verdict("as its own daemon sees it");
  return wait;
}

// Daemons that know what the test tells them.
class FakeNodes final : public WhyAsker {
 public:
  void Knows(const control::RankWait& wait) { known_[wait.rank()] = wait; }
  StatusOr<control::RankWait> Ask(const std::string&, uint32_t rank) override {
    ++asked;
    const auto found = known_.find(rank);
    if (found == known_.end()) {
      return Status(silent ? ErrorCode::kTimeout : ErrorCode::kNodeUnreachable, "there is no link");
    }
    return found->second;
  }
  int asked = 0;
  bool silent = false;  // those that know nothing

 private:
  std::map<uint32_t, control::RankWait> known_;
};

class WhyFollowerTest : public ::testing::Test {
 protected:
  FakeNodes nodes_;
  WhyFollower follower_{&nodes_};
};

TEST_F(WhyFollowerTest, AChainThatStaysIsLeftAlone) {
  control::RankWait wait = Wait({0, 1}, false, "computes");
  follower_.Follow("job", &wait);
  EXPECT_EQ(nodes_.asked, 0);
  EXPECT_EQ(wait.verdict(), "as its own daemon sees it");
}

TEST_F(WhyFollowerTest, GoesFromNodeToNode) {
  nodes_.Knows(Wait({2, 3, 4}, true, "is on node 2"));
  nodes_.Knows(Wait({4, 5}, false, "is stopped by a signal"));
  control::RankWait wait = Wait({0, 1, 2}, true, "is on node 1");
  follower_.Follow("job", &wait);
  EXPECT_THAT(wait.chain(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(wait.verdict(),
            "rank 0 waits for rank 1, which waits for rank 2, which waits for rank 3, which waits "
            "for rank 4, which waits for rank 5, which is stopped by a signal");
  EXPECT_FALSE(wait.leaves_node());
  EXPECT_THAT(wait.troubles(), IsEmpty());
}

// The time of all together is bounded: the caller waits for the answer.
TEST_F(WhyFollowerTest, AfterASilentNodeNobodyIsAsked) {
  nodes_.silent = true;
  nodes_.Knows(Wait({3}, false, "computes"));
  control::RankWait first = Wait({0, 2}, true, "is on node 1");
  follower_.Follow("job", &first);
  control::RankWait second = Wait({1, 3}, true, "is on node 2");
  follower_.Follow("job", &second);
  EXPECT_EQ(nodes_.asked, 1);
  EXPECT_THAT(first.troubles(), ElementsAre(HasSubstr("there is no link")));
  EXPECT_THAT(second.troubles(),
              ElementsAre(HasSubstr("was not asked, since another one did not answer")));
  EXPECT_EQ(second.verdict(), "as its own daemon sees it");
}

TEST_F(WhyFollowerTest, ACircleOverNodesEnds) {
  nodes_.Knows(Wait({2, 0}, true, "is on node 0"));
  control::RankWait wait = Wait({0, 2}, true, "is on node 1");
  follower_.Follow("job", &wait);
  EXPECT_THAT(wait.chain(), ElementsAre(0, 2, 0));
  EXPECT_THAT(wait.verdict(), HasSubstr("which waits for rank 0: a circle over several nodes"));
  EXPECT_EQ(nodes_.asked, 1);
}

TEST_F(WhyFollowerTest, WhoDoesNotAnswerIsNamed) {
  control::RankWait wait = Wait({0, 2}, true, "is on node 1");
  follower_.Follow("job", &wait);
  EXPECT_EQ(wait.verdict(), "as its own daemon sees it");
  EXPECT_THAT(wait.troubles(),
              ElementsAre("the ferryd of rank 2's node was asked what it waits for: there is no "
                          "link"));
}

TEST_F(WhyFollowerTest, ADaemonIsAskedOnceAboutARank) {
  nodes_.Knows(Wait({2}, false, "computes"));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    control::RankWait wait = Wait({rank, 2}, true, "is on node 1");
    follower_.Follow("job", &wait);
    EXPECT_THAT(wait.verdict(), HasSubstr("waits for rank 2, which computes"));
  }
  EXPECT_EQ(nodes_.asked, 1);
}

TEST_F(WhyFollowerTest, RanksOfTwoJobsAreNotMixedUp) {
  for (const char* job : {"one", "other"}) {
    nodes_.Knows(Wait({2}, false, std::string("computes for ") + job));
    control::RankWait wait = Wait({0, 2}, true, "is on node 1");
    follower_.Follow(job, &wait);
    EXPECT_THAT(wait.verdict(), HasSubstr(std::string("which computes for ") + job));
  }
  EXPECT_EQ(nodes_.asked, 2);
}

TEST_F(WhyFollowerTest, AnswersOfNoCorrectDaemonEnd) {
  nodes_.Knows(Wait({2}, true, "is on node 1"));  // the waiting rank itself, elsewhere
  control::RankWait wait = Wait({0, 2}, true, "is on node 1");
  follower_.Follow("job", &wait);
  control::RankWait other = Wait({7}, false, "computes");  // not the rank that was asked for
  other.set_rank(3);
  nodes_.Knows(other);
  wait = Wait({0, 3}, true, "is on node 1");
  follower_.Follow("job", &wait);
  EXPECT_THAT(wait.chain(), ElementsAre(0, 3));
}

// Two daemons, whose ranks a test has filled.
TEST(WhyAcrossNodesTest, TellsWhatTheOtherNodesRankDoes) {
  const TemporaryDirectory directory;
  TestDaemon a(TestOptions(directory.path() + "/a"));
  TestDaemon b(TestOptions(directory.path() + "/b"));
  ASSERT_TRUE(a.CreateJobWith("job", 0, b.address()).ok());
  ASSERT_TRUE(b.CreateJobWith("job", 1, a.address()).ok());
  TestRank waits("job", 0, 2, 1);
  TestRank computes("job", 1, 2, 1);
  ASSERT_TRUE(waits.Enter(a.attach_path()));
  ASSERT_TRUE(computes.Enter(b.attach_path()));
  ASSERT_NO_FATAL_FAILURE(ExpectJoin(waits, computes));

  waits.session()->request_fresh = 2;
  waits.inbox()->wake.inside = 1;
  waits.inbox()->wake.sleepers = 1;
  shm::RequestLayout& request = waits.request(1);
  request.kind = static_cast<uint32_t>(shm::RequestKind::kReceive);
  request.peer = 1;
  request.state = static_cast<uint32_t>(shm::RequestState::kPosted);

  control::WhyReply answer;
  ASSERT_TRUE(a.Why("job", &answer).ok());
  ASSERT_EQ(answer.ranks_size(), 1);
  EXPECT_THAT(answer.ranks(0).chain(), ElementsAre(0, 1));
  // Both ranks are this process, which may be doing anything.
  EXPECT_THAT(answer.ranks(0).verdict(),
              MatchesRegex("rank 0 waits for rank 1, which (computes|is) outside Ferry.*"));
  EXPECT_THAT(answer.ranks(0).troubles(), IsEmpty());
}

// Only daemons of the job may ask.
TEST(WhyAcrossNodesTest, NeedsTheJobsSecret) {
  const TemporaryDirectory directory;
  TestDaemon daemon(TestOptions(directory.path() + "/a"));
  FakePeer peer;
  ASSERT_TRUE(daemon.CreateJobWith("job", 0, peer.address()).ok());
  ASSERT_TRUE(daemon.plane.WaitFor("AddNode job 1"));
  control::PeerWhyRequest request;
  request.set_incarnation(peer.identity().incarnation());
  request.set_job_id("job");
  std::string token = FakePeer::kToken;
  const auto ask = [&] {
    return TellAs(peer.address(), token, daemon.stub<PeerStub>(), &PeerStub::Why, request);
  };
  ExpectError(ask(), ErrorCode::kPermissionDenied, "does not know the secret of job job");
  request.set_job_proof(JobProof(kTestSecret, "job", request.incarnation()));
  EXPECT_TRUE(ask().ok());
  request.set_rank(2);
  ExpectError(ask(), ErrorCode::kNotFound, "has no rank 2");
  token = "another one";
  ExpectError(ask(), ErrorCode::kPermissionDenied, "has not shown that it is the daemon");
  request.set_job_id("other");
  ExpectError(ask(), ErrorCode::kNotFound, "there is no job other");
}

}  // namespace
}  // namespace ferry::daemon
