// Programs that follow each other in the slots of a launch: registries of several nodes over a
// network in memory, whose messages a test delivers in any order.
#include "daemon/jobs/job_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "common/hex_text.h"
#include "daemon/jobs/job_members.h"
#include "daemon/jobs/job_nodes.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/jobs/launchers.h"
#include "daemon/tls/secrets.h"
#include "tests/daemon/fake_data_plane.h"

namespace ferry::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kSecret[] = "a secret of thirty-two bytes ...";

class World;

class Wires final : public NodeLinks {
 public:
  Wires(World& world, uint32_t node) : world_(world), node_(node) {}
  Status Acquire(const std::string& address, uid_t) override;
  void Release(const std::string&, uid_t) override { --acquired; }
  uint64_t Incarnation() const override { return 100 + node_; }
  void SendJoined(const std::string& to, const control::JoinedRequest& request, Done done) override;
  void SendLeft(const std::string& to, const control::LeftRequest& request, Done done) override;
  void SendPairs(const std::string&, const control::PairNewsRequest&, NewsDone) override {}
  void SendLinkNews(const std::string&, const control::LinkNewsRequest&, NewsDone) override {}

  int acquired = 0;

 private:
  World& world_;
  const uint32_t node_;
};

// A process in a slot, from its attach on.
struct Process {
  std::shared_ptr<Session> session;
  std::optional<Status> joined = {};
  bool has_left = false;
};

class World {
 public:
  struct Node {
    Node(World& world, uint32_t index, const RegistryLimits& limits)
        : registry(world.context, plane, limits), wires(world, index) {
      registry.set_links(&wires);
    }
    FakeDataPlane plane;
    JobRegistry registry;
    Wires wires;
  };

  explicit World(std::vector<uint32_t> node_of_rank, const RegistryLimits& limits = {})
      : node_of_rank_(std::move(node_of_rank)) {
    const uint32_t last = *std::max_element(node_of_rank_.begin(), node_of_rank_.end());
    for (uint32_t node = 0; node <= last; ++node) {
      nodes.push_back(std::make_unique<Node>(*this, node, limits));
    }
    processes.resize(node_of_rank_.size());
  }

  static std::string AddressOf(uint32_t node) { return "node" + std::to_string(node) + ":1"; }
  JobSpec SpecFor(uint32_t node, const std::string& id = "x") const {
    JobSpec spec;
    spec.id = id;
    spec.secret = kSecret;
    spec.owner = geteuid();
    spec.launcher = 1;
    spec.programs_follow = true;
    spec.node = node;
    spec.node_of_rank = node_of_rank_;
    for (uint32_t one = 0; one < nodes.size(); ++one) {
      spec.node_addresses.push_back(AddressOf(one));
    }
    return spec;
  }
  void Launch() {
    for (uint32_t node = 0; node < nodes.size(); ++node) {
      const Status status = At(node).CreateJob(SpecFor(node));
      ASSERT_TRUE(status.ok()) << status.message();
    }
    Settle();
  }

  JobRegistry& At(uint32_t node) { return nodes[node]->registry; }
  JobRegistry& Of(uint32_t rank) { return At(node_of_rank_[rank]); }
  uint32_t size() const { return static_cast<uint32_t>(node_of_rank_.size()); }

  // ---- What a process does ----
  Status Attach(uint32_t rank, pid_t pid = getpid()) {
    const AttachClaim claim{"x", kSecret, rank, size(), pid, geteuid()};
    StatusOr<std::shared_ptr<Session>> session = Of(rank).Attach(claim, {});
    FERRY_RETURN_IF_ERROR(session.status());
    processes[rank] = std::make_shared<Process>(Process{*session});
    FERRY_RETURN_IF_ERROR(Of(rank).Serve(**session));
    Of(rank).members().Join(**session, 0,
                            [process = processes[rank]](const Status& status, const JoinAnswer&) {
                              process->joined = status;
                            });
    return {};
  }
  void Leave(uint32_t rank) {
    Of(rank).members().Detach(*processes[rank]->session, 0,
                              [process = processes[rank]](bool left) { process->has_left = left; });
  }
  void Die(uint32_t rank) {
    Of(rank).EndSession(
        *processes[rank]->session,
        {ErrorCode::kPeerDied, "rank " + std::to_string(rank) + " of job " +
                                   processes[rank]->session->job_id + " (pid 9) died"});
  }
  std::string JobOf(uint32_t rank) const { return processes[rank]->session->job_id; }
  Status JoinOf(uint32_t rank) const {
    return processes[rank]->joined.value_or(Status(ErrorCode::kWouldBlock, "it waits"));
  }
  std::vector<std::string> JobsAt(uint32_t node) {
    std::vector<std::string> ids;
    for (const auto& [id, job] : At(node).jobs()) {
      ids.push_back(id);
    }
    return ids;
  }

  // ---- The network ----
  void Post(std::function<void()> message) { messages.push_back(std::move(message)); }
  void Deliver(size_t index) {
    const std::function<void()> message = std::move(messages[index]);
    messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(index));
    message();
    context.restart();
    context.poll();
  }
  void Tick() {
    for (const auto& node : nodes) {
      node->registry.nodes().OnTick();
    }
    context.restart();
    context.poll();
  }
  // Until nothing is under way, and nothing would be said again.
  void Settle() {
    for (int round = 0; round < 4; ++round) {
      context.restart();
      context.poll();
      while (!messages.empty()) {
        Deliver(0);
      }
      Tick();
    }
  }
  // Loses the next so many messages: the sender hears of a timeout.
  int losses = 0;

  boost::asio::io_context context;
  std::vector<std::unique_ptr<Node>> nodes;
  std::deque<std::function<void()>> messages;
  std::vector<std::shared_ptr<Process>> processes;  // by rank: the latest

 private:
  const std::vector<uint32_t> node_of_rank_;
};

uint32_t NodeAt(const std::string& address) {
  return static_cast<uint32_t>(std::stoul(address.substr(4)));
}

Status Wires::Acquire(const std::string& address, uid_t) {
  ++acquired;
  world_.Post([this, address] {
    NodeContact contact;
    contact.address = address;
    contact.incarnation = 100 + NodeAt(address);
    contact.link = 1 + NodeAt(address);
    contact.life = 1;
    world_.At(node_).nodes().OnNodeUp(contact);
  });
  return {};
}

// As PeerService does.
template <typename Request>
Status Take(JobNodes& nodes, const Request& request, const std::string& caller) {
  FERRY_RETURN_IF_ERROR(
      nodes.CheckPeer(request.job_id(), request.job_proof(), request.incarnation()));
  if constexpr (std::is_same_v<Request, control::JoinedRequest>) {
    return nodes.OnJoined(request, caller);
  } else {
    return nodes.OnLeft(request, caller);
  }
}

void Wires::SendJoined(const std::string& to, const control::JoinedRequest& request, Done done) {
  world_.Post([this, to, request, done] {
    const bool is_lost = world_.losses > 0 && world_.losses-- > 0;
    const Status status =
        is_lost ? Status(ErrorCode::kTimeout, "lost")
                : Take(world_.At(NodeAt(to)).nodes(), request, World::AddressOf(node_));
    world_.Post([done, status] { done(status); });
  });
}

void Wires::SendLeft(const std::string& to, const control::LeftRequest& request, Done done) {
  world_.Post([this, to, request, done] {
    const bool is_lost = world_.losses > 0 && world_.losses-- > 0;
    const Status status =
        is_lost ? Status(ErrorCode::kTimeout, "lost")
                : Take(world_.At(NodeAt(to)).nodes(), request, World::AddressOf(node_));
    world_.Post([done, status] { done(status); });
  });
}

void ExpectRefused(const Status& status, ErrorCode code, const std::string& words) {
  EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code)) << status.message();
  EXPECT_THAT(status.message(), HasSubstr(words));
}

// ---- In order ----

TEST(JobProgramsTest, TheRanksOfASlotMeetAgainAndAgain) {
  World world({0, 0, 1});
  world.Launch();
  for (const std::string id : {"x", "x#2", "x#3", "x#4"}) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(world.Attach(rank).ok()) << id;
      EXPECT_EQ(world.JobOf(rank), id);
    }
    world.Settle();
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(world.JoinOf(rank).ok()) << id << ": " << world.JoinOf(rank).message();
    }
    for (uint32_t rank = 0; rank < 3; ++rank) {
      world.Leave(rank);
    }
    world.Settle();
    for (uint32_t node = 0; node < 2; ++node) {
      EXPECT_THAT(world.JobsAt(node), IsEmpty()) << id;
      EXPECT_EQ(world.nodes[node]->plane.Count("RemoveJob " + id), 1U);
      EXPECT_EQ(world.nodes[node]->wires.acquired, 1) << "by the launch";
    }
  }
  EXPECT_EQ(world.At(0).programs().series().size(), 1U) << "until the launcher destroys it";
  EXPECT_TRUE(world.At(0).DestroyJob("x").ok());
  EXPECT_THAT(world.At(0).programs().series(), IsEmpty());
  ExpectRefused(world.Attach(0), ErrorCode::kNotFound, "there is no job x on this daemon");
}

TEST(JobProgramsTest, TheKeysOfTwoProgramsDiffer) {
  World world({0});
  world.Launch();
  const auto first = world.nodes[0]->plane.plan();
  ASSERT_TRUE(world.Attach(0).ok());
  world.Leave(0);
  world.Settle();
  ASSERT_TRUE(world.Attach(0).ok());
  const auto second = world.nodes[0]->plane.plan();
  EXPECT_EQ(second.job_id, "x#2");
  EXPECT_NE(first.key, second.key);
}

// One rank is far ahead of the others; what is known of those is said.
TEST(JobProgramsTest, ARankWaitsInItsNextProgramForThoseStillInTheLastOne) {
  World world({0, 0, 1});
  world.Launch();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(world.Attach(rank).ok());
  }
  world.Settle();
  world.Leave(0);
  ASSERT_TRUE(world.Attach(0).ok());
  EXPECT_EQ(world.JobOf(0), "x#2");
  world.Settle();
  EXPECT_THAT(world.JobsAt(0), ElementsAre("x", "x#2"));
  EXPECT_THAT(world.JobsAt(1), ElementsAre("x", "x#2")) << "its news came";
  EXPECT_EQ(world.JoinOf(0).code(), ErrorCode::kWouldBlock);
  const JobRecord& second = *world.At(0).jobs().at("x#2");
  EXPECT_EQ(second.MissingRanks(),
            "rank 1 (still in job x, the program before), rank 2 (still in job x, the program "
            "before)");
  world.Leave(1);
  EXPECT_THAT(second.MissingRanks(),
              HasSubstr("rank 1 (not attached: not started yet, or not at that call)"));
  world.Leave(2);
  ASSERT_TRUE(world.Attach(2).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Settle();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(world.JoinOf(rank).ok());
  }
  EXPECT_THAT(world.JobsAt(0), ElementsAre("x#2"));
  EXPECT_THAT(world.JobsAt(1), ElementsAre("x#2"));
}

TEST(JobProgramsTest, AProgramThatARankStartsIsRefused) {
  World world({0, 0});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ExpectRefused(world.Attach(0), ErrorCode::kAlreadyExists,
                "rank 0 of job x is attached already, by pid " + std::to_string(getpid()));
  ASSERT_TRUE(world.Attach(1).ok());
  world.Leave(0);
  ASSERT_TRUE(world.Attach(0).ok());
  ExpectRefused(world.Attach(0), ErrorCode::kAlreadyExists,
                "rank 0 of job x#2 is attached already, by pid " + std::to_string(getpid()));
}

// The next program of the slot may be faster than the hang-up of the one that died.
TEST(JobProgramsTest, AProgramBehindOneThatHasDiedUnseenIsToldOfTheDeath) {
  World world({0, 0});
  world.Launch();
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(world.Attach(0, child).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  ExpectRefused(
      world.Attach(0), ErrorCode::kPeerDied,
      "job x takes no further program: rank 0 of job x (pid " + std::to_string(child) + ") died");
}

TEST(JobProgramsTest, WithoutASeriesARankAttachesOnce) {
  World world({0, 0});
  JobSpec spec = world.SpecFor(0);
  spec.programs_follow = false;
  ASSERT_TRUE(world.At(0).CreateJob(spec).ok());
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Leave(0);
  ExpectRefused(world.Attach(0), ErrorCode::kAlreadyExists,
                "rank 0 of job x has ended; a rank attaches only once");
}

// ---- Deaths, aborts, ends ----

TEST(JobProgramsTest, ADeathEndsTheSeriesOnAllNodes) {
  World world({0, 1});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Settle();
  world.Die(1);
  world.Settle();
  world.Leave(0);
  world.Settle();
  for (const uint32_t rank : {0U, 1U}) {
    ExpectRefused(world.Attach(rank), ErrorCode::kPeerDied,
                  "job x takes no further program: rank 1 of job x (pid 9) died");
  }
}

// It dies between the last barrier and its leave: another rank waits in the next program already.
TEST(JobProgramsTest, ADeathInTheLastProgramFailsTheNextOne) {
  World world({0, 1});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Settle();
  world.Leave(0);
  ASSERT_TRUE(world.Attach(0).ok());
  world.Settle();
  world.Die(1);
  world.Settle();
  ExpectRefused(world.JoinOf(0), ErrorCode::kPeerDied, "rank 1 of job x (pid 9) died");
}

TEST(JobProgramsTest, ADeathWhileTheSecondProgramGathersIsNamed) {
  World world({0, 0, 1});
  world.Launch();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(world.Attach(rank).ok());
  }
  world.Settle();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    world.Leave(rank);
  }
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(2).ok());
  world.Settle();
  world.Die(2);
  world.Settle();
  ExpectRefused(world.JoinOf(0), ErrorCode::kPeerDied, "rank 2 of job x#2 (pid 9) died");
  ASSERT_TRUE(world.Attach(1).ok());
  ExpectRefused(world.JoinOf(1), ErrorCode::kPeerDied, "rank 2 of job x#2 (pid 9) died");
}

TEST(JobProgramsTest, NoProgramFollowsAnAbort) {
  World world({0, 1});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Settle();
  world.At(0).Abort(*world.processes[0]->session, 3, "enough");
  world.Settle();
  world.Leave(1);
  world.Settle();
  ExpectRefused(world.Attach(1), ErrorCode::kAborted,
                "job x takes no further program: rank 0 of job x aborted it with exit code 3");
}

// In each order of the end, the news and the others' join.
TEST(JobProgramsTest, ThoseWhoWaitForASlotThatIsOverAreToldHowItEnded) {
  const std::string how = "exited with code 0 without another MPI_Init";
  for (int order = 0; order < 3; ++order) {
    World world({0, 0, 1});
    world.Launch();
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(world.Attach(rank).ok());
    }
    world.Settle();
    for (uint32_t rank = 0; rank < 3; ++rank) {
      world.Leave(rank);
    }
    world.Settle();
    const auto end = [&] {
      const StatusOr<bool> absent = world.At(1).RankProcessEnded("x#2", 2, how);
      ASSERT_TRUE(absent.ok());
      EXPECT_TRUE(*absent) << order;
    };
    if (order == 0) {  // before anything of the second program is known there
      end();
    }
    ASSERT_TRUE(world.Attach(0).ok());
    if (order == 1) {  // the news of it is under way
      end();
    }
    world.Settle();
    if (order == 2) {
      EXPECT_EQ(world.JoinOf(0).code(), ErrorCode::kWouldBlock);
      end();
      world.Settle();
    }
    ExpectRefused(world.JoinOf(0), ErrorCode::kPeerDied, "rank 2 of job x#2 " + how);
    ASSERT_TRUE(world.Attach(1).ok());
    ExpectRefused(world.JoinOf(1), ErrorCode::kPeerDied, "rank 2 of job x#2 " + how);
    EXPECT_FALSE(world.Attach(2).ok()) << "a process that the slot has left behind";
  }
}

TEST(JobProgramsTest, ASlotThatEndsAfterTheProgramThatOthersWaitInIsNoLoss) {
  World world({0, 0});
  world.Launch();
  ASSERT_TRUE(world.Attach(1).ok());
  const StatusOr<bool> first = world.At(0).RankProcessEnded("x", 1, "exited");
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(*first) << "its connection tells how it ends";
  ASSERT_TRUE(world.Attach(0).ok());
  world.Leave(0);
  world.Leave(1);
  world.Settle();
  EXPECT_FALSE(*world.At(0).RankProcessEnded("x", 1, "exited"));
  EXPECT_TRUE(*world.At(0).RankProcessEnded("x#2", 0, "exited"));
  EXPECT_EQ(world.At(0).RankProcessEnded("x", 5, "exited").status().code(), ErrorCode::kNotFound);
}

TEST(JobProgramsTest, NoProgramFollowsTheEndOfANode) {
  World world({0, 1});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Settle();
  world.Leave(0);
  world.Leave(1);
  world.Settle();
  world.At(0).nodes().OnNodeDown(World::AddressOf(1), 2, {ErrorCode::kNodeUnreachable, "it died"});
  ExpectRefused(world.Attach(0), ErrorCode::kNodeUnreachable,
                "job x takes no further program: the node at node1:1: it died");
  const int acquired = world.nodes[0]->wires.acquired;
  ASSERT_TRUE(world.At(0).DestroyJob("x").ok());
  EXPECT_EQ(world.nodes[0]->wires.acquired, acquired) << "the link went with the node";
}

// ---- Limits ----

TEST(JobProgramsTest, AllProgramsTogetherTakeTheQuotaOfOneJob) {
  RegistryLimits limits;
  limits.quotas = {.sessions = 2, .jobs = 1, .ranks = 2};
  limits.max_local_ranks = 2;
  World world({0, 0}, limits);
  world.Launch();
  for (int program = 0; program < 50; ++program) {
    for (const uint32_t rank : {0U, 1U}) {
      const Status status = world.Attach(rank);
      ASSERT_TRUE(status.ok()) << program << ": " << status.message();
    }
    world.Settle();
    ASSERT_TRUE(world.JoinOf(0).ok());
    world.Leave(0);
    world.Leave(1);
  }
  world.Settle();
  ExpectRefused(world.At(0).CreateJob(world.SpecFor(0, "y")), ErrorCode::kLimitExceeded,
                "quota_jobs");
  ASSERT_TRUE(world.At(0).DestroyJob("x").ok());
  EXPECT_TRUE(world.At(0).CreateJob(world.SpecFor(0, "y")).ok());
}

TEST(JobProgramsTest, AnIdCannotBeThatOfAnothersProgram) {
  World world({0});
  ExpectRefused(world.At(0).CreateJob(world.SpecFor(0, "x#2")), ErrorCode::kInvalidArgument,
                "characters without spaces or #");
  ExpectRefused(world.At(0).CreateJob(world.SpecFor(0, std::string(60, 'x'))),
                ErrorCode::kInvalidArgument, "at most 52 bytes");
  JobSpec spec = world.SpecFor(0);
  spec.launcher = 0;
  ExpectRefused(world.At(0).CreateJob(spec), ErrorCode::kInvalidArgument,
                "only while a launcher waits");
  world.Launch();
  ExpectRefused(world.At(0).CreateJob(world.SpecFor(0)), ErrorCode::kAlreadyExists, "job x exists");
  ASSERT_TRUE(world.Attach(0).ok());
  world.Leave(0);
  world.Settle();
  ExpectRefused(world.At(0).CreateJob(world.SpecFor(0)), ErrorCode::kAlreadyExists, "job x exists");
}

TEST(JobProgramsTest, WhatIsDestroyedEndsInAllItsPrograms) {
  World world({0, 0});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Leave(0);
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.At(0).DestroyJob("x#2").ok());
  world.Settle();
  ExpectRefused(world.JoinOf(0), ErrorCode::kAborted, "job x#2 was destroyed by its launcher");
  EXPECT_THAT(world.JobsAt(0), IsEmpty());
  EXPECT_THAT(world.At(0).programs().series(), IsEmpty());
  EXPECT_EQ(world.At(0).local_ranks(), 0U);
}

// Its last job has ended, but is still there.
TEST(JobProgramsTest, NoProgramFollowsInADestroyedSeries) {
  World world({0});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  world.Leave(0);
  ASSERT_TRUE(world.At(0).DestroyJob("x").ok());
  ASSERT_THAT(world.JobsAt(0), ElementsAre("x"));
  ExpectRefused(world.Attach(0), ErrorCode::kAborted,
                "job x takes no further program: job x was destroyed by its launcher");
  world.Settle();
  ExpectRefused(world.Attach(0), ErrorCode::kNotFound, "there is no job x");
}

TEST(JobProgramsTest, ALauncherThatHangsUpTakesItsSeriesWithIt) {
  World world({0});
  Launchers launchers(world.At(0));
  const Launchers::Token token = launchers.Admit(geteuid());
  const std::string text = HexText(token);
  ASSERT_TRUE(launchers.CreateJob(text, world.SpecFor(0)).ok());
  ASSERT_TRUE(world.Attach(0).ok());
  world.Leave(0);
  world.Settle();
  EXPECT_THAT(world.JobsAt(0), IsEmpty());
  EXPECT_TRUE(*launchers.RankProcessEnded(text, "x#2", 0, "exited")) << "it is known still";
  launchers.Dismiss(text);
  EXPECT_THAT(world.At(0).programs().series(), IsEmpty());
}

// ---- What other daemons say ----

class StrangeNewsTest : public testing::Test {
 protected:
  StrangeNewsTest() : world_({0, 1}) { world_.Launch(); }
  Status Say(const std::string& job_id, const std::string& secret = kSecret) {
    control::JoinedRequest request;
    request.set_incarnation(101);
    request.set_job_id(job_id);
    request.set_job_proof(JobProof(secret, job_id, 101));
    request.set_node(1);
    request.add_ranks()->set_rank(1);
    // As the service asks before it passes the news on.
    FERRY_RETURN_IF_ERROR(world_.At(0).nodes().CheckPeer(job_id, request.job_proof(), 101));
    return world_.At(0).nodes().OnJoined(request, World::AddressOf(1));
  }

  World world_;
};

TEST_F(StrangeNewsTest, BeginOnlyTheNextProgram) {
  for (const std::string id : {"x#2", "x#3", "x#0", "x#1", "x#02", "x#", "x#2#2", "x#4294967297"}) {
    EXPECT_EQ(Say(id).code(), ErrorCode::kNotFound) << id;
  }
  EXPECT_THAT(world_.JobsAt(0), ElementsAre("x")) << "which is not complete yet";
  ASSERT_TRUE(world_.Attach(0).ok());
  ASSERT_TRUE(world_.Attach(1).ok());
  world_.Settle();
  ExpectRefused(Say("x#2", "a wrong secret of some bytes ..."), ErrorCode::kPermissionDenied,
                "the caller does not know the secret of job x#2");
  for (const std::string id : {"x#3", "x#02", "x#1", "x#-1", "x# 2"}) {
    EXPECT_EQ(Say(id).code(), ErrorCode::kNotFound) << id;
  }
  EXPECT_THAT(world_.JobsAt(0), ElementsAre("x"));
  EXPECT_TRUE(Say("x#2").ok());
  EXPECT_EQ(Say("x#3").code(), ErrorCode::kNotFound) << "one at a time";
  EXPECT_THAT(world_.JobsAt(0), ElementsAre("x", "x#2"));
}

TEST_F(StrangeNewsTest, ThatComeLateBeginNothing) {
  ASSERT_TRUE(world_.Attach(0).ok());
  ASSERT_TRUE(world_.Attach(1).ok());
  world_.Settle();
  world_.Leave(0);
  world_.Leave(1);
  world_.Settle();
  EXPECT_EQ(Say("x").code(), ErrorCode::kNotFound);
  EXPECT_THAT(world_.JobsAt(0), IsEmpty());
}

TEST_F(StrangeNewsTest, OfASeriesThatHasFailedAreRefused) {
  ASSERT_TRUE(world_.Attach(0).ok());
  ASSERT_TRUE(world_.Attach(1).ok());
  world_.Settle();
  world_.Die(0);
  world_.Settle();
  ExpectRefused(Say("x#2"), ErrorCode::kPeerDied,
                "job x takes no further program: rank 0 of job x");
}

// ---- In any order ----

// Ranks, the network and its losses take steps in a random order. Each rank runs so many programs;
// in some worlds one rank dies, or its slot ends, somewhere.
class AnyOrderTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint32_t kPrograms = 4;
  enum class Step { kAbsent, kInside, kOver };
  struct Slot {
    Step step = Step::kAbsent;
    uint32_t programs = 0;  // that it has left
    Status end;             // why it has run no more
  };

  // One step of a rank; returns false if it has to wait.
  bool Advance(World& world, uint32_t rank, std::vector<Slot>& slots) {
    Slot& slot = slots[rank];
    if (slot.step == Step::kOver) {
      return false;
    }
    if (slot.step == Step::kAbsent) {
      const Status status = world.Attach(rank);
      slot.step = status.ok() ? Step::kInside : Step::kOver;
      slot.end = status;
      return true;
    }
    if (!world.processes[rank]->joined.has_value()) {
      return false;
    }
    if (!world.JoinOf(rank).ok()) {
      slot.end = world.JoinOf(rank);
      slot.step = Step::kOver;
      world.Die(rank);
      return true;
    }
    if (!HaveAllMet(world, slots, slot.programs)) {
      return false;  // in the last barrier
    }
    world.Leave(rank);
    slot.step = ++slot.programs == kPrograms ? Step::kOver : Step::kAbsent;
    return true;
  }
  // True if all ranks have been inside their next program after `programs`, but for those that
  // take no further part.
  static bool HaveAllMet(const World& world, const std::vector<Slot>& slots, uint32_t programs) {
    for (uint32_t rank = 0; rank < slots.size(); ++rank) {
      const bool is_inside = slots[rank].step == Step::kInside && world.JoinOf(rank).ok();
      if (slots[rank].programs <= programs && !is_inside && slots[rank].step != Step::kOver) {
        return false;
      }
    }
    return true;
  }
};

TEST_P(AnyOrderTest, AllRunAllPrograms) {
  std::mt19937 random(GetParam());
  World world(GetParam() % 2 == 0 ? std::vector<uint32_t>{0, 1, 2}
                                  : std::vector<uint32_t>{0, 1, 0, 1});
  world.Launch();
  std::vector<Slot> slots(world.size());
  const auto is_over = [](const Slot& slot) { return slot.step == Step::kOver; };
  for (int step = 0; step < 20'000 && !std::all_of(slots.begin(), slots.end(), is_over); ++step) {
    const uint32_t dice = random() % 16;
    if (dice == 0) {
      world.losses += static_cast<int>(random() % 2);
    } else if (dice == 1) {
      world.Tick();
    } else if (dice < 8 && !world.messages.empty()) {
      world.Deliver(random() % world.messages.size());
    } else {
      Advance(world, random() % world.size(), slots);
    }
  }
  for (const Slot& slot : slots) {
    EXPECT_EQ(slot.programs, kPrograms) << slot.end.message();
  }
  world.losses = 0;
  world.Settle();
  for (uint32_t node = 0; node < world.nodes.size(); ++node) {
    EXPECT_THAT(world.JobsAt(node), IsEmpty());
    EXPECT_EQ(world.nodes[node]->plane.Count("AddJob"), kPrograms);
    EXPECT_EQ(world.nodes[node]->plane.Count("RemoveJob"), kPrograms);
    EXPECT_EQ(world.nodes[node]->wires.acquired, static_cast<int>(world.nodes.size()) - 1);
    ASSERT_TRUE(world.At(node).DestroyJob("x").ok());
    EXPECT_EQ(world.nodes[node]->wires.acquired, 0);
    EXPECT_EQ(world.At(node).leaving(), 0U);
  }
}

// Each rank that has not run all its programs has been told why, and none waits.
TEST_P(AnyOrderTest, OneEndIsToldToAll) {
  std::mt19937 random(GetParam());
  World world(GetParam() % 2 == 0 ? std::vector<uint32_t>{0, 1, 2}
                                  : std::vector<uint32_t>{0, 1, 0, 1});
  world.Launch();
  std::vector<Slot> slots(world.size());
  const uint32_t victim = random() % world.size();
  const int when = static_cast<int>(random() % 400);
  bool has_happened = false;
  const auto happen = [&] {
    Slot& slot = slots[victim];
    if (has_happened || slot.step == Step::kOver) {
      return;
    }
    has_happened = true;
    if (slot.step == Step::kInside) {
      world.Die(victim);
    } else {  // its slot ends while others wait in the next program
      EXPECT_TRUE(*world.Of(victim).RankProcessEnded(TextOf(JobName{"x", slot.programs + 1}),
                                                     victim, "(slot) exited"));
    }
    slot.step = Step::kOver;
  };
  for (int step = 0; step < 20'000; ++step) {
    const uint32_t dice = random() % 16;
    if (step == when) {
      happen();
    } else if (dice == 0 && step < 10'000) {
      world.losses += static_cast<int>(random() % 2);
    } else if (dice == 1) {
      world.Tick();
    } else if (dice < 8 && !world.messages.empty()) {
      world.Deliver(random() % world.messages.size());
    } else {
      Advance(world, random() % world.size(), slots);
    }
  }
  for (uint32_t rank = 0; rank < world.size(); ++rank) {
    EXPECT_EQ(slots[rank].step, Step::kOver) << rank << " waits";
    if (has_happened && rank != victim && slots[rank].programs != kPrograms) {
      EXPECT_THAT(slots[rank].end.message(), testing::HasSubstr("rank "));
      EXPECT_EQ(static_cast<int>(slots[rank].end.code()), static_cast<int>(ErrorCode::kPeerDied))
          << slots[rank].end.message();
    } else if (!has_happened) {
      EXPECT_EQ(slots[rank].programs, kPrograms);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyOrderTest, testing::Range(0U, 60U));

}  // namespace
}  // namespace ferry::daemon
