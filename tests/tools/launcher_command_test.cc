#include "tools/ferryrun/launcher_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::tools {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(LauncherCommandTest, BySshWithoutAPassword) {
  EXPECT_THAT(*LauncherCommand({}, "a", "/usr/bin/ferryrun", {"--agent"}),
              ElementsAre("ssh", "-x", "-o", "BatchMode=yes", "a", "/usr/bin/ferryrun", "--agent"));
}

TEST(LauncherCommandTest, WhatAShellWouldReadIsQuoted) {
  EXPECT_THAT(*LauncherCommand({}, "a", "/my own/'ferryrun'", {"", "$x"}),
              testing::IsSupersetOf({std::string("'/my own/'\\''ferryrun'\\'''"), std::string("''"),
                                     std::string("'$x'")}));
}

TEST(LauncherCommandTest, ByACommandOfOnesOwn) {
  config::Options options;
  options.rsh = " ssh  -p 2222 ";
  options.launcher = "srun";  // rsh comes first
  EXPECT_THAT(*LauncherCommand(options, "a", "/f", {}),
              ElementsAre("ssh", "-p", "2222", "a", "/f"));
  options.rsh = "  ";
  EXPECT_THAT(LauncherCommand(options, "a", "/f", {}).status().message(),
              HasSubstr("which is no command"));
}

TEST(LauncherCommandTest, BySrunAsAStepOfTheJob) {
  config::Options options;
  options.launcher = "srun";
  const auto command = LauncherCommand(options, "a", "/my own/ferryrun", {"--agent"});
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->front(), "srun");
  EXPECT_THAT(*command, Contains("--nodelist=a"));
  EXPECT_THAT(*command, Contains("--ntasks=1"));
  // No shell reads it there.
  EXPECT_EQ((*command)[command->size() - 2], "/my own/ferryrun");
}

TEST(LauncherCommandTest, NoneReachesNobody) {
  config::Options options;
  options.launcher = "none";
  EXPECT_THAT(LauncherCommand(options, "a", "/f", {}).status().message(),
              HasSubstr("a is another host, and launcher is none"));
}

}  // namespace
}  // namespace ferry::tools
