// The manual pages say what the programs say of themselves, no less and no more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "config/options.h"
#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

using testing::IsSubsetOf;
using Words = std::set<std::string>;

constexpr char kFerryd[] = "daemon/ferryd";
constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";
constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFerrysim[] = "tools/ferrysim/ferrysim";
constexpr char kFerrycc[] = "tools/wrappers/ferrycc";
constexpr char kFerryfc[] = "tools/wrappers/ferryfc";

std::string Page(const std::string& name) { return "docs/man/" + name; }

std::string ReadPage(const std::string& name) {
  std::string text = tests::ReadFile(Page(name));
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

// The first group of every match.
Words FindAll(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern, std::regex::multiline);
  Words words;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    words.insert((*match)[1]);
  }
  return words;
}

// Flags that head an item of a list: ".It Fl n , Fl -ranks Ar n" has -n and --ranks.
Words FlagsDocumented(const std::string& page) {
  Words flags;
  std::istringstream lines(ReadPage(page));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".It Fl")) {
      for (const std::string& flag : FindAll(line, "Fl (-?[a-zA-Z][-a-z_]*)")) {
        flags.insert("-" + flag);
      }
    }
  }
  return flags;
}

// Every flag that the page speaks of.
Words FlagsMentioned(const std::string& page) {
  Words flags;
  for (const std::string& flag : FindAll(ReadPage(page), "Fl (-?[a-zA-Z][-a-z_]*)")) {
    flags.insert("-" + flag);
  }
  return flags;
}

// Flags at the start of the lines of --help, such as "  -n,--ranks N   how many".
Words FlagsOf(const std::vector<std::string>& command) {
  const CommandResult help = RunCommand(command);
  EXPECT_EQ(help.exit_code, 0);
  Words flags;
  for (const std::string& names :
       FindAll(help.out, "^  (--?[a-zA-Z][-a-z_]*(?:,!?--?[a-zA-Z][-a-z]*)*)(?=[\\[ {\n])")) {
    for (const std::string& flag : FindAll(names, "(--?[a-zA-Z][-a-z]*)")) {
      flags.insert(flag);
    }
  }
  return flags;
}

Words OptionFlags() {
  Words flags;
  for (const config::Option& option : config::OptionTable()) {
    flags.insert(std::string("--") + option.name);
  }
  return flags;
}

Words operator+(Words a, const Words& b) {
  a.insert(b.begin(), b.end());
  return a;
}

Words CommandsOf(const char* program) {
  const std::string help = RunCommand({program, "--help"}).out;
  return FindAll(help.substr(help.find("Subcommands:")), "^  ([a-z]+) ");
}

TEST(ManTest, FerryrunHasItsFlags) {
  const Words flags = FlagsOf({kFerryrun, "--help"});
  EXPECT_EQ(FlagsDocumented("ferryrun.1"), flags);
  EXPECT_THAT(FlagsMentioned("ferryrun.1"), IsSubsetOf(flags + OptionFlags()));
}

TEST(ManTest, FerryctlHasItsCommandsAndFlags) {
  const Words commands = CommandsOf(kFerryctl);
  EXPECT_FALSE(commands.empty());
  EXPECT_EQ(FindAll(ReadPage("ferryctl.1"), "^\\.It Cm ([a-z]+)"), commands);
  Words flags = FlagsOf({kFerryctl, "--help"});
  for (const std::string& command : commands) {
    flags = flags + FlagsOf({kFerryctl, command, "--help"});
  }
  EXPECT_EQ(FlagsDocumented("ferryctl.1"), flags);
  EXPECT_THAT(FlagsMentioned("ferryctl.1"), IsSubsetOf(flags + OptionFlags()));
}

TEST(ManTest, FerrysimHasItsCommandsAndFlags) {
  const Words commands = CommandsOf(kFerrysim);
  EXPECT_FALSE(commands.empty());
  EXPECT_THAT(commands, IsSubsetOf(FindAll(ReadPage("ferrysim.1"), "^\\.It Cm ([a-z]+)")));
  Words flags = FlagsOf({kFerrysim, "--help"});
  for (const std::string& command : commands) {
    flags = flags + FlagsOf({kFerrysim, command, "--help"});
  }
  EXPECT_EQ(FlagsDocumented("ferrysim.1"), flags);
}

TEST(ManTest, FerrydHasItsFlags) {
  // Its help lists the options too, as --name=default.
  const Words flags = FlagsOf({kFerryd, "--help"}) + Words{"-h"};
  EXPECT_EQ(FlagsDocumented("ferryd.8"), flags);
  EXPECT_THAT(FlagsMentioned("ferryd.8"), IsSubsetOf(flags + OptionFlags()));
}

// The wrapper has no --help of its own: what it takes as its own does not reach the compiler.
TEST(ManTest, FerryccHasItsFlags) {
  const Words flags = FlagsDocumented("ferrycc.1");
  EXPECT_TRUE(flags.contains("-show") && flags.contains("--showme"));
  for (const std::string& flag : flags) {
    const bool names_compiler = flag == "-cc" || flag == "-cxx" || flag == "-fc";
    const CommandResult result = RunCommand(
        {flag == "-fc" ? kFerryfc : kFerrycc, "-show", names_compiler ? flag + "=c" : flag});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.find(flag), std::string::npos) << result.out;
  }
  std::istringstream questions(RunCommand({kFerrycc, "-showme:help"}).out);
  const std::string page = ReadPage("ferrycc.1");
  int count = 0;
  for (std::string question; questions >> question; ++count) {
    EXPECT_NE(page.find(".Cm " + question), std::string::npos) << question;
  }
  EXPECT_GT(count, 0);
}

TEST(ManTest, TheConfigurationHasItsOptions) {
  Words options;
  for (const config::Option& option : config::OptionTable()) {
    if (option.source == config::Source::kAnywhere) {
      options.insert(option.name);
    }
  }
  EXPECT_EQ(FindAll(ReadPage("ferryd.toml.5"), "^\\.It Va ([a-z0-9_]+)"), options);
}

TEST(ManTest, VariablesAreOptions) {
  // The prefix alone, where it is explained, what ferryrun reads, and names that will never be
  // options.
  Words variables = {"FERRY_", "FERRY_ABI", "FERRY_DIR", "FERRY_HOME", "FERRY_ROOT"};
  for (const config::Option& option : config::OptionTable()) {
    variables.insert(config::EnvironmentVariable(option));
  }
  for (const char* page : {"ferryd.8", "ferryctl.1", "ferryrun.1", "ferryd.toml.5"}) {
    EXPECT_THAT(FindAll(ReadPage(page), "\\b(FERRY_[A-Z_]*)"), IsSubsetOf(variables)) << page;
  }
}

class ManPageTest : public testing::TestWithParam<const char*> {};

TEST_P(ManPageTest, IsCorrect) {
  if (!std::filesystem::exists("/usr/bin/mandoc")) {
    GTEST_SKIP() << "mandoc is not installed: apt-get install mandoc";
  }
  const CommandResult result =
      RunCommand({"/usr/bin/mandoc", "-T", "lint", "-W", "warning", Page(GetParam())});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out + result.err, "");
}

INSTANTIATE_TEST_SUITE_P(Pages, ManPageTest,
                         testing::Values("ferryd.8", "ferrycc.1", "ferryctl.1", "ferryrun.1",
                                         "ferrysim.1", "ferryd.toml.5"));

}  // namespace
}  // namespace ferry::e2e
