// Messages between nodes that are written into receives that RTRs name: which ones, and who may ask
// for them. Early ends are in progress_rtrs_end_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "internode/wire/wire.h"
#include "shm/atomic.h"
#include "tests/internode/core/forged_packets.h"
#include "tests/internode/core/progress_rtrs_fixture.h"

namespace ferry::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---- Messages that pass

TEST_F(ProgressRtrsTest, WritesMessagesOfAllSizes) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const uint64_t reads = plane(1).Nic().reads;
  for (const uint64_t size_bytes : {uint64_t{65'537}, uint64_t{1} << 20, (uint64_t{1} << 20) + 1,
                                    (uint64_t{3} << 20) + 12'345}) {
    SCOPED_TRACE(size_bytes);
    ASSERT_NO_FATAL_FAILURE(Post(size_bytes));
    Send(size_bytes);
    ExpectEnds();
    ExpectArrived(size_bytes);
    EXPECT_EQ(receiver().MessageBytes(receive_), size_bytes);
  }
  EXPECT_EQ(plane(1).Nic().reads, reads);
  EXPECT_GE(receiver().Statistic(shm::Statistic::kWrittenMessages), 4U);
  ExpectNoHarm();
}

TEST_F(ProgressRtrsTest, CutsToTheReceiversBuffer) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const uint64_t before = writes(0);
  ASSERT_NO_FATAL_FAILURE(Post(kBytes - 1));
  receiver().heap()[kInto + kBytes - 1] = std::byte{0x5a};
  Send();
  EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kTruncated);
  EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kOk);
  EXPECT_EQ(writes(0), before + 1);
  ExpectArrived(kBytes - 1);
  EXPECT_EQ(receiver().heap()[kInto + kBytes - 1], std::byte{0x5a});
  EXPECT_EQ(receiver().MessageBytes(receive_), kBytes);
}

TEST_F(ProgressRtrsTest, ShorterAndOtherMessagesFitToo) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const uint64_t before = writes(0);
  ASSERT_NO_FATAL_FAILURE(Post());
  Send(kBytes / 2);
  ExpectEnds();
  EXPECT_EQ(writes(0), before + 1);
  for (const uint64_t size_bytes :
       {uint64_t{4}, uint64_t{20'000}}) {  // as a packet, and with an RTS
    ASSERT_NO_FATAL_FAILURE(Post());
    Send(size_bytes);
    ExpectEnds();
    ExpectArrived(size_bytes);
  }
  // Sends from private memory.
  ASSERT_NO_FATAL_FAILURE(Post());
  sent_ = Pattern(kBytes, 77);
  send_ = sender().SendFrom(receiver_, kTag, Private(sent_.data()), kBytes);
  ExpectPassed();
  EXPECT_EQ(writes(0), before + 1);
  ExpectWritten();
  ExpectNoHarm();
}

// The RTS left before the RTR came: it is read, and the RTR is dropped.
TEST_F(ProgressRtrsTest, WhenBothAreOnTheirWayTheReadWins) {
  GiveFaults(1, "send.rtr:1:stall");
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  // The first receives only open the window; the RTR that is sent stalls on its way. The
  // receives come one after the other, so that the last one's RTR is the one that is sent.
  std::deque<uint32_t> receives;
  const uint32_t pinned = gate(1).pinned;
  ASSERT_TRUE(Eventually([&] {
    receive_ = receiver().Receive(0, static_cast<int32_t>(receives.size()), InHeap(kInto), kBytes);
    receives.push_back(receive_);
    EXPECT_TRUE(Eventually([&] { return gate(1).pinned > pinned && HasBeenRead(receiver()); }));
    (void)plane(1).Inspect(kJob, 1);  // after the turn in which it was read
    return plane(1).Faults(false)[0].state == "stalls";
  }));
  Send(kBytes, static_cast<int32_t>(receives.size()) - 1);
  EXPECT_EQ(WaitTogether(1, receive_),
            ErrorCode::kOk);  // the sender learns of its end behind the RTR
  plane(1).Faults(true);
  EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kOk);
  ExpectArrived();
  EXPECT_EQ(writes(0), 0U);
  EXPECT_FALSE(HoldsRtr());
  receives.pop_back();
  for (const uint32_t receive : receives) {
    EXPECT_TRUE(receiver().Cancel(receive));
    EXPECT_EQ(WaitTogether(1, receive), ErrorCode::kCancelled);
  }
  OpenWindow();
  ExpectWritten();
}

// A message is held while its memory is being pinned. It holds up the RTR behind it, but not the
// rendezvous get behind that: by then the RTR is for a receive that is over.
TEST_F(ProgressRtrsTest, AnRtrThatARndvGetHasOvertakenGoesForNothing) {
  if (in_own_home) {
    GTEST_SKIP() << "nothing is pinned there";
  }
  constexpr uint32_t kRegion = 9;
  GiveFaults(1, "send.rtr:1000000:stall");  // which counts the RTRs
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const auto rtrs = [this] { return plane(1).Faults(false)[0].passed; };
  ASSERT_TRUE(plane(1).AddRegion(kJob, 1, MakeRegion(kRegion, kBytes)).ok());
  gate(1).pins_slowly = true;
  const uint32_t held = receiver().SendFrom(0, kTag, {kRegion, 0, 0}, kBytes);
  ASSERT_TRUE(Eventually([this] { return gate(1).pinning == 1; }));
  const uint64_t before = rtrs();
  receive_ = receiver().Receive(0, kTag, InHeap(kInto), kBytes);
  Send();
  ExpectPassed();
  gate(1).PinAtOnce();
  std::vector<std::byte> answer(kBytes);
  const uint32_t receive = sender().Receive(1, kTag, Private(answer.data()), kBytes);
  ExpectEnd({1, 0, held, receive});
  EXPECT_EQ(rtrs(), before);
  ExpectWritten();
  EXPECT_EQ(rtrs(), before + 1);
  ExpectNoHarm();
}

// ---- Cancelling --------------------------------------------------------------------------------

TEST_F(ProgressRtrsTest, ACancelledReceiveIsNotWritten) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const uint64_t before = writes(0);
  ASSERT_NO_FATAL_FAILURE(Post());
  EXPECT_TRUE(receiver().Cancel(receive_));
  EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kCancelled);
  Send();
  receive_ = receiver().Receive(0, kTag, InHeap(kInto), kBytes);
  ExpectPassed();
  EXPECT_EQ(writes(0), before);
  ExpectWritten();
  ExpectNoHarm();
}

// The rank has used the RTR that its daemon has given back already, so the message is announced.
TEST_F(ProgressRtrsTest, AnRtrThatIsGoneMakesTheMessageAnRts) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const uint64_t before = writes(0);
  sent_ = Pattern(kBytes, 5);
  std::memcpy(sender().heap() + kFrom, sent_.data(), kBytes);
  const uint32_t request = sender().NewRequest();
  shm::RequestLayout& slot = sender().Slot(request);
  slot.generation += 1;
  slot.kind = static_cast<uint32_t>(shm::RequestKind::kSend);
  slot.peer = static_cast<int32_t>(receiver_);
  slot.error = 0;
  shm::StoreRelease(slot.state, static_cast<uint32_t>(shm::RequestState::kRemoteWait));
  shm::Descriptor descriptor = MakeCommand(
      shm::DescriptorKind::kPut, shm::PutCommand{request, slot.generation, 17, 1, InHeap(kFrom)});
  descriptor.destination = receiver_;
  descriptor.tag = kTag;
  descriptor.size_bytes = kBytes;
  sender().PushToDaemon(descriptor);
  receive_ = receiver().Receive(0, kTag, InHeap(kInto), kBytes);
  send_ = request;
  ExpectPassed();
  EXPECT_EQ(writes(0), before);
}

TEST_F(ProgressRtrsTest, AReceiveThatIsBeingWrittenIsNotCancelled) {
  ASSERT_NO_FATAL_FAILURE(StartHeld());
  EXPECT_FALSE(receiver().Cancel(receive_));
  gate(0).closed = false;
  ExpectPassed();
  ExpectNoHarm();
}

// ---- What ranks may not say

struct WrongCommand {
  const char* name;
  shm::DescriptorKind kind;
  shm::RtrWords rtr;
  shm::PutCommand put;
  int32_t tag;
  uint32_t destination;
};

class WrongCommandTest : public ProgressRtrsTest,
                         public testing::WithParamInterface<WrongCommand> {};

TEST_P(WrongCommandTest, EndsItsWriterAndNobodyElse) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  const WrongCommand& wrong = GetParam();
  shm::Descriptor descriptor = wrong.kind == shm::DescriptorKind::kPut
                                   ? MakeCommand(wrong.kind, wrong.put)
                                   : MakeCommand(wrong.kind, wrong.rtr);
  descriptor.destination = wrong.destination;
  descriptor.tag = wrong.tag;
  descriptor.size_bytes = kBytes;
  sender().PushToDaemon(descriptor);
  EXPECT_TRUE(Eventually([&] { return told_.Get(&Told::violations).size() == 1; }));
  EXPECT_EQ(sender().wake().poison(), ErrorCode::kCorrupt);
  EXPECT_EQ(receiver().wake().poison(), ErrorCode::kOk);
}

constexpr auto kRtr = shm::DescriptorKind::kRtr;
constexpr auto kWithdraw = shm::DescriptorKind::kWithdraw;
constexpr auto kPut = shm::DescriptorKind::kPut;
constexpr shm::Location kHeap{kHeapRegion, 0, 0};
INSTANTIATE_TEST_SUITE_P(
    All, WrongCommandTest,
    testing::Values(WrongCommand{"NoRequest", kRtr, {0, 1, 0, kHeap}, {}, 1, 1},
                    WrongCommand{"NoSuchRequest", kRtr, {1 << 20, 1, 0, kHeap}, {}, 1, 1},
                    WrongCommand{"AnyTag", kRtr, {1, 1, 0, kHeap}, {}, -1, 1},
                    WrongCommand{"PrivateMemory", kRtr, {1, 1, 0, {}}, {}, 1, 1},
                    WrongCommand{"RtrToItself", kRtr, {1, 1, 0, kHeap}, {}, 1, 0},
                    WrongCommand{"WithdrawsNothing", kWithdraw, {0, 1, 0, {}}, {}, 1, 1},
                    WrongCommand{"WithdrawsNoRequest", kWithdraw, {1 << 20, 1, 0, {}}, {}, 1, 1},
                    WrongCommand{"NoSend", kPut, {}, {0, 1, 1, 1, kHeap}, 1, 1},
                    WrongCommand{"NoSuchSend", kPut, {}, {1 << 20, 1, 1, 1, kHeap}, 1, 1},
                    WrongCommand{"PrivateSource", kPut, {}, {1, 1, 1, 1, {}}, 1, 1},
                    WrongCommand{"PutWithAnyTag", kPut, {}, {1, 1, 1, 1, kHeap}, -1, 1},
                    WrongCommand{"PutToNobody", kPut, {}, {1, 1, 1, 1, kHeap}, 1, 77}),
    [](const auto& info) { return info.param.name; });

// The message will report it; an RTR need not end the rank.
TEST_F(ProgressRtrsTest, AReceiveBeyondItsRegionIsNotAnnounced) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  for (const shm::Location& where :
       {shm::Location{77, 0, 0}, InHeap(kHeapBytes - 10), InHeap(~uint64_t{0} - 10)}) {
    receive_ = receiver().Receive(0, kTag, where, kBytes);
    EXPECT_FALSE(HoldsRtr());
    Send();
    ExpectEnds(ErrorCode::kInvalidBuffer);
  }
  ExpectWritten();
  ExpectNoHarm();
}

// ---- What daemons may not say

class WrongPacketTest : public ProgressRtrsTest {
 protected:
  // Speaks as node 0 to the receiver's node.
  template <typename Body>
  void Say(progress::PacketKind kind, const Body& body, int32_t tag = kTag) {
    progress::PacketHeader header = ForgedHeader(/*from=*/0, /*to=*/1, kind);
    header.source = 0;
    header.destination = 1;
    header.tag = tag;
    header.size_bytes = kBytes;
    header.body_bytes = sizeof(body);
    ASSERT_NO_FATAL_FAILURE(SayAsStranger(plane(1), header, progress::BytesOf(body)));
  }
};

TEST_F(WrongPacketTest, OfAnotherSizeIsDropped) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  uint64_t errors = plane(1).Nic().errors;
  for (const progress::PacketKind kind :
       {progress::PacketKind::kRtr, progress::PacketKind::kWithdraw,
        progress::PacketKind::kWithdrawn, progress::PacketKind::kPut,
        progress::PacketKind::kPutDone, progress::PacketKind::kRetract,
        progress::PacketKind::kEnded}) {
    Say(kind, uint32_t{7});
    EXPECT_EQ(plane(1).Nic().errors, ++errors) << static_cast<int>(kind);
  }
  Say(progress::PacketKind::kRtr, progress::WireRtr{{1, 1}, 0, 1, 1}, /*tag=*/-1);
  EXPECT_EQ(plane(1).Nic().errors, ++errors);
  Say(progress::PacketKind::kPut, progress::WirePut{{1, 1}, 1, 1}, /*tag=*/-1);
  EXPECT_EQ(plane(1).Nic().errors, ++errors);
  Say(progress::PacketKind::kRetract, progress::WireSend{1, 1}, /*tag=*/-1);
  EXPECT_EQ(plane(1).Nic().errors, ++errors);
  Say(progress::PacketKind::kRetract, progress::WireSend{0, 1});
  EXPECT_EQ(plane(1).Nic().errors, ++errors);
  ExpectWritten();
}

TEST_F(WrongPacketTest, AboutNothingChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(Post());
  const uint32_t generation = receiver().Slot(receive_).generation;
  for (const progress::WireReceive& what :
       {progress::WireReceive{receive_, generation - 1}, progress::WireReceive{0, 0},
        progress::WireReceive{~0U, 1}, progress::WireReceive{receive_, generation}}) {
    Say(progress::PacketKind::kPutDone,
        progress::WirePutDone{what, 0, 1});       // for a message that was not announced
    Say(progress::PacketKind::kWithdrawn, what);  // for an RTR that was not asked for
    Say(progress::PacketKind::kRetract,
        progress::WireSend{what.request | 1, what.generation});  // nothing was announced
  }
  Send();
  ExpectPassed();
  ExpectNoHarm();
}

TEST_F(WrongPacketTest, AMessageIntoAReceiveThatIsNotAnnouncedFailsTheJob) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  Say(progress::PacketKind::kPut, progress::WirePut{{17, 1}, 1, 1});
  EXPECT_TRUE(Eventually([&] { return told_.Get(&Told::failed_jobs).size() == 1; }));
  EXPECT_THAT(told_.failed_jobs, ElementsAre(HasSubstr("has announced to it by no RTR")));
  EXPECT_THAT(told_.failures, ElementsAre(ErrorCode::kCorrupt));
}

}  // namespace
}  // namespace ferry::daemon
