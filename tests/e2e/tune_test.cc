// `ferryctl tune` as an administrator runs it: over an emulated link with known figures, and the
// network inside this node; and daemons that run with the options that it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/block_plan.h"
#include "tests/daemon/trace_reading.h"
#include "tests/e2e/command.h"
#include "tests/e2e/traced_job.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using tests::ReadFile;

constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";

class TuneTest : public testing::Test {
 protected:
  TuneTest() {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    options_ = directory_ + "/tuned.toml";
    plot_ = directory_ + "/tuned.svg";
  }
  ~TuneTest() override { fs::remove_all(directory_); }

  // Measures with few and small messages.
  std::vector<std::string> Arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {kFerryctl,       "tune", "--output", options_,
                                          "--plot",        plot_,  "--sizes",  sizes_,
                                          "--repetitions", "3"};
    for (const auto& [name, value] : link_) {
      arguments.push_back("--" + name + "=" + std::to_string(value));
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  CommandResult Tune(const std::vector<std::string>& more = {}) const {
    return RunCommand(Arguments(more));
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_)) {
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

  std::string directory_ = "/tmp/ferry-tune-XXXXXX";
  std::string options_;
  std::string plot_;
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

  const CommandResult loaded =
      RunCommand({kFerryctl, "config", "--json", "--config_file=" + options_});
  ASSERT_EQ(loaded.exit_code, 0) << loaded.err;
  const json effective = json::parse(loaded.out);
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
                  "ferryctl=$(realpath \"$0\") && cd " + directory_ +
                      " && exec \"$ferryctl\" tune --sizes 4K,64K --repetitions 1",
                  kFerryctl});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_THAT(tuned.err, HasSubstr("no file was written; --output FILE writes these options"));
  std::ofstream(options_) << tuned.out;  // as a shell would put it there
  const CommandResult loaded =
      RunCommand({kFerryctl, "config", "--json", "--config_file=" + options_});
  ASSERT_EQ(loaded.exit_code, 0) << loaded.err << tuned.out;
  EXPECT_THAT(json::parse(loaded.out)["pipeline_mode"]["origin"].get<std::string>(),
              HasSubstr(options_));
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
  options_ = directory_ + "/none/tuned.toml";
  ExpectRefusal(Tune(), 1, "cannot write");
  options_ = directory_;
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
constexpr uint64_t kDefaultThreshold = 64 << 10;
constexpr uint64_t kLongBytes = 4 << 20;

class TunedDaemonsTest : public TuneTest {
 protected:
  void SetUp() override {
    sizes_ = "4K,64K,256K,1M,4M";
    link_["host_link_latency_us"] = kSlowStartUs;
    const CommandResult tuned = Tune({kLongBlocks});
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
    const CommandResult loaded =
        RunCommand({kFerryctl, "config", "--json", "--config_file=" + options_, kLongBlocks});
    ASSERT_EQ(loaded.exit_code, 0) << loaded.err;
    config_ = json::parse(loaded.out);
    ASSERT_GT(Option("pipeline_threshold_bytes"), kDefaultThreshold);
    ASSERT_LT(Option("pipeline_threshold_bytes"), kLongBytes);
  }
  uint64_t Option(const char* name) const {
    return std::stoull(config_[name]["value"].get<std::string>());
  }

  // The traces of both daemons, the sender's first, while messages of one size pass between
  // devices.
  std::vector<daemon::TraceReading> Trace(uint64_t message_bytes) const {
    std::vector<std::string> variables = {"FERRY_HOST_LINK_GUARD=1"};
    for (const auto& [name, value] : link_) {
      std::string variable = "FERRY_" + name + "=" + std::to_string(value);
      std::transform(variable.begin(), variable.end(), variable.begin(), toupper);
      variables.push_back(std::move(variable));
    }
    TracedJob job({"--config_file=" + options_, kLongBlocks},
                  {std::to_string(message_bytes), "device"}, std::move(variables));
    std::vector<daemon::TraceReading> readings;
    for (size_t node = 0; node < job.run_directories().size(); ++node) {
      EXPECT_EQ(job.Ask(node, {"trace", "start"}).exit_code, 0);
    }
    EXPECT_TRUE(job.LetMessagesPass());
    for (size_t node = 0; node < job.run_directories().size(); ++node) {
      readings.push_back(daemon::ReadTrace(job.Ask(node, {"trace", "stop"}).out));
    }
    if (readings.size() == 2 && readings[1].Named("RDMA read").empty()) {
      std::swap(readings[0], readings[1]);
    }
    return readings;
  }

  nlohmann::json config_;
};

using Blocks = std::map<uint64_t, uint64_t>;  // by offset: bytes

// The steps of a daemon for each message that was traced as a whole.
std::map<std::string, Blocks> StepsOf(const daemon::TraceReading& reading, const std::string& name,
                                      uint64_t message_bytes) {
  std::map<std::string, Blocks> steps;
  std::map<std::string, uint64_t> bytes;
  for (const daemon::TraceSpan& span : reading.Named(name)) {
    const auto message = span.arguments["message"].get<std::string>();
    const auto step_bytes = span.arguments["bytes"].get<uint64_t>();
    steps[message][span.arguments["offset"].get<uint64_t>()] = step_bytes;
    bytes[message] += step_bytes;
  }
  std::erase_if(steps, [&](const auto& step) { return bytes[step.first] != message_bytes; });
  return steps;
}

void ExpectBlocks(const daemon::TraceReading& reading, const std::string& name,
                  const Blocks& wanted) {
  const auto [last_offset, last_bytes] = *wanted.rbegin();
  const std::map<std::string, Blocks> steps = StepsOf(reading, name, last_offset + last_bytes);
  EXPECT_GT(steps.size(), 50U);
  for (const auto& [message, blocks] : steps) {
    ASSERT_EQ(blocks, wanted) << name << " of " << message;
  }
}

TEST_F(TunedDaemonsTest, CutNoMessageUpToTheThreshold) {
  const uint64_t bytes = Option("pipeline_threshold_bytes");
  const std::vector<daemon::TraceReading> nodes = Trace(bytes);
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
  const std::vector<daemon::TraceReading> nodes = Trace(kLongBytes);
  ASSERT_EQ(nodes.size(), 2U);
  ExpectBlocks(nodes[0], "copy in", wanted);
  ExpectBlocks(nodes[1], "copy out", wanted);
}

}  // namespace
}  // namespace ferry::e2e
