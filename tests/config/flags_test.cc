#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "config/loader.h"

namespace ferry::config {
namespace {

using testing::HasSubstr;

Status Apply(std::vector<const char*> arguments, Options* options) {
  return ApplyFlags(arguments, options);
}

std::string ErrorOf(std::vector<const char*> arguments) {
  Options options;
  const Status status = ApplyFlags(arguments, &options);
  EXPECT_EQ(status.code(), ErrorCode::kConfiguration);
  return status.message();
}

TEST(FlagsTest, ReadsBothForms) {
  Options options;
  const Status status = Apply(
      {"--max_ranks=7", "--max_local_ranks", "5", "--log-format=json", "--log_file="}, &options);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(options.max_ranks, 7u);
  EXPECT_EQ(options.max_local_ranks, 5u);
  EXPECT_EQ(options.log_format, "json");
  EXPECT_EQ(options.log_file, "");
}

TEST(FlagsTest, TheLastOneWins) {
  Options options;
  EXPECT_TRUE(Apply({"--max_ranks=7", "--max_ranks=8"}, &options).ok());
  EXPECT_EQ(options.max_ranks, 8u);
}

TEST(FlagsTest, RejectsUnknownFlags) {
  EXPECT_EQ(ErrorOf({"--log-levle=info"}),
            "flag --log-levle: unknown option \"log_levle\"; did you mean log_level?");
}

TEST(FlagsTest, RejectsMalformedValues) {
  EXPECT_EQ(ErrorOf({"--fabric_port", "65536"}),
            "flag --fabric_port: fabric_port cannot be \"65536\": it must be an integer from 0 to "
            "65535");
}

TEST(FlagsTest, RejectsAMissingValue) {
  EXPECT_EQ(ErrorOf({"--fabric_port"}),
            "flag --fabric_port: the value is missing: it must be an integer from 0 to 65535");
}

TEST(FlagsTest, RejectsWhatIsNoFlag) {
  EXPECT_THAT(ErrorOf({"start"}), HasSubstr("unexpected argument \"start\""));
  EXPECT_THAT(ErrorOf({"--"}), HasSubstr("unexpected argument"));
  EXPECT_THAT(ErrorOf({""}), HasSubstr("unexpected argument"));
}

TEST(FlagsTest, LeavesLaunchOptionsToTheEnvironment) {
  EXPECT_EQ(ErrorOf({"--job_secret=hunter2"}),
            "flag --job_secret: job_secret cannot be set by a flag: use the environment variable "
            "FERRY_JOB_SECRET");
}

}  // namespace
}  // namespace ferry::config
