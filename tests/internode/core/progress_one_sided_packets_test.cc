// Packets between daemons for one-sided operations: operations that share a packet, and packets
// that no daemon sends.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "internode/wire/wire.h"
#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"
#include "tests/internode/core/forged_packets.h"
#include "tests/internode/core/progress_one_sided_fixture.h"

namespace ferry::daemon {
namespace {

using shm::OneSidedOperation;
using shm::SignalUpdate;

// The first operation is held back in the daemon of rank 0, and others join it, until Release.
class OneSidedPacketsTest : public ProgressOneSidedTest {
 protected:
  void StartStalled(const std::vector<uint32_t>& ranks_per_node) {
    GiveFaults(0, "send.one_sided:1:stall");
    Start(ranks_per_node);
    sent_before_ = plane(0).Nic().messages_sent;
  }
  // Returns true if the daemon has read the rank's commands so far.
  bool HasRead(uint32_t of_rank) {
    const shm::LaneLayout& lane = rank(of_rank).view().layout->to_daemon;
    return Eventually([&] {
      return shm::LoadAcquire(lane.consumer.head) == shm::LoadAcquire(lane.producer.tail);
    });
  }
  // The daemon may have read the first operation and not yet have tried to send it.
  void Release() {
    ASSERT_TRUE(
        Eventually([&] { return plane(0).Faults(/*release=*/false)[0].state == "stalls"; }));
    plane(0).Faults(/*release=*/true);
  }
  uint64_t FramesSent() { return plane(0).Nic().messages_sent - sent_before_; }
  Wish PutOf(uint32_t to, uint64_t offset, const std::vector<std::byte>& data) {
    return About(to, OneSidedOperation::kPut, offset, data.size());
  }

 private:
  uint64_t sent_before_ = 0;
};

TEST_F(OneSidedPacketsTest, OperationsOfAllKindsShareOne) {
  StartStalled({1, 1});
  const std::vector<std::byte> odd = Pattern(21, 4);
  Say(0, InlinePut(1, 0, 7));
  Say(0, AtomicOn(1, OneSidedOperation::kAdd, 0, 1));
  Say(0, PutOf(1, 100, odd), &odd);
  Wish with_signal = PutOf(1, 200, odd);
  with_signal.words.signal = static_cast<uint8_t>(SignalUpdate::kAdd);
  with_signal.words.operand = 5;
  with_signal.words.compare = 8;
  with_signal.command.tag = kHeapRegion;
  Say(0, with_signal, &odd);
  Wish fetch = AtomicOn(1, OneSidedOperation::kAdd, 0, 10);
  fetch.words.answer = 3;
  fetch.words.serial = 1;
  Say(0, fetch);
  Wish get = About(1, OneSidedOperation::kGet, 100, odd.size());
  get.words.answer = 4;
  get.words.serial = 1;
  Say(0, get);
  Say(0, InlinePut(1, 16, 9));
  ASSERT_TRUE(HasRead(0));
  EXPECT_EQ(Done(0, 1), 0U);
  Release();
  ASSERT_TRUE(Comes(0, 1, 7));
  EXPECT_EQ(FramesSent(), 1U);
  EXPECT_TRUE(Failures(0).empty());
  EXPECT_EQ(Word(1, 0), 18U);
  EXPECT_EQ(std::memcmp(rank(1).heap() + 100, odd.data(), odd.size()), 0);
  EXPECT_EQ(std::memcmp(rank(1).heap() + 200, odd.data(), odd.size()), 0);
  EXPECT_EQ(Word(1, 8), 5U);
  EXPECT_EQ(Word(1, 16), 9U);
  const shm::SessionLayout& session = *rank(0).view().layout;
  EXPECT_EQ(shm::LoadAcquire(session.answers[3].serial), 1U);
  EXPECT_EQ(session.answers[3].value, 8U);
  EXPECT_EQ(shm::LoadAcquire(session.answers[4].serial), 1U);
  EXPECT_EQ(std::memcmp(session.answer_cells[4], odd.data(), odd.size()), 0);
  ExpectNothingLeft();
}

TEST_F(OneSidedPacketsTest, OneThatFailsLeavesTheOthersOfItsPacket) {
  StartStalled({1, 1});
  constexpr uint64_t kPuts = 9;
  for (uint64_t i = 1; i <= kPuts; ++i) {
    Wish put = InlinePut(1, 8 * i, i);
    put.command.context = i % 3 == 0 ? 77 : kHeapRegion;  // there is no such region
    Say(0, put);
  }
  ASSERT_TRUE(HasRead(0));
  Release();
  ASSERT_TRUE(Comes(0, 1, kPuts));
  EXPECT_EQ(FramesSent(), 1U);
  for (uint64_t i = 1; i <= kPuts; ++i) {
    EXPECT_EQ(Word(1, 8 * i), i % 3 == 0 ? 0 : i);
  }
  const std::vector<shm::OneSidedFailure> failures = Failures(0);
  ASSERT_EQ(failures.size(), kPuts / 3);
  for (uint64_t i = 0; i < failures.size(); ++i) {
    EXPECT_EQ(failures[i].first, 3 * (i + 1));
    EXPECT_EQ(failures[i].last, 3 * (i + 1));
    EXPECT_EQ(static_cast<ErrorCode>(failures[i].error), ErrorCode::kInvalidBuffer);
  }
}

// They go on in the next frame when one is full, and have packets apart when another pair of ranks,
// or a long operation, comes in between.
TEST_F(OneSidedPacketsTest, FillsFramesAndKeepsOrder) {
  StartStalled({2, 2});
  constexpr uint64_t kRounds = 200;
  for (uint64_t i = 1; i <= kRounds; ++i) {
    for (const uint32_t from : {0U, 1U}) {
      for (const uint32_t to : {2U, 3U}) {
        Say(from, InlinePut(to, 8 * from, i));
      }
      if (i % 10 == 0) {
        Wish get = About(2, OneSidedOperation::kLongGet, 0, 100'000);
        get.words.answer = static_cast<uint16_t>(i / 10);
        get.words.serial = 1;
        std::vector<std::byte> cell(sizeof(shm::Location));
        const shm::Location here = InHeap(4096);
        std::memcpy(cell.data(), &here, sizeof(here));
        Say(from, get, &cell);
      }
    }
    if (i == kRounds / 4) {
      Release();
    }
  }
  for (const uint32_t from : {0U, 1U}) {
    for (const uint32_t to : {2U, 3U}) {
      ASSERT_TRUE(Comes(from, to, kRounds));
      EXPECT_EQ(Word(to, 8 * from), kRounds);
    }
    for (uint64_t answer = 1; answer <= kRounds / 10; ++answer) {
      const shm::AnswerLayout& words = rank(from).view().layout->answers[answer];
      ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(words.serial) == 1; }));
      EXPECT_EQ(static_cast<ErrorCode>(words.error), ErrorCode::kOk);
    }
    EXPECT_TRUE(Failures(from).empty());
  }
  ExpectNothingLeft();
}

TEST_F(OneSidedPacketsTest, ACutLosesAWholePacket) {
  StartStalled({1, 1});
  for (uint64_t i = 1; i <= 5; ++i) {
    Say(0, InlinePut(1, 0, i));
  }
  ASSERT_TRUE(HasRead(0));
  Cut();
  EXPECT_EQ(ExpectFailure(0, 1, 1, 5, ErrorCode::kLinkDown), 1U);
  Release();
  ASSERT_NO_FATAL_FAILURE(Reconnect(1));
  ReturnNodes();
  Say(0, InlinePut(1, 8, 6));
  ASSERT_TRUE(Comes(0, 1, 6));
  EXPECT_EQ(Word(1, 0), 0U);
  EXPECT_EQ(Word(1, 8), 6U);
  EXPECT_EQ(Failures(0).size(), 1U);
}

// ---- What another daemon says is looked at before it is believed --------------------------------

class WrongOneSidedPacketsTest : public ProgressOneSidedTest {
 protected:
  // Of rank 0, to rank 1.
  void SayBytes(progress::PacketKind kind, std::span<const std::byte> body, uint64_t number,
                uint64_t size_bytes = 0, uint8_t stream = 0) {
    progress::PacketHeader header = ForgedHeader(0, 1, kind);
    header.source = 0;
    header.destination = 1;
    header.number = number;
    header.stream = stream;
    header.size_bytes = size_bytes;
    header.body_bytes = static_cast<uint32_t>(body.size());
    SayAsStranger(plane(1), header, body);
  }
  void ExpectDropped() {
    ++errors_;
    EXPECT_TRUE(Eventually([&] { return plane(1).Nic().errors == errors_; }))
        << plane(1).Nic().errors;
  }
  static progress::WireOneSided PutOf(uint64_t offset, uint64_t value) {
    progress::WireOneSided put{};
    put.operation = static_cast<uint8_t>(OneSidedOperation::kPut);
    put.width = 8;
    put.region = kHeapRegion;
    put.size_bytes = 8;
    put.offset = offset;
    put.operand = value;
    return put;
  }

 private:
  uint64_t errors_ = 0;
};

TEST_F(WrongOneSidedPacketsTest, AreDroppedAndChangeNothing) {
  Start({1, 1});
  const auto wrong = [&](auto&& spoil, uint64_t number = 1, uint64_t size_bytes = 0) {
    progress::WireOneSided wire = PutOf(0, 1);
    spoil(wire);
    SayBytes(progress::PacketKind::kOneSided, progress::BytesOf(wire), number, size_bytes);
    ExpectDropped();
  };
  SayBytes(progress::PacketKind::kOneSided, {}, 1);
  ExpectDropped();
  SayBytes(progress::PacketKind::kOneSided, progress::BytesOf(uint32_t{7}), 1);
  ExpectDropped();
  SayBytes(progress::PacketKind::kOneSidedDone, progress::BytesOf(uint32_t{7}), 0);
  ExpectDropped();
  wrong([](progress::WireOneSided& wire) { wire.size_bytes = 17; });  // and no data
  wrong([](progress::WireOneSided& wire) { wire.size_bytes = UINT32_MAX; });
  wrong([](progress::WireOneSided& wire) { wire.signal_region = UINT32_MAX; });
  wrong([](progress::WireOneSided& wire) { wire.operation = 200; });
  wrong([](progress::WireOneSided& wire) { wire.operation = 0; });
  wrong([](progress::WireOneSided& wire) {
    wire.operation = static_cast<uint8_t>(OneSidedOperation::kAdd);
    wire.width = 3;
    wire.size_bytes = 0;
  });
  for (const uint32_t packed : {0U, UINT32_MAX, 0x7f1300U}) {  // no operation on such elements
    wrong([packed](progress::WireOneSided& wire) {
      wire.operation = static_cast<uint8_t>(OneSidedOperation::kAccumulate);
      wire.signal_region = packed;
    });
  }
  wrong([](progress::WireOneSided& wire) {  // half an element, and all of them without operands
    wire.operation = static_cast<uint8_t>(OneSidedOperation::kAccumulate);
    wire.signal_region = 0x7f0800;
    wire.size_bytes = 12;
  });
  wrong([](progress::WireOneSided& wire) {
    wire.operation = static_cast<uint8_t>(OneSidedOperation::kAccumulate);
    wire.signal_region = 0x7f0800;
    wire.size_bytes = 24;
  });
  // Long ones have no number, and all others have one.
  wrong([](progress::WireOneSided&) {}, 0, 8);
  wrong([](progress::WireOneSided& wire) {
    wire.operation = static_cast<uint8_t>(OneSidedOperation::kLongGet);
    wire.size_bytes = 0;
  });
  wrong(
      [](progress::WireOneSided& wire) {  // and no RTS of the bytes
        wire.operation = static_cast<uint8_t>(OneSidedOperation::kLongPut);
        wire.size_bytes = 0;
      },
      0, 8);
  SayBytes(progress::PacketKind::kOneSided, progress::BytesOf(PutOf(0, 1)), 1, 0,
           progress::kOneSidedStreams);
  ExpectDropped();
  SayBytes(progress::PacketKind::kOneSidedDone,
           progress::BytesOf(progress::WireOneSidedDone{5, 0, 0, progress::kOneSidedStreams}), 0);
  ExpectDropped();
  EXPECT_EQ(Word(1, 0), 0U);
  // About operations that rank 1 and its rings have not begun.
  SayBytes(progress::PacketKind::kOneSidedDone,
           progress::BytesOf(progress::WireOneSidedDone{5, 0, 0, 0}), 0);
  SayBytes(progress::PacketKind::kOneSidedDone,
           progress::BytesOf(progress::WireOneSidedDone{5, 0, 0, 1}), 0);
  EXPECT_EQ(Done(1, 0), 0U);
  EXPECT_TRUE(told_.Get(&Told::failed_jobs).empty());
}

// Operations before the first invalid one are carried out, and none behind it.
TEST_F(WrongOneSidedPacketsTest, EndAtTheFirstOperationThatCannotBe) {
  Start({1, 1});
  progress::WireOneSided operations[3] = {PutOf(0, 1), PutOf(8, 2), PutOf(16, 3)};
  operations[1].operation = shm::kOneSidedOperations;
  SayBytes(progress::PacketKind::kOneSided, std::as_bytes(std::span(operations)), 1);
  ExpectDropped();
  EXPECT_EQ(Word(1, 0), 1U);
  EXPECT_EQ(Word(1, 8), 0U);
  EXPECT_EQ(Word(1, 16), 0U);
  // A whole one, and the beginning of another.
  const std::span<const std::byte> bytes = std::as_bytes(std::span(operations));
  SayBytes(progress::PacketKind::kOneSided, bytes.last(sizeof(progress::WireOneSided)), 1);
  EXPECT_TRUE(Eventually([&] { return shm::LoadAcquire(Word(1, 16)) == 3; }));
  SayBytes(progress::PacketKind::kOneSided, bytes.first(sizeof(progress::WireOneSided) + 8), 2);
  ExpectDropped();
}

}  // namespace
}  // namespace ferry::daemon
