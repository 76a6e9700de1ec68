// `ferryctl tune` as an administrator runs it: over an emulated link, whose figures are known, and
// the network inside this node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
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

  // With few and small messages; the device's link has the figures of an Intel DG1.
  std::vector<std::string> Arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {kFerryctl,
                                          "tune",
                                          "--output",
                                          options_,
                                          "--sizes",
                                          sizes_,
                                          "--repetitions",
                                          "3",
                                          "--host_link_h2d_mb_per_s=3768",
                                          "--host_link_d2h_mb_per_s=5622",
                                          "--host_link_pageable_h2d_mb_per_s=2917",
                                          "--host_link_pageable_d2h_mb_per_s=3510",
                                          "--host_link_latency_us=27",
                                          "--host_link_pageable_latency_us=54"};
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

}  // namespace
}  // namespace ferry::e2e
