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

#include "daemon/progress/progress_plane.h"
#include "engine/session_view.h"
#include "shm/atomic.h"
#include "shm/lane.h"
#include "shm/layout/transfer_layout.h"
#include "shm/lease.h"
#include "shm/wake.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"
#include "tests/e2e/command.h"
#include "tests/internode/core/gate_transport.h"
#include "tests/support/patience.h"
#include "tests/support/processes.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kRegion = 1;
constexpr uint64_t kRegionBytes = 1 << 20;

using e2e::Eventually;

// A daemon with a data plane over a NIC that the gate holds back.
struct Node : ServedDaemon {
  explicit Node(const config::Options& options) : directory(options.run_directory) {
    transport::TransportOptions network;
    network.provider = "net";
    network.post_timeout_ns = 120'000'000'000;  // what the gate holds, it holds
    auto real = transport::CreateOfiTransport(network);
    EXPECT_TRUE(real.ok()) << real.status().ToString();
    auto made = CreateProgressPlane(
        options, std::make_unique<GateTransport>(std::move(*real), gate, network.post_timeout_ns));
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    plane = std::move(*made);
    Serve(options, *plane);
  }
  ~Node() { Stop(); }

  const std::string directory;
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::unique_ptr<DataPlane> plane;
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
    ASSERT_TRUE(a_.CreateJobWith("job", 0, b_.address()).ok());
    ASSERT_TRUE(b_.CreateJobWith("job", 1, a_.address()).ok());
    ASSERT_NO_FATAL_FAILURE(Enter(first_, 0, a_.directory));
    ASSERT_NO_FATAL_FAILURE(Enter(second_, 1, b_.directory));
    ASSERT_NO_FATAL_FAILURE(ExpectJoin(first_, second_));
    ASSERT_EQ(first_.SendRegion(kRegion, kRegionBytes).code(), ErrorCode::kOk);
  }

  // ---- Ranks in the order in which they have entered: 0 and 1 of a job, then those of another
  // ----

  // The rank sends from its region to the other rank of its job, so that the NIC must know it.
  void AnnounceRegion(size_t index) {
    shm::Descriptor announced{};
    announced.kind = static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts);
    announced.source = static_cast<uint32_t>(index % 2);
    announced.destination = 1 - announced.source;
    announced.size_bytes = kRegionBytes;
    const shm::RemoteRts rts{1, 1, 0, {kRegion, 0, 0}};
    std::memcpy(announced.payload, &rts, sizeof(rts));
    Tell(index, announced);
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
  void RndvGetFromTheOther(size_t index, const std::function<void()>& stop) {
    shm::Lease lease(&Layout(index)->lease);
    ASSERT_TRUE(
        Eventually([&] { return lease.TryAcquire(99); }));  // never released: no worker matches
    ASSERT_NO_FATAL_FAILURE(AnnounceRegion(index + 1));
    std::byte* const inbox = inboxes_[index].base();
    shm::LaneConsumer lane(
        reinterpret_cast<shm::LaneLayout*>(inbox + shm::InboxLaneOffset(shm::DaemonLane(1))));
    ASSERT_TRUE(Eventually([&] { return lane.Peek() != nullptr; }));
    shm::RemoteRts announced;
    std::memcpy(&announced, lane.Peek()->payload, sizeof(announced));
    stop();
    auto& transfer = reinterpret_cast<shm::TransferLayout*>(inbox + shm::InboxTransferOffset(1))[1];
    transfer.generation = 1;
    transfer.destination = {kRegion, 0, 0};
    transfer.size_bytes = kRegionBytes;
    transfer.source_rank = 1;
    transfer.remote_key = announced.key;
    shm::StoreRelease(transfer.state, static_cast<uint32_t>(shm::TransferState::kMatched));
    shm::Descriptor rndv_get{};
    rndv_get.kind = static_cast<uint8_t>(shm::DescriptorKind::kRndvGet);
    const shm::RndvGetCommand command{1, 1, {}};
    std::memcpy(rndv_get.payload, &command, sizeof(command));
    ASSERT_NO_FATAL_FAILURE(Tell(index, rndv_get));
  }
  shm::SessionLayout* Layout(size_t index) {
    return reinterpret_cast<shm::SessionLayout*>(sessions_[index].base());
  }

  // Returns the words by rank of that session, which is one of a job of two ranks.
  shm::SessionByRank ByRank(size_t index) {
    return shm::SessionByRank::In(sessions_[index].base(), 2, kTestRequests);
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
    node.server().StartWatchdog(std::chrono::nanoseconds(interval).count(),
                                [left, &enough](const std::string&) {
                                  if (left->fetch_sub(1) == 1) {
                                    enough.set_value();
                                  }
                                });
    EXPECT_EQ(enough.get_future().wait_for(tests::kPatience), std::future_status::ready);
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
    ASSERT_NO_FATAL_FAILURE(AnnounceRegion(0));
    a_.gate->pinning.wait(0);
  }
};

TEST_F(RegistrationServerTest, TheDaemonLivesOnForAllOthers) {
  AwaitSigns(a_, 10, std::chrono::milliseconds(10));
  EXPECT_TRUE(b_.HearsFrom(a_.address()));
  EXPECT_TRUE(b_.HearsFrom(a_.address()));
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
    (void)b_.Ask(&AdminStub::Sessions, {}, &reply).ok();
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
    ASSERT_NO_FATAL_FAILURE(RndvGetFromTheOther(0, [this] { a_.gate->closed = true; }));
    ASSERT_TRUE(Eventually([&] { return a_.gate->held > 0; }));
  }
};

// Only the rank's end waits for the NIC, neither the heartbeats nor the other ranks.
TEST_F(SlowReadTest, TheEndOfARankIsNobodyElsesAffair) {
  first_.HangUp();
  ASSERT_TRUE(Eventually([this] { return a_.GetStatus().sessions() == 0; }));
  EXPECT_TRUE(Eventually([this] {  // the other node's rank hears of it
    return shm::LoadAcquire(ByRank(1).peers[0].dead) == static_cast<uint32_t>(ErrorCode::kPeerDied);
  }));
  AwaitSigns(a_, 10, std::chrono::milliseconds(10));
  EXPECT_TRUE(b_.HearsFrom(a_.address()));
  EXPECT_TRUE(b_.HearsFrom(a_.address()));
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
    DaemonClient peer(peer_directory_, peer_.ControlAddress());
    ASSERT_TRUE(a_.CreateJobWith("held", 0, peer.address()).ok());
    ASSERT_TRUE(peer.CreateJobWith("held", 1, a_.address()).ok());
    ASSERT_NO_FATAL_FAILURE(Enter(third_, 0, a_.directory));
    ASSERT_NO_FATAL_FAILURE(Enter(fourth_, 1, peer_directory_));
    ASSERT_NO_FATAL_FAILURE(ExpectJoin(third_, fourth_));
    ASSERT_EQ(third_.SendRegion(kRegion, kRegionBytes).code(), ErrorCode::kOk);
    ASSERT_EQ(fourth_.SendRegion(kRegion, kRegionBytes).code(), ErrorCode::kOk);
  }

  const std::string peer_directory_;
  FerrydProcess peer_;
  TestRank third_{"held", 0, 2, 1};
  TestRank fourth_{"held", 1, 2, 1};
};

TEST_F(StoppedPeerTest, ARankThatReadsFromItEndsAndTheOtherLinkStaysUp) {
  ASSERT_NO_FATAL_FAILURE(RndvGetFromTheOther(2, [this] { tests::Stop(peer_.pid()); }));
  ASSERT_TRUE(Eventually([this] {  // the read is under way
    control::NicsReply nics;
    return a_.Ask(&AdminStub::Nics, {}, &nics).ok() && nics.nics(0).outstanding() > 0;
  }));
  third_.HangUp();
  ASSERT_TRUE(Eventually([this] { return a_.GetStatus().sessions() == 1; }));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(b_.HearsFrom(a_.address())) << i;
  }
  EXPECT_EQ(SessionsHeld(a_), 2U) << "the peer has let go: this has shown nothing";
  const control::StatusReply status = a_.GetStatus();
  for (const control::PeerStatus& peer : status.peers()) {
    if (peer.control_address() == b_.address()) {
      EXPECT_EQ(peer.state(), "up") << peer.trouble();
    }
  }
  peer_.Signal(SIGCONT);
  EXPECT_TRUE(Eventually([this] { return SessionsHeld(a_) == 1; }));
}

// A rank that leaves in order may free its memory when it is told so.
TEST_F(SlowReadTest, ARankThatLeavesIsToldOnceItsMemoryIsFree) {
  auto left = std::async(std::launch::async, [this] { return first_.Detach().status(); });
  ASSERT_TRUE(Eventually([this] { return a_.GetStatus().sessions() == 0; }));
  EXPECT_EQ(left.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  a_.gate->closed = false;
  EXPECT_TRUE(left.get().ok());
  EXPECT_EQ(SessionsHeld(a_), 0U);
}

// However long that takes, the rank hears that its daemon is at it.
TEST_F(SlowReadTest, ARankThatLeavesIsToldThatItWaits) {
  const auto poll = [&] {
    const Answer answer = first_.Detach(1);
    EXPECT_TRUE(answer.status().ok()) << answer.text();
    return answer.still_waiting();
  };
  EXPECT_TRUE(poll());
  EXPECT_TRUE(poll());
  a_.gate->closed = false;
  EXPECT_TRUE(Eventually([&] { return !poll(); }));
  EXPECT_EQ(SessionsHeld(a_), 0U);
  EXPECT_FALSE(poll());  // should the answer have been lost
}

// A rank that takes a region back waits for it, and the daemon does not: the rank's other calls
// are answered meanwhile, and so are other ranks.
TEST_F(SlowReadTest, ARegionThatIsTakenBackHoldsUpNothingElse) {
  const attach::RegionEndRequest request{first_.Header(attach::Kind::kRegionEnd), kRegion, 0};
  ASSERT_TRUE(SendPacket(first_.socket(), request).ok());
  const Answer places = first_.Peers(0);
  EXPECT_EQ(places.header().serial, request.header.serial + 1) << "the region is still in use";
  EXPECT_EQ(places.peers.size(), 2U);
  EXPECT_EQ(first_.EndRegion(kRegion).code(), ErrorCode::kNotFound) << "it goes only once";
  a_.gate->closed = false;
  const Answer ended = first_.Read();
  EXPECT_EQ(ended.header().serial, request.header.serial);
  EXPECT_EQ(ended.code(), ErrorCode::kOk) << ended.text();
}

TEST_F(SlowReadTest, TheServerStopsWhileARegionIsTakenBack) {
  const attach::RegionEndRequest request{first_.Header(attach::Kind::kRegionEnd), kRegion, 0};
  ASSERT_TRUE(SendPacket(first_.socket(), request).ok());
  ASSERT_EQ(first_.Peers(0).peers.size(), 2U);
  auto stopped = std::async(std::launch::async, [this] { a_.Stop(); });
  EXPECT_EQ(first_.Read().kind(), attach::Kind::kGoodbye);
  a_.gate->closed = false;
  stopped.get();
}

TEST_F(RegistrationServerTest, TheServerStopsMeanwhile) {
  a_.Stop();
  EXPECT_EQ(a_.gate->pinning, 1U);
  a_.gate->PinAtOnce();
  a_.plane.reset();
  EXPECT_EQ(a_.gate->pinned, 0U);
}

}  // namespace
}  // namespace ferry::daemon
