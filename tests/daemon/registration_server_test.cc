// Whole daemons over a NIC that takes long to pin memory: heartbeats, watchdog, status and the ends
// of ranks and daemons do not wait for it.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
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
#include "shm/lane.h"
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
    control::RegisterRegionRequest request;
    request.set_region(region);
    request.set_size_bytes(kRegionBytes);
    request.set_kind(control::REGION_KIND_HOST_HEAP);
    control::RegisterRegionReply reply;
    return TestDaemon::Call(*client, &control::Client::Stub::RegisterRegion, request, &reply,
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

// One rank on each of two nodes; the first one's NIC is at pinning a region of it, which it sends.
class RegistrationServerTest : public ::testing::Test {
 protected:
  RegistrationServerTest()
      : a_(Options("/a")), b_(Options("/b")), first_("job", 0, 2, 1), second_("job", 1, 2, 1) {}
  ~RegistrationServerTest() override { a_.gate->PinAtOnce(); }

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
    ASSERT_NO_FATAL_FAILURE(Enter(first_, 0, a_));
    ASSERT_NO_FATAL_FAILURE(Enter(second_, 1, b_));
    auto other = std::async(std::launch::async, [this] { return b_.Join(second_); });
    ASSERT_TRUE(a_.Join(first_).ok());
    ASSERT_TRUE(other.get().ok());
    ASSERT_EQ(first_.SendRegion(kRegion, kRegionBytes).code(), ErrorCode::kOk);
    ASSERT_TRUE(a_.RegisterRegion(first_, kRegion).ok());
    pinned_ = a_.gate->pinned;
    a_.gate->pins_slowly = true;
    OfferRegion();
    a_.gate->pinning.wait(0);
  }

  // The first rank sends its region to the second one, so that the NIC must know it.
  void OfferRegion() {
    shm::Descriptor offer{};
    offer.kind = static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts);
    offer.source = 0;
    offer.destination = 1;
    offer.size_bytes = kRegionBytes;
    const shm::RemoteRts rts{1, 1, 0, {kRegion, 0, 0}};
    std::memcpy(offer.payload, &rts, sizeof(rts));
    auto* layout = reinterpret_cast<shm::SessionLayout*>(sessions_[0].base());
    shm::LaneProducer lane(&layout->to_daemon);
    lane.Open(0);
    ASSERT_TRUE(lane.TryPush(offer));
    if (shm::Wake(&layout->daemon_wake).AnnounceLane(shm::DaemonLane(1))) {  // it sleeps
      ASSERT_EQ(eventfd_write(doorbells_[0].get(), 1), 0);
    }
  }

  // Attaches with segments that a worker can use.
  void Enter(TestRank& rank, uint32_t number, const Node& node) {
    ASSERT_TRUE(rank.Connect(node.options.run_directory + "/attach.sock").ok());
    ASSERT_EQ(rank.Attach().code(), ErrorCode::kOk);
    const engine::SegmentPlan plan{number, 2, 1, kTestRequests, kTestMatches};
    const UniqueFd session = std::move(*shm::CreateSegment("test-session", plan.session_bytes()));
    const UniqueFd inbox = std::move(*shm::CreateSegment("test-inbox", plan.inbox_bytes()));
    const shm::Mapping& session_map =
        sessions_.emplace_back(std::move(*shm::MapSegment(session.get(), 0)));
    const shm::Mapping inbox_map = std::move(*shm::MapSegment(inbox.get(), 0));
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

  // The watchdog of `node` is fed `count` times more.
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

  // The time since the node heard from its only peer begins anew: a heartbeat was answered.
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

  TemporaryDirectory directory_;
  Node a_;
  Node b_;
  TestRank first_;
  TestRank second_;
  std::deque<shm::Mapping> sessions_;  // of both ranks
  std::deque<UniqueFd> doorbells_;
  uint32_t pinned_ = 0;
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

TEST_F(RegistrationServerTest, TheServerStopsMeanwhile) {
  a_.server.reset();
  EXPECT_EQ(a_.gate->pinning, 1U);
  a_.gate->PinAtOnce();
  a_.plane.reset();
  EXPECT_EQ(a_.gate->pinned, 0U);
}

}  // namespace
}  // namespace ferry::daemon
