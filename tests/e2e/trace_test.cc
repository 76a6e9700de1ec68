// `ferryctl trace` with real daemons and ranks: two nodes, one trace of each node. `ferryctl tune`
// as an administrator runs it: over an emulated link with known figures, and the network inside
// this node; and daemons that run with the options that it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/block_plan.h"
#include "tests/daemon/trace/trace_reading.h"
#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using daemon::ReadTrace;
using daemon::TraceReading;
using daemon::TraceSpan;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using tests::ReadFile;

constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";
constexpr char kPairs[] = "tests/faults/ranks/pairs";
constexpr int kReports = 2;  // rank 1 reports every 50th message

// A job of two ranks on two nodes that sends messages endlessly, and the traces of its daemons.
class TracedJob {
 public:
  // Starts tests/faults/ranks/pairs with `arguments` and the options `flags` of ferryrun, and waits
  // until messages pass, which they do by the daemons.
  TracedJob(const Words& flags, const Words& arguments, const Words& variables = {})
      : job_(PrivateJob(Joined({"-n", "2", "--nodes", "2", kByDaemons}, flags),
                        Joined({kPairs}, arguments)),
             variables) {
    EXPECT_TRUE(job_.WaitForOutput("rank 1: under way\n")) << job_.Output();
    nodes_ = Daemons(job_);
    EXPECT_THAT(nodes_, SizeIs(2));
  }
  // Makes the ranks end by themselves; fails the test if they, or their leftovers, are not right.
  ~TracedJob() {
    for (const pid_t pid : job_.Find(kPairs)) {
      kill(pid, SIGUSR1);
    }
    const CommandResult result = job_.WaitCleanly();
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  }
  TracedJob(const TracedJob&) = delete;
  TracedJob& operator=(const TracedJob&) = delete;

  // There are two, or messages do not pass. Rank 0 may be on either node: run directories have
  // random names.
  const Words& run_directories() const { return nodes_; }
  // `ferryctl` asks the daemon of a node.
  CommandResult Ask(size_t node, const Words& arguments) const {
    return RunCommand(Joined({kFerryctl, "--run_directory=" + nodes_[node]}, arguments));
  }
  // Waits until rank 1 has received some 50 messages more; false if it does not.
  bool LetMessagesPass() {
    const auto reports = [this] {
      const Words lines = SortedLines(job_.Output());
      return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
        return line.starts_with("rank 1: message");
      });
    };
    const auto before = reports();
    return Eventually([&] { return reports() >= before + kReports; });
  }

 private:
  Command job_;
  Words nodes_;
};

// ---- Traces: staged messages

constexpr uint64_t kStagedBytes = 1'000'000;  // from private memory to private memory
constexpr uint64_t kBlockBytes = 32 << 10;

class TraceTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_THAT(job_.run_directories(), SizeIs(2)); }

  CommandResult Trace(size_t node, const Words& arguments) {
    return job_.Ask(node, Joined({"trace"}, arguments));
  }
  std::string File(const std::string& name) const { return directory_ / name; }

  const TempDirectory directory_;
  // The heap is too small for such messages, which would otherwise go through it.
  TracedJob job_{{"--heap_bytes=1048576", "--staging_block_bytes=" + std::to_string(kBlockBytes)},
                 {std::to_string(kStagedBytes)}};
};

// By message and, within it, by offset.
using Steps = std::map<std::string, std::map<uint64_t, TraceSpan>>;

Steps SpansOf(const TraceReading& reading, const std::string& name) {
  Steps steps;
  for (const TraceSpan& span : reading.Named(name)) {
    const auto message = span.arguments["message"].get<std::string>();
    steps[message][span.arguments["offset"].get<uint64_t>()] = span;
  }
  return steps;
}

uint64_t BytesOf(const std::map<uint64_t, TraceSpan>& blocks) {
  uint64_t bytes = 0;
  for (const auto& [offset, span] : blocks) {
    bytes += uint64_t{span.arguments["bytes"]};
  }
  return bytes;
}

// Checks every message that is there as a whole.
void ExpectInterleaved(const TraceReading& sender, const TraceReading& receiver) {
  const Steps in = SpansOf(sender, "copy in");
  Steps reads = SpansOf(receiver, "RDMA read");
  Steps out = SpansOf(receiver, "copy out");
  int messages = 0;
  for (const auto& [message, blocks] : in) {
    if (BytesOf(blocks) != kStagedBytes || BytesOf(reads[message]) != kStagedBytes ||
        BytesOf(out[message]) != kStagedBytes) {
      continue;
    }
    ++messages;
    for (const auto& [offset, block] : blocks) {
      const TraceSpan& read = reads[message][offset];
      EXPECT_LE(block.end_ns, read.begin_ns);
      EXPECT_LE(read.end_ns, out[message][offset].begin_ns);
    }
    // While the last block was still to be copied in, others had been through network and copy out:
    // nothing waited for the message as a whole.
    const TraceSpan& last = blocks.rbegin()->second;
    EXPECT_LT(reads[message].begin()->second.end_ns, last.begin_ns);
    EXPECT_LT(out[message].begin()->second.end_ns, last.begin_ns);
  }
  EXPECT_GT(messages, 10);
}

TEST_F(TraceTest, BlocksOfAMessageAreCopiedReadAndCopiedInterleaved) {
  for (size_t node = 0; node < 2; ++node) {
    const CommandResult started = Trace(node, {"start"});
    EXPECT_EQ(started.exit_code, 0) << started.err;
    EXPECT_THAT(started.out, HasSubstr("`ferryctl trace stop --output FILE`"));
  }
  ASSERT_TRUE(job_.LetMessagesPass());
  Words files;
  for (size_t node = 0; node < 2; ++node) {
    const std::string file = File("node" + std::to_string(node) + ".json");
    const CommandResult stopped = Trace(node, {"stop", "--output", file});
    EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
    EXPECT_THAT(stopped.out, HasSubstr("open it in ui.perfetto.dev"));
    files.push_back(file);
  }
  std::vector<TraceReading> readings;  // both have stopped, and are short
  for (const std::string& file : files) {
    readings.push_back(ReadTrace(ReadFile(file)));
  }
  // Rank 0, the sender, may be on either node: run directories have random names.
  if (readings[0].Named("copy in").empty()) {
    std::swap(readings[0], readings[1]);
  }
  EXPECT_EQ(readings[0].other["dropped_records"], 0);
  ExpectInterleaved(readings[0], readings[1]);
  EXPECT_FALSE(readings[0].counters.empty());
}

TEST_F(TraceTest, MistakesAreToldAndCostNoTrace) {
  const std::string file = File("trace.json");
  CommandResult result = Trace(0, {"stop", "--output", file});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no trace is running: `ferryctl trace start` begins one"));
  EXPECT_FALSE(fs::exists(file));

  EXPECT_EQ(Trace(0, {"start"}).exit_code, 0);
  result = Trace(0, {"start"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("a trace is running already"));

  result = Trace(0, {"stop", "--output", File("nowhere/trace.json")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot write the trace to " + File("nowhere/trace.json")));
  // The trace is still running.
  result = Trace(0, {"stop", "--output", file, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(json::parse(result.out)["records"], 0);
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, geteuid());

  EXPECT_EQ(Trace(0, {"pause"}).exit_code, 1);  // there is no job of that name
  EXPECT_EQ(Trace(0, {}).exit_code, 2);
}

TEST_F(TraceTest, GoesToStandardOutputAndReplacesWhatTheFileHad) {
  EXPECT_EQ(Trace(1, {"start"}).exit_code, 0);
  const CommandResult printed = Trace(1, {"stop"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  ReadTrace(printed.out);

  EXPECT_EQ(Trace(1, {"start"}).exit_code, 0);
  const std::string file = File("trace.json");
  std::ofstream(file) << std::string(10'000'000, 'x');
  EXPECT_EQ(Trace(1, {"stop", "--output", file}).exit_code, 0);
  ReadTrace(ReadFile(file));
}

TEST_F(TraceTest, ADiskThatIsFullIsAnError) {
  EXPECT_EQ(Trace(0, {"start"}).exit_code, 0);
  const CommandResult result = Trace(0, {"stop", "--output", "/dev/full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("writing the trace to /dev/full"));
}

// ---- Tuning

class TuneTest : public testing::Test {
 protected:
  // Measures with few and small messages.
  Words Arguments(const Words& more = {}) const {
    Words arguments = {kFerryctl, "tune",    "--output", options_,        "--plot",
                       plot_,     "--sizes", sizes_,     "--repetitions", "3"};
    for (const auto& [name, value] : link_) {
      arguments.push_back("--" + name + "=" + std::to_string(value));
    }
    return Joined(arguments, more);
  }
  CommandResult Tune(const Words& more = {}) const { return RunCommand(Arguments(more)); }
  // The options that a daemon would have with the file.
  json Loaded(const Words& more = {}) const {
    return json::parse(
        RunWell(Joined({kFerryctl, "config", "--json", "--config_file=" + options_}, more)),
        nullptr, false);
  }
  Words Files() const {
    Words names;
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  void ExpectRefusal(const CommandResult& result, int exit_code, const std::string& words) const {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(Files(), IsEmpty());
  }

  const TempDirectory directory_;
  std::string options_ = directory_ / "tuned.toml";
  const std::string plot_ = directory_ / "tuned.svg";
  std::string sizes_ = "4K,64K,256K";
  // The device's link has the figures of an Intel DG1.
  std::map<std::string, int> link_ = {{"host_link_h2d_mb_per_s", 3768},
                                      {"host_link_d2h_mb_per_s", 5622},
                                      {"host_link_pageable_h2d_mb_per_s", 2917},
                                      {"host_link_pageable_d2h_mb_per_s", 3510},
                                      {"host_link_latency_us", 27},
                                      {"host_link_pageable_latency_us", 54}};
};

TEST_F(TuneTest, MeasuresAndWritesOptionsThatFerrydTakes) {
  const CommandResult tuned = Tune({"--json"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(Files(), UnorderedElementsAre("tuned.svg", "tuned.toml"));
  const json result = json::parse(tuned.out);
  EXPECT_EQ(result["files"], (json{{"options", options_}, {"plot", plot_}}));
  EXPECT_TRUE(result["loopback"]);

  // No copy is faster than the link: its start-up, and its bytes over its bandwidth.
  const auto longest_us = [&](const char* curve) {
    const json& points = result["curves"][curve]["points"];
    EXPECT_EQ(points.size(), 3U);
    EXPECT_EQ(points.back()["size_bytes"], 262144);
    return points.back()["alone_us"].get<double>();
  };
  EXPECT_GE(longest_us("to_host"), 27 + 262144 / 5622.0 - 1);
  EXPECT_GE(longest_us("to_device"), 27 + 262144 / 3768.0 - 1);
  EXPECT_GE(longest_us("pageable_to_host"), 54 + 262144 / 3510.0 - 1);
  EXPECT_GE(longest_us("pageable_to_device"), 54 + 262144 / 2917.0 - 1);
  EXPECT_GT(longest_us("network"), 0);

  const json effective = Loaded();
  ASSERT_EQ(result["options"].size(), 4U);
  for (const auto& [name, value] : result["options"].items()) {
    EXPECT_EQ(effective[name]["value"], value.is_string() ? value.get<std::string>() : value.dump())
        << name;
    EXPECT_THAT(effective[name]["origin"], HasSubstr(options_)) << name;
  }
  EXPECT_THAT(ReadFile(options_), HasSubstr("device 0 of the host backend"));
  EXPECT_THAT(ReadFile(plot_), HasSubstr("network, read"));
}

TEST_F(TuneTest, WritesNowhereWithoutBeingTold) {
  const CommandResult tuned =
      RunCommand({"/bin/sh", "-c",
                  "ferryctl=$(realpath \"$0\") && cd " + directory_.path() +
                      " && exec \"$ferryctl\" tune --sizes 4K,64K --repetitions 1",
                  kFerryctl});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_THAT(tuned.err, HasSubstr("no file was written; --output FILE writes these options"));
  std::ofstream(options_) << tuned.out;  // as a shell would put it there
  EXPECT_THAT(Loaded()["pipeline_mode"]["origin"].get<std::string>(), HasSubstr(options_));
}

TEST_F(TuneTest, ReplacesNoFileUnasked) {
  std::ofstream(plot_) << "mine";
  CommandResult result = Tune();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("tuned.svg is there already: --force replaces it"));
  EXPECT_THAT(Files(), ElementsAre("tuned.svg"));
  EXPECT_EQ(ReadFile(plot_), "mine");
  result = Tune({"--force"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("pipeline_threshold_bytes = "));
  EXPECT_THAT(ReadFile(plot_), HasSubstr("<svg"));
}

TEST_F(TuneTest, BadInputLeavesNothingBehind) {
  ExpectRefusal(Tune({"--device", "7"}), 2, "there is no device 7; the host backend has");
  ExpectRefusal(Tune({"--provider=nonsense"}), 1, "nonsense");
  ExpectRefusal(Tune({"--fabric_address=192.0.2.1"}), 2, "192.0.2.1");
  ExpectRefusal(Tune({"--peer", "nobody"}), 2, "--peer takes the word that");
  ExpectRefusal(Tune({"--peer", "00.1.2.ffffff", "--serve"}), 2, "excludes");
  sizes_ = "4K";
  ExpectRefusal(Tune(), 2, "--sizes takes two sizes or more");
  sizes_ = "4K,many";
  ExpectRefusal(Tune(), 2, "many");
  sizes_ = "4K,64K";
  options_ = directory_ / "none/tuned.toml";
  ExpectRefusal(Tune(), 1, "cannot write");
  options_ = directory_.path();
  ExpectRefusal(Tune(), 1, "cannot write");
}

TEST_F(TuneTest, MeasuresTheWayToAnotherNode) {
  Command server(Arguments({"--serve"}));
  ASSERT_TRUE(server.WaitForOutput("--peer "));
  ASSERT_TRUE(server.WaitForOutput("\n  ferryctl"));
  const std::string said = server.Output();
  const size_t begin = said.find("--peer ") + 7;
  ASSERT_TRUE(said.ends_with("\n"));
  const std::string word = said.substr(begin, said.size() - 1 - begin);
  const CommandResult tuned = Tune({"--json", "--peer", word});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_FALSE(json::parse(tuned.out)["loopback"]);
  fs::remove(options_);
  fs::remove(plot_);

  sizes_ = "4K,512K";
  ExpectRefusal(Tune({"--peer", word}), 2, "serves 262144 bytes, less than");
  sizes_ = "4K,64K";
  server.Signal(SIGKILL);
  server.Wait();
  ExpectRefusal(Tune({"--peer", word, "--operation_timeout_ms=2000"}), 1,
                "reading over the network: ");
}

// Daemons with the options.

// Copies take so long to start that messages far beyond the default limit are not cut; longer ones
// are, although one block could hold them.
constexpr int kSlowStartUs = 100;
constexpr char kLongBlocks[] = "--pipeline_block_bytes=4194304";
constexpr uint64_t kDefaultThreshold = 256 << 10;
constexpr uint64_t kLongBytes = 4 << 20;

class TunedDaemonsTest : public TuneTest {
 protected:
  void SetUp() override {
    sizes_ = "4K,64K,256K,1M,4M";
    link_["host_link_latency_us"] = kSlowStartUs;
    // Times measured while others use the machine may be far off, in either direction.
    constexpr int kAttempts = 5;
    const auto is_usable = [this] {
      const uint64_t threshold = Option("pipeline_threshold_bytes");
      return threshold > kDefaultThreshold && threshold < kLongBytes;
    };
    for (int attempt = 0; attempt == 0 || (attempt < kAttempts && !is_usable()); ++attempt) {
      const CommandResult tuned = Tune({kLongBlocks, "--force"});
      ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
      config_ = Loaded({kLongBlocks});
    }
    ASSERT_GT(Option("pipeline_threshold_bytes"), kDefaultThreshold);
    ASSERT_LT(Option("pipeline_threshold_bytes"), kLongBytes);
  }
  uint64_t Option(const char* name) const {
    return std::stoull(config_[name]["value"].get<std::string>());
  }

  // The traces of both daemons, the sender's first, while messages of one size pass between
  // devices.
  std::vector<TraceReading> Trace(uint64_t message_bytes) const {
    Words variables = {"FERRY_HOST_LINK_GUARD=1"};
    for (const auto& [name, value] : link_) {
      std::string variable = "FERRY_" + name + "=" + std::to_string(value);
      std::transform(variable.begin(), variable.end(), variable.begin(), toupper);
      variables.push_back(std::move(variable));
    }
    TracedJob job({"--config_file=" + options_, kLongBlocks},
                  {std::to_string(message_bytes), "device"}, std::move(variables));
    std::vector<TraceReading> readings;
    for (size_t node = 0; node < job.run_directories().size(); ++node) {
      EXPECT_EQ(job.Ask(node, {"trace", "start"}).exit_code, 0);
    }
    EXPECT_TRUE(job.LetMessagesPass());
    Words traces;
    for (size_t node = 0; node < job.run_directories().size(); ++node) {
      traces.push_back(job.Ask(node, {"trace", "stop"}).out);
    }
    for (const std::string& trace : traces) {
      readings.push_back(ReadTrace(trace));
    }
    if (readings.size() == 2 && readings[1].Named("RDMA read").empty()) {
      std::swap(readings[0], readings[1]);
    }
    return readings;
  }

  json config_;
};

using Blocks = std::map<uint64_t, uint64_t>;  // by offset: bytes

// The steps of a daemon for each message that was traced as a whole.
std::map<std::string, Blocks> StepsOf(const TraceReading& reading, const std::string& name,
                                      uint64_t message_bytes) {
  std::map<std::string, Blocks> steps;
  std::map<std::string, uint64_t> bytes;
  for (const TraceSpan& span : reading.Named(name)) {
    const auto message = span.arguments["message"].get<std::string>();
    const auto step_bytes = span.arguments["bytes"].get<uint64_t>();
    steps[message][span.arguments["offset"].get<uint64_t>()] = step_bytes;
    bytes[message] += step_bytes;
  }
  std::erase_if(steps, [&](const auto& step) { return bytes[step.first] != message_bytes; });
  return steps;
}

void ExpectBlocks(const TraceReading& reading, const std::string& name, const Blocks& wanted) {
  const auto [last_offset, last_bytes] = *wanted.rbegin();
  const std::map<std::string, Blocks> steps = StepsOf(reading, name, last_offset + last_bytes);
  EXPECT_GT(steps.size(), 50U);
  for (const auto& [message, blocks] : steps) {
    ASSERT_EQ(blocks, wanted) << name << " of " << message;
  }
}

TEST_F(TunedDaemonsTest, CutNoMessageUpToTheThreshold) {
  const uint64_t bytes = Option("pipeline_threshold_bytes");
  const std::vector<TraceReading> nodes = Trace(bytes);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_THAT(nodes[0].Named("copy in"), IsEmpty());  // the rank brings it to the host
  ExpectBlocks(nodes[1], "copy out", {{0, bytes}});
}

TEST_F(TunedDaemonsTest, CutLongMessagesAsTuned) {
  engine::BlockRules rules;
  const std::string mode = config_["pipeline_mode"]["value"];
  rules.mode = mode == "advanced" ? engine::BlockMode::kAdvanced
               : mode == "even"   ? engine::BlockMode::kEven
                                  : engine::BlockMode::kNaive;
  rules.block_count = static_cast<uint32_t>(
      std::max(Option("pipeline_blocks_to_host"), Option("pipeline_blocks_to_device")));
  rules.threshold_bytes = Option("pipeline_threshold_bytes");
  const engine::BlockPlan plan(kLongBytes, rules);
  Blocks wanted;
  for (uint64_t begun = 0; begun < kLongBytes; begun += wanted[begun]) {
    wanted[begun] = plan.Next(begun, Option("pipeline_block_bytes")).size_bytes;
  }
  const std::vector<TraceReading> nodes = Trace(kLongBytes);
  ASSERT_EQ(nodes.size(), 2U);
  ExpectBlocks(nodes[0], "copy in", wanted);
  ExpectBlocks(nodes[1], "copy out", wanted);
}

}  // namespace
}  // namespace ferry::e2e
