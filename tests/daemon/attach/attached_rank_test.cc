// Tests the calls of attached ranks, and their ends.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "daemon/jobs/job_regions.h"
#include "tests/daemon/attach/attach_server_fixture.h"
#include "tests/support/patience.h"

namespace ferry::daemon {
namespace {

using attach::Kind;

struct BadSegment {
  const char* name;
  void (*spoil)(shm::SegmentHeader* session, shm::SegmentHeader* inbox);
  const char* words;
};

class BadSegmentTest : public AttachServerTest, public ::testing::WithParamInterface<BadSegment> {};

TEST_P(BadSegmentTest, EndsTheSession) {
  TestRank rank = Attached(0);
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
  TestRank rank = Attached(0);
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
  TestRank rank = Entered(0);
  EXPECT_EQ(rank.SendRegion(7, 8192).code(), ErrorCode::kOk);
  ExpectRefusal(rank.SendRegion(7, 8192), ErrorCode::kAlreadyExists, "exists already");
  ExpectRefusal(rank.SendRegion(0, 8192), ErrorCode::kInvalidArgument, "0 names no region");
}

// A region is charged to its user by its mapped size, which the machine must be able to hold.
class BadRegionSizeTest : public AttachServerTest,
                          public ::testing::WithParamInterface<std::pair<uint64_t, uint64_t>> {};

TEST_P(BadRegionSizeTest, EndsTheSessionAndMapsNothing) {
  const auto [actual_bytes, said_bytes] = GetParam();
  TestRank rank = Entered(0);
  const StatusOr<UniqueFd> memory = shm::CreateSegment("test-odd-region", actual_bytes);
  ASSERT_TRUE(memory.ok());
  const Answer answer = rank.SendRegion(1, said_bytes, memory->get());
  EXPECT_EQ(OwnMappings("memfd:test-odd-region"), 0U);
  ExpectGoodbye(rank, answer, ErrorCode::kCorrupt, "region 1");
}

INSTANTIATE_TEST_SUITE_P(AttachServer, BadRegionSizeTest,
                         ::testing::Values(std::pair{8192, 0}, std::pair{8192, 4096},
                                           std::pair{4096, 8192}, std::pair{uint64_t{60} << 40, 0},
                                           std::pair{uint64_t{15} << 40, uint64_t{15} << 40}),
                         [](const auto& info) { return "Number" + std::to_string(info.index); });

// The file of a lent region grows while ranks and daemon speak of it.
TEST_F(AttachServerTest, OfALentFileAsMuchIsMappedAsIsSaid) {
  TestRank rank = Entered(0);
  const StatusOr<UniqueFd> memory = shm::CreateSegment("test-lent-region", 16384);
  ASSERT_TRUE(memory.ok());
  const Answer answer = rank.SendRegion(1, 8192, memory->get(), attach::kRegionLent);
  EXPECT_EQ(answer.code(), ErrorCode::kOk) << answer.text();
  EXPECT_EQ(answer.reply.size_bytes, 8192U);
  EXPECT_EQ(answer.reply.flags & attach::kRegionLent, attach::kRegionLent);
  EXPECT_EQ(OwnMappings("memfd:test-lent-region"), 1U);
  ExpectGoodbye(rank, rank.SendRegion(2, 32768, memory->get(), attach::kRegionLent),
                ErrorCode::kCorrupt, "region 2");
}

TEST_F(AttachServerTest, RegionsOfAUserDoNotUseUpTheAddressSpace) {
  TestRank rank = Entered(0);
  constexpr uint64_t kShare = uint64_t{5} << 40;
  for (uint32_t region = 1; region <= 3; ++region) {
    rank.OfferDevice(region, kShare);
    ASSERT_EQ(rank.Read().code(), ErrorCode::kOk);
  }
  rank.OfferDevice(4, kShare);
  ExpectRefusal(rank.Read(), ErrorCode::kLimitExceeded, "all that one user gets");
}

// The sizes of segments are compared with their headers, to the byte, before anything is mapped.
class LargeSegmentTest : public AttachServerTest, public ::testing::WithParamInterface<bool> {};

TEST_P(LargeSegmentTest, EndsTheSession) {
  const bool is_inbox = GetParam();
  TestRank rank = Attached(0);
  rank.Enlarge(is_inbox ? 0 : 1 << 20, is_inbox ? 1 << 20 : 0);
  ExpectGoodbye(rank, rank.SendSegments(), ErrorCode::kCorrupt,
                is_inbox ? "inbox segment: it has" : "session segment: it has");
}

INSTANTIATE_TEST_SUITE_P(AttachServer, LargeSegmentTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Inbox" : "Session"; });

// ---- Device memory that only streams reach ----

TEST_F(AttachServerTest, TellsARankWhetherItsDeviceMemoryIsStaged) {
  TestRank rank = Entered(0);
  const auto staged = [&](uint32_t region) {
    const Answer answer = rank.Read();
    EXPECT_EQ(answer.code(), ErrorCode::kOk) << region << ": " << answer.text();
    EXPECT_EQ(answer.reply.flags & attach::kRegionByStream, attach::kRegionByStream);
    return (answer.reply.flags & attach::kRegionStaged) != 0;
  };
  rank.OfferDevice(7, 8192);
  EXPECT_FALSE(staged(7));  // no process imports it, which is no error
  data_plane_.set_import_status({ErrorCode::kWouldBlock, "a worker process does"});
  rank.OfferDevice(8, 8192);
  rank.OfferDevice(9, 8192);
  ASSERT_TRUE(data_plane_.WaitFor("ImportRegion job 0 9"));
  const auto end = [&](uint32_t region, const Status& status) {
    loop_->Run([&] { registry_->regions().OnImport("job", 0, region, status); });
  };
  end(10, {});  // that no rank asked for
  end(9, {ErrorCode::kSystem, "no such device"});
  EXPECT_FALSE(staged(9));
  end(8, {});
  EXPECT_TRUE(staged(8));
  end(8, {});
  ExpectRefusal(rank.SendRegion(8, 8192), ErrorCode::kAlreadyExists, "exists already");
}

// The daemon does so after the rank has left, too, and without peers.
TEST_F(AttachServerTest, LooksAfterDevicesUntilTheyAreGivenBack) {
  data_plane_.set_import_status({});
  data_plane_.gpu_looks = 3;
  {
    TestRank rank = Entered(0);
    rank.OfferDevice(7, 8192);
    EXPECT_EQ(rank.Read().code(), ErrorCode::kOk);
    rank.HangUp();
  }
  const auto end = std::chrono::steady_clock::now() + tests::kPatience;
  while (data_plane_.gpu_looks > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(data_plane_.gpu_looks, 0);
}

TEST_F(AttachServerTest, ARankDoesNotWaitLongForAWorkerThatImports) {
  Restart(20'000, {64, 64}, /*join_timeout_ms=*/100);
  TestRank rank = Entered(0);
  data_plane_.set_import_status({ErrorCode::kWouldBlock, "a worker process does"});
  rank.OfferDevice(7, 8192);
  const Answer answer = rank.Read();
  EXPECT_EQ(answer.code(), ErrorCode::kOk) << answer.text();
  EXPECT_EQ(answer.reply.flags & attach::kRegionStaged, 0U);
  loop_->Run([&] { registry_->regions().OnImport("job", 0, 7, {}); });  // too late
}

TEST_F(AttachServerTest, ARankMayLeaveWhileItsMemoryIsImported) {
  const size_t before = OpenDescriptors();
  {
    TestRank rank = Entered(1);
    data_plane_.set_import_status({ErrorCode::kWouldBlock, "a worker process does"});
    rank.OfferDevice(7, 8192);
    ASSERT_TRUE(data_plane_.WaitFor("ImportRegion job 1 7"));
    rank.HangUp();
    ASSERT_TRUE(data_plane_.WaitFor("RankEnded job 1 14"));
    loop_->Run([&] { registry_->regions().OnImport("job", 1, 7, {}); });
  }
  EXPECT_EQ(Connections(), 0U);
  EXPECT_LE(SettledDescriptors(before), before);
}

TEST_F(AttachServerTest, AHangUpEndsTheRankAndLeaksNothing) {
  const size_t before = OpenDescriptors();
  {
    TestRank rank = Entered(1);
    ASSERT_EQ(rank.SendRegion(7, 8192).code(), ErrorCode::kOk);
    rank.HangUp();
    ASSERT_TRUE(data_plane_.WaitFor("RankEnded job 1 14"));
  }
  EXPECT_EQ(data_plane_.Count("RemoveSession job 1"), 1U);
  EXPECT_EQ(Connections(), 0U);
  EXPECT_LE(SettledDescriptors(before), before);
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
  TestRank rank = Entered(0);
  ASSERT_TRUE(loop_->Run([&] { return registry_->DestroyJob("job"); }).ok());
  const Answer answer = rank.Read();
  EXPECT_EQ(answer.kind(), Kind::kGoodbye);
  ExpectRefusal(answer, ErrorCode::kAborted, "was destroyed by its launcher");
  EXPECT_TRUE(rank.Read().hang_up);
  EXPECT_TRUE(data_plane_.WaitFor("RemoveJob job"));
}

}  // namespace
}  // namespace ferry::daemon
