#include "config/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace ferry::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Option& Row(const char* name) {
  const Option* option = FindOption(name);
  EXPECT_NE(option, nullptr) << name;
  return *option;
}

TEST(OptionsTest, TableBindsEveryMemberOnce) {
  std::set<std::string> names;
  std::set<const void*> members;
  const Options options;
  size_t bytes = 0;
  for (const Option& option : OptionTable()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_NE(*option.help, '\0') << option.name;
    std::visit(
        [&](auto member) {
          EXPECT_TRUE(members.insert(&(options.*member)).second) << option.name;
          bytes += sizeof(options.*member);
        },
        option.member);
  }
  EXPECT_EQ(bytes, sizeof(Options)) << "a member of Options has no row in the table";
}

TEST(OptionsTest, GroupsStandTogether) {
  std::set<Group> seen;
  const Option* previous = nullptr;
  for (const Option& option : OptionTable()) {
    if (previous == nullptr || previous->group != option.group) {
      EXPECT_TRUE(seen.insert(option.group).second) << option.name;
      EXPECT_STRNE(GroupTitle(option.group), "");
    }
    previous = &option;
  }
}

TEST(OptionsTest, EveryDefaultIsAllowed) {
  const Options defaults;
  Options options;
  for (const Option& option : OptionTable()) {
    if (option.secret) {
      continue;
    }
    const Status status = SetOption(option, OptionText(option, defaults), "test", &options);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  EXPECT_EQ(options, defaults);
  EXPECT_TRUE(CheckOptions(defaults).ok());
}

TEST(OptionsTest, NamesTheEnvironmentVariable) {
  EXPECT_EQ(EnvironmentVariable(Row("eager_max_bytes")), "FERRY_EAGER_MAX_BYTES");
}

TEST(OptionsTest, SetsNumbersAtTheirLimits) {
  Options options;
  EXPECT_TRUE(SetOption(Row("eager_max_bytes"), "0", "test", &options).ok());
  EXPECT_EQ(options.eager_max_bytes, 0u);
  EXPECT_TRUE(SetOption(Row("eager_max_bytes"), "8192", "test", &options).ok());
  EXPECT_EQ(options.eager_max_bytes, 8192u);
}

TEST(OptionsTest, TakesSizesInPowersOf1024) {
  for (const auto& [text, bytes] : {std::pair("2M", 2ULL << 20),
                                    {"1G", 1ULL << 30},
                                    {"1t", 1ULL << 40},
                                    {"1024KiB", 1ULL << 20},
                                    {"4096k", 4ULL << 20},
                                    {"1048577", (1ULL << 20) + 1}}) {
    Options options;
    const Status status = SetOption(Row("heap_bytes"), text, "test", &options);
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(options.heap_bytes, bytes) << text;
  }
  for (const char* text : {"M", "1MB", "1 M", "1.5G", "1P", "17592186044417M", "1Mi", "1MiBs"}) {
    Options options;
    EXPECT_FALSE(SetOption(Row("heap_bytes"), text, "test", &options).ok()) << text;
    EXPECT_EQ(options, Options()) << text;
  }
  Options options;  // what is no size has no such units
  EXPECT_FALSE(SetOption(Row("staging_blocks"), "1K", "test", &options).ok());
}

TEST(OptionsTest, RejectsWhatIsNoAllowedNumber) {
  for (const char* text :
       {"", "abc", "12x", " 12", "-1", "1.5", "0x10", "8193", "18446744073709551616"}) {
    Options options;
    const Status status = SetOption(Row("eager_max_bytes"), text, "ferryd.toml:7", &options);
    EXPECT_EQ(status.code(), ErrorCode::kConfiguration) << text;
    EXPECT_EQ(status.message(), "ferryd.toml:7: eager_max_bytes cannot be \"" + std::string(text) +
                                    "\": it must be an integer from 0 to 8192 (bytes)");
    EXPECT_EQ(options, Options()) << "a rejected value must not be stored";
  }
}

TEST(OptionsTest, RejectsANumberBelowItsMinimum) {
  Options options;
  EXPECT_THAT(SetOption(Row("staging_blocks"), "1", "test", &options).message(),
              HasSubstr("from 2 to 4096 (blocks)"));
}

TEST(OptionsTest, RejectsWhatIsNoChoice) {
  for (const char* text : {"", "jso", "jsonx", "text|json", "JSON"}) {
    Options options;
    EXPECT_EQ(
        SetOption(Row("log_format"), text, "test", &options).message(),
        "test: log_format cannot be \"" + std::string(text) + "\": it must be one of text, json");
  }
}

TEST(OptionsTest, RejectsTextOfWrongLength) {
  Options options;
  EXPECT_THAT(SetOption(Row("provider"), "", "test", &options).message(),
              HasSubstr("text of 1 to 63 bytes"));
  EXPECT_FALSE(SetOption(Row("run_directory"), std::string(81, 'x'), "test", &options).ok());
  EXPECT_TRUE(SetOption(Row("run_directory"), std::string(80, 'x'), "test", &options).ok());
}

TEST(OptionsTest, NeverShowsASecret) {
  Options options;
  const std::string secret = "hunter2" + std::string(200, 'x');
  EXPECT_THAT(SetOption(Row("job_secret"), secret, "test", &options).message(),
              AllOf(HasSubstr("job_secret"), Not(HasSubstr("hunter2"))));
  options.job_secret = "hunter2";
  EXPECT_EQ(OptionText(Row("job_secret"), options), "(secret)");
}

TEST(OptionsTest, SuggestsTheNearestName) {
  const Status status = UnknownOption("eagre_max_bytes", "ferryd.toml:3");
  EXPECT_EQ(status.code(), ErrorCode::kConfiguration);
  EXPECT_EQ(status.message(),
            "ferryd.toml:3: unknown option \"eagre_max_bytes\"; did you mean eager_max_bytes?");
}

TEST(OptionsTest, SuggestsNothingForWhatResemblesNothing) {
  EXPECT_THAT(UnknownOption("zzzzzzzzzzzz", "test").message(), Not(HasSubstr("did you mean")));
}

TEST(OptionsTest, ChecksThatRankIsBelowSize) {
  Options options;
  options.rank = 4;
  EXPECT_TRUE(CheckOptions(options).ok()) << "outside a job the rank means nothing";
  options.size = 4;
  EXPECT_THAT(CheckOptions(options).message(), HasSubstr("rank (4) must be below size (4)"));
  options.rank = 3;
  EXPECT_TRUE(CheckOptions(options).ok());
}

TEST(OptionsTest, ChecksThatATimeoutOutlastsTwoHeartbeats) {
  Options options;
  options.heartbeat_interval_ms = 7501;
  EXPECT_THAT(CheckOptions(options).message(), HasSubstr("peer_timeout_ms (15000)"));
}

TEST(OptionsTest, TlsNeedsAllOfItsFiles) {
  Options options;
  options.tls_cert_file = "a.pem";
  EXPECT_EQ(CheckOptions(options).message(),
            "TLS needs tls_ca_file, tls_cert_file and tls_key_file, all three: tls_ca_file and "
            "tls_key_file are missing");
  options.tls_key_file = "a.key";
  EXPECT_THAT(CheckOptions(options).message(), HasSubstr(": tls_ca_file is missing"));
  options.tls_ca_file = "ca.pem";
  EXPECT_TRUE(CheckOptions(options).ok());
}

TEST(OptionsTest, ChecksThatAnEmulatedLinkHasBothDirections) {
  Options options;
  options.host_link_d2h_mb_per_s = 773;
  EXPECT_THAT(CheckOptions(options).message(),
              AllOf(HasSubstr("host_link_h2d_mb_per_s (0)"), HasSubstr("(773)")));
  options.host_link_h2d_mb_per_s = 1140;
  EXPECT_TRUE(CheckOptions(options).ok());
}

TEST(OptionsTest, StagingForDevicesHasABlockForEachDirectionOrNone) {
  Options options;
  options.pipeline_staging_blocks = 1;
  EXPECT_THAT(CheckOptions(options).message(), HasSubstr("pipeline_staging_blocks"));
  for (const uint64_t blocks : {0, 2}) {
    options.pipeline_staging_blocks = blocks;
    EXPECT_TRUE(CheckOptions(options).ok()) << blocks;
  }
}

TEST(OptionsTest, ChecksTheWeightsOfRanks) {
  Options options;
  options.staging_weights = "0:4,7:2";
  EXPECT_TRUE(CheckOptions(options).ok());
  options.staging_weights = "0:4,7";
  EXPECT_THAT(CheckOptions(options).message(), HasSubstr("staging_weights: \"7\": it must be"));
}

TEST(OptionsTest, PlacesAreAutoNoneOrNumbers) {
  Options options;
  for (const char* cpus : {"auto", "none", "0", "0-3,8"}) {
    options.progress_affinity = cpus;
    EXPECT_TRUE(CheckOptions(options).ok()) << cpus;
  }
  options.progress_affinity = "3-0";
  EXPECT_THAT(CheckOptions(options).message(),
              HasSubstr("progress_affinity must be auto, none or a list of CPUs: \"3-0\""));
  options.progress_affinity = "auto";
  for (const char* node : {"auto", "none", "0", "12"}) {
    options.staging_node = node;
    EXPECT_TRUE(CheckOptions(options).ok()) << node;
  }
  for (const char* node : {"-1", "one", "0-1"}) {
    options.staging_node = node;
    EXPECT_EQ(CheckOptions(options).message(),
              "staging_node must be auto, none or the number of a NUMA node, not \"" +
                  std::string(node) + "\"");
  }
}

}  // namespace
}  // namespace ferry::config
