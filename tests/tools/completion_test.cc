// The scripts for shells; bash, which is there, runs its own.
#include "tools/flags/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

namespace ferry::tools {
namespace {

using testing::HasSubstr;

CommandLine Launcher() {
  return {.tool = "launcher",
          .flags = {{"-n", "how many", 1}, {"-env", "a variable", 2}, {"--label", "it's a label"}},
          .commands = {}};
}

CommandLine Control() {
  return {.tool = "control",
          .flags = {{"--json", "print JSON"}, {"--output", "a file", 1, "trace"}},
          .commands = {{"status", "How it is: now"}, {"trace", "Records"}}};
}

std::string Script(const CommandLine& line, const char* shell) {
  const StatusOr<std::string> script = CompletionScript(line, shell);
  EXPECT_TRUE(script.ok()) << script.status().message();
  return script.ok() ? *script : "";
}

// Bash's completions of the last of `words`.
std::string Offers(const CommandLine& line, const std::string& words) {
  const std::string file = testing::TempDir() + "completion.bash";
  std::ofstream(file) << Script(line, "bash") << "COMP_WORDS=(" << line.tool << " " << words
                      << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_" << line.tool
                      << "\necho \"${COMPREPLY[*]}\"\n";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(("bash " + file + " 2>&1").c_str(), "r"),
                                                   pclose);
  char text[4096] = {};
  const size_t size = pipe == nullptr ? 0 : fread(text, 1, sizeof(text) - 1, pipe.get());
  return {text, size};
}

TEST(CompletionTest, BashOffersFlagsUntilTheProgram) {
  EXPECT_EQ(Offers(Launcher(), "-"), "-n -env --label\n");
  EXPECT_EQ(Offers(Launcher(), "-n 4 --l"), "--label\n");
  EXPECT_EQ(Offers(Launcher(), "-n -"), "\n");  // its value
  EXPECT_EQ(Offers(Launcher(), "-env A B --l"), "--label\n");
  EXPECT_EQ(Offers(Launcher(), "./program --l"), "\n");  // the program's own
  EXPECT_THAT(Offers(Launcher(), "-n 4 tru"), HasSubstr("true"));
}

TEST(CompletionTest, BashOffersCommandsAndTheirFlags) {
  EXPECT_EQ(Offers(Control(), "''"), "status trace\n");
  EXPECT_EQ(Offers(Control(), "st"), "status\n");
  EXPECT_EQ(Offers(Control(), "status -"), "--json\n");
  EXPECT_EQ(Offers(Control(), "trace -"), "--json --output\n");
  EXPECT_EQ(Offers(Control(), "--json tr"), "trace\n");
}

TEST(CompletionTest, OtherShellsAreToldTheSame) {
  const std::string zsh = Script(Control(), "zsh");
  EXPECT_THAT(zsh, HasSubstr("#compdef control\n"));
  EXPECT_THAT(zsh, HasSubstr("'status:How it is: now'\n"));
  EXPECT_THAT(zsh, HasSubstr("local word command\nflags=(\n  '--json:print JSON'\n)\n"));
  EXPECT_THAT(zsh, HasSubstr("    trace) command=$word; flags+=(\n  '--output:a file'\n    );;\n"));
  EXPECT_THAT(Script(Launcher(), "zsh"), HasSubstr("'--label:it'\\''s a label'\n"));
  const std::string fish = Script(Control(), "fish");
  EXPECT_THAT(fish, HasSubstr("-n __fish_use_subcommand -f -a status -d 'How it is: now'\n"));
  EXPECT_THAT(fish, HasSubstr("-n '__fish_seen_subcommand_from trace' -l output -r -d 'a file'\n"));
  EXPECT_THAT(Script(Launcher(), "fish"),
              HasSubstr("complete -c launcher -s n -r -d 'how many'\n"));
  EXPECT_THAT(Script(Launcher(), "fish"), HasSubstr("complete -c launcher -o env -r -d"));
}

TEST(CompletionTest, KnowsNoOtherShell) {
  EXPECT_THAT(CompletionScript(Control(), "csh").status().message(),
              HasSubstr("--completion csh: it knows bash, zsh and fish"));
}

}  // namespace
}  // namespace ferry::tools
