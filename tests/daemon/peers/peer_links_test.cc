// Several daemons: greeting, joining across nodes, and the ends of ranks and daemons.
#include "daemon/peers/peer_links.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <future>
#include <thread>

#include "daemon/tls/secrets.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/peers/fake_peer.h"
#include "tests/daemon/port_forwarder.h"
#include "tests/daemon/test_daemon.h"
#include "tests/e2e/command.h"

namespace ferry::daemon {
namespace {

class PeerLinksTest : public ::testing::Test {
 protected:
  PeerLinksTest() : a_(Options("a")) {}
  explicit PeerLinksTest(uint64_t peer_timeout_ms) : a_(Options("a", peer_timeout_ms)) {}

  config::Options Options(const std::string& name, uint64_t peer_timeout_ms = 0) const {
    config::Options options = TestOptions(directory_.path() + "/" + name);
    options.peer_timeout_ms = peer_timeout_ms != 0 ? peer_timeout_ms : options.peer_timeout_ms;
    return options;
  }
  control::HelloRequest HelloFrom(uint64_t incarnation) const {
    control::HelloRequest request;
    *request.mutable_from() = TestIdentity("stranger", incarnation);
    return request;
  }
  // Greets `a_` as the fake peer does.
  control::HelloRequest HelloFrom(const FakePeer& peer) const {
    control::HelloRequest request;
    *request.mutable_from() = peer.identity();
    request.set_token(FakePeer::kToken);
    return request;
  }
  static StatusOr<control::HelloReply> Greet(TestDaemon& daemon,
                                             const control::HelloRequest& request) {
    control::HelloReply reply;
    const Status status = daemon.Ask(&PeerStub::Hello, request, &reply);
    return status.ok() ? StatusOr<control::HelloReply>(reply) : status;
  }
  // Says something to `a_` as the daemon at `address`.
  template <typename Method, typename Request>
  Status TellAs(const std::string& address, const std::string& token, Method method,
                const Request& request) {
    return daemon::TellAs(address, token, a_.stub<PeerStub>(), method, request);
  }
  // A heartbeat to `a_` of the daemon at `address`.
  Status Beat(const std::string& address, uint64_t incarnation, uint64_t life = 0) {
    grpc::ClientContext context;
    context.AddMetadata(kCallerMetadata, address);
    control::HeartbeatRequest request;
    request.set_incarnation(incarnation);
    request.set_life(life);
    control::HeartbeatReply reply;
    return FromGrpc(a_.stub<PeerStub>().Heartbeat(&context, request, &reply));
  }
  // The news for `a_`'s data plane when it loses the first daemon that it was told of.
  std::string Failed(ErrorCode error) {
    return "NodeFailed " + std::to_string(a_.plane.routes()[0].link) + " " +
           FakeDataPlane::Number(error);
  }
  // A rank of node 0 at `a_`, in a job with a peer at `address`.
  void EnterJobWith(const std::string& address) {
    ASSERT_TRUE(a_.CreateJobWith("job", 0, address).ok());
    ASSERT_TRUE(rank_.Enter(a_.attach_path()));
  }
  // As EnterJobWith, and waits until the peer is known.
  void ConnectTo(const std::string& address) {
    ASSERT_NO_FATAL_FAILURE(EnterJobWith(address));
    ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1"));
  }
  void LoseTheLink() {
    a_.server().LoseNode(a_.plane.routes()[0].link, {ErrorCode::kLinkDown, "a message was lost"});
  }
  Status Join() { return rank_.Join().status(); }

  TemporaryDirectory directory_;
  TestDaemon a_;
  TestRank rank_{"job", 0, 2, 1};
};

// Neither waits for a tick, whichever is first, and if they greet each other at the same moment.
TEST_F(PeerLinksTest, TwoDaemonsKnowEachOtherAtOnce) {
  config::Options options = Options("b");
  options.heartbeat_interval_ms = 600'000;
  TestDaemon b(options);
  options = Options("c");
  options.heartbeat_interval_ms = 600'000;
  TestDaemon c(options);
  for (int round = 0; round < 20; ++round) {
    const std::string job = "job" + std::to_string(round);
    auto other =
        std::async(std::launch::async, [&] { return c.CreateJobWith(job, 1, b.address()); });
    ASSERT_TRUE(b.CreateJobWith(job, 0, c.address()).ok());
    ASSERT_TRUE(other.get().ok());
    ASSERT_TRUE(b.plane.WaitFor("AddNode " + job)) << job;
    ASSERT_TRUE(c.plane.WaitFor("AddNode " + job)) << job;
    for (TestDaemon* daemon : {&b, &c}) {  // the next ones begin with strangers
      ASSERT_TRUE(daemon->DestroyJob(job).ok());
      daemon->plane.WaitFor("RemoveJob " + job);
    }
  }
}

// Two daemons and a job whose two ranks have joined.
class TwoDaemonsTest : public PeerLinksTest {
 protected:
  TwoDaemonsTest() : b_(Options("b")) {}
  void SetUp() override {
    ASSERT_TRUE(a_.CreateJobWith("job", 0, b_.address()).ok());
    ASSERT_TRUE(b_.CreateJobWith("job", 1, a_.address()).ok());
    ASSERT_TRUE(rank_.Enter(a_.attach_path()));
    ASSERT_TRUE(other_.Enter(b_.attach_path()));
    auto early = std::async(std::launch::async, [this] { return Join(); });
    joined_ = other_.Join();
    ASSERT_TRUE(joined_.status().ok()) << joined_.text();
    const Status first = early.get();
    ASSERT_TRUE(first.ok()) << first.message();
  }

  // Both hear from each other several times more, and neither has lost the other.
  bool GoesOn() {
    const std::string link = std::to_string(a_.plane.routes()[0].link);
    return a_.HearsFrom(b_.address(), 5) && b_.HearsFrom(a_.address(), 5) &&
           a_.plane.Count("NodeFailed " + link) == 0 && b_.plane.Count("NodeFailed") == 0;
  }

  TestDaemon b_;
  TestRank other_{"job", 1, 2, 1};
  Answer joined_;  // of `other_`
};

TEST_F(TwoDaemonsTest, JoinAcrossNodesAndAgreeOnKeys) {
  EXPECT_EQ(joined_.call.node, 1U);
  EXPECT_EQ(joined_.call.node_count, 2U);
  ASSERT_EQ(joined_.peers.size(), 2U);
  EXPECT_EQ(joined_.peers[0].node, 0U);
  EXPECT_EQ(joined_.peers[0].pid, 0U);  // a number of another node means nothing here
  const std::vector<NodeRoute> from_a = a_.plane.routes();
  const std::vector<NodeRoute> from_b = b_.plane.routes();
  ASSERT_EQ(from_a.size(), 1U);
  ASSERT_EQ(from_b.size(), 1U);
  EXPECT_NE(from_a[0].send_key, 0U);
  EXPECT_EQ(from_a[0].send_key, from_b[0].receive_key);
  EXPECT_EQ(from_b[0].send_key, from_a[0].receive_key);
  EXPECT_NE(from_a[0].send_key, from_a[0].receive_key);
  // Each has told the other the address that is for it alone.
  EXPECT_EQ(from_a[0].fabric_address, b_.plane.FabricAddressFor(from_b[0].guest));
  EXPECT_EQ(from_b[0].fabric_address, a_.plane.FabricAddressFor(from_a[0].guest));
  EXPECT_EQ(from_a[0].guest, from_a[0].link);
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
  ASSERT_TRUE(other_.Detach().status().ok());
  ASSERT_TRUE(rank_.Detach().status().ok());
  EXPECT_TRUE(a_.plane.WaitFor("RemoveJob job"));
  EXPECT_TRUE(b_.plane.WaitFor("RemoveJob job"));
  const std::string left = std::to_string(static_cast<int>(ErrorCode::kNotFound));
  for (const FakeDataPlane* plane : {&a_.plane, &b_.plane}) {
    EXPECT_EQ(plane->Count("RankEnded"), 2U);
    EXPECT_EQ(plane->Count("RankEnded job 0 " + left), 1U);
    EXPECT_EQ(plane->Count("RankEnded job 1 " + left), 1U);
  }
  EXPECT_EQ(a_.GetStatus().peers_size(), 0);  // no job, no link
}

TEST_F(TwoDaemonsTest, AnAbortReachesTheOtherNode) {
  ASSERT_TRUE(rank_.Abort(9, "").status().ok());
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
  ExpectError(a_.Tell(&PeerStub::Left, request), ErrorCode::kPermissionDenied,
              "does not know the secret of job job");
  request.set_job_proof(JobProof(kTestSecret, "job", 5));
  ExpectError(TellAs(b_.address(), "", &PeerStub::Left, request), ErrorCode::kNodeUnreachable,
              "another incarnation");
  EXPECT_EQ(a_.plane.Count("RankEnded"), 0U);
}

TEST_F(PeerLinksTest, NewsOfAnUnknownJobIsToBeSentAgain) {
  control::JoinedRequest request;
  request.set_job_id("job");
  ExpectError(a_.Tell(&PeerStub::Joined, request), ErrorCode::kNotFound, "there is no job job");
}

TEST_F(PeerLinksTest, AJobMayBeCreatedLateOnTheOtherNode) {
  TestDaemon b(Options("b"));
  EnterJobWith(b.address());
  auto early = std::async(std::launch::async, [this] { return Join(); });
  ASSERT_TRUE(e2e::Eventually([&] {  // it has been answered, and is not known there
    const control::StatusReply status = a_.GetStatus();
    return status.peers_size() == 1 &&
           status.peers(0).trouble().find("has not called this one") != std::string::npos;
  }));
  ASSERT_TRUE(b.CreateJobWith("job", 1, a_.address()).ok());
  TestRank other("job", 1, 2, 1);
  ASSERT_TRUE(other.Enter(b.attach_path()));
  EXPECT_TRUE(other.Join().status().ok());
  EXPECT_TRUE(early.get().ok());
}

TEST_F(PeerLinksTest, AGreetingOfAnotherVersionIsRefusedAndBothAreNamed) {
  control::HelloRequest request = HelloFrom(5);
  request.mutable_from()->set_protocol_version(88);
  const Status status = a_.Tell(&PeerStub::Hello, request);
  ExpectError(status, ErrorCode::kVersionMismatch, "protocol version 88");
  ExpectError(status, ErrorCode::kVersionMismatch,
              "protocol version " + std::to_string(kProtocolVersion));
}

TEST_F(PeerLinksTest, AGreetingWithAnotherProviderIsRefused) {
  control::HelloRequest request = HelloFrom(5);
  request.mutable_from()->set_provider("verbs");
  ExpectError(a_.Tell(&PeerStub::Hello, request), ErrorCode::kUnsupported,
              "uses the provider verbs");
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
  options.peer_timeout_ms = 300;
  TestDaemon c(options);
  ASSERT_TRUE(c.CreateJobWith("job", 0, "127.0.0.1:1").ok());
  ASSERT_TRUE(rank_.Enter(c.attach_path()));
  const Status status = Join();
  ExpectError(status, ErrorCode::kNodeUnreachable,
              "for 300 ms (peer_timeout_ms) there has been no way to its node 1; missing rank 1 "
              "(node 1 at 127.0.0.1:1: ");
  ExpectError(status, ErrorCode::kNodeUnreachable, "Connection refused");
}

// Much longer than from one heartbeat to the next.
TEST_F(PeerLinksTest, APeerThatTakesLongForTheFirstBytesIsReached) {
  std::unique_ptr<PortForwarder> slow;
  FakePeer peer([&slow](control::NodeIdentity* identity) {
    slow = std::make_unique<PortForwarder>(identity->control_address(), /*delay_ms=*/500);
    identity->set_control_address(slow->address());
  });
  EXPECT_NO_FATAL_FAILURE(ConnectTo(slow->address()));
  EXPECT_LE(peer.hellos, 6) << "greetings that were cut short come again and again";
}

TEST_F(PeerLinksTest, APeerThatWasRestartedIsDead) {
  FakePeer peer;
  ASSERT_NO_FATAL_FAILURE(ConnectTo(peer.address()));
  peer.incarnation = 4712;
  EXPECT_TRUE(a_.plane.WaitFor(Failed(ErrorCode::kNodeUnreachable)));
  ExpectError(Join(), ErrorCode::kNodeUnreachable, "was restarted");
  ExpectError(Beat(peer.address(), 4711), ErrorCode::kDaemonDied, "took its caller for dead");
  EXPECT_TRUE(Beat("127.0.0.1:1", 4711).ok()) << "that is another daemon";
  EXPECT_TRUE(Beat(peer.address(), 4712).ok());
  peer.incarnation = 4711;
  ASSERT_TRUE(a_.CreateJobWith("next", 0, peer.address()).ok());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode next 1"));
  EXPECT_TRUE(Beat(peer.address(), 4711).ok());  // a daemon that answers a new greeting is not dead
}

TEST_F(PeerLinksTest, APeerThatTookUsForDeadIsDeadToUs) {
  FakePeer peer;
  ASSERT_NO_FATAL_FAILURE(ConnectTo(peer.address()));
  peer.heartbeat_refused = true;
  EXPECT_TRUE(a_.plane.WaitFor(Failed(ErrorCode::kNodeUnreachable)));
}

TEST_F(PeerLinksTest, APeerThatTheDataPlaneLosesIsCutOffAndGreetedAnew) {
  FakePeer peer;
  ASSERT_NO_FATAL_FAILURE(ConnectTo(peer.address()));
  LoseTheLink();
  EXPECT_TRUE(a_.plane.WaitFor(Failed(ErrorCode::kLinkDown)));
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1", 2));
  EXPECT_EQ(a_.plane.routes()[1].life, 1U);
  EXPECT_NE(a_.plane.routes()[1].receive_key, a_.plane.routes()[0].receive_key);
}

TEST_F(PeerLinksTest, APeerThatCountsMoreLivesIsFollowed) {
  FakePeer peer;
  ASSERT_NO_FATAL_FAILURE(ConnectTo(peer.address()));
  peer.life = 5;
  control::HelloRequest request = HelloFrom(peer);
  request.set_life(5);
  const auto reply = Greet(a_, request);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->life(), 5U);
  EXPECT_NE(reply->data_key(), 0U);
  EXPECT_TRUE(a_.plane.WaitFor(Failed(ErrorCode::kLinkDown)));
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1", 2));
  EXPECT_EQ(a_.plane.routes()[1].life, 5U);
}

// ---- Who is who ----

// The stranger knows all that b says of itself, and some of what it may not say.
TEST_F(TwoDaemonsTest, AStrangerWhoGreetsAsAnotherDaemonLearnsAndChangesNothing) {
  FakePeer other;  // a daemon that both speak to, too: each has told it a token
  for (TestDaemon* daemon : {&a_, &b_}) {
    ASSERT_TRUE(daemon->CreateJobWith("other", 0, other.address()).ok());
    ASSERT_TRUE(daemon->plane.WaitFor("AddNode other 1"));
  }
  control::HelloRequest request;
  *request.mutable_from() = b_.GetStatus().node();
  request.set_life(7);
  for (const std::string& token :
       {std::string(), std::string("guessed"), other.token_of_caller()}) {
    request.set_token(token);
    const auto reply = Greet(a_, request);
    ASSERT_TRUE(reply.ok()) << reply.status().message();
    EXPECT_EQ(reply->data_key(), 0U);
    EXPECT_TRUE(reply->from().fabric_address().empty());
  }
  EXPECT_TRUE(request.from().fabric_address().empty()) << "nor do administrators need it";
  EXPECT_TRUE(other.identity_of_caller().fabric_address().empty()) << "nor whoever is greeted";
  request.set_life(UINT64_MAX);
  ExpectError(Greet(a_, request).status(), ErrorCode::kInvalidArgument, "18446744073709551615");
  EXPECT_EQ(a_.plane.Count("NodeFailed"), 0U);
  EXPECT_TRUE(Beat(b_.address(), b_.GetStatus().node().incarnation()).ok()) << "its life goes on";
}

// The daemon that proves itself, too, gets an address of its own.
TEST_F(TwoDaemonsTest, AThirdDaemonLearnsOnlyItsOwnWayToTheDataPlane) {
  FakePeer third;
  ASSERT_TRUE(a_.CreateJobWith("other", 0, third.address()).ok());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode other 1"));
  const auto reply = Greet(a_, HelloFrom(third));
  ASSERT_TRUE(reply.ok());
  ASSERT_NE(reply->data_key(), 0U);
  const auto* bytes = reinterpret_cast<const std::byte*>(reply->from().fabric_address().data());
  const std::vector<std::byte> address(bytes, bytes + reply->from().fabric_address().size());
  const std::vector<NodeRoute> routes = a_.plane.routes();  // to b, and to the third
  ASSERT_EQ(routes.size(), 2U);
  EXPECT_EQ(address, a_.plane.FabricAddressFor(routes[1].guest));
  EXPECT_NE(address, b_.plane.routes()[0].fabric_address);
}

// A process had the port of a daemon before that began, and was called there.
TEST_F(PeerLinksTest, ATokenThatAnotherProcessAtThePortWasShownIsWorthNothing) {
  auto thief = std::make_unique<FakePeer>();
  const std::string address = thief->address();
  ASSERT_NO_FATAL_FAILURE(ConnectTo(address));
  control::HelloRequest request;
  *request.mutable_from() = a_.GetStatus().node();
  request.set_token(thief->token_of_caller());
  ASSERT_FALSE(request.token().empty());
  thief.reset();
  ASSERT_TRUE(a_.plane.WaitFor(Failed(ErrorCode::kNodeUnreachable)));

  config::Options options = Options("b");
  options.control_port = static_cast<uint64_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  TestDaemon b(options);
  ASSERT_EQ(b.address(), address);
  ASSERT_TRUE(b.CreateJobWith("next", 1, a_.address()).ok());
  ASSERT_TRUE(a_.CreateJobWith("next", 0, b.address()).ok());
  ASSERT_TRUE(b.plane.WaitFor("AddNode next 0"));
  const auto reply = Greet(b, request);
  ASSERT_TRUE(reply.ok()) << reply.status().message();
  EXPECT_EQ(reply->data_key(), 0U);
  EXPECT_TRUE(reply->from().fabric_address().empty());
}

// No stranger owns a link, not even one without an answer yet.
TEST_F(PeerLinksTest, NobodyIsNoDaemon) {
  ASSERT_TRUE(a_.CreateJobWith("job", 0, "127.0.0.1:1").ok());  // a link without an answer
  control::HelloRequest request = HelloFrom(0);
  request.mutable_from()->set_control_address("127.0.0.1:1");
  request.set_life(3);
  ExpectError(Greet(a_, request).status(), ErrorCode::kInvalidArgument, "says no incarnation");
  EXPECT_TRUE(Beat("127.0.0.1:1", 0).ok());
  control::PairNewsRequest news;
  news.set_job_id("job");
  news.set_job_proof(JobProof(kTestSecret, "job", 0));
  news.set_node(1);
  control::PairNews* paired = news.add_news();
  paired->set_kind(control::PairNews::SEND_OFFERED);
  paired->mutable_key()->set_source(1);
  ExpectError(TellAs("127.0.0.1:1", "", &PeerStub::Matches, news), ErrorCode::kNodeUnreachable,
              "has not been answered by its caller at 127.0.0.1:1 yet");
}

TEST_F(PeerLinksTest, APeerWithALifeThatNoLinkReachesIsRefused) {
  FakePeer peer;
  peer.life = UINT64_MAX;
  EnterJobWith(peer.address());
  ExpectError(Join(), ErrorCode::kInvalidArgument, "no link between two daemons has had");
}

// A daemon that does not know us yet has no key for us: no rank sends before it does.
TEST_F(PeerLinksTest, ADaemonThatHasNotCalledBackIsNotUp) {
  FakePeer peer;
  peer.data_key = 0;
  EnterJobWith(peer.address());
  ASSERT_TRUE(e2e::Eventually([&] { return peer.hellos >= 2; }));
  EXPECT_EQ(a_.plane.Count("AddNode"), 0U);
  const control::StatusReply status = a_.GetStatus();
  ASSERT_EQ(status.peers_size(), 1);
  EXPECT_NE(status.peers(0).trouble().find("has not called this one back at " + a_.address()),
            std::string::npos)
      << status.peers(0).trouble();
  peer.data_key = 99;
  EXPECT_TRUE(a_.plane.WaitFor("AddNode job 1"));
}

// A user names b by a port of the user's that leads there, and takes it away.
TEST_F(TwoDaemonsTest, AnAliasOfADaemonIsRefusedAndItsEndHarmsNobody) {
  auto alias = std::make_unique<PortForwarder>(b_.address());
  const std::string address = alias->address();
  ASSERT_TRUE(a_.CreateJobWith("alias", 0, address).ok());
  TestRank rank("alias", 0, 2, 1);
  ASSERT_TRUE(rank.Enter(a_.attach_path()));
  ExpectError(rank.Join().status(), ErrorCode::kInvalidArgument,
              "which answers at " + address + ", is reached at " + b_.address());
  alias.reset();
  EXPECT_TRUE(GoesOn());
}

// Another daemon claims b's incarnation, and ends.
TEST_F(TwoDaemonsTest, ADaemonWithTheIncarnationOfAnotherIsAnotherOne) {
  const uint64_t incarnation = b_.GetStatus().node().incarnation();
  auto peer = std::make_unique<FakePeer>(
      [incarnation](auto* identity) { identity->set_incarnation(incarnation); });
  peer->incarnation = incarnation;
  ASSERT_TRUE(a_.CreateJobWith("other", 0, peer->address()).ok());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode other 1"));
  const std::vector<NodeRoute> routes = a_.plane.routes();
  ASSERT_EQ(routes.size(), 2U);
  EXPECT_NE(routes[0].link, routes[1].link);
  peer.reset();
  ASSERT_TRUE(a_.plane.WaitFor("NodeFailed " + std::to_string(routes[1].link)));
  EXPECT_TRUE(GoesOn());
}

TEST_F(PeerLinksTest, AHeartbeatOfAnEarlierLifeIsToldSo) {
  FakePeer peer;
  ASSERT_NO_FATAL_FAILURE(ConnectTo(peer.address()));
  LoseTheLink();
  ASSERT_TRUE(a_.plane.WaitFor(Failed(ErrorCode::kLinkDown)));
  ExpectError(Beat(peer.address(), 4711), ErrorCode::kLinkDown, "has lost the link to its caller");
  EXPECT_TRUE(Beat(peer.address(), 4711, 1).ok());
}

TEST_F(TwoDaemonsTest, BothComeBackAfterACut) {
  LoseTheLink();
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
  // A stopped daemon may come back; where nothing listens any more, it is dead, even if it was cut
  // off before.
  const bool stopped = GetParam() == SIGSTOP;
  FerrydProcess b(directory_.path() + "/b", {"--heartbeat_interval_ms=20"});
  ASSERT_TRUE(b.WaitUntilReady()) << b.Errors();
  EnterJobWith(b.ControlAddress());
  DaemonClient client(directory_.path() + "/b", b.ControlAddress());
  ASSERT_TRUE(client.CreateJobWith("job", 1, a_.address()).ok());
  ASSERT_TRUE(a_.plane.WaitFor("AddNode job 1"));
  b.Signal(GetParam());
  EXPECT_TRUE(
      a_.plane.WaitFor(Failed(stopped ? ErrorCode::kLinkDown : ErrorCode::kNodeUnreachable)));
  if (stopped) {
    b.Signal(SIGKILL);
    EXPECT_TRUE(a_.plane.WaitFor(Failed(ErrorCode::kNodeUnreachable)));
  }
  ExpectError(Join(), ErrorCode::kNodeUnreachable, "nothing listens there any more");
}

INSTANTIATE_TEST_SUITE_P(PeerLinks, LostDaemonTest, ::testing::Values(SIGSTOP, SIGKILL),
                         [](const auto& info) {
                           return std::string(info.param == SIGSTOP ? "Stopped" : "Killed");
                         });

}  // namespace
}  // namespace ferry::daemon
