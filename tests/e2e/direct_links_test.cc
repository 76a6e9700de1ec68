// Programs on two nodes whose ranks have direct links: messages keep their order and their bytes,
// whichever way they go and however often that changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::HasSubstr;

// Every pair asks for a link with its first message.
const Words kAlways = {"FERRY_DIRECT_LINKS=always"};
// A direction goes back to the daemons when nothing has been sent for that long.
const Words kRestless = {"FERRY_DIRECT_LINKS=auto", "FERRY_DIRECT_LINK_MESSAGES=3",
                         "FERRY_DIRECT_LINK_IDLE_MS=5"};
// Each rank has two peers on the other node.
const Words kScarce = {"FERRY_DIRECT_LINKS=always", "FERRY_DIRECT_LINKS_PER_RANK=1",
                       "FERRY_DIRECT_LINK_IDLE_MS=20"};
const Words kOff = {"FERRY_DIRECT_LINKS=off"};

std::string RunJob(const std::string& ranks, const Words& variables, const Words& program) {
  return RunWell(PrivateJob({"-n", ranks, "--nodes", "2"}, program), variables, 120);
}

uint64_t Counter(const std::string& out, const std::string& name) {
  const size_t at = out.find(name + ": ");
  EXPECT_NE(at, std::string::npos) << name << " in " << out;
  return at == std::string::npos ? 0 : std::stoull(out.substr(at + name.size() + 2));
}

Words Switching(const std::string& rounds, const std::string& seed, const std::string& pause_ms) {
  return {"tests/e2e/ranks/switching", rounds, seed, pause_ms};
}

TEST(DirectLinksTest, MessagesTakeThem) {
  const std::string out = RunJob("4", kAlways, Switching("30", "1", "0"));
  EXPECT_GT(Counter(out, "link_messages_sent"), 0U);
  EXPECT_GT(Counter(out, "link_messages_received"), 0U);
  EXPECT_EQ(Counter(out, "link_errors"), 0U);
}

TEST(DirectLinksTest, NothingTakesThemWhereTheyAreOff) {
  const std::string out = RunJob("2", kOff, Switching("10", "2", "0"));
  EXPECT_EQ(Counter(out, "link_messages_sent"), 0U);
  EXPECT_EQ(Counter(out, "link_messages_received"), 0U);
}

TEST(DirectLinksTest, PathsMayChangeAtAnyTime) {
  for (const char* const seed : {"3", "4", "5"}) {
    const std::string out = RunJob("4", kRestless, Switching("40", seed, "25"));
    EXPECT_GT(Counter(out, "link_messages_sent"), 0U) << seed;
    EXPECT_EQ(Counter(out, "link_errors"), 0U) << seed;
  }
}

Words OneSidedSwitching(const std::string& rounds, const std::string& seed,
                        const std::string& pause_ms) {
  return {"tests/e2e/ranks/one_sided_switching", rounds, seed, pause_ms};
}

TEST(DirectLinksTest, OneSidedOperationsTakeThem) {
  const std::string out = RunJob("4", kAlways, OneSidedSwitching("100", "1", "0"));
  EXPECT_EQ(Counter(out, "link_errors"), 0U);
  // Far more than the messages that say where the memory is.
  EXPECT_GT(Counter(out, "link_messages_sent"), 200U);
  EXPECT_GT(Counter(out, "link_messages_received"), 200U);
}

TEST(DirectLinksTest, ThePathsOfOneSidedOperationsMayChangeAtAnyTime) {
  for (const char* const seed : {"2", "3", "4"}) {
    const std::string out = RunJob("4", kRestless, OneSidedSwitching("60", seed, "25"));
    EXPECT_GT(Counter(out, "link_messages_sent"), 0U) << seed;
    EXPECT_EQ(Counter(out, "link_errors"), 0U) << seed;
  }
}

TEST(DirectLinksTest, RanksAtTheirLimitGoOnByTheDaemons) {
  for (const char* const pause_ms : {"0", "10"}) {
    const std::string out = RunJob("4", kScarce, Switching("40", "6", pause_ms));
    EXPECT_GT(Counter(out, "link_messages_sent"), 0U);
    EXPECT_EQ(Counter(out, "link_errors"), 0U);
  }
}

TEST(DirectLinksTest, BurstsEndWhileTheirSenderComputes) {
  const TempDirectory directory;
  const std::string out =
      RunJob("2", kAlways, {"tests/e2e/ranks/bursts", directory / "count", "300"});
  EXPECT_GT(Counter(out, "link_messages_sent"), 0U);
}

// A child has copies of its parent's sockets.
TEST(DirectLinksTest, RanksMayFork) {
  for (const Words& variables : {kAlways, kRestless}) {
    const std::string out = RunJob("2", variables, {"tests/e2e/ranks/forks", "64"});
    EXPECT_GT(Counter(out, "link_messages_sent"), 0U);
    EXPECT_EQ(Counter(out, "link_errors"), 0U);
  }
}

// The programs that every placement has to pass.
TEST(DirectLinksTest, OtherProgramsDoNotNotice) {
  RunJob("4", kAlways, {"tests/e2e/ranks/point_to_point"});
  RunJob("2", kAlways, {"tests/e2e/ranks/receiver_first", "off"});
  RunJob("2", kAlways, {"tests/e2e/ranks/windows", "30"});
  RunJob("2", kAlways, {"tests/e2e/ranks/windows", "10", "30000"});
  RunJob("2", kAlways, {"tests/e2e/ranks/one_sided"});
  RunJob("4", kAlways, {"tests/e2e/ranks/one_sided"});
  RunJob("4", kAlways, {"tests/e2e/ranks/accumulate"});
}

}  // namespace
}  // namespace ferry::e2e
