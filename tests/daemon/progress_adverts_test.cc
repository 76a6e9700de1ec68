// Messages between nodes that are written into advertised receives: what they are, who may ask for
// them, and what ends them early at each step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <random>

#include "common/clock.h"
#include "daemon/progress/wire.h"
#include "shm/atomic.h"
#include "tests/daemon/progress_fixture.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kBytes = 200'000;
constexpr int32_t kTag = 7;
constexpr uint64_t kFrom = 0;        // in the sender's heap
constexpr uint64_t kInto = 4 << 20;  // in the receiver's

class ProgressAdvertsTest : public PlaneTest {
 protected:
  ProgressAdvertsTest() { engine_options_.receiver_first_min_bytes = 1; }

  // Rank 0 is on one node, the last one on the other.
  PlaneRank& sender() { return rank(0); }
  PlaneRank& receiver() { return rank(receiver_); }
  shm::AdvertBook& book() { return sender().view().layout->adverts[receiver_]; }
  uint64_t writes(uint32_t node) { return plane(node).Nic().writes; }

  void ProgressAll() {
    for (const auto& one : ranks_) {
      one->Progress();
    }
  }
  // Until the sender holds an advert, but not for ever.
  bool HoldsAdvert(uint64_t patience_ns = 50'000'000) {
    const uint64_t end_ns = MonotonicNs() + patience_ns;
    while (shm::LoadAcquire(book().held) == 0 && MonotonicNs() < end_ns) {
      ProgressAll();
    }
    return shm::LoadAcquire(book().held) != 0;
  }
  // All that the rank has told its daemon.
  static bool HasBeenRead(PlaneRank& rank) {
    const shm::LaneLayout& lane = rank.view().layout->to_daemon;
    return shm::LoadAcquire(lane.consumer.head) == lane.producer.tail;
  }
  // The receiver's first advert only has its window made, and so may some more.
  void StartOpen(const std::vector<uint32_t>& ranks_per_node = {1, 1},
                 const config::Options& options = FastOptions()) {
    ASSERT_NO_FATAL_FAILURE(Start(ranks_per_node, options));
    receiver_ = ranks_per_node[0];
    OpenWindow();
  }
  void OpenWindow() {
    const uint64_t before = writes(0);
    ASSERT_TRUE(Eventually([&] {
      const uint32_t receive = receiver().Receive(0, 99, InHeap(kInto), kBytes);
      HoldsAdvert();
      const uint32_t send = sender().SendFrom(receiver_, 99, InHeap(kFrom), kBytes);
      EXPECT_EQ(WaitTogether(receiver_, receive), ErrorCode::kOk);
      EXPECT_EQ(WaitTogether(0, send), ErrorCode::kOk);
      return writes(0) > before;
    }));
  }

  // A receive that the sender knows of.
  void Post(uint64_t capacity_bytes = kBytes, int32_t tag = kTag) {
    std::memset(receiver().heap() + kInto, 0, capacity_bytes);
    receive_ = receiver().Receive(0, tag, InHeap(kInto), capacity_bytes);
    ASSERT_TRUE(HoldsAdvert(20'000'000'000));
  }
  void Send(uint64_t size_bytes = kBytes, int32_t tag = kTag) {
    sent_ = Pattern(size_bytes, seed_++);
    std::memcpy(sender().heap() + kFrom, sent_.data(), size_bytes);
    send_ = sender().SendFrom(receiver_, tag, InHeap(kFrom), size_bytes);
  }
  // The message is announced, and the sender's NIC takes its time over it.
  void BeginHeld() {
    ASSERT_NO_FATAL_FAILURE(Post());
    gate(0).closed = true;
    Send();
    ASSERT_TRUE(Eventually([&] {
      ProgressAll();
      return gate(0).held > 0 && StateOf(receive_) == shm::RequestState::kRemoteWait;
    }));
  }
  shm::RequestState StateOf(uint32_t request) {
    return static_cast<shm::RequestState>(shm::LoadAcquire(receiver().Slot(request).state));
  }
  void ExpectArrived(uint64_t bytes = kBytes) {
    EXPECT_TRUE(std::equal(sent_.begin(), sent_.begin() + static_cast<ptrdiff_t>(bytes),
                           receiver().heap() + kInto));
  }
  void ExpectPassed() {
    EXPECT_EQ(WaitTogether(receiver_, receive_), ErrorCode::kOk);
    EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kOk);
    ExpectArrived();
  }
  void ExpectWritten() {
    const uint64_t before = writes(0);
    ASSERT_NO_FATAL_FAILURE(Post());
    Send();
    ExpectPassed();
    EXPECT_EQ(writes(0), before + 1);
  }
  bool AllIdle() {
    return Eventually([&] {
      ProgressAll();
      return std::all_of(planes_.begin(), planes_.end(),
                         [](const auto& plane) { return plane == nullptr || plane->Idle(); });
    });
  }
  void ExpectNoHarm() {
    EXPECT_TRUE(AllIdle());
    EXPECT_THAT(told_.violations, IsEmpty());
    EXPECT_THAT(told_.failed_jobs, IsEmpty());
    EXPECT_THAT(told_.lost_links, IsEmpty());
  }
  void Cut() {
    plane(0).NodeFailed(Incarnation(1), ErrorCode::kLinkDown);
    plane(1).NodeFailed(Incarnation(0), ErrorCode::kLinkDown);
  }
  void Return() {
    ++life_;
    for (const uint32_t node : {0U, 1U}) {
      ASSERT_TRUE(Eventually([&] {
        ProgressAll();
        return Connect(node, 1 - node, life_).ok();
      }));
    }
    plane(0).NodeReturned(kJob, 1);
    plane(1).NodeReturned(kJob, 0);
    // Who has not been told of the cut yet is told by his next message.
    char letter = 'x';
    (void)WaitTogether(0, sender().Send(receiver_, 9, &letter, 1));
    const uint32_t hears = receiver().Receive(0, 10, Private(&letter), 1);
    if (!receiver().Test(hears)) {
      EXPECT_EQ(WaitTogether(0, sender().Send(receiver_, 10, &letter, 1)), ErrorCode::kOk);
    }
    (void)WaitTogether(receiver_, hears);
  }

  uint32_t receiver_ = 1;
  uint32_t receive_ = 0;
  uint32_t send_ = 0;
  uint32_t seed_ = 1;
  uint64_t life_ = 0;
  std::vector<std::byte> sent_;
};

// ---- What passes
// ---------------------------------------------------------------------------------

TEST_F(ProgressAdvertsTest, WritesMessagesOfAllSizes) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const uint64_t reads = plane(1).Nic().reads;
  for (const uint64_t size_bytes : {uint64_t{65'537}, uint64_t{1} << 20, (uint64_t{1} << 20) + 1,
                                    (uint64_t{3} << 20) + 12'345}) {
    SCOPED_TRACE(size_bytes);
    ASSERT_NO_FATAL_FAILURE(Post(size_bytes));
    Send(size_bytes);
    EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kOk);
    EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kOk);
    ExpectArrived(size_bytes);
    EXPECT_EQ(receiver().MessageBytes(receive_), size_bytes);
  }
  EXPECT_EQ(plane(1).Nic().reads, reads);
  EXPECT_GE(receiver().Statistic(shm::Statistic::kWrittenMessages), 4U);
  ExpectNoHarm();
}

TEST_F(ProgressAdvertsTest, CutsToTheReceiversBuffer) {
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

TEST_F(ProgressAdvertsTest, ShorterAndOtherMessagesFitToo) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const uint64_t before = writes(0);
  ASSERT_NO_FATAL_FAILURE(Post());
  Send(kBytes / 2);
  EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kOk);
  EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kOk);
  EXPECT_EQ(writes(0), before + 1);
  for (const uint64_t size_bytes : {uint64_t{4}, uint64_t{20'000}}) {  // a packet, and with offer
    ASSERT_NO_FATAL_FAILURE(Post());
    Send(size_bytes);
    EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kOk);
    EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kOk);
    ExpectArrived(size_bytes);
  }
  // From private memory.
  ASSERT_NO_FATAL_FAILURE(Post());
  sent_ = Pattern(kBytes, 77);
  send_ = sender().SendFrom(receiver_, kTag, Private(sent_.data()), kBytes);
  ExpectPassed();
  EXPECT_EQ(writes(0), before + 1);
  ExpectWritten();
  ExpectNoHarm();
}

// An offer that left before the advert came: it is read, and the advert is dropped.
TEST_F(ProgressAdvertsTest, WhenBothAreOnTheirWayTheReadWins) {
  amend_options_ = [](uint32_t node, config::Options& options) {
    options.faults = node == 1 ? "send.advert:1:stall" : "";
  };
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  // The first receives only have the window made; the one that is told of stalls on its way. They
  // come one after the other, so that it is the last one's advert that does.
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
  EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kOk);  // its end is told behind the advert
  plane(1).Faults(true);
  EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kOk);
  ExpectArrived();
  EXPECT_EQ(writes(0), 0U);
  EXPECT_FALSE(HoldsAdvert());
  receives.pop_back();
  for (const uint32_t receive : receives) {
    EXPECT_TRUE(receiver().Cancel(receive));
    EXPECT_EQ(WaitTogether(1, receive), ErrorCode::kCancelled);
  }
  OpenWindow();
  ExpectWritten();
}

// A message that is held, since its memory is being pinned, holds up the advert behind it, but not
// the pull behind that: by then the advert is for a receive that is over.
TEST_F(ProgressAdvertsTest, AnAdvertThatAPullHasOvertakenGoesForNothing) {
  constexpr uint32_t kRegion = 9;
  amend_options_ = [](uint32_t node, config::Options& options) {
    options.faults = node == 1 ? "send.advert:1000000:stall" : "";  // which counts them
  };
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const auto adverts = [this] { return plane(1).Faults(false)[0].passed; };
  ASSERT_TRUE(plane(1).AddRegion(kJob, 1, MakeRegion(kRegion, kBytes)).ok());
  gate(1).pins_slowly = true;
  const uint32_t held = receiver().SendFrom(0, kTag, {kRegion, 0, 0}, kBytes);
  ASSERT_TRUE(Eventually([this] { return gate(1).pinning == 1; }));
  const uint64_t before = adverts();
  receive_ = receiver().Receive(0, kTag, InHeap(kInto), kBytes);
  Send();
  ExpectPassed();
  gate(1).PinAtOnce();
  std::vector<std::byte> answer(kBytes);
  const uint32_t receive = sender().Receive(1, kTag, Private(answer.data()), kBytes);
  EXPECT_EQ(WaitTogether(0, receive), ErrorCode::kOk);
  EXPECT_EQ(WaitTogether(1, held), ErrorCode::kOk);
  EXPECT_EQ(adverts(), before);
  ExpectWritten();
  EXPECT_EQ(adverts(), before + 1);
  ExpectNoHarm();
}

// ---- Cancelling
// ----------------------------------------------------------------------------------

TEST_F(ProgressAdvertsTest, ACancelledReceiveIsNotWritten) {
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

// The rank has used the advert that its daemon has given back already: the message is offered.
TEST_F(ProgressAdvertsTest, AnAdvertThatIsGoneMakesTheMessageAnOffer) {
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
  shm::Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(shm::DescriptorKind::kPut);
  descriptor.destination = receiver_;
  descriptor.tag = kTag;
  descriptor.size_bytes = kBytes;
  const shm::PutCommand put{request, slot.generation, 17, 1, InHeap(kFrom)};
  std::memcpy(descriptor.payload, &put, sizeof(put));
  sender().PushToDaemon(descriptor);
  receive_ = receiver().Receive(0, kTag, InHeap(kInto), kBytes);
  send_ = request;
  ExpectPassed();
  EXPECT_EQ(writes(0), before);
}

TEST_F(ProgressAdvertsTest, AReceiveThatIsBeingWrittenIsNotCancelled) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(BeginHeld());
  EXPECT_FALSE(receiver().Cancel(receive_));
  gate(0).closed = false;
  ExpectPassed();
  ExpectNoHarm();
}

// ---- What ranks may not say
// ----------------------------------------------------------------------

struct WrongCommand {
  const char* name;
  shm::DescriptorKind kind;
  shm::AdvertWords advert;
  shm::PutCommand put;
  int32_t tag;
  uint32_t destination;
};

class WrongCommandTest : public ProgressAdvertsTest,
                         public testing::WithParamInterface<WrongCommand> {};

TEST_P(WrongCommandTest, EndsItsWriterAndNobodyElse) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  const WrongCommand& wrong = GetParam();
  shm::Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(wrong.kind);
  descriptor.destination = wrong.destination;
  descriptor.tag = wrong.tag;
  descriptor.size_bytes = kBytes;
  if (wrong.kind == shm::DescriptorKind::kPut) {
    std::memcpy(descriptor.payload, &wrong.put, sizeof(wrong.put));
  } else {
    std::memcpy(descriptor.payload, &wrong.advert, sizeof(wrong.advert));
  }
  sender().PushToDaemon(descriptor);
  EXPECT_TRUE(Eventually([&] {
    std::lock_guard lock(told_.mutex);
    return told_.violations.size() == 1;
  }));
  EXPECT_EQ(sender().wake().poison(), ErrorCode::kCorrupt);
  EXPECT_EQ(receiver().wake().poison(), ErrorCode::kOk);
}

constexpr auto kAdvert = shm::DescriptorKind::kAdvert;
constexpr auto kWithdraw = shm::DescriptorKind::kWithdraw;
constexpr auto kPut = shm::DescriptorKind::kPut;
constexpr shm::Location kHeap{kHeapRegion, 0, 0};
INSTANTIATE_TEST_SUITE_P(
    All, WrongCommandTest,
    testing::Values(WrongCommand{"NoRequest", kAdvert, {0, 1, 0, kHeap}, {}, 1, 1},
                    WrongCommand{"NoSuchRequest", kAdvert, {1 << 20, 1, 0, kHeap}, {}, 1, 1},
                    WrongCommand{"AnyTag", kAdvert, {1, 1, 0, kHeap}, {}, -1, 1},
                    WrongCommand{"PrivateMemory", kAdvert, {1, 1, 0, {}}, {}, 1, 1},
                    WrongCommand{"AdvertToItself", kAdvert, {1, 1, 0, kHeap}, {}, 1, 0},
                    WrongCommand{"WithdrawsNothing", kWithdraw, {0, 1, 0, {}}, {}, 1, 1},
                    WrongCommand{"WithdrawsNoRequest", kWithdraw, {1 << 20, 1, 0, {}}, {}, 1, 1},
                    WrongCommand{"NoSend", kPut, {}, {0, 1, 1, 1, kHeap}, 1, 1},
                    WrongCommand{"NoSuchSend", kPut, {}, {1 << 20, 1, 1, 1, kHeap}, 1, 1},
                    WrongCommand{"PrivateSource", kPut, {}, {1, 1, 1, 1, {}}, 1, 1},
                    WrongCommand{"PutWithAnyTag", kPut, {}, {1, 1, 1, 1, kHeap}, -1, 1},
                    WrongCommand{"PutToNobody", kPut, {}, {1, 1, 1, 1, kHeap}, 1, 77}),
    [](const auto& info) { return info.param.name; });

// The message will say so; the advert is not worth an end.
TEST_F(ProgressAdvertsTest, AReceiveBeyondItsRegionIsNotAdvertised) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  for (const shm::Location& where :
       {shm::Location{77, 0, 0}, InHeap(kHeapBytes - 10), InHeap(~uint64_t{0} - 10)}) {
    const uint32_t receive = receiver().Receive(0, kTag, where, kBytes);
    EXPECT_FALSE(HoldsAdvert());
    Send();
    EXPECT_EQ(WaitTogether(1, receive), ErrorCode::kInvalidBuffer);
    EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kInvalidBuffer);
  }
  ExpectWritten();
  ExpectNoHarm();
}

// ---- What daemons may not say
// --------------------------------------------------------------------

class WrongPacketTest : public ProgressAdvertsTest {
 protected:
  // As node 0 would, to the receiver's.
  template <typename Body>
  void Say(PacketKind kind, const Body& body, int32_t tag = kTag) {
    class Ignore final : public transport::CompletionSink {
      void OnReceive(transport::PeerId, std::span<const std::byte>) override {}
      void OnComplete(uint64_t, ErrorCode) override {}
    } ignore;
    transport::TransportOptions options;
    options.provider = "net";
    auto stranger = std::move(*transport::CreateOfiTransport(options));
    const auto peer = stranger->AddPeer(plane(1).FabricAddress());
    ASSERT_TRUE(peer.ok());
    PacketHeader header{};
    header.magic = kPacketMagic;
    header.version = kPacketVersion;
    header.kind = static_cast<uint8_t>(kind);
    header.key = 0x1000 + 0 * 16 + 1;  // what node 0 sends to node 1
    header.job_key = 0x1234;
    header.source_node = 0;
    header.source = 0;
    header.destination = 1;
    header.tag = tag;
    header.size_bytes = kBytes;
    header.body_bytes = sizeof(body);
    const uint64_t before = plane(1).Nic().messages_received;
    ASSERT_TRUE(Eventually([&] {
      stranger->Poll(ignore, 8, MonotonicNs());
      return stranger->SendMessage(*peer, BytesOf(header), BytesOf(body), 0, MonotonicNs()) ==
             ErrorCode::kOk;
    }));
    ASSERT_TRUE(Eventually([&] {
      stranger->Poll(ignore, 8, MonotonicNs());
      return plane(1).Nic().messages_received > before;
    }));
  }
};

TEST_F(WrongPacketTest, OfAnotherSizeIsDropped) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  uint64_t errors = plane(1).Nic().errors;
  for (const PacketKind kind : {PacketKind::kAdvert, PacketKind::kWithdraw, PacketKind::kWithdrawn,
                                PacketKind::kPut, PacketKind::kPutDone}) {
    Say(kind, uint32_t{7});
    EXPECT_EQ(plane(1).Nic().errors, ++errors) << static_cast<int>(kind);
  }
  Say(PacketKind::kAdvert, WireAdvert{{1, 1}, 0, 1, 1}, /*tag=*/-1);
  EXPECT_EQ(plane(1).Nic().errors, ++errors);
  Say(PacketKind::kPut, WirePut{{1, 1}, 1, 1}, /*tag=*/-1);
  EXPECT_EQ(plane(1).Nic().errors, ++errors);
  ExpectWritten();
}

TEST_F(WrongPacketTest, AboutNothingChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(Post());
  const uint32_t generation = receiver().Slot(receive_).generation;
  for (const WireReceive& what : {WireReceive{receive_, generation - 1}, WireReceive{0, 0},
                                  WireReceive{~0U, 1}, WireReceive{receive_, generation}}) {
    Say(PacketKind::kPutDone, WirePutDone{what, 0, 1});  // of what was not announced
    Say(PacketKind::kWithdrawn, what);                   // what was not asked for
  }
  Send();
  ExpectPassed();
  ExpectNoHarm();
}

TEST_F(WrongPacketTest, AMessageIntoAReceiveThatIsNotAdvertisedFailsTheJob) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  Say(PacketKind::kPut, WirePut{{17, 1}, 1, 1});
  EXPECT_TRUE(Eventually([&] {
    std::lock_guard lock(told_.mutex);
    return told_.failed_jobs.size() == 1;
  }));
  EXPECT_THAT(told_.failed_jobs, ElementsAre(HasSubstr("has not advertised")));
  EXPECT_THAT(told_.failures, ElementsAre(ErrorCode::kCorrupt));
}

// ---- Ends in the middle
// --------------------------------------------------------------------------

TEST_F(ProgressAdvertsTest, ACutInTheMiddleEndsBothSidesAndTheKey) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const uint32_t pinned = gate(1).pinned;
  ASSERT_NO_FATAL_FAILURE(BeginHeld());
  Cut();
  EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kLinkDown);
  EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kLinkDown);
  EXPECT_EQ(gate(1).pinned, pinned - 1) << "nobody writes by the old key any more";
  gate(0).closed = false;
  ASSERT_NO_FATAL_FAILURE(Return());
  OpenWindow();
  EXPECT_EQ(gate(1).pinned, pinned);
  ExpectWritten();
  ExpectNoHarm();
}

TEST_F(ProgressAdvertsTest, ACutEndsAdvertsOnBothSides) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  for (int i = 0; i < 3; ++i) {
    ASSERT_NO_FATAL_FAILURE(Post());
    Cut();
    EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kLinkDown);
    EXPECT_TRUE(Eventually([&] {
      ProgressAll();
      return shm::LoadAcquire(book().held) == 0;
    }));
    ASSERT_NO_FATAL_FAILURE(Return());
    OpenWindow();
  }
  ExpectNoHarm();
}

// The memory of a receive that failed is used for something else: what its source's NIC still has
// must not come there. Here that is a write by the key of before, after the link is back.
TEST_F(ProgressAdvertsTest, ALateWriteByTheOldKeyDoesNotArrive) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(BeginHeld());
  // Only the receiver's node notices the cut.
  plane(1).NodeFailed(Incarnation(0), ErrorCode::kLinkDown);
  EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kLinkDown);
  std::memset(receiver().heap() + kInto, 0x77, kBytes);
  gate(0).closed = false;
  EXPECT_NE(WaitTogether(0, send_), ErrorCode::kOk);
  EXPECT_TRUE(std::all_of(receiver().heap() + kInto, receiver().heap() + kInto + kBytes,
                          [](std::byte byte) { return byte == std::byte{0x77}; }));
}

TEST_F(ProgressAdvertsTest, ADeadNodeEndsBothSides) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(BeginHeld());
  plane(0).NodeFailed(Incarnation(1), ErrorCode::kNodeUnreachable);
  plane(1).NodeFailed(Incarnation(0), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kNodeUnreachable);
  gate(0).closed = false;
  ExpectNoHarm();
}

// Its daemon says how the write has ended.
TEST_F(ProgressAdvertsTest, ADeadSenderEndsTheReceiveOnceNothingIsWritten) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(BeginHeld());
  auto removed = std::async(std::launch::async, [&] { plane(0).RemoveSession(kJob, 0); });
  plane(1).RankEnded(kJob, 0, ErrorCode::kPeerDied);
  receiver().Progress();
  EXPECT_EQ(removed.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_EQ(StateOf(receive_), shm::RequestState::kRemoteWait) << "it is written still";
  gate(0).closed = false;
  removed.wait();
  EXPECT_NE(receiver().Wait(receive_), ErrorCode::kInternal);
  ExpectNoHarm();
}

TEST_F(ProgressAdvertsTest, ADeadSourceEndsAReceiveThatItKnowsOf) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(Post());
  plane(0).RemoveSession(kJob, 0);
  plane(1).RankEnded(kJob, 0, ErrorCode::kPeerDied);
  EXPECT_EQ(receiver().Wait(receive_), ErrorCode::kPeerDied);
  ExpectNoHarm();
}

// Its daemon has forgotten the job, and does not answer.
TEST_F(ProgressAdvertsTest, ASourceWhoseDaemonKnowsNothingEndsAReceive) {
  config::Options options = FastOptions();
  options.operation_timeout_ms = 400;
  ASSERT_NO_FATAL_FAILURE(StartOpen({1, 1}, options));
  ASSERT_NO_FATAL_FAILURE(Post());
  plane(0).RemoveSession(kJob, 0);
  plane(0).RemoveJob(kJob);
  plane(1).RankEnded(kJob, 0, ErrorCode::kNotFound);
  EXPECT_EQ(receiver().Wait(receive_), ErrorCode::kNotFound);
  EXPECT_TRUE(Eventually([this] { return plane(1).Idle(); }));
}

TEST_F(ProgressAdvertsTest, ADeadReceiverEndsTheSend) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(BeginHeld());
  plane(1).RemoveSession(kJob, 1);  // keeps the memory for what may come
  plane(0).RankEnded(kJob, 1, ErrorCode::kPeerDied);
  EXPECT_EQ(sender().Wait(send_), ErrorCode::kPeerDied);
  gate(0).closed = false;
  ExpectNoHarm();
}

TEST_F(ProgressAdvertsTest, TheReceiversRegionGoesWhileItIsWritten) {
  config::Options options = FastOptions();
  options.operation_timeout_ms = 500;
  ASSERT_NO_FATAL_FAILURE(StartOpen({1, 1}, options));
  for (const bool held_on : {false, true}) {
    SCOPED_TRACE(held_on);
    ASSERT_NO_FATAL_FAILURE(BeginHeld());
    auto removed =
        std::async(std::launch::async, [&] { plane(1).RemoveRegion(kJob, 1, kHeapRegion); });
    if (held_on) {  // it is not waited for: the memory is kept instead
      removed.wait();
      gate(0).closed = false;
      EXPECT_NE(WaitTogether(1, receive_), ErrorCode::kOk);
      (void)WaitTogether(0, send_);
      break;
    }
    EXPECT_EQ(removed.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    gate(0).closed = false;
    removed.wait();
    EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kOk) << "it was written before";
    EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kOk);
    ASSERT_TRUE(plane(1).AddRegion(kJob, 1, receiver().MakeHeap()).ok());
    OpenWindow();
  }
  ExpectNoHarm();
}

TEST_F(ProgressAdvertsTest, TheReceiversRegionGoesBeforeTheMessage) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(Post());
  plane(1).RemoveRegion(kJob, 1, kHeapRegion);
  Send();
  EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kInvalidBuffer);
  ASSERT_TRUE(plane(1).AddRegion(kJob, 1, receiver().MakeHeap()).ok());
  OpenWindow();
  ExpectNoHarm();
}

TEST_F(ProgressAdvertsTest, TheSendersRegionWaitsForTheWrite) {
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  ASSERT_NO_FATAL_FAILURE(BeginHeld());
  auto removed =
      std::async(std::launch::async, [&] { plane(0).RemoveRegion(kJob, 0, kHeapRegion); });
  EXPECT_EQ(removed.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  gate(0).closed = false;
  removed.wait();
  EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kInvalidBuffer);
  ASSERT_TRUE(plane(0).AddRegion(kJob, 0, sender().MakeHeap()).ok());
  ExpectWritten();
  ExpectNoHarm();
}

// ---- Faults
// --------------------------------------------------------------------------------------

struct Step {
  const char* point;
  uint32_t node;
  bool cancels;  // the receive, in place of the send
};

class FaultAtStepTest : public ProgressAdvertsTest, public testing::WithParamInterface<Step> {
 protected:
  // Passings of the point while the window opens are not known beforehand, so the rule counts from
  // a fresh start: the first advert that leaves, and what follows it.
  void StartWith(const char* action) {
    amend_options_ = [action](uint32_t node, config::Options& options) {
      options.faults =
          node == GetParam().node ? std::string(GetParam().point) + ":1:" + action : "";
    };
    ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  }
  std::string State() { return plane(GetParam().node).Faults(false)[0].state; }
  // Messages one by one until one of them meets the fault.
  void Meet(const std::string& state) {
    for (int32_t tag = 100; State() != state; ++tag) {
      ASSERT_LT(tag, 1000);
      receive_ = receiver().Receive(0, tag, InHeap(kInto), kBytes);
      if (!HoldsAdvert() && State() != state && !GetParam().cancels) {
        Send(kBytes, tag);
        ExpectPassed();
        continue;
      }
      if (GetParam().cancels) {
        EXPECT_TRUE(receiver().Cancel(receive_));
      } else {
        Send(kBytes, tag);
      }
      ASSERT_TRUE(Eventually([&] {
        ProgressAll();
        return State() == state || receiver().Test(receive_);
      }));
      if (receiver().Test(receive_) && State() != state) {
        (void)receiver().Wait(receive_);
        if (!GetParam().cancels) {
          (void)WaitTogether(0, send_);
        }
      }
    }
  }
};

TEST_P(FaultAtStepTest, GoesOnAfterAStandstill) {
  ASSERT_NO_FATAL_FAILURE(StartWith("stall"));
  ASSERT_NO_FATAL_FAILURE(Meet("stalls"));
  plane(GetParam().node).Faults(true);
  if (GetParam().cancels) {
    EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kCancelled);
  } else {
    ExpectPassed();
  }
  OpenWindow();
  ExpectWritten();
  ExpectNoHarm();
}

TEST_P(FaultAtStepTest, ALossCutsTheLinkAndEndsBothSides) {
  if (std::string(GetParam().point) == "put.write") {
    GTEST_SKIP() << "no packet: it cannot be lost, only fail";
  }
  ASSERT_NO_FATAL_FAILURE(StartWith("lose"));
  ASSERT_NO_FATAL_FAILURE(Meet("done"));
  ASSERT_TRUE(Eventually([&] {
    std::lock_guard lock(told_.mutex);
    return !told_.lost_links.empty();
  }));
  Cut();
  const ErrorCode received = WaitTogether(1, receive_);
  // The message may have come by an offer, and been read, while the advert was lost.
  const bool offered = std::string(GetParam().point) == "send.advert";
  EXPECT_TRUE(received == ErrorCode::kLinkDown || (offered && received == ErrorCode::kOk) ||
              (GetParam().cancels && received == ErrorCode::kCancelled))
      << static_cast<int>(received);
  if (!GetParam().cancels) {
    const ErrorCode sent = WaitTogether(0, send_);
    // Who has written it all is through, as with a small message.
    EXPECT_TRUE(sent == ErrorCode::kLinkDown || sent == ErrorCode::kOk) << static_cast<int>(sent);
  }
  ASSERT_NO_FATAL_FAILURE(Return());
  OpenWindow();
  ExpectWritten();
  EXPECT_TRUE(AllIdle());
}

INSTANTIATE_TEST_SUITE_P(All, FaultAtStepTest,
                         testing::Values(Step{"send.advert", 1, false}, Step{"send.put", 0, false},
                                         Step{"put.write", 0, false},
                                         Step{"send.put_done", 0, false},
                                         Step{"send.withdraw", 1, true},
                                         Step{"send.withdrawn", 0, true}),
                         [](const auto& info) {
                           std::string name = info.param.point;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

// A write that was given up may still arrive: the receive ends with its key, and others go on.
TEST_F(ProgressAdvertsTest, AWriteThatFailsEndsWithItsKey) {
  amend_options_ = [](uint32_t node, config::Options& options) {
    options.faults = node == 0 ? "put.write:2:SYSTEM" : "";
  };
  ASSERT_NO_FATAL_FAILURE(StartOpen());
  const uint32_t begun = gate(1).begun;
  // One that is out, too: it is withdrawn, and its message offered.
  const uint32_t other = receiver().Receive(0, 50, InHeap(2 << 20), kBytes);
  ASSERT_NO_FATAL_FAILURE(Post());
  Send();
  EXPECT_EQ(WaitTogether(1, receive_), ErrorCode::kSystem);
  EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kSystem);
  Send(kBytes, 50);
  EXPECT_EQ(WaitTogether(1, other), ErrorCode::kOk);
  EXPECT_EQ(WaitTogether(0, send_), ErrorCode::kOk);
  EXPECT_TRUE(std::equal(sent_.begin(), sent_.end(), receiver().heap() + (2 << 20)));
  OpenWindow();
  EXPECT_GT(gate(1).begun, begun);
  ExpectWritten();
  ExpectNoHarm();
}

TEST_F(ProgressAdvertsTest, ANicThatRefusesTheWindowCostsNothingElse) {
  amend_options_ = [](uint32_t node, config::Options& options) {
    options.faults = node == 1 ? "memory.register:9:LIMIT" : "";  // the first after the trial
  };
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  for (int i = 0; i < 3; ++i) {
    receive_ = receiver().Receive(0, kTag, InHeap(kInto), kBytes);
    EXPECT_FALSE(HoldsAdvert());
    Send();
    ExpectPassed();
  }
  EXPECT_EQ(plane(1).Faults(false)[0].state, "done");
  EXPECT_EQ(writes(0), 0U);
  plane(1).RemoveRegion(kJob, 1, kHeapRegion);
  ExpectNoHarm();
}

// ---- All at once
// ---------------------------------------------------------------------------------

// Both ways, many receives of four ranks, in any order, some with wildcards, some cancelled.
TEST_F(ProgressAdvertsTest, EveryMessageIsReceivedOnceAndInOrder) {
  ASSERT_NO_FATAL_FAILURE(StartOpen({2, 2}));
  constexpr uint64_t kSlot = 128 << 10;
  constexpr uint32_t kSlots = 16;  // of each rank's heap, at either end
  constexpr uint64_t kMax = 100'000;
  std::mt19937 random(7);
  struct Flying {
    uint32_t request;
    uint32_t slot;
  };
  struct Received {
    uint32_t request, slot;
    int32_t source, tag;
    uint64_t number;
    bool cancelled;
  };
  struct One {
    std::deque<Flying> sends;
    std::deque<Received> receives;
    std::deque<uint32_t> free_send, free_receive;
    std::map<std::pair<uint32_t, int32_t>, uint32_t> next_sent;  // by destination and tag
    // By source and tag: by the order of posting, which message it was.
    std::map<std::pair<uint32_t, int32_t>, std::map<uint64_t, uint32_t>> order;
    uint32_t sent = 0, got = 0;
  };
  std::vector<One> all(4);
  for (One& one : all) {
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      one.free_send.push_back(slot);
      one.free_receive.push_back(slot);
    }
  }
  struct Head {
    uint32_t from, number;
    int32_t tag;
    uint32_t words;
  };
  uint64_t posted = 0;
  uint32_t sends_left = 600;
  const auto collect = [&](uint32_t r) {
    One& one = all[r];
    std::erase_if(one.sends, [&](const Flying& flying) {
      if (!rank(r).Test(flying.request)) {
        return false;
      }
      EXPECT_EQ(rank(r).Wait(flying.request), ErrorCode::kOk);
      one.free_send.push_back(flying.slot);
      return true;
    });
    std::erase_if(one.receives, [&](const Received& receive) {
      if (!rank(r).Test(receive.request)) {
        return false;
      }
      const uint64_t bytes = rank(r).MessageBytes(receive.request);
      const ErrorCode error = rank(r).Wait(receive.request);
      one.free_receive.push_back(receive.slot);
      if (error == ErrorCode::kCancelled) {
        EXPECT_TRUE(receive.cancelled);
        return true;
      }
      EXPECT_EQ(error, ErrorCode::kOk);
      const std::byte* where = rank(r).heap() + (kSlots + receive.slot) * kSlot;
      Head head;
      std::memcpy(&head, where, sizeof(head));
      EXPECT_TRUE(receive.source < 0 || receive.source == static_cast<int32_t>(head.from));
      EXPECT_TRUE(receive.tag < 0 || receive.tag == head.tag);
      EXPECT_EQ(bytes, sizeof(head) + head.words * 4);
      for (uint32_t i = 0; i < head.words; ++i) {
        uint32_t word = 0;
        std::memcpy(&word, where + sizeof(head) + i * 4, 4);
        if (word != head.number * 31 + i) {
          ADD_FAILURE() << "message " << head.number << " of " << head.from << " word " << i;
          break;
        }
      }
      one.order[{head.from, head.tag}][receive.number] = head.number;
      one.got++;
      return true;
    });
  };
  const auto in_all = [&](uint32_t One::*count) {
    uint32_t sum = 0;
    for (const One& one : all) {
      sum += one.*count;
    }
    return sum;
  };
  const uint64_t end_ns = MonotonicNs() + 60'000'000'000;
  while ((sends_left > 0 || in_all(&One::got) < in_all(&One::sent)) && MonotonicNs() < end_ns &&
         !HasFailure()) {
    const uint32_t r = random() % 4;
    One& one = all[r];
    const uint32_t what = random() % 10;
    if (what < 3 && sends_left > 0 && !one.free_send.empty()) {
      const uint32_t to = (r < 2 ? 2 : 0) + random() % 2;
      const auto tag = static_cast<int32_t>(random() % 3);
      const uint32_t slot = one.free_send.front();
      one.free_send.pop_front();
      Head head{r, one.next_sent[{to, tag}]++, tag,
                random() % 3 == 0 ? 2U : static_cast<uint32_t>(kMax / 4 - random() % 5000)};
      std::byte* where = rank(r).heap() + slot * kSlot;
      std::memcpy(where, &head, sizeof(head));
      for (uint32_t i = 0; i < head.words; ++i) {
        const uint32_t word = head.number * 31 + i;
        std::memcpy(where + sizeof(head) + i * 4, &word, 4);
      }
      const uint32_t request =
          rank(r).SendFrom(to, tag, InHeap(slot * kSlot), sizeof(head) + head.words * 4);
      one.sends.push_back({request, slot});
      one.sent++;
      sends_left--;
    } else if (what < 6 && !one.free_receive.empty()) {
      const uint32_t slot = one.free_receive.front();
      one.free_receive.pop_front();
      const bool any_source = random() % 40 == 0;
      const bool any_tag = random() % 40 == 0;
      const int32_t source =
          any_source ? shm::kAnySource : static_cast<int32_t>((r < 2 ? 2 : 0) + random() % 2);
      const int32_t tag = any_tag ? shm::kAnyTag : static_cast<int32_t>(random() % 3);
      const uint32_t request = rank(r).Receive(source, tag, InHeap((kSlots + slot) * kSlot), kSlot);
      one.receives.push_back({request, slot, source, tag, posted++, false});
    } else if (what == 6 && one.receives.size() > kSlots / 2) {
      Received& receive = one.receives[random() % one.receives.size()];
      receive.cancelled |= rank(r).Cancel(receive.request);
    }
    if (sends_left == 0 && one.free_receive.empty()) {  // receives of what does not come any more
      for (Received& receive : one.receives) {
        receive.cancelled |= rank(r).Cancel(receive.request);
      }
    }
    for (uint32_t n = random() % 100; n > 0; --n) {  // who is first differs
      ProgressAll();
      sched_yield();
    }
    collect(r);
  }
  EXPECT_EQ(in_all(&One::got), in_all(&One::sent));
  for (uint32_t r = 0; r < 4; ++r) {
    for (Received& receive : all[r].receives) {
      receive.cancelled |= rank(r).Cancel(receive.request);
    }
  }
  EXPECT_TRUE(Eventually([&] {
    bool empty = true;
    for (uint32_t r = 0; r < 4; ++r) {
      rank(r).Progress();
      collect(r);
      empty &= all[r].receives.empty() && all[r].sends.empty();
    }
    return empty;
  }));
  for (const One& one : all) {
    for (const auto& [envelope, order] : one.order) {
      uint32_t next = 0;
      for (const auto& [receive, number] : order) {
        EXPECT_EQ(number, next++) << "from " << envelope.first << ", tag " << envelope.second;
      }
    }
  }
  EXPECT_GT(writes(0) + writes(1), 20U);
  EXPECT_GT(plane(0).Nic().reads + plane(1).Nic().reads, 20U);
  ExpectNoHarm();
}

}  // namespace
}  // namespace ferry::daemon
