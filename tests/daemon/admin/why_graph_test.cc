// Chains and circles of waiting ranks, on one node and over several.
#include "daemon/admin/why_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "daemon/admin/why_steps.h"
#include "shm/layout/request_layout.h"
#include "tests/daemon/admin/why_graph_fixture.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/peers/fake_peer.h"
#include "tests/daemon/test_daemon.h"

namespace ferry::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

TEST_F(WhyGraphTest, AChainThatStaysAsksNobody) {
  const auto told = Explain({Waits(0, {1}), Does(1, "computes", "computes outside Ferry")});
  EXPECT_EQ(nodes_.asked, 0);
  EXPECT_EQ(told[0].verdict(), "rank 0 waits for rank 1, which computes outside Ferry");
  EXPECT_THAT(told[0].chain(), ElementsAre(0, 1));
  EXPECT_EQ(told[1].verdict(), "rank 1 computes outside Ferry");
  EXPECT_EQ(nodes_.paused.count(), 0) << "no circle, no second look";
}

TEST_F(WhyGraphTest, GoesFromNodeToNode) {
  nodes_.Knows(Waits(2, {3}), {Waits(3, {4})});
  nodes_.Knows(Waits(4, {5}), {Does(5, "stopped", "is stopped by a signal")});
  const RankWait told = Explain({Waits(0, {1}), Waits(1, {2})})[0];
  EXPECT_THAT(told.chain(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(told.verdict(),
            "rank 0 waits for rank 1, which waits for rank 2, which waits for rank 3, which waits "
            "for rank 4, which waits for rank 5, which is stopped by a signal");
  EXPECT_FALSE(told.leaves_node());
  EXPECT_THAT(told.troubles(), IsEmpty());
  EXPECT_EQ(nodes_.asked, 2);
}

// The time of all together is bounded: the caller waits for the answer.
TEST_F(WhyGraphTest, AfterASilentNodeNobodyIsAsked) {
  nodes_.silent = true;
  nodes_.Knows(Does(3, "computes", "computes"));
  const auto told = Explain({Waits(0, {2}), Waits(1, {3})});
  EXPECT_EQ(nodes_.asked, 1);
  EXPECT_THAT(told[0].troubles(), ElementsAre(HasSubstr("there is no link")));
  EXPECT_THAT(told[1].troubles(),
              ElementsAre(HasSubstr("was not asked, since another one did not answer")));
  EXPECT_EQ(told[1].verdict(), "rank 1 waits for rank 3, which is on node 1");
  EXPECT_TRUE(told[1].leaves_node());
}

TEST_F(WhyGraphTest, WhoDoesNotAnswerIsNamed) {
  const RankWait told = Explain({Waits(0, {2})})[0];
  EXPECT_EQ(told.verdict(), "rank 0 waits for rank 2, which is on node 1");
  EXPECT_THAT(told.troubles(),
              ElementsAre("the ferryd of rank 2's node was asked what it waits for: there is no "
                          "link"));
}

TEST_F(WhyGraphTest, ADaemonIsAskedOnceAboutARank) {
  nodes_.Knows(Does(2, "computes", "computes"));
  for (const RankWait& told : Explain({Waits(0, {2}), Waits(1, {2})})) {
    EXPECT_THAT(told.verdict(), HasSubstr("waits for rank 2, which computes"));
  }
  EXPECT_EQ(nodes_.asked, 1);
}

TEST_F(WhyGraphTest, RanksOfTwoJobsAreNotMixedUp) {
  RankWait other = Waits(0, {1});
  other.set_job_id("other");
  RankWait peer = Does(1, "computes", "computes for the other");
  peer.set_job_id("other");
  const auto told = Explain({Waits(0, {1}), Does(1, "computes", "computes for one"), other, peer});
  EXPECT_EQ(told[0].verdict(), "rank 0 waits for rank 1, which computes for one");
  EXPECT_EQ(told[2].verdict(), "rank 0 waits for rank 1, which computes for the other");
}

TEST_F(WhyGraphTest, AnswersOfNoCorrectDaemonEnd) {
  nodes_.Knows(Does(2, "elsewhere", "is on node 1"));  // the waiting rank itself, elsewhere
  EXPECT_THAT(Explain({Waits(0, {2})})[0].chain(), ElementsAre(0, 2));
  RankWait wrong = Does(3, "computes", "computes");
  nodes_.Knows(wrong);
  wrong.set_rank(7);  // not the rank that was asked for
  nodes_.Knows(Does(3, "", ""), {wrong});
  EXPECT_EQ(Explain({Waits(0, {3})})[0].verdict(),
            "rank 0 waits for rank 3, which cannot be looked at");
}

// Ranks that wait for more ranks than an answer may take time for.
TEST_F(WhyGraphTest, ALongChainIsFollowedForABoundedTime) {
  for (uint32_t rank = 1; rank < 1000; ++rank) {
    nodes_.Knows(Waits(rank, {rank + 1}));
  }
  const RankWait told = Explain({Waits(0, {1})})[0];
  EXPECT_EQ(nodes_.asked, 64);
  EXPECT_THAT(told.troubles(), ElementsAre(HasSubstr("too many nodes were asked already")));
}

// ---- Circles ------------------------------------------------------------------------------------

TEST_F(WhyGraphTest, ACircleThatStaysIsADeadlock) {
  const auto told = Explain({Waits(0, {1}), Waits(1, {2}), Waits(2, {0}), Waits(3, {1})});
  EXPECT_GE(nodes_.paused.count(), 50);
  for (const RankWait& each : told) {
    EXPECT_TRUE(each.deadlock()) << each.verdict();
  }
  EXPECT_THAT(told[1].chain(), ElementsAre(1, 2, 0, 1));
  EXPECT_EQ(told[3].verdict(),
            "deadlock: rank 3 waits for rank 1, which waits for rank 2, which waits for rank 0, "
            "which waits for rank 1: each of them waits for what the next one has not sent or "
            "asked for");
}

TEST_F(WhyGraphTest, ACircleOverNodesThatStaysIsADeadlock) {
  RankWait here = Waits(0, {2});
  here.mutable_edges(0)->set_drained(7);
  RankWait there = Waits(2, {0});
  there.mutable_edges(0)->set_drained(9);
  nodes_.Knows(there);
  nodes_.second[2].set_sent_to_waiter(7);
  nodes_.second[0] = here;
  nodes_.second[0].set_sent_to_waiter(9);
  const RankWait told = Explain({here})[0];
  EXPECT_TRUE(told.deadlock());
  EXPECT_FALSE(told.leaves_node());
  EXPECT_THAT(told.chain(), ElementsAre(0, 2, 0));
  EXPECT_EQ(nodes_.waiters[2], 0U);
  EXPECT_EQ(nodes_.waiters[0], 2U);
}

// Each way in which a circle turns out to be none at the second look.
TEST_F(WhyGraphTest, ACircleThatMovesIsNone) {
  const RankWait here = Waits(0, {2});
  const RankWait there = Waits(2, {0});
  const std::pair<const char*, std::function<void()>> changes[] = {
      {"a message of it has moved", [&] { nodes_.second[2].set_mark(1); }},
      {"it computes", [&] { nodes_.second[2].set_state("computes"); }},
      {"it waits for nothing", [&] { nodes_.second[2].clear_edges(); }},
      {"its receive may be served",
       [&] { nodes_.second[2].mutable_edges(0)->set_receives(false); }},
      {"a message to it waits for room", [&] { nodes_.second[0].set_queued_to_waiter(true); }},
      {"a message to it is under way",
       [&] {
         nodes_.second[2].mutable_edges(0)->set_drained(7);
         nodes_.second[0].set_sent_to_waiter(8);
       }},
      {"it never sleeps", [&] { nodes_.second[2].set_asleep(false); }},
      {"another rank answers", [&] { nodes_.second[2].set_rank(5); }},
  };
  for (const auto& [what, change] : changes) {
    nodes_.Knows(there);
    nodes_.second[0] = here;
    nodes_.on_second = change;
    const RankWait told = Explain({here})[0];
    EXPECT_FALSE(told.deadlock()) << what;
    EXPECT_EQ(told.verdict(), "rank 0 waits for rank 2, which waits inside Ferry, asleep") << what;
  }
  nodes_.Knows(there);
  nodes_.second[0] = here;
  nodes_.on_second = nullptr;
  EXPECT_TRUE(Explain({here})[0].deadlock()) << "without any of these";
}

// A rank that was awake for a moment is looked at again.
TEST_F(WhyGraphTest, ARankMayBeAwakeForAMoment) {
  nodes_.Knows(Waits(2, {0}));
  int looks = 0;
  nodes_.on_second = [&] { nodes_.second[2].set_asleep(++looks == 3); };
  EXPECT_TRUE(Explain({Waits(0, {2})})[0].deadlock());
  EXPECT_EQ(looks, 3);
}

// A send to a rank of another node: only that rank's node knows that it has come, and is unmatched.
TEST_F(WhyGraphTest, AnAnnouncedSendNeedsTheReceiversWord) {
  RankWait sender = Waits(0, {2});
  control::WaitEdge* const edge = sender.mutable_edges(0);
  edge->set_receives(false);
  edge->set_announced(2);
  edge->set_context(5);
  edge->set_tag(3);
  const RankWait receiver = Waits(2, {0});
  const auto told_with = [&](uint32_t source, uint32_t context, int32_t tag, uint32_t count,
                             bool announced) {
    nodes_.Knows(receiver);
    nodes_.second[0] = sender;
    control::UnexpectedMessages* const group = nodes_.second[2].add_unexpected();
    group->set_source(source);
    group->set_context(context);
    group->set_tag(tag);
    group->set_count(count);
    group->set_announced(announced);
    return Explain({sender})[0].deadlock();
  };
  EXPECT_TRUE(told_with(0, 5, 3, 2, true));
  EXPECT_FALSE(told_with(1, 5, 3, 2, true));
  EXPECT_FALSE(told_with(0, 6, 3, 2, true));
  EXPECT_FALSE(told_with(0, 5, 4, 2, true));
  EXPECT_FALSE(told_with(0, 5, 3, 1, true)) << "one of them is being fetched";
  EXPECT_FALSE(told_with(0, 5, 3, 2, false));
}

// With a circle that is none, the chain goes to where else it may lead.
TEST_F(WhyGraphTest, WithoutTheCircleAnotherEndIsTold) {
  nodes_.on_second = [&] { nodes_.second[1].set_mark(1); };
  const RankWait told =
      Explain({Waits(0, {1, 3}), Waits(1, {0}), Does(3, "computes", "computes outside Ferry")})[0];
  EXPECT_EQ(told.verdict(), "rank 0 waits for rank 3, which computes outside Ferry");
}

// ---- Ranks that wait for any of several ---------------------------------------------------------

// A rank that one message of any of `peers` lets go on.
RankWait WaitsForAny(uint32_t rank, const std::vector<uint32_t>& peers) {
  RankWait look = Waits(rank, peers);
  look.set_detail("is in MPI_Recv from any rank");
  look.add_calls()->set_ends_by(kAnybodyMaySend);
  return look;
}

TEST_F(WhyGraphTest, AnyRankIsADeadlockIfAllWait) {
  nodes_.Knows(Waits(2, {1}));
  const auto told = Explain({WaitsForAny(0, {1, 2}), Waits(1, {0})});
  EXPECT_TRUE(told[0].deadlock());
  EXPECT_TRUE(told[1].deadlock());
  EXPECT_THAT(told[0].chain(), ElementsAre(0, 1, 0));
  EXPECT_EQ(
      told[0].verdict(),
      "deadlock: rank 0 waits for rank 1, which waits for rank 0: each of them waits for what "
      "the next one has not sent or asked for; all that could end the wait for any of several "
      "ranks wait, too: 0, 1, 2; rank 0 is in MPI_Recv from any rank");
}

TEST_F(WhyGraphTest, AnyRankIsNoneIfOneMaySend) {
  const auto told = Explain(
      {WaitsForAny(0, {1, 2}), Waits(1, {0}), Does(2, "computes", "computes outside Ferry")});
  EXPECT_FALSE(told[0].deadlock());
  EXPECT_EQ(told[0].verdict(),
            "rank 0 is in MPI_Recv from any rank: no message that fits has come from any rank")
      << "none of them is to blame";
  EXPECT_FALSE(told[1].deadlock());
  EXPECT_THAT(told[1].chain(), ElementsAre(1, 0));
  EXPECT_EQ(nodes_.paused.count(), 0) << "nothing to look at twice";
}

// A rank of which it is not known that it is stuck, or waits, may send.
TEST_F(WhyGraphTest, AnyRankIsNoneIfOneIsUnknown) {
  RankWait waits = WaitsForAny(0, {1, 2});
  waits.mutable_edges(1)->set_receives(false);
  EXPECT_FALSE(Explain({waits, Waits(1, {0}), Waits(2, {0})})[0].deadlock());
  nodes_.silent = true;
  EXPECT_FALSE(Explain({WaitsForAny(0, {1, 2}), Waits(1, {0})})[0].deadlock());
}

// Each way in which ranks that seemed to be stuck turn out to go on at the second look.
TEST_F(WhyGraphTest, AnyRankIsNoneIfOneMoves) {
  const std::vector<RankWait> looks = {WaitsForAny(0, {1, 2}), Waits(1, {0}), Waits(2, {0})};
  const std::pair<const char*, std::function<void()>> changes[] = {
      {"a message of it has moved", [&] { nodes_.second[2].set_mark(1); }},
      {"it computes", [&] { nodes_.second[2].set_state("computes"); }},
      {"a message from it waits for room", [&] { nodes_.second[2].set_queued_to_waiter(true); }},
      {"one from it has come", [&] { nodes_.second[0].mutable_edges(1)->set_receives(false); }},
      {"it never sleeps", [&] { nodes_.second[2].set_asleep(false); }},
  };
  for (const auto& [what, change] : changes) {
    nodes_.second.clear();
    nodes_.on_second = change;
    EXPECT_FALSE(Explain(looks)[0].deadlock()) << what;
  }
  nodes_.second.clear();
  nodes_.on_second = nullptr;
  EXPECT_TRUE(Explain(looks)[0].deadlock()) << "without any of these";
}

// ---- Calls --------------------------------------------------------------------------------------

// A rank in a call that the ranks of world meet in; it waits for `missing`.
RankWait Meets(uint32_t rank, const std::string& name, uint64_t number, uint32_t missing) {
  RankWait look = Waits(rank, {missing});
  control::WaitEdge* const edge = look.mutable_edges(0);
  edge->set_receives(false);
  edge->set_meets(true);
  const std::string phrase = name + " on world, number " + std::to_string(number);
  look.set_detail("is in " + phrase);
  control::RankCall* const call = look.add_calls();
  call->set_name(name);
  call->set_phrase(phrase);
  call->set_meets(true);
  call->set_group(1);
  call->set_number(number);
  return look;
}

// The ranks that have come are not to blame, however the algorithm has them wait for each other.
TEST_F(WhyGraphTest, ACollectiveWaitsForWhoHasNotCome) {
  const auto told = Explain({Meets(0, "MPI_Barrier", 7, 1), Meets(1, "MPI_Barrier", 7, 2),
                             Meets(2, "MPI_Barrier", 7, 3),
                             Does(3, "computes", "computes outside Ferry (pid 5)")});
  EXPECT_EQ(told[0].verdict(),
            "rank 0 waits for rank 3, which computes outside Ferry (pid 5); rank 0 is in "
            "MPI_Barrier on world, number 7");
  EXPECT_THAT(told[0].chain(), ElementsAre(0, 1, 2, 3));
}

TEST_F(WhyGraphTest, BothCallsOfAMismatchAreNamed) {
  const RankWait told = Explain({Meets(0, "MPI_Barrier", 7, 1), Meets(1, "MPI_Bcast", 7, 0)})[0];
  EXPECT_TRUE(told.deadlock());
  EXPECT_EQ(told.verdict(),
            "deadlock: rank 0 waits for rank 1, which waits for rank 0: each of them waits for the "
            "next one; rank 0 is in MPI_Barrier on world, number 7, rank 1 is in MPI_Bcast on "
            "world, number 7");
}

// Rank 1 has come, and rank 0 will see it: or has passed, and rank 0 will follow.
TEST_F(WhyGraphTest, WhoHasComeOrPassedIsNotWaitedForForEver) {
  for (const uint64_t number : {7U, 8U}) {
    const RankWait told =
        Explain({Meets(0, "MPI_Barrier", 7, 1), Meets(1, "MPI_Barrier", number, 0)})[0];
    EXPECT_FALSE(told.deadlock()) << number;
    EXPECT_EQ(told.verdict(), "rank 0 is in MPI_Barrier on world, number 7");
  }
}

// A leaf of a reduction leaves it before the root does. The record of the root may still name it.
TEST_F(WhyGraphTest, WhoMayHaveComeAndLeftIsNoDeadlock) {
  EXPECT_FALSE(Explain({Meets(0, "MPI_Reduce", 7, 1), Waits(1, {0})})[0].deadlock());
  EXPECT_FALSE(Explain({Meets(0, "MPI_Reduce", 7, 1), Waits(1, {0})})[1].deadlock());
}

// The end of a wait for a lock or a group of a window may be under way from another node.
TEST_F(WhyGraphTest, AHoldersCircleIsCertainOnOneNodeOnly) {
  RankWait waits = Waits(0, {1});
  waits.mutable_edges(0)->set_receives(false);
  waits.mutable_edges(0)->set_meets(true);
  RankWait holder = Waits(1, {0});
  EXPECT_TRUE(Explain({waits, holder})[0].deadlock());
  nodes_.second.clear();
  holder.set_node(1);
  EXPECT_FALSE(Explain({waits, holder})[0].deadlock());
}

TEST_F(WhyGraphTest, WhoWaitsForNobodyInParticularSaysWhatCanEndIt) {
  RankWait waits = Waits(1, {});
  waits.set_detail("is in shmem_wait_until");
  waits.add_calls()->set_ends_by("any rank may change the memory that it waits for");
  const auto told = Explain({Meets(0, "MPI_Barrier", 7, 1), waits});
  EXPECT_EQ(told[1].verdict(),
            "rank 1 is in shmem_wait_until: any rank may change the memory that it waits for");
  EXPECT_EQ(told[0].verdict(),
            "rank 0 waits for rank 1, which is in shmem_wait_until; rank 0 is in MPI_Barrier on "
            "world, number 7");
}

// ---- Streams ------------------------------------------------------------------------------------

// A rank whose stream is at a wait for a message of a rank on another node, or still before it.
RankWait WaitsByStream(uint32_t rank, uint32_t peer) {
  RankWait look = Waits(rank, {peer});
  look.set_detail("is in ferry_queue_wait: its stream has not done all that was enqueued");
  look.add_calls()->set_name("ferry_queue_wait");
  look.mutable_edges(0)->set_drained(4);
  look.set_sent_to_waiter(4);
  return look;
}

TEST_F(WhyGraphTest, StreamsOfTwoNodesThatHoldBackAllAreADeadlock) {
  nodes_.Knows(WaitsByStream(1, 0));
  const RankWait told = Explain({WaitsByStream(0, 1)})[0];
  EXPECT_TRUE(told.deadlock());
  EXPECT_THAT(told.chain(), ElementsAre(0, 1, 0));
  EXPECT_THAT(told.verdict(),
              HasSubstr("deadlock: rank 0 waits for rank 1, which waits for rank 0"));
}

// Its kernels may be all that it waits for.
TEST_F(WhyGraphTest, AStreamWhoseMessageMayComeIsBlamedOnNobody) {
  const auto expect_none = [&](const std::function<void(RankWait*)>& change) {
    nodes_.Knows(WaitsByStream(1, 0));
    change(&nodes_.second[1]);
    const RankWait told = Explain({WaitsByStream(0, 1)})[0];
    EXPECT_FALSE(told.deadlock()) << told.verdict();
    EXPECT_THAT(told.chain(), ElementsAre(0));
    EXPECT_EQ(told.verdict(),
              "rank 0 is in ferry_queue_wait: its stream has not done all that was enqueued");
  };
  expect_none([](RankWait* look) { look->set_queued_to_waiter(true); });
  expect_none([](RankWait* look) { look->set_sent_to_waiter(5); });
  expect_none([](RankWait* look) { look->set_asleep(false); });
  expect_none([](RankWait* look) { look->set_mark(1); });
}

// ---- Two daemons, whose ranks a test has filled -------------------------------------------------

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
