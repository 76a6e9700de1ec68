// The effects of every fault that a daemon can be given (daemon/faults/), on its own side and on
// the other: errors, leftovers, other traffic, and new messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>

#include "daemon/progress/progress_plane.h"
#include "tests/daemon/test_rank.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr uint64_t kBytes = 200'000;  // many blocks
constexpr uint32_t kSender = 0;       // the victims' sender, on node 0; 1 is a bystander
constexpr uint32_t kReceiver = 2;     // the victims' receiver, on node 1; 3 is a bystander
constexpr uint32_t kSenderNode = 0;
constexpr uint32_t kReceiverNode = 1;

// The place of a fault, and the memory in which the message lies. Both nodes have some stages; only
// one of them has such a stage if the other one's memory is in its heap.
struct Fault {
  const char* point;
  uint32_t node;
  bool source_in_heap = false;
  bool destination_in_heap = false;
  // Registrations at the start, for the depot's trial.
  uint64_t before = 0;

  std::string Rule(uint64_t at, const std::string& action) const {
    return std::string(point) + ":" + std::to_string(before + at) + ":" + action;
  }
};

class ProgressFaultTest : public PlaneTest {
 protected:
  // Only `node` has the rules.
  void StartWith(uint32_t node, const std::string& rules) {
    if (!std::exchange(warm_, true)) {  // opens what libraries open once
      amend_options_ = nullptr;
      Start({1, 1});
      Stop();
    }
    descriptors_ = OpenDescriptors();
    GiveFaults(node, rules);
    Start({2, 2});
  }
  void TearDown() override {
    Release();
    Stop();
    // Sockets of workers are closed soon (disposal.h), so some may have been counted at the start.
    EXPECT_LE(SettledDescriptors(descriptors_), descriptors_);
  }

  void Release() {
    for (const auto& plane : planes_) {
      plane->Faults(/*release=*/true);
    }
  }
  std::string State(uint32_t node) { return plane(node).Faults(false)[0].state; }
  // Waits until the fault has happened.
  [[nodiscard]] bool Reaches(uint32_t node, const std::string& state) {
    return Meanwhile([&] { return State(node) == state; });
  }

  struct Message : Passage {
    std::vector<std::byte> sent = Pattern(kBytes, 3);
    std::vector<std::byte> got = std::vector<std::byte>(kBytes);
    bool destination_in_heap = false;
  };
  void Begin(Message& message, uint32_t from, uint32_t to, bool source_in_heap,
             bool destination_in_heap) {
    message.destination_in_heap = destination_in_heap;
    std::memcpy(rank(from).heap(), message.sent.data(), kBytes);
    static_cast<Passage&>(message) = PlaneTest::Begin(
        from, to, source_in_heap ? InHeap(0) : Private(message.sent.data()),
        destination_in_heap ? InHeap(kBytes) : Private(message.got.data()), kBytes);
  }
  void Begin(Message& message, const Fault& fault) {
    Begin(message, kSender, kReceiver, fault.source_in_heap, fault.destination_in_heap);
  }
  void ExpectPassed(Message& message) {
    ExpectEnd(message);
    const std::byte* where =
        message.destination_in_heap ? rank(message.to).heap() + kBytes : message.got.data();
    EXPECT_TRUE(std::equal(message.sent.begin(), message.sent.end(), where));
  }
  void Pass(uint32_t from, uint32_t to, bool source_in_heap, bool destination_in_heap) {
    Message message;
    Begin(message, from, to, source_in_heap, destination_in_heap);
    ExpectPassed(message);
  }
  // Sends small messages, and large ones that need nothing scarce.
  void BystandersGoOn() {
    EXPECT_EQ(Carry(1, 3), ErrorCode::kOk);
    Pass(1, 3, true, true);
    Pass(3, 1, true, true);
  }
  // Sends messages both ways, by all paths.
  void ExpectAsNew() {
    for (const bool source_in_heap : {false, true}) {
      for (const bool destination_in_heap : {false, true}) {
        Pass(kSender, kReceiver, source_in_heap, destination_in_heap);
        Pass(kReceiver, kSender, source_in_heap, destination_in_heap);
      }
    }
    BystandersGoOn();
    ExpectNothingLeft();
  }
  static inline bool warm_ = false;
  size_t descriptors_ = 0;
};

class FaultPointTest : public ProgressFaultTest, public testing::WithParamInterface<Fault> {};

std::string NameOf(const testing::TestParamInfo<Fault>& info) {
  std::string name = info.param.point;
  std::replace(name.begin(), name.end(), '.', '_');
  return name + (info.param.node == kSenderNode ? "_Sender" : "_Receiver");
}

// ---- Errors ------------------------------------------------------------------------------------

class FaultErrorTest : public FaultPointTest {};

TEST_P(FaultErrorTest, IsToldToBothRanksAndHarmsNobodyElse) {
  for (const uint64_t at : {1, 3}) {
    if (at > 1 && std::string(GetParam().point) == "staging.provide") {
      continue;  // happens once a job
    }
    SCOPED_TRACE(at);
    ASSERT_NO_FATAL_FAILURE(StartWith(GetParam().node, GetParam().Rule(at, "LIMIT")));
    Message message;
    Begin(message, GetParam());
    ExpectEnd(message, ErrorCode::kLimitExceeded);
    EXPECT_EQ(State(GetParam().node), "done");
    ExpectAsNew();
    EXPECT_TRUE(told_.lost_links.empty());
    Stop();
  }
}

constexpr uint64_t kTrial = 8;  // blocks of a trial at the start

INSTANTIATE_TEST_SUITE_P(
    All, FaultErrorTest,
    testing::Values(Fault{"memory.register", kSenderNode, false, true, kTrial},
                    Fault{"memory.register", kReceiverNode, true, false, kTrial},
                    Fault{"staging.provide", kSenderNode, false, true},
                    Fault{"staging.provide", kReceiverNode, true, false},
                    Fault{"staging.copy_in", kSenderNode}, Fault{"staging.copy_out", kReceiverNode},
                    Fault{"rndv_get.read", kReceiverNode},
                    Fault{"rndv_get.read", kReceiverNode, false, true},
                    Fault{"rndv_get.read", kReceiverNode, true, false}),
    [](const auto& info) {
      return NameOf(info) + (info.param.source_in_heap ? "_FromHeap" : "") +
             (info.param.destination_in_heap ? "_ToHeap" : "");
    });

TEST_F(ProgressFaultTest, AHeapThatTheNicRefusesFailsItsMessageAlone) {
  for (const uint32_t node : {kSenderNode, kReceiverNode}) {
    SCOPED_TRACE(node);
    const Fault fault{"memory.register", node, true, true, kTrial};
    ASSERT_NO_FATAL_FAILURE(StartWith(node, fault.Rule(1, "PERMISSION")));
    Message message;
    Begin(message, fault);
    ExpectEnd(message, ErrorCode::kPermissionDenied);
    const std::vector<std::string> refusals = told_.TakeRefusals();
    ASSERT_EQ(refusals.size(), 1U);
    EXPECT_THAT(refusals[0], HasSubstr("on purpose"));
    EXPECT_EQ(plane(node).Registered().entries, 0U);
    ExpectAsNew();
    EXPECT_NE(plane(node).Registered().entries, 0U);
    Stop();
  }
}

// ---- Standing still ----------------------------------------------------------------------------

class FaultStallTest : public FaultPointTest {
 protected:
  void StartStalled() {
    ASSERT_NO_FATAL_FAILURE(StartWith(GetParam().node, GetParam().Rule(1, "stall")));
    Begin(message_, GetParam());
    ASSERT_TRUE(Reaches(GetParam().node, "stalls"));
    if (!std::string(GetParam().point).starts_with("send.")) {
      BystandersGoOn();  // otherwise they wait behind it: a link keeps its order
    }
  }
  // Checks what the other rank is told when `dead` goes in the middle.
  void ExpectDeathIsTold(uint32_t dead, uint32_t living) {
    ASSERT_NO_FATAL_FAILURE(StartStalled());
    const uint32_t node = NodeOf(dead);
    auto removed = std::async(std::launch::async, [&] { RemoveRank(dead); });
    plane(1 - node).RankEnded(kJob, dead, ErrorCode::kPeerDied);
    const std::string point = GetParam().point;
    if (living == kReceiver && (point == "staging.copy_out" || point == "rndv_get.read")) {
      Release();  // its own memory is in use until then
    }
    const bool has_it_all = living == kReceiver && point == "send.result";
    EXPECT_EQ(WaitFor(living), has_it_all ? ErrorCode::kOk : ErrorCode::kPeerDied);
    Release();
    removed.wait();
    plane(node).RankEnded(kJob, dead, ErrorCode::kPeerDied);
    Pass(1, 3, false, false);
    Pass(3, 1, false, false);
    ExpectNothingLeft();
    EXPECT_TRUE(told_.lost_links.empty());
  }

  ErrorCode WaitFor(uint32_t one) {
    return rank(one).Wait(one == message_.from ? message_.send : message_.receive);
  }

  Message message_;
};

TEST_P(FaultStallTest, GoesOnWhenItIsReleased) {
  ASSERT_NO_FATAL_FAILURE(StartStalled());
  EXPECT_FALSE(rank(kSender).Test(message_.send));
  Release();
  ExpectPassed(message_);
  ExpectAsNew();
  EXPECT_TRUE(told_.lost_links.empty());
}

TEST_P(FaultStallTest, AReceiverThatDiesMeanwhileIsToldToTheSender) {
  ExpectDeathIsTold(kReceiver, kSender);
}

TEST_P(FaultStallTest, ASenderThatDiesMeanwhileIsToldToTheReceiver) {
  ExpectDeathIsTold(kSender, kReceiver);
}

INSTANTIATE_TEST_SUITE_P(
    All, FaultStallTest,
    testing::Values(Fault{"staging.provide", kSenderNode, false, true},
                    Fault{"staging.provide", kReceiverNode, true, false},
                    Fault{"staging.copy_in", kSenderNode}, Fault{"staging.copy_out", kReceiverNode},
                    Fault{"rndv_get.read", kReceiverNode}, Fault{"send.rts", kSenderNode},
                    Fault{"send.rndv_get", kReceiverNode}, Fault{"send.block_ready", kSenderNode},
                    Fault{"send.block_done", kReceiverNode}, Fault{"send.result", kReceiverNode}),
    NameOf);

// ---- Lost packets ------------------------------------------------------------------------------

class FaultLossTest : public FaultPointTest {
 protected:
  // Each rank is told once of each other one: by its next message at the latest.
  void Hear(uint32_t one, uint32_t other) {
    char letter = 'x';
    const ErrorCode heard = WaitTogether(one, rank(one).Send(other, 9, &letter, 1));
    EXPECT_TRUE(heard == ErrorCode::kLinkDown || heard == ErrorCode::kOk)
        << static_cast<int>(heard);
  }
};

TEST_P(FaultLossTest, CutsTheLinkUntilItIsJudged) {
  ASSERT_NO_FATAL_FAILURE(StartWith(GetParam().node, GetParam().Rule(1, "lose")));
  Message message;
  Begin(message, GetParam());
  ASSERT_TRUE(Reaches(GetParam().node, "done"));
  ASSERT_TRUE(Eventually([&] {
    return told_.Get(&Told::lost_links) == std::vector<uint64_t>{Incarnation(1 - GetParam().node)};
  }));
  Cut();
  // The receiver may have the whole message: then only the sender is told.
  const ErrorCode received = WaitTogether(kReceiver, message.receive);
  EXPECT_EQ(received,
            std::string(GetParam().point) == "send.result" ? ErrorCode::kOk : ErrorCode::kLinkDown);
  EXPECT_EQ(WaitTogether(kSender, message.send), ErrorCode::kLinkDown);
  ASSERT_NO_FATAL_FAILURE(Reconnect(1));
  ReturnNodes();
  for (const uint32_t rank : {0, 1}) {
    Hear(rank, 2 + rank);
    Hear(2 + rank, rank);
  }
  ExpectAsNew();
}

INSTANTIATE_TEST_SUITE_P(All, FaultLossTest,
                         testing::Values(Fault{"send.rts", kSenderNode},
                                         Fault{"send.rndv_get", kReceiverNode},
                                         Fault{"send.block_ready", kSenderNode},
                                         Fault{"send.block_done", kReceiverNode},
                                         Fault{"send.result", kReceiverNode}),
                         NameOf);

// ---- The option --------------------------------------------------------------------------------

TEST_F(ProgressFaultTest, AMistakeInTheOptionIsNoStart) {
  descriptors_ = OpenDescriptors();
  config::Options options = FastOptions();
  options.faults = "rndv_get.raed:1:kill";
  const auto plane = ProgressPlane::Create(options, nullptr);
  EXPECT_EQ(plane.status().code(), ErrorCode::kConfiguration);
}

TEST_F(ProgressFaultTest, WithoutTheOptionThereAreNone) {
  ASSERT_NO_FATAL_FAILURE(StartWith(0, ""));
  EXPECT_THAT(plane(0).Faults(true), SizeIs(0));
  ExpectAsNew();
}

}  // namespace
}  // namespace ferry::daemon
