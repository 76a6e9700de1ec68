// The reports of long waits, over messages that a test keeps or refuses as it likes.
#include "mpi/coll/call_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "mpi/base/connection.h"

namespace ferry::mpi {
namespace {

using client::Completion;
using client::Message;
using client::RequestHandle;
using testing::HasSubstr;
using testing::Not;

constexpr int kSelf = 70;
constexpr char kName[] = "MPI_Barrier";

// The messages that a watch sends, as in call_watch.h.
struct Notice {
  uint64_t number = 0;
  uint32_t is_question = 0;
  uint32_t reserved = 0;
  char name[48] = {};
};

struct Sent {
  int peer = 0;
  Notice notice;
};

// The messages of one rank. Sends leave while there is room. A request of a watch would be one that
// the program lacks.
class FakeMessages final : public client::Messaging {
 public:
  bool SendNow(const Message& message) override {
    if (room == 0) {
      return false;
    }
    --room;
    Sent& one = sent.emplace_back();
    one.peer = message.peer;
    EXPECT_EQ(message.size_bytes, sizeof(Notice));
    std::memcpy(&one.notice, message.buffer, sizeof(Notice));
    return true;
  }
  ErrorCode StartSend(const Message& message, RequestHandle* handle) override {
    if (SendNow(message)) {
      *handle = client::kCompletedSend;
      return ErrorCode::kOk;
    }
    return TakeRequest(handle);
  }
  ErrorCode StartReceive(const Message& message, RequestHandle* handle) override {
    if (arrived.empty()) {
      return TakeRequest(handle);
    }
    if (free_requests == 0) {
      return ErrorCode::kLimitExceeded;
    }
    Take(message);
    *handle = 7;
    return ErrorCode::kOk;
  }
  bool ReceiveNow(const Message& message, Completion* completion) override {
    if (arrived.empty() || !arrived.front().is_near) {
      return false;
    }
    *completion = Take(message);
    return true;
  }
  ErrorCode Probe(const Message& pattern, bool block, Completion* found) override {
    EXPECT_FALSE(block);
    EXPECT_EQ(pattern.peer, client::kAny);
    if (arrived.empty()) {
      return ErrorCode::kWouldBlock;
    }
    found->source = arrived.front().source;
    return ErrorCode::kOk;
  }
  void Wait(RequestHandle, Completion* completion) override { *completion = taken_; }

  ErrorCode Send(const Message&, Completion*) override { return Never(); }
  ErrorCode ReceiveUntil(const Message&, uint64_t, Completion*, RequestHandle*) override {
    return Never();
  }
  ErrorCode MakePersistent(const Message&, bool, RequestHandle*) override { return Never(); }
  ErrorCode Start(RequestHandle) override { return Never(); }
  ErrorCode FreePersistent(RequestHandle) override { return Never(); }
  bool Cancel(RequestHandle) override { return true; }
  ErrorCode ProbeMatched(const Message&, bool, MatchedReceive*) override { return Never(); }
  bool Test(RequestHandle, Completion*) override { return false; }
  bool IsComplete(RequestHandle) override { return false; }

  void Arrive(int source, const Notice& notice, bool is_near = true) {
    arrived.push_back({source, notice, is_near});
  }

  struct Arrived {
    int source = 0;
    Notice notice;
    bool is_near = true;  // from this node
  };
  uint64_t room = UINT64_MAX;
  uint32_t free_requests = 0;
  uint32_t requests_taken = 0;  // that were not over at once
  std::vector<Sent> sent;
  std::deque<Arrived> arrived;

 private:
  static ErrorCode Never() {
    ADD_FAILURE() << "a watch has no need of this call";
    return ErrorCode::kUnsupported;
  }
  ErrorCode TakeRequest(RequestHandle* handle) {
    *handle = 1000 + ++requests_taken;
    return ErrorCode::kOk;
  }
  Completion Take(const Message& message) {
    std::memcpy(message.buffer, &arrived.front().notice, sizeof(Notice));
    taken_.source = arrived.front().source;
    taken_.size_bytes = sizeof(Notice);
    arrived.pop_front();
    return taken_;
  }

  Completion taken_;
};

class FakePeers final : public client::NodePeers {
 public:
  ErrorCode PeerState(uint32_t rank) const override {
    return dead.contains(static_cast<int>(rank)) ? ErrorCode::kPeerDied : ErrorCode::kOk;
  }
  void SetThreads(bool) override {}
  bool Poll() override { return false; }
  void WaitFor(bool (*)(void*), void*, int32_t, uint64_t) override {}
  void WakeThreads() override {}
  uint32_t Expose(void*, uint64_t, shm::ElementLock*) override { return 0; }
  void Unexpose(uint32_t) override {}
  ErrorCode CopyFromPeer(uint32_t, const shm::Location&, void*, uint64_t) override {
    return ErrorCode::kUnsupported;
  }
  ErrorCode CopyToPeer(uint32_t, const shm::Location&, const void*, uint64_t) override {
    return ErrorCode::kUnsupported;
  }
  ErrorCode CopyEach(uint32_t, client::CopyDirection, std::span<const ProcessCopy>) override {
    return ErrorCode::kUnsupported;
  }
  bool IsPrivateMemoryReachable(uint32_t) const override { return false; }
  StatusOr<std::shared_ptr<std::byte>> MapPeer(uint32_t, const shm::Location&, uint64_t,
                                               bool*) override {
    return Status(ErrorCode::kUnsupported, "");
  }
  void WakePeer(uint32_t) override {}
  void Rest(uint64_t) override {}
  Status Explain(ErrorCode error) const override { return {error, ""}; }

  std::set<int> dead;
};

NumberList OneNode(size_t size) { return NumberList::Line(0, 0, size); }
NumberList FilledNodes(size_t size, size_t of_node) {
  return NumberList::Of(size, [of_node](size_t rank) { return static_cast<int>(rank / of_node); });
}

std::vector<int> PeersOnOneNode(int self, size_t size) {
  return PlanQuestions(self, OneNode(size)).peers;
}

class FakeFrontEnd final : public client::FrontEnd {
 public:
  FakeFrontEnd() {
    FrontEnd::messages = &messages;
    FrontEnd::peers = &peers;
    FrontEnd::calls = &calls_;
    rank_ = kSelf;
    options_.mpi_warn_after_ms = 1;
    LiveOn(OneNode(4096));
  }
  void LiveOn(const NumberList& node_of) { nodes_ = node_of; }
  FakeMessages messages;
  FakePeers peers;

 private:
  shm::CallBoardLayout layout_{};
  const bool has_threads_ = false;
  client::Calls calls_{&layout_, &has_threads_, nullptr};
};

class CallWatchTest : public testing::Test {
 protected:
  CallWatchTest() { front_end = &rank_; }
  ~CallWatchTest() override {
    wait_.reset();
    front_end = nullptr;
  }

  // Rank kSelf of `size` begins to wait, and listens.
  void Begin(int size) {
    comm_ = std::make_unique<Comm>(3, RankSet::Strided(0, 1, size), kSelf, Ref<ErrorHandler>());
    watch_ = std::make_unique<CallWatch>(*comm_, RankSet::Strided(0, 1, size).WorldRanks(), kSelf);
    wait_ = std::make_unique<CallWatch::Wait>(watch_.get(), CallWatch::Call{5, kName});
    Step();  // listens
  }
  // Takes the next step of the wait, when it is time.
  void Step() {
    while (CoarseMonotonicNs() < wait_->end_ns()) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(wait_->end_ns() - CoarseMonotonicNs()));
    }
    wait_->Look(nullptr);
  }
  std::string Tell() {
    testing::internal::CaptureStderr();
    Step();
    return testing::internal::GetCapturedStderr();
  }
  // Listens until nothing more can be sent.
  void ListenLong() {
    size_t before = 0;
    do {
      before = messages().sent.size() + messages().arrived.size();
      watch_->Listen();
    } while (messages().sent.size() + messages().arrived.size() != before);
  }
  std::vector<int> Asked() const {
    std::vector<int> peers;
    for (const Sent& one : rank_.messages.sent) {
      if (one.notice.is_question != 0) {
        peers.push_back(one.peer);
      }
    }
    return peers;
  }
  static Notice Of(bool is_question, uint64_t number = 5) {
    Notice notice;
    notice.number = number;
    notice.is_question = is_question ? 1 : 0;
    std::strcpy(notice.name, kName);
    return notice;
  }
  FakeMessages& messages() { return rank_.messages; }

  FakeFrontEnd rank_;
  std::unique_ptr<Comm> comm_;
  std::unique_ptr<CallWatch> watch_;
  std::unique_ptr<CallWatch::Wait> wait_;
};

TEST_F(CallWatchTest, AReportHoldsNoRequestOfTheProgram) {
  messages().room = 0;
  Begin(4096);
  Step();  // asks, but nothing can leave
  ListenLong();
  EXPECT_THAT(messages().sent, testing::IsEmpty());
  for (int turn = 0; turn < 300; ++turn) {
    messages().room = 1;
    watch_->Listen();
  }
  EXPECT_EQ(messages().requests_taken, 0U);
  // One row of 64 and one column of 64, each rank once.
  EXPECT_EQ(Asked().size(), 126U);
  const std::vector<int> asked = Asked();
  EXPECT_EQ(std::set<int>(asked.begin(), asked.end()).size(), asked.size());
}

TEST_F(CallWatchTest, ManyQuestionsLeaveInTurns) {
  Begin(4096);
  Step();
  EXPECT_LE(messages().sent.size(), 16U);
  ListenLong();
  EXPECT_EQ(Asked().size(), 126U);
}

TEST_F(CallWatchTest, WhoCouldNotBeAskedIsNotMissingButFirstTheNextTime) {
  messages().room = 3;
  Begin(71);
  Step();
  const std::vector<int> first = Asked();
  ASSERT_EQ(first.size(), 3U);
  const std::string said = Tell();
  for (const int peer : first) {
    EXPECT_THAT(said, HasSubstr(std::to_string(peer)));
  }
  EXPECT_THAT(said, HasSubstr("have not come to it"));
  EXPECT_THAT(said, Not(HasSubstr("more")));
  messages().room = UINT64_MAX;
  Step();  // asks again
  ListenLong();
  std::vector<int> all = Asked();
  all.erase(all.begin(), all.begin() + 3);
  EXPECT_EQ(all.size(), PeersOnOneNode(kSelf, 71).size());
  for (size_t i = all.size() - 3; i < all.size(); ++i) {
    EXPECT_THAT(first, testing::Contains(all[i]));
  }
}

TEST_F(CallWatchTest, AnswersThatCannotLeaveAreNotLost) {
  Begin(128);
  messages().room = 0;
  for (int peer = 64; peer < 69; ++peer) {
    messages().Arrive(peer, Of(true));
    messages().Arrive(peer, Of(true));  // asked again, before there was an answer
  }
  ListenLong();
  EXPECT_THAT(messages().arrived, testing::IsEmpty());
  messages().room = UINT64_MAX;
  ListenLong();
  std::multiset<int> answered;
  for (const Sent& one : messages().sent) {
    EXPECT_EQ(one.notice.is_question, 0U);
    EXPECT_EQ(one.notice.number, 5U);
    answered.insert(one.peer);
  }
  EXPECT_EQ(answered, (std::multiset<int>{64, 65, 66, 67, 68}));
  EXPECT_EQ(messages().requests_taken, 0U);
}

TEST_F(CallWatchTest, NobodyListensAfterTheWait) {
  Begin(71);
  wait_.reset();
  messages().Arrive(65, Of(true));
  watch_->Listen();
  EXPECT_EQ(messages().arrived.size(), 1U);
  wait_ = std::make_unique<CallWatch::Wait>(watch_.get(), CallWatch::Call{6, kName});
  watch_->Listen();
  EXPECT_EQ(messages().arrived.size(), 1U) << "it may be short";
  Step();
  watch_->Listen();
  ASSERT_EQ(messages().sent.size(), 1U);
  EXPECT_EQ(messages().sent[0].notice.number, 6U);
}

// A flood of questions is taken in turns, and the memory for answers is bounded.
TEST_F(CallWatchTest, AFloodOfQuestionsIsBounded) {
  Begin(4096);
  messages().room = 0;
  for (int peer = 100; peer < 400; ++peer) {
    messages().Arrive(peer, Of(true));
  }
  watch_->Listen();
  EXPECT_EQ(messages().arrived.size(), 300U - 16U);
  ListenLong();
  EXPECT_THAT(messages().arrived, testing::IsEmpty());
  messages().room = UINT64_MAX;
  ListenLong();
  EXPECT_EQ(messages().sent.size(), 64U);
}

TEST_F(CallWatchTest, AnswersStayWhereTheyAreWhileTheProgramHasAllRequests) {
  Begin(71);
  Step();
  ListenLong();
  for (const int peer : PeersOnOneNode(kSelf, 71)) {
    messages().Arrive(peer, Of(false), /*is_near=*/false);
  }
  const size_t before = messages().arrived.size();
  ListenLong();
  EXPECT_EQ(messages().arrived.size(), before);
  messages().free_requests = 1;
  ListenLong();
  EXPECT_THAT(messages().arrived, testing::IsEmpty());
  EXPECT_EQ(Tell(), "");  // all are in the call
  EXPECT_EQ(messages().requests_taken, 0U);
}

TEST_F(CallWatchTest, TheDeadDoNotHoldUpTheOthers) {
  const std::vector<int> peers = PeersOnOneNode(kSelf, 128);
  rank_.peers.dead.insert(peers.front());
  Begin(128);
  messages().room = 0;
  Step();
  messages().room = UINT64_MAX;
  ListenLong();
  EXPECT_GE(Asked().size(), peers.size() - 1);
}

// Rank 70 of 4,096 is in the second row, of ranks 64 to 127.
TEST_F(CallWatchTest, TheFirstOfARowReportsForIt) {
  Begin(4096);
  Step();
  ListenLong();
  for (const int peer : PeersOnOneNode(kSelf, 4096)) {
    if (peer != 64 && peer != 65 && peer != 90 && peer != 6) {
      messages().Arrive(peer, Of(false));
    }
  }
  messages().Arrive(64, Of(false, /*number=*/4));
  ListenLong();
  EXPECT_EQ(Tell(), "");  // 66 is in the call, too, and reports
  Step();
  ListenLong();
  for (const int peer : PeersOnOneNode(kSelf, 4096)) {
    if (peer > kSelf && peer != 90) {
      messages().Arrive(peer, Of(false));
    }
  }
  messages().Arrive(64, Of(false, /*number=*/4));
  ListenLong();
  const std::string said = Tell();
  EXPECT_THAT(said, HasSubstr("ranks 6, 65, 66, 67, 68, 69 and 90 have not come to it"));
  EXPECT_THAT(said, HasSubstr("rank 64 waits in MPI_Barrier, before it"));
}

// Rank 70 is the seventh of the third of 128 nodes.
TEST_F(CallWatchTest, ARankAmongManyNodesAsksItsOwnOnly) {
  rank_.LiveOn(FilledNodes(4096, 32));
  Begin(4096);
  Step();
  ListenLong();
  std::vector<int> asked = Asked();
  EXPECT_EQ(asked.size(), 31U);
  for (const int peer : asked) {
    EXPECT_EQ(peer / 32, 2) << peer;
  }
  for (const int peer : asked) {
    if (peer != 64 && peer != 71) {
      messages().Arrive(peer, Of(false));
    }
  }
  ListenLong();
  EXPECT_EQ(Tell(), "") << "65 waits, too, and reports";
  Step();
  ListenLong();
  for (const int peer : asked) {
    if (peer > kSelf && peer != 71) {
      messages().Arrive(peer, Of(false));
    }
  }
  ListenLong();
  EXPECT_THAT(Tell(), HasSubstr("ranks 64, 65, 66, 67, 68, 69 and 71 have not come to it"));
}

TEST(PlanQuestionsTest, TheFirstOfANodeAsksTheFirstOfSomeOthers) {
  const Questions questions = PlanQuestions(64, FilledNodes(4096, 32));
  std::set<int> elsewhere;
  for (const int peer : questions.peers) {
    if (peer / 32 != 2) {
      EXPECT_EQ(peer % 32, 0) << peer;
      elsewhere.insert(peer / 32);
    }
  }
  EXPECT_EQ(elsewhere, (std::set<int>{0, 1, 3, 4, 6, 10, 18, 34, 66, 98, 114, 122, 126}));
  EXPECT_EQ(questions.peers.size(), elsewhere.size() + 31);
  EXPECT_THAT(questions.speakers, testing::IsEmpty());
}

TEST(PlanQuestionsTest, InASmallCommunicatorEachAsksAllAndReports) {
  for (const size_t of_node : {64, 8, 4}) {
    const Questions questions = PlanQuestions(5, FilledNodes(64, of_node));
    EXPECT_EQ(questions.peers.size(), 63U);
    EXPECT_THAT(questions.speakers, testing::IsEmpty());
  }
  EXPECT_EQ(PlanQuestions(5, FilledNodes(64, 2)).peers, std::vector<int>{4})
      << "it has too many nodes";
}

TEST(PlanQuestionsTest, WhoeverIsAskedAsksTheAskerAndNobodyIsForgotten) {
  for (const size_t size : {1, 2, 17, 63, 64, 65, 100, 128, 4096, 5000}) {
    const std::vector<NumberList> layouts = {
        OneNode(size),
        FilledNodes(size, 1),
        FilledNodes(size, 3),
        FilledNodes(size, 32),
        FilledNodes(size, (size + 15) / 16),
        NumberList::Of(size, [](size_t rank) { return static_cast<int>(rank % 20); }),
        NumberList::Of(size, [](size_t rank) { return static_cast<int>(rank * rank % 37); }),
    };
    for (size_t layout = 0; layout < layouts.size(); ++layout) {
      const NumberList& node_of = layouts[layout];
      const size_t nodes = node_of.CountDistinct();
      const auto root = static_cast<size_t>(std::ceil(std::sqrt(size)));
      const auto step = std::max(1, static_cast<int>(size / 20));
      for (int rank = 0; rank < static_cast<int>(size); rank += step) {
        const Questions questions = PlanQuestions(rank, node_of);
        const std::vector<int>& peers = questions.peers;
        ASSERT_EQ(std::set<int>(peers.begin(), peers.end()).size(), peers.size());
        ASSERT_THAT(peers, Not(testing::Contains(rank)));
        const auto elsewhere = std::count_if(peers.begin(), peers.end(), [&](int peer) {
          return node_of[static_cast<size_t>(peer)] != node_of[static_cast<size_t>(rank)];
        });
        ASSERT_LE(peers.size() - static_cast<size_t>(elsewhere),
                  std::max<size_t>(2 * root, kGridRow + root));
        if (nodes > kMostNodesInRow) {
          ASSERT_LE(elsewhere, 2 * std::ceil(std::log2(nodes))) << size << " " << layout;
        }
        for (const int peer : peers) {
          ASSERT_THAT(PlanQuestions(peer, node_of).peers, testing::Contains(rank))
              << rank << " asks " << peer << " of " << size << " in layout " << layout;
        }
        for (const int speaker : questions.speakers) {
          ASSERT_LT(speaker, rank);
          ASSERT_THAT(peers, testing::Contains(speaker));
        }
        ASSERT_TRUE(size == 1 || !peers.empty()) << rank << " of " << size << ", " << layout;
      }
    }
  }
}

}  // namespace
}  // namespace ferry::mpi
