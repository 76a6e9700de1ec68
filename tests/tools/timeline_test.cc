// The timeline as a reader of the format finds it: slices that lie in each other, arrows from a
// send to a later receive, text that is JSON whatever ranks are called and whatever they wrote.
#include "tools/profile/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ferry::tools {
namespace {

using nlohmann::json;
using shm::CallName;
using shm::TraceEvent;
using shm::TraceKind;

constexpr uint32_t kThread = 4711;

// ---- A job --------------------------------------------------------------------------------------

TraceEvent Event(TraceKind kind, uint64_t begin_ns, uint64_t end_ns) {
  TraceEvent event;
  event.kind = kind;
  event.begin_ns = begin_ns;
  event.end_ns = end_ns;
  event.thread = kThread;
  return event;
}

TraceEvent Call(CallName name, uint64_t begin_ns, uint64_t end_ns) {
  TraceEvent event = Event(TraceKind::kCall, begin_ns, end_ns);
  event.name = name;
  return event;
}

TraceEvent Wait(CallName name, uint64_t call_begin_ns, uint64_t wait_begin_ns) {
  TraceEvent event = Event(TraceKind::kWait, call_begin_ns, wait_begin_ns);
  event.name = name;
  return event;
}

TraceEvent Message(TraceKind kind, int32_t peer, uint32_t number, uint64_t begin_ns,
                   uint64_t end_ns, uint32_t order = 1) {
  TraceEvent event = Event(kind, begin_ns, end_ns);
  event.peer = peer;
  event.number = number;
  event.order = order;
  event.tag = 5;
  event.bytes = 100;
  event.flags = shm::kTraceHasTag | shm::kTraceHasBytes;
  return event;
}
constexpr TraceKind kSend = TraceKind::kSend;
constexpr TraceKind kReceive = TraceKind::kReceive;

struct Job {
  std::vector<TimelineNode> nodes = {{"node0", {}}, {"node1", {}}};
  std::vector<TimelineRank> ranks;
  std::string name = "job";
  uint64_t last_ns = UINT64_MAX;
  TimelineFacts facts;
  size_t largest_piece = 0;

  TimelineRank& Add(uint32_t node, std::vector<TraceEvent> events) {
    TimelineRank rank;
    rank.rank = static_cast<uint32_t>(ranks.size());
    rank.node = node;
    rank.trace.events = std::move(events);
    ranks.push_back(std::move(rank));
    return ranks.back();
  }

  json Draw() {
    Timeline timeline;
    timeline.job = name;
    timeline.program = "program";
    timeline.size = timeline.ranks = static_cast<uint32_t>(ranks.size());
    timeline.nodes = nodes;
    timeline.last_ns = last_ns;
    timeline.load = [this](uint32_t i, TimelineRank* rank) {
      *rank = ranks[i];
      return true;
    };
    std::string text;
    EXPECT_TRUE(WriteTimeline(
        timeline,
        [&](std::string_view piece) {
          largest_piece = std::max(largest_piece, piece.size());
          text += piece;
          return true;
        },
        &facts));
    return json::parse(text);
  }
};

// Returns the events of a phase, sorted by time.
std::vector<json> Of(const json& picture, const std::string& phase) {
  std::vector<json> found;
  for (const json& event : picture["traceEvents"]) {
    if (event["ph"] == phase) {
      found.push_back(event);
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const json& a, const json& b) {
    return a.value("ts", 0.0) < b.value("ts", 0.0);
  });
  return found;
}

const json& Only(const std::vector<json>& slices, const std::string& name) {
  static const json none = {{"ts", -1}, {"dur", -1}, {"name", "none"}, {"args", json::object()}};
  const json* found = &none;
  int count = 0;
  for (const json& slice : slices) {
    if (slice["name"] == name) {
      found = &slice;
      ++count;
    }
  }
  EXPECT_EQ(count, 1) << name;
  return *found;
}

double EndOf(const json& slice) { return slice["ts"].get<double>() + slice["dur"].get<double>(); }

// The rules of the format that hold for each picture.
void ExpectSound(const json& picture, uint64_t arrows) {
  std::map<std::pair<int64_t, int64_t>, std::vector<json>> tracks;
  std::map<std::string, std::vector<json>> ends;
  for (const json& event : picture["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "X") {
      EXPECT_GE(event["ts"].get<double>(), 0);
      EXPECT_GE(event["dur"].get<double>(), 0);
      tracks[{event["pid"], event["tid"]}].push_back(event);
    } else if (phase == "s" || phase == "f") {
      ends[event["id"]].push_back(event);
    } else {
      EXPECT_EQ(phase, "M");
    }
  }
  constexpr double kRounding = 1e-4;  // of microseconds as a double
  for (auto& [track, slices] : tracks) {
    std::stable_sort(slices.begin(), slices.end(),
                     [](const json& a, const json& b) { return a["ts"] < b["ts"]; });
    std::vector<double> around;
    for (const json& slice : slices) {
      const double begin = slice["ts"];
      while (!around.empty() && around.back() <= begin + kRounding) {
        around.pop_back();
      }
      EXPECT_TRUE(around.empty() || EndOf(slice) <= around.back() + kRounding) << slice;
      around.push_back(EndOf(slice));
    }
  }
  EXPECT_EQ(ends.size(), arrows);
  for (auto& [id, two] : ends) {
    ASSERT_EQ(two.size(), 2U) << id;
    std::sort(two.begin(), two.end(),
              [](const json& a, const json& b) { return a["ph"] > b["ph"]; });
    EXPECT_EQ(two[0]["ph"], "s");
    EXPECT_EQ(two[1]["ph"], "f");
    EXPECT_LE(two[0]["ts"].get<double>(), two[1]["ts"].get<double>());
    for (const json& end : two) {  // it lies in a slice of a message
      const auto& slices = tracks[{end["pid"], end["tid"]}];
      EXPECT_TRUE(std::any_of(slices.begin(), slices.end(), [&](const json& slice) {
        return slice["cat"] == "message" && slice["ts"] <= end["ts"] &&
               EndOf(slice) + kRounding >= end["ts"].get<double>();
      })) << end;
    }
  }
}

// ---- Slices -------------------------------------------------------------------------------------

TEST(TimelineTest, AnEmptyJobIsAPicture) {
  Job job;
  json picture = job.Draw();
  EXPECT_TRUE(picture["traceEvents"].empty());
  job.Add(0, {});
  picture = job.Draw();
  ExpectSound(picture, 0);
  EXPECT_EQ(picture["otherData"]["job"], "job");
  EXPECT_EQ(picture["otherData"]["events_lost"], 0);
}

TEST(TimelineTest, ShowsCallsWithTheirWaits) {
  Job job;
  TraceEvent call = Call(CallName::kMpiRecv, 11'000, 19'500);
  call.peer = 3;
  call.bytes = 8;
  call.flags = shm::kTraceHasBytes;
  job.Add(0, {Call(CallName::kMpiSend, 10'000, 10'250), Wait(CallName::kMpiRecv, 11'000, 12'000),
              call, Call(CallName::kMpiSend, 20'000, 20'001)});
  const json picture = job.Draw();
  ExpectSound(picture, 0);
  const std::vector<json> slices = Of(picture, "X");
  ASSERT_EQ(slices.size(), 4U);
  EXPECT_EQ(slices[0]["name"], "MPI_Send");
  EXPECT_EQ(slices[0]["ts"], 0);
  EXPECT_EQ(slices[0]["dur"], 0.25);
  EXPECT_EQ(slices[0]["pid"], 1);
  EXPECT_EQ(slices[0]["tid"], kThread);
  EXPECT_EQ(slices[1]["name"], "MPI_Recv");
  EXPECT_EQ(slices[1]["args"]["bytes"], 8);
  EXPECT_FALSE(slices[1]["args"].contains("unfinished"));
  EXPECT_EQ(slices[2]["name"], "waits");
  EXPECT_EQ(slices[2]["ts"], 2);
  EXPECT_EQ(EndOf(slices[2]), 9.5);
  bool is_named = false;
  for (const json& name : Of(picture, "M")) {
    is_named |= name["name"] == "process_name" && name["args"]["name"] == "rank 0 (node0)";
  }
  EXPECT_TRUE(is_named);
}

// A rank that was killed while it waited: its call lasts until it was gone.
TEST(TimelineTest, ShowsTheWaitThatNeverEnded) {
  Job job;
  TimelineRank& rank = job.Add(
      0, {Call(CallName::kMpiSend, 10'000, 11'000), Wait(CallName::kMpiRecv, 12'000, 13'000)});
  rank.seen_ns = 50'000;
  rank.has_died = true;
  job.Add(0, {Call(CallName::kMpiBarrier, 10'000, 60'000)});
  const json picture = job.Draw();
  ExpectSound(picture, 0);
  const std::vector<json> slices = Of(picture, "X");
  const json& call = Only(slices, "MPI_Recv");
  EXPECT_EQ(call["ts"], 2);
  EXPECT_EQ(EndOf(call), 40);
  EXPECT_EQ(call["args"]["unfinished"], true);
  EXPECT_EQ(call["args"]["ended"], "the rank died in it");
  EXPECT_EQ(Only(slices, "waits")["ts"], 3);
}

// A picture of a job that runs on ends when its ranks were looked at; one of a job that is over,
// with its last event, however late the rank was looked at.
TEST(TimelineTest, AWaitThatGoesOnLastsUntilTheLook) {
  for (const bool is_running : {true, false}) {
    Job job;
    TimelineRank& rank = job.Add(0, {Wait(CallName::kMpiRecv, 12'000, 13'000)});
    rank.seen_ns = 50'000;
    rank.is_running = is_running;
    job.Add(0, {Call(CallName::kMpiBarrier, 10'000, 20'000)});
    const json picture = job.Draw();
    ExpectSound(picture, 0);
    const std::vector<json> slices = Of(picture, "X");
    const json& call = Only(slices, "MPI_Recv");
    EXPECT_EQ(call["ts"], 2);
    EXPECT_EQ(EndOf(call), is_running ? 40 : 10);
    EXPECT_EQ(call["args"]["unfinished"], true);
    EXPECT_FALSE(call["args"].contains("ended"));
  }
}

// The event of a call that had waited is lost: the wait ends before the next call.
TEST(TimelineTest, AWaitWhoseCallIsLostEndsBeforeTheNextCall) {
  Job job;
  job.Add(0, {Wait(CallName::kMpiRecv, 10'000, 11'000), Call(CallName::kMpiSend, 20'000, 21'000)})
      .seen_ns = 90'000;
  const json picture = job.Draw();
  ExpectSound(picture, 0);
  EXPECT_EQ(EndOf(Only(Of(picture, "X"), "MPI_Recv")), 10);
}

TEST(TimelineTest, ThreadsHaveTracksOfTheirOwn) {
  Job job;
  TraceEvent other = Call(CallName::kMpiRecv, 10'500, 30'000);
  other.thread = 4712;
  job.Add(0, {Call(CallName::kMpiSend, 10'000, 20'000), other});
  const json picture = job.Draw();
  ExpectSound(picture, 0);
  std::set<int64_t> threads;
  for (const json& slice : Of(picture, "X")) {
    threads.insert(slice["tid"].get<int64_t>());
  }
  EXPECT_EQ(threads, (std::set<int64_t>{4711, 4712}));
}

TEST(TimelineTest, QueuesHaveTracksOfTheirOwn) {
  Job job;
  std::vector<TraceEvent> events;
  for (uint32_t i = 0; i < 3; ++i) {
    events.push_back(Event(TraceKind::kQueued, 10'000 + 1'000 * i, 10'100 + 1'000 * i));
    events.back().group = 2;
    events.back().number = i;
  }
  events.push_back(Event(TraceKind::kQueueWait, 14'000, 20'000));
  events.back().group = 2;
  job.Add(0, events);
  const json picture = job.Draw();
  ExpectSound(picture, 0);
  const std::vector<json> slices = Of(picture, "X");
  const json& last = Only(slices, "operation 2");
  EXPECT_EQ(last["ts"], 2);
  EXPECT_EQ(EndOf(last), 10);
  EXPECT_NE(last["tid"], Only(slices, "wait for the queue")["tid"]);
  EXPECT_EQ(EndOf(Only(slices, "operation 0")), 1);
}

TEST(TimelineTest, StreamsHaveTracksOfTheirOwn) {
  Job job;
  const auto work = [](shm::TraceWork what, uint32_t stream, uint64_t begin_ns, uint64_t end_ns) {
    TraceEvent event = Event(TraceKind::kWork, begin_ns, end_ns);
    event.group = stream;
    event.order = static_cast<uint32_t>(what);
    event.bytes = 64;
    event.flags = shm::kTraceHasBytes;
    return event;
  };
  job.Add(0, {Call(CallName::kMpiBarrier, 10'000, 30'000),
              work(shm::TraceWork::kMoveWait, 0, 11'000, 15'000),
              work(shm::TraceWork::kHostCall, 0, 15'000, 18'000),
              work(shm::TraceWork::kCopy, 1, 12'000, 13'000),
              work(static_cast<shm::TraceWork>(77), 1, 13'000, 14'000)});
  const json picture = job.Draw();
  ExpectSound(picture, 0);
  const std::vector<json> slices = Of(picture, "X");
  const json& wait = Only(slices, "wait for a message");
  EXPECT_EQ(wait["ts"], 1);
  EXPECT_EQ(EndOf(wait), 5);
  EXPECT_EQ(wait["cat"], "stream");
  EXPECT_EQ(wait["args"]["bytes"], 64);
  EXPECT_EQ(Only(slices, "host function")["tid"], wait["tid"]);
  EXPECT_NE(Only(slices, "copy")["tid"], wait["tid"]);
  EXPECT_EQ(Only(slices, "work")["tid"], Only(slices, "copy")["tid"]) << "of a later release";
  std::set<std::string> tracks;
  for (const json& event : Of(picture, "M")) {
    if (event["name"] == "thread_name") {
      tracks.insert(event["args"]["name"]);
    }
  }
  EXPECT_EQ(tracks, (std::set<std::string>{"calls", "stream 0", "stream 1"}));
}

// ---- Arrows -------------------------------------------------------------------------------------

TEST(TimelineTest, ArrowsLeadFromSendsToReceives) {
  Job job;
  job.Add(0, {Message(kSend, 1, 1, 10'000, 10'100), Message(kSend, 1, 2, 11'000, 11'100)});
  job.Add(0,
          {Message(kReceive, 0, 1, 10'000, 10'500, 1), Message(kReceive, 0, 2, 11'200, 11'300, 2)});
  const json picture = job.Draw();
  ExpectSound(picture, 2);
  EXPECT_EQ(job.facts.arrows, 2U);
  EXPECT_EQ(job.facts.unmatched, 0U);
  const std::vector<json> from = Of(picture, "s");
  const std::vector<json> to = Of(picture, "f");
  ASSERT_EQ(from.size(), 2U);
  ASSERT_EQ(to.size(), 2U);
  EXPECT_EQ(from[0]["id"], to[0]["id"]);
  EXPECT_EQ(from[0]["ts"], 0);
  EXPECT_EQ(from[0]["pid"], 1);
  EXPECT_EQ(to[0]["pid"], 2);
  EXPECT_NEAR(to[0]["ts"].get<double>(), 0.499, 1e-9);
}

// The first message is large, and complete behind the second one.
TEST(TimelineTest, AReceiveThatEndsLateHasTheMessageThatWasSentFirst) {
  Job job;
  job.Add(0, {Message(kSend, 1, 1, 10'000, 10'100), Message(kSend, 1, 2, 11'000, 11'100)});
  job.Add(0,
          {Message(kReceive, 0, 1, 12'000, 12'100, 8), Message(kReceive, 0, 2, 19'000, 20'000, 7)});
  const json picture = job.Draw();
  ExpectSound(picture, 2);
  std::map<std::string, double> from;
  for (const json& end : Of(picture, "s")) {
    from[end["id"]] = end["ts"];
  }
  const std::vector<json> to = Of(picture, "f");
  EXPECT_EQ(from[to[0]["id"]], 1);  // what came first was sent second
  EXPECT_EQ(from[to[1]["id"]], 0);
}

TEST(TimelineTest, NumbersMayPassTheirLimit) {
  Job job;
  std::vector<TraceEvent> sends;
  std::vector<TraceEvent> receives;
  for (uint32_t i = 0; i < 6; ++i) {
    const uint32_t number = UINT32_MAX - 3 + i;  // 0 is among them, which is no number
    sends.push_back(Message(kSend, 1, number, 10'000 + 1'000 * i, 10'100 + 1'000 * i));
    receives.push_back(
        Message(kReceive, 0, number, 10'200 + 1'000 * i, 10'300 + 1'000 * i, number));
  }
  job.Add(0, sends);
  job.Add(0, receives);
  ExpectSound(job.Draw(), 5);
}

// Tags, contexts and peers are counted each by themselves.
TEST(TimelineTest, MessagesOfOtherTagsAreOthers) {
  Job job;
  std::vector<TraceEvent> sends;
  std::vector<TraceEvent> receives;
  for (int32_t i = 0; i < 4; ++i) {
    sends.push_back(Message(kSend, 1, 1, 10'000, 10'100));
    receives.push_back(Message(kReceive, 0, 1, 10'200, 10'300));
    sends.back().tag = receives.back().tag = i / 2;
    sends.back().group = receives.back().group = static_cast<uint32_t>(i % 2);
  }
  job.Add(0, sends);
  job.Add(0, receives);
  ExpectSound(job.Draw(), 4);
}

TEST(TimelineTest, AMessageWithOneEndHasNoArrow) {
  Job job;
  TraceEvent failed = Message(kSend, 1, 3, 12'000, 12'100);
  failed.flags |= shm::kTraceFailed;
  job.Add(0, {Message(kSend, 1, 1, 10'000, 10'100), Message(kSend, 1, 2, 11'000, 11'100), failed});
  job.Add(0, {Message(kReceive, 0, 2, 11'200, 11'300), Message(kReceive, 0, 3, 13'000, 13'100)});
  ExpectSound(job.Draw(), 1);
  EXPECT_EQ(job.facts.unmatched, 2U);
}

TEST(TimelineTest, SaysHowAMessageGoes) {
  Job job;
  TraceEvent by_link = Message(kSend, 2, 2, 12'000, 12'100);
  by_link.flags |= shm::kTraceByLink;
  job.Add(0, {Message(kSend, 1, 1, 10'000, 10'100), Message(kSend, 2, 1, 11'000, 11'100), by_link});
  job.Add(0, {});
  job.Add(1, {});
  std::vector<std::string> ways;
  for (const json& slice : Of(job.Draw(), "X")) {
    ways.push_back(slice["args"]["way"]);
  }
  EXPECT_EQ(ways, (std::vector<std::string>{"in the node", "daemons", "direct link"}));
}

// ---- Clocks -------------------------------------------------------------------------------------

// The clock of node 1 is an hour behind. The question took 200 us, all of it on the way there.
TEST(TimelineTest, ClocksOfNodesAreAligned) {
  constexpr uint64_t kHour = 3'600'000'000'000;
  Job job;
  const std::vector<ClockSample> samples = {{2 * kHour, kHour + 200'000, 2 * kHour + 200'000}};
  job.nodes[1].clock = NodeClock::Of(samples);  // wrong by 100 us
  std::vector<TraceEvent> near;
  std::vector<TraceEvent> far;
  for (uint32_t i = 0; i < 100; ++i) {  // ping-pong, 5 us each way
    const uint64_t at_ns = 2 * kHour + 10'000'000 + 10'000 * i;
    near.push_back(Message(kSend, 1, i + 1, at_ns, at_ns + 100));
    near.push_back(Message(kReceive, 1, i + 1, at_ns + 200, at_ns + 10'000 - 10, i + 1));
    far.push_back(Message(kReceive, 0, i + 1, at_ns + 300 - kHour, at_ns + 5'000 - kHour, i + 1));
    far.push_back(Message(kSend, 0, i + 1, at_ns + 5'010 - kHour, at_ns + 5'100 - kHour));
  }
  job.Add(0, near);
  job.Add(1, far);
  const json picture = job.Draw();
  ExpectSound(picture, 200);
  EXPECT_EQ(job.facts.backward, 0U);
  EXPECT_LE(job.facts.clock_error_ns, 6'000U);
  std::map<std::string, double> from;
  for (const json& end : Of(picture, "s")) {
    from[end["id"]] = end["ts"];
  }
  for (const json& end : Of(picture, "f")) {
    EXPECT_NEAR(end["ts"].get<double>() - from[end["id"]], 5, 1);
  }
  EXPECT_LT(picture["otherData"]["clock_error_ns"].get<uint64_t>(), 6'000U);
}

TEST(TimelineTest, AnArrowAgainstTheTimeIsLeftOut) {
  Job job;
  job.Add(0, {Message(kSend, 1, 1, 20'000, 20'100)});
  job.Add(0, {Message(kReceive, 0, 1, 10'000, 10'100)});
  ExpectSound(job.Draw(), 0);
  EXPECT_EQ(job.facts.backward, 1U);
}

// ---- The last seconds ---------------------------------------------------------------------------

TEST(TimelineTest, ShowsOnlyTheLast) {
  Job job;
  std::vector<TraceEvent> sends;
  std::vector<TraceEvent> receives;
  for (uint32_t i = 0; i < 100; ++i) {
    const uint64_t at_ns = 1'000'000 + 1'000 * i;
    sends.push_back(Message(kSend, 1, i + 1, at_ns, at_ns + 100));
    receives.push_back(Message(kReceive, 0, i + 1, at_ns + 200, at_ns + 900, i + 1));
  }
  sends.push_back(Call(CallName::kMpiRecv, 0, 1'095'000));  // reaches into the last 10 us
  job.Add(0, sends);
  job.Add(0, receives);
  job.last_ns = 10'000;
  const json picture = job.Draw();
  ExpectSound(picture, 10);
  EXPECT_EQ(job.facts.length_ns, 10'000U);
  const std::vector<json> slices = Of(picture, "X");
  const double cut = slices.front()["ts"];
  EXPECT_EQ(EndOf(slices.back()) - cut, 10);
  EXPECT_EQ(Only(slices, "MPI_Recv")["ts"].get<double>(), cut);
}

// ---- Text ---------------------------------------------------------------------------------------

TEST(TimelineTest, AnyNameIsJson) {
  Job job;
  job.nodes[0].name = "a\"b\\c\n\x01\xff\xc3";
  job.name = std::string("\0x\"}]", 5);
  job.Add(0, {Call(CallName::kMpiSend, 1, 2)});
  const json picture = job.Draw();
  EXPECT_EQ(picture["otherData"]["job"].get<std::string>().size(), 5U);
  bool is_found = false;
  for (const json& name : Of(picture, "M")) {
    is_found |= name["args"].value("name", "").find("a\"b\\c\n\x01") != std::string::npos;
  }
  EXPECT_TRUE(is_found);
}

// Megabytes: no piece has more than 70 kB.
TEST(TimelineTest, LongPicturesAreWrittenInPieces) {
  Job job;
  std::vector<TraceEvent> sends;
  std::vector<TraceEvent> receives;
  constexpr uint32_t kMessages = 5'000;
  for (uint32_t i = 0; i < kMessages; ++i) {
    const uint64_t at_ns = 1'000'000 + uint64_t{1'000} * i;
    sends.push_back(Message(kSend, 1, i + 1, at_ns, at_ns + 100));
    receives.push_back(Message(kReceive, 0, i + 1, at_ns + 200, at_ns + 900, i + 1));
  }
  job.Add(0, std::move(sends));
  job.Add(0, std::move(receives));
  const json picture = job.Draw();
  EXPECT_EQ(Of(picture, "X").size(), 2 * kMessages);
  EXPECT_EQ(Of(picture, "f").size(), kMessages);
  EXPECT_GE(job.facts.events, 4 * kMessages);
  EXPECT_LT(job.largest_piece, 70'000U);
}

TEST(TimelineTest, EndsWhenNoMoreIsWanted) {
  Timeline timeline;
  timeline.size = timeline.ranks = 1;
  timeline.nodes = {{"node", {}}};
  timeline.load = [](uint32_t, TimelineRank* rank) {
    for (uint32_t i = 0; i < 10'000; ++i) {
      rank->trace.events.push_back(Call(CallName::kMpiSend, 1'000 * i, 1'000 * i + 500));
    }
    return true;
  };
  int pieces = 0;
  TimelineFacts facts;
  EXPECT_FALSE(WriteTimeline(
      timeline, [&](std::string_view) { return ++pieces < 3; }, &facts));
  EXPECT_EQ(pieces, 3);
}

TEST(TimelineTest, ARankThatCannotBeLoadedIsMissing) {
  Timeline timeline;
  timeline.size = 4;
  timeline.ranks = 2;
  timeline.nodes = {{"node", {}}};
  timeline.load = [](uint32_t i, TimelineRank* rank) {
    rank->node = i;  // there is no node 1
    return true;
  };
  std::string text;
  TimelineFacts facts;
  EXPECT_TRUE(WriteTimeline(
      timeline, [&](std::string_view piece) { return !text.append(piece).empty(); }, &facts));
  EXPECT_EQ(facts.missing, 1U);
  EXPECT_EQ(json::parse(text)["otherData"]["ranks_missing"], 3);
}

// Whatever a hostile rank has written, the others' picture stays sound.
TEST(TimelineTest, AnyEventsMakeASoundPicture) {
  std::mt19937_64 random(20261130);
  for (int round = 0; round < 300; ++round) {
    Job job;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      std::vector<TraceEvent> events;
      for (uint64_t i = 0; i < random() % 40; ++i) {
        const uint64_t begin_ns = random() % 5'000;
        TraceEvent event =
            Event(static_cast<TraceKind>(1 + random() % 7), begin_ns, begin_ns + random() % 5'000);
        event.flags = static_cast<uint8_t>(random());
        event.name = CallName::kMpiRecv;
        event.peer = static_cast<int32_t>(random() % 3);
        event.number = static_cast<uint32_t>(random() % 4);
        event.order = static_cast<uint32_t>(random() % 8);
        event.group = static_cast<uint32_t>(random() % 2);
        event.tag = static_cast<int32_t>(random() % 2);
        event.thread = static_cast<uint32_t>(random() % 3);
        events.push_back(event);
      }
      job.Add(rank % 2, std::move(events)).seen_ns = 12'000;
    }
    job.last_ns = random() % 2 == 0 ? UINT64_MAX : random() % 10'000;
    const json picture = job.Draw();
    std::map<std::string, int> ends;
    for (const json& event : picture["traceEvents"]) {
      if (event["ph"] == "s" || event["ph"] == "f") {
        ++ends[event["id"]];
      }
    }
    for (const auto& [id, count] : ends) {
      EXPECT_EQ(count, 2) << id;
    }
    EXPECT_EQ(ends.size(), job.facts.arrows);
  }
}

}  // namespace
}  // namespace ferry::tools
