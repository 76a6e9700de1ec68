// Programs on two nodes whose daemons carry all messages: with messages that are written into
// receives, and with two NICs each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Gt;
using testing::HasSubstr;
using testing::SizeIs;

Words Job(const std::string& ranks, const Words& program) {
  return PrivateJob({"-n", ranks, "--nodes", "2", kByDaemons}, program);
}

// ---- Messages written into receives that are there first, and fetched

void ExpectPassesReceiverFirst(const std::string& min_bytes, const std::string& ranks,
                               const Words& program) {
  RunWell(Job(ranks, With({"FERRY_RECEIVER_FIRST_MIN_BYTES=" + min_bytes}, program)));
}

TEST(ReceiverFirstTest, KeepsItsPromises) {
  ExpectPassesReceiverFirst("1", "2", {"tests/e2e/ranks/receiver_first", "on"});
}

TEST(ReceiverFirstTest, TheSameWithout) {
  ExpectPassesReceiverFirst("0", "2", {"tests/e2e/ranks/receiver_first", "off"});
}

// The programs that every placement has to pass.
TEST(ReceiverFirstTest, OtherProgramsDoNotNotice) {
  ExpectPassesReceiverFirst("1", "4", {"tests/e2e/ranks/point_to_point"});
}

TEST(ReceiverFirstTest, WindowsBothWays) {
  ExpectPassesReceiverFirst("1", "2", {"tests/e2e/ranks/windows", "30"});
}

// ---- Two NICs each, here two addresses of the loopback interface

void ExpectPasses(const std::string& ranks, const Words& program, const Words& variables = {}) {
  RunWell(Job(ranks, program), Joined(variables, {"FERRY_FABRIC_RAILS=127.0.0.2"}));
}

// The programs that every placement has to pass.
TEST(RailsTest, ProgramsDoNotNotice) { ExpectPasses("4", {"tests/e2e/ranks/point_to_point"}); }

TEST(RailsTest, WindowsBothWays) {
  ExpectPasses("2", {"tests/e2e/ranks/windows", "30"}, {"FERRY_RAIL_STRIPE_BYTES=65536"});
}

TEST(RailsTest, WritesIntoReceivesThatAreThereFirst) {
  ExpectPasses("2", {"tests/e2e/ranks/receiver_first", "on"}, {"FERRY_RECEIVER_FIRST_MIN_BYTES=1"});
}

// ---- Matched pairs, whose messages the NICs of `sockets` move

// For each NIC, the value behind a name in the output of `ferryctl nics --json`.
std::vector<uint64_t> ValuesOf(const std::string& text, const std::string& name) {
  const std::string key = "\"" + name + "\": ";
  std::vector<uint64_t> values;
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    values.push_back(std::stoull(text.substr(at + key.size())));
  }
  return values;
}

// The NICs of its daemon, as rank 0 prints them. No NIC is given up because it answers late.
std::string NicsAfter(const Words& program, const Words& variables = {}) {
  return RunWell(
      Job("2", Joined(program, {"tools/ferryctl/ferryctl"})),
      Joined(variables, {"FERRY_FABRIC_RAILS=127.0.0.2", "FERRY_PROVIDER=sockets",
                         "FERRY_MATCHED_CELL_BYTES=0", "FERRY_OPERATION_TIMEOUT_MS=300000"}));
}

TEST(RailsTest, MatchedPairsAreSharedOutAmongTheNics) {
  constexpr uint64_t kPairs = 20;
  constexpr uint64_t kRounds = 3;
  const std::string out = NicsAfter(
      {"tests/e2e/ranks/many_matched", std::to_string(kPairs), "16384", std::to_string(kRounds)});
  const std::vector<uint64_t> operations = ValuesOf(out, "deferred_operations");
  ASSERT_THAT(operations, SizeIs(2));
  // A round of a send is two operations; that of its receive is one, and one more if the send is
  // not ready, as every other one is.
  EXPECT_EQ(operations[0] + operations[1], kRounds * (2 * kPairs + kPairs + kPairs / 2));
  EXPECT_GE(std::ranges::min(operations), (operations[0] + operations[1]) / 3);
  EXPECT_THAT(ValuesOf(out, "deferred_overflows"), ElementsAre(0, 0));
  EXPECT_THAT(ValuesOf(out, "deferred_busy"), ElementsAre(0, 0));
  const size_t by_nic = out.find("\"matched_by_nic\"");
  ASSERT_NE(by_nic, std::string::npos);
  EXPECT_EQ(ValuesOf(out.substr(by_nic), "value").front(), kPairs * kRounds);
}

// Each NIC has a trigger for the ready sends that one call starts, and receives each start once.
TEST(RailsTest, ReadySendsOfOneCallHaveATriggerOnEachNic) {
  constexpr uint64_t kPairs = 20;
  constexpr uint64_t kRounds = 10;
  const std::string out = NicsAfter(
      {"tests/e2e/ranks/ready_together", std::to_string(kPairs), "4096", std::to_string(kRounds)});
  const std::vector<uint64_t> operations = ValuesOf(out, "deferred_operations");
  ASSERT_THAT(operations, SizeIs(2));
  EXPECT_EQ(operations[0] + operations[1], 3 * kPairs * kRounds);
  EXPECT_GT(std::ranges::min(operations), 0U);
  const std::vector<uint64_t> counters = ValuesOf(out, "deferred_counters");
  EXPECT_EQ(counters[0] + counters[1], 2 * 2 * kPairs + 2);
  for (const uint64_t rings : ValuesOf(out, "deferred_rings")) {
    EXPECT_GT(rings, 0U);
    EXPECT_LE(rings, kRounds);
  }
}

TEST(RailsTest, EachNicHasItsEntries) {
  const std::string out = NicsAfter({"tests/e2e/ranks/many_matched", "200", "64", "2"},
                                    {"FERRY_DEFERRED_WORK_ENTRIES=8"});
  EXPECT_THAT(ValuesOf(out, "deferred_entries"), ElementsAre(8, 8));
  EXPECT_THAT(ValuesOf(out, "deferred_operations"), Each(Ge(8)));
  EXPECT_THAT(ValuesOf(out, "deferred_overflows"), Each(Gt(0)));
}

TEST(RailsTest, MatchedProgramsDoNotNotice) {
  const Words sockets = {"FERRY_PROVIDER=sockets"};
  ExpectPasses("2", {"tests/e2e/ranks/matched", "few"},
               {"FERRY_PROVIDER=sockets", "FERRY_MATCHED_CELL_BYTES=0"});
  ExpectPasses("2", {"tests/e2e/ranks/queues"}, sockets);
  ExpectPasses("2", {"tests/e2e/ranks/queue_ends"}, sockets);
}

TEST(RailsTest, ANicThatIsNotThereIsNamed) {
  const CommandResult result =
      RunCleanly(Job("2", {"/bin/true"}), {"FERRY_FABRIC_RAILS=203.0.113.9"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("rail '203.0.113.9'"));
}

}  // namespace
}  // namespace ferry::e2e
