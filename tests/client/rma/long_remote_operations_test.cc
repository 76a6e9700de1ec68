// One-sided operations whose bytes the daemons fetch from where they lie.
#include <gtest/gtest.h>

#include <string>

#include "shm/atomic.h"
#include "tests/client/rma/remote_operations_fixture.h"

namespace ferry::client {
namespace {

// The daemon of the test reaches this process's memory, as that of a rank mostly does.
class LongRemoteOperationsTest : public RemoteOperationsTest {
 protected:
  static constexpr uint64_t kBytes = 1 << 20;

  ErrorCode PutLong(const std::string& data, WhenDone when, const Signal& signal = {},
                    uint64_t offset = 64) {
    return long_.Put(context_, {kPeer, kSegment, offset}, data.data(), data.size(), signal, when);
  }
  ErrorCode GetLong(std::string* data, WhenDone when, uint64_t offset = 64) {
    return long_.Get(context_, data->data(), {kPeer, kSegment, offset}, data->size(), when);
  }
  ErrorCode QuietLong() {
    uint32_t rank = 0;
    return long_.Quiet(context_, std::nullopt, &rank);
  }

  RemoteOperations long_{{.progress = &progress_,
                          .memory = &memory_,
                          .private_reachable = true,
                          .bounce_buffer_max_bytes = 0,
                          .statistics = shm::Statistics(rank_.view().layout->counters),
                          .wait = [this](bool (*done)(void*), void* argument, uint32_t, uint64_t) {
                            Wait(done, argument);
                          }}};
};

TEST_F(LongRemoteOperationsTest, SayWhereTheBytesLieAndHaveNoNumber) {
  const std::string data = Text(kBytes);
  EXPECT_EQ(PutLong(data, WhenDone::kAtQuiet), ErrorCode::kOk);
  ASSERT_EQ(daemon_.Take(), 1U);
  const FakeOneSidedDaemon::Taken& put = daemon_.under_way.front();
  EXPECT_EQ(OperationOf(put), OneSidedOperation::kLongPut);
  EXPECT_EQ(put.descriptor.size_bytes, kBytes);
  EXPECT_EQ(put.descriptor.flags, shm::kFlagCell);
  EXPECT_NE(put.words.answer, shm::kNoAnswer);
  EXPECT_EQ(put.here(), reinterpret_cast<const std::byte*>(data.data()));
  EXPECT_EQ(QuietLong(), ErrorCode::kOk);
  EXPECT_EQ(BytesAt(64, kBytes), data);

  std::string got(kBytes, ' ');
  EXPECT_EQ(GetLong(&got, WhenDone::kAtReturn), ErrorCode::kOk);
  EXPECT_EQ(got, data);
  EXPECT_EQ(rank_.view().by_rank.one_sided[kPeer].done, 0U);
}

// Its source may be changed when the call returns, so the data have been taken.
TEST_F(LongRemoteOperationsTest, APutThatReturnsDoneIsOver) {
  const std::string data = Text(kBytes);
  EXPECT_EQ(PutLong(data, WhenDone::kAtReturn, {shm::SignalUpdate::kAdd, kSegment, 8, 4}),
            ErrorCode::kOk);
  EXPECT_EQ(BytesAt(64, kBytes), data);
  EXPECT_EQ(daemon_.Word(kPeer, 8), 4U);
}

TEST_F(LongRemoteOperationsTest, AFenceWaitsForThemAndForNothingElse) {
  const std::string data = Text(kBytes);
  long_.Fence(context_);  // there is nothing
  EXPECT_EQ(PutLong(data, WhenDone::kAtQuiet), ErrorCode::kOk);
  EXPECT_EQ(long_.Put(context_, {kPeer, kSegment, 0}, "x", 1, {}), ErrorCode::kOk);
  daemon_.Take();
  meanwhile_ = [&] { daemon_.CarryOut(1); };  // the long one is the first
  long_.Fence(context_);
  EXPECT_EQ(BytesAt(64, kBytes), data);
  EXPECT_EQ(daemon_.under_way.size(), 1U);
  EXPECT_EQ(QuietLong(), ErrorCode::kOk);
}

TEST_F(LongRemoteOperationsTest, QuietWithARankWaitsForItsOwn) {
  const std::string data = Text(kBytes);
  EXPECT_EQ(PutLong(data, WhenDone::kAtQuiet), ErrorCode::kOk);
  meanwhile_ = [] {};
  uint32_t rank = 0;
  EXPECT_EQ(long_.Quiet(context_, kOther, &rank), ErrorCode::kOk);
  meanwhile_ = [&] { daemon_.Serve(); };
  EXPECT_EQ(long_.Quiet(context_, kPeer, &rank), ErrorCode::kOk);
  EXPECT_EQ(BytesAt(64, kBytes), data);
}

TEST_F(LongRemoteOperationsTest, IsQuietOnceTheyAreOver) {
  const std::string data = Text(kBytes);
  OneSidedContext other;
  meanwhile_ = [] { FAIL() << "it waits"; };
  EXPECT_EQ(PutLong(data, WhenDone::kAtQuiet), ErrorCode::kOk);
  EXPECT_FALSE(long_.IsQuiet(context_));
  EXPECT_TRUE(long_.IsQuiet(other));
  daemon_.Serve();
  EXPECT_TRUE(long_.IsQuiet(context_));
  EXPECT_EQ(QuietLong(), ErrorCode::kOk);
  EXPECT_TRUE(long_.IsQuiet(context_));
}

TEST_F(LongRemoteOperationsTest, TellTheirErrorsOnce) {
  const std::string data = Text(kBytes);
  std::string got(kBytes, ' ');
  const uint64_t beyond = FakeOneSidedDaemon::kSegmentBytes - kBytes + 1;
  EXPECT_EQ(PutLong(data, WhenDone::kAtReturn, {}, beyond), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(GetLong(&got, WhenDone::kAtReturn, beyond), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(QuietLong(), ErrorCode::kOk);
  EXPECT_EQ(PutLong(data, WhenDone::kAtQuiet, {}, beyond), ErrorCode::kOk);
  EXPECT_EQ(QuietLong(), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(QuietLong(), ErrorCode::kOk);
}

TEST_F(LongRemoteOperationsTest, APeerThatIsLostEndsThem) {
  const std::string data = Text(kBytes);
  EXPECT_EQ(PutLong(data, WhenDone::kAtQuiet), ErrorCode::kOk);
  meanwhile_ = [&] { daemon_.Lose(kPeer, ErrorCode::kPeerDied); };
  EXPECT_EQ(QuietLong(), ErrorCode::kPeerDied);
  EXPECT_EQ(PutLong(data, WhenDone::kAtReturn), ErrorCode::kPeerDied);
}

TEST_F(LongRemoteOperationsTest, OneThatFindsNoPlaceForItsAnswerGivesItsCellBack) {
  const std::string data = Text(kBytes);
  const std::string cell = Text(shm::kCellBytes);
  for (uint32_t i = 0; i < shm::kAnswers; ++i) {
    EXPECT_EQ(PutLong(data, WhenDone::kAtQuiet), ErrorCode::kOk);
  }
  daemon_.Take();
  meanwhile_ = [&] { rank_.view().by_rank.StoreDead(kPeer, static_cast<ErrorCode>(14)); };
  EXPECT_EQ(PutLong(data, WhenDone::kAtQuiet), ErrorCode::kPeerDied);
  meanwhile_ = [] { FAIL() << "a cell is lost"; };
  for (uint32_t i = 0; i < shm::kLaneCells; ++i) {
    EXPECT_EQ(Put(0, cell, {}, kOther), ErrorCode::kOk);
  }
}

}  // namespace
}  // namespace ferry::client
