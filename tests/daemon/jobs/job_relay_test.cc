// News of jobs along the trees of their nodes, between the real registries of many daemons.
#include "daemon/jobs/job_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "daemon/tls/secrets.h"
#include "tests/daemon/jobs/job_world.h"
#include "tests/daemon/test_rank.h"

namespace ferry::daemon {
namespace {

using control::RelayedNews;
using testing::HasSubstr;

constexpr uint32_t kNodes = 120;
constexpr uint32_t kRadix = 3;  // four levels below the root
constexpr uint64_t kSecondMs = 1000;

class JobRelayTest : public testing::Test {
 protected:
  // One rank of each node joins.
  void EnterAll(uint32_t from = 0) {
    for (uint32_t node = from; node < world.size(); ++node) {
      if (!world[node].is_dead) {
        ASSERT_TRUE(world[node].Enter(node).ok());
      }
    }
  }
  void Begin() {
    ASSERT_TRUE(world.CreateJob(kRadix).ok());
    EnterAll();
    ASSERT_TRUE(world.RunUntil(
        [&] { return world.AllLiving([](WorldNode& node) { return node.job()->complete; }); }));
  }
  // All that live, but this one.
  bool IsKnownEverywhere(uint32_t rank) {
    return world.AllLiving(
        [&](WorldNode& node) { return node.number == rank || node.Heard(rank) == 1; });
  }
  void ExpectKnownEverywhere(uint32_t rank, uint64_t within_ms = kSecondMs) {
    const bool is_known = world.RunUntil([&] { return IsKnownEverywhere(rank); }, within_ms);
    if (!is_known) {
      for (uint32_t node = 0; node < world.size(); ++node) {
        if (!world[node].is_dead && node != rank && world[node].Heard(rank) != 1) {
          ADD_FAILURE() << "node " << node << " has heard " << world[node].Heard(rank)
                        << " times of rank " << rank;
          return;
        }
      }
    }
  }

  World world{kNodes};
};

// ---- Start and end ----

TEST_F(JobRelayTest, AJobBeginsWithTheLinksOfItsTree) {
  ASSERT_TRUE(world.CreateJob(kRadix).ok());
  EXPECT_TRUE(world.RunUntil([&] { return world.LinksUp() == kNodes - 1; }, kSecondMs));
  const size_t before = world.Relays();
  EXPECT_LE(before, 2 * kNodes);
  EnterAll();
  ASSERT_TRUE(world.RunUntil(
      [&] {
        return world.AllLiving([](WorldNode& node) {
          return node.joined["job"].contains(node.number) && node.joined["job"][node.number].ok();
        });
      },
      kSecondMs));
  EXPECT_EQ(world.LinksUp(), kNodes - 1);
  EXPECT_EQ(world.Lefts(), 0U);
}

TEST_F(JobRelayTest, NobodyBeginsBeforeTheLastHasJoined) {
  ASSERT_TRUE(world.CreateJob(kRadix).ok());
  EnterAll(1);
  world.Run(5 * kSecondMs);
  EXPECT_TRUE(world.AllLiving([](WorldNode& node) { return !node.job()->complete; }));
  ASSERT_TRUE(world[0].Enter(0).ok());
  EXPECT_TRUE(world.RunUntil(
      [&] { return world.AllLiving([](WorldNode& node) { return node.job()->complete; }); },
      kSecondMs));
}

TEST_F(JobRelayTest, TheJobIsForgottenOnceAllHaveLeft) {
  Begin();
  for (uint32_t node = 0; node < kNodes; ++node) {
    const auto session = world[node].job()->ranks[node].session;
    world[node].registry().members().Detach(*session, 0, [](bool) {});
    world.Settle();
  }
  EXPECT_TRUE(world.RunUntil(
      [&] { return world.AllLiving([](WorldNode& node) { return node.job() == nullptr; }); }));
}

TEST_F(JobRelayTest, AnAbortReachesAll) {
  Begin();
  const auto session = world[77].job()->ranks[77].session;
  world[77].registry().Abort(*session, 3, "enough");
  EXPECT_TRUE(world.RunUntil(
      [&] { return world.AllLiving([](WorldNode& node) { return node.job()->aborted; }); },
      kSecondMs));
  EXPECT_THAT(world[12].job()->failure.message(), HasSubstr("aborted it with exit code 3: enough"));
}

TEST_F(JobRelayTest, ARankThatDiesBeforeAllHaveJoinedFailsTheJobEverywhere) {
  ASSERT_TRUE(world.CreateJob(kRadix).ok());
  EnterAll(1);
  world.Run(kSecondMs);
  world[50].Die(50);
  ASSERT_TRUE(world.RunUntil(
      [&] {
        return world.AllLiving([](WorldNode& node) {
          return node.number == 0 || node.joined["job"].contains(node.number);
        });
      },
      kSecondMs));
  EXPECT_EQ(world[9].joined["job"][9].code(), ErrorCode::kPeerDied);
  EXPECT_THAT(world[9].joined["job"][9].message(), HasSubstr("was killed"));
}

// All that is true of each rank of a node is one fact, unless part of it has been told already.
TEST_F(JobRelayTest, RanksOfANodeAreOneFactAndLateOnesAreToldToo) {
  constexpr uint32_t kPerNode = 4;
  ASSERT_TRUE(world.CreateJob(kRadix, kPerNode).ok());
  const auto enter = [&](uint32_t node, uint32_t first, uint32_t end) {
    for (uint32_t local = first; local < end; ++local) {
      ASSERT_TRUE(world[node].Enter(node * kPerNode + local).ok());
    }
  };
  for (uint32_t node = 0; node < kNodes; ++node) {
    enter(node, 0, node == 5 ? 3 : kPerNode);
  }
  world.Run(kSecondMs);
  EXPECT_FALSE(world[9].job()->complete);
  const size_t before = world[9].job()->news->facts.size();
  EXPECT_LE(before, size_t{kNodes});
  enter(5, 3, kPerNode);
  ASSERT_TRUE(world.RunUntil(
      [&] { return world.AllLiving([](WorldNode& node) { return node.job()->complete; }); },
      kSecondMs));
  EXPECT_EQ(world[9].job()->news->facts.size(), before + 1);
  // Ranks 5 * 4 and 5 * 4 + 1 die at once; another one later, and one otherwise.
  const auto are_known = [&](std::vector<uint32_t> ranks) {
    return world.RunUntil(
        [&] {
          return std::all_of(ranks.begin(), ranks.end(), [&](uint32_t rank) {
            return world.AllLiving(
                [&](WorldNode& node) { return node.number == 5 || node.Heard(rank) == 1; });
          });
        },
        kSecondMs);
  };
  world[5].Die(20);
  world[5].Die(21);
  EXPECT_TRUE(are_known({20, 21}));
  EXPECT_EQ(world[9].Heard(22), 0U);
  world[5].Die(22);
  world[5].registry().EndSession("job", 23, {ErrorCode::kAborted, "gave up"});
  EXPECT_TRUE(are_known({22, 23}));
  EXPECT_EQ(world[9].job()->ranks[22].end.message(), "was killed");
  EXPECT_EQ(world[9].job()->ranks[23].end.message(), "gave up");
}

// ---- Deaths ----

TEST_F(JobRelayTest, ADeathIsKnownEverywhereInASecond) {
  Begin();
  for (const uint32_t rank : {kNodes - 1, 0U, 1U, 40U}) {
    world[rank].Die(rank);
    ExpectKnownEverywhere(rank);
  }
  EXPECT_EQ(world.LinksUp(), kNodes - 1);
}

TEST_F(JobRelayTest, ManyDeathsAtOnceTakeFewRequests) {
  Begin();
  const size_t before = world.Relays();
  for (uint32_t rank = 1; rank < kNodes; ++rank) {
    world[rank].Die(rank);
  }
  for (uint32_t rank = 1; rank < kNodes; ++rank) {
    ExpectKnownEverywhere(rank);
  }
  EXPECT_LE(world.Relays() - before, size_t{kNodes} * 20);
}

// The root, inner nodes, leaves; then a rank far away.
TEST_F(JobRelayTest, NodesThatDieAreKnownEverywhereAndBypassed) {
  Begin();
  for (const uint32_t node : {kNodes - 1, 13U, 4U, 1U, 0U, 2U, 5U}) {
    world.Kill(node);
    ExpectKnownEverywhere(node);
  }
  world[kNodes - 2].Die(kNodes - 2);
  ExpectKnownEverywhere(kNodes - 2);
  world[3].Die(3);
  ExpectKnownEverywhere(3);
}

// No node has a link to the last of them: the one that takes its parent's place finds it dead.
TEST_F(JobRelayTest, AWholeBranchDiesAtOnce) {
  Begin();
  const std::set<uint32_t> branch = {1, 4, 13, 40, 41, 42};  // a path, and its leaves
  for (const uint32_t node : branch) {
    world.Kill(node);
  }
  for (const uint32_t node : branch) {
    ExpectKnownEverywhere(node, 5 * kSecondMs);
  }
  world[5].Die(5);  // below 1, beside 4
  ExpectKnownEverywhere(5);
}

TEST_F(JobRelayTest, TheRootAndItsChildrenDieAtOnce) {
  Begin();
  for (const uint32_t node : {0U, 1U, 2U, 3U}) {
    world.Kill(node);
  }
  for (const uint32_t node : {0U, 1U, 2U, 3U}) {
    ExpectKnownEverywhere(node, 5 * kSecondMs);
  }
  world[100].Die(100);
  ExpectKnownEverywhere(100);
}

TEST_F(JobRelayTest, AnInnerNodeDiesWhileADeathPassesIt) {
  Begin();
  world[40].Die(40);  // below 13, 4, 1
  world.Run(1);
  world.Kill(4);
  ExpectKnownEverywhere(40, 5 * kSecondMs);
  ExpectKnownEverywhere(4, 5 * kSecondMs);
}

TEST_F(JobRelayTest, AnInnerNodeDiesBeforeAllHaveJoined) {
  ASSERT_TRUE(world.CreateJob(kRadix).ok());
  EnterAll(1);
  world.Run(kSecondMs);
  world.Kill(4);
  ASSERT_TRUE(world.RunUntil(
      [&] {
        return world.AllLiving([](WorldNode& node) {
          return node.number == 0 || node.joined["job"].contains(node.number);
        });
      },
      5 * kSecondMs));
  EXPECT_EQ(world[100].joined["job"][100].code(), ErrorCode::kNodeUnreachable);
  EXPECT_THAT(world[100].joined["job"][100].message(), HasSubstr("node 4 at"));
}

TEST_F(JobRelayTest, AnInnerNodeDiesWhileRanksJoin) {
  ASSERT_TRUE(world.CreateJob(kRadix).ok());
  EnterAll();
  world.Run(2);
  world.Kill(1);
  ASSERT_TRUE(world.RunUntil([&] {
    return world.AllLiving(
        [](WorldNode& node) { return node.joined["job"].contains(node.number); });
  }));
  // Ranks that had begun before hear of the death; the others were told that the job failed.
  ASSERT_TRUE(world.RunUntil(
      [&] {
        return world.AllLiving([](WorldNode& node) {
          return node.Heard(1) == 1 || !node.joined["job"][node.number].ok();
        });
      },
      5 * kSecondMs));
}

// ---- Slow nodes ----

TEST_F(JobRelayTest, NewsPassAroundANodeThatIsStopped) {
  Begin();
  world.Stop(4);  // 13, 14 and 15 are below it
  world.Run(2 * kSecondMs);
  world[40].Die(40);
  world[119].Die(119);
  const auto others_know = [&] {
    return world.AllLiving([&](WorldNode& node) {
      return node.number == 4 || ((node.number == 40 || node.Heard(40) == 1) &&
                                  (node.number == 119 || node.Heard(119) == 1));
    });
  };
  EXPECT_TRUE(world.RunUntil(others_know, 3 * kSecondMs));
  EXPECT_EQ(world[4].Heard(40), 0U);
  world.Continue(4);
  ExpectKnownEverywhere(40, 5 * kSecondMs);
  ExpectKnownEverywhere(119, 5 * kSecondMs);
  world[4].Die(4);
  ExpectKnownEverywhere(4, 5 * kSecondMs);
}

TEST_F(JobRelayTest, ADaemonThatDrainsPassesOnTheNewsOfItsJobs) {
  Begin();
  world[1].registry().Drain();
  EXPECT_EQ(world.CreateJob(kRadix, 1, "late").code(), ErrorCode::kDraining);
  world[40].Die(40);  // below 13, 4, 1
  world[100].Die(100);
  ExpectKnownEverywhere(40);
  ExpectKnownEverywhere(100);
}

// ---- Several jobs, and daemons that return ----

TEST_F(JobRelayTest, TwoJobsHaveTreesOfTheirOwn) {
  std::vector<uint32_t> reversed;
  for (uint32_t node = 40; node > 0; --node) {
    reversed.push_back(node - 1);
  }
  ASSERT_TRUE(world.CreateJob(kRadix, 1, "job").ok());
  ASSERT_TRUE(world.CreateJob(5, 2, "other", reversed).ok());
  EnterAll();
  for (uint32_t rank = 0; rank < 80; ++rank) {
    ASSERT_TRUE(world[39 - rank / 2].Enter(rank, "other").ok());
  }
  ASSERT_TRUE(world.RunUntil([&] {
    return world.AllLiving([](WorldNode& node) {
      return node.job()->complete && (node.number >= 40 || node.job("other")->complete);
    });
  }));
  world[39].Die(1, "other");
  EXPECT_TRUE(world.RunUntil(
      [&] {
        return world.AllLiving(
            [](WorldNode& node) { return node.number >= 39 || node.Heard(1, "other") == 1; });
      },
      kSecondMs));
  EXPECT_EQ(world[5].Heard(1), 0U);
  world.Kill(2);  // an inner node here, and rank 74 and 75 of the other
  ExpectKnownEverywhere(2);
  EXPECT_TRUE(world.RunUntil(
      [&] {
        return world.AllLiving([](WorldNode& node) {
          return node.number >= 40 ||
                 (node.Heard(74, "other") == 1 && node.Heard(75, "other") == 1);
        });
      },
      5 * kSecondMs));
}

TEST_F(JobRelayTest, ADaemonThatWasRestartedIsNotTakenForTheOneOfTheJob) {
  Begin();
  world[100].incarnation += 1000;  // a far one: no link to it here
  world[7].registry().nodes().WantWay("job", 100);
  EXPECT_TRUE(world.RunUntil([&] { return world[7].Heard(100) == 1; }, kSecondMs));
  EXPECT_EQ(world[7].plane.Count("AddNode job 100"), 0U);
}

// ---- Ways at the first need ----

TEST_F(JobRelayTest, AWayOpensOnBothSidesWhenItIsWanted) {
  Begin();
  EXPECT_EQ(world[7].plane.Count("AddNode job 100"), 0U);
  world[7].registry().nodes().WantWay("job", 100);
  world[7].registry().nodes().WantWay("job", 100);
  EXPECT_TRUE(world.RunUntil(
      [&] {
        return world[7].plane.Count("NodeReturned job 100") > 0 &&
               world[100].plane.Count("NodeReturned job 7") > 0;
      },
      kSecondMs));
  EXPECT_EQ(world[7].plane.Count("AddNode job 100"), 1U);
  EXPECT_EQ(world[100].plane.Count("AddNode job 7"), 1U);
  EXPECT_TRUE(world[7].plane.routes().back().awaits_answer);
  EXPECT_EQ(world.LinksUp(), size_t{kNodes});
  // News still go along the tree.
  const size_t before = world[7].counts.relays;
  world[100].Die(100);
  ExpectKnownEverywhere(100);
  EXPECT_LE(world[7].counts.relays - before, 4U);
}

TEST_F(JobRelayTest, AWayToADeadNodeNeverOpens) {
  Begin();
  world[100].is_dead = true;  // and no node notices
  world[7].registry().nodes().WantWay("job", 100);
  EXPECT_TRUE(world.RunUntil([&] { return world[7].Heard(100) == 1; }, kSecondMs));
  // Nodes below it believe it; nodes above wait for the neighbours of that node.
  EXPECT_TRUE(world.RunUntil([&] { return world[22].Heard(100) == 1; }, kSecondMs));
  EXPECT_EQ(world[2].Heard(100), 0U);
}

// ---- What a node may say ----

class HostileRelayTest : public JobRelayTest {
 protected:
  HostileRelayTest() { Begin(); }

  static control::RelayRequest From(const WorldNode& node, const std::string& id = "job") {
    control::RelayRequest request;
    request.set_incarnation(node.incarnation);
    request.set_job_id(id);
    request.set_job_proof(JobProof(kTestSecret, id, node.incarnation));
    request.set_node(node.number);
    return request;
  }
  static RelayedNews* AddEnd(control::RelayRequest* request, uint32_t rank, uint32_t count = 1) {
    RelayedNews* const news = request->add_news();
    news->set_kind(RelayedNews::ENDED);
    news->set_rank(rank);
    news->set_count(count);
    news->set_error(static_cast<int32_t>(ErrorCode::kPeerDied));
    news->set_text("so it says");
    return news;
  }
  Status Tell(uint32_t to, const control::RelayRequest& request, uint32_t caller) {
    return world[to].registry().nodes().OnRelay(request, world[caller].address());
  }
};

TEST_F(HostileRelayTest, WhoIsNoNodeOfTheJobIsNotHeard) {
  control::RelayRequest request = From(world[4]);
  AddEnd(&request, 40);
  EXPECT_EQ(Tell(1, request, 5).code(), ErrorCode::kPermissionDenied) << "not its address";
  request.set_job_proof("guessed");
  EXPECT_EQ(Tell(1, request, 4).code(), ErrorCode::kPermissionDenied);
  request = From(world[4], "another");
  EXPECT_EQ(Tell(1, request, 4).code(), ErrorCode::kNotFound);
  request = From(world[4]);
  request.set_node(kNodes);
  EXPECT_EQ(Tell(1, request, 4).code(), ErrorCode::kInvalidArgument);
  request.set_node(1);
  EXPECT_EQ(Tell(1, request, 1).code(), ErrorCode::kInvalidArgument) << "itself";
  EXPECT_EQ(world[1].plane.Count("RankEnded"), 0U);
}

TEST_F(HostileRelayTest, AnotherIncarnationIsNotHeard) {
  control::RelayRequest request = From(world[4]);
  request.set_incarnation(77);
  request.set_job_proof(JobProof(kTestSecret, "job", 77));
  AddEnd(&request, 40);
  EXPECT_EQ(Tell(1, request, 4).code(), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(world[1].plane.Count("RankEnded"), 0U);
}

TEST_F(HostileRelayTest, WhoStandsInNoLineIsNoNeighbour) {
  control::RelayRequest request = From(world[100]);  // below 2, 3
  AddEnd(&request, 100);
  EXPECT_EQ(Tell(1, request, 100).code(), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(world[1].plane.Count("RankEnded"), 0U);
}

// 4 is below 1, and has 13, 14 and 15 below it.
TEST_F(HostileRelayTest, ANodeSpeaksOnlyForItsDirection) {
  control::RelayRequest request = From(world[4]);
  AddEnd(&request, 1);    // of the callee
  AddEnd(&request, 0);    // above it
  AddEnd(&request, 5);    // beside the caller
  AddEnd(&request, 100);  // elsewhere
  RelayedNews* const lost = request.add_news();
  lost->set_kind(RelayedNews::LOST);
  lost->set_node(1);
  *request.add_news() = *lost;
  request.mutable_news(5)->set_node(2);
  EXPECT_TRUE(Tell(1, request, 4).ok());
  EXPECT_EQ(world[1].plane.Count("RankEnded"), 0U);
  EXPECT_NE(world[1].job()->nodes[2].state, NodeState::kFailed);
  control::RelayRequest fair = From(world[4]);
  AddEnd(&fair, 14);
  EXPECT_TRUE(Tell(1, fair, 4).ok());
  EXPECT_EQ(world[1].Heard(14), 1U);
  // From above, of what is below.
  control::RelayRequest above = From(world[0]);
  AddEnd(&above, 4);
  AddEnd(&above, 13);
  EXPECT_TRUE(Tell(1, above, 0).ok());
  EXPECT_EQ(world[1].Heard(4) + world[1].Heard(13), 0U);
}

TEST_F(HostileRelayTest, ANodeThatIsUpIsLookedAtBeforeItIsGivenUp) {
  control::RelayRequest request = From(world[13]);  // below 4, which has a link to 1
  RelayedNews* const lost = request.add_news();
  lost->set_kind(RelayedNews::LOST);
  lost->set_node(40);
  lost->set_incarnation(world[40].incarnation);
  // 4 hears it of 13: 40 is below that, and dormant to 4.
  EXPECT_TRUE(Tell(4, request, 13).ok());
  EXPECT_EQ(world[4].Heard(40), 1U);
  world[1].registry().nodes().WantWay("job", 41);
  ASSERT_TRUE(
      world.RunUntil([&] { return world[1].plane.Count("AddNode job 41") > 0; }, kSecondMs));
  request = From(world[13]);
  request.add_news()->set_kind(RelayedNews::LOST);
  request.mutable_news(0)->set_node(41);
  request.mutable_news(0)->set_incarnation(world[41].incarnation);
  EXPECT_TRUE(Tell(1, request, 13).ok());
  EXPECT_EQ(world[1].Heard(41), 0U);
  EXPECT_EQ(world[1].checks, 1U);
}

TEST_F(HostileRelayTest, NewsOfADaemonOfBeforeAreNoNews) {
  control::RelayRequest request = From(world[4]);
  RelayedNews* const lost = request.add_news();
  lost->set_kind(RelayedNews::LOST);
  lost->set_node(13);
  lost->set_incarnation(3);
  EXPECT_TRUE(Tell(1, request, 4).ok());
  EXPECT_EQ(world[1].Heard(13), 0U);
}

TEST_F(HostileRelayTest, WildNumbersDoNothing) {
  control::RelayRequest request = From(world[4]);
  AddEnd(&request, 13, 0);
  AddEnd(&request, 13, UINT32_MAX);
  AddEnd(&request, kNodes);
  AddEnd(&request, UINT32_MAX, UINT32_MAX);
  request.add_news()->set_kind(RelayedNews::KIND_UNSPECIFIED);
  RelayedNews* const lost = request.add_news();
  lost->set_kind(RelayedNews::LOST);
  lost->set_node(UINT32_MAX);
  RelayedNews* const failed = request.add_news();  // the job is complete
  failed->set_kind(RelayedNews::FAILED);
  failed->set_error(static_cast<int32_t>(ErrorCode::kPeerDied));
  EXPECT_TRUE(Tell(1, request, 4).ok());
  EXPECT_EQ(world[1].plane.Count("RankEnded"), 0U);
  EXPECT_TRUE(world[1].job()->failure.ok());
  for (int i = 0; i < 2000; ++i) {
    AddEnd(&request, 13);
  }
  EXPECT_EQ(Tell(1, request, 4).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(world[1].plane.Count("RankEnded"), 0U);
}

TEST_F(HostileRelayTest, WhatWasHeardTwiceIsPassedOnOnce) {
  control::RelayRequest request = From(world[4]);
  AddEnd(&request, 14);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Tell(1, request, 4).ok());
  }
  EXPECT_EQ(world[1].Heard(14), 1U);
  const std::vector<JobFact>& facts = world[1].job()->news->facts;
  EXPECT_EQ(std::count_if(facts.begin(), facts.end(),
                          [](const JobFact& fact) { return fact.kind == JobFact::Kind::kEnded; }),
            1);
}

}  // namespace
}  // namespace ferry::daemon
