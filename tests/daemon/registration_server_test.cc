// Whole daemons over a NIC that pins memory slowly, or reads slowly: heartbeats, watchdog, status
// and the ends of ranks and daemons do not wait for it.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "common/clock.h"
#include "daemon/control/control_server.h"
#include "engine/session_view.h"
#include "shm/atomic.h"
#include "shm/lane.h"
#include "shm/layout/transfer_layout.h"
#include "shm/lease.h"
#include "shm/wake.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/gate_plane.h"
#include "tests/daemon/test_daemon.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kRegion = 1;
constexpr uint64_t kRegionBytes = 1 << 20;

bool Eventually(const std::function<bool()>& condition) {
  for (const uint64_t end_ns = MonotonicNs() + 20'000'000'000; MonotonicNs() < end_ns;) {
    if (condition()) {
      return true;
    }
    std::this_thread::yield();
  }
  return false;
}

// A daemon with a data plane.
struct Node {
  explicit Node(const config::Options& its_options) : options(its_options) {
    plane = MakeGatePlane(options, gate);
    auto started = ControlServer::Start(options, *plane, nullptr);
    EXPECT_TRUE(started.ok()) << started.status().ToString();
    server = std::move(*started);
    const auto channel = [&](const char* socket) {
      return grpc::CreateChannel("unix:" + options.run_directory + socket,
                                 grpc::InsecureChannelCredentials());
    };
    admin = control::Admin::NewStub(channel("/admin.sock"));
    client = control::Client::NewStub(channel("/control.sock"));
  }

  Status Join(const TestRank& rank) {
    control::JoinJobReply reply;
    return TestDaemon::Call(*client, &control::Client::Stub::JoinJob, control::JoinJobRequest(),
                            &reply, rank.token());
  }
  Status RegisterRegion(const TestRank& rank, uint32_t region) {
    return RegisterRegion(*client, rank, region);
  }
  static Status RegisterRegion(control::Client::Stub& client, const TestRank& rank,
                               uint32_t region) {
    control::RegisterRegionRequest request;
    request.set_region(region);
    request.set_size_bytes(kRegionBytes);
    request.set_kind(control::REGION_KIND_HOST_HEAP);
    control::RegisterRegionReply reply;
    return TestDaemon::Call(client, &control::Client::Stub::RegisterRegion, request, &reply,
                            rank.token());
  }
  control::StatusReply GetStatus() {
    control::StatusReply reply;
    EXPECT_TRUE(
        TestDaemon::Call(*admin, &control::Admin::Stub::Status, control::StatusRequest(), &reply)
            .ok());
    return reply;
  }

  const config::Options options;
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::unique_ptr<DataPlane> plane;
  std::unique_ptr<ControlServer> server;
  std::unique_ptr<control::Admin::Stub> admin;
  std::unique_ptr<control::Client::Stub> client;
};

// One rank on each of two nodes, the first with a region.
class SlowNicTest : public ::testing::Test {
 protected:
  SlowNicTest()
      : a_(Options("/a")), b_(Options("/b")), first_("job", 0, 2, 1), second_("job", 1, 2, 1) {}

  config::Options Options(const std::string& name) const {
    return TestOptions(directory_.path() + name);
  }

  void SetUp() override {
    for (uint32_t node = 0; node < 2; ++node) {
      control::CreateJobReply reply;
      const Status status = TestDaemon::Call(
          *(node == 0 ? a_ : b_).admin, &control::Admin::Stub::CreateJob,
          TestDaemon::JobRequest(
              "job", {0, 1}, {a_.server->control_address(), b_.server->control_address()}, node),
          &reply);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    ASSERT_NO_FATAL_FAILURE(Enter(first_, 0, a_.options.run_directory));
    ASSERT_NO_FATAL_FAILURE(Enter(second_, 1, b_.options.run_directory));
    auto other = std::async(std::launch::async, [this] { return b_.Join(second_); });
    ASSERT_TRUE(a_.Join(first_).ok());
    ASSERT_TRUE(other.get().ok());
    ASSERT_EQ(first_.SendRegion(kRegion, kRegionBytes).code(), ErrorCode::kOk);
    ASSERT_TRUE(a_.RegisterRegion(first_, kRegion).ok());
  }

  // ---- Ranks in the order in which they have entered: 0 and 1 of a job, then those of another
  // ----

  // The rank sends from its region to the other rank of its job, so that the NIC must know it.
  void OfferRegion(size_t index) {
    shm::Descriptor offer{};
    offer.kind = static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts);
    offer.source = static_cast<uint32_t>(index % 2);
    offer.destination = 1 - offer.source;
    offer.size_bytes = kRegionBytes;
    const shm::RemoteRts rts{1, 1, 0, {kRegion, 0, 0}};
    std::memcpy(offer.payload, &rts, sizeof(rts));
    Tell(index, offer);
  }
  void Tell(size_t index, const shm::Descriptor& command) {
    shm::LaneProducer lane(&Layout(index)->to_daemon);
    lane.Open(static_cast<uint32_t>(index % 2));
    ASSERT_TRUE(lane.TryPush(command));
    if (shm::Wake(&Layout(index)->daemon_wake).AnnounceLane(shm::DaemonLane(1))) {  // it sleeps
      ASSERT_EQ(eventfd_write(doorbells_[index].get(), 1), 0);
    }
  }
  // Rank 0 of a job, the `index`th rank, has the region of rank 1 read into its own, after a call
  // of `stop`: from then on nothing arrives.
  void PullFromTheOther(size_t index, const std::function<void()>& stop) {
    shm::Lease lease(&Layout(index)->lease);
    ASSERT_TRUE(
        Eventually([&] { return lease.TryAcquire(99); }));  // never released: no worker matches
    ASSERT_NO_FATAL_FAILURE(OfferRegion(index + 1));
    std::byte* const inbox = inboxes_[index].base();
    shm::LaneConsumer lane(
        reinterpret_cast<shm::LaneLayout*>(inbox + shm::InboxLaneOffset(shm::DaemonLane(1))));
    ASSERT_TRUE(Eventually([&] { return lane.Peek() != nullptr; }));
    shm::RemoteRts offer;
    std::memcpy(&offer, lane.Peek()->payload, sizeof(offer));
    stop();
    auto& transfer = reinterpret_cast<shm::TransferLayout*>(inbox + shm::InboxTransferOffset(1))[1];
    transfer.generation = 1;
    transfer.destination = {kRegion, 0, 0};
    transfer.size_bytes = kRegionBytes;
    transfer.source_rank = 1;
    transfer.remote_key = offer.key;
    shm::StoreRelease(transfer.state, static_cast<uint32_t>(shm::TransferState::kMatched));
    shm::Descriptor pull{};
    pull.kind = static_cast<uint8_t>(shm::DescriptorKind::kPull);
    const shm::PullCommand command{1, 1, {}};
    std::memcpy(pull.payload, &command, sizeof(command));
    ASSERT_NO_FATAL_FAILURE(Tell(index, pull));
  }
  shm::SessionLayout* Layout(size_t index) {
    return reinterpret_cast<shm::SessionLayout*>(sessions_[index].base());
  }

  // Attaches with segments that a worker can use.
  void Enter(TestRank& rank, uint32_t number, const std::string& run_directory) {
    ASSERT_TRUE(rank.Connect(run_directory + "/attach.sock").ok());
    ASSERT_EQ(rank.Attach().code(), ErrorCode::kOk);
    const engine::SegmentPlan plan{number, 2, 1, kTestRequests, kTestMatches};
    const UniqueFd session = std::move(*shm::CreateSegment("test-session", plan.session_bytes()));
    const UniqueFd inbox = std::move(*shm::CreateSegment("test-inbox", plan.inbox_bytes()));
    const shm::Mapping& session_map =
        sessions_.emplace_back(std::move(*shm::MapSegment(session.get(), 0)));
    const shm::Mapping& inbox_map =
        inboxes_.emplace_back(std::move(*shm::MapSegment(inbox.get(), 0)));
    engine::InitializeSegments(plan, static_cast<uint32_t>(getpid()), session_map.base(),
                               inbox_map.base());
    attach::SegmentsRequest request{};
    request.header = rank.Header(attach::Kind::kSegments);
    request.session_bytes = plan.session_bytes();
    request.inbox_bytes = plan.inbox_bytes();
    Answer answer = rank.Ask(request, {session.get(), inbox.get()});
    ASSERT_EQ(answer.code(), ErrorCode::kOk) << answer.text();
    ASSERT_FALSE(answer.packet.fds.empty());
    doorbells_.push_back(std::move(answer.packet.fds[0]));
  }

  // Waits until the watchdog of `node` has been fed `count` times more.
  static void AwaitSigns(Node& node, int count, std::chrono::milliseconds interval) {
    std::promise<void> enough;
    auto left = std::make_shared<std::atomic<int>>(count);
    node.server->StartWatchdog(std::chrono::nanoseconds(interval).count(),
                               [left, &enough](const std::string&) {
                                 if (left->fetch_sub(1) == 1) {
                                   enough.set_value();
                                 }
                               });
    EXPECT_EQ(enough.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  }

  // Whether the time since the node heard from its only peer begins anew: a heartbeat was answered.
  static bool HearsAnew(Node& node) {
    uint64_t before_ms = 0;
    for (const uint64_t end_ns = MonotonicNs() + 20'000'000'000; MonotonicNs() < end_ns;) {
      const control::StatusReply status = node.GetStatus();
      const uint64_t now_ms = status.peers_size() == 1 ? status.peers(0).last_heard_ms() : 0;
      if (now_ms < before_ms) {
        return true;
      }
      before_ms = now_ms;
    }
    return false;
  }

  // Sessions that count against their user's quota.
  static uint64_t SessionsHeld(Node& node) {
    const control::StatusReply status = node.GetStatus();
    return status.users_size() == 0 ? 0 : status.users(0).sessions();
  }

  TemporaryDirectory directory_;
  Node a_;
  Node b_;
  TestRank first_;
  TestRank second_;
  std::deque<shm::Mapping> sessions_;  // of both ranks
  std::deque<shm::Mapping> inboxes_;
  std::deque<UniqueFd> doorbells_;
};

// The first node's NIC is pinning the region from which its rank sends.
class RegistrationServerTest : public SlowNicTest {
 protected:
  ~RegistrationServerTest() override { a_.gate->PinAtOnce(); }
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SlowNicTest::SetUp());
    a_.gate->pins_slowly = true;
    ASSERT_NO_FATAL_FAILURE(OfferRegion(0));
    a_.gate->pinning.wait(0);
  }
};

TEST_F(RegistrationServerTest, TheDaemonLivesOnForAllOthers) {
  AwaitSigns(a_, 10, std::chrono::milliseconds(10));
  EXPECT_TRUE(HearsAnew(b_));
  EXPECT_TRUE(HearsAnew(b_));
  const control::StatusReply there = b_.GetStatus();
  ASSERT_EQ(there.peers_size(), 1);
  EXPECT_EQ(there.peers(0).state(), "up") << there.peers(0).trouble();
  const control::StatusReply here = a_.GetStatus();
  ASSERT_EQ(here.jobs_size(), 1);
  EXPECT_EQ(here.jobs(0).state(), "running");
  EXPECT_EQ(here.registrations().waiting(), 1U);
  EXPECT_EQ(here.registrations().misses(), 1U);
  a_.gate->PinAtOnce();
  EXPECT_TRUE(Eventually([this] { return a_.GetStatus().registrations().waiting() == 0; }));
  EXPECT_EQ(a_.GetStatus().registrations().bytes(), kRegionBytes);
}

TEST_F(RegistrationServerTest, ADeathMeanwhileIsToldAtOnce) {
  first_.HangUp();
  const auto died = [this] {
    control::SessionsReply reply;
    (void)TestDaemon::Call(*b_.admin, &control::Admin::Stub::Sessions, control::SessionsRequest(),
                           &reply)
        .ok();
    return reply.sessions_size() == 1 && a_.GetStatus().sessions() == 0;
  };
  EXPECT_TRUE(Eventually(died));
  EXPECT_EQ(a_.gate->pinning, 1U);
}

// The first node's NIC reads from the second node and makes no progress, as if the peer were
// stopped in the middle of a transfer.
class SlowReadTest : public SlowNicTest {
 protected:
  ~SlowReadTest() override { a_.gate->closed = false; }
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SlowNicTest::SetUp());
    ASSERT_EQ(second_.SendRegion(kRegion, kRegionBytes).code(), ErrorCode::kOk);
    ASSERT_TRUE(b_.RegisterRegion(second_, kRegion).ok());
    ASSERT_NO_FATAL_FAILURE(PullFromTheOther(0, [this] { a_.gate->closed = true; }));
    ASSERT_TRUE(Eventually([&] { return a_.gate->held > 0; }));
  }
};

// Only the rank's end waits for the NIC, neither the heartbeats nor the other ranks.
TEST_F(SlowReadTest, TheEndOfARankIsNobodyElsesAffair) {
  first_.HangUp();
  ASSERT_TRUE(Eventually([this] { return a_.GetStatus().sessions() == 0; }));
  EXPECT_TRUE(Eventually([this] {  // the other node's rank hears of it
    return shm::LoadAcquire(Layout(1)->peers[0].dead) ==
           static_cast<uint32_t>(ErrorCode::kPeerDied);
  }));
  AwaitSigns(a_, 10, std::chrono::milliseconds(10));
  EXPECT_TRUE(HearsAnew(b_));
  EXPECT_TRUE(HearsAnew(b_));
  EXPECT_EQ(SessionsHeld(a_), 1U) << "the NIC has let go: this has shown nothing";
  a_.gate->closed = false;
  EXPECT_TRUE(Eventually([this] { return SessionsHeld(a_) == 0; }));
  EXPECT_EQ(b_.GetStatus().peers(0).state(), "up");
}

// Three daemons. A peer of the first one is stopped while the first one reads from it, for another
// job.
class StoppedPeerTest : public SlowNicTest {
 protected:
  StoppedPeerTest()
      : peer_directory_(directory_.path() + "/p"),
        peer_(peer_directory_, {"--heartbeat_interval_ms=20", "--provider=net"},
              FerrydProcess::kReal) {}
  ~StoppedPeerTest() override { peer_.Signal(SIGCONT); }

  // The other job: rank 0 at a_, rank 1 at the peer, each with a region.
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SlowNicTest::SetUp());
    ASSERT_TRUE(peer_.WaitUntilReady()) << peer_.Errors();
    const auto channel = [&](const char* socket) {
      return grpc::CreateChannel("unix:" + peer_directory_ + socket,
                                 grpc::InsecureChannelCredentials());
    };
    const auto admin = control::Admin::NewStub(channel("/admin.sock"));
    const auto client = control::Client::NewStub(channel("/control.sock"));
    const std::vector<std::string> addresses = {a_.server->control_address(),
                                                peer_.ControlAddress()};
    control::CreateJobReply created;
    for (uint32_t node = 0; node < 2; ++node) {
      const Status status =
          TestDaemon::Call(node == 0 ? *a_.admin : *admin, &control::Admin::Stub::CreateJob,
                           TestDaemon::JobRequest("held", {0, 1}, addresses, node), &created);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    ASSERT_NO_FATAL_FAILURE(Enter(third_, 0, a_.options.run_directory));
    ASSERT_NO_FATAL_FAILURE(Enter(fourth_, 1, peer_directory_));
    auto other = std::async(std::launch::async, [&] {
      control::JoinJobReply reply;
      return TestDaemon::Call(*client, &control::Client::Stub::JoinJob, control::JoinJobRequest(),
                              &reply, fourth_.token());
    });
    const Status joined = a_.Join(third_);
    ASSERT_TRUE(joined.ok()) << joined.ToString();
    ASSERT_TRUE(other.get().ok());
    ASSERT_EQ(third_.SendRegion(kRegion, kRegionBytes).code(), ErrorCode::kOk);
    ASSERT_EQ(fourth_.SendRegion(kRegion, kRegionBytes).code(), ErrorCode::kOk);
    ASSERT_TRUE(Node::RegisterRegion(*a_.client, third_, kRegion).ok());
    ASSERT_TRUE(Node::RegisterRegion(*client, fourth_, kRegion).ok());
  }

  const std::string peer_directory_;
  FerrydProcess peer_;
  TestRank third_{"held", 0, 2, 1};
  TestRank fourth_{"held", 1, 2, 1};
};

TEST_F(StoppedPeerTest, ARankThatReadsFromItEndsAndTheOtherLinkStaysUp) {
  ASSERT_NO_FATAL_FAILURE(PullFromTheOther(2, [this] { peer_.Signal(SIGSTOP); }));
  ASSERT_TRUE(Eventually([this] {  // the read is under way
    control::NicsReply nics;
    return TestDaemon::Call(*a_.admin, &control::Admin::Stub::Nics, control::NicsRequest(), &nics)
               .ok() &&
           nics.nics(0).outstanding() > 0;
  }));
  third_.HangUp();
  ASSERT_TRUE(Eventually([this] { return a_.GetStatus().sessions() == 1; }));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(HearsAnew(b_)) << i;
  }
  EXPECT_EQ(SessionsHeld(a_), 2U) << "the peer has let go: this has shown nothing";
  const control::StatusReply status = a_.GetStatus();
  for (const control::PeerStatus& peer : status.peers()) {
    if (peer.control_address() == b_.server->control_address()) {
      EXPECT_EQ(peer.state(), "up") << peer.trouble();
    }
  }
  peer_.Signal(SIGCONT);
  EXPECT_TRUE(Eventually([this] { return SessionsHeld(a_) == 1; }));
}

// A rank that leaves in order may free its memory when it is told so.
TEST_F(SlowReadTest, ARankThatLeavesIsToldOnceItsMemoryIsFree) {
  auto left = std::async(std::launch::async, [this] {
    control::DetachReply reply;
    return TestDaemon::Call(*a_.client, &control::Client::Stub::Detach, control::DetachRequest(),
                            &reply, first_.token());
  });
  ASSERT_TRUE(Eventually([this] { return a_.GetStatus().sessions() == 0; }));
  EXPECT_EQ(left.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  a_.gate->closed = false;
  EXPECT_TRUE(left.get().ok());
  EXPECT_EQ(SessionsHeld(a_), 0U);
}

TEST_F(RegistrationServerTest, TheServerStopsMeanwhile) {
  a_.server.reset();
  EXPECT_EQ(a_.gate->pinning, 1U);
  a_.gate->PinAtOnce();
  a_.plane.reset();
  EXPECT_EQ(a_.gate->pinned, 0U);
}

}  // namespace
}  // namespace ferry::daemon
