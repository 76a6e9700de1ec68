// Several daemons: greeting, joining across nodes, and the ends of ranks and daemons.
#include "daemon/control/peer_links.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "daemon/control/secrets.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"
#include "tests/e2e/command.h"

namespace ferry::daemon {
namespace {

// Another daemon's service Peer, as right or wrong as a test wants it.
class FakePeer final : public control::Peer::Service {
 public:
  // `change` makes another identity of the correct one.
  explicit FakePeer(const std::function<void(control::NodeIdentity*)>& change = nullptr) {
    identity_.set_name("fake");
    identity_.set_incarnation(4711);
    identity_.set_layout_version(kLayoutVersion);
    identity_.set_protocol_version(kProtocolVersion);
    identity_.set_provider("fake");
    if (change != nullptr) {
      change(&identity_);
    }
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakePeer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status Hello(grpc::ServerContext*, const control::HelloRequest* request,
                     control::HelloReply* reply) override {
    ++hellos;
    reply->set_life(std::max(request->life(), life.load()));
    *reply->mutable_from() = identity_;
    reply->set_data_key(99);
    return grpc::Status::OK;
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const control::HeartbeatRequest*,
                         control::HeartbeatReply* reply) override {
    ++heartbeats;
    mute.wait(true);
    reply->set_incarnation(incarnation);
    return ToGrpc(heartbeat_refused ? Status(ErrorCode::kDaemonDied, "took its caller for dead")
                                    : Status());
  }
  grpc::Status Joined(grpc::ServerContext*, const control::JoinedRequest*,
                      control::JoinedReply*) override {
    return grpc::Status::OK;
  }

  std::atomic<uint64_t> incarnation{4711};
  std::atomic<uint64_t> life{0};
  std::atomic<bool> heartbeat_refused{false};
  std::atomic<bool> mute{false};  // notify when it is no more
  std::atomic<int> hellos{0};
  std::atomic<int> heartbeats{0};

 private:
  control::NodeIdentity identity_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class PeerLinksTest : public ::testing::Test {
 protected:
  PeerLinksTest() : a_(Options("a")) {}
  explicit PeerLinksTest(uint64_t peer_timeout_ms) : a_(Options("a", peer_timeout_ms)) {}

  config::Options Options(const std::string& name, uint64_t peer_timeout_ms = 0) const {
    config::Options options = TestOptions(directory_.path() + "/" + name);
    options.peer_timeout_ms = peer_timeout_ms != 0 ? peer_timeout_ms : options.peer_timeout_ms;
    return options;
  }
  // Rank 0 on node 0, rank 1 on node 1.
  Status CreateJob(TestDaemon& daemon, uint32_t node, const std::string& other) {
    std::vector<std::string> addresses = {daemon.address(), other};
    if (node == 1) {
      std::swap(addresses[0], addresses[1]);
    }
    return daemon.CreateJob(TestDaemon::JobRequest("job", {0, 1}, addresses, node));
  }
  control::HelloRequest HelloFrom(uint64_t incarnation) const {
    control::HelloRequest request;
    control::NodeIdentity* from = request.mutable_from();
    from->set_name("stranger");
    from->set_incarnation(incarnation);
    from->set_layout_version(kLayoutVersion);
    from->set_protocol_version(kProtocolVersion);
    from->set_provider("fake");
    return request;
  }
  // A rank of node 0 at `a_`, in a job with a peer at `address`.
  void EnterJobWith(const std::string& address) {
    ASSERT_TRUE(CreateJob(a_, 0, address).ok());
    ASSERT_TRUE(rank_.Enter(a_.attach_path()));
  }
  Status Join() {
    control::JoinJobReply reply;
    return a_.Join(rank_, &reply);
  }

  TemporaryDirectory directory_;
  TestDaemon a_;
  TestRank rank_{"job", 0, 2, 1};
};

// Two daemons and a job whose two ranks have joined.
class TwoDaemonsTest : public PeerLinksTest {
 protected:
  TwoDaemonsTest() : b_(Options("b")) {}
  void SetUp() override {
    ASSERT_TRUE(CreateJob(a_, 0, b_.address()).ok());
    ASSERT_TRUE(CreateJob(b_, 1, a_.address()).ok());
    ASSERT_TRUE(rank_.Enter(a_.attach_path()));
    ASSERT_TRUE(other_.Enter(b_.attach_path()));
    auto early = std::async(std::launch::async, [this] { return Join(); });
    const Status joined = b_.Join(other_, &reply_);
    ASSERT_TRUE(joined.ok()) << joined.message();
    const Status first = early.get();
    ASSERT_TRUE(first.ok()) << first.message();
  }

  TestDaemon b_;
  TestRank other_{"job", 1, 2, 1};
  control::JoinJobReply reply_;
};

TEST_F(TwoDaemonsTest, JoinAcrossNodesAndAgreeOnKeys) {
  EXPECT_EQ(reply_.node(), 1U);
  EXPECT_EQ(reply_.node_count(), 2U);
  ASSERT_EQ(reply_.peers_size(), 2);
  EXPECT_EQ(reply_.peers(0).node(), 0U);
  EXPECT_EQ(reply_.peers(0).pid(), 0U);  // a number of another node means nothing here
  const std::vector<NodeRoute> from_a = a_.plane.routes();
  const std::vector<NodeRoute> from_b = b_.plane.routes();
  ASSERT_EQ(from_a.size(), 1U);
  ASSERT_EQ(from_b.size(), 1U);
  EXPECT_NE(from_a[0].send_key, 0U);
  EXPECT_EQ(from_a[0].send_key, from_b[0].receive_key);
  EXPECT_EQ(from_b[0].send_key, from_a[0].receive_key);
  EXPECT_NE(from_a[0].send_key, from_a[0].receive_key);
  EXPECT_EQ(from_a[0].fabric_address.size(), 2U);
  EXPECT_EQ(a_.plane.plan().key, b_.plane.plan().key);
  const control::StatusReply status = a_.GetStatus();
  ASSERT_EQ(status.peers_size(), 1);
  EXPECT_EQ(status.peers(0).name(), "b");
  EXPECT_NE(status.peers(0).state(), "connecting");
}

TEST_F(TwoDaemonsTest, ARankThatDiesEndsOnBothNodes) {
  other_.HangUp();
  EXPECT_TRUE(b_.plane.WaitFor("RankEnded job 1 14"));
  EXPECT_TRUE(a_.plane.WaitFor("RankEnded job 1 14"));
}

TEST_F(TwoDaemonsTest, AnOrderlyLeaveIsNoDeathAndTheJobEndsEverywhere) {
  ASSERT_TRUE(b_.Detach(other_).ok());
  ASSERT_TRUE(a_.Detach(rank_).ok());
  EXPECT_TRUE(a_.plane.WaitFor("RemoveJob job"));
  EXPECT_TRUE(b_.plane.WaitFor("RemoveJob job"));
  EXPECT_EQ(a_.plane.Count("RankEnded"), 0U);
  EXPECT_EQ(b_.plane.Count("RankEnded"), 0U);
  EXPECT_EQ(a_.GetStatus().peers_size(), 0);  // no job, no link
}

TEST_F(TwoDaemonsTest, AnAbortReachesTheOtherNode) {
  control::AbortJobRequest request;
  request.set_exit_code(9);
  control::AbortJobReply reply;
  ASSERT_TRUE(
      TestDaemon::Call(*a_.client, &control::Client::Stub::AbortJob, request, &reply, rank_.token())
          .ok());
  EXPECT_TRUE(a_.plane.WaitFor("PoisonJob job 30"));
  EXPECT_TRUE(b_.plane.WaitFor("PoisonJob job 30"));
}

TEST_F(TwoDaemonsTest, ADaemonThatStopsTellsTheOther) {
  b_.Stop();
  EXPECT_TRUE(a_.plane.WaitFor("RankEnded job 1 16"));
}

TEST_F(TwoDaemonsTest, NewsWithoutTheJobsSecretIsRefused) {
  control::LeftRequest request;
  request.set_incarnation(5);
  request.set_job_id("job");
  request.set_job_proof(JobProof("another secret, 32 bytes long...", "job", 5));
  request.add_ranks()->set_rank(1);
  control::LeftReply reply;
  ExpectError(TestDaemon::Call(*a_.peer, &control::Peer::Stub::Left, request, &reply),
              ErrorCode::kPermissionDenied, "does not know the secret of job job");
  request.set_job_proof(JobProof(kTestSecret, "job", 5));
  ExpectError(TestDaemon::Call(*a_.peer, &control::Peer::Stub::Left, request, &reply),
              ErrorCode::kNodeUnreachable, "another incarnation");
  request.mutable_ranks(0)->set_rank(0);
  ExpectError(TestDaemon::Call(*a_.peer, &control::Peer::Stub::Left, request, &reply),
              ErrorCode::kInvalidArgument, "is not of the caller's node");
  EXPECT_EQ(a_.plane.Count("RankEnded"), 0U);
}

TEST_F(PeerLinksTest, NewsOfAnUnknownJobIsToBeSentAgain) {
  control::JoinedRequest request;
  request.set_job_id("job");
  control::JoinedReply reply;
  ExpectError(TestDaemon::Call(*a_.peer, &control::Peer::Stub::Joined, request, &reply),
              ErrorCode::kNotFound, "there is no job job");
}

TEST_F(PeerLinksTest, AJobMayBeCreatedLateOnTheOtherNode) {
  TestDaemon b(Options("b"));
  EnterJobWith(b.address());
  auto early = std::async(std::launch::async, [this] { return Join(); });
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1"));
  ASSERT_TRUE(CreateJob(b, 1, a_.address()).ok());
  TestRank other("job", 1, 2, 1);
  ASSERT_TRUE(other.Enter(b.attach_path()));
  control::JoinJobReply reply;
  EXPECT_TRUE(b.Join(other, &reply).ok());
  EXPECT_TRUE(early.get().ok());
}

TEST_F(PeerLinksTest, AGreetingOfAnotherVersionIsRefusedAndBothAreNamed) {
  control::HelloRequest request = HelloFrom(5);
  request.mutable_from()->set_protocol_version(88);
  control::HelloReply reply;
  const Status status = TestDaemon::Call(*a_.peer, &control::Peer::Stub::Hello, request, &reply);
  ExpectError(status, ErrorCode::kVersionMismatch, "protocol version 88");
  ExpectError(status, ErrorCode::kVersionMismatch,
              "protocol version " + std::to_string(kProtocolVersion));
}

TEST_F(PeerLinksTest, AGreetingWithAnotherProviderIsRefused) {
  control::HelloRequest request = HelloFrom(5);
  request.mutable_from()->set_provider("verbs");
  control::HelloReply reply;
  ExpectError(TestDaemon::Call(*a_.peer, &control::Peer::Stub::Hello, request, &reply),
              ErrorCode::kUnsupported, "uses the provider verbs");
}

TEST_F(PeerLinksTest, APeerOfAnotherVersionFailsTheJoin) {
  FakePeer peer([](auto* identity) { identity->set_layout_version(77); });
  EnterJobWith(peer.address());
  ExpectError(Join(), ErrorCode::kVersionMismatch, "layout version 77");
}

TEST_F(PeerLinksTest, ADaemonIsNotItsOwnPeer) {
  const uint64_t own = a_.GetStatus().node().incarnation();
  FakePeer peer([own](auto* identity) { identity->set_incarnation(own); });
  EnterJobWith(peer.address());
  ExpectError(Join(), ErrorCode::kInvalidArgument, "is the daemon of node a itself");
}

TEST_F(PeerLinksTest, AJoinWithoutThePeerSaysWhatIsWrongWithIt) {
  a_.Stop();
  config::Options options = Options("c");
  options.attach_timeout_ms = 300;
  TestDaemon c(options);
  ASSERT_TRUE(CreateJob(c, 0, "127.0.0.1:1").ok());
  ASSERT_TRUE(rank_.Enter(c.attach_path()));
  control::JoinJobReply reply;
  const Status status = c.Join(rank_, &reply);
  ExpectError(status, ErrorCode::kTimeout, "rank 1 (node 1 at 127.0.0.1:1: ");
  ExpectError(status, ErrorCode::kTimeout, "Connection refused");
}

TEST_F(PeerLinksTest, APeerThatWasRestartedIsDead) {
  FakePeer peer;
  EnterJobWith(peer.address());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1"));
  peer.incarnation = 4712;
  EXPECT_TRUE(a_.plane.WaitFor("NodeFailed 4711 16"));
  ExpectError(Join(), ErrorCode::kNodeUnreachable, "was restarted");
  control::HeartbeatRequest request;
  request.set_incarnation(4711);
  control::HeartbeatReply reply;
  const auto beat = [&] {
    return TestDaemon::Call(*a_.peer, &control::Peer::Stub::Heartbeat, request, &reply);
  };
  ExpectError(beat(), ErrorCode::kDaemonDied, "took its caller for dead");
  control::HelloReply hello;
  ASSERT_TRUE(
      TestDaemon::Call(*a_.peer, &control::Peer::Stub::Hello, HelloFrom(4711), &hello).ok());
  EXPECT_TRUE(beat().ok());  // a new greeting is a new beginning
}

TEST_F(PeerLinksTest, APeerThatTookUsForDeadIsDeadToUs) {
  FakePeer peer;
  EnterJobWith(peer.address());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1"));
  peer.heartbeat_refused = true;
  EXPECT_TRUE(a_.plane.WaitFor("NodeFailed 4711 16"));
}

TEST_F(PeerLinksTest, APeerThatTheDataPlaneLosesIsCutOffAndGreetedAnew) {
  FakePeer peer;
  EnterJobWith(peer.address());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1"));
  a_.server().LoseNode(4711, {ErrorCode::kLinkDown, "a message was lost"});
  EXPECT_TRUE(a_.plane.WaitFor("NodeFailed 4711 32"));
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1", 2));
  EXPECT_EQ(a_.plane.routes()[1].life, 1U);
  EXPECT_NE(a_.plane.routes()[1].receive_key, a_.plane.routes()[0].receive_key);
}

TEST_F(PeerLinksTest, APeerThatCountsMoreLivesIsFollowed) {
  FakePeer peer;
  EnterJobWith(peer.address());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1"));
  peer.life = 5;
  control::HelloRequest request = HelloFrom(4711);
  request.set_life(5);
  control::HelloReply reply;
  ASSERT_TRUE(TestDaemon::Call(*a_.peer, &control::Peer::Stub::Hello, request, &reply).ok());
  EXPECT_EQ(reply.life(), 5U);
  EXPECT_TRUE(a_.plane.WaitFor("NodeFailed 4711 32"));
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1", 2));
  EXPECT_EQ(a_.plane.routes()[1].life, 5U);
}

TEST_F(PeerLinksTest, AHeartbeatOfAnEarlierLifeIsToldSo) {
  FakePeer peer;
  EnterJobWith(peer.address());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1"));
  a_.server().LoseNode(4711, {ErrorCode::kLinkDown, "a message was lost"});
  ASSERT_TRUE(a_.plane.WaitFor("NodeFailed 4711 32"));
  control::HeartbeatRequest request;
  request.set_incarnation(4711);
  control::HeartbeatReply reply;
  const auto beat = [&] {
    return TestDaemon::Call(*a_.peer, &control::Peer::Stub::Heartbeat, request, &reply);
  };
  ExpectError(beat(), ErrorCode::kLinkDown, "has lost the link to its caller");
  request.set_life(1);
  EXPECT_TRUE(beat().ok());
}

TEST_F(TwoDaemonsTest, BothComeBackAfterACut) {
  const uint64_t incarnation = b_.GetStatus().node().incarnation();
  a_.server().LoseNode(incarnation, {ErrorCode::kLinkDown, "a message was lost"});
  EXPECT_TRUE(a_.plane.WaitFor("NodeReturned job 1"));
  EXPECT_TRUE(b_.plane.WaitFor("NodeReturned job 0"));
  EXPECT_EQ(a_.plane.Count("RankEnded"), 0U);
  EXPECT_EQ(a_.plane.routes().back().send_key, b_.plane.routes().back().receive_key);
  EXPECT_EQ(b_.plane.routes().back().send_key, a_.plane.routes().back().receive_key);
}

TEST_F(TwoDaemonsTest, AJobThatFailsOnOneNodeIsAbortedOnBoth) {
  a_.server().FailJob("job", {ErrorCode::kCorrupt, "the other nodes broke their credit"});
  EXPECT_TRUE(a_.plane.WaitFor("PoisonJob job 30"));
  EXPECT_TRUE(b_.plane.WaitFor("PoisonJob job 30"));
}

class LostDaemonTest : public PeerLinksTest, public ::testing::WithParamInterface<int> {
 protected:
  LostDaemonTest() : PeerLinksTest(GetParam() == SIGSTOP ? 500 : 60'000) {}
};

TEST_P(LostDaemonTest, IsMissedByItsHeartbeat) {
  // One that is stopped may come back; where nothing listens any more, it is dead.
  const bool stopped = GetParam() == SIGSTOP;
  FerrydProcess b(directory_.path() + "/b", {"--heartbeat_interval_ms=20"});
  ASSERT_TRUE(b.WaitUntilReady()) << b.Errors();
  EnterJobWith(b.ControlAddress());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1"));
  const uint64_t incarnation = a_.plane.routes()[0].incarnation;
  b.Signal(GetParam());
  EXPECT_TRUE(
      a_.plane.WaitFor("NodeFailed " + std::to_string(incarnation) + (stopped ? " 32" : " 16")));
  if (!stopped) {
    ExpectError(Join(), ErrorCode::kNodeUnreachable, "nothing listens there any more");
  }
}

TEST_F(PeerLinksTest, ADaemonThatStoodStillItselfTakesNobodyForLost) {
  FakePeer peer;
  FerrydProcess b(directory_.path() + "/b",
                  {"--heartbeat_interval_ms=20", "--peer_timeout_ms=1500"});
  ASSERT_TRUE(b.WaitUntilReady()) << b.Errors();
  const auto admin = control::Admin::NewStub(grpc::CreateChannel(
      "unix:" + directory_.path() + "/b/admin.sock", grpc::InsecureChannelCredentials()));
  control::CreateJobReply reply;
  const Status created = TestDaemon::Call(
      *admin, &control::Admin::Stub::CreateJob,
      TestDaemon::JobRequest("job", {0, 1}, {b.ControlAddress(), peer.address()}, 0), &reply);
  ASSERT_TRUE(created.ok()) << created.message();
  ASSERT_TRUE(rank_.Enter(directory_.path() + "/b/attach.sock"));
  const auto heartbeats_more = [&](int count) {
    const int before = peer.heartbeats;
    return e2e::Eventually([&] { return peer.heartbeats >= before + count; });
  };
  ASSERT_TRUE(heartbeats_more(2));
  peer.mute = true;
  ASSERT_TRUE(heartbeats_more(1));  // it waits for the answer
  b.Signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(2));  // the fault itself
  b.Signal(SIGCONT);
  peer.mute = false;
  peer.mute.notify_all();
  EXPECT_TRUE(heartbeats_more(5));
  EXPECT_EQ(peer.hellos, 1);  // one that lost the link would greet anew
}

INSTANTIATE_TEST_SUITE_P(PeerLinks, LostDaemonTest, ::testing::Values(SIGSTOP, SIGKILL),
                         [](const auto& info) {
                           return std::string(info.param == SIGSTOP ? "Stopped" : "Killed");
                         });

}  // namespace
}  // namespace ferry::daemon
