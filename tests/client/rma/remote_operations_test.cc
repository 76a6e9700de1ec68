// A rank's one-sided operations with ranks of other nodes: the commands that it writes, and what it
// makes of the daemon's answers, which the test gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/rma/remote_operations_fixture.h"

namespace ferry::client {
namespace {

// ---- Puts

TEST_F(RemoteOperationsTest, SmallPutsGoInTheCommandOthersInACell) {
  for (const uint64_t size_bytes : {1, 8, 16, 17, 8192}) {
    const std::string data = Text(size_bytes);
    EXPECT_EQ(Put(64, data), ErrorCode::kOk);
    ASSERT_EQ(daemon_.Take(), 1U);
    const shm::Descriptor& descriptor = daemon_.under_way.front().descriptor;
    EXPECT_EQ(descriptor.kind, static_cast<uint8_t>(shm::DescriptorKind::kOneSided));
    EXPECT_EQ(descriptor.source, 0U);
    EXPECT_EQ(descriptor.destination, kPeer);
    EXPECT_EQ(descriptor.context, kSegment);
    EXPECT_EQ(descriptor.size_bytes, size_bytes);
    EXPECT_EQ(descriptor.flags, size_bytes <= shm::kInlinePutBytes ? 0 : shm::kFlagCell);
    EXPECT_EQ(daemon_.under_way.front().words.answer, shm::kNoAnswer);
    daemon_.CarryOut();
    EXPECT_EQ(BytesAt(64, size_bytes), data);
  }
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
}

TEST_F(RemoteOperationsTest, LongPutsGoInPiecesAndTheSignalWithTheLast) {
  const std::string data = Text(3 * shm::kCellBytes + 5);
  EXPECT_EQ(Put(1024, data, {SignalUpdate::kAdd, kSegment, 8, 7}), ErrorCode::kOk);
  ASSERT_EQ(daemon_.Take(), 4U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(daemon_.under_way[i].words.signal, 0);
    EXPECT_EQ(daemon_.under_way[i].descriptor.size_bytes, shm::kCellBytes);
  }
  // Five bytes with a signal lie in a cell, too: the words of the command are the signal's.
  EXPECT_EQ(daemon_.under_way[3].descriptor.flags, shm::kFlagCell);
  EXPECT_EQ(daemon_.under_way[3].words.signal, static_cast<uint8_t>(SignalUpdate::kAdd));
  daemon_.CarryOut();
  EXPECT_EQ(BytesAt(1024, data.size()), data);
  EXPECT_EQ(daemon_.Word(kPeer, 8), 7U);
}

TEST_F(RemoteOperationsTest, ASignalAloneNeedsNoCell) {
  EXPECT_EQ(Put(0, "", {SignalUpdate::kSet, kSegment, 16, 9}), ErrorCode::kOk);
  ASSERT_EQ(daemon_.Take(), 1U);
  EXPECT_EQ(daemon_.under_way.front().descriptor.flags, 0);
  daemon_.CarryOut();
  EXPECT_EQ(daemon_.Word(kPeer, 16), 9U);
}

TEST_F(RemoteOperationsTest, WaitsForRoomInTheLane) {
  size_t waits = 0;
  meanwhile_ = [&] {
    ++waits;
    EXPECT_EQ(shm::LoadRelaxed(rank_.view().layout->to_daemon.producer.waiting), 1U);
    daemon_.Serve();
  };
  for (uint32_t i = 0; i < 2 * shm::kLaneSlots; ++i) {
    EXPECT_EQ(Put(uint64_t{8} * i, Text(8, i)), ErrorCode::kOk);
  }
  EXPECT_GT(waits, 0U);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  for (uint32_t i = 0; i < 2 * shm::kLaneSlots; ++i) {
    EXPECT_EQ(BytesAt(8 * i, 8), Text(8, i));
  }
}

TEST_F(RemoteOperationsTest, WaitsForACell) {
  size_t waits = 0;
  meanwhile_ = [&] {
    ++waits;
    EXPECT_EQ(shm::LoadRelaxed(rank_.view().layout->to_daemon.producer.waiting), 1U);
    daemon_.Serve();
  };
  const std::string data = Text(100 * shm::kCellBytes);
  EXPECT_EQ(Put(0, data), ErrorCode::kOk);
  EXPECT_GT(waits, 0U);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(BytesAt(0, data.size()), data);
}

TEST_F(RemoteOperationsTest, APeerThatDiesWhileACallWaitsForACellGivesTheCellsBack) {
  const std::string cell = Text(shm::kCellBytes);
  for (uint32_t i = 0; i < shm::kLaneCells; ++i) {
    EXPECT_EQ(Put(0, cell), ErrorCode::kOk);
  }
  meanwhile_ = [&] { daemon_.Lose(kPeer, ErrorCode::kPeerDied); };
  EXPECT_EQ(Put(0, cell), ErrorCode::kPeerDied);
  for (uint32_t i = 0; i < shm::kLaneCells; ++i) {  // without a wait
    EXPECT_EQ(Put(0, cell, {}, kOther), ErrorCode::kOk);
  }
}

// ---- Numbers and contexts

TEST_F(RemoteOperationsTest, QuietWaitsForItsOwnOperationsOnly) {
  OneSidedContext later;
  EXPECT_EQ(Put(0, "one"), ErrorCode::kOk);
  EXPECT_EQ(Put(0, "two", {}, kOther), ErrorCode::kOk);
  EXPECT_EQ(remote_.Put(later, {kPeer, kSegment, 0}, "x", 1, {}), ErrorCode::kOk);
  EXPECT_EQ(remote_.Put(later, {kOther, kSegment, 0}, "x", 1, {}), ErrorCode::kOk);
  daemon_.Take();
  size_t carried_out = 0;
  meanwhile_ = [&] {
    daemon_.CarryOut(1);
    ++carried_out;
  };
  EXPECT_EQ(QuietOf(context_, kOther), ErrorCode::kOk);
  EXPECT_EQ(carried_out, 2U) << "the first of each peer";
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(carried_out, 2U);
  EXPECT_EQ(QuietOf(later), ErrorCode::kOk);
  EXPECT_EQ(carried_out, 4U);
  EXPECT_EQ(QuietOf(later), ErrorCode::kOk);
}

TEST_F(RemoteOperationsTest, AFailureIsToldOnceByTheContextWhoseItIs) {
  OneSidedContext other;
  uint32_t rank = 77;
  EXPECT_EQ(remote_.Put(other, {kPeer, kSegment, 0}, "fine", 4, {}), ErrorCode::kOk);
  daemon_.Serve();
  EXPECT_EQ(Put(0, "fine", {}, kOther), ErrorCode::kOk);
  EXPECT_EQ(remote_.Put(context_, {kPeer, kSegment + 1, 0}, "lost", 4, {}), ErrorCode::kOk);
  EXPECT_EQ(Put(0, "fine"), ErrorCode::kOk);
  EXPECT_EQ(Quiet(&rank), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(rank, kPeer);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(QuietOf(other), ErrorCode::kOk) << "its operations were over before";
  EXPECT_EQ(Put(0, "fine"), ErrorCode::kOk);
  EXPECT_EQ(Quiet(), ErrorCode::kOk) << "and those that follow are not blamed";
}

TEST_F(RemoteOperationsTest, AQuietWithOneRankLeavesTheFailuresOfOthers) {
  EXPECT_EQ(remote_.Put(context_, {kOther, kSegment + 1, 0}, "lost", 4, {}), ErrorCode::kOk);
  uint64_t found = 0;
  EXPECT_EQ(remote_.Atomic(context_, {{kOther, kSegment + 1, 0}, OneSidedOperation::kFetch}, &found,
                           WhenDone::kAtQuiet),
            ErrorCode::kOk);
  EXPECT_EQ(Put(0, "fine"), ErrorCode::kOk);
  EXPECT_EQ(QuietOf(context_, kPeer), ErrorCode::kOk);
  EXPECT_EQ(QuietOf(context_, kOther), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
}

// Neither the failure of another context between a context's own operations, nor one that was told
// long ago, is this context's.
TEST_F(RemoteOperationsTest, AFailureBetweenAContextsOperationsIsNotBlamedOnIt) {
  OneSidedContext other;
  const auto put = [this](OneSidedContext& context, uint32_t segment) {
    EXPECT_EQ(remote_.Put(context, {kPeer, segment, 0}, "data", 4, {}), ErrorCode::kOk);
  };
  put(context_, kSegment + 1);
  EXPECT_EQ(Quiet(), ErrorCode::kInvalidBuffer);
  put(context_, kSegment);
  put(other, kSegment + 1);
  put(context_, kSegment);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(QuietOf(other), ErrorCode::kInvalidBuffer);
  put(other, kSegment);
  put(context_, kSegment + 1);
  put(other, kSegment);
  EXPECT_EQ(QuietOf(other), ErrorCode::kOk);
  EXPECT_EQ(QuietOf(other), ErrorCode::kOk);
  EXPECT_EQ(Quiet(), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
}

// Operations that were over before a cut have not failed with it, nor have those begun after it.
TEST_F(RemoteOperationsTest, ACutIsBlamedOnWhatWasUnderWay) {
  OneSidedContext before_and_after;
  OneSidedContext under_way;
  const auto put = [this](OneSidedContext& context) {
    EXPECT_EQ(remote_.Put(context, {kPeer, kSegment, 0}, "data", 4, {}), ErrorCode::kOk);
  };
  put(before_and_after);
  daemon_.Serve();
  put(under_way);
  daemon_.Lose(kPeer, ErrorCode::kLinkDown);
  daemon_.Mend(kPeer);
  put(before_and_after);
  EXPECT_EQ(QuietOf(before_and_after), ErrorCode::kOk);
  EXPECT_EQ(QuietOf(under_way), ErrorCode::kLinkDown);
}

TEST_F(RemoteOperationsTest, OfEachRankTheFirstFailureIsTold) {
  uint32_t rank = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(remote_.Put(context_, {kOther, kSegment + 1, 0}, "lost", 4, {}), ErrorCode::kOk);
    EXPECT_EQ(remote_.Put(context_, {kPeer, kSegment + 1, 0}, "lost", 4, {}), ErrorCode::kOk);
  }
  EXPECT_EQ(QuietOf(context_, kPeer), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(Quiet(&rank), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(rank, kOther);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
}

// More failures than the session has room for, all of which the daemon tells before anybody looks:
// the rank has to stop, and to take them, in between.
TEST_F(RemoteOperationsTest, ManyFailuresFindTheirContexts) {
  constexpr uint64_t kPuts = 3 * OneSidedLog::kMost;
  std::vector<OneSidedContext> contexts(7);
  uint64_t most = 0;
  meanwhile_ = [&] {
    daemon_.Take();
    most = std::max<uint64_t>(most, daemon_.under_way.size());
    if (daemon_.under_way.size() >= OneSidedLog::kMost || !is_pushing_) {
      daemon_.CarryOut();
    }
  };
  is_pushing_ = true;
  for (uint64_t i = 0; i < kPuts; ++i) {
    // All of contexts 0, 2, 4 and 6 fail, at either peer; none of the others.
    const uint64_t which = i % contexts.size();
    const RemoteAddress place{i % 2 == 0 ? kPeer : kOther, which % 2 == 0 ? kSegment + 1 : kSegment,
                              0};
    ASSERT_EQ(remote_.Put(contexts[which], place, "data", 4, {}), ErrorCode::kOk);
  }
  is_pushing_ = false;
  EXPECT_EQ(most, OneSidedLog::kMost);
  for (uint64_t which = 0; which < contexts.size(); ++which) {
    const ErrorCode error = which % 2 == 0 ? ErrorCode::kInvalidBuffer : ErrorCode::kOk;
    EXPECT_EQ(QuietOf(contexts[which], kPeer), error) << which;
    EXPECT_EQ(QuietOf(contexts[which]), error) << which;  // with the other peer
    EXPECT_EQ(QuietOf(contexts[which]), ErrorCode::kOk) << which;
  }
}

// One peer whose operations do not end does not stop those with others.
TEST_F(RemoteOperationsTest, AStuckPeerLeavesRoomForOthers) {
  OneSidedContext stuck;
  EXPECT_EQ(remote_.Put(stuck, {kPeer, kSegment, 0}, "data", 4, {}), ErrorCode::kOk);
  daemon_.Take();
  const FakeOneSidedDaemon::Taken held = daemon_.under_way.front();
  daemon_.under_way.clear();
  for (uint64_t i = 0; i < 2 * OneSidedLog::kMost; ++i) {
    ASSERT_EQ(Put(0, "data", {}, kOther), ErrorCode::kOk);
  }
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  daemon_.under_way.push_back(held);
  EXPECT_EQ(QuietOf(stuck), ErrorCode::kOk);
}

TEST_F(RemoteOperationsTest, ADeathEndsTheWaitForRoomInTheLog) {
  for (uint64_t i = 0; i < OneSidedLog::kMost; ++i) {
    ASSERT_EQ(Put(0, "lost"), ErrorCode::kOk);
    daemon_.Take();
  }
  meanwhile_ = [&] { daemon_.Lose(kPeer, ErrorCode::kPeerDied); };
  EXPECT_EQ(Put(0, "lost"), ErrorCode::kPeerDied);
  EXPECT_EQ(Put(0, "fine", {}, kOther), ErrorCode::kOk);
  meanwhile_ = [&] { daemon_.Serve(); };
  EXPECT_EQ(QuietOf(context_, kOther), ErrorCode::kOk);
  EXPECT_EQ(Quiet(), ErrorCode::kPeerDied);
}

TEST_F(RemoteOperationsTest, AFailureAfterItsContextHasGoneIsNobodys) {
  {
    OneSidedContext gone;
    EXPECT_EQ(remote_.Put(gone, {kPeer, kSegment + 1, 0}, "lost", 4, {}), ErrorCode::kOk);
    remote_.Leave(gone);
  }
  EXPECT_EQ(Put(0, "fine"), ErrorCode::kOk);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
}

// No thread waits in these tests: a context is quiet, or it is not.

TEST_F(RemoteOperationsTest, IsQuietOnceWhatWasBegunWithEachRankIsOver) {
  OneSidedContext other;
  meanwhile_ = [] { FAIL() << "it waits"; };
  EXPECT_TRUE(remote_.IsQuiet(context_));
  EXPECT_EQ(Put(0, "near"), ErrorCode::kOk);
  EXPECT_EQ(Put(0, "more", {}, kOther), ErrorCode::kOk);
  EXPECT_FALSE(remote_.IsQuiet(context_));
  EXPECT_TRUE(remote_.IsQuiet(other));
  ASSERT_EQ(daemon_.Take(), 2U);
  std::swap(daemon_.under_way[0], daemon_.under_way[1]);
  daemon_.CarryOut(1);
  EXPECT_FALSE(remote_.IsQuiet(context_)) << "the newest is over, and the one before it is not";
  EXPECT_EQ(remote_.Put(other, {kPeer, kSegment, 8}, "last", 4, {}), ErrorCode::kOk);
  daemon_.CarryOut(1);
  EXPECT_TRUE(remote_.IsQuiet(context_));
  EXPECT_FALSE(remote_.IsQuiet(other));
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(Put(0, "anew"), ErrorCode::kOk);
  EXPECT_FALSE(remote_.IsQuiet(context_));
  daemon_.Serve();
  EXPECT_TRUE(remote_.IsQuiet(context_));
  EXPECT_TRUE(remote_.IsQuiet(other));
  EXPECT_EQ(QuietOf(other), ErrorCode::kOk);
}

TEST_F(RemoteOperationsTest, IsQuietLeavesResultsAndFailuresToQuiet) {
  uint64_t found = 77;
  meanwhile_ = [] { FAIL() << "it waits"; };
  daemon_.Word(kPeer, 8) = 5;
  EXPECT_EQ(FetchAdd(8, 1, &found, WhenDone::kAtQuiet), ErrorCode::kOk);
  EXPECT_EQ(remote_.Put(context_, {kPeer, kSegment + 1, 0}, "lost", 4, {}), ErrorCode::kOk);
  EXPECT_FALSE(remote_.IsQuiet(context_));
  daemon_.Serve();
  EXPECT_TRUE(remote_.IsQuiet(context_));
  EXPECT_TRUE(remote_.IsQuiet(context_)) << "asking changes nothing";
  EXPECT_EQ(found, 77U);
  EXPECT_EQ(Quiet(), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(found, 5U);
  EXPECT_EQ(Put(0, "lost"), ErrorCode::kOk);
  progress_.wake().Poison(ErrorCode::kDaemonDied);
  EXPECT_TRUE(remote_.IsQuiet(context_));
  EXPECT_EQ(Quiet(), ErrorCode::kDaemonDied);
}

// ---- Answers

TEST_F(RemoteOperationsTest, EveryAtomicOperationOfBothWidths) {
  struct Case {
    OneSidedOperation operation;
    uint64_t after;
  };
  constexpr uint64_t kBefore = 0b1100;
  constexpr uint64_t kOperand = 0b0110;
  for (const Case& one :
       {Case{OneSidedOperation::kFetch, kBefore}, Case{OneSidedOperation::kSet, kOperand},
        Case{OneSidedOperation::kSwap, kOperand}, Case{OneSidedOperation::kCompareSwap, kOperand},
        Case{OneSidedOperation::kAdd, kBefore + kOperand}, Case{OneSidedOperation::kAnd, 0b0100},
        Case{OneSidedOperation::kOr, 0b1110}, Case{OneSidedOperation::kXor, 0b1010}}) {
    for (const uint32_t width : {4U, 8U}) {
      const uint64_t rest = width == 4 ? 0xabcd'0000'0000 : 0;
      const AtomicCall call{{kPeer, kSegment, 24}, one.operation, width, kOperand, kBefore};
      for (const WhenDone when : {WhenDone::kAtReturn, WhenDone::kAtQuiet}) {
        daemon_.Word(kPeer, 24) = rest | kBefore;
        uint64_t found = 0;
        EXPECT_EQ(remote_.Atomic(context_, call, &found, when), ErrorCode::kOk);
        EXPECT_EQ(Quiet(), ErrorCode::kOk);
        EXPECT_EQ(found, kBefore);
        EXPECT_EQ(daemon_.Word(kPeer, 24), rest | one.after);
      }
      daemon_.Word(kPeer, 24) = rest | kBefore;
      EXPECT_EQ(remote_.Atomic(context_, call, nullptr, WhenDone::kAtQuiet), ErrorCode::kOk);
      EXPECT_EQ(Quiet(), ErrorCode::kOk);
      EXPECT_EQ(daemon_.Word(kPeer, 24), rest | one.after);
    }
  }
}

TEST_F(RemoteOperationsTest, ALongGetKeepsAllPlacesForAnswersBusy) {
  const std::string data = Text(1 << 20);
  std::memcpy(daemon_.MemoryOf(kPeer) + 100, data.data(), data.size());
  size_t most = 0;
  meanwhile_ = [&] {
    daemon_.Take();
    most = std::max(most, daemon_.under_way.size());
    daemon_.CarryOut(1);
  };
  std::string got(data.size(), ' ');
  EXPECT_EQ(
      remote_.Get(context_, got.data(), {kPeer, kSegment, 100}, got.size(), WhenDone::kAtReturn),
      ErrorCode::kOk);
  EXPECT_EQ(got, data);
  EXPECT_EQ(most, shm::kAnswers);
  EXPECT_TRUE(daemon_.under_way.empty());
}

TEST_F(RemoteOperationsTest, NonblockingGetsAreThereAfterQuiet) {
  constexpr uint64_t kGets = uint64_t{3} * shm::kAnswers;
  std::vector<uint64_t> got(kGets);
  for (uint64_t i = 0; i < kGets; ++i) {
    daemon_.Word(kPeer, 8 * i) = i + 1;
    EXPECT_EQ(remote_.Get(context_, &got[i], {kPeer, kSegment, 8 * i}, 8, WhenDone::kAtQuiet),
              ErrorCode::kOk);
  }
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  for (uint64_t i = 0; i < kGets; ++i) {
    EXPECT_EQ(got[i], i + 1);
  }
}

TEST_F(RemoteOperationsTest, ACallThatReturnsItsErrorLeavesNoneToQuiet) {
  uint64_t found = 0;
  EXPECT_EQ(FetchAdd(FakeOneSidedDaemon::kSegmentBytes, 1, &found), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(remote_.Get(context_, &found, {kPeer, kSegment + 1, 0}, 8, WhenDone::kAtReturn),
            ErrorCode::kInvalidBuffer);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
}

TEST_F(RemoteOperationsTest, AGetThatFailsInItsMiddleWaitsForTheRest) {
  std::string got(size_t{4} * shm::kCellBytes, ' ');
  const uint64_t start = FakeOneSidedDaemon::kSegmentBytes - uint64_t{2} * shm::kCellBytes;
  EXPECT_EQ(
      remote_.Get(context_, got.data(), {kPeer, kSegment, start}, got.size(), WhenDone::kAtReturn),
      ErrorCode::kInvalidBuffer);
  EXPECT_TRUE(daemon_.under_way.empty());
}

// The serial of an answer differs from what lies in its place, for more operations than there are
// serials.
TEST_F(RemoteOperationsTest, SerialsWrap) {
  constexpr uint64_t kTimes = 70'000;
  meanwhile_ = [&] {
    ASSERT_EQ(daemon_.Take(), 1U);
    const shm::OneSidedCommand& words = daemon_.under_way.front().words;
    ASSERT_NE(words.serial, rank_.view().layout->answers[words.answer].serial);
    daemon_.CarryOut();
  };
  for (uint64_t i = 0; i < kTimes && !HasFailure(); ++i) {
    uint64_t found = 0;
    ASSERT_EQ(FetchAdd(0, 1, &found), ErrorCode::kOk);
    ASSERT_EQ(found, i);
  }
}

// ---- When a peer is lost

TEST_F(RemoteOperationsTest, ADeathEndsWhatIsUnderWayAndRefusesTheRest) {
  uint64_t found = 0;
  uint32_t rank = 0;
  EXPECT_EQ(Put(0, "lost"), ErrorCode::kOk);
  EXPECT_EQ(FetchAdd(8, 1, &found, WhenDone::kAtQuiet), ErrorCode::kOk);
  EXPECT_EQ(Put(0, "fine", {}, kOther), ErrorCode::kOk);
  meanwhile_ = [&] {
    daemon_.Lose(kPeer, ErrorCode::kPeerDied);
    daemon_.Serve();
  };
  EXPECT_EQ(Quiet(&rank), ErrorCode::kPeerDied);
  EXPECT_EQ(rank, kPeer);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  meanwhile_ = [] { FAIL() << "nothing to wait for"; };
  EXPECT_EQ(Put(0, "lost"), ErrorCode::kPeerDied);
  EXPECT_EQ(FetchAdd(8, 1, &found), ErrorCode::kPeerDied);
  EXPECT_EQ(remote_.Get(context_, &found, {kPeer, kSegment, 0}, 8, WhenDone::kAtReturn),
            ErrorCode::kPeerDied);
  EXPECT_EQ(daemon_.Take(), 0U);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
}

TEST_F(RemoteOperationsTest, ADeathEndsAGetThatWaits) {
  std::string got(1 << 20, ' ');
  size_t looks = 0;
  meanwhile_ = [&] {
    if (++looks == 5) {
      daemon_.Lose(kPeer, ErrorCode::kNodeUnreachable);
    } else {
      daemon_.Take();
      daemon_.CarryOut(1);
    }
  };
  EXPECT_EQ(
      remote_.Get(context_, got.data(), {kPeer, kSegment, 0}, got.size(), WhenDone::kAtReturn),
      ErrorCode::kNodeUnreachable);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
}

TEST_F(RemoteOperationsTest, ACutThatWasMendedWorksAgain) {
  EXPECT_EQ(Put(0, "lost"), ErrorCode::kOk);
  daemon_.Lose(kPeer, ErrorCode::kLinkDown);
  EXPECT_EQ(Put(0, "lost"), ErrorCode::kLinkDown);
  daemon_.Mend(kPeer);
  EXPECT_EQ(Put(0, "fine"), ErrorCode::kOk);
  EXPECT_EQ(Quiet(), ErrorCode::kLinkDown);
  EXPECT_EQ(BytesAt(0, 4), "fine");
  EXPECT_EQ(Put(0, "more"), ErrorCode::kOk);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
}

TEST_F(RemoteOperationsTest, PoisonEndsEveryWait) {
  uint64_t found = 5;
  uint32_t rank = 77;
  EXPECT_EQ(Put(0, "lost"), ErrorCode::kOk);
  meanwhile_ = [&] { progress_.wake().Poison(ErrorCode::kDaemonDied); };
  EXPECT_EQ(FetchAdd(8, 1, &found), ErrorCode::kDaemonDied);
  EXPECT_EQ(Quiet(&rank), ErrorCode::kDaemonDied);
  EXPECT_EQ(rank, 0U) << "this rank";
  EXPECT_EQ(Put(0, "lost"), ErrorCode::kDaemonDied);
  remote_.AwaitAll();
  daemon_.Serve();  // too late: the answer has nowhere to go
  remote_.AwaitAll();
  EXPECT_EQ(found, 5U);
}

TEST_F(RemoteOperationsTest, AnAnswerAfterItsContextHasGoneGoesNowhere) {
  uint64_t found = 5;
  {
    OneSidedContext gone;
    EXPECT_EQ(remote_.Get(gone, &found, {kPeer, kSegment, 0}, 8, WhenDone::kAtQuiet),
              ErrorCode::kOk);
    remote_.Leave(gone);
  }
  remote_.AwaitAll();
  EXPECT_EQ(found, 5U);
}

// Its get is over, and forgotten by what another context does, before it asks.
TEST_F(RemoteOperationsTest, AQuietBringsWhatOthersHaveForgotten) {
  OneSidedContext other;
  daemon_.Word(kPeer, 64) = 4711;
  uint64_t found = 0;
  ASSERT_EQ(remote_.Get(other, &found, {kPeer, kSegment, 64}, sizeof(found), WhenDone::kAtQuiet),
            ErrorCode::kOk);
  daemon_.Serve();
  for (uint64_t i = 0; i < shm::kFailures; ++i) {  // then there is no room in the log
    ASSERT_EQ(Put(0, Text(8)), ErrorCode::kOk);
    daemon_.Serve();
  }
  EXPECT_EQ(QuietOf(other), ErrorCode::kOk);
  EXPECT_EQ(found, 4711U);
}

// ---- Threads

TEST_F(RemoteOperationsTest, ThreadsShareTheLaneAndTheAnswers) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kTimes = 2000;
  LetThreadsCall();
  std::atomic<bool> is_over = false;
  std::thread daemon([&] {
    while (!is_over.load()) {
      daemon_.Serve();
      std::this_thread::yield();
    }
  });
  std::atomic<uint64_t> failures = 0;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      OneSidedContext own;
      const std::string data = Text(3000, static_cast<uint32_t>(thread));
      const RemoteAddress place{kPeer, kSegment, 4096 * (thread + 1)};
      const auto patient = [&](ErrorCode error) { failures += error == ErrorCode::kOk ? 0 : 1; };
      for (uint64_t i = 0; i < kTimes; ++i) {
        // Of one context for all threads, and of the thread's own.
        patient(remote_.Atomic(context_, {{kPeer, kSegment, 0}, OneSidedOperation::kAdd, 8, 1},
                               nullptr, WhenDone::kAtQuiet));
        uint64_t found = 0;
        patient(remote_.Atomic(own, {{kPeer, kSegment, 8}, OneSidedOperation::kAdd, 8, 1}, &found,
                               WhenDone::kAtReturn));
        patient(remote_.Put(own, place, data.data(), data.size(), {}));
        if (i % 100 == 0) {
          std::string got(data.size(), ' ');
          patient(remote_.Get(own, got.data(), place, got.size(), WhenDone::kAtQuiet));
          while (!remote_.IsQuiet(own)) {
            std::this_thread::yield();
          }
          patient(QuietOf(own));
          failures += got == data ? 0 : 1;
          patient(QuietOf(context_));
        }
      }
      patient(QuietOf(own));
      patient(QuietOf(context_));
      remote_.Leave(own);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  is_over = true;
  daemon.join();
  EXPECT_EQ(failures.load(), 0U);
  EXPECT_EQ(daemon_.Word(kPeer, 0), kThreads * kTimes);
  EXPECT_EQ(daemon_.Word(kPeer, 8), kThreads * kTimes);
}

}  // namespace
}  // namespace ferry::client
