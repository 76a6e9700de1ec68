// Calls that send or receive one message are counted, though most of them read no clock.
#include "client/profile/measured_messages.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "client/api/measured_calls.h"
#include "common/clock.h"
#include "shm/layout/call_layout.h"
#include "shm/trace_ring.h"

namespace ferry::client {
namespace {

constexpr uint32_t kPeers = 4;
constexpr uint32_t kGroup = 7;
constexpr char kSend[] = "MPI_Send";
constexpr char kReceive[] = "MPI_Recv";

// A call of MPI_COMM_WORLD, as a front end describes it.
struct Note : CallNote {
  Note(const char* function, const Message& message)
      : CallNote(&DescribeIt), function(function), message(message) {}

  const char* const function;
  const Message& message;

 private:
  static void DescribeIt(const CallNote& note, shm::CallDescription* description) {
    const auto& call = static_cast<const Note&>(note);
    description->name = CallOf(call.function);
    description->flags = shm::kCallHasGroup | shm::kCallHasTag | shm::kCallHasBytes;
    description->group = kGroup;
    description->peer = call.message.peer == kAny ? shm::kCallAnyRank : call.message.peer;
    description->tag = call.message.tag;
    description->bytes = call.message.size_bytes;
  }
};

// The rank's own messages: each comes and goes at once, unless a test says otherwise.
class OwnMessages final : public Messaging {
 public:
  ErrorCode StartSend(const Message&, RequestHandle*) override { return ErrorCode::kUnsupported; }
  ErrorCode StartReceive(const Message&, RequestHandle*) override {
    return ErrorCode::kUnsupported;
  }
  bool SendNow(const Message&) override {
    sent_now += has_room ? 1 : 0;
    return has_room;
  }
  bool ReceiveNow(const Message&, Completion*) override { return false; }
  ErrorCode Send(const Message&, Completion*) override {
    ++sent_later;
    return ErrorCode::kOk;
  }
  ErrorCode ReceiveUntil(const Message& message, uint64_t, Completion* completion,
                         RequestHandle*) override {
    const CallNote* const note = calls->current();
    without_clock += note != nullptr && note->entered_ns == kNotReadYet ? 1 : 0;
    if (waits) {
      if (note->entered_ns == kNotReadYet) {
        calls->current()->entered_ns = MonotonicNs();  // as Client does after its first looks
      }
      calls->NoteWait();
    }
    *completion = {message.peer == kAny ? 3 : message.peer, message.tag, error, received_bytes};
    return refusal;
  }
  ErrorCode MakePersistent(const Message&, bool, RequestHandle*) override {
    return ErrorCode::kUnsupported;
  }
  ErrorCode Start(RequestHandle) override { return ErrorCode::kUnsupported; }
  ErrorCode FreePersistent(RequestHandle) override { return ErrorCode::kUnsupported; }
  bool Cancel(RequestHandle) override { return false; }
  ErrorCode Probe(const Message&, bool, Completion*) override { return ErrorCode::kWouldBlock; }
  ErrorCode ProbeMatched(const Message&, bool, MatchedReceive*) override {
    return ErrorCode::kWouldBlock;
  }
  bool Test(RequestHandle, Completion*) override { return true; }
  void Wait(RequestHandle, Completion*) override {}
  bool IsComplete(RequestHandle) override { return true; }

  Calls* calls = nullptr;
  bool has_room = true;
  bool waits = false;
  ErrorCode error = ErrorCode::kOk;
  ErrorCode refusal = ErrorCode::kOk;
  uint64_t received_bytes = 8;
  int sent_now = 0;
  int sent_later = 0;
  int without_clock = 0;
};

class MeasuredMessagesTest : public testing::Test {
 protected:
  // `traced`: with events, too.
  void Measure(bool traced) {
    if (traced) {
      events_.emplace(std::as_writable_bytes(std::span(ring_)), nullptr, &shared_);
      calls_.SetWatcher(&*events_);
      profile_.next = &*events_;
    }
    calls_.SetWatcher(&profile_);
    measured_.emplace(&own_, &calls_, &profile_, events_.has_value() ? &*events_ : nullptr, 16,
                      &shared_);
  }

  ErrorCode Send(int32_t peer, uint64_t bytes) {
    const Message message{nullptr, bytes, peer, 5, 2};
    const Caller caller{std::bit_cast<uintptr_t>(&kSend[0]), kGroup};
    if (SendNowInCall(calls_, &*measured_, caller, message)) {
      return ErrorCode::kOk;
    }
    Note note(kSend, message);
    Completion completion;
    return SendInCall(&calls_, &*measured_, caller, &note, message, &completion);
  }
  ErrorCode Receive(int32_t peer, uint64_t bytes = 16) {
    const Message message{nullptr, bytes, peer, 5, 2};
    const Caller caller{std::bit_cast<uintptr_t>(&kReceive[0]), kGroup};
    Note note(kReceive, message);
    Completion completion;
    const ErrorCode error =
        ReceiveInCall(&calls_, &*measured_, caller, &note, message, &completion);
    EXPECT_EQ(calls_.current(), nullptr);
    return error;
  }
  // Returns the place where such calls have been counted; zeros: there is none.
  shm::ProfileCall Counted(const char* function, int32_t peer) const {
    shm::ProfileCall found{};
    for (const shm::ProfileCall& call : layout().calls) {
      if (call.count != 0 && call.peer == peer && call.group == kGroup &&
          call.name == static_cast<uint16_t>(CallOf(function))) {
        EXPECT_EQ(found.count, 0U) << "counted at two places";
        found = call;
      }
    }
    return found;
  }
  const shm::ProfileLayout& layout() const {
    return *reinterpret_cast<const shm::ProfileLayout*>(memory_.get());
  }
  const shm::ProfilePeer& Peer(uint32_t rank) const {
    return reinterpret_cast<const shm::ProfilePeer*>(&layout() + 1)[rank];
  }

  struct Free {
    void operator()(std::byte* memory) const { operator delete[](memory, std::align_val_t(128)); }
  };

  bool shared_ = false;
  static CallNote** OfThread() {
    static thread_local CallNote* current = nullptr;
    return &current;
  }
  std::unique_ptr<shm::CallBoardLayout> board_ = std::make_unique<shm::CallBoardLayout>();
  Calls calls_{board_.get(), &shared_, &OfThread};
  std::unique_ptr<std::byte[], Free> memory_{new (std::align_val_t(128))
                                                 std::byte[shm::ProfileBytes(kPeers)]{}};
  Profile profile_{reinterpret_cast<shm::ProfileLayout*>(memory_.get()), kPeers, &shared_};
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> ring_ = std::vector<Line>(4097);
  std::optional<EventLog> events_;
  OwnMessages own_;
  std::optional<MeasuredMessages> measured_;

  void SetUp() override { own_.calls = &calls_; }
};

TEST_F(MeasuredMessagesTest, CountsAllCalls) {
  Measure(false);
  constexpr int kCalls = 10'000;
  for (int i = 0; i < kCalls; ++i) {
    ASSERT_EQ(Send(1 + i % 2, 8), ErrorCode::kOk);
    ASSERT_EQ(Receive(kAny), ErrorCode::kOk);
  }
  EXPECT_EQ(own_.sent_now, kCalls);
  EXPECT_EQ(own_.sent_later, 0);
  for (const int peer : {1, 2}) {
    EXPECT_EQ(Counted(kSend, peer).count, kCalls / 2U);
    EXPECT_EQ(Counted(kSend, peer).bytes, kCalls / 2U * 8);
    EXPECT_EQ(Counted(kSend, peer).waits, 0U);
    EXPECT_EQ(Peer(static_cast<uint32_t>(peer)).sent, kCalls / 2U);
    EXPECT_EQ(Peer(static_cast<uint32_t>(peer)).sent_bytes, kCalls / 2U * 8);
  }
  const shm::ProfileCall received = Counted(kReceive, shm::kCallAnyRank);
  EXPECT_EQ(received.count, uint64_t{kCalls});
  EXPECT_EQ(received.bytes, uint64_t{kCalls} * 16);  // of the buffer
  EXPECT_EQ(Peer(3).received, uint64_t{kCalls});
  EXPECT_EQ(Peer(3).received_bytes, uint64_t{kCalls} * 8);  // that have come
  EXPECT_EQ(layout().sizes.sent[4], uint64_t{kCalls});
  EXPECT_EQ(layout().sizes.received[4], uint64_t{kCalls});
  EXPECT_EQ(layout().totals.calls, uint64_t{kCalls} * 2);
  EXPECT_EQ(layout().totals.waited_ns, 0U);

  const uint64_t before_ns = layout().totals.ferry_ns;
  measured_->NoteEnd();
  EXPECT_GT(layout().totals.ferry_ns, before_ns);
  uint64_t sum_ns = 0;
  for (const shm::ProfileCall& call : layout().calls) {
    sum_ns += call.time_ns;
  }
  EXPECT_EQ(layout().totals.ferry_ns, sum_ns);
}

TEST_F(MeasuredMessagesTest, TellsOfCallsThatWaitInFull) {
  Measure(false);
  for (int i = 0; i < 500; ++i) {
    own_.waits = i % 5 == 4;
    ASSERT_EQ(Receive(2), ErrorCode::kOk);
  }
  const shm::ProfileCall received = Counted(kReceive, 2);
  EXPECT_EQ(received.count, 500U);
  EXPECT_EQ(received.waits, 100U);
  EXPECT_GT(received.waited_ns, 0U);
  EXPECT_LE(received.waited_ns, received.time_ns);
  EXPECT_EQ(Peer(2).received, 500U);
  EXPECT_EQ(Peer(2).late_sends, 100U);
  EXPECT_EQ(layout().totals.calls, 500U);
  EXPECT_EQ(layout().totals.waited_ns, received.waited_ns);
}

TEST_F(MeasuredMessagesTest, CountsCallsThatFail) {
  Measure(false);
  for (int i = 0; i < 300; ++i) {
    own_.error = i % 3 == 0 ? ErrorCode::kTruncated : ErrorCode::kOk;
    own_.refusal = i % 3 == 1 ? ErrorCode::kPeerDied : ErrorCode::kOk;
    ASSERT_EQ(Receive(2), own_.refusal);
  }
  EXPECT_EQ(Counted(kReceive, 2).count, 300U);
  EXPECT_EQ(layout().totals.calls, 300U);
  EXPECT_EQ(Peer(2).received, 100U);  // whole ones, as of other calls
}

TEST_F(MeasuredMessagesTest, SendsInFullWhereThereIsNoRoom) {
  Measure(false);
  for (int i = 0; i < 300; ++i) {
    own_.has_room = i % 3 != 0;
    ASSERT_EQ(Send(1, 8), ErrorCode::kOk);
  }
  EXPECT_EQ(own_.sent_now, 200);
  EXPECT_EQ(own_.sent_later, 100);
  EXPECT_EQ(Counted(kSend, 1).count, 300U);
  EXPECT_EQ(Peer(1).sent, 300U);
}

// Of calls in each other the outermost counts; messages all do.
TEST_F(MeasuredMessagesTest, CountsNoCallInAnother) {
  Measure(false);
  const Message message{nullptr, 8, 1, 5, 2};
  for (int i = 0; i < 100; ++i) {
    Note outer("MPI_Barrier", message);
    const CallScope scope(&calls_, &outer);
    const Message inner{nullptr, 8, 2, 5, 2};
    const Caller caller{std::bit_cast<uintptr_t>(&kSend[0]), kGroup};
    Note note(kSend, inner);
    Completion completion;
    EXPECT_FALSE(SendNowInCall(calls_, &*measured_, caller, inner));
    ASSERT_EQ(SendInCall(&calls_, &*measured_, caller, &note, inner, &completion), ErrorCode::kOk);
  }
  EXPECT_EQ(Counted(kSend, 2).count, 0U);
  EXPECT_EQ(Counted("MPI_Barrier", 1).count, 100U);
  EXPECT_EQ(Peer(2).sent, 100U);
}

// More kinds of calls than are remembered, and threads that call at the same time.
TEST_F(MeasuredMessagesTest, CountsManyKindsAlike) {
  Measure(false);
  for (int round = 0; round < 20; ++round) {
    shared_ = round >= 10;
    for (int32_t peer = 0; peer < 1000; ++peer) {
      ASSERT_EQ(Send(peer, 8), ErrorCode::kOk);
    }
  }
  for (int32_t peer = 0; peer < 1000; ++peer) {
    ASSERT_EQ(Counted(kSend, peer).count, 20U) << peer;
  }
  EXPECT_EQ(layout().totals.calls, 20'000U);
}

TEST_F(MeasuredMessagesTest, KeepsTheTimesOfAllCallsForTimelines) {
  Measure(true);
  constexpr int kCalls = 100;
  const uint64_t begin_ns = MonotonicNs();
  for (int i = 0; i < kCalls; ++i) {
    ASSERT_EQ(Send(1, 8), ErrorCode::kOk);
    own_.waits = i % 4 == 3;
    ASSERT_EQ(Receive(3), ErrorCode::kOk);
  }
  EXPECT_EQ(own_.without_clock, 0);
  const std::optional<shm::TraceEvents> read =
      shm::ReadTraceRing(std::as_bytes(std::span(ring_)), {.job_size = kPeers});
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->lost, 0U);
  EXPECT_EQ(read->refused, 0U);
  uint32_t of_kind[16] = {};
  for (const shm::TraceEvent& event : read->events) {
    const uint32_t number = ++of_kind[static_cast<size_t>(event.kind)];
    EXPECT_GE(event.begin_ns + 1000, begin_ns);
    if (event.kind == shm::TraceKind::kSend || event.kind == shm::TraceKind::kReceive) {
      EXPECT_EQ(event.number, number);
      EXPECT_EQ(event.group, 2U);
      EXPECT_EQ(event.bytes, 8U);
    } else if (event.kind == shm::TraceKind::kCall) {
      EXPECT_EQ(event.group, kGroup);
      EXPECT_EQ(event.tag, 5);
    }
  }
  const auto count = [&](shm::TraceKind kind) { return of_kind[static_cast<size_t>(kind)]; };
  EXPECT_EQ(count(shm::TraceKind::kSend), uint32_t{kCalls});
  EXPECT_EQ(count(shm::TraceKind::kReceive), uint32_t{kCalls});
  EXPECT_EQ(count(shm::TraceKind::kCall), uint32_t{kCalls} * 2);
  EXPECT_EQ(count(shm::TraceKind::kWait), uint32_t{kCalls} / 4);
  EXPECT_EQ(Counted(kSend, 1).count, uint64_t{kCalls});
  EXPECT_EQ(Counted(kReceive, 3).count, uint64_t{kCalls});
}

}  // namespace
}  // namespace ferry::client
