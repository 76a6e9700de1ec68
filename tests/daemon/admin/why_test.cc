// Checks what `why` reads from shared memory that a test has filled, sensibly or not. With real
// ranks: tests/e2e/why_test.cc.
#include "daemon/admin/why.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "daemon/session/rank_view.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"

namespace ferry::daemon {
namespace {

using shm::RequestState;

TEST(ProcessStateTest, IsThatOfTheProcess) {
  EXPECT_EQ(ReadProcessState(getpid()), ProcessState::kRuns);
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_EQ(ReadProcessState(child), ProcessState::kStopped);
  kill(child, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(ReadProcessState(child), ProcessState::kEnded);  // a zombie
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(ReadProcessState(child), ProcessState::kEnded);
}

TEST(ProcessStateTest, OfItsThreadsOneMayRun) {
  EXPECT_TRUE(HasRunningThread(getpid()));
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_FALSE(HasRunningThread(child));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(HasRunningThread(child)) << "it is gone";
}

// A ferryd without a free descriptor must not take living ranks for dead.
TEST(ProcessStateTest, OfWhichNothingCanBeReadIsNoEnd) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const ProcessState state = ReadProcessState(getpid());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(state, ProcessState::kRuns);
}

TEST(QuietLogTest, CountsFromTheFirstSameLook) {
  QuietLog log;
  EXPECT_EQ(log.Note(1, 0, 42, 100), 0U);
  EXPECT_EQ(log.Note(1, 0, 42, 150), 50U);
  EXPECT_EQ(log.Note(1, 1, 42, 150), 0U);  // another rank
  EXPECT_EQ(log.Note(2, 0, 42, 150), 0U);  // another job
  EXPECT_EQ(log.Note(1, 0, 43, 160), 0U);
  EXPECT_EQ(log.Note(1, 0, 43, 170), 10U);
}

// Two ranks, here or on two nodes; rank 0 is made to wait.
class WhyTest : public ::testing::Test {
 protected:
  WhyTest() : daemon_(TestOptions(directory_.path() + "/a")) {}

  void Start(uint32_t second_node) {
    std::vector<std::string> addresses = {daemon_.address()};
    if (second_node == 1) {
      addresses.push_back("127.0.0.1:1");  // no daemon answers there
    }
    ASSERT_TRUE(
        daemon_.CreateJob(TestDaemon::JobRequest("job", {0, second_node}, addresses, 0)).ok());
    const uint32_t local = second_node == 0 ? 2 : 1;
    rank0_ = std::make_unique<TestRank>("job", 0, 2, local);
    ASSERT_TRUE(rank0_->Enter(daemon_.attach_path()));
    if (second_node == 0) {
      rank1_ = std::make_unique<TestRank>("job", 1, 2, local);
      ASSERT_TRUE(rank1_->Enter(daemon_.attach_path()));
    }
    rank0_->session()->request_fresh = 10;
    rank0_->inbox()->wake.inside = 1;
    rank0_->inbox()->wake.sleepers = 1;
  }
  shm::RequestLayout& Request(uint32_t index, RequestState state, shm::RequestKind kind) {
    shm::RequestLayout& request = rank0_->request(index);
    request.state = static_cast<uint32_t>(state);
    request.kind = static_cast<uint32_t>(kind);
    request.peer = 1;
    request.size_bytes = 1 << 20;
    return request;
  }
  control::RankWait Why() {
    control::WhyReply reply;
    const Status status = daemon_.Why("job", &reply);
    EXPECT_TRUE(status.ok()) << status.message();
    return reply.ranks_size() == 1 ? reply.ranks(0) : control::RankWait();
  }
  std::string Step() {
    const control::RankWait why = Why();
    return why.reasons_size() == 1 ? why.reasons(0).step() : "";
  }
  shm::TransferLayout& Transfer(uint32_t index) {
    return reinterpret_cast<shm::TransferLayout*>(reinterpret_cast<std::byte*>(rank0_->inbox()) +
                                                  shm::InboxTransferOffset(2))[index];
  }

  TemporaryDirectory directory_;
  TestDaemon daemon_;
  std::unique_ptr<TestRank> rank0_;
  std::unique_ptr<TestRank> rank1_;
};

TEST_F(WhyTest, AFullLaneNamesTheRankThatDoesNotDrainIt) {
  Start(0);
  Request(1, RequestState::kQueued, shm::RequestKind::kSend);
  auto* lane = reinterpret_cast<shm::LaneLayout*>(reinterpret_cast<std::byte*>(rank1_->inbox()) +
                                                  shm::InboxLaneOffset(0));
  lane->producer.state = static_cast<uint32_t>(shm::LaneState::kOpen);
  lane->producer.tail = shm::kLaneSlots;
  EXPECT_EQ(Step().find("queued: the lane to rank 1 is full (256 messages): rank 1 "), 0U)
      << Step();
  lane->consumer.head = 1;
  EXPECT_EQ(Step(), "queued behind earlier sends to rank 1");
  lane->consumer.head = UINT64_MAX;  // no correct rank writes this
  EXPECT_NE(Step().find("queued"), std::string::npos);
  EXPECT_EQ(Why().chain_size(), 2);
}

TEST_F(WhyTest, ACopySaysHowFarItIs) {
  Start(0);
  shm::RequestLayout& request = Request(1, RequestState::kTransferring, shm::RequestKind::kSend);
  request.transfer_rank = 0;
  request.transfer_index = 3;
  request.transfer_generation = 7;
  shm::TransferLayout& transfer = Transfer(3);
  transfer.state = static_cast<uint32_t>(shm::TransferState::kMatched);
  transfer.generation = 7;
  transfer.size_bytes = 1 << 20;
  transfer.chunk_bytes = 256 << 10;
  transfer.done_chunks = 2;
  transfer.claim = uint64_t{7} << 32 | 3;
  EXPECT_EQ(Step(), "matched; 2 of 4 chunks copied, 1 being copied");
  EXPECT_EQ(Why().reasons(0).done_bytes(), 512U << 10);
  transfer.state = static_cast<uint32_t>(shm::TransferState::kAnnounced);
  EXPECT_EQ(Step().find("announced; rank 1 has not looked at its lane (0 messages there)"), 0U);
  transfer.generation = 8;
  EXPECT_EQ(Step(), "copied; the rank notices it at its next call");
}

TEST_F(WhyTest, WhatNoCorrectRankWritesIsHarmless) {
  Start(0);
  shm::RequestLayout& request = Request(1, RequestState::kTransferring, shm::RequestKind::kSend);
  request.transfer_rank = UINT32_MAX;
  EXPECT_EQ(Step(), "matched; rank 4294967295, which has the data, is gone");
  request.transfer_rank = 0;
  request.transfer_index = UINT32_MAX;
  EXPECT_NE(Step(), "");
  request.transfer_index = 3;
  Transfer(3).state = static_cast<uint32_t>(shm::TransferState::kMatched);
  Transfer(3).size_bytes = UINT64_MAX;
  Transfer(3).done_chunks = UINT32_MAX;
  EXPECT_LE(Why().reasons(0).done_bytes(), request.size_bytes);
  request.peer = 99;
  EXPECT_EQ(Step(), "names a rank that the job does not have");
  request.peer = -1;  // a send names its peer, whatever state it is in
  for (const RequestState state : {RequestState::kQueued, RequestState::kPosted,
                                   RequestState::kTransferring, RequestState::kRemoteWait}) {
    request.state = static_cast<uint32_t>(state);
    EXPECT_EQ(Step(), "names a rank that the job does not have") << request.state;
    EXPECT_EQ(Why().chain_size(), 1);
  }
  request.kind = static_cast<uint32_t>(shm::RequestKind::kReceive);
  request.state = static_cast<uint32_t>(RequestState::kQueued);  // only sends are ever queued
  EXPECT_EQ(Step(), "names a rank that the job does not have");
  request.kind = static_cast<uint32_t>(shm::RequestKind::kSend);
  request.start_ns = UINT64_MAX;  // in the future
  EXPECT_EQ(Why().reasons(0).age_ms(), 0U);
  request.state = 12345;
  EXPECT_EQ(Why().reasons_size(), 0);
}

TEST_F(WhyTest, ATransferBetweenNodesSaysWhatTheDaemonKnows) {
  Start(1);
  shm::RequestLayout& request = Request(2, RequestState::kRemoteWait, shm::RequestKind::kReceive);
  RankReport report;
  report.transfers.push_back({true, 2, 1, 300, 1 << 20, 8'100'000'000, "a staging block"});
  report.held_ns = 5'000'000'000;
  report.arrivals_waiting = 3;
  daemon_.plane.set_rank_report(report);
  EXPECT_EQ(Step(),
            "matched; being fetched from rank 1: 300 of 1048576 bytes; waits for a staging "
            "block; nothing has moved for 8.1 s");
  const control::RankWait why = Why();
  EXPECT_EQ(why.reasons(0).done_bytes(), 300U);
  ASSERT_GE(why.troubles_size(), 2);
  EXPECT_NE(why.troubles(0).find("it has waited for the network for 5 s"), std::string::npos);
  EXPECT_NE(why.troubles(1).find("3 messages from other nodes wait"), std::string::npos);
  EXPECT_EQ(why.reasons(0).peer_state(), "absent");  // that node has not answered

  request.state = static_cast<uint32_t>(RequestState::kQueued);
  request.kind = static_cast<uint32_t>(shm::RequestKind::kSend);
  rank0_->by_rank().peers[1].sent = 72;
  rank0_->by_rank().peers[1].credited = 8;
  EXPECT_EQ(Step(),
            "queued: no credit: rank 1 has not drained the last 64 messages sent to it; "
            "ferryd has waited for the network for 5.0 s");
}

TEST_F(WhyTest, ASwitchOfPathsSaysSo) {
  Start(1);
  shm::RequestLayout& request = Request(2, RequestState::kQueued, shm::RequestKind::kSend);
  shm::PeerWords& words = rank0_->by_rank().peers[1];
  const auto step = [&](shm::PeerPath path) {
    words.path = static_cast<uint32_t>(path);
    return Step();
  };
  EXPECT_EQ(step(shm::PeerPath::kToLink),
            "queued: waits for the switch to the direct link to rank 1");
  EXPECT_EQ(step(shm::PeerPath::kToDaemon),
            "queued: waits for the switch back from the direct link to rank 1");
  EXPECT_EQ(step(shm::PeerPath::kBroken),
            "queued: waits until it has begun anew after a broken direct link with rank 1");
  EXPECT_EQ(step(shm::PeerPath::kLink), "queued behind earlier sends to rank 1");
  EXPECT_EQ(step(static_cast<shm::PeerPath>(77)), "queued behind earlier sends to rank 1");
  request.state = static_cast<uint32_t>(RequestState::kRemoteWait);
  request.kind = static_cast<uint32_t>(shm::RequestKind::kReceive);
  EXPECT_EQ(Step(), "matched; ferryd begins or ends the transfer");
  words.inward_path = static_cast<uint32_t>(shm::PeerPath::kLink);
  EXPECT_EQ(Step(), "matched; the rank fetches the data itself, by its direct link to rank 1");
  request.link_end = static_cast<uint32_t>(shm::LinkEnd::kHeld);
  EXPECT_EQ(Step(),
            "lost with the direct link; waits until the daemons know whether rank 1 is dead");
}

// Rank 1 has attached and does nothing.
TEST_F(WhyTest, WhoeverWaitsIsToldWithoutAName) {
  Start(0);
  const auto ask = [&] {
    control::WhyRequest request;
    request.set_all_ranks(true);
    control::WhyReply reply;
    EXPECT_TRUE(daemon_.Ask(&AdminStub::Why, request, &reply).ok());
    return reply;
  };
  // The request was posted when the machine started, and is not the one that it waits for.
  Request(1, RequestState::kPosted, shm::RequestKind::kReceive).start_ns = 1;
  const uint64_t up_ms = MonotonicNs() / 1'000'000;
  Request(2, RequestState::kPosted, shm::RequestKind::kReceive).start_ns =
      MonotonicNs() - 7ULL * 1'000'000'000;
  const control::WhyReply reply = ask();
  ASSERT_EQ(reply.ranks_size(), 1);
  EXPECT_EQ(reply.ranks(0).job_id(), "job");
  EXPECT_EQ(reply.ranks(0).rank(), 0U);
  EXPECT_EQ(reply.ranks(0).state(), "waits");
  EXPECT_GE(reply.ranks(0).waits_ms(), 7000U);
  EXPECT_LT(reply.ranks(0).waits_ms(), up_ms - 1);
  EXPECT_EQ(reply.ranks(0).reasons_size(), 0) << "a summary";
  rank0_->inbox()->wake.inside = 0;
  EXPECT_EQ(ask().ranks_size(), 0);
}

// A thread of the rank serves others: the rank does not wait for its receives, until a message
// comes.
TEST_F(WhyTest, ReceivesOfAThreadThatServesOthersAreNoWait) {
  Start(0);
  shm::RequestLayout& request = Request(1, RequestState::kPosted, shm::RequestKind::kReceive);
  EXPECT_EQ(Why().reasons_size(), 1);
  EXPECT_EQ(Why().chain_size(), 2);
  request.flags = shm::kRequestServes;
  EXPECT_EQ(Why().reasons_size(), 0);
  EXPECT_EQ(Why().unfinished(), 0U);
  EXPECT_EQ(Why().chain_size(), 1);
  request.state = static_cast<uint32_t>(RequestState::kLanded);
  EXPECT_EQ(Why().unfinished(), 1U);
}

// Rank 0 waits for what a thread of rank 1 answers, and rank 1's program for rank 0.
TEST_F(WhyTest, WhatAThreadOfTheOtherRankAnswersIsNoDeadlock) {
  Start(0);
  rank1_->session()->request_fresh = 10;
  rank1_->inbox()->wake.inside = 1;
  rank1_->inbox()->wake.sleepers = 1;
  shm::RequestLayout& answer = Request(1, RequestState::kPosted, shm::RequestKind::kReceive);
  shm::RequestLayout& other = rank1_->request(1);
  other.state = static_cast<uint32_t>(RequestState::kPosted);
  other.kind = static_cast<uint32_t>(shm::RequestKind::kReceive);
  other.peer = 0;
  EXPECT_TRUE(Why().deadlock());
  answer.flags = shm::kRequestServed;
  EXPECT_FALSE(Why().deadlock());
  EXPECT_EQ(Why().reasons_size(), 1);
}

// A circle is told only of ranks that are in the same calls at both looks.
TEST_F(WhyTest, AnotherCallOfTheSameFunctionIsAnotherMark) {
  Start(0);
  shm::CallRecordLayout& record = rank0_->session()->calls.slots[0];
  record.name = static_cast<uint16_t>(shm::CallName::kMpiBarrier);
  record.generation = 1;
  const uint64_t mark = Why().mark();
  EXPECT_EQ(Why().mark(), mark);
  record.generation = 2;
  EXPECT_NE(Why().mark(), mark);
}

TEST_F(WhyTest, AMatchNamesWhomItWaitsFor) {
  Start(0);
  shm::RequestLayout& request = Request(1, RequestState::kMatched, shm::RequestKind::kMatch);
  request.peer = -1;
  EXPECT_EQ(Why().chain_size(), 1);
  request.match_entry = 2;
  EXPECT_EQ(
      Step(),
      "waits until the persistent requests of a match have partners; rank 1 has still to make "
      "one");
  ASSERT_EQ(Why().chain_size(), 2);
  EXPECT_EQ(Why().chain(1), 1U);
  request.match_entry = 99;  // no rank of the job
  EXPECT_EQ(Why().chain_size(), 1);
}

TEST_F(WhyTest, APoisonedRankSaysSo) {
  Start(0);
  rank0_->inbox()->wake.poison = static_cast<int32_t>(ErrorCode::kLimitExceeded);
  const control::RankWait why = Why();
  ASSERT_EQ(why.troubles_size(), 1);
  EXPECT_EQ(why.troubles(0).find("every call of this rank fails: "), 0U);
  EXPECT_NE(why.verdict().find("without a request"), std::string::npos) << why.verdict();
}

}  // namespace
}  // namespace ferry::daemon
