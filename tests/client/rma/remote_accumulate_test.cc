// A rank's accumulates with ranks of other nodes: the commands that it writes, and where what was
// found goes.
#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <vector>

#include "shm/accumulate.h"
#include "tests/client/rma/remote_operations_fixture.h"

namespace ferry::client {
namespace {

using reduction::NumberKind;
using reduction::OpKind;
using shm::Accumulation;

class RemoteAccumulateTest : public RemoteOperationsTest {
 protected:
  template <typename T>
  ErrorCode Accumulate(OpKind operation, NumberKind kind, uint64_t offset, uint64_t count,
                       const std::vector<T>& operands, std::vector<T>* found,
                       WhenDone when = WhenDone::kAtReturn) {
    return remote_.Accumulate(
        context_, {{kPeer, kSegment, offset}, *Accumulation::Of(operation, kind), count},
        operands.data(), found != nullptr ? found->data() : nullptr, when);
  }
  template <typename T>
  std::vector<T> At(uint64_t offset, uint64_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), daemon_.MemoryOf(kPeer) + offset, count * sizeof(T));
    return values;
  }
};

TEST_F(RemoteAccumulateTest, FewOperandsGoInTheCommandOthersInACell) {
  const Accumulation sum = *Accumulation::Of(OpKind::kSum, NumberKind::kFloat64);
  for (const uint64_t count : {1, 2, 3, 1024}) {
    const std::vector<double> operands(count, 1.5);
    EXPECT_EQ(Accumulate(OpKind::kSum, NumberKind::kFloat64, 64, count, operands,
                         static_cast<std::vector<double>*>(nullptr)),
              ErrorCode::kOk);
    ASSERT_EQ(daemon_.Take(), 1U);
    const FakeOneSidedDaemon::Taken& taken = daemon_.under_way.front();
    EXPECT_EQ(OperationOf(taken), OneSidedOperation::kAccumulate);
    EXPECT_EQ(taken.descriptor.tag, static_cast<int32_t>(sum.packed()));
    EXPECT_EQ(taken.descriptor.size_bytes, count * sizeof(double));
    EXPECT_EQ(taken.descriptor.flags, count <= 2 ? 0 : shm::kFlagCell);
    EXPECT_EQ(taken.words.answer, shm::kNoAnswer);
    daemon_.CarryOut();
    EXPECT_EQ(At<double>(64, count), operands);
    std::memset(daemon_.MemoryOf(kPeer), 0, 64 + count * sizeof(double));
  }
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
}

// Of long rows and of many elements; the pieces' answers come to their places.
TEST_F(RemoteAccumulateTest, LongRowsGoInPieces) {
  std::vector<int64_t> operands(3000);
  for (size_t i = 0; i < operands.size(); ++i) {
    operands[i] = static_cast<int64_t>(i);
  }
  std::vector<int64_t> found(operands.size(), -1);
  EXPECT_EQ(Accumulate(OpKind::kReplace, NumberKind::kInt64, 8, 3000, operands, &found),
            ErrorCode::kOk);
  EXPECT_EQ(found, std::vector<int64_t>(3000, 0));
  EXPECT_EQ(Accumulate(OpKind::kNoOp, NumberKind::kInt64, 8, 3000, {}, &found), ErrorCode::kOk);
  EXPECT_EQ(found, operands);
  const std::vector<int8_t> ones(2500, 1);
  EXPECT_EQ(Accumulate(OpKind::kSum, NumberKind::kInt8, 40'000, 2500, ones,
                       static_cast<std::vector<int8_t>*>(nullptr)),
            ErrorCode::kOk);
  ASSERT_EQ(daemon_.Take(), 3U);
  EXPECT_EQ(daemon_.under_way[0].descriptor.size_bytes, shm::kMostAccumulated);
  EXPECT_EQ(daemon_.under_way[2].descriptor.size_bytes, 2500 - 2 * shm::kMostAccumulated);
  EXPECT_EQ(daemon_.under_way[2].words.offset, 40'000 + 2 * shm::kMostAccumulated);
  daemon_.CarryOut();
  EXPECT_EQ(At<int8_t>(40'000, 2500), ones);
}

TEST_F(RemoteAccumulateTest, WhatIsFoundIsThereAfterQuiet) {
  std::vector<float> found(2, -1);
  const std::vector<float> operands{1, 2};
  EXPECT_EQ(
      Accumulate(OpKind::kSum, NumberKind::kFloat32, 0, 2, operands, &found, WhenDone::kAtQuiet),
      ErrorCode::kOk);
  EXPECT_EQ(found, std::vector<float>(2, -1));
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(found, std::vector<float>(2, 0));
}

TEST_F(RemoteAccumulateTest, FailuresAreToldByTheCallOrTheQuiet) {
  const uint64_t beyond = FakeOneSidedDaemon::kSegmentBytes - 4;
  const std::vector<int64_t> operands{1};
  std::vector<int64_t> found{-1};
  EXPECT_EQ(Accumulate(OpKind::kSum, NumberKind::kInt64, beyond, 1, operands, &found),
            ErrorCode::kInvalidBuffer);
  EXPECT_EQ(found[0], -1);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(Accumulate(OpKind::kSum, NumberKind::kInt64, beyond, 1, operands,
                       static_cast<std::vector<int64_t>*>(nullptr)),
            ErrorCode::kOk);
  uint32_t rank = 0;
  EXPECT_EQ(Quiet(&rank), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(rank, kPeer);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
}

// Operations that ferryd alone can carry out in memory of its own node: here, of the rank itself.
TEST_F(RemoteAccumulateTest, OfTheOwnNodeGoToTheDaemon) {
  rank_.view().layout->link_after_messages = 1;
  const std::vector<long double> operands(4, 2.5L);
  std::vector<long double> found(4, -1);
  const auto sum = *Accumulation::Of(OpKind::kSum, NumberKind::kLongDouble);
  EXPECT_EQ(remote_.Accumulate(context_, {{0, kSegment, 8}, sum, 4}, operands.data(), nullptr,
                               WhenDone::kAtReturn),
            ErrorCode::kOk);
  ASSERT_EQ(daemon_.Take(), 1U);
  ASSERT_EQ(daemon_.under_way.front().data.size(), 64U);
  EXPECT_EQ(std::memcmp(daemon_.under_way.front().data.data(), operands.data(), 64), 0);
  daemon_.CarryOut();
  EXPECT_EQ(remote_.Accumulate(context_, {{0, kSegment, 8}, sum, 4}, operands.data(), found.data(),
                               WhenDone::kAtReturn),
            ErrorCode::kOk);
  EXPECT_EQ(found, operands);
  EXPECT_EQ(rank_.view().by_rank.links[0].messages, 0U) << "no link to the own node is wanted";
}

TEST_F(RemoteAccumulateTest, ADeadPeerEndsThem) {
  std::vector<int64_t> found(5000, -1);
  meanwhile_ = [this] { daemon_.Lose(kPeer, ErrorCode::kPeerDied); };
  EXPECT_EQ(Accumulate(OpKind::kNoOp, NumberKind::kInt64, 0, 5000, {}, &found),
            ErrorCode::kPeerDied);
  EXPECT_EQ(Accumulate(OpKind::kSum, NumberKind::kInt64, 0, 1, {1}, &found), ErrorCode::kPeerDied);
}

}  // namespace
}  // namespace ferry::client
