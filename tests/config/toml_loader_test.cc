#include "config/toml_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace ferry::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// The error that `text` gives as the file f.toml.
std::string ErrorOf(const std::string& text) {
  Options options;
  const Status status = ApplyTomlText(text, "f.toml", &options);
  EXPECT_EQ(status.code(), ErrorCode::kConfiguration) << text;
  return status.message();
}

TEST(TomlLoaderTest, ReadsNumbersAndText) {
  Options options;
  const Status status = ApplyTomlText("# comment\nstaging_blocks = 1_000\nlog_format = \"json\"\n",
                                      "f.toml", &options);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(options.staging_blocks, 1000u);
  EXPECT_EQ(options.log_format, "json");
}

TEST(TomlLoaderTest, AbsentMeansDefault) {
  Options options;
  EXPECT_TRUE(ApplyTomlText("", "f.toml", &options).ok());
  EXPECT_EQ(options, Options());
}

TEST(TomlLoaderTest, SurvivesATableHeaderWithoutAKey) {
  EXPECT_EQ(ErrorOf("staging_blocks = 8\n[\nx = 1\n"), "f.toml:2: this is no name = value");
  EXPECT_EQ(ErrorOf("[[\n"), "f.toml:1: this is no name = value");
}

TEST(TomlLoaderTest, TakesMoreThanAsciiInStringsAndComments) {
  for (const char* text : {"run_directory = \"/tmp/\u00e9\\\"\" # \u0388\n",
                           "# \u0388\nrun_directory = \"\"\"\n/tmp/\u00e9\"\\\n  \"\"\"\n"}) {
    Options options;
    const Status status = ApplyTomlText(text, "f.toml", &options);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(options.run_directory, "/tmp/\u00e9\"") << text;
  }
}

TEST(TomlLoaderTest, SurvivesMoreThanAsciiElsewhere) {
  EXPECT_THAT(ErrorOf("# \u0388\nstaging_blocks = \u0388\n"), StartsWith("f.toml:2: "));
  EXPECT_THAT(ErrorOf("run_directory = \"x\" \u00e9\n"),
              AllOf(StartsWith("f.toml:1: "), HasSubstr("saw '\u00e9'")));
  EXPECT_THAT(ErrorOf("\u00e9 = 1\n"), HasSubstr("saw '\u00e9'"));
  EXPECT_THAT(ErrorOf("log_level\u00a0= \"info\"\n"), HasSubstr("saw '\\u00A0'"));
  EXPECT_THAT(ErrorOf("[\u00e9]\n"), StartsWith("f.toml:1: "));
  EXPECT_THAT(ErrorOf("x\" \u00e9\n"), HasSubstr("expected '=', saw '\"'"));
}

TEST(TomlLoaderTest, NamesTheLineOfAnUnknownOption) {
  EXPECT_EQ(ErrorOf("log_level = \"info\"\n\nstaging_block = 2\n"),
            "f.toml:3: unknown option \"staging_block\"; did you mean staging_blocks?");
}

TEST(TomlLoaderTest, NamesTheLineOfAValueOutOfRange) {
  EXPECT_THAT(
      ErrorOf("\neager_max_bytes = 8193"),
      StartsWith("f.toml:2: eager_max_bytes cannot be \"8193\": it must be an integer from 0"));
  EXPECT_THAT(ErrorOf("eager_max_bytes = -1"), HasSubstr("cannot be \"-1\""));
}

TEST(TomlLoaderTest, TakesSizesWithUnitsAsText) {
  Options options;
  const Status status =
      ApplyTomlText("heap_bytes = \"128M\"\neager_max_bytes = 4096\n", "f.toml", &options);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(options.heap_bytes, 128ULL << 20);
  EXPECT_THAT(ErrorOf("heap_bytes = \"128X\""), HasSubstr("heap_bytes cannot be \"128X\""));
}

TEST(TomlLoaderTest, RejectsValuesOfAnotherType) {
  EXPECT_THAT(ErrorOf("staging_blocks = \"8\""),
              HasSubstr("cannot be a string: it must be an int"));
  EXPECT_THAT(ErrorOf("eager_max_bytes = 1.5"), HasSubstr("cannot be a floating-point number"));
  EXPECT_THAT(ErrorOf("eager_max_bytes = [1]"), HasSubstr("cannot be an array"));
  EXPECT_THAT(ErrorOf("eager_max_bytes = 1979-05-27"), HasSubstr("cannot be a date or time"));
  EXPECT_THAT(ErrorOf("log_level = 3"), HasSubstr("cannot be an integer"));
  EXPECT_THAT(ErrorOf("log_level = true"), HasSubstr("cannot be a boolean"));
}

TEST(TomlLoaderTest, RejectsTables) {
  EXPECT_EQ(ErrorOf("\n[network]\nprovider = \"tcp\"\n"),
            "f.toml:2: unknown table [network]: options stand at top level, as name = value");
}

TEST(TomlLoaderTest, NamesTheLineOfASyntaxError) {
  EXPECT_THAT(ErrorOf("log_level = \"info\"\nlog_format = \n"), StartsWith("f.toml:2: "));
  EXPECT_THAT(ErrorOf("rank"), StartsWith("f.toml:1: "));
  EXPECT_THAT(ErrorOf("log_level = \"a\"\nlog_level = \"b\"\n"), StartsWith("f.toml:2: "));
}

TEST(TomlLoaderTest, LeavesLaunchOptionsToTheEnvironment) {
  EXPECT_EQ(ErrorOf("job_secret = \"hunter2\""),
            "f.toml:1: job_secret cannot be set in a file: use the environment variable "
            "FERRY_JOB_SECRET");
  EXPECT_THAT(ErrorOf("config_file = \"other.toml\""), HasSubstr("FERRY_CONFIG_FILE"));
}

TEST(TomlLoaderTest, SaysWhyAFileCannotBeRead) {
  Options options;
  const std::string directory = testing::TempDir();
  const Status missing = ApplyToml(directory + "/none.toml", &options);
  EXPECT_EQ(missing.code(), ErrorCode::kConfiguration);
  EXPECT_EQ(missing.message(),
            "cannot read " + directory + "/none.toml: No such file or directory");
  EXPECT_EQ(ApplyToml(directory, &options).message(),
            "cannot read " + directory + ": Is a directory");
}

TEST(TomlLoaderTest, RejectsAnEmptyFile) {
  const std::string path = testing::TempDir() + "/empty.toml";
  std::ofstream file(path);
  Options options;
  EXPECT_EQ(ApplyToml(path, &options).message(),
            "cannot use " + path + ": the file is empty; to read no file, leave config_file empty");
  file << "# nothing is set\n" << std::flush;
  EXPECT_TRUE(ApplyToml(path, &options).ok());
}

TEST(TomlLoaderTest, RejectsAFileThatItMayNotRead) {
  const std::string path = testing::TempDir() + "/secret.toml";
  std::ofstream(path) << "max_ranks = 99\n";
  chmod(path.c_str(), 0);
  const uid_t user = geteuid();
  if (user == 0 && seteuid(65534) != 0) {  // root may read everything
    GTEST_SKIP() << "cannot become another user here";
  }
  Options options;
  const Status status = ApplyToml(path, &options);
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_EQ(status.message(), "cannot read " + path + ": Permission denied");
}

TEST(TomlLoaderTest, RejectsWhatIsNoUtf8) {
  EXPECT_EQ(ErrorOf("max_ranks = 99\nlog_level = \"\xff\xfe\"\n"),
            "f.toml:2: Encountered invalid utf-8 sequence");
  EXPECT_THAT(ErrorOf(std::string("\x89PNG\r\n\x1a\n\0\0", 10)), StartsWith("f.toml:1: "));
}

TEST(TomlLoaderTest, RejectsAnOptionThatIsSetTwice) {
  EXPECT_THAT(
      ErrorOf("log_level = \"info\"\nmax_ranks = 9\nlog_level = \"info\"\n"),
      AllOf(StartsWith("f.toml:3: "), HasSubstr("cannot redefine"), HasSubstr("'log_level'")));
}

TEST(TomlLoaderTest, RejectsANumberThatFitsNoWord) {
  EXPECT_THAT(ErrorOf("max_ranks = 99999999999999999999\n"),
              AllOf(StartsWith("f.toml:1: "), HasSubstr("not representable in 64 bits")));
}

TEST(TomlLoaderTest, ReadsAFile) {
  const std::string path = testing::TempDir() + "/read.toml";
  std::ofstream(path) << "# " << std::string(10'000, 'x') << "\nmax_ranks = 99\n";
  Options options;
  const Status status = ApplyToml(path, &options);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(options.max_ranks, 99u);
}

}  // namespace
}  // namespace ferry::config
