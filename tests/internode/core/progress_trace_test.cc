// The records of two nodes about messages between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shm/daemon_trace.h"
#include "shm/segment.h"
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

// ---- A job's own events -------------------------------------------------------------------------

class JobTraceTest : public ProgressTraceTest {
 protected:
  // Has the nodes keep their events about the job.
  void TraceJob(const std::string& job_id) {
    for (const auto& plane : planes_) {
      const StatusOr<UniqueFd> fd = shm::CreateSegment("test", 1 << 20);
      StatusOr<shm::Mapping> mapping = shm::MapSegment(fd->get(), 0);
      ASSERT_TRUE(mapping.ok());
      rings_[job_id].emplace_back(mapping->base(), mapping->size_bytes());
      writers_.push_back(std::make_shared<shm::DaemonTraceWriter>(std::move(*mapping), 1));
      plane->TraceJob(job_id, writers_.back());
    }
  }
  std::vector<shm::DaemonTraceSlot> Events(const std::string& job_id, uint32_t node) const {
    const auto read = shm::ReadDaemonTrace(rings_.at(job_id)[node], {.job_size = 2});
    EXPECT_TRUE(read.has_value());
    return read.value_or(shm::DaemonTraceEvents()).events;
  }
  std::vector<shm::DaemonTraceSlot> EventsOf(shm::DaemonWork work, uint32_t node) const {
    std::vector<shm::DaemonTraceSlot> events = Events(kJob, node);
    std::erase_if(events,
                  [&](const auto& event) { return event.work != static_cast<uint8_t>(work); });
    return events;
  }
  void SendSmall(uint64_t bytes) {
    const std::vector<char> sent(bytes, 'x');
    std::vector<char> got(bytes);
    const uint32_t receive = rank(1).Receive(0, 7, Private(got.data()), bytes);
    const uint32_t send = rank(0).Send(1, 7, sent.data(), bytes);
    EXPECT_EQ(WaitTogether(1, receive), ErrorCode::kOk);
    EXPECT_EQ(WaitTogether(0, send), ErrorCode::kOk);
    EXPECT_TRUE(AllIdle());  // the events come behind what they tell of
  }

  std::map<std::string, std::vector<std::span<const std::byte>>> rings_;
  std::vector<std::shared_ptr<shm::DaemonTraceWriter>> writers_;  // keep the rings mapped
};

TEST_F(JobTraceTest, BothNodesKeepEachStageOfAMessage) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}, FastOptions()));
  TraceJob(kJob);
  SendSmall(3);
  SendPrivate();
  const auto eager = EventsOf(shm::DaemonWork::kEagerSend, 0);
  ASSERT_THAT(eager, SizeIs(1));
  EXPECT_EQ(eager[0].bytes, 3U);
  EXPECT_EQ(eager[0].rank, 0U);
  EXPECT_EQ(eager[0].peer, 1U);
  EXPECT_EQ(eager[0].peer_node, 1U);
  const auto deliveries = EventsOf(shm::DaemonWork::kDelivery, 1);
  ASSERT_THAT(deliveries, SizeIs(2));
  EXPECT_EQ(deliveries[0].bytes, 3U);
  EXPECT_EQ(deliveries[1].bytes, kBytes);
  EXPECT_EQ(deliveries[1].rank, 1U);
  const auto rts = EventsOf(shm::DaemonWork::kRts, 0);
  const auto gets = EventsOf(shm::DaemonWork::kRndvGet, 1);
  ASSERT_THAT(rts, SizeIs(1));
  ASSERT_THAT(gets, SizeIs(1));
  EXPECT_EQ(rts[0].message, gets[0].message);
  EXPECT_EQ(rts[0].message, deliveries[1].message);
  EXPECT_EQ(gets[0].bytes, kBytes);
  EXPECT_GT(EventsOf(shm::DaemonWork::kRead, 1).size(), 1U);
  EXPECT_THAT(EventsOf(shm::DaemonWork::kCopyIn, 0),
              SizeIs(EventsOf(shm::DaemonWork::kCopyOut, 1).size()));
}

// By the same clock: the receiver's daemon may have a message before the sender's has gone on.
TEST_F(JobTraceTest, AMessageGoesOutBeforeItComes) {
  constexpr size_t kMessages = 200;
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}, FastOptions()));
  TraceJob(kJob);
  for (size_t i = 0; i < kMessages; ++i) {
    SendSmall(8);
  }
  const auto sends = EventsOf(shm::DaemonWork::kEagerSend, 0);
  const auto deliveries = EventsOf(shm::DaemonWork::kDelivery, 1);
  ASSERT_THAT(sends, SizeIs(kMessages));
  ASSERT_THAT(deliveries, SizeIs(kMessages));
  for (size_t i = 0; i < kMessages; ++i) {
    EXPECT_LE(sends[i].begin_ns, deliveries[i].begin_ns) << i;
  }
}

// Of another user, for instance.
TEST_F(JobTraceTest, AnotherJobsEventsAreInNoneOfThem) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}, FastOptions()));
  for (uint32_t node = 0; node < 2; ++node) {
    JobPlan plan = PlanFor(node);
    plan.job_id = "other";
    ++plan.key;
    ASSERT_TRUE(plane(node).AddJob(plan).ok());
  }
  TraceJob(kJob);
  TraceJob("other");
  SendPrivate();
  for (uint32_t node = 0; node < 2; ++node) {
    EXPECT_FALSE(Events(kJob, node).empty());
    EXPECT_TRUE(Events("other", node).empty());
    plane(node).RemoveJob("other");
  }
}

TEST_F(JobTraceTest, ATraceOfTheDaemonLeavesThemAlone) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}, FastOptions()));
  TraceJob(kJob);
  SendSmall(1);
  ASSERT_NO_FATAL_FAILURE(StartTraces());
  SendSmall(2);
  EXPECT_EQ(Read(0).MomentsNamed("eager send"), 1U);
  EXPECT_EQ(Read(1).MomentsNamed("delivery"), 1U);
  SendSmall(3);
  EXPECT_THAT(EventsOf(shm::DaemonWork::kEagerSend, 0), SizeIs(3));
  EXPECT_THAT(EventsOf(shm::DaemonWork::kDelivery, 1), SizeIs(3));
}

// It will end, and be kept then.
TEST_F(JobTraceTest, WhatIsUnderWayAsATraceOfTheDaemonEndsIsKeptOnce) {
  ASSERT_NO_FATAL_FAILURE(StartTraced());
  TraceJob(kJob);
  gate(1).closed = true;
  const Passage passage = BeginPrivate();
  ASSERT_TRUE(Meanwhile([&] { return gate(1).held != 0; }));
  EXPECT_THAT(Read(1).Named("rendezvous get"), SizeIs(1));
  (void)plane(0).StopTrace();
  EXPECT_TRUE(EventsOf(shm::DaemonWork::kRndvGet, 1).empty());
  gate(1).closed = false;
  ExpectEnd(passage);
  EXPECT_TRUE(Eventually([&] { return plane(0).Idle(); }));
  EXPECT_THAT(EventsOf(shm::DaemonWork::kRndvGet, 1), SizeIs(1));
}

}  // namespace
}  // namespace ferry::daemon
