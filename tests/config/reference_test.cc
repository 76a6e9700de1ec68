#include "config/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "config/options.h"
#include "config/toml_loader.h"

namespace ferry::config {
namespace {

using testing::HasSubstr;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// DefaultToml() with the # taken away before each option.
std::string UncommentedToml() {
  std::istringstream lines(DefaultToml());
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const bool option = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    out += (option ? line.substr(1) : line) + "\n";
  }
  return out;
}

TEST(ReferenceTest, StoredTomlIsUpToDate) {
  EXPECT_EQ(Read("config/ferryd.toml"), DefaultToml())
      << "run: bazel run //config:print_reference -- toml > config/ferryd.toml";
}

TEST(ReferenceTest, StoredTablesAreUpToDate) {
  EXPECT_THAT(Read("docs/configuration.md"), HasSubstr(OptionsMarkdown()))
      << "put in the output of: bazel run //config:print_reference -- markdown";
}

TEST(ReferenceTest, DefaultTomlChangesNothing) {
  Options options;
  EXPECT_TRUE(ApplyTomlText(DefaultToml(), "ferryd.toml", &options).ok());
  EXPECT_EQ(options, Options());
}

TEST(ReferenceTest, DefaultTomlHoldsEveryOptionAtItsDefault) {
  const std::string text = UncommentedToml();
  for (const Option& option : OptionTable()) {
    const bool present = text.find("\n" + std::string(option.name) + " = ") != text.npos;
    EXPECT_EQ(present, option.source == Source::kAnywhere) << option.name;
  }
  Options options;
  // Any other value than the default, to see that the file sets it back.
  options.log_level = options.provider = "x";
  options.staging_blocks = options.max_ranks = 77;
  const Status status = ApplyTomlText(text, "ferryd.toml", &options);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(options, Options());
}

TEST(ReferenceTest, ManualKeepsQuotesAndBeginsSentencesOnNewLines) {
  EXPECT_THAT(OptionsMan(), HasSubstr(".It Va provider No = Qq \\&auto\nWhat connects"));
  EXPECT_THAT(OptionsMan(), HasSubstr(".It Va log_file No = Qq\n"));
  EXPECT_THAT(OptionsMan(), HasSubstr("any free one.\nIt must be"));
}

TEST(ReferenceTest, HelpListsEveryFlagAndNoSecret) {
  for (const Option& option : OptionTable()) {
    const bool listed =
        FlagsHelp().find(std::string("--") + option.name + "=") != std::string::npos;
    EXPECT_EQ(listed, option.source != Source::kEnvironmentOnly) << option.name;
  }
}

TEST(ReferenceTest, LinesAreNoLongerThanAHundredColumns) {
  std::istringstream lines(DefaultToml() + FlagsHelp());
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
  }
}

}  // namespace
}  // namespace ferry::config
