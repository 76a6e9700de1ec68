// Which connections may attach, and what becomes of the others.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "common/clock.h"
#include "common/version.h"
#include "shm/atomic.h"
#include "tests/daemon/attach/attach_server_fixture.h"
#include "tests/support/patience.h"

namespace ferry::daemon {
namespace {

using attach::Kind;

TEST_F(AttachServerTest, ServesARankThatAttachesAsItShould) {
  TestRank rank = Connected(1);
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
  TestRank rank = Connected(0);
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
  TestRank rank = Connected(0);
  const std::array<char, 100> garbage{};
  ExpectGoodbye(rank, rank.Ask(garbage), ErrorCode::kCorrupt, "magic number");
}

TEST_F(AttachServerTest, AShortPacketIsMalformed) {
  TestRank rank = Connected(0);
  ExpectGoodbye(rank, rank.Ask('x'), ErrorCode::kCorrupt, "a packet of 1 bytes has no header");
}

TEST_F(AttachServerTest, ALongPacketIsMalformed) {
  TestRank rank = Connected(0);
  const std::array<char, attach::kMaxPacketBytes + 1> garbage{};
  ExpectGoodbye(rank, rank.Ask(garbage), ErrorCode::kCorrupt, "longer than 16384 bytes");
}

TEST_F(AttachServerTest, AnUnknownKindIsMalformed) {
  TestRank rank = Connected(0);
  ExpectGoodbye(rank, rank.Ask(rank.Header(static_cast<Kind>(99))), ErrorCode::kCorrupt, "kind 99");
}

TEST_F(AttachServerTest, ARequestBeforeAttachIsMalformed) {
  TestRank rank = Connected(0);
  ExpectGoodbye(rank, rank.AskPeer(Kind::kPeerInbox, 1), ErrorCode::kCorrupt, "before kAttach");
}

// Returns once the word is `wanted`.
void AwaitWord(const uint32_t& word, uint32_t wanted) {
  for (const uint64_t end_ns = MonotonicNs() + tests::kPatienceNs;
       shm::LoadAcquire(word) != wanted;) {
    ASSERT_LT(MonotonicNs(), end_ns);
    std::this_thread::yield();
  }
}

TEST_F(AttachServerTest, BothThreadsAnswerWhetherTheyTurn) {
  TestRank rank = Entered(0);
  const auto ask = [&](uint32_t number) {
    attach::LifeQuestion question{};
    question.header = rank.Header(Kind::kLifeQuestion);
    question.number = number;
    while (SendPacket(rank.socket(), question).code() == ErrorCode::kWouldBlock) {
      std::this_thread::yield();
    }
  };
  ask(1);
  AwaitWord(rank.session()->life_answered, 1);
  EXPECT_EQ(rank.session()->life_read, 1U);

  const size_t probes = data_plane_.Count("Probe");
  data_plane_.set_stuck(true);
  for (uint32_t number = 2; number < 2000; ++number) {
    ask(number);
  }
  AwaitWord(rank.session()->life_read, 1999);
  EXPECT_EQ(rank.session()->life_answered, 1U) << "the progress thread stands still";
  EXPECT_EQ(data_plane_.Count("Probe"), probes + 1) << "one question at a time waits for it";
  data_plane_.set_stuck(false);
  AwaitWord(rank.session()->life_answered, 1999);
  ask(2000);
  AwaitWord(rank.session()->life_answered, 2000);
}

Answer AskForPages(TestRank& rank, uint32_t nic) {
  attach::NicRequest request{};
  request.header = rank.Header(Kind::kCounterPages);
  request.nic = nic;
  return rank.Ask(request);
}

TEST_F(AttachServerTest, CounterPagesAreGivenWhereThereAreSome) {
  TestRank rank = Entered(0);
  ExpectRefusal(AskForPages(rank, 0), ErrorCode::kNotFound, "no pages of the counters of NIC 0");
  UniqueFd pages(memfd_create("pages", MFD_CLOEXEC));
  struct stat of_ours {};
  ASSERT_EQ(fstat(pages.get(), &of_ours), 0);
  data_plane_.set_counter_pages(std::move(pages));
  const Answer answer = AskForPages(rank, 0);
  ASSERT_EQ(answer.code(), ErrorCode::kOk) << answer.text();
  ASSERT_EQ(answer.packet.fds.size(), 1U);
  struct stat given {};
  ASSERT_EQ(fstat(answer.packet.fds[0].get(), &given), 0);
  EXPECT_EQ(given.st_ino, of_ours.st_ino);
  ExpectRefusal(AskForPages(rank, 1), ErrorCode::kNotFound, "no pages of the counters of NIC 1");
  ExpectRefusal(AskForPages(rank, UINT32_MAX), ErrorCode::kNotFound, "no pages");
}

TEST_F(AttachServerTest, CounterPagesAreForAttachedRanksOnly) {
  data_plane_.set_counter_pages(UniqueFd(memfd_create("pages", MFD_CLOEXEC)));
  TestRank rank = Connected(0);
  ExpectGoodbye(rank, AskForPages(rank, 0), ErrorCode::kCorrupt, "before kAttach");
}

// A process that has the pages may do with the NIC all that ferryd may.
TEST_F(AttachServerTest, CounterPagesAreForFerrydsOwnUserOnly) {
  data_plane_.set_counter_pages(UniqueFd(memfd_create("pages", MFD_CLOEXEC)));
  if (!CanBecomeOthers()) {
    GTEST_SKIP() << "needs root, outside a user namespace";
  }
  std::filesystem::permissions(directory_, std::filesystem::perms(0755));
  constexpr uid_t kOther = 12345;
  ASSERT_TRUE(CreateJob("theirs", 2, kOther).ok());
  const pid_t child = fork();
  if (child == 0) {
    TestRank rank("theirs", 0, 2, 1);
    const bool is_other = setgid(kOther) == 0 && setuid(kOther) == 0;
    _exit(!is_other                                             ? 1
          : !rank.Connect(socket_path_).ok()                    ? 2
          : rank.Attach().code() != ErrorCode::kOk              ? 3
          : AskForPages(rank, 0).code() != ErrorCode::kNotFound ? 4
                                                                : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

// The dma-buf is the memory that a NIC would be told to pin.
TEST_F(AttachServerTest, ADmabufHoldsItsRegion) {
  constexpr uint64_t kBytes = 8192;
  const auto offer = [&](uint64_t offset, uint64_t size_bytes, const std::vector<int>& fds) {
    Restart(20'000, {64, 64});
    TestRank rank = Entered(0);
    attach::RegionRequest request =
        rank.RegionRequest(1, size_bytes, attach::kRegionByStream | attach::kRegionDmabuf);
    request.dmabuf_offset = offset;
    return rank.Ask(request, fds);
  };
  const UniqueFd dmabuf(memfd_create("dmabuf", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(dmabuf.get(), kBytes), 0);
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd pipe(ends[0]);
  const UniqueFd other_end(ends[1]);
  ASSERT_EQ(offer(0, kBytes, {dmabuf.get()}).code(), ErrorCode::kOk);
  const size_t before = OpenDescriptors();
  EXPECT_EQ(offer(kBytes / 2, kBytes / 2, {dmabuf.get(), dmabuf.get()}).code(), ErrorCode::kOk);
  struct {
    uint64_t offset;
    uint64_t size_bytes;
    std::vector<int> fds;
    const char* words;
  } const wrong[] = {
      {0, kBytes + 1, {dmabuf.get()}, "has 8192 bytes, not 8193 from offset 0 on"},
      {kBytes, 1, {dmabuf.get()}, "has 8192 bytes, not 1 from offset 8192 on"},
      {UINT64_MAX, kBytes, {dmabuf.get()}, "from offset 18446744073709551615 on"},
      {0, kBytes, {event.get()}, "has 0 bytes"},
      {0, kBytes, {pipe.get()}, "its descriptor is no handle of device memory"},
      {0, kBytes, {pipe.get(), dmabuf.get()}, "its descriptor is no handle of device memory"},
      {0, kBytes, {}, "0 descriptors instead of 2"},
      {0, kBytes, {dmabuf.get(), dmabuf.get(), dmabuf.get()}, "3 descriptors instead of 2"},
  };
  for (const auto& [offset, size_bytes, fds, words] : wrong) {
    ExpectRefusal(offer(offset, size_bytes, fds), ErrorCode::kCorrupt, words);
  }
  EXPECT_LE(SettledDescriptors(before), before);
}

TEST_F(AttachServerTest, ARankThatReadsNoAnswersEnds) {
  TestRank rank = Entered(0);
  TestRank other = Entered(1);
  rank.StopReading();
  for (const uint64_t end_ns = MonotonicNs() + tests::kPatienceNs; Connections() == 2;) {
    ASSERT_LT(MonotonicNs(), end_ns) << "its answers are kept";
    rank.AskPeer(Kind::kPeerInbox, 1);
  }
  EXPECT_EQ(other.AskPeer(Kind::kPeerInbox, 1).code(), ErrorCode::kOk);
}

TEST_F(AttachServerTest, ARankThatReadsNoAnswersToCallsEnds) {
  TestRank rank = Entered(0);
  TestRank other = Entered(1);
  rank.StopReading();
  for (const uint64_t end_ns = MonotonicNs() + tests::kPatienceNs; Connections() == 2;) {
    ASSERT_LT(MonotonicNs(), end_ns) << "its answers are kept";
    rank.Peers(0);
  }
  EXPECT_EQ(other.Peers(0).code(), ErrorCode::kOk);
}

// Each has a thread, for as long as other daemons take to answer.
TEST_F(AttachServerTest, FewQuestionsOfAUserAreAnsweredAtATime) {
  constexpr uint32_t kMost = 4;
  std::atomic<uint32_t> asked = 0;
  std::promise<void> answered;
  why_ = [&asked, answer = answered.get_future().share()](const Session& session) {
    asked.fetch_add(1);
    asked.notify_all();
    answer.wait();
    return "rank " + std::to_string(session.rank) + " computes";
  };
  TestRank rank = Entered(0);
  for (uint32_t i = 0; i < kMost; ++i) {
    ASSERT_TRUE(SendPacket(rank.socket(), attach::WhyRequest{rank.Header(Kind::kWhy)}).ok());
  }
  for (uint32_t now = 0; (now = asked) < kMost;) {
    asked.wait(now);
  }
  ExpectRefusal(rank.Why(), ErrorCode::kLimitExceeded, "several such questions are under way");
  TestRank other = Entered(1);
  ExpectRefusal(other.Why(), ErrorCode::kLimitExceeded, "several such questions are under way");
  EXPECT_EQ(rank.Peers(0).code(), ErrorCode::kOk) << "the daemon waits for none of them";
  answered.set_value();
  for (uint32_t i = 0; i < kMost; ++i) {
    const Answer answer = rank.Read();
    EXPECT_EQ(answer.code(), ErrorCode::kOk);
    EXPECT_EQ(answer.text(), "rank 0 computes");
  }
  EXPECT_EQ(other.Why().text(), "rank 1 computes");
}

// Its answer is dropped.
TEST_F(AttachServerTest, ARankMayEndWhileItsQuestionIsUnderWay) {
  std::promise<void> asked;
  std::promise<void> answered;
  why_ = [&](const Session&) {
    asked.set_value();
    answered.get_future().wait();
    return std::string("nothing");
  };
  TestRank rank = Entered(0);
  ASSERT_TRUE(SendPacket(rank.socket(), attach::WhyRequest{rank.Header(Kind::kWhy)}).ok());
  asked.get_future().wait();
  rank.HangUp();
  EXPECT_TRUE(data_plane_.WaitFor("RankEnded job 0"));
  answered.set_value();
  TestRank next = Rank(2);
  EXPECT_TRUE(next.Enter(socket_path_));
}

TEST_F(AttachServerTest, AQuestionBeforeTheSegmentsIsMalformed) {
  TestRank rank = Attached(0);
  attach::LifeQuestion question{};
  question.header = rank.Header(Kind::kLifeQuestion);
  ExpectGoodbye(rank, rank.Ask(question), ErrorCode::kCorrupt, "before the segments");
}

TEST_F(AttachServerTest, SurplusDescriptorsAreClosed) {
  TestRank rank = Attached(0);
  const size_t before = OpenDescriptors();
  attach::SegmentsRequest request{};
  request.header = rank.Header(Kind::kSegments);
  const Answer answer = rank.Ask(request, {0, 1, 2});
  ExpectRefusal(answer, ErrorCode::kCorrupt, "3 descriptors instead of 2");
  EXPECT_TRUE(rank.Read().hang_up);
  EXPECT_EQ(Connections(), 0U);
  EXPECT_LT(SettledDescriptors(before - 1), before);  // the connection's are gone too
}

TEST_F(AttachServerTest, ASilentConnectionEnds) {
  Restart(50, {64, 64});
  TestRank rank = Connected(0);
  ExpectGoodbye(rank, rank.Read(), ErrorCode::kTimeout, "no request to attach came in time");
}

// One that attaches and never hands over its segments takes a place that others need.
TEST_F(AttachServerTest, ARankThatNeverHandsOverItsSegmentsEnds) {
  Restart(200, {64, 64});
  TestRank rank = Attached(0);
  ExpectGoodbye(rank, rank.Read(), ErrorCode::kTimeout, "no segments came in time");
  EXPECT_GE(loop_->Run([this] { return registry_->totals().ranks_died; }), 1U);
}

TEST_F(AttachServerTest, ConnectionsAreBounded) {
  Restart(20'000, {64, 2});
  TestRank first = Entered(0);
  TestRank second = Entered(1);
  TestRank third = Connected(2);
  const Answer answer = third.Read();
  EXPECT_EQ(answer.kind(), Kind::kGoodbye);
  ExpectRefusal(answer, ErrorCode::kLimitExceeded,
                "has 2 connections, as many as all users together may have");
  EXPECT_EQ(Connections(), 2U);
}

TEST_F(AttachServerTest, ConnectionsOfAUserAreBounded) {
  Restart(20'000, {1, 64});
  TestRank first = Entered(0);
  TestRank second = Connected(1);
  ExpectRefusal(second.Read(), ErrorCode::kLimitExceeded,
                "uid " + std::to_string(geteuid()) +
                    " has 1 connections to the attach socket, as many as one user may have");
  first.HangUp();
  for (const uint64_t end_ns = MonotonicNs() + tests::kPatienceNs; Connections() != 0;) {
    ASSERT_LT(MonotonicNs(), end_ns);
  }
  TestRank third = Rank(1);
  EXPECT_TRUE(third.Enter(socket_path_)) << "room again";
}

TEST_F(AttachServerTest, NoUserShutsOthersOut) {
  if (!CanBecomeOthers()) {
    GTEST_SKIP() << "needs two users: run as root";
  }
  Restart(20'000, {3, 64});
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
  close(full[0]);
  close(end[0]);
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
  TestRank rank = Connected(0);
  auto request = rank.AttachRequest();
  request.job_secret[3] ^= 1;
  ExpectRefusal(rank.Ask(request), ErrorCode::kPermissionDenied, "wrong secret for job job");
}

TEST_F(AttachServerTest, RefusesASecretLongerThanItsField) {
  TestRank rank = Connected(0);
  auto request = rank.AttachRequest();
  request.job_secret_bytes = 65;
  ExpectRefusal(rank.Ask(request), ErrorCode::kCorrupt, "longer than its field");
}

TEST_F(AttachServerTest, ARankAttachesOnlyOnce) {
  TestRank first = Entered(0);
  TestRank second = Connected(0);
  ExpectRefusal(second.Attach(), ErrorCode::kAlreadyExists,
                "is attached already, by pid " + std::to_string(getpid()));
  first.HangUp();
  ASSERT_TRUE(data_plane_.WaitFor("RankEnded job 0"));
  TestRank third = Connected(0);
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

// A rank's peers know it by its process id only if it has their pid and user namespaces.
TEST_F(AttachServerTest, ARankOfOtherNamespacesIsNotReachedByItsProcessId) {
  const auto peer_of_first = [&](const char* job, const attach::AttachRequest& second_request) {
    TestRank first(job, 0, 3, 2);
    TestRank second(job, 1, 3, 2);
    EXPECT_TRUE(CreateJob(job, 3, geteuid()).ok());
    EXPECT_TRUE(first.Enter(socket_path_));
    EXPECT_TRUE(second.Connect(socket_path_).ok());
    EXPECT_EQ(second.Ask(second_request).code(), ErrorCode::kOk);
    EXPECT_EQ(second.SendSegments().code(), ErrorCode::kOk);
    const Answer places = first.Peers(0);
    EXPECT_EQ(places.peers.size(), 3U);
    return places.peers.at(0);
  };
  TestRank model("same", 1, 3, 2);
  const attach::PeerPlace same = peer_of_first("same", model.AttachRequest());
  EXPECT_EQ(same.pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(same.private_memory_reachable, 1U);
  for (uint32_t attach::AttachRequest::*member :
       {&attach::AttachRequest::pid_namespace, &attach::AttachRequest::user_namespace}) {
    for (const uint32_t inode : {0U, 77U}) {
      const std::string job = "other" + std::to_string(names_++);
      TestRank other(job, 1, 3, 2);
      attach::AttachRequest request = other.AttachRequest();
      request.*member = inode;
      const attach::PeerPlace peer = peer_of_first(job.c_str(), request);
      EXPECT_EQ(peer.pid, 0U);
      EXPECT_EQ(peer.private_memory_reachable, 0U);
    }
  }
}

TEST_F(AttachServerTest, TwoDaemonsCannotShareASocket) {
  AttachServer second(loop_->context(), *registry_, *launchers_, 1000, {4, 4});
  const Status status = second.Listen(socket_path_, true);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("Address already in use"), std::string::npos);
}

}  // namespace
}  // namespace ferry::daemon
