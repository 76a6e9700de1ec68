#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "engine/session_view.h"
#include "internode/delivery/delivery.h"
#include "shm/segment.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kLocalSize = 1;
constexpr uint64_t kMaxWaiting = 10;
constexpr uint64_t kMaxAnswers = 12;
constexpr uint64_t kMaxParked = 20'000;
constexpr uint64_t kMaxNotes = 8;  // beside that

std::vector<std::byte> BytesOf(const progress::ParkedBytes& parked) {
  return {parked.data(), parked.data() + parked.size()};
}

class DeliveryTest : public testing::Test {
 protected:
  DeliveryTest()
      : fd_(std::move(*shm::CreateSegment("inbox", shm::InboxSizeBytes(kLocalSize, 16)))),
        map_(std::move(*shm::MapSegment(fd_.get(), 0))),
        delivery_(reinterpret_cast<shm::InboxLayout*>(map_.base()), kLocalSize, kMaxWaiting,
                  kMaxAnswers, kMaxParked + kMaxNotes * progress::Delivery::kNoteBytes, budget_),
        rank_(reinterpret_cast<shm::LaneLayout*>(map_.base() + shm::InboxLaneOffset(kLocalSize))) {}

  // From rank 3.
  static shm::Descriptor Make(shm::DescriptorKind kind, int32_t tag = 0, uint64_t size_bytes = 0,
                              const shm::RemoteRts& rts = {}) {
    shm::Descriptor descriptor{};
    descriptor.kind = static_cast<uint8_t>(kind);
    descriptor.source = 3;
    descriptor.tag = tag;
    descriptor.size_bytes = size_bytes;
    std::memcpy(descriptor.payload, &rts, sizeof(rts));
    return descriptor;
  }
  progress::Delivery::Result Send(int32_t tag, uint64_t size_bytes) {
    return delivery_.Deliver(Make(shm::DescriptorKind::kEager, tag, size_bytes),
                             std::vector<std::byte>(size_bytes, std::byte(tag)));
  }
  // An RTS by request `request` that carries its data.
  progress::Delivery::Result SentRts(uint32_t request, uint64_t size_bytes, bool carries = true) {
    return delivery_.Deliver(Make(shm::DescriptorKind::kRemoteRts, static_cast<int32_t>(request),
                                  size_bytes, {request, 1, 4711, {0, 0, 0}}),
                             std::vector<std::byte>(carries ? size_bytes : 0, std::byte(request)));
  }
  progress::Delivery::Result Retract(uint32_t request, uint32_t source = 3,
                                     uint32_t generation = 1) {
    shm::Descriptor retraction = Make(shm::DescriptorKind::kRetract, static_cast<int32_t>(request),
                                      0, {request, generation, 0, {}});
    retraction.source = source;
    return delivery_.Deliver(retraction);
  }
  progress::Delivery::Result Answer() {
    return delivery_.Deliver(Make(shm::DescriptorKind::kRndvGetDone));
  }
  // RTSs that take all cells; the rank may drain each, and keep its cells.
  void RtsAllRuns(bool drains = false) {
    for (uint32_t i = 0; i < shm::kLaneCells / shm::kRunCells; ++i) {
      ASSERT_EQ(SentRts(1 + i, shm::kRunBytes), progress::Delivery::Result::kTaken);
      if (drains) {
        Drain(false);
      }
    }
  }
  // Small messages that take so many slots, or cells.
  void SendMany(uint32_t count, uint64_t size_bytes) {
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(Send(static_cast<int32_t>(i), size_bytes), progress::Delivery::Result::kTaken) << i;
    }
  }
  std::vector<uint32_t> Landed() {
    std::vector<uint32_t> requests;
    delivery_.ReportLanded([&](const auto& landed) { requests.push_back(landed.send_request); });
    return requests;
  }
  // The rank drains a message; its cell stays taken unless it `receives`.
  shm::Descriptor Drain(bool receives) {
    const shm::Descriptor* next = rank_.Peek();
    if (next == nullptr) {
      ADD_FAILURE() << "the lane is empty";
      return {};
    }
    const shm::Descriptor copy = *next;
    rank_.Pop();
    if (receives && (copy.flags & shm::kFlagCell) != 0) {
      rank_.ReleaseCells(copy.cell, copy.size_bytes);
    }
    return copy;
  }
  static shm::RemoteRts RtsOf(const shm::Descriptor& descriptor) {
    shm::RemoteRts rts;
    std::memcpy(&rts, descriptor.payload, sizeof(rts));
    return rts;
  }

  UniqueFd fd_;
  shm::Mapping map_;
  const std::shared_ptr<progress::HoldBudget> budget_ = std::make_shared<progress::HoldBudget>();
  progress::Delivery delivery_;
  shm::LaneConsumer rank_;
};

TEST_F(DeliveryTest, LandsTheDataOfAnRts) {
  EXPECT_EQ(SentRts(5, 20'000), progress::Delivery::Result::kTaken);
  EXPECT_EQ(SentRts(6, 8), progress::Delivery::Result::kTaken);
  EXPECT_EQ(Landed(), (std::vector<uint32_t>{5, 6}));
  EXPECT_TRUE(Landed().empty());
  const shm::Descriptor first = Drain(false);
  EXPECT_EQ(first.kind, static_cast<uint8_t>(shm::DescriptorKind::kEager));
  EXPECT_EQ(first.size_bytes, 20'000U);
  ASSERT_TRUE(shm::LaneConsumer::IsRun(first.cell, first.size_bytes));
  EXPECT_EQ(rank_.Cell(first.cell)[0], 5);
  EXPECT_EQ(rank_.Cell(first.cell)[19'999], 5);
  EXPECT_EQ(Drain(true).payload[7], 6);
}

TEST_F(DeliveryTest, GathersAnswersWhileMoreComesForARankThatWaits) {
  shm::Wake wake(&reinterpret_cast<shm::InboxLayout*>(map_.base())->wake);
  EXPECT_FALSE(delivery_.MustReport(false));  // nothing has landed
  SentRts(5, 20'000);
  EXPECT_TRUE(
      delivery_.MustReport(true));  // the rank computes: it may be long until it says anything
  wake.Enter();
  EXPECT_FALSE(delivery_.MustReport(true));
  EXPECT_TRUE(delivery_.MustReport(false));
  SentRts(6, shm::kRunBytes);
  EXPECT_FALSE(delivery_.MustReport(true));
  SentRts(7, shm::kRunBytes);  // the senders may be waiting to send more
  EXPECT_TRUE(delivery_.MustReport(true));
  EXPECT_EQ(Landed(), (std::vector<uint32_t>{5, 6, 7}));
  EXPECT_FALSE(delivery_.has_landed());
}

TEST_F(DeliveryTest, AnswersInTheEndThoughMoreAndMoreComes) {
  shm::Wake(&reinterpret_cast<shm::InboxLayout*>(map_.base())->wake).Enter();
  for (uint32_t round = 0; round < 2; ++round) {
    SentRts(5 + round, 8);
    uint32_t turns = 1;
    while (!delivery_.MustReport(true)) {
      ASSERT_LT(++turns, 100U);
    }
    EXPECT_GT(turns, 1U);
    EXPECT_EQ(Landed(), std::vector<uint32_t>{5 + round});
  }
}

TEST_F(DeliveryTest, WaitsForARunOfCellsThatTheRankGivesBack) {
  ASSERT_NO_FATAL_FAILURE(RtsAllRuns());
  EXPECT_EQ(Landed().size(), shm::kLaneCells / shm::kRunCells);
  EXPECT_EQ(SentRts(99, shm::kRunBytes), progress::Delivery::Result::kTaken);
  EXPECT_EQ(Send(7, 8), progress::Delivery::Result::kTaken);  // behind it
  EXPECT_TRUE(Landed().empty());
  EXPECT_FALSE(delivery_.empty());
  Drain(true);
  delivery_.Flush();
  EXPECT_EQ(Landed(), std::vector<uint32_t>{99});
  EXPECT_TRUE(delivery_.empty());
}

// The data stays with its sender, which will be asked for it.
TEST_F(DeliveryTest, DropsTheDataOfAnRtsWhoseCellsTheRankHolds) {
  ASSERT_NO_FATAL_FAILURE(RtsAllRuns(/*drains=*/true));
  (void)Landed();
  EXPECT_EQ(SentRts(99, shm::kRunBytes), progress::Delivery::Result::kTaken);
  EXPECT_TRUE(delivery_.empty());
  EXPECT_TRUE(Landed().empty());
  const shm::Descriptor announced = Drain(false);
  EXPECT_EQ(announced.kind, static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts));
  const progress::Incoming* incoming = delivery_.Find(progress::IncomingId{RtsOf(announced).key});
  ASSERT_NE(incoming, nullptr);
  EXPECT_EQ(incoming->kind, progress::Incoming::Kind::kHeap);
  EXPECT_EQ(incoming->send_request, 99U);
  EXPECT_EQ(incoming->key, 4711U);
}

TEST_F(DeliveryTest, AsksOnceForWhatItsSourceRetracts) {
  ASSERT_EQ(SentRts(5, 100'000, false), progress::Delivery::Result::kTaken);
  const uint64_t key = RtsOf(Drain(true)).key;
  EXPECT_EQ(Retract(5, 4), progress::Delivery::Result::kTaken);  // of another rank
  EXPECT_EQ(Retract(6), progress::Delivery::Result::kTaken);
  EXPECT_EQ(Retract(5, 3, 2), progress::Delivery::Result::kTaken);  // another use of the request
  EXPECT_EQ(rank_.Peek(), nullptr);
  EXPECT_EQ(Retract(5), progress::Delivery::Result::kTaken);
  EXPECT_EQ(Retract(5), progress::Delivery::Result::kTaken);
  const shm::Descriptor asked = Drain(true);
  EXPECT_EQ(asked.kind, static_cast<uint8_t>(shm::DescriptorKind::kRetract));
  EXPECT_EQ(RtsOf(asked).key, key);
  EXPECT_EQ(rank_.Peek(), nullptr);
  delivery_.Forget(progress::IncomingId{key});
  ASSERT_EQ(SentRts(5, 100'000, false), progress::Delivery::Result::kTaken);
  const uint64_t next = RtsOf(Drain(true)).key;
  EXPECT_EQ(Retract(5), progress::Delivery::Result::kTaken);
  EXPECT_EQ(RtsOf(Drain(true)).key, next);
  delivery_.ForgetRtsOf(3);
  EXPECT_EQ(Retract(5), progress::Delivery::Result::kTaken);
  EXPECT_EQ(rank_.Peek(), nullptr);
}

// The RTS's data waits for cells, and lands or is dropped; only then is it clear what to ask for.
TEST_F(DeliveryTest, ARetractionWaitsBehindItsRts) {
  for (const bool lands : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(RtsAllRuns());
    EXPECT_EQ(SentRts(99, shm::kRunBytes), progress::Delivery::Result::kTaken);
    EXPECT_EQ(Retract(99), progress::Delivery::Result::kTaken);
    EXPECT_EQ(Retract(99), progress::Delivery::Result::kTaken)
        << "there are two at most, for two RTSs";
    (void)Landed();
    for (uint32_t i = 0; i < shm::kLaneCells / shm::kRunCells; ++i) {
      Drain(lands);
    }
    delivery_.Flush();
    EXPECT_TRUE(delivery_.empty());
    EXPECT_EQ(Landed().size(), lands ? 1U : 0U);
    const shm::Descriptor announced = Drain(true);
    if (!lands) {
      EXPECT_EQ(RtsOf(Drain(true)).key, RtsOf(announced).key);
    }
    EXPECT_EQ(rank_.Peek(), nullptr);
  }
}

TEST_F(DeliveryTest, NoMoreRetractionsWaitThanThereAreRts) {
  ASSERT_NO_FATAL_FAILURE(SendMany(shm::kLaneSlots, 8));
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(Retract(7), progress::Delivery::Result::kTaken);
  }
  EXPECT_TRUE(delivery_.empty());
  ASSERT_EQ(SentRts(7, 100'000, false), progress::Delivery::Result::kTaken);
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(Retract(7), progress::Delivery::Result::kTaken);
  }
  EXPECT_FALSE(delivery_.flooded());
  EXPECT_LE(delivery_.waiting(), 3U);
  delivery_.DropWaitingOf(3);
  EXPECT_EQ(delivery_.waiting(), 0U);
}

TEST_F(DeliveryTest, KeepsTheOrderWhenTheLaneIsFull) {
  ASSERT_NO_FATAL_FAILURE(SendMany(shm::kLaneSlots + kMaxWaiting, 8));
  EXPECT_FALSE(delivery_.empty());
  for (uint32_t i = 0; i < shm::kLaneSlots + kMaxWaiting; ++i) {
    EXPECT_EQ(Drain(true).tag, static_cast<int32_t>(i));
    ASSERT_EQ(delivery_.Flush(), progress::Delivery::Result::kTaken);
  }
  EXPECT_TRUE(delivery_.empty());
}

TEST_F(DeliveryTest, RefusesMoreThanCorrectSendersCause) {
  ASSERT_NO_FATAL_FAILURE(SendMany(shm::kLaneSlots + kMaxWaiting, 8));
  EXPECT_EQ(Send(1, 8), progress::Delivery::Result::kOverflow);
  // Answers have a limit of their own: the number of the rank's requests.
  EXPECT_EQ(Answer(), progress::Delivery::Result::kTaken);
}

TEST_F(DeliveryTest, WaitsForCellsOfMessagesThatTheRankHasNotDrained) {
  ASSERT_NO_FATAL_FAILURE(SendMany(shm::kLaneCells + 1, 100));
  EXPECT_FALSE(delivery_.empty());
  Drain(true);
  delivery_.Flush();
  EXPECT_TRUE(delivery_.empty());
  for (uint32_t i = 1; i <= shm::kLaneCells; ++i) {
    EXPECT_EQ(Drain(true).kind, static_cast<uint8_t>(shm::DescriptorKind::kEager));
  }
}

TEST_F(DeliveryTest, ParksWhatFindsNoCellBecauseAllAreUnexpected) {
  for (uint32_t i = 0; i < shm::kLaneCells; ++i) {
    Send(static_cast<int32_t>(i), 100);
    Drain(false);
  }
  EXPECT_EQ(Send(99, 5000), progress::Delivery::Result::kTaken);
  EXPECT_TRUE(delivery_.empty());
  const shm::Descriptor parked = Drain(false);
  EXPECT_EQ(parked.kind, static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts));
  EXPECT_EQ(parked.flags, shm::kFlagSourcePrivate);
  EXPECT_EQ(parked.tag, 99);
  EXPECT_EQ(parked.size_bytes, 5000U);
  const progress::IncomingId id{RtsOf(parked).key};
  const progress::Incoming* incoming = delivery_.Find(id);
  ASSERT_NE(incoming, nullptr);
  EXPECT_EQ(incoming->kind, progress::Incoming::Kind::kParked);
  EXPECT_EQ(incoming->source, 3U);
  EXPECT_EQ(BytesOf(incoming->parked), std::vector<std::byte>(5000, std::byte(99)));
  delivery_.ForgetRtsOf(3);  // its sender dies: the message is here all the same
  ASSERT_NE(delivery_.Find(id), nullptr);
  // Small messages need no cell.
  Send(7, 8);
  EXPECT_EQ(Drain(false).kind, static_cast<uint8_t>(shm::DescriptorKind::kEager));
}

// The rank takes nothing.
TEST_F(DeliveryTest, WhatWaitsCountsLikeWhatIsParked) {
  SendMany(shm::kLaneCells, 100);
  EXPECT_EQ(Send(1, 8000), progress::Delivery::Result::kTaken);
  EXPECT_EQ(Send(2, 8000), progress::Delivery::Result::kTaken);
  EXPECT_EQ(Send(3, 8000), progress::Delivery::Result::kQuota);
  for (uint32_t i = 0; i < shm::kLaneCells; ++i) {
    Drain(true);
  }
  EXPECT_EQ(delivery_.Flush(), progress::Delivery::Result::kTaken);
  EXPECT_TRUE(delivery_.empty());
  EXPECT_EQ(Send(4, 8000), progress::Delivery::Result::kTaken);
}

// The rank drains all, and asks for nothing.
TEST_F(DeliveryTest, NotesOfRtsCountLikeWhatIsParked) {
  constexpr uint64_t kMost = kMaxNotes + kMaxParked / progress::Delivery::kNoteBytes;
  std::vector<progress::IncomingId> notes;
  for (uint32_t request = 1; request <= kMost; ++request) {
    ASSERT_EQ(SentRts(request, 1 << 20, false), progress::Delivery::Result::kTaken) << request;
    notes.push_back(progress::IncomingId{RtsOf(Drain(false)).key});
  }
  EXPECT_EQ(SentRts(kMost + 1, 1 << 20, false), progress::Delivery::Result::kQuota);
  delivery_.Forget(notes.front());
  EXPECT_EQ(SentRts(kMost + 1, 1 << 20, false), progress::Delivery::Result::kTaken);
}

TEST_F(DeliveryTest, TheRanksOfAJobShareABudget) {
  budget_->most_bytes = 2 * progress::Delivery::kNoteBytes;
  std::optional<progress::Delivery> other;
  other.emplace(reinterpret_cast<shm::InboxLayout*>(map_.base()), kLocalSize, kMaxWaiting,
                kMaxAnswers, kMaxParked, budget_);
  for (uint32_t request = 1; request <= 2; ++request) {
    EXPECT_EQ(
        other->Deliver(Make(shm::DescriptorKind::kRemoteRts, 1, 1 << 20, {request, 1, 1, {}})),
        progress::Delivery::Result::kTaken);
  }
  EXPECT_EQ(SentRts(3, 1 << 20, false), progress::Delivery::Result::kQuota);
  other.reset();  // that rank has left
  EXPECT_EQ(SentRts(3, 1 << 20, false), progress::Delivery::Result::kTaken);
}

TEST_F(DeliveryTest, ParksUpToItsQuota) {
  for (uint32_t i = 0; i < shm::kLaneCells; ++i) {
    Send(1, 100);
    Drain(false);
  }
  EXPECT_EQ(Send(1, 8000), progress::Delivery::Result::kTaken);
  const progress::IncomingId first{RtsOf(Drain(false)).key};
  EXPECT_EQ(Send(1, 8000), progress::Delivery::Result::kTaken);
  Drain(false);
  EXPECT_EQ(Send(2, 8000), progress::Delivery::Result::kQuota);
  delivery_.Forget(first);
  EXPECT_EQ(delivery_.Flush(), progress::Delivery::Result::kTaken);
  EXPECT_EQ(Drain(false).tag, 2);
}

TEST_F(DeliveryTest, GivesTheRankANumberInPlaceOfTheKey) {
  const shm::RemoteRts rts{12, 2, 0xdeadbeefcafeU, {0, 0, 0x7000}};
  delivery_.Deliver(Make(shm::DescriptorKind::kRemoteRts, 0, 1 << 20, rts));
  const shm::RemoteRts seen = RtsOf(Drain(true));
  EXPECT_EQ(seen.send_request, 12U);
  EXPECT_NE(seen.key, rts.key);
  EXPECT_EQ(seen.where.address, 0U);
  const progress::IncomingId id{seen.key};
  const progress::Incoming* incoming = delivery_.Find(id);
  ASSERT_NE(incoming, nullptr);
  EXPECT_EQ(incoming->kind, progress::Incoming::Kind::kHeap);
  EXPECT_EQ(incoming->key, rts.key);
  EXPECT_EQ(incoming->address, 0x7000U);
  delivery_.ForgetRtsOf(3);
  EXPECT_EQ(delivery_.Find(id), nullptr);
}

TEST_F(DeliveryTest, DropsAnswersBeyondWhatACorrectRankLeavesUnread) {
  for (uint32_t i = 0; i < shm::kLaneSlots + kMaxAnswers; ++i) {
    ASSERT_EQ(Answer(), progress::Delivery::Result::kTaken);
    ASSERT_FALSE(delivery_.flooded()) << i;
  }
  EXPECT_EQ(Answer(), progress::Delivery::Result::kTaken);
  EXPECT_TRUE(delivery_.flooded());
}

// ---- Pushed messages

TEST_F(DeliveryTest, APushedMessageIsAnRtsThatStaysHere) {
  shm::Descriptor announced = Make(shm::DescriptorKind::kRemoteRts, 4, 5000, {12, 2, 0, {}});
  announced.flags = shm::kFlagPushed;
  EXPECT_EQ(delivery_.DeliverPushed(announced, std::vector<std::byte>(5000, std::byte{9})),
            progress::Delivery::Result::kTaken);
  EXPECT_FALSE(delivery_.has_landed()) << "nobody waits for an answer";
  const shm::Descriptor seen = Drain(false);
  EXPECT_EQ(seen.kind, static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts));
  EXPECT_EQ(seen.flags, shm::kFlagPushed) << "the rank has to count it";
  EXPECT_EQ(seen.size_bytes, 5000U);
  const progress::IncomingId id{RtsOf(seen).key};
  delivery_.ForgetRtsOf(3);  // it has all of it
  const progress::Incoming* incoming = delivery_.Find(id);
  ASSERT_NE(incoming, nullptr);
  EXPECT_EQ(incoming->kind, progress::Incoming::Kind::kParked);
  EXPECT_EQ(incoming->send_request, 0U);
  EXPECT_EQ(BytesOf(delivery_.TakeParked(id)), std::vector<std::byte>(5000, std::byte{9}));
}

TEST_F(DeliveryTest, PushedMessagesCountAgainstTheQuotaUntilTheyAreTaken) {
  const shm::Descriptor announced = Make(shm::DescriptorKind::kRemoteRts, 4, kMaxParked / 2);
  const std::vector<std::byte> data(kMaxParked / 2);
  EXPECT_EQ(delivery_.DeliverPushed(announced, data), progress::Delivery::Result::kTaken);
  EXPECT_EQ(delivery_.DeliverPushed(announced, data), progress::Delivery::Result::kTaken);
  progress::IncomingId arriving{};
  EXPECT_EQ(delivery_.DeliverArriving(announced, &arriving), progress::Delivery::Result::kTaken);
  EXPECT_EQ(delivery_.TryHold(arriving), nullptr);
  delivery_.Forget(progress::IncomingId{RtsOf(Drain(false)).key});
  EXPECT_NE(delivery_.TryHold(arriving), nullptr);
  EXPECT_EQ(delivery_.DeliverPushed(announced, data), progress::Delivery::Result::kQuota);
}

TEST_F(DeliveryTest, ACutForgetsPushedMessagesOfWhichTheRankHasNotHeard) {
  SendMany(shm::kLaneSlots, 8);
  shm::Descriptor announced = Make(shm::DescriptorKind::kRemoteRts, 4, kMaxParked);
  announced.flags = shm::kFlagPushed;
  const std::vector<std::byte> data(kMaxParked);
  EXPECT_EQ(delivery_.DeliverPushed(announced, data), progress::Delivery::Result::kTaken);
  EXPECT_EQ(delivery_.waiting(), 1U);
  delivery_.DropWaitingOf(3);
  EXPECT_TRUE(delivery_.empty());
  Drain(false);
  EXPECT_EQ(delivery_.DeliverPushed(announced, data), progress::Delivery::Result::kTaken)
      << "its bytes count still";
}

TEST_F(DeliveryTest, AsksForTheWorkerOnlyForWhatCannotWait) {
  Send(1, 8);
  EXPECT_TRUE(delivery_.has_news());
  EXPECT_FALSE(delivery_.Announce());
  EXPECT_FALSE(delivery_.has_news());
  EXPECT_EQ(delivery_.wake().TakeActivity(0), 1U << kLocalSize);
  Answer();
  EXPECT_TRUE(delivery_.Announce());
  delivery_.wake().Enter();
  Answer();
  EXPECT_FALSE(delivery_.Announce());  // the rank is there to see it
  delivery_.wake().Leave();
  for (uint32_t i = 0; i <= shm::kLaneSlots / 2; ++i) {
    Send(1, 8);
  }
  EXPECT_TRUE(delivery_.Announce());  // the lane fills up
}

}  // namespace
}  // namespace ferry::daemon
