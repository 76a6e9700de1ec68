// ferryrun --trace: the timelines of programs whose messages are known, on one node and on two, by
// daemons and by direct links; of a rank that is killed, of a ring that is too short, of the last
// moments, of 64 ranks, and of a job that runs on (ferryctl trace).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/e2e/hosts_here.h"
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

using e2e::Words;
using nlohmann::json;
using testing::HasSubstr;

// Of tests/mpi/ranks/traced.c.
constexpr int kFirstTag = 1000;
constexpr int kTags = 4;
constexpr int kEach = 12;
constexpr int kMany = 20000;
constexpr const char* kProgram = "tests/mpi/ranks/traced";

// ---- Reading ------------------------------------------------------------------------------------

json ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return json::parse(text.str(), nullptr, false);
}

struct Slice {
  int64_t rank = 0;
  int64_t thread = 0;
  std::string name;
  double begin = 0;
  double end = 0;
  json args;
};

struct Arrow {
  const Slice* from = nullptr;
  const Slice* to = nullptr;
  double begin = 0;
  double end = 0;
  std::vector<const Slice*> daemons;  // that it leads through
};

// The picture, by the rules of its format: ends of arrows lie in slices of messages. Daemons have
// the numbers behind those of the ranks.
struct Picture {
  std::vector<Slice> slices;
  std::vector<Arrow> arrows;
  std::map<int64_t, std::string> names;  // of ranks and daemons
  json facts;

  size_t Count(const std::string& name, int64_t rank) const {
    return static_cast<size_t>(std::count_if(slices.begin(), slices.end(), [&](const Slice& one) {
      return one.name == name && one.rank == rank;
    }));
  }
  std::vector<const Slice*> Unfinished(const std::string& name, int64_t rank) const {
    std::vector<const Slice*> found;
    for (const Slice& one : slices) {
      if (one.name == name && one.rank == rank && one.args.contains("unfinished")) {
        found.push_back(&one);
      }
    }
    return found;
  }
};

constexpr double kRounding = 1e-3;  // us

// Slices of a name on a track, by the time at which they begin. They do not overlap.
using SliceIndex =
    std::map<std::tuple<int64_t, int64_t, std::string>, std::map<double, const Slice*>>;

SliceIndex IndexOf(const Picture& picture) {
  SliceIndex index;
  for (const Slice& slice : picture.slices) {
    index[{slice.rank, slice.thread, slice.name}][slice.begin] = &slice;
  }
  return index;
}

// Returns the slice that the end of an arrow lies in.
const Slice* SliceAt(const SliceIndex& index, const json& end, const char* name) {
  const auto slices =
      index.find({end["pid"].get<int64_t>() - 1, end["tid"].get<int64_t>(), std::string(name)});
  if (slices == index.end()) {
    return nullptr;
  }
  const double at = end["ts"];
  const auto next = slices->second.upper_bound(at + kRounding);
  if (next == slices->second.begin()) {
    return nullptr;
  }
  const Slice* const found = std::prev(next)->second;
  return at <= found->end + kRounding ? found : nullptr;
}

// Returns the slice of a daemon that an arrow leads through.
const Slice* SliceThrough(const SliceIndex& index, const json& point) {
  for (const char* name : {"eager send", "RTS", "put", "delivery", "rendezvous get"}) {
    if (const Slice* const found = SliceAt(index, point, name); found != nullptr) {
      return found;
    }
  }
  return nullptr;
}

void ExpectNested(const Picture& picture) {
  std::map<std::pair<int64_t, int64_t>, std::vector<const Slice*>> tracks;
  for (const Slice& slice : picture.slices) {
    tracks[{slice.rank, slice.thread}].push_back(&slice);
  }
  for (auto& [track, slices] : tracks) {
    std::stable_sort(slices.begin(), slices.end(), [](const Slice* a, const Slice* b) {
      return std::tuple(a->begin, -a->end) < std::tuple(b->begin, -b->end);
    });
    std::vector<double> around;
    for (const Slice* slice : slices) {
      while (!around.empty() && around.back() <= slice->begin + kRounding) {
        around.pop_back();
      }
      EXPECT_TRUE(around.empty() || slice->end <= around.back() + kRounding)
          << slice->name << " of rank " << slice->rank << " at " << slice->begin;
      around.push_back(slice->end);
    }
  }
}

Picture Read(const json& file) {
  Picture picture;
  EXPECT_TRUE(file.is_object());
  if (!file.is_object()) {
    return picture;
  }
  picture.facts = file["otherData"];
  std::map<std::string, std::pair<json, json>> ends;
  std::map<std::string, std::vector<json>> between;
  for (const json& event : file["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "X") {
      const double begin = event["ts"];
      EXPECT_GE(begin, 0);
      EXPECT_GE(event["dur"].get<double>(), 0);
      picture.slices.push_back({event["pid"].get<int64_t>() - 1, event["tid"].get<int64_t>(),
                                event["name"], begin, begin + event["dur"].get<double>(),
                                event.value("args", json::object())});
    } else if (phase == "s" || phase == "f") {
      auto& [from, to] = ends[event["id"]];
      json& end = phase == "s" ? from : to;
      EXPECT_TRUE(end.is_null()) << "twice: " << event;
      end = event;
    } else if (phase == "t") {
      between[event["id"]].push_back(event);
    } else if (event["name"] == "process_name") {
      picture.names[event["pid"].get<int64_t>() - 1] = event["args"]["name"];
    }
  }
  const SliceIndex index = IndexOf(picture);
  for (const auto& [id, both] : ends) {
    const auto& [from, to] = both;
    if (from.is_null() || to.is_null()) {
      ADD_FAILURE() << "an arrow with one end: " << id;
      continue;
    }
    Arrow arrow{
        SliceAt(index, from, "send"), SliceAt(index, to, "receive"), from["ts"], to["ts"], {}};
    for (const json& point : between[id]) {
      EXPECT_GE(point["ts"].get<double>() + kRounding, arrow.begin) << id;
      EXPECT_LE(point["ts"].get<double>(), arrow.end + kRounding) << id;
      arrow.daemons.push_back(SliceThrough(index, point));
      EXPECT_NE(arrow.daemons.back(), nullptr) << point;
    }
    EXPECT_LE(arrow.begin, arrow.end) << id;
    EXPECT_NE(arrow.from, nullptr) << from;
    EXPECT_NE(arrow.to, nullptr) << to;
    if (arrow.from != nullptr && arrow.to != nullptr) {
      picture.arrows.push_back(arrow);
    }
  }
  EXPECT_EQ(picture.facts.value("arrows", 0U), ends.size());
  ExpectNested(picture);
  return picture;
}

struct Traced {
  e2e::CommandResult result;
  Picture picture;
};

Traced TraceProgram(const Words& flags, const Words& program, const Words& variables = {}) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "trace.json";
  Words all = flags;
  all.push_back("--trace=" + file);
  Traced run{.result = RunJob({"", all}, program, variables), .picture = {}};
  run.picture = Read(ReadFile(file));
  return run;
}

Traced Trace(const Words& flags, const Words& program, const Words& variables = {}) {
  Words words = {kProgram};
  words.insert(words.end(), program.begin(), program.end());
  return TraceProgram(flags, words, variables);
}

// ---- Arrows -------------------------------------------------------------------------------------

// Each message of the program has its arrow, from its own send to its own receive.
void ExpectAllMessages(const Picture& picture, int ranks) {
  std::map<std::tuple<int64_t, int64_t, int>, std::vector<const Arrow*>> streams;
  for (const Arrow& arrow : picture.arrows) {
    const int tag = arrow.from->args.value("tag", -1);
    EXPECT_EQ(arrow.from->args["to"], arrow.to->rank);
    EXPECT_EQ(arrow.to->args["from"], arrow.from->rank);
    EXPECT_EQ(arrow.to->args["tag"], tag);
    EXPECT_EQ(arrow.to->args["bytes"], arrow.from->args["bytes"]) << "tag " << tag;
    if (tag >= kFirstTag && tag < kFirstTag + kTags) {
      streams[{arrow.from->rank, arrow.to->rank, tag}].push_back(&arrow);
    }
  }
  EXPECT_EQ(streams.size(), static_cast<size_t>(ranks * kTags));
  for (auto& [stream, arrows] : streams) {
    EXPECT_EQ(arrows.size(), static_cast<size_t>(kEach))
        << "from " << std::get<0>(stream) << ", tag " << std::get<2>(stream);
    EXPECT_EQ(std::get<1>(stream), (std::get<0>(stream) + 1) % ranks);
  }
}

TEST(TraceTest, MessagesOfANodeHaveArrows) {
  const Traced run = Trace({"-n", "3"}, {"messages"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  ExpectAllMessages(run.picture, 3);
  EXPECT_THAT(run.result.err, HasSubstr("open it in ui.perfetto.dev"));
  for (int64_t rank = 0; rank < 3; ++rank) {
    EXPECT_GE(run.picture.Count("MPI_Barrier", rank), 3U);
  }
  EXPECT_EQ(run.picture.facts["events_lost"], 0);
  EXPECT_EQ(run.picture.facts["ranks_missing"], 0);
  for (const Arrow& arrow : run.picture.arrows) {
    EXPECT_EQ(arrow.from->args["way"], "in the node");
  }
}

// Programs without MPI: messages and queues of ferry.h, which the report has, too.
class FerryMessagesTest : public testing::TestWithParam<int> {};

TEST_P(FerryMessagesTest, HaveArrowsAndAreReported) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "report.json";
  const Traced run = TraceProgram(
      {"-n", "3", "--nodes", std::to_string(GetParam()), "--direct_links=off", "--report=" + file},
      {"tests/e2e/ranks/traced_messages"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  ExpectAllMessages(run.picture, 3);
  EXPECT_EQ(run.picture.facts["messages_unmatched"], 0);
  std::map<std::pair<int64_t, int64_t>, uint64_t> bytes;
  for (const Arrow& arrow : run.picture.arrows) {
    bytes[{arrow.from->rank, arrow.to->rank}] += arrow.from->args["bytes"].get<uint64_t>();
  }
  const json traffic = ReadFile(file)["traffic"];
  size_t cells = 0;
  for (const json& cell : traffic) {
    cells += cell["bytes"] == bytes[{cell["from"], cell["to"]}] ? 1 : 0;
  }
  EXPECT_EQ(cells, 3U) << traffic << ": as the arrows say";
  for (int64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(run.picture.Count("operation 3", rank), 1U) << "two starts and two waits of a queue";
    const size_t works = run.picture.Count("move a message", rank) +
                         run.picture.Count("wait for a message", rank) +
                         run.picture.Count("wait for a value", rank);
    EXPECT_GE(works, 2U) << "of its stream, which the host backend runs";
  }
}
INSTANTIATE_TEST_SUITE_P(Nodes, FerryMessagesTest, testing::Values(1, 2));

TEST(TraceTest, CallsOnFilesAreInIt) {
  const e2e::TempDirectory folder;
  const Traced run =
      TraceProgram({"-n", "2"}, {"tests/mpi/ranks/slow", "files", folder / "slow-file"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  for (int64_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(run.picture.Count("MPI_File_open", rank), 1U);
    EXPECT_EQ(run.picture.Count("MPI_File_write_at", rank), 2000U);
    EXPECT_EQ(run.picture.Count("MPI_File_write_at_all", rank), 5U);
  }
  for (const Slice& slice : run.picture.slices) {
    if (slice.name == "MPI_File_write_at") {
      ASSERT_EQ(slice.args["bytes"], 10);
    }
  }
}

// A rank sends to itself, too.
TEST(TraceTest, ARankAloneHasArrows) {
  const Traced run = Trace({"-n", "1"}, {"messages"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  ExpectAllMessages(run.picture, 1);
}

// The work of daemons for messages of that size, at one end or at the other, which by clocks that
// are wrong by so much may be that for the message of the arrow.
std::vector<const Slice*> WorkFor(const Picture& picture, const Arrow& arrow, bool is_sender,
                                  double error_us) {
  const std::set<std::string> names = is_sender ? std::set<std::string>{"eager send", "RTS", "put"}
                                                : std::set<std::string>{"delivery"};
  std::vector<const Slice*> found;
  for (const Slice& slice : picture.slices) {
    if (names.contains(slice.name) && slice.args["from"] == arrow.from->rank &&
        slice.args["to"] == arrow.to->rank && slice.args["bytes"] == arrow.from->args["bytes"] &&
        slice.begin + error_us >= arrow.begin && slice.begin <= arrow.end + error_us) {
      found.push_back(&slice);
    }
  }
  return found;
}

// Returns true if all of the work lies between the ends of the arrow. Else a clock may have put
// that for this message before it or after it, and then the arrow passes it by.
bool LieWithin(const Arrow& arrow, const std::vector<const Slice*>& work) {
  return std::all_of(work.begin(), work.end(), [&](const Slice* slice) {
    return arrow.begin + kRounding <= slice->begin && slice->begin + kRounding <= arrow.end;
  });
}

// Each message of the program between nodes is in both daemons, between its beginning and its end.
void ExpectWorkOfDaemons(const Picture& picture) {
  EXPECT_EQ(std::count_if(picture.names.begin(), picture.names.end(),
                          [](const auto& named) { return named.second.starts_with("ferryd "); }),
            2);
  EXPECT_EQ(picture.facts["daemons"], 2);
  EXPECT_EQ(picture.facts["daemons_missing"], 0);
  EXPECT_EQ(picture.facts["daemon_events_lost"], 0);
  // Clocks of ranks may differ from their node's by a microsecond (client/api/quick_clock.h).
  const double error_us = picture.facts["clock_error_ns"].get<double>() / 1000 + 1;
  size_t between_nodes = 0;
  size_t led_through = 0;
  for (const Arrow& arrow : picture.arrows) {
    const int tag = arrow.from->args.value("tag", -1);
    if (arrow.from->args["way"] != "daemons" || tag < kFirstTag || tag >= kFirstTag + kTags) {
      continue;
    }
    const auto sent = WorkFor(picture, arrow, true, error_us);
    const auto delivered = WorkFor(picture, arrow, false, error_us);
    EXPECT_FALSE(sent.empty()) << arrow.from->args;
    EXPECT_FALSE(delivered.empty()) << arrow.from->args;
    const bool is_led_through = arrow.daemons.size() >= 2;
    EXPECT_TRUE(is_led_through || !LieWithin(arrow, sent) || !LieWithin(arrow, delivered))
        << "nothing was lost, so that its events are known: " << arrow.from->args;
    for (const Slice* slice : arrow.daemons) {
      EXPECT_EQ(slice->args["bytes"], arrow.from->args["bytes"]) << slice->name;
    }
    ++between_nodes;
    led_through += is_led_through ? 1 : 0;
  }
  EXPECT_GE(between_nodes, static_cast<size_t>(2 * kTags * kEach));
  EXPECT_GT(led_through, between_nodes / 2);
}

TEST(TraceTest, MessagesThroughDaemonsHaveArrows) {
  const Traced run = Trace({"-n", "3", "--nodes", "2", "--direct_links=off"}, {"messages"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  ExpectAllMessages(run.picture, 3);
  size_t by_daemons = 0;
  for (const Arrow& arrow : run.picture.arrows) {
    by_daemons += arrow.from->args["way"] == "daemons" ? 1 : 0;
  }
  EXPECT_GE(by_daemons, static_cast<size_t>(2 * kTags * kEach));
  ExpectWorkOfDaemons(run.picture);
  // Both nodes are this machine: clocks are the same, and questions take less than 50 ms.
  EXPECT_LT(run.picture.facts["clock_error_ns"].get<uint64_t>(), 50'000'000U);
}

// Agents of two hosts pass on what their daemons have.
TEST(TraceTest, MessagesOfOtherHostsHaveArrows) {
  const e2e::TempDirectory folder;
  Words flags = e2e::HostsHere(folder, "10.99.0.1:1,10.99.0.2:2");
  flags.insert(flags.end(), {"-n", "3", "--direct_links=off"});
  const Traced run = Trace(flags, {"messages"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  ExpectAllMessages(run.picture, 3);
  ExpectWorkOfDaemons(run.picture);
  EXPECT_EQ(run.picture.facts["ranks_missing"], 0);
  EXPECT_LT(run.picture.facts["clock_error_ns"].get<uint64_t>(), 50'000'000U);
}

// A ring of 20,000 messages is more than an agent may hold back at a time.
TEST(TraceTest, LongTracesOfOtherHostsAreWhole) {
  const e2e::TempDirectory folder;
  Words flags = e2e::HostsHere(folder, "10.99.0.1:1,10.99.0.2:1");
  flags.insert(flags.end(), {"-n", "2"});
  const Traced run = Trace(flags, {"many"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_EQ(run.picture.facts["events_lost"], 0);
  // Messages that seem to come before they were sent have no arrows, but are counted: the clocks of
  // two hosts are not known to the microsecond.
  const size_t backward = run.picture.facts["messages_backward"];
  EXPECT_GE(run.picture.arrows.size() + backward, static_cast<size_t>(kMany));
  EXPECT_LT(backward, static_cast<size_t>(kMany / 100));
}

TEST(TraceTest, MessagesByDirectLinksHaveArrows) {
  const Traced run = Trace({"-n", "2", "--nodes", "2", "--direct_links=always"}, {"many"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  size_t by_link = 0;
  for (const Arrow& arrow : run.picture.arrows) {
    by_link += arrow.from->args["way"] == "direct link" ? 1 : 0;
  }
  EXPECT_GT(by_link, 1000U);
}

// Daemons keep as much as the ranks do.
TEST(TraceTest, DaemonsCountWhatTheirRingsHaveNoRoomFor) {
  const Traced run =
      Trace({"-n", "2", "--nodes", "2", "--direct_links=off", "--trace_bytes=65536"}, {"many"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_EQ(run.picture.facts["daemons"], 2);
  EXPECT_GT(run.picture.facts["daemon_events_lost"].get<uint64_t>(), 10'000U);
  EXPECT_THAT(run.result.err, HasSubstr("of ferryd, "));
  size_t by_daemons = 0;
  size_t led_through = 0;
  for (const Arrow& arrow : run.picture.arrows) {
    by_daemons += arrow.from->args["way"] == "daemons" ? 1 : 0;
    led_through += arrow.daemons.empty() ? 0 : 1;
  }
  EXPECT_GT(by_daemons, 100U);
  EXPECT_GT(led_through, by_daemons / 2) << "the last ones are in the rings of all";
}

// A single node's daemon has nothing to do for messages.
TEST(TraceTest, DaemonsOfOneNodeAreNeitherShownNorMissing) {
  const Traced run = Trace({"-n", "2"}, {"messages"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_EQ(run.picture.facts["daemons"], 0);
  EXPECT_EQ(run.picture.facts["daemons_missing"], 0);
}

// ---- Rings --------------------------------------------------------------------------------------

TEST(TraceTest, ARingThatIsTooShortHasTheLastEvents) {
  const Traced run = Trace({"-n", "2", "--trace_bytes=65536"}, {"many"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_GT(run.picture.facts["events_lost"].get<uint64_t>(), 10'000U);
  EXPECT_THAT(run.result.err, HasSubstr("option trace_bytes"));
  EXPECT_GT(run.picture.arrows.size(), 100U);
  EXPECT_EQ(std::count_if(run.picture.slices.begin(), run.picture.slices.end(),
                          [](const Slice& slice) {
                            return slice.args.value("tag", 0) == kFirstTag &&
                                   slice.name == "send" &&
                                   slice.args.value("number", 0) == kMany / 2;
                          }),
            2)
      << "the last message of either rank";
}

TEST(TraceTest, TheLastMomentsAreShownAlone) {
  const Traced run = Trace({"-n", "2", "--trace-last", "5ms"}, {"many"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  ASSERT_FALSE(run.picture.slices.empty());
  double first = 1e18;
  double last = 0;
  for (const Slice& slice : run.picture.slices) {
    first = std::min(first, slice.begin);
    last = std::max(last, slice.end);
  }
  EXPECT_LE(last - first, 5000 + kRounding);
}

// ---- Ends ---------------------------------------------------------------------------------------

TEST(TraceTest, ARankThatIsKilledIsShownInItsCall) {
  const Traced run = Trace({"-n", "2"}, {"killed"});
  EXPECT_NE(run.result.exit_code, 0);
  const Slice* call = nullptr;
  for (const Slice& slice : run.picture.slices) {
    if (slice.rank == 1 && slice.name == "MPI_Recv") {
      call = &slice;
    }
  }
  ASSERT_NE(call, nullptr) << run.result.err;
  EXPECT_EQ(call->args["unfinished"], true);
  EXPECT_EQ(call->args["ended"], "the rank died in it");
  EXPECT_EQ(run.picture.Unfinished("waits", 1).size(), 1U);
  EXPECT_GE(std::count_if(run.picture.arrows.begin(), run.picture.arrows.end(),
                          [](const Arrow& arrow) { return arrow.from->rank == 1; }),
            1);
}

TEST(TraceTest, AJobThatRunsOnIsShownSoFar) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "so_far.json";
  const Traced run =
      Trace({"-n", "3", "--name", "shown"},
            {"hangs", "tools/ferryctl/ferryctl trace shown --output " + file + " --last 10s >&2"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_THAT(run.result.err, HasSubstr("3 ranks"));
  const Picture so_far = Read(ReadFile(file));
  for (int64_t rank = 1; rank < 3; ++rank) {
    EXPECT_EQ(so_far.Unfinished("MPI_Recv", rank).size(), 1U);
    const std::vector<const Slice*> waits = so_far.Unfinished("waits", rank);
    ASSERT_EQ(waits.size(), 1U) << rank;
    EXPECT_GE(waits[0]->end - waits[0]->begin, 100'000) << "200 ms, less what starting takes";
  }
  for (const Slice& slice : run.picture.slices) {
    EXPECT_FALSE(slice.args.contains("unfinished")) << slice.name;
  }
}

TEST(TraceTest, SoIsWhatItsDaemonsHaveDone) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "so_far.json";
  const Traced run =
      Trace({"-n", "2", "--nodes", "2", "--direct_links=off", "--name", "shown"},
            {"hangs", "tools/ferryctl/ferryctl trace shown --output " + file + " >&2"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  const Picture so_far = Read(ReadFile(file));
  EXPECT_GE(so_far.facts["daemons"].get<int>(), 1) << "of nodes that ferryctl asks";
  EXPECT_TRUE(std::any_of(so_far.slices.begin(), so_far.slices.end(), [](const Slice& slice) {
    return slice.name == "eager send" || slice.name == "delivery";
  })) << "those of MPI_Init";
}

TEST(TraceTest, SixtyFourRanks) {
  const Traced run = Trace({"-n", "64", "--nodes", "2", "--trace_bytes=262144"}, {"messages"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_EQ(run.picture.facts["ranks_missing"], 0);
  for (int64_t rank = 0; rank < 64; ++rank) {
    EXPECT_GE(run.picture.Count("MPI_Barrier", rank), 1U) << rank;
  }
  EXPECT_GE(run.picture.arrows.size(), static_cast<size_t>(64 * kEach));
}

TEST(TraceTest, AFileThatCannotBeWrittenEndsTheJobBeforeItBegins) {
  const e2e::CommandResult result =
      RunJob({"", {"-n", "2", "--trace=/nowhere/trace.json"}}, {"/bin/echo", "ran"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("/nowhere"));
  EXPECT_EQ(result.out, "");
}

TEST(TraceTest, WrongTimesAreRefused) {
  for (const char* wrong : {"soon", "10x", "-3s", ""}) {
    const e2e::CommandResult result =
        RunJob({"", {"-n", "1", "--trace=trace.json", std::string("--trace-last=") + wrong}},
               {"/bin/true"});
    EXPECT_EQ(result.exit_code, 2) << wrong;
  }
}

// With a report, both are there.
TEST(TraceTest, AReportMayBeAskedForAsWell) {
  const Traced run = Trace({"-n", "2", "--report"}, {"messages"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  ExpectAllMessages(run.picture, 2);
  EXPECT_THAT(run.result.err, HasSubstr("Report of job "));
}

}  // namespace
}  // namespace ferry::mpi_tests
