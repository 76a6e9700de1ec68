// The records of two nodes about messages between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/daemon/trace/trace_reading.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

using testing::SizeIs;

constexpr uint64_t kBytes = 1 << 20;  // many more blocks than may be in use at once

class ProgressTraceTest : public PlaneTest {
 protected:
  void StartTraced(const config::Options& options = FastOptions()) {
    ASSERT_NO_FATAL_FAILURE(Start({1, 1}, options));
    ASSERT_NO_FATAL_FAILURE(StartTraces());
  }
  TraceReading Read(uint32_t node) { return ReadTrace(plane(node).StopTrace(), node); }
  Passage BeginPrivate() {
    return Begin(0, 1, Private(sent_.data()), Private(got_.data()), kBytes);
  }
  void SendPrivate() {
    ExpectEnd(BeginPrivate());
    EXPECT_TRUE(AllIdle());
  }

  const std::vector<std::byte> sent_ = Pattern(kBytes, 3);
  std::vector<std::byte> got_ = std::vector<std::byte>(kBytes);
};

uint64_t BytesOf(const std::vector<TraceSpan>& spans) {
  return std::accumulate(
      spans.begin(), spans.end(), uint64_t{0},
      [](uint64_t sum, const TraceSpan& span) { return sum + uint64_t{span.arguments["bytes"]}; });
}

const TraceSpan& At(const std::vector<TraceSpan>& spans, uint64_t offset) {
  return *std::find_if(spans.begin(), spans.end(),
                       [&](const TraceSpan& span) { return span.arguments["offset"] == offset; });
}

TEST_F(ProgressTraceTest, StagedBlocksPassThroughAllStagesInterleaved) {
  ASSERT_NO_FATAL_FAILURE(StartTraced());
  SendPrivate();
  const TraceReading sender = Read(0);
  const TraceReading receiver = Read(1);
  const auto copies_in = sender.Named("copy in");
  const auto lent = sender.Named("block lent");
  const auto reads = receiver.Named("RDMA read");
  const auto copies_out = receiver.Named("copy out");
  for (const auto* stage : {&copies_in, &lent, &reads, &copies_out}) {
    EXPECT_THAT(*stage, SizeIs(copies_in.size()));
    EXPECT_EQ(BytesOf(*stage), kBytes);
  }
  uint64_t last_offset = 0;
  for (const TraceSpan& in : copies_in) {
    const uint64_t offset = in.arguments["offset"];
    last_offset = std::max(last_offset, offset);
    EXPECT_LE(in.end_ns, At(lent, offset).begin_ns);
    EXPECT_LE(At(lent, offset).begin_ns, At(reads, offset).begin_ns);
    EXPECT_LE(At(reads, offset).end_ns, At(copies_out, offset).begin_ns);
    EXPECT_EQ(in.arguments["block"], At(lent, offset).arguments["block"]);
    EXPECT_EQ(At(reads, offset).arguments["block"], At(copies_out, offset).arguments["block"]);
  }
  // There are fewer blocks than the message needs: the last one cannot have begun before the first
  // one was through.
  EXPECT_LE(At(copies_out, 0).end_ns, At(copies_in, last_offset).begin_ns);
  EXPECT_LE(At(reads, 0).end_ns, At(copies_in, last_offset).begin_ns);
}

TEST_F(ProgressTraceTest, SaysWhoAndWhere) {
  ASSERT_NO_FATAL_FAILURE(StartTraced());
  SendPrivate();
  const TraceReading sender = Read(0);
  const TraceReading receiver = Read(1);
  const auto sent_rts = sender.Named("RTS");
  const auto rndv_gets = receiver.Named("rendezvous get");
  ASSERT_THAT(sent_rts, SizeIs(1));
  ASSERT_THAT(rndv_gets, SizeIs(1));
  EXPECT_THAT(sender.Named("staged send"), SizeIs(1));
  EXPECT_EQ(receiver.MomentsNamed("delivery"), 1U);
  EXPECT_EQ(sent_rts[0].arguments["job"], kJob);
  EXPECT_EQ(sent_rts[0].arguments["rank"], 0);
  EXPECT_EQ(sent_rts[0].arguments["peer"], 1);
  EXPECT_EQ(rndv_gets[0].arguments["rank"], 1);
  EXPECT_EQ(rndv_gets[0].arguments["peer_node"], 0);
  EXPECT_EQ(rndv_gets[0].arguments["bytes"], kBytes);
  // Both ends use the same name.
  EXPECT_EQ(sent_rts[0].arguments["message"], rndv_gets[0].arguments["message"]);
  EXPECT_LE(sent_rts[0].begin_ns, rndv_gets[0].begin_ns);
  EXPECT_EQ(receiver.Named("RDMA read")[0].arguments["place"], "NIC");
  EXPECT_EQ(sender.Named("copy in")[0].arguments["place"],
            InWorkerProcess() ? "ferry-worker" : "copy worker 0");
}

TEST_F(ProgressTraceTest, CountersReturnToNothing) {
  ASSERT_NO_FATAL_FAILURE(StartTraced());
  SendPrivate();
  const TraceReading sender = Read(0);
  uint64_t busiest = 0;
  uint64_t last = 1;
  for (const nlohmann::json& event : sender.counters) {
    if (event["name"] == "staging") {
      last = event["args"]["busy blocks"];
      busiest = std::max(busiest, last);
    }
  }
  EXPECT_GE(busiest, 1U);
  EXPECT_LE(busiest, 4U);
  EXPECT_EQ(last, 0U);
}

TEST_F(ProgressTraceTest, SmallMessagesAreMoments) {
  ASSERT_NO_FATAL_FAILURE(StartTraced());
  char letter = 'x';
  char got = 0;
  const uint32_t receive = rank(1).Receive(0, 7, Private(&got), 1);
  const uint32_t send = rank(0).Send(1, 7, &letter, 1);
  EXPECT_EQ(WaitTogether(1, receive), ErrorCode::kOk);
  EXPECT_EQ(WaitTogether(0, send), ErrorCode::kOk);
  EXPECT_EQ(Read(0).MomentsNamed("eager send"), 1U);
  EXPECT_EQ(Read(1).MomentsNamed("delivery"), 1U);
}

TEST_F(ProgressTraceTest, WhatIsUnderWayAtTheEndIsThere) {
  ASSERT_NO_FATAL_FAILURE(StartTraced());
  gate(1).closed = true;
  const Passage passage = BeginPrivate();
  ASSERT_TRUE(Meanwhile([&] { return gate(1).held != 0; }));
  const auto rndv_gets = Read(1).Named("rendezvous get");
  const auto staged_sends = Read(0).Named("staged send");
  ASSERT_THAT(rndv_gets, SizeIs(1));
  ASSERT_THAT(staged_sends, SizeIs(1));
  EXPECT_EQ(rndv_gets[0].arguments["unfinished"], true);
  EXPECT_EQ(staged_sends[0].arguments["unfinished"], true);
  // A trace that begins in the middle holds the ends of what began before.
  StartTraces();
  gate(1).closed = false;
  ExpectEnd(passage);
  EXPECT_TRUE(Eventually([&] { return plane(0).Idle(); }));
  EXPECT_THAT(Read(1).Named("rendezvous get"), SizeIs(1));
  EXPECT_THAT(Read(0).Named("staged send"), SizeIs(1));
}

TEST_F(ProgressTraceTest, AFailureIsThereWithItsError) {
  ASSERT_NO_FATAL_FAILURE(StartTraced());
  const ErrorCode error = ErrorCode::kInvalidBuffer;
  ExpectEnd(Begin(0, 1, Private(sent_.data()), Private(reinterpret_cast<void*>(8)), kBytes), error);
  EXPECT_TRUE(AllIdle());
  const std::string text = ErrorCodeText(error);
  EXPECT_EQ(Read(1).Named("rendezvous get")[0].arguments["error"], text);
  const TraceReading sender = Read(0);
  EXPECT_EQ(sender.Named("RTS")[0].arguments["error"], text);
  EXPECT_EQ(sender.Named("staged send")[0].arguments["error"], text);
}

TEST_F(ProgressTraceTest, JobsThatComeLaterAreRecordedToo) {
  ASSERT_NO_FATAL_FAILURE(StartPlanes({1, 1}, FastOptions()));
  for (const auto& plane : planes_) {
    plane->RemoveJob(kJob);
  }
  StartTraces();
  for (uint32_t node = 0; node < 2; ++node) {
    ASSERT_TRUE(plane(node).AddJob(PlanFor(node)).ok());
    ASSERT_TRUE(Connect(node, 1 - node, 0).ok());
    Attach(node);
  }
  BuildEngines();
  SendPrivate();
  EXPECT_THAT(Read(1).Named("rendezvous get"), SizeIs(1));
}

TEST_F(ProgressTraceTest, TheOldestGiveWay) {
  config::Options options = FastOptions();
  options.trace_events = 8;
  ASSERT_NO_FATAL_FAILURE(StartTraced(options));
  SendPrivate();
  const TraceReading receiver = Read(1);
  EXPECT_EQ(receiver.other["records"], 8);
  EXPECT_GT(receiver.other["dropped_records"], 100);
}

TEST_F(ProgressTraceTest, ASecondStartAndAStopWithoutOneAreRefused) {
  Start({1, 1});
  EXPECT_EQ(plane(0).StopTrace().status().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(plane(0).StartTrace().ok());
  EXPECT_EQ(plane(0).StartTrace().code(), ErrorCode::kAlreadyExists);
  ASSERT_TRUE(plane(0).StopTrace().ok());
  SendPrivate();
}

}  // namespace
}  // namespace ferry::daemon
