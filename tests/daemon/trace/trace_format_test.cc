#include "daemon/trace/trace_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_code.h"
#include "tests/daemon/trace/trace_reading.h"

namespace ferry::daemon {
namespace {

using testing::SizeIs;

progress::TraceRecord Span(progress::TraceKind kind, progress::TracePlace place, uint64_t begin_ns,
                           uint64_t end_ns) {
  progress::TraceRecord record;
  record.kind = kind;
  record.place = place;
  record.begin_ns = begin_ns;
  record.end_ns = end_ns;
  return record;
}

progress::TraceDump DumpOf(const std::vector<progress::TraceRecord>& records, uint64_t room = 100) {
  progress::TraceDump dump{progress::TraceRing(room), {"job"}, 1'000, 9'000'123};
  for (const progress::TraceRecord& record : records) {
    dump.ring.Put(record);
  }
  return dump;
}

std::string Format(progress::TraceDump dump, const std::string& node_name = "node7") {
  return TraceText(std::move(dump), {node_name, 42});
}

TEST(TraceFormatTest, AnEmptyTraceIsOneToo) {
  const TraceReading reading = ReadTrace(Format(DumpOf({})));
  EXPECT_TRUE(reading.spans.empty());
  EXPECT_EQ(reading.other["node"], "node7");
  EXPECT_EQ(reading.other["dropped_records"], 0);
  EXPECT_EQ(reading.other["end_us"], 9000.123);
}

TEST(TraceFormatTest, SaysWhoWhatWhereAndWhichBlock) {
  progress::TraceRecord record =
      Span(progress::TraceKind::kCopyIn, progress::TracePlace::kCopyWorker, 1'500, 2'750);
  record.rank = 3;
  record.peer = 9;
  record.peer_node = 2;
  record.message = progress::TraceMessage(17, 5);
  record.offset = 4096;
  record.bytes = 16384;
  record.block = 6;
  record.worker = 1;
  record.error = progress::TraceError(ErrorCode::kPeerDied);
  const std::string text = Format(DumpOf({record}));
  const TraceReading reading = ReadTrace(text);
  ASSERT_THAT(reading.spans, SizeIs(1));
  EXPECT_EQ(reading.spans[0].name, "copy in");
  EXPECT_EQ(reading.spans[0].begin_ns, 1'500U);
  EXPECT_EQ(reading.spans[0].end_ns, 2'750U);
  EXPECT_EQ(reading.spans[0].arguments,
            nlohmann::json::parse(R"({"job": "job", "rank": 3, "peer": 9, "peer_node": 2,
                "place": "copy worker 1", "bytes": 16384, "message": "17.5", "offset": 4096,
                "block": 6, "error": ")" +
                                  std::string(ErrorCodeText(ErrorCode::kPeerDied)) + "\"}"));
  const nlohmann::json events = nlohmann::json::parse(text)["traceEvents"];
  EXPECT_EQ(events[0]["args"]["name"], "ferryd node7");
  EXPECT_EQ(events[1]["args"]["name"], "copy worker 1");
  EXPECT_EQ(events[1]["tid"], events[2]["tid"]);
  EXPECT_EQ(events[2]["pid"], 42);
}

TEST(TraceFormatTest, ReadsThatOverlapAreToldApart) {
  const TraceReading reading = ReadTrace(
      Format(DumpOf({Span(progress::TraceKind::kRead, progress::TracePlace::kNic, 3'000, 5'000),
                     Span(progress::TraceKind::kRead, progress::TracePlace::kNic, 1'000, 6'000)})));
  ASSERT_THAT(reading.spans, SizeIs(2));
  EXPECT_EQ(reading.spans[0].begin_ns, 3'000U);
  EXPECT_EQ(reading.spans[1].end_ns, 6'000U);
}

TEST(TraceFormatTest, SlicesThatTouchOrAreEmptyNest) {
  const auto slice = [](uint64_t begin_ns, uint64_t end_ns) {
    return Span(progress::TraceKind::kCopyOut, progress::TracePlace::kCopyWorker, begin_ns, end_ns);
  };
  const TraceReading reading =
      ReadTrace(Format(DumpOf({slice(1'000, 2'000), slice(2'000, 2'000), slice(2'000, 3'000)})));
  ASSERT_THAT(reading.spans, SizeIs(3));
  EXPECT_EQ(reading.spans[0].begin_ns, 1'000U);
  EXPECT_EQ(reading.spans[1].end_ns, 2'000U);
  EXPECT_EQ(reading.spans[2].begin_ns, 2'000U);
}

TEST(TraceFormatTest, MomentsAndCountersHaveTheirOwnEvents) {
  const TraceReading reading = ReadTrace(Format(DumpOf(
      {Span(progress::TraceKind::kEagerSend, progress::TracePlace::kProgressThread, 1'000, 1'000),
       progress::CountersRecord({4, 5, 6}, 2'000)})));
  EXPECT_TRUE(reading.spans.empty());
  EXPECT_EQ(reading.MomentsNamed("eager send"), 1U);
  ASSERT_THAT(reading.counters, SizeIs(2));
  EXPECT_EQ(reading.counters[0]["args"]["outstanding"], 4);
  EXPECT_EQ(reading.counters[1]["args"]["busy blocks"], 5);
  EXPECT_EQ(reading.counters[1]["args"]["waiting transfers"], 6);
}

TEST(TraceFormatTest, WhatHasNotEndedSaysSo) {
  progress::TraceRecord record =
      Span(progress::TraceKind::kRndvGet, progress::TracePlace::kProgressThread, 1'000, 2'000);
  record.error = progress::TraceError(ErrorCode::kWouldBlock);
  const TraceReading reading = ReadTrace(Format(DumpOf({record})));
  ASSERT_THAT(reading.spans, SizeIs(1));
  EXPECT_EQ(reading.spans[0].arguments["unfinished"], true);
}

TEST(TraceFormatTest, TellsHowManyRecordsGaveWay) {
  const TraceReading reading =
      ReadTrace(Format(DumpOf(std::vector(10, Span(progress::TraceKind::kStagedSend,
                                                   progress::TracePlace::kProgressThread, 1, 2)),
                              4)));
  EXPECT_THAT(reading.spans, SizeIs(4));
  EXPECT_EQ(reading.other["records"], 4);
  EXPECT_EQ(reading.other["dropped_records"], 6);
}

TEST(TraceFormatTest, NamesMayHoldAnything) {
  progress::TraceDump dump =
      DumpOf({Span(progress::TraceKind::kRndvGet, progress::TracePlace::kProgressThread, 1, 2)});
  dump.jobs = {"a\"b\\c\n\xff"};
  const TraceReading reading = ReadTrace(Format(std::move(dump), "quo\"te"));
  ASSERT_THAT(reading.spans, SizeIs(1));
  EXPECT_EQ(reading.spans[0].arguments["job"], "a\"b\\c\n\xef\xbf\xbd");
  EXPECT_EQ(reading.other["node"], "quo\"te");
}

TEST(TraceFormatTest, ComesInPiecesAndStopsWhenNobodyWantsThem) {
  const std::vector<progress::TraceRecord> records(
      5000, Span(progress::TraceKind::kRndvGet, progress::TracePlace::kProgressThread, 1, 2));
  size_t longest = 0;
  std::string text;
  EXPECT_TRUE(FormatTrace(DumpOf(records, 5000), {"n", 1}, [&](std::string_view piece) {
    longest = std::max(longest, piece.size());
    text += piece;
    return true;
  }));
  EXPECT_LT(longest, size_t{70} << 10);
  EXPECT_THAT(ReadTrace(text).spans, SizeIs(5000));
  int pieces = 0;
  EXPECT_FALSE(
      FormatTrace(DumpOf(records, 5000), {"n", 1}, [&](std::string_view) { return ++pieces < 2; }));
  EXPECT_EQ(pieces, 2);
}

}  // namespace
}  // namespace ferry::daemon
