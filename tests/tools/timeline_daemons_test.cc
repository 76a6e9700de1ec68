// Daemons in the timeline, as a reader of the format finds them: processes of their own, whose
// slices lie beside each other, and arrows that lead from a send through them to its receive.
#include "tools/profile/timeline_daemons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/error_code.h"
#include "tools/profile/timeline.h"

namespace ferry::tools {
namespace {

using nlohmann::json;
using shm::DaemonTraceSlot;
using shm::DaemonWork;
using shm::TraceEvent;
using shm::TraceKind;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr uint64_t kLateNs = 1'000'000;

// Two nodes with a rank on each, which have sent each other messages by their daemons.
struct Job {
  std::vector<TimelineNode> nodes = {{"node0", NodeClock::Of(kSamples)},
                                     {"node1", NodeClock::Of(kSamples)}};
  std::vector<TimelineRank> ranks = std::vector<TimelineRank>(2);
  std::vector<TimelineDaemon> daemons = std::vector<TimelineDaemon>(2);
  uint64_t last_ns = UINT64_MAX;
  uint64_t daemons_missing = 0;
  TimelineFacts facts;

  // The clocks of both are the launcher's, as far as questions told: to 10 ns.
  static inline const std::vector<ClockSample> kSamples = {{0, 10, 20},
                                                           {kLateNs, kLateNs + 10, kLateNs + 20}};

  Job() {
    for (uint32_t i = 0; i < 2; ++i) {
      ranks[i].rank = ranks[i].node = daemons[i].node = i;
      ranks[i].seen_ns = daemons[i].seen_ns = kLateNs;
    }
  }
  void AddEvent(uint32_t rank, TraceKind kind, uint32_t number, uint64_t begin_ns, uint64_t end_ns,
                uint64_t bytes) {
    TraceEvent event;
    event.kind = kind;
    event.begin_ns = begin_ns;
    event.end_ns = end_ns;
    event.thread = 4711;
    event.peer = static_cast<int32_t>(1 - rank);
    event.number = event.order = number;
    event.tag = 5;
    event.bytes = bytes;
    event.flags = shm::kTraceHasTag | shm::kTraceHasBytes;
    ranks[rank].trace.events.push_back(event);
  }
  DaemonTraceSlot& AddWork(uint32_t node, DaemonWork work, uint64_t begin_ns, uint64_t end_ns,
                           uint64_t bytes, uint64_t message = 0) {
    DaemonTraceSlot slot{};
    slot.begin_ns = begin_ns;
    slot.end_ns = end_ns;
    slot.message = message;
    slot.bytes = bytes;
    slot.rank = node;
    slot.peer = slot.peer_node = 1 - node;
    slot.block = shm::kNoDaemonBlock;
    slot.work = static_cast<uint8_t>(work);
    return daemons[node].trace.events.emplace_back(slot);
  }
  // From rank 0 to rank 1, in 100 us: a small one.
  void SendSmall(uint32_t number, uint64_t begin_ns) {
    AddEvent(0, TraceKind::kSend, number, begin_ns, begin_ns + 2'000, 100);
    AddWork(0, DaemonWork::kEagerSend, begin_ns + 5'000, begin_ns + 5'000, 100);
    AddWork(1, DaemonWork::kDelivery, begin_ns + 50'000, begin_ns + 50'000, 100);
    AddEvent(1, TraceKind::kReceive, number, begin_ns, begin_ns + 100'000, 100);
  }

  json Draw() {
    Timeline timeline;
    timeline.job = "job";
    timeline.size = timeline.ranks = 2;
    timeline.nodes = nodes;
    timeline.last_ns = last_ns;
    timeline.load = [this](uint32_t i, TimelineRank* rank) {
      *rank = ranks[i];
      return true;
    };
    timeline.daemons = static_cast<uint32_t>(daemons.size());
    timeline.daemons_missing = daemons_missing;
    timeline.load_daemon = [this](uint32_t i, TimelineDaemon* daemon) {
      *daemon = daemons[i];
      return daemon->node != UINT32_MAX;
    };
    std::string text;
    EXPECT_TRUE(WriteTimeline(
        timeline,
        [&text](std::string_view piece) {
          text += piece;
          return true;
        },
        &facts));
    return json::parse(text);
  }
};

// The processes by name, the tracks of each by name, and the slices of these.
using Tracks = std::map<std::string, std::map<std::string, std::vector<json>>>;

Tracks TracksOf(const json& picture) {
  std::map<int64_t, std::string> processes;
  std::map<std::pair<int64_t, int64_t>, std::string> names;
  for (const json& event : picture["traceEvents"]) {
    if (event["name"] == "process_name") {
      processes[event["pid"]] = event["args"]["name"];
    } else if (event["name"] == "thread_name") {
      names[{event["pid"], event["tid"]}] = event["args"]["name"];
    }
  }
  Tracks tracks;
  for (const json& event : picture["traceEvents"]) {
    if (event["ph"] == "X") {
      tracks[processes[event["pid"]]][names[{event["pid"], event["tid"]}]].push_back(event);
    }
  }
  for (auto& [process, by_name] : tracks) {
    for (auto& [name, slices] : by_name) {
      for (size_t i = 1; process.starts_with("ferryd") && i < slices.size(); ++i) {
        EXPECT_GE(slices[i]["ts"].get<double>() + 1e-4,
                  slices[i - 1]["ts"].get<double>() + slices[i - 1]["dur"].get<double>())
            << name << ": slices beside each other";
      }
    }
  }
  return tracks;
}

template <typename Named>
std::vector<std::string> NamesOf(const std::map<std::string, Named>& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) {
    names.push_back(name);
  }
  return names;
}

// The names of the slices that the only arrow leads through.
std::vector<std::string> WayOfArrow(const json& picture) {
  std::vector<json> ends;
  for (const json& event : picture["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "s" || phase == "t" || phase == "f") {
      ends.push_back(event);
    }
  }
  std::stable_sort(ends.begin(), ends.end(),
                   [](const json& a, const json& b) { return a["ts"] < b["ts"]; });
  std::vector<std::string> way;
  for (const json& end : ends) {
    EXPECT_EQ(end["id"], ends[0]["id"]) << "there is one arrow";
    for (const json& event : picture["traceEvents"]) {
      if (event["ph"] == "X" && event["pid"] == end["pid"] && event["tid"] == end["tid"] &&
          event["ts"] <= end["ts"] &&
          end["ts"].get<double>() <= event["ts"].get<double>() + event["dur"].get<double>()) {
        way.push_back(event["name"]);
      }
    }
  }
  return way;
}

TEST(TimelineDaemonsTest, EachIsAProcessWithATrackForEachKindOfWork) {
  Job job;
  job.SendSmall(1, 10'000);
  job.AddWork(0, DaemonWork::kRts, 200'000, 300'000, 1 << 20, 17);
  DaemonTraceSlot& copy = job.AddWork(0, DaemonWork::kCopyIn, 210'000, 220'000, 1 << 16, 17);
  copy.place = static_cast<uint8_t>(shm::DaemonPlace::kCopyWorker);
  copy.worker = 2;
  copy.block = 3;
  copy.offset = 4096;
  job.AddWork(1, DaemonWork::kRndvGet, 205'000, 290'000, 1 << 20, uint64_t{9} << 32 | 17);
  job.AddWork(1, DaemonWork::kRead, 206'000, 280'000, 1 << 20, uint64_t{9} << 32 | 17).error =
      static_cast<int16_t>(ErrorCode::kPeerDied);
  Tracks tracks = TracksOf(job.Draw());
  EXPECT_THAT(NamesOf(tracks), UnorderedElementsAre("rank 0 (node0)", "rank 1 (node1)",
                                                    "ferryd node0", "ferryd node1"));
  EXPECT_THAT(NamesOf(tracks["ferryd node0"]),
              UnorderedElementsAre("eager sends", "rendezvous sends", "copy worker 2"));
  EXPECT_THAT(NamesOf(tracks["ferryd node1"]),
              UnorderedElementsAre("deliveries", "rendezvous gets", "RDMA"));
  const json& in = tracks["ferryd node0"]["copy worker 2"][0];
  EXPECT_EQ(in["name"], "copy in");
  EXPECT_EQ(in["args"], (json{{"from", 0},
                              {"to", 1},
                              {"to_node", "node1"},
                              {"bytes", 1 << 16},
                              {"message", "17.0"},
                              {"offset", 4096},
                              {"block", 3}}));
  const json& read = tracks["ferryd node1"]["RDMA"][0];
  EXPECT_EQ(read["args"]["from_node"], "node0");
  EXPECT_EQ(read["args"]["from"], 0);
  EXPECT_EQ(read["args"]["message"], "17.9");
  EXPECT_EQ(read["args"]["error"], ErrorCodeText(ErrorCode::kPeerDied));
  EXPECT_EQ(job.facts.daemons, 2U);
  EXPECT_EQ(job.facts.daemons_missing, 0U);
}

TEST(TimelineDaemonsTest, WorkThatOverlapsHasFurtherTracks) {
  Job job;
  for (uint64_t i = 0; i < 5; ++i) {
    job.AddWork(0, DaemonWork::kRts, 1'000 * i, 1'000 * i + 2'500, 1 << 20, i);
  }
  Tracks tracks = TracksOf(job.Draw());
  auto& of_daemon = tracks["ferryd node0"];
  EXPECT_THAT(NamesOf(of_daemon),
              ElementsAre("rendezvous sends", "rendezvous sends 2", "rendezvous sends 3"));
  EXPECT_EQ(of_daemon["rendezvous sends"].size(), 2U);
  EXPECT_EQ(of_daemon["rendezvous sends 3"].size(), 1U);
}

TEST(TimelineDaemonsTest, MoreThanThereAreTracksForIsCounted) {
  Job job;
  for (uint64_t i = 0; i < 300; ++i) {
    job.AddWork(0, DaemonWork::kRts, i, 10'000, 8, i);
  }
  TracksOf(job.Draw());
  EXPECT_EQ(job.facts.daemon_events_crowded, 44U);
}

// ---- Arrows -------------------------------------------------------------------------------------

TEST(TimelineDaemonsTest, ArrowsOfSmallMessagesLeadThroughBothDaemons) {
  Job job;
  job.SendSmall(1, 10'000);
  EXPECT_THAT(WayOfArrow(job.Draw()), ElementsAre("send", "eager send", "delivery", "receive"));
  EXPECT_EQ(job.facts.arrows, 1U);
  EXPECT_EQ(job.facts.through_daemons, 1U);
}

TEST(TimelineDaemonsTest, ArrowsOfLargeMessagesLeadThroughTheRendezvousGet) {
  Job job;
  constexpr uint64_t kMessage = uint64_t{3} << 32 | 8;
  job.AddEvent(0, TraceKind::kSend, 1, 10'000, 12'000, 1 << 20);
  job.AddWork(0, DaemonWork::kRts, 13'000, 90'000, 1 << 20, kMessage);
  job.AddWork(1, DaemonWork::kDelivery, 20'000, 20'000, 1 << 20, kMessage);
  job.AddWork(1, DaemonWork::kRndvGet, 30'000, 80'000, 1 << 20, kMessage);
  job.AddEvent(1, TraceKind::kReceive, 1, 5'000, 95'000, 1 << 20);
  EXPECT_THAT(WayOfArrow(job.Draw()),
              ElementsAre("send", "RTS", "delivery", "rendezvous get", "receive"));
}

// They are of no message that a rank has counted.
TEST(TimelineDaemonsTest, OneSidedOperationsAreShownAsSuchAndHaveNoArrows) {
  Job job;
  job.AddWork(0, DaemonWork::kRts, 8'000, 9'500, 100, shm::kFirstOneSidedMessage + 5);
  job.SendSmall(1, 10'000);
  const json picture = job.Draw();
  EXPECT_THAT(WayOfArrow(picture), ElementsAre("send", "eager send", "delivery", "receive"));
  Tracks tracks = TracksOf(picture);
  EXPECT_EQ(tracks["ferryd node0"]["rendezvous sends"][0]["args"]["one_sided"], true);
}

TEST(TimelineDaemonsTest, MessagesByDirectLinksPassByTheDaemons) {
  Job job;
  job.SendSmall(1, 10'000);
  job.AddEvent(0, TraceKind::kSend, 2, 120'000, 121'000, 100);
  job.ranks[0].trace.events.back().flags |= shm::kTraceByLink;
  job.AddEvent(1, TraceKind::kReceive, 2, 120'000, 130'000, 100);
  job.Draw();
  EXPECT_EQ(job.facts.arrows, 2U);
  EXPECT_EQ(job.facts.through_daemons, 1U);
}

TEST(TimelineDaemonsTest, WithoutAKnownClockNoArrowLeadsThroughThem) {
  Job job;
  job.SendSmall(1, 10'000);
  job.nodes[1].clock = NodeClock::Of({});
  job.Draw();
  EXPECT_EQ(job.facts.through_daemons, 0U);
  EXPECT_EQ(job.facts.daemons, 2U);
}

// ---- What is kept -------------------------------------------------------------------------------

TEST(TimelineDaemonsTest, TheLastMomentsAreShownAlone) {
  Job job;
  job.SendSmall(1, 10'000);
  job.SendSmall(2, 500'000);
  job.last_ns = 200'000;
  Tracks tracks = TracksOf(job.Draw());
  EXPECT_EQ(tracks["ferryd node0"]["eager sends"].size(), 1U);
  EXPECT_EQ(tracks["ferryd node1"]["deliveries"].size(), 1U);
  EXPECT_EQ(job.facts.through_daemons, 1U);
}

TEST(TimelineDaemonsTest, CountsWhatIsLostAndWhatIsMissing) {
  Job job;
  job.SendSmall(1, 10'000);
  job.daemons[0].trace.lost = 5;
  job.daemons[1].node = UINT32_MAX;  // it cannot be read
  job.daemons_missing = 1;           // and of a third one nothing has come
  const json picture = job.Draw();
  const json& facts = picture["otherData"];
  EXPECT_EQ(facts["daemons"], 1);
  EXPECT_EQ(facts["daemons_missing"], 2);
  EXPECT_EQ(facts["daemon_events_lost"], 5);
  EXPECT_EQ(facts["events_lost"], 0) << "of ranks";
}

TEST(TimelineDaemonsTest, ADaemonThatHasDoneNothingIsNotShown) {
  Job job;
  job.AddEvent(0, TraceKind::kSend, 1, 10'000, 12'000, 8);
  EXPECT_THAT(NamesOf(TracksOf(job.Draw())), ElementsAre("rank 0 (node0)"));
  EXPECT_EQ(job.facts.daemons, 0U);
}

}  // namespace
}  // namespace ferry::tools
