#include "internode/trace/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "shm/daemon_trace.h"
#include "shm/segment.h"

namespace ferry::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

progress::TraceRecord Bytes(uint64_t bytes) {
  progress::TraceRecord record;
  record.bytes = bytes;
  return record;
}

std::vector<uint64_t> BytesIn(progress::TraceRing ring) {
  std::vector<uint64_t> bytes;
  for (const progress::TraceRecord& record : ring.Take()) {
    bytes.push_back(record.bytes);
  }
  return bytes;
}

TEST(TraceRingTest, KeepsTheLastInOrderAndCountsTheOthers) {
  progress::TraceRing ring(4);
  for (uint64_t i = 1; i <= 3; ++i) {
    ring.Put(Bytes(i));
  }
  EXPECT_EQ(ring.kept(), 3U);
  EXPECT_EQ(ring.dropped(), 0U);
  EXPECT_THAT(BytesIn(ring), ElementsAre(1, 2, 3));
  for (uint64_t i = 4; i <= 10; ++i) {
    ring.Put(Bytes(i));
  }
  EXPECT_EQ(ring.kept(), 4U);
  EXPECT_EQ(ring.dropped(), 6U);
  EXPECT_THAT(BytesIn(ring), ElementsAre(7, 8, 9, 10));
}

TEST(TraceRingTest, HoldsAsManyAsItWasMadeFor) {
  progress::TraceRing ring(2);
  ring.Put(Bytes(1));
  ring.Put(Bytes(2));
  EXPECT_EQ(ring.dropped(), 0U);
  EXPECT_THAT(BytesIn(ring), ElementsAre(1, 2));
  ring.Put(Bytes(3));
  EXPECT_EQ(ring.dropped(), 1U);
  EXPECT_THAT(BytesIn(ring), ElementsAre(2, 3));
}

TEST(TracerTest, RecordsNothingBeforeItsStart) {
  progress::Tracer tracer;
  EXPECT_FALSE(tracer.on());
  EXPECT_FALSE(tracer.TapFor("job").on());
  EXPECT_EQ(tracer.TapFor("job").Now(17), 17U);
}

TEST(TracerTest, RefusesToStartTwiceOrToStopTwice) {
  progress::Tracer tracer;
  EXPECT_EQ(tracer.Stop(5).status().code(), ErrorCode::kNotFound);
  EXPECT_THAT(tracer.Stop(5).status().message(), HasSubstr("`ferryctl trace start`"));
  ASSERT_TRUE(tracer.Start(progress::TraceRing(8), 1'000'000'000).ok());
  const Status again = tracer.Start(progress::TraceRing(8), 4'500'000'000);
  EXPECT_EQ(again.code(), ErrorCode::kAlreadyExists);
  EXPECT_THAT(again.message(), HasSubstr("since 3 s: `ferryctl trace stop`"));
  ASSERT_TRUE(tracer.Stop(5'000'000'000).ok());
  EXPECT_EQ(tracer.Stop(5'000'000'000).status().code(), ErrorCode::kNotFound);
}

TEST(TracerTest, GivesEachJobANumber) {
  progress::Tracer tracer;
  ASSERT_TRUE(tracer.Start(progress::TraceRing(8), 10).ok());
  const progress::TraceTap first = tracer.TapFor("first");
  const progress::TraceTap second = tracer.TapFor("second");
  EXPECT_EQ(tracer.TapFor("first").job(), first.job());
  second.Put(Bytes(7));
  first.Put(Bytes(8));
  StatusOr<progress::TraceDump> dump = tracer.Stop(20);
  ASSERT_TRUE(dump.ok());
  EXPECT_THAT(dump->jobs, ElementsAre("first", "second"));
  EXPECT_EQ(dump->begin_ns, 10U);
  EXPECT_EQ(dump->end_ns, 20U);
  const std::vector<progress::TraceRecord> records = dump->ring.Take();
  ASSERT_EQ(records.size(), 3U);  // with the counters at the start
  EXPECT_EQ(records[1].job, 1U);
  EXPECT_EQ(records[2].job, 0U);
}

TEST(TracerTest, BoundsTheNumberOfJobs) {
  progress::Tracer tracer;
  ASSERT_TRUE(tracer.Start(progress::TraceRing(8), 10).ok());
  for (int i = 0; i < 5000; ++i) {
    tracer.TapFor("job " + std::to_string(i));
  }
  const progress::TraceTap last = tracer.TapFor("one more");
  const StatusOr<progress::TraceDump> dump = tracer.Stop(20);
  ASSERT_TRUE(dump.ok());
  EXPECT_EQ(dump->jobs.size(), 4096U);
  EXPECT_EQ(dump->jobs[last.job()], "(other jobs)");
}

TEST(TracerTest, RecordsCountersWhenTheyChange) {
  progress::Tracer tracer;
  ASSERT_TRUE(tracer.Start(progress::TraceRing(8), 10).ok());
  tracer.Count({});
  tracer.Count({1, 2, 3});
  tracer.Count({1, 2, 3});
  tracer.Count({1, 2, 4});
  StatusOr<progress::TraceDump> dump = tracer.Stop(20);
  ASSERT_TRUE(dump.ok());
  std::vector<uint64_t> waits;
  for (const progress::TraceRecord& record : dump->ring.Take()) {
    EXPECT_EQ(record.kind, progress::TraceKind::kCounters);
    waits.push_back(CountersOf(record).staging_waits);
  }
  EXPECT_THAT(waits, ElementsAre(0, 3, 4));
}

TEST(TracerTest, StartsAnewAfterAStop) {
  progress::Tracer tracer;
  ASSERT_TRUE(tracer.Start(progress::TraceRing(2), 10).ok());
  for (int i = 0; i < 9; ++i) {
    tracer.TapFor("job").Put(Bytes(1));
  }
  ASSERT_TRUE(tracer.Stop(20).ok());
  EXPECT_FALSE(tracer.TapFor("job").on());
  ASSERT_TRUE(tracer.Start(progress::TraceRing(2), 30).ok());
  const StatusOr<progress::TraceDump> dump = tracer.Stop(40);
  ASSERT_TRUE(dump.ok());
  EXPECT_EQ(dump->ring.dropped(), 0U);
  EXPECT_EQ(dump->ring.kept(), 1U);
  EXPECT_TRUE(dump->jobs.empty());
}

// ---- A job's own events -------------------------------------------------------------------------

// The ring of a job, and a look at it.
struct OwnRing {
  OwnRing() {
    const StatusOr<UniqueFd> fd = shm::CreateSegment("test", 4096);
    StatusOr<shm::Mapping> mapping = shm::MapSegment(fd->get(), 0);
    memory = {mapping->base(), mapping->size_bytes()};
    writer = std::make_shared<shm::DaemonTraceWriter>(std::move(*mapping), 1);
  }
  std::vector<uint64_t> Bytes() const {
    const auto read = shm::ReadDaemonTrace(memory, {.job_size = 4});
    std::vector<uint64_t> bytes;
    for (const shm::DaemonTraceSlot& event : read->events) {
      bytes.push_back(event.bytes);
    }
    return bytes;
  }

  std::span<const std::byte> memory;
  std::shared_ptr<shm::DaemonTraceWriter> writer;
};

TEST(TraceTapTest, AJobsOwnEventsNeedNoTraceOfTheDaemon) {
  progress::Tracer tracer;
  const OwnRing ring;
  progress::TraceTap tap = tracer.TapFor("job");
  EXPECT_FALSE(tap.on());
  tap.Keep(ring.writer);
  ASSERT_TRUE(tap.on());
  tap.Put(Bytes(7));
  EXPECT_THAT(ring.Bytes(), ElementsAre(7));
}

TEST(TraceTapTest, EachJobHasItsOwnEventsAlone) {
  progress::Tracer tracer;
  const OwnRing anns;
  const OwnRing bobs;
  progress::TraceTap ann = tracer.TapFor("ann's");
  progress::TraceTap bob = tracer.TapFor("bob's");
  const progress::TraceTap cid = tracer.TapFor("cid's");
  ann.Keep(anns.writer);
  bob.Keep(bobs.writer);
  ASSERT_TRUE(tracer.Start(progress::TraceRing(64), 10).ok());
  progress::TraceTap followed = cid;
  followed.Follow(tracer.TapFor("cid's"));
  followed.Put(Bytes(100));
  for (uint64_t i = 0; i < 5; ++i) {
    (i % 2 == 0 ? ann : bob).Put(Bytes(i));
  }
  EXPECT_THAT(anns.Bytes(), ElementsAre(0, 2, 4));
  EXPECT_THAT(bobs.Bytes(), ElementsAre(1, 3));
  ASSERT_TRUE(tracer.Stop(20).ok());
}

TEST(TraceTapTest, BothTracesGetTheSame) {
  progress::Tracer tracer;
  const OwnRing ring;
  progress::TraceTap tap = tracer.TapFor("job");
  tap.Keep(ring.writer);
  tap.Put(Bytes(1));
  ASSERT_TRUE(tracer.Start(progress::TraceRing(8), 10).ok());
  tap.Follow(tracer.TapFor("job"));
  tap.Put(Bytes(2));
  progress::TraceRecord unfinished = Bytes(3);  // as when the trace of the daemon ends
  unfinished.error = progress::TraceError(ErrorCode::kWouldBlock);
  tap.Put(unfinished);
  tap.Follow({});
  StatusOr<progress::TraceDump> dump = tracer.Stop(20);
  ASSERT_TRUE(dump.ok());
  ASSERT_TRUE(tap.on()) << "the job's own goes on";
  tap.Put(Bytes(3));
  EXPECT_THAT(BytesIn(std::move(dump->ring)), ElementsAre(0, 2, 3)) << "first, the counters";
  EXPECT_THAT(ring.Bytes(), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace ferry::daemon
