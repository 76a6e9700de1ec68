// One daemon: how it starts, and what launchers and ranks ask of it.
#include "daemon/control/control_server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <span>
#include <string_view>
#include <thread>

#include "common/passed_descriptors.h"
#include "tests/daemon/control/control_server_fixture.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/stuck_descriptors.h"
#include "tests/support/patience.h"

namespace ferry::daemon {
namespace {

// ---- Start ----

void ExpectNoStart(const config::Options& options, ErrorCode code, const std::string& words) {
  FakeDataPlane plane;
  const auto server = ControlServer::Start(options, plane, nullptr);
  ASSERT_FALSE(server.ok());
  ExpectError(server.status(), code, words);
}

TEST_F(ControlServerTest, ASecondDaemonOnTheDirectoryIsRefused) {
  ExpectNoStart(options_, ErrorCode::kAlreadyExists,
                "in use by ferryd with pid " + std::to_string(getpid()));
}

TEST_F(ControlServerTest, APortInUseIsRefused) {
  config::Options options = TestOptions(directory_.path() + "/b");
  const std::string& address = daemon_.address();
  options.control_port = std::stoul(address.substr(address.rfind(':') + 1));
  ExpectNoStart(options, ErrorCode::kAlreadyExists, "Address already in use; choose another");
  EXPECT_FALSE(std::filesystem::exists(options.run_directory));
}

TEST_F(ControlServerTest, PlaintextBeyondLoopbackIsRefused) {
  config::Options options = TestOptions(directory_.path() + "/b");
  for (const char* address : {"0.0.0.0", "192.0.2.1", "example.org", "::"}) {
    options.control_address = address;
    ExpectNoStart(options, ErrorCode::kPermissionDenied, "only with TLS");
  }
}

unsigned ModeOf(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 0777U : 0;
}

// The modes of run directory, attach.sock, control.sock and admin.sock.
std::vector<unsigned> Modes(const std::string& directory) {
  return {ModeOf(directory), ModeOf(directory + "/attach.sock"),
          ModeOf(directory + "/control.sock"), ModeOf(directory + "/admin.sock")};
}

TEST_F(ControlServerTest, OnlyTheAdminSocketIsClosedToTheUsersServed) {
  config::Options options = TestOptions(directory_.path() + "/all");
  options.users = "all";
  const TestDaemon all(options);
  EXPECT_EQ(Modes(options.run_directory), (std::vector<unsigned>{0755, 0666, 0666, 0600}));
  options = TestOptions(directory_.path() + "/own");
  options.users = "own";
  const TestDaemon own(options);
  EXPECT_EQ(Modes(options.run_directory), (std::vector<unsigned>{0700, 0600, 0600, 0600}));
  EXPECT_TRUE(std::filesystem::exists(options.run_directory + "/ferryd.json"));
}

TEST_F(ControlServerTest, OnlyRootServesAllUnasked) {
  EXPECT_EQ(ModeOf(options_.run_directory), geteuid() == 0 ? 0755U : 0700U);
}

TEST_F(ControlServerTest, ADirectoryClosedToTheUsersServedIsRefused) {
  config::Options options = TestOptions(directory_.path() + "/closed");
  ASSERT_EQ(mkdir(options.run_directory.c_str(), 0700), 0);
  options.users = "all";
  ExpectNoStart(options, ErrorCode::kRunDirectory, "is closed to other users: chmod 0755 it");
}

TEST(ControlServerStopTest, NothingIsLeftBehind) {
  TemporaryDirectory directory;
  const auto once = [&] {
    TestDaemon daemon(TestOptions(directory.path() + "/a"));
    TestRank rank = daemon.StartRank();
    ASSERT_TRUE(rank.Join().status().ok());
    daemon.Stop();
    EXPECT_EQ(rank.Read().kind(), attach::Kind::kGoodbye);
    EXPECT_TRUE(rank.Read().hang_up);
  };
  once();  // gRPC opens descriptors of its own the first time
  const size_t before = OpenDescriptors();
  once();
  EXPECT_LE(SettledDescriptors(before), before);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

// gRPC reads on threads that serve all clients, and lets the kernel close descriptors that come
// with the bytes.
TEST(ControlSocketTest, DescriptorsThatLingerHoldUpNobody) {
  const TemporaryDirectory directory;
  const std::string run = directory.path() + "/run";
  FerrydProcess daemon(run, {});
  ASSERT_TRUE(daemon.WaitUntilReady()) << daemon.Errors();
  daemon.Signal(
      SIGSTOP);  // it receives only what we have let go of: the last one to close it waits
  siginfo_t stopped{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(daemon.pid()), &stopped, WSTOPPED), 0);
  std::vector<UniqueFd> strangers;
  std::vector<LingeringSocket> lingering(16);
  for (LingeringSocket& one : lingering) {
    ASSERT_GE(one.get(), 0);
    StatusOr<UniqueFd> stranger = ConnectStream(run + "/control.sock");
    ASSERT_TRUE(stranger.ok()) << stranger.status().message();
    constexpr std::string_view kGreeting = "PRI * HTTP/2.0\r\n";
    ASSERT_GT(SendWithDescriptors(stranger->get(), std::as_bytes(std::span(kGreeting)),
                                  std::array{one.get()}, 0),
              0);
    one.CloseOwn();
    strangers.push_back(std::move(*stranger));
  }
  daemon.Signal(SIGCONT);
  for (const UniqueFd& stranger : strangers) {
    pollfd ended{stranger.get(), POLLIN, 0};
    ASSERT_EQ(poll(&ended, 1, tests::kPatienceMs), 1) << "each is looked at, and sent away";
    char byte = 0;
    EXPECT_LE(recv(stranger.get(), &byte, 1, 0), 0);
  }
  for (const char* socket : {"/control.sock", "/admin.sock"}) {
    const auto admin = control::Admin::NewStub(
        grpc::CreateChannel("unix:" + run + socket, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + tests::kPatience);
    control::StatusReply reply;
    const grpc::Status answer = admin->Status(&context, control::StatusRequest(), &reply);
    EXPECT_NE(answer.error_code(), grpc::DEADLINE_EXCEEDED) << socket;
    EXPECT_NE(answer.error_code(), grpc::UNAVAILABLE) << socket;
  }
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0) << daemon.Errors();
}

// ---- Jobs ----

TEST_F(ControlServerTest, JobsThatMakeNoSenseAreRefused) {
  const auto request = [&](const std::string& id, const std::vector<uint32_t>& node_of_rank) {
    return TestDaemon::JobRequest(id, node_of_rank, {daemon_.address(), "127.0.0.1:9"}, 0);
  };
  ExpectError(daemon_.CreateJob(request("", {0})), ErrorCode::kInvalidArgument, "a job id must be");
  ExpectError(daemon_.CreateJob(request("job", {})), ErrorCode::kInvalidArgument, "has no ranks");
  ExpectError(daemon_.CreateJob(request("job", {0, 2})), ErrorCode::kInvalidArgument,
              "placed on node 2");
  ExpectError(daemon_.CreateJob(request("job", {0, 0, 0, 0, 0})), ErrorCode::kLimitExceeded,
              "5 ranks on this node are more than the 4 that max_local_ranks allows");
  ExpectError(daemon_.CreateJob(request("job", std::vector<uint32_t>(65'537, 1))),
              ErrorCode::kLimitExceeded,
              "65537 ranks are more than the 65536 that max_ranks allows");
  ExpectError(daemon_.CreateJob(request("job", std::vector<uint32_t>(1025, 1))),
              ErrorCode::kLimitExceeded,
              "1025 ranks are placed on node 1, and a node takes at most 1024 of a job");
  auto wrong = request("job", {0, 1});
  wrong.set_secret("short");
  ExpectError(daemon_.CreateJob(wrong), ErrorCode::kInvalidArgument, "must be 16 to 64 bytes");
  wrong = request("job", {0, 1});
  wrong.set_size(3);
  ExpectError(daemon_.CreateJob(wrong), ErrorCode::kInvalidArgument, "node_of_rank places 2");
  wrong = request("job", {0, 1});
  wrong.set_node(7);
  ExpectError(daemon_.CreateJob(wrong), ErrorCode::kInvalidArgument, "node 7 is none of its 2");
  wrong = request("job", {0, 1});
  wrong.set_node_addresses(1, "192.0.2.1:9");
  ExpectError(daemon_.CreateJob(wrong), ErrorCode::kPermissionDenied, "only with TLS");
  wrong.set_node_addresses(1, "nonsense");
  ExpectError(daemon_.CreateJob(wrong), ErrorCode::kInvalidArgument, "write HOST:PORT");
  wrong.set_node_addresses(1, daemon_.address());
  ExpectError(daemon_.CreateJob(wrong), ErrorCode::kInvalidArgument, "the same address");
  wrong = request("job", {0, 1});
  for (int port = 1; port <= 20'000; ++port) {
    wrong.add_node_addresses("127.0.0.2:" + std::to_string(port));
  }
  ExpectError(daemon_.CreateJob(wrong), ErrorCode::kInvalidArgument, "20002 nodes for 2 ranks");
  EXPECT_TRUE(daemon_.plane.calls().empty());
}

TEST_F(ControlServerTest, AJobExistsOnlyOnce) {
  ASSERT_TRUE(daemon_.CreateJob("job", 1).ok());
  ExpectError(daemon_.CreateJob("job", 1), ErrorCode::kAlreadyExists, "job job exists already");
}

TEST_F(ControlServerTest, AnUnknownJobCannotBeDestroyed) {
  ExpectError(daemon_.DestroyJob("nojob"), ErrorCode::kNotFound, "there is no job nojob");
}

TEST_F(ControlServerTest, RanksJoinTogetherAndTheJobEndsWithTheLastOne) {
  auto [first, second] = daemon_.StartTwoRanks();
  auto early = std::async(std::launch::async, [&first = first] { return first.Join(); });
  ASSERT_TRUE(second.Join().status().ok());
  const Answer joined = early.get();
  ASSERT_TRUE(joined.status().ok()) << joined.text();
  ASSERT_EQ(joined.peers.size(), 2U);
  EXPECT_EQ(joined.call.node_count, 1U);
  EXPECT_EQ(joined.call.job_size, 2U);
  EXPECT_EQ(joined.peers[1].local_index, 1U);
  EXPECT_EQ(joined.peers[1].pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(joined.peers[1].private_memory_reachable, 1U);
  EXPECT_TRUE(first.Detach().status().ok());
  EXPECT_TRUE(second.Detach().status().ok());
  EXPECT_TRUE(daemon_.plane.WaitFor("RemoveJob job"));
  const std::string left = " " + std::to_string(static_cast<int>(ErrorCode::kNotFound));
  EXPECT_EQ(daemon_.plane.Count("RankEnded"), 2U);
  EXPECT_EQ(daemon_.plane.Count("RankEnded job 0" + left), 1U);  // it has not died
  EXPECT_EQ(daemon_.plane.Count("RankEnded job 1" + left), 1U);
  EXPECT_EQ(daemon_.GetStatus().jobs_size(), 0);
  EXPECT_EQ(daemon_.GetStatus().registrations().hits(), 5U);
}

TEST_F(ControlServerTest, ManyRanksWaitInJoinAtOnce) {
  daemon_.Stop();
  options_.max_local_ranks = 64;
  options_.quota_sessions = 64;
  TestDaemon daemon(options_);
  constexpr uint32_t kRanks = 64;
  ASSERT_TRUE(daemon.CreateJob("big", kRanks).ok());
  std::vector<std::unique_ptr<TestRank>> ranks;
  std::vector<std::future<Status>> joins;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(std::make_unique<TestRank>("big", rank, kRanks, kRanks));
    ASSERT_TRUE(ranks.back()->Enter(daemon.attach_path()));
    joins.push_back(std::async(std::launch::async,
                               [rank = ranks.back().get()] { return rank->Join().status(); }));
  }
  for (auto& join : joins) {
    const Status status = join.get();
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// The answers come after the time that the rank has asked for, and are no errors.
TEST_F(ControlServerTest, AJoinThatWaitsNamesTheMissingRanks) {
  ASSERT_TRUE(daemon_.CreateJob("job", 3).ok());
  TestRank first = daemon_.AttachRank(0, 3);
  TestRank last = daemon_.AttachRank(2, 3);
  const auto poll = [&](TestRank& rank) {
    Answer answer = rank.Join(1);
    EXPECT_TRUE(answer.status().ok()) << answer.text();
    return answer;
  };
  const Answer early = poll(first);
  EXPECT_TRUE(early.still_waiting());
  EXPECT_EQ(early.text(),
            "rank 1 (not attached: not started yet, or not at that call), rank 2 (attached)");
  // One of those that wait is told.
  const Answer other = poll(last);
  EXPECT_TRUE(other.still_waiting());
  EXPECT_EQ(other.text(), "");
  EXPECT_EQ(poll(first).text(), "rank 1 (not attached: not started yet, or not at that call)");
  TestRank late = daemon_.AttachRank(1, 3);
  EXPECT_TRUE(late.Join().status().ok());
  for (TestRank* rank : {&first, &last}) {
    const Answer complete = poll(*rank);
    EXPECT_FALSE(complete.still_waiting());
    EXPECT_EQ(complete.peers.size(), 3U);
  }
}

TEST_F(ControlServerTest, ARankThatCallsAgainHearsWhyTheJobWillNotBeComplete) {
  auto [first, second] = daemon_.StartTwoRanks();
  ASSERT_TRUE(first.Join(1).still_waiting());
  second.HangUp();
  ASSERT_TRUE(daemon_.plane.WaitFor("RankEnded job 1"));
  ExpectError(first.Join(1).status(), ErrorCode::kPeerDied, "rank 1 of job job");
}

TEST_F(ControlServerTest, ARankThatDiesBeforeAllHaveJoinedFailsTheJoins) {
  auto [first, second] = daemon_.StartTwoRanks();
  auto waiting = std::async(std::launch::async, [&first = first] { return first.Join().status(); });
  second.HangUp();
  ExpectError(waiting.get(), ErrorCode::kPeerDied, "rank 1 of job job");
}

TEST_F(ControlServerTest, JoinBeforeTheSegmentsIsRefused) {
  ASSERT_TRUE(daemon_.CreateJob("job", 1).ok());
  TestRank rank("job", 0, 1, 1);
  ASSERT_TRUE(rank.Connect(daemon_.attach_path()).ok());
  ASSERT_EQ(rank.Attach().code(), ErrorCode::kOk);
  ExpectError(rank.Join().status(), ErrorCode::kNotInitialized, "must hand over its segments");
}

// The other calls of a rank are answered while it waits for others.
TEST_F(ControlServerTest, ARankThatJoinsMayAbort) {
  auto [first, second] = daemon_.StartTwoRanks();
  const attach::JoinRequest join{first.Header(attach::Kind::kJoin), 0};
  ASSERT_TRUE(SendPacket(first.socket(), join).ok());
  EXPECT_EQ(first.Peers(0).peers.size(), 2U);
  ExpectError(first.Join().status(), ErrorCode::kAlreadyExists, "is joining already");
  const Answer joined = first.Abort(3, "no more");
  EXPECT_EQ(joined.header().serial, join.header.serial) << "its join fails first";
  ExpectError(joined.status(), ErrorCode::kAborted, "aborted it with exit code 3: no more");
  EXPECT_EQ(first.Read().code(), ErrorCode::kOk);
}

// A job of more ranks than one packet has room for.
TEST_F(ControlServerTest, PeersComeInAsManyPacketsAsTheyTake) {
  constexpr uint32_t kNodes = 33;
  constexpr uint32_t kRanks = 2 + 128 * (kNodes - 1);
  std::vector<uint32_t> nodes(kRanks, 0);
  std::vector<std::string> addresses{daemon_.address()};
  for (uint32_t rank = 2; rank < kRanks; ++rank) {
    nodes[rank] = 1 + (rank - 2) / 128;
  }
  for (uint32_t node = 1; node < kNodes; ++node) {
    addresses.push_back("127.0.0.1:" + std::to_string(node));
  }
  ASSERT_TRUE(daemon_.CreateJob(TestDaemon::JobRequest("job", nodes, addresses, 0)).ok());
  TestRank rank("job", 0, kRanks, 2);
  ASSERT_TRUE(rank.Enter(daemon_.attach_path()));
  std::vector<attach::PeerPlace> places;
  while (places.size() < kRanks) {
    const Answer more = rank.Peers(static_cast<uint32_t>(places.size()));
    ASSERT_TRUE(more.status().ok()) << more.text();
    ASSERT_FALSE(more.peers.empty());
    EXPECT_EQ(more.call.job_size, kRanks);
    places.insert(places.end(), more.peers.begin(), more.peers.end());
  }
  EXPECT_EQ(places.size(), kRanks);
  EXPECT_EQ(places[1].local_index, 1U);
  EXPECT_EQ(places.back().node, kNodes - 1);
  EXPECT_EQ(places.back().local_index, 127U);
  ExpectError(rank.Peers(kRanks).status(), ErrorCode::kInvalidRank, "its ranks are 0 to 4097");
}

TEST_F(ControlServerTest, CallsEndWithTheSession) {
  TestRank rank = daemon_.StartRank(2);
  ASSERT_EQ(rank.SendRegion(5, 8192).code(), ErrorCode::kOk);
  ASSERT_TRUE(rank.Detach().status().ok());
  for (const Answer& answer :
       {rank.Join(), rank.Peers(0), rank.EndRegion(5), rank.Abort(1, ""), rank.Why(),
        rank.Offer(true, {{}}, 1), rank.Withdraw(true, {}), rank.SendRegion(6, 4096)}) {
    EXPECT_EQ(answer.code(), ErrorCode::kNotInitialized) << answer.text();
  }
  EXPECT_EQ(daemon_.plane.Count("PoisonJob"), 0U);
  EXPECT_TRUE(rank.Detach().status().ok()) << "should the answer have been lost";
}

// A call that no rank of Ferry's makes ends its own connection, and no other.
TEST_F(ControlServerTest, CallsThatMakeNoSenseEndTheConnection) {
  ASSERT_TRUE(daemon_.CreateJob("job", 4).ok());
  TestRank good = daemon_.AttachRank(3, 4);
  const auto ends = [&](uint32_t number, auto call, const std::string& words) {
    TestRank rank = daemon_.AttachRank(number, 4);
    const Answer answer = call(rank);
    EXPECT_EQ(answer.kind(), attach::Kind::kGoodbye);
    ExpectError(answer.status(), ErrorCode::kCorrupt, words);
  };
  ends(
      0,
      [](TestRank& rank) {
        return rank.Offer(true, {{}, {}}, 3);
      },
      "kind 22");
  ends(
      1,
      [](TestRank& rank) {
        return rank.Offer(true, {{}, {}}, UINT32_MAX);
      },
      "kind 22");
  ends(
      2,
      [](TestRank& rank) {
        const UniqueFd fd(memfd_create("unasked", MFD_CLOEXEC));
        return rank.Ask(attach::JoinRequest{rank.Header(attach::Kind::kJoin), 0}, {fd.get()});
      },
      "carries 1 descriptors instead of 0");
  EXPECT_EQ(good.Peers(0).peers.size(), 4U);
}

TEST_F(ControlServerTest, WhatARankWaitsForIsToldToItself) {
  TestRank rank = daemon_.StartRank();
  const Answer why = rank.Why();
  EXPECT_EQ(why.code(), ErrorCode::kOk);
  EXPECT_TRUE(why.text().starts_with("rank 0 ")) << why.text();
}

TEST_F(ControlServerTest, OffersAreTakenOrRefusedWhole) {
  auto [rank, peer] = daemon_.StartTwoRanks();
  ASSERT_EQ(rank.SendRegion(1, 1 << 16).code(), ErrorCode::kOk);
  attach::PairOffer offer{};
  offer.key = {0, 0, 1, 7, 0};
  offer.end = {1, 0, 0};
  attach::PairOffer bad = offer;
  bad.key.ordinal = 1;
  bad.end.region = 9;
  ExpectError(rank.Offer(true, {offer, bad}, 2).status(), ErrorCode::kInvalidBuffer, "region 9");
  EXPECT_EQ(rank.Offer(true, {offer}, 1).code(), ErrorCode::kOk) << "nothing was taken before";
  ExpectError(rank.Offer(true, {offer}, 1).status(), ErrorCode::kAlreadyExists,
              "has had this side before");
  ExpectError(peer.Offer(true, {offer}, 1).status(), ErrorCode::kInvalidRank, "no pair of rank 1");
  EXPECT_EQ(rank.Withdraw(true, offer.key).code(), ErrorCode::kOk);
}

TEST_F(ControlServerTest, AnAbortPoisonsTheJob) {
  TestRank rank = daemon_.StartRank(2);
  ASSERT_TRUE(rank.Abort(3, "no more").status().ok());
  EXPECT_EQ(daemon_.plane.Count("PoisonJob job 30"), 1U);
  TestRank late("job", 1, 2, 2);
  ASSERT_TRUE(late.Connect(daemon_.attach_path()).ok());
  const Answer answer = late.Attach();
  EXPECT_EQ(answer.code(), ErrorCode::kAborted);
  EXPECT_NE(answer.text().find("aborted it with exit code 3: no more"), std::string::npos);
}

// ---- Regions ----

TEST_F(ControlServerTest, RegionsComeAndGo) {
  auto [rank, peer] = daemon_.StartTwoRanks();
  ASSERT_EQ(rank.SendRegion(5, 8192).code(), ErrorCode::kOk);
  EXPECT_EQ(daemon_.plane.Count("AddRegion job 0 5"), 1U);
  EXPECT_EQ(daemon_.GetStatus().region_bytes(), 8192U);
  const Answer answer = peer.AskPeer(attach::Kind::kPeerRegion, 0, 5);
  ASSERT_EQ(answer.code(), ErrorCode::kOk) << answer.text();
  EXPECT_EQ(answer.reply.size_bytes, 8192U);
  EXPECT_EQ(answer.packet.fds.size(), 1U);
  ASSERT_TRUE(rank.EndRegion(5).status().ok());
  EXPECT_EQ(daemon_.plane.Count("RemoveRegion job 0 5"), 1U);
  ExpectError(rank.EndRegion(5).status(), ErrorCode::kNotFound, "has no region 5");
}

TEST_F(ControlServerTest, ARegionOfNoKindIsRefused) {
  TestRank rank = daemon_.StartRank();
  const UniqueFd fd = std::move(*shm::CreateSegment("test-region", 8192));
  attach::RegionRequest request = rank.RegionRequest(5, 8192);
  request.kind = 9;
  ExpectError(rank.Ask(request, {fd.get()}).status(), ErrorCode::kInvalidArgument,
              "region 5: unknown kind 9");
  request = rank.RegionRequest(5, 8192, attach::kRegionByStream);
  request.kind = static_cast<uint32_t>(attach::MemoryKind::kHostHeap);
  ExpectError(rank.Ask(request).status(), ErrorCode::kInvalidArgument, "is no device memory");
  EXPECT_EQ(daemon_.GetStatus().regions(), 0U);
  EXPECT_EQ(daemon_.plane.Count("AddRegion"), 0U);
}

TEST_F(ControlServerTest, ARegionThatTheDataPlaneRefusesDoesNotStay) {
  TestRank rank = daemon_.StartRank();
  daemon_.plane.set_region_status({ErrorCode::kOutOfMemory, "the NIC is full"});
  ExpectError(rank.SendRegion(5, 8192).status(), ErrorCode::kOutOfMemory, "the NIC is full");
  EXPECT_EQ(daemon_.GetStatus().regions(), 0U);
}

TEST_F(ControlServerTest, TheDataPlaneCanEndASession) {
  TestRank rank = daemon_.StartRank();
  daemon_.server().EndSession("job", 0, {ErrorCode::kCorrupt, "descriptor 7 makes no sense"});
  const Answer answer = rank.Read();
  EXPECT_EQ(answer.kind(), attach::Kind::kGoodbye);
  EXPECT_EQ(answer.code(), ErrorCode::kCorrupt);
  EXPECT_EQ(answer.text(), "descriptor 7 makes no sense");
  EXPECT_TRUE(daemon_.plane.WaitFor("RankEnded job 0 14"));
}

}  // namespace
}  // namespace ferry::daemon
