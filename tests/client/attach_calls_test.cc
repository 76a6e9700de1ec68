// A rank's calls at the attach socket: what it says, what it takes the answers for, and what
// becomes of calls whose daemon is slow or stopped. One that dies is for lost_daemon_test.cc.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "client/bootstrap/attach_connection.h"
#include "daemon/sockets/packet_socket.h"
#include "engine/session_view.h"
#include "shm/segment.h"
#include "tests/client/order_socket.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"
#include "tests/support/patience.h"
#include "tests/support/processes.h"

namespace ferry::client {
namespace {

using daemon::SocketPacket;
using daemon::TestRank;
using tests::kPatienceMs;

void ExpectError(const Status& status, ErrorCode code, const std::string& words) {
  EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code)) << status.message();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

const AttachConnection::Waits kPatient = [](const std::string&) {};

// Attaches as that rank, with segments.
void Enter(AttachConnection& attach, const std::string& run_directory, uint32_t number,
           uint32_t size, const std::string& job, uint32_t local_size,
           uint64_t timeout_ms = kPatienceMs) {
  ASSERT_TRUE(attach.Connect(run_directory, timeout_ms).ok());
  TestRank rank(job, number, size, local_size);
  const auto attached = attach.Attach(rank.AttachRequest());
  ASSERT_TRUE(attached.ok()) << attached.status().message();
  const engine::SegmentPlan plan{number, size, local_size, daemon::kTestRequests,
                                 daemon::kTestMatches};
  const UniqueFd session = std::move(*shm::CreateSegment("session", plan.session_bytes()));
  const UniqueFd inbox = std::move(*shm::CreateSegment("inbox", plan.inbox_bytes()));
  const shm::Mapping session_map = std::move(*shm::MapSegment(session.get(), 0));
  const shm::Mapping inbox_map = std::move(*shm::MapSegment(inbox.get(), 0));
  engine::InitializeSegments(plan, static_cast<uint32_t>(getpid()), session_map.base(),
                             inbox_map.base());
  const auto served =
      attach.SendSegments(plan.session_bytes(), session.get(), plan.inbox_bytes(), inbox.get());
  ASSERT_TRUE(served.ok()) << served.status().message();
}

void Enter(AttachConnection& attach, const std::string& run_directory, uint32_t number,
           uint32_t size, uint64_t timeout_ms = kPatienceMs) {
  Enter(attach, run_directory, number, size, "job", size, timeout_ms);
}

class AttachCallsTest : public testing::Test {
 protected:
  AttachCallsTest()
      : options_(daemon::TestOptions(directory_.path() + "/a")),
        daemon_(std::make_unique<daemon::TestDaemon>(options_)) {}
  void SetUp() override {
    ASSERT_TRUE(daemon_->CreateJob("job", 2).ok());
    ASSERT_NO_FATAL_FAILURE(Enter(rank_, options_.run_directory, 0, 2));
  }

  daemon::TemporaryDirectory directory_;
  const config::Options options_;
  std::unique_ptr<daemon::TestDaemon> daemon_;
  AttachConnection rank_;
};

// A rank keeps the places of one answer only, however large its job.
TEST_F(AttachCallsTest, PlacesOfManyRanksComeOneAnswerAfterTheOther) {
  constexpr uint32_t kSize = 2 * attach::kMostPeers + 100;
  control::CreateJobRequest request;
  request.set_job_id("large");
  request.set_secret(daemon::kTestSecret);
  request.set_size(kSize);
  for (uint32_t rank = 0; rank < kSize; ++rank) {
    request.add_node_of_rank(rank == 0 || rank == kSize - 1 ? 0 : 1 + (rank - 1) % 3);
  }
  request.add_node_addresses(daemon_->address());
  for (const char* const address : {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}) {
    request.add_node_addresses(address);  // no daemon is there
  }
  control::CreateJobReply reply;
  ASSERT_TRUE(daemon_->Ask(&daemon::AdminStub::CreateJob, request, &reply).ok());
  AttachConnection rank;
  ASSERT_NO_FATAL_FAILURE(Enter(rank, options_.run_directory, kSize - 1, kSize, "large", 2));
  const auto first = rank.Peers(0);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->peers.size(), attach::kMostPeers);
  std::vector<uint32_t> nodes;
  const auto take = [&](uint32_t number, const attach::PeerPlace& place) {
    ASSERT_EQ(number, nodes.size());
    nodes.push_back(place.node);
    EXPECT_EQ(place.local_index, number == kSize - 1 ? 1U : number == 0 ? 0U : (number - 1) / 3);
  };
  const Status taken = rank.TakePlaces(*first, kSize, take);
  ASSERT_TRUE(taken.ok()) << taken.message();
  EXPECT_EQ(nodes,
            std::vector<uint32_t>(request.node_of_rank().begin(), request.node_of_rank().end()));
  // It believes neither more ranks nor fewer.
  nodes.clear();
  ExpectError(rank.TakePlaces(*first, attach::kMostPeers - 1, take), ErrorCode::kCorrupt, "placed");
  EXPECT_EQ(nodes.size(), attach::kMostPeers - 1);
  nodes.clear();
  AttachConnection::Membership none = *first;
  none.peers.clear();
  ExpectError(rank.TakePlaces(none, kSize, take), ErrorCode::kCorrupt, "placed 0 ranks of a job");
}

TEST_F(AttachCallsTest, JoinsAndDetaches) {
  TestRank other = daemon_->AttachRank(1, 2);
  auto joined = std::async(std::launch::async, [&] { return other.Join().status(); });
  const auto job = rank_.Join(0, kPatient);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_TRUE(joined.get().ok());
  EXPECT_EQ(job->node, 0U);
  EXPECT_EQ(job->node_count, 1U);
  ASSERT_EQ(job->peers.size(), 2U);
  EXPECT_EQ(job->peers[1].local_index, 1U);
  EXPECT_EQ(job->peers[1].pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(job->peers[1].private_memory_reachable, 1U);
  EXPECT_TRUE(rank_.Detach().ok());
  const std::string left = std::to_string(static_cast<int>(ErrorCode::kNotFound));
  EXPECT_EQ(daemon_->plane.Count("RankEnded"), 1U);
  EXPECT_EQ(daemon_->plane.Count("RankEnded job 0 " + left), 1U);  // it has not died
  ExpectError(rank_.Abort(1, nullptr), ErrorCode::kNotInitialized, "has ended");
}

TEST_F(AttachCallsTest, JoinsAfterARankThatComesLate) {
  int told = 0;
  std::string missing;
  std::unique_ptr<TestRank> other;
  std::future<Status> joined;
  const auto job = rank_.Join(1, [&](const std::string& words) {
    missing = told < 2 ? words : missing;
    if (++told == 2) {
      other = std::make_unique<TestRank>(daemon_->AttachRank(1, 2));
      joined = std::async(std::launch::async, [&] { return other->Join().status(); });
    }
  });
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_TRUE(joined.get().ok());
  EXPECT_NE(missing.find("rank 1 (not attached"), std::string::npos) << missing;
}

// A thread that waits for other ranks holds up none of this one's other calls.
TEST_F(AttachCallsTest, AbortsWhileItJoins) {
  std::promise<void> waits;
  bool told = false;
  auto joined = std::async(std::launch::async, [&] {
    return rank_
        .Join(1,
              [&](const std::string&) {
                if (!std::exchange(told, true)) {
                  waits.set_value();
                }
              })
        .status();
  });
  waits.get_future().wait();
  EXPECT_TRUE(rank_.Abort(7, "the reason").ok());
  ExpectError(joined.get(), ErrorCode::kAborted, "aborted it with exit code 7: the reason");
  EXPECT_EQ(daemon_->plane.Count("PoisonJob job 30"), 1U);
}

TEST_F(AttachCallsTest, HandsMemoryOverAndTakesItBack) {
  const UniqueFd fd = std::move(*shm::CreateSegment("region", 4096));
  attach::RegionRequest region{};
  region.region = 3;
  region.kind = static_cast<uint32_t>(attach::MemoryKind::kHostHeap);
  region.size_bytes = 4096;
  const auto answer = rank_.SendRegion(region, fd.get());
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(daemon_->plane.Count("AddRegion job 0 3"), 1U);
  EXPECT_EQ(rank_.SendRegion(region, fd.get()).status().code(), ErrorCode::kAlreadyExists);
  EXPECT_TRUE(rank_.EndRegion(3, 4096).ok());
  ExpectError(rank_.EndRegion(3, 4096), ErrorCode::kNotFound, "has no region 3");
}

TEST_F(AttachCallsTest, OffersWhatOnePacketHasRoomFor) {
  const std::vector<attach::PairOffer> offers(attach::kMostOffers);
  ExpectError(rank_.OfferPairs(true, offers), ErrorCode::kLimitExceeded,
              "more than it has requests");
  EXPECT_TRUE(rank_.WithdrawPair(true, {}, 0).ok());
}

// The NIC may take seconds for device memory: no other call waits, and a rank has few such offers.
TEST_F(AttachCallsTest, OffersOfDeviceMemoryWaitForTheNic) {
  constexpr uint64_t kMost = 16;
  ASSERT_TRUE(daemon_->CreateJobWith("far", 0, "127.0.0.1:1").ok());
  TestRank far("far", 0, 2, 1);
  ASSERT_TRUE(far.Enter(daemon_->attach_path()));
  ASSERT_TRUE(far.SendRegion(1, 64 << 10).status().ok());
  far.OfferDevice(2, 1 << 20);
  ASSERT_TRUE(far.Read().status().ok());
  const auto offer = [&far](uint64_t ordinal) {
    attach::PairOffer one{};
    one.key = {0, 0, 1, 7, ordinal};
    one.size_bytes = 100'000;
    one.end = {1, 0, ordinal * 1024};
    one.window = {2, 0, 0};
    (void)far.Offer(true, {one}, 1);
  };
  far.StopReading();
  daemon_->plane.set_stuck(true);
  for (uint64_t ordinal = 0; ordinal <= kMost; ++ordinal) {
    offer(ordinal);
  }
  ExpectError(far.Read().status(), ErrorCode::kLimitExceeded, "waits for the answers to 16 offers");
  EXPECT_EQ(daemon_->plane.Count("ReachWindows far 0 1"), kMost);
  EXPECT_TRUE(rank_.Why().ok());  // others are answered
  daemon_->plane.set_stuck(false);
  for (uint64_t ordinal = 0; ordinal < kMost; ++ordinal) {
    const Status status = far.Read().status();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  daemon_->plane.set_reach_status({ErrorCode::kUnsupported, "it has no room"});
  offer(kMost);
  ExpectError(far.Read().status(), ErrorCode::kUnsupported, "it has no room");
}

TEST_F(AttachCallsTest, HearsWhatItWaitsFor) {
  const auto why = rank_.Why();
  ASSERT_TRUE(why.ok()) << why.status().message();
  EXPECT_TRUE(why->starts_with("rank 0 ")) << *why;
}

TEST_F(AttachCallsTest, ALauncherStartsAJob) {
  AttachConnection launcher;
  ASSERT_TRUE(launcher.Connect(options_.run_directory, kPatienceMs).ok());
  const auto user = launcher.IdentifyUser();
  ASSERT_TRUE(user.ok()) << user.status().message();
  EXPECT_EQ(user->control_address, daemon_->address());
  NewJob job{"made-here", "0123456789abcdef", 0, {0, 0, 0}, {user->control_address}};
  EXPECT_TRUE(launcher.CreateJob(job).ok());
  ExpectError(launcher.CreateJob(job), ErrorCode::kAlreadyExists, "made-here");
  job.id = "too-open";
  job.secret = "short";
  ExpectError(launcher.CreateJob(job), ErrorCode::kInvalidArgument, "secret");
  job.secret.assign(65, 'x');
  ExpectError(launcher.CreateJob(job), ErrorCode::kInvalidArgument, "too long");
  job.secret.assign(16, 'x');
  ExpectError(rank_.CreateJob(job), ErrorCode::kPermissionDenied, "only launchers start jobs");
}

TEST_F(AttachCallsTest, ADaemonThatStopsSaysSo) {
  daemon_->Stop();
  ExpectError(rank_.Detach(), ErrorCode::kDaemonDied, "ferryd of node a has stopped");
  ExpectError(rank_.Abort(1, ""), ErrorCode::kDaemonDied, "ferryd of node a has stopped");
}

// ---- A daemon that the test plays ----

attach::CallReply ReplyTo(const SocketPacket& asked) {
  attach::CallReply reply{};
  std::memcpy(&reply.header, asked.bytes.data(), sizeof(reply.header));
  reply.header.kind = static_cast<uint32_t>(attach::Kind::kCallReply);
  return reply;
}

// The next packet of the rank.
SocketPacket Await(const OrderSocket& socket) {
  SocketPacket packet;
  pollfd readable{socket.daemon_end(), POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, kPatienceMs), 1);
  EXPECT_TRUE(daemon::ReceivePacket(socket.daemon_end(), &packet).ok());
  return packet;
}

TEST(PlayedDaemonTest, AnswersComeInAnyOrderAndEachThreadGetsItsOwn) {
  OrderSocket socket;
  AttachConnection& rank = socket.attach();
  constexpr size_t kThreads = 8;
  std::vector<std::future<StatusOr<AttachConnection::Membership>>> threads;
  for (uint32_t first = 0; first < kThreads; ++first) {
    threads.push_back(std::async(std::launch::async, [&, first] { return rank.Peers(first); }));
  }
  std::vector<SocketPacket> asked(kThreads);
  for (SocketPacket& packet : asked) {
    packet = Await(socket);
  }
  while (!asked.empty()) {
    const SocketPacket& last = asked.back();
    attach::CallReply reply = ReplyTo(last);
    reply.node = last.As<attach::PeersRequest>()->first;
    EXPECT_TRUE(daemon::SendPacket(socket.daemon_end(), reply).ok());
    socket.Send({});  // an order between the answers is for none of them
    asked.pop_back();
  }
  for (uint32_t first = 0; first < kThreads; ++first) {
    const auto answer = threads[first].get();
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->node, first);
  }
  size_t orders = 0;
  while (rank.TakeOrder().has_value()) {
    ++orders;
  }
  EXPECT_EQ(orders, kThreads);
}

// A thread that looks for orders takes the answer of one that waits, and wakes it.
TEST(PlayedDaemonTest, AnAnswerThatAnotherThreadReadsReachesItsOwner) {
  OrderSocket socket;
  AttachConnection& rank = socket.attach();
  for (int round = 0; round < 200; ++round) {
    auto asks = std::async(std::launch::async, [&] { return rank.Peers(1).status(); });
    const attach::CallReply reply = ReplyTo(Await(socket));
    EXPECT_TRUE(daemon::SendPacket(socket.daemon_end(), reply).ok());
    while (asks.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      (void)rank.TakeOrder();
    }
    ASSERT_TRUE(asks.get().ok());
  }
}

TEST(PlayedDaemonTest, AnAnswerWhoseLengthsAreWrongIsRefused) {
  OrderSocket socket;
  for (const auto& [peers, text] : {std::pair(1U, 0U), {0U, 1U}, {UINT32_MAX, UINT32_MAX}}) {
    auto asks = std::async(std::launch::async, [&] { return socket.attach().Peers(1).status(); });
    attach::CallReply reply = ReplyTo(Await(socket));
    reply.peer_count = peers;
    reply.text_bytes = text;
    EXPECT_TRUE(daemon::SendPacket(socket.daemon_end(), reply).ok());
    ExpectError(asks.get(), ErrorCode::kCorrupt, "unexpected answer");
  }
}

TEST(PlayedDaemonTest, WhatIsGivenUpEndsAtOnce) {
  OrderSocket socket;
  auto asks = std::async(std::launch::async, [&] { return socket.attach().Peers(1).status(); });
  (void)Await(socket);
  socket.attach().GiveUp();
  ExpectError(asks.get(), ErrorCode::kDaemonDied, "closed the connection");
  ExpectError(socket.attach().Detach(), ErrorCode::kDaemonDied, "closed the connection");
}

// ---- A daemon that is stopped ----

// The time-out is for a daemon that does not answer, not for ranks that do not come.
TEST(StoppedDaemonTest, IsNoticedByARankThatJoins) {
  const daemon::TemporaryDirectory directory;
  const std::string run_directory = directory.path() + "/run";
  daemon::FerrydProcess ferryd(run_directory, {});
  ASSERT_TRUE(ferryd.WaitUntilReady()) << ferryd.Errors();
  daemon::DaemonClient client(run_directory, ferryd.ControlAddress());
  ASSERT_TRUE(client.CreateJob("job", 2).ok());
  AttachConnection rank;
  ASSERT_NO_FATAL_FAILURE(Enter(rank, run_directory, 0, 2, 1000));
  int told = 0;
  const auto joined = rank.Join(1, [&](const std::string&) {
    if (++told == 2) {
      tests::Stop(ferryd.pid());
    }
  });
  ExpectError(joined.status(), ErrorCode::kTimeout,
              "ferryd at " + run_directory + "/attach.sock has not answered for 1500 ms");
  ferryd.Signal(SIGCONT);
}

}  // namespace
}  // namespace ferry::client
