// Conformance: messages of matched pairs, moved by the streams of both ends.
#include <memory>
#include <optional>
#include <thread>

#include "shm/atomic.h"
#include "shm/counter.h"
#include "shm/layout/pair_layout.h"
#include "shm/pair_move.h"
#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {
namespace {

// Two ends in one process, with device memory, and a stream each.
class MatchedMoves : public GpuBackendConformance {
 protected:
  void Make(uint64_t size_bytes) {
    send_end_.emplace(Pinned(sizeof(shm::PairLayout)));
    receive_end_.emplace(Pinned(sizeof(shm::PairLayout)));
    from_.emplace(Device(size_bytes));
    to_.emplace(Device(size_bytes));
    sends_ = NewStream();
    receives_ = NewStream();
    size_bytes_ = size_bytes;
  }
  void TearDown() override {
    sends_.reset();
    receives_.reset();
    for (auto* memory : {&send_end_, &receive_end_, &from_, &to_}) {
      memory->reset();  // before the backend
    }
  }

  static shm::PairLayout* EndIn(const std::optional<Memory>& memory) {
    return static_cast<shm::PairLayout*>(memory->data());
  }
  MatchedMove MoveOf(uint64_t round, bool is_send, bool meets) const {
    MatchedMove move;
    move.destination = to_->data();
    move.source = from_->data();
    move.size_bytes = size_bytes_;
    move.own = EndIn(is_send ? send_end_ : receive_end_);
    move.other = EndIn(is_send ? receive_end_ : send_end_);
    move.is_send = is_send;
    move.meets = meets;
    move.round = round;
    return move;
  }

  std::optional<Memory> send_end_;
  std::optional<Memory> receive_end_;
  std::optional<Memory> from_;
  std::optional<Memory> to_;
  std::unique_ptr<Stream> sends_;
  std::unique_ptr<Stream> receives_;
  uint64_t size_bytes_ = 0;
};

TEST_P(MatchedMoves, MeetAndMove) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{5000}, 5 * shm::kMoveChunkBytes + 17}) {
    Make(size);
    for (uint64_t round = 1; round <= 6; ++round) {
      const Bytes sent = Pattern(size, static_cast<uint8_t>(round));
      FERRY_EXPECT_OK(Upload(backend(), from_->data(), sent));
      // Either side first.
      for (const bool is_send : {round % 2 == 0, round % 2 != 0}) {
        Stream& stream = is_send ? *sends_ : *receives_;
        FERRY_EXPECT_OK(stream.LaunchMove(MoveOf(round, is_send, true)));
        FERRY_EXPECT_OK(stream.AwaitMove(MoveOf(round, is_send, true)));
      }
      FERRY_EXPECT_OK(sends_->Synchronize());
      FERRY_EXPECT_OK(receives_->Synchronize());
      ExpectHolds(to_->data(), sent);
      EXPECT_EQ(shm::Counter(&EndIn(send_end_)->done).Value(), round);
      EXPECT_EQ(shm::Counter(&EndIn(receive_end_)->done).Value(), round);
    }
    TearDown();
  }
}

// The other end is a rank that moves messages by itself.
TEST_P(MatchedMoves, MeetRanks) {
  constexpr uint64_t kRounds = 8;
  for (const uint64_t size : {uint64_t{1}, uint64_t{400}, uint64_t{5000}}) {
    Make(size);
    for (uint64_t round = 1; round <= kRounds; ++round) {
      const bool rank_sends = round % 4 >= 2;
      const Bytes sent = Pattern(size, static_cast<uint8_t>(round));
      FERRY_EXPECT_OK(Upload(backend(), from_->data(), sent));
      Stream& stream = rank_sends ? *receives_ : *sends_;
      const MatchedMove of_rank = MoveOf(round, rank_sends, true);
      const shm::PairEnds ends{of_rank.own, of_rank.other, of_rank.other_life};
      const bool rank_is_first = round % 2 == 0;
      if (rank_is_first) {
        EXPECT_FALSE(shm::BeginMove(ends, rank_sends, true));
      }
      FERRY_EXPECT_OK(stream.LaunchMove(MoveOf(round, !rank_sends, true)));
      FERRY_EXPECT_OK(stream.AwaitMove(MoveOf(round, !rank_sends, true)));
      if (!rank_is_first) {
        // The stream has begun once its end of the gate is free again, and it is the first.
        while (shm::LoadAcquire(EndIn(send_end_)->meet.value) != 2 * round - 1) {
          std::this_thread::yield();
        }
        ASSERT_TRUE(shm::BeginMove(ends, rank_sends, true));
        StatusOr<Bytes> bytes = Download(backend(), from_->data(), size);
        ASSERT_TRUE(bytes.ok());
        FERRY_EXPECT_OK(Upload(backend(), to_->data(), *bytes));
        shm::CompleteMove(ends);
      }
      FERRY_EXPECT_OK(stream.Synchronize());
      EXPECT_EQ(shm::Counter(&of_rank.own->done).Value(), round);
      ExpectHolds(to_->data(), sent);
      // No end is inside.
      EXPECT_EQ(shm::LoadAcquire(of_rank.own->gate) & shm::kGateInside, 0u);
      EXPECT_EQ(shm::LoadAcquire(of_rank.other->gate) & shm::kGateInside, 0u);
    }
    TearDown();
  }
}

// A block in another life belongs to another pair.
TEST_P(MatchedMoves, AFailureClosesTheGatesOfThisPairOnly) {
  for (const uint32_t life_meant : {0u, 7u}) {
    Make(4096);
    constexpr uint64_t kLife = 7;
    shm::StoreRelaxed(EndIn(send_end_)->gate, kLife << shm::kGateLifeShift);
    MatchedMove move = MoveOf(1, false, true);
    move.other_life = life_meant;
    FERRY_EXPECT_OK(receives_->AwaitMove(move));
    shm::Counter(&EndIn(receive_end_)->done).Fail(ErrorCode::kCancelled);
    FERRY_EXPECT_OK(receives_->Synchronize());
    EXPECT_EQ(shm::LoadAcquire(EndIn(receive_end_)->gate), shm::kGateClosed);
    EXPECT_EQ((shm::LoadAcquire(EndIn(send_end_)->gate) & shm::kGateClosed) != 0,
              life_meant == kLife);
    TearDown();
  }
}

TEST_P(MatchedMoves, ReadySendsMoveAtOnce) {
  Make(3 * shm::kMoveChunkBytes);
  const Bytes sent = Pattern(size_bytes_, 9);
  FERRY_EXPECT_OK(Upload(backend(), from_->data(), sent));
  FERRY_EXPECT_OK(receives_->AwaitMove(MoveOf(1, false, false)));
  FERRY_EXPECT_OK(sends_->LaunchMove(MoveOf(1, true, false)));
  FERRY_EXPECT_OK(sends_->AwaitMove(MoveOf(1, true, false)));
  FERRY_EXPECT_OK(sends_->Synchronize());
  FERRY_EXPECT_OK(receives_->Synchronize());
  ExpectHolds(to_->data(), sent);
}

// The memory may be anything then.
TEST_P(MatchedMoves, WithoutBytes) {
  Make(1);
  uint64_t private_memory = 0;
  for (const bool is_send : {true, false}) {
    Stream& stream = is_send ? *sends_ : *receives_;
    MatchedMove move = MoveOf(1, is_send, true);
    move.size_bytes = 0;
    move.source = nullptr;
    move.destination = &private_memory;
    FERRY_EXPECT_OK(stream.LaunchMove(move));
    FERRY_EXPECT_OK(stream.AwaitMove(move));
  }
  FERRY_EXPECT_OK(sends_->Synchronize());
  FERRY_EXPECT_OK(receives_->Synchronize());
  EXPECT_EQ(shm::Counter(&EndIn(receive_end_)->done).Value(), 1u);
}

// A failure ends the wait, and nothing moves afterwards.
TEST_P(MatchedMoves, AFailureEndsTheWaitAndClosesThePair) {
  Make(4096);
  FERRY_EXPECT_OK(receives_->LaunchMove(MoveOf(1, false, true)));
  FERRY_EXPECT_OK(receives_->AwaitMove(MoveOf(1, false, true)));
  FERRY_EXPECT_CODE(kWouldBlock, receives_->Query());
  shm::Counter(&EndIn(receive_end_)->done).Fail(ErrorCode::kPeerDied);
  FERRY_EXPECT_OK(receives_->Synchronize());
  FERRY_EXPECT_OK(sends_->LaunchMove(MoveOf(1, true, true)));
  FERRY_EXPECT_OK(sends_->Synchronize());
  EXPECT_EQ(shm::Counter(&EndIn(send_end_)->done).Value(), 0u);
}

// The other end is on another node.
TEST_P(MatchedMoves, WithoutAnotherEndItsOwnWordIsAwaited) {
  Make(1);
  MatchedMove move;
  move.own = EndIn(receive_end_);
  move.round = 2;
  FERRY_EXPECT_CODE(kInvalidArgument, receives_->LaunchMove(move));
  shm::Counter done(&move.own->done);
  FERRY_EXPECT_OK(receives_->AwaitMove(move));
  done.Add(1);
  shm::WakeWaiting(*move.own);
  FERRY_EXPECT_CODE(kWouldBlock, receives_->Query());
  done.Add(1);
  shm::WakeWaiting(*move.own);
  FERRY_EXPECT_OK(receives_->Synchronize());
  move.round = 3;
  FERRY_EXPECT_OK(receives_->AwaitMove(move));
  done.Fail(ErrorCode::kPeerDied);
  FERRY_EXPECT_OK(receives_->Synchronize());
}

TEST_P(MatchedMoves, RejectBadArguments) {
  Make(4096);
  MatchedMove move = MoveOf(1, true, true);
  move.own = nullptr;
  FERRY_EXPECT_CODE(kInvalidArgument, sends_->LaunchMove(move));
  FERRY_EXPECT_CODE(kInvalidArgument, sends_->AwaitMove(move));
  move = MoveOf(1, true, true);
  move.destination = nullptr;
  FERRY_EXPECT_CODE(kInvalidArgument, sends_->LaunchMove(move));
  shm::PairLayout unknown{};
  move = MoveOf(1, true, true);
  move.own = &unknown;
  FERRY_EXPECT_CODE(kInvalidBuffer, sends_->AwaitMove(move));
}

INSTANTIATE_TEST_SUITE_P(Backends, MatchedMoves, testing::ValuesIn(ConformanceBackends()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ferry::gpu
