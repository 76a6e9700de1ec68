#include "daemon/control/attach_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "common/clock.h"
#include "common/version.h"
#include "daemon/control/control_loop.h"
#include "daemon/control/job_registry.h"
#include "tests/daemon/fake_data_plane.h"
#include "tests/daemon/test_rank.h"

namespace ferry::daemon {
namespace {

using attach::Kind;

// Jobs of one node need no links.
class NoLinks final : public NodeLinks {
 public:
  Status Acquire(const std::string&) override { return {}; }
  void Release(const std::string&) override {}
  uint64_t Incarnation() const override { return 1; }
  void SendJoined(const std::string&, const control::JoinedRequest&, Done) override {}
  void SendLeft(const std::string&, const control::LeftRequest&, Done) override {}
  void SendMatches(const std::string&, const control::MatchNewsRequest&, Done) override {}
};

class AttachServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/ferry-attach-XXXXXX";
    directory_ = mkdtemp(path);
    socket_path_ = directory_ + "/attach.sock";
    Start(20'000, {64, 64});
  }
  void TearDown() override {
    Stop();
    std::filesystem::remove_all(directory_);
  }
  void Start(uint64_t attach_timeout_ms, const AttachLimits& limits,
             uint64_t join_timeout_ms = 20'000) {
    loop_ = std::make_unique<ControlLoop>();
    registry_ = std::make_unique<JobRegistry>(loop_->context(), data_plane_,
                                              RegistryLimits{1024, 3, join_timeout_ms, {}});
    registry_->set_links(&links_);
    launchers_ = std::make_unique<Launchers>(*registry_);
    server_ = std::make_unique<AttachServer>(loop_->context(), *registry_, *launchers_,
                                             attach_timeout_ms, limits);
    ASSERT_TRUE(server_->Listen(socket_path_, true).ok());
    loop_->Start();
    ASSERT_TRUE(CreateJob("job", 4).ok());
  }
  void Stop() {
    if (server_ != nullptr) {
      loop_->Run([this] { server_->Stop(); });
      loop_->Stop();
      server_.reset();
      launchers_.reset();
      registry_.reset();
      loop_.reset();
      std::filesystem::remove(socket_path_);
    }
  }
  // Ranks 0, 1, 2 here; the last one elsewhere.
  Status CreateJob(const std::string& id, uint32_t size, uid_t owner = geteuid()) {
    JobSpec spec;
    spec.id = id;
    spec.secret = kTestSecret;
    spec.owner = owner;
    spec.node_addresses = {"127.0.0.1:1", "127.0.0.1:2"};
    spec.node_of_rank.assign(size, 0);
    spec.node_of_rank.back() = 1;
    return loop_->Run([&] { return registry_->CreateJob(spec); });
  }
  TestRank Rank(uint32_t rank, const std::string& job = "job", uint32_t size = 4) {
    return TestRank(job, rank, size, 3);
  }
  size_t Connections() {
    return loop_->Run([this] { return server_->connections(); });
  }
  // The daemon says why, then hangs up, and lives.
  void ExpectGoodbye(TestRank& rank, const Answer& answer, ErrorCode code,
                     const std::string& words) {
    EXPECT_EQ(answer.kind(), Kind::kGoodbye);
    EXPECT_EQ(answer.code(), code);
    EXPECT_NE(answer.text().find(words), std::string::npos) << answer.text();
    EXPECT_TRUE(rank.Read().hang_up);
    TestRank next = Rank(2);
    EXPECT_TRUE(next.Enter(socket_path_));
  }
  void ExpectRefusal(const Answer& answer, ErrorCode code, const std::string& words) {
    EXPECT_EQ(answer.code(), code) << answer.text();
    EXPECT_NE(answer.text().find(words), std::string::npos) << answer.text();
  }

  int names_ = 0;
  std::string directory_;
  std::string socket_path_;
  FakeDataPlane data_plane_;
  NoLinks links_;
  std::unique_ptr<ControlLoop> loop_;
  std::unique_ptr<JobRegistry> registry_;
  std::unique_ptr<Launchers> launchers_;
  std::unique_ptr<AttachServer> server_;
};

TEST_F(AttachServerTest, ServesARankThatAttachesAsItShould) {
  TestRank rank = Rank(1);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  const Answer attached = rank.Attach();
  ASSERT_EQ(attached.code(), ErrorCode::kOk) << attached.text();
  EXPECT_EQ(attached.attach.local_size, 3U);
  EXPECT_EQ(attached.attach.local_index, 1U);
  EXPECT_EQ(attached.attach.daemon_pid, static_cast<uint32_t>(getpid()));
  const Answer answer = rank.SendSegments();
  ASSERT_EQ(answer.code(), ErrorCode::kOk) << answer.text();
  EXPECT_EQ(answer.packet.fds.size(), 2U);
  EXPECT_EQ(data_plane_.Count("AddSession job 1"), 1U);
}

TEST_F(AttachServerTest, AnotherVersionIsRefusedAndBothAreNamed) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  auto request = rank.AttachRequest();
  request.header.layout_version = 77;
  const Answer answer = rank.Ask(request);
  EXPECT_EQ(answer.kind(), Kind::kAttachReply);
  ExpectRefusal(answer, ErrorCode::kVersionMismatch, "layout version 77");
  ExpectRefusal(answer, ErrorCode::kVersionMismatch,
                "has layout version " + std::to_string(kLayoutVersion));
  ExpectGoodbye(rank, rank.Read(), ErrorCode::kVersionMismatch, "layout version 77");
}

TEST_F(AttachServerTest, GarbageEndsOnlyItsConnection) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  const std::array<char, 100> garbage{};
  ExpectGoodbye(rank, rank.Ask(garbage), ErrorCode::kCorrupt, "magic number");
}

TEST_F(AttachServerTest, AShortPacketIsMalformed) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  ExpectGoodbye(rank, rank.Ask('x'), ErrorCode::kCorrupt, "a packet of 1 bytes has no header");
}

TEST_F(AttachServerTest, ALongPacketIsMalformed) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  const std::array<char, attach::kMaxPacketBytes + 1> garbage{};
  ExpectGoodbye(rank, rank.Ask(garbage), ErrorCode::kCorrupt, "longer than 1024 bytes");
}

TEST_F(AttachServerTest, AnUnknownKindIsMalformed) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  ExpectGoodbye(rank, rank.Ask(rank.Header(static_cast<Kind>(99))), ErrorCode::kCorrupt, "kind 99");
}

TEST_F(AttachServerTest, ARequestBeforeAttachIsMalformed) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  ExpectGoodbye(rank, rank.AskPeer(Kind::kPeerInbox, 1), ErrorCode::kCorrupt, "before kAttach");
}

TEST_F(AttachServerTest, SurplusDescriptorsAreClosed) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  ASSERT_EQ(rank.Attach().code(), ErrorCode::kOk);
  const size_t before = OpenDescriptors();
  attach::SegmentsRequest request{};
  request.header = rank.Header(Kind::kSegments);
  const Answer answer = rank.Ask(request, {0, 1, 2});
  ExpectRefusal(answer, ErrorCode::kCorrupt, "3 descriptors instead of 2");
  EXPECT_TRUE(rank.Read().hang_up);
  EXPECT_EQ(Connections(), 0U);
  EXPECT_LT(OpenDescriptors(), before);  // the connection's are gone too
}

TEST_F(AttachServerTest, ASilentConnectionEnds) {
  Stop();
  Start(50, {64, 64});
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  ExpectGoodbye(rank, rank.Read(), ErrorCode::kTimeout, "no request to attach came in time");
}

TEST_F(AttachServerTest, ConnectionsAreBounded) {
  Stop();
  Start(20'000, {64, 2});
  TestRank first = Rank(0);
  TestRank second = Rank(1);
  TestRank third = Rank(2);
  ASSERT_TRUE(first.Enter(socket_path_));
  ASSERT_TRUE(second.Enter(socket_path_));
  ASSERT_TRUE(third.Connect(socket_path_).ok());
  const Answer answer = third.Read();
  EXPECT_EQ(answer.kind(), Kind::kGoodbye);
  ExpectRefusal(answer, ErrorCode::kLimitExceeded,
                "has 2 connections, as many as all users together may have");
  EXPECT_EQ(Connections(), 2U);
}

TEST_F(AttachServerTest, ConnectionsOfAUserAreBounded) {
  Stop();
  Start(20'000, {1, 64});
  TestRank first = Rank(0);
  TestRank second = Rank(1);
  ASSERT_TRUE(first.Enter(socket_path_));
  ASSERT_TRUE(second.Connect(socket_path_).ok());
  ExpectRefusal(second.Read(), ErrorCode::kLimitExceeded,
                "uid " + std::to_string(geteuid()) +
                    " has 1 connections to the attach socket, as many as one user may have");
  first.HangUp();
  for (const uint64_t end_ns = MonotonicNs() + 20'000'000'000; Connections() != 0;) {
    ASSERT_LT(MonotonicNs(), end_ns);
  }
  TestRank third = Rank(1);
  EXPECT_TRUE(third.Enter(socket_path_)) << "room again";
}

TEST_F(AttachServerTest, NoUserShutsOthersOut) {
  if (!CanBecomeOthers()) {
    GTEST_SKIP() << "needs two users: run as root";
  }
  Stop();
  Start(20'000, {3, 64});
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  int full[2];
  int end[2];
  ASSERT_EQ(pipe2(full, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(end, O_CLOEXEC), 0);
  const pid_t greedy = fork();
  if (greedy == 0) {
    close(end[1]);
    char held = 0;
    std::vector<UniqueFd> sockets;
    for (bool more = setresuid(12345, 12345, 12345) == 0; more; held += more ? 1 : 0) {
      StatusOr<UniqueFd> socket = ConnectSeqpacket(socket_path_);
      more = socket.ok();
      if (more) {
        pollfd refused{socket->get(), POLLIN, 0};
        more = poll(&refused, 1, held < 3 ? 0 : 20'000) == 0;
        sockets.push_back(std::move(*socket));
      }
    }
    (void)!write(full[1], &held, 1);
    (void)!read(end[0], &held, 1);  // until the parent closes it
    _exit(0);
  }
  close(full[1]);
  char held = 0;
  ASSERT_EQ(read(full[0], &held, 1), 1);
  EXPECT_EQ(held, 3);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    TestRank other = Rank(rank);
    EXPECT_TRUE(other.Connect(socket_path_).ok());
    EXPECT_EQ(other.Attach().code(), ErrorCode::kOk);
  }
  close(end[1]);
  EXPECT_EQ(waitpid(greedy, nullptr, 0), greedy);
  for (const int fd : {full[0], end[0]}) {
    close(fd);
  }
}

TEST_F(AttachServerTest, RefusesClaimsThatDoNotFitTheJob) {
  const auto refused = [&](TestRank rank, ErrorCode code, const std::string& words) {
    ASSERT_TRUE(rank.Connect(socket_path_).ok());
    const Answer answer = rank.Attach();
    EXPECT_EQ(answer.kind(), Kind::kAttachReply);
    ExpectRefusal(answer, code, words);
  };
  refused(Rank(0, "nojob"), ErrorCode::kNotFound, "there is no job nojob");
  refused(Rank(0, "job", 5), ErrorCode::kInvalidArgument, "has 4 ranks, not 5");
  refused(Rank(4), ErrorCode::kInvalidRank, "its ranks are 0 to 3");
  refused(Rank(3), ErrorCode::kInvalidRank, "belongs to node 1; this is node 0");
}

TEST_F(AttachServerTest, RefusesAWrongSecret) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  auto request = rank.AttachRequest();
  request.job_secret[3] ^= 1;
  ExpectRefusal(rank.Ask(request), ErrorCode::kPermissionDenied, "wrong secret for job job");
}

TEST_F(AttachServerTest, RefusesASecretLongerThanItsField) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  auto request = rank.AttachRequest();
  request.job_secret_bytes = 65;
  ExpectRefusal(rank.Ask(request), ErrorCode::kCorrupt, "longer than its field");
}

TEST_F(AttachServerTest, ARankAttachesOnlyOnce) {
  TestRank first = Rank(0);
  ASSERT_TRUE(first.Enter(socket_path_));
  TestRank second = Rank(0);
  ASSERT_TRUE(second.Connect(socket_path_).ok());
  ExpectRefusal(second.Attach(), ErrorCode::kAlreadyExists,
                "is attached already, by pid " + std::to_string(getpid()));
  first.HangUp();
  ASSERT_TRUE(data_plane_.WaitFor("RankEnded job 0"));
  TestRank third = Rank(0);
  ASSERT_TRUE(third.Connect(socket_path_).ok());
  ExpectRefusal(third.Attach(), ErrorCode::kAlreadyExists, "has ended");
}

TEST_F(AttachServerTest, MoreRanksThanTheLimitAreRefused) {
  ASSERT_TRUE(CreateJob("other", 2).ok());
  TestRank ranks[] = {Rank(0), Rank(1), Rank(2)};
  for (TestRank& rank : ranks) {
    ASSERT_TRUE(rank.Enter(socket_path_));
  }
  TestRank fourth("other", 0, 2, 1);
  ASSERT_TRUE(fourth.Connect(socket_path_).ok());
  ExpectRefusal(fourth.Attach(), ErrorCode::kLimitExceeded, "as many as max_local_ranks allows");
}

// Attaches as uid 12345 from a child process; returns the daemon's answer.
Answer AttachAsOther(const std::string& path, const std::string& job) {
  int back[2];
  EXPECT_EQ(pipe(back), 0);
  const pid_t child = fork();
  if (child == 0) {
    Answer answer;
    TestRank rank(job, 0, 2, 1);
    if (setresuid(12345, 12345, 12345) == 0 && rank.Connect(path).ok()) {
      answer = rank.Attach();
    }
    _exit(write(back[1], &answer.attach, sizeof(answer.attach)) > 0 ? 0 : 1);
  }
  close(back[1]);
  Answer answer;
  EXPECT_EQ(read(back[0], &answer.attach, sizeof(answer.attach)),
            static_cast<ssize_t>(sizeof(answer.attach)));
  close(back[0]);
  waitpid(child, nullptr, 0);
  return answer;
}

TEST_F(AttachServerTest, ARankMustBeOfTheJobsUidWhateverItKnows) {
  ASSERT_TRUE(CreateJob("theirs", 2, geteuid() + 1).ok());
  TestRank rank("theirs", 0, 2, 1);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  ExpectRefusal(rank.Attach(), ErrorCode::kPermissionDenied,
                "job theirs belongs to uid " + std::to_string(geteuid() + 1) + ", and uid " +
                    std::to_string(geteuid()) + " may not be a rank of it");
}

TEST_F(AttachServerTest, UsersOtherThanTheDaemonsAttachToJobsOfTheirs) {
  if (!CanBecomeOthers()) {
    GTEST_SKIP() << "needs root, outside a user namespace";
  }
  std::filesystem::permissions(directory_, std::filesystem::perms(0755));
  ASSERT_TRUE(CreateJob("mine", 2, 0).ok());
  ASSERT_TRUE(CreateJob("theirs", 2, 12345).ok());
  ExpectRefusal(AttachAsOther(socket_path_, "mine"), ErrorCode::kPermissionDenied,
                "job mine belongs to uid 0, and uid 12345 may not be a rank of it");
  ExpectRefusal(AttachAsOther(socket_path_, "nojob"), ErrorCode::kNotFound, "no job nojob");
  EXPECT_EQ(AttachAsOther(socket_path_, "theirs").code(), ErrorCode::kOk);
}

// Only with its own pid and user namespaces do a rank's peers know it by its process id.
TEST_F(AttachServerTest, ARankOfOtherNamespacesIsNotReachedByItsProcessId) {
  const auto peer_of_first = [&](const char* job, const attach::AttachRequest& second_request) {
    TestRank first(job, 0, 3, 2);
    TestRank second(job, 1, 3, 2);
    EXPECT_TRUE(CreateJob(job, 3, geteuid()).ok());
    EXPECT_TRUE(first.Enter(socket_path_));
    EXPECT_TRUE(second.Connect(socket_path_).ok());
    EXPECT_EQ(second.Ask(second_request).code(), ErrorCode::kOk);
    EXPECT_EQ(second.SendSegments().code(), ErrorCode::kOk);
    control::ResolvePeersReply reply;
    EXPECT_TRUE(loop_
                    ->Run([&] {
                      const Session& session = *registry_->jobs().at(job)->ranks[0].session;
                      return registry_->Resolve(session, {}, &reply);
                    })
                    .ok());
    return reply.peers(0);
  };
  TestRank model("same", 1, 3, 2);
  const control::PeerInfo same = peer_of_first("same", model.AttachRequest());
  EXPECT_EQ(same.pid(), static_cast<uint32_t>(getpid()));
  EXPECT_TRUE(same.private_memory_reachable());
  for (uint32_t attach::AttachRequest::*member :
       {&attach::AttachRequest::pid_namespace, &attach::AttachRequest::user_namespace}) {
    for (const uint32_t inode : {0U, 77U}) {
      const std::string job = "other" + std::to_string(names_++);
      TestRank other(job, 1, 3, 2);
      attach::AttachRequest request = other.AttachRequest();
      request.*member = inode;
      const control::PeerInfo peer = peer_of_first(job.c_str(), request);
      EXPECT_EQ(peer.pid(), 0U);
      EXPECT_FALSE(peer.private_memory_reachable());
    }
  }
}

struct BadSegment {
  const char* name;
  void (*spoil)(shm::SegmentHeader* session, shm::SegmentHeader* inbox);
  const char* words;
};

class BadSegmentTest : public AttachServerTest, public ::testing::WithParamInterface<BadSegment> {};

TEST_P(BadSegmentTest, EndsTheSession) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  ASSERT_EQ(rank.Attach().code(), ErrorCode::kOk);
  auto session = rank.SegmentHeader(shm::SegmentKind::kSession);
  auto inbox = rank.SegmentHeader(shm::SegmentKind::kInbox);
  GetParam().spoil(&session, &inbox);
  ExpectGoodbye(rank, rank.SendSegments(session, inbox), ErrorCode::kCorrupt, GetParam().words);
  EXPECT_EQ(data_plane_.Count("AddSession job 0"), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    AttachServer, BadSegmentTest,
    ::testing::Values(
        BadSegment{"Rank", [](auto* session, auto*) { session->rank = 9; }, "the rank is 9"},
        BadSegment{"InboxRank", [](auto*, auto* inbox) { inbox->rank = 9; }, "inbox segment"},
        BadSegment{"JobSize", [](auto* session, auto*) { session->job_size = 9; }, "should be 4"},
        BadSegment{"LocalSize", [](auto*, auto* inbox) { inbox->local_size = 9; }, "should be 3"},
        BadSegment{"NoRequests", [](auto* session, auto*) { session->request_limit = 0; },
                   "a request limit of 0"},
        BadSegment{"ManyRequests", [](auto* session, auto*) { session->request_limit = 1 << 20; },
                   "should be"},
        BadSegment{"Kind",
                   [](auto* session, auto*) {
                     session->kind = static_cast<uint32_t>(shm::SegmentKind::kInbox);
                   },
                   "of kind 2"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(AttachServerTest, AnUnsealedSegmentIsRefused) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Connect(socket_path_).ok());
  ASSERT_EQ(rank.Attach().code(), ErrorCode::kOk);
  const UniqueFd memfd(memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(memfd.get(), 1 << 20), 0);
  attach::SegmentsRequest request{};
  request.header = rank.Header(Kind::kSegments);
  request.session_bytes = 1 << 20;
  request.inbox_bytes = 1 << 20;
  ExpectGoodbye(rank, rank.Ask(request, {memfd.get(), memfd.get()}), ErrorCode::kCorrupt,
                "not sealed against shrinking");
}

TEST_F(AttachServerTest, InboxesAndRegionsPassOnlyBetweenRanksOfTheJobHere) {
  ASSERT_TRUE(CreateJob("other", 2).ok());
  TestRank first = Rank(0);
  TestRank second = Rank(1);
  ASSERT_TRUE(first.Enter(socket_path_));
  ExpectRefusal(first.AskPeer(Kind::kPeerInbox, 1), ErrorCode::kWouldBlock, "has not attached yet");
  ASSERT_TRUE(second.Enter(socket_path_));
  Answer answer = first.AskPeer(Kind::kPeerInbox, 1);
  ASSERT_EQ(answer.code(), ErrorCode::kOk) << answer.text();
  ASSERT_EQ(answer.packet.fds.size(), 1U);
  const auto mapping = shm::MapSegment(answer.packet.fds[0].get(), answer.reply.size_bytes);
  ASSERT_TRUE(mapping.ok());
  EXPECT_EQ(reinterpret_cast<shm::SegmentHeader*>(mapping->base())->rank, 1U);
  ExpectRefusal(first.AskPeer(Kind::kPeerInbox, 3), ErrorCode::kInvalidRank,
                "is not a rank of this node");
  ExpectRefusal(first.AskPeer(Kind::kPeerRegion, 1, 5), ErrorCode::kInvalidBuffer,
                "has no region 5");
  second.HangUp();
  ASSERT_TRUE(data_plane_.WaitFor("RankEnded job 1"));
  ExpectRefusal(first.AskPeer(Kind::kPeerInbox, 1), ErrorCode::kPeerDied, "has ended");
}

TEST_F(AttachServerTest, OffersOfRegionsAreChecked) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Enter(socket_path_));
  EXPECT_EQ(rank.SendRegion(7, 8192).code(), ErrorCode::kOk);
  ExpectRefusal(rank.SendRegion(7, 8192), ErrorCode::kAlreadyExists, "exists already");
  ExpectRefusal(rank.SendRegion(0, 8192), ErrorCode::kInvalidArgument, "0 names no region");
}

// ---- Device memory that only streams reach ----

TEST_F(AttachServerTest, TellsARankWhetherItsDeviceMemoryIsStaged) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Enter(socket_path_));
  const auto staged = [&](uint32_t region) {
    const Answer answer = rank.Read();
    EXPECT_EQ(answer.code(), ErrorCode::kOk) << region << ": " << answer.text();
    EXPECT_EQ(answer.reply.flags & attach::kRegionByStream, attach::kRegionByStream);
    return (answer.reply.flags & attach::kRegionStaged) != 0;
  };
  rank.OfferDevice(7, 8192);
  EXPECT_FALSE(staged(7));  // nobody imports it, which is no error
  data_plane_.set_import_status({ErrorCode::kWouldBlock, "a worker process does"});
  rank.OfferDevice(8, 8192);
  rank.OfferDevice(9, 8192);
  ASSERT_TRUE(data_plane_.WaitFor("ImportRegion job 0 9"));
  const auto end = [&](uint32_t region, const Status& status) {
    loop_->Run([&] { registry_->OnImport("job", 0, region, status); });
  };
  end(10, {});  // that nobody asked for
  end(9, {ErrorCode::kSystem, "no such device"});
  EXPECT_FALSE(staged(9));
  end(8, {});
  EXPECT_TRUE(staged(8));
  end(8, {});
  ExpectRefusal(rank.SendRegion(8, 8192), ErrorCode::kAlreadyExists, "exists already");
}

// Also after the rank has left, in a daemon without peers.
TEST_F(AttachServerTest, LooksAfterDevicesUntilTheyAreGivenBack) {
  data_plane_.set_import_status({});
  data_plane_.set_gpu_looks(3);
  {
    TestRank rank = Rank(0);
    ASSERT_TRUE(rank.Enter(socket_path_));
    rank.OfferDevice(7, 8192);
    EXPECT_EQ(rank.Read().code(), ErrorCode::kOk);
    rank.HangUp();
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (data_plane_.gpu_looks() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(data_plane_.gpu_looks(), 0);
}

TEST_F(AttachServerTest, ARankDoesNotWaitLongForAWorkerThatImports) {
  Stop();
  Start(20'000, {64, 64}, /*join_timeout_ms=*/100);
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Enter(socket_path_));
  data_plane_.set_import_status({ErrorCode::kWouldBlock, "a worker process does"});
  rank.OfferDevice(7, 8192);
  const Answer answer = rank.Read();
  EXPECT_EQ(answer.code(), ErrorCode::kOk) << answer.text();
  EXPECT_EQ(answer.reply.flags & attach::kRegionStaged, 0U);
  loop_->Run([&] { registry_->OnImport("job", 0, 7, {}); });  // too late
}

TEST_F(AttachServerTest, ARankMayLeaveWhileItsMemoryIsImported) {
  const size_t before = OpenDescriptors();
  {
    TestRank rank = Rank(1);
    ASSERT_TRUE(rank.Enter(socket_path_));
    data_plane_.set_import_status({ErrorCode::kWouldBlock, "a worker process does"});
    rank.OfferDevice(7, 8192);
    ASSERT_TRUE(data_plane_.WaitFor("ImportRegion job 1 7"));
    rank.HangUp();
    ASSERT_TRUE(data_plane_.WaitFor("RankEnded job 1 14"));
    loop_->Run([&] { registry_->OnImport("job", 1, 7, {}); });
  }
  EXPECT_EQ(Connections(), 0U);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(AttachServerTest, AHangUpEndsTheRankAndLeaksNothing) {
  const size_t before = OpenDescriptors();
  {
    TestRank rank = Rank(1);
    ASSERT_TRUE(rank.Enter(socket_path_));
    ASSERT_EQ(rank.SendRegion(7, 8192).code(), ErrorCode::kOk);
    rank.HangUp();
    ASSERT_TRUE(data_plane_.WaitFor("RankEnded job 1 14"));
  }
  EXPECT_EQ(data_plane_.Count("RemoveSession job 1"), 1U);
  EXPECT_EQ(Connections(), 0U);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(AttachServerTest, AKilledProcessEndsItsRankThoughItsSocketIsStillOpen) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    TestRank rank = Rank(2);
    const bool entered = rank.Enter(socket_path_);
    if (fork() == 0) {  // holds the connection open
      close(ready[1]);
      pause();
    }
    const char answer = entered ? 'y' : 'n';
    (void)!write(ready[1], &answer, 1);
    pause();
  }
  char entered = 'n';
  ASSERT_EQ(read(ready[0], &entered, 1), 1);
  ASSERT_EQ(entered, 'y');
  const std::string children =
      "/proc/" + std::to_string(child) + "/task/" + std::to_string(child) + "/children";
  std::FILE* file = std::fopen(children.c_str(), "r");
  int grandchild = 0;
  ASSERT_EQ(std::fscanf(file, "%d", &grandchild), 1);
  std::fclose(file);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(data_plane_.WaitFor("RankEnded job 2 14"));
  kill(grandchild, SIGKILL);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(AttachServerTest, ADestroyedJobSaysGoodbyeToItsRanks) {
  TestRank rank = Rank(0);
  ASSERT_TRUE(rank.Enter(socket_path_));
  ASSERT_TRUE(loop_->Run([&] { return registry_->DestroyJob("job"); }).ok());
  const Answer answer = rank.Read();
  EXPECT_EQ(answer.kind(), Kind::kGoodbye);
  ExpectRefusal(answer, ErrorCode::kAborted, "was destroyed by its launcher");
  EXPECT_TRUE(rank.Read().hang_up);
  EXPECT_TRUE(data_plane_.WaitFor("RemoveJob job"));
}

TEST_F(AttachServerTest, TwoDaemonsCannotShareASocket) {
  AttachServer second(loop_->context(), *registry_, *launchers_, 1000, {4, 4});
  const Status status = second.Listen(socket_path_, true);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("Address already in use"), std::string::npos);
}

}  // namespace
}  // namespace ferry::daemon
