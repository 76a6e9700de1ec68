// Programs on two nodes whose ranks have direct links over libfabric, or whose daemons alone use
// it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/e2e/command.h"
#include "tests/support/slice.h"

namespace ferry::e2e {
namespace {

struct Fabric {
  const char* name;
  const char* daemons;
  const char* links;
};

class DirectLinksLibfabricTest : public testing::TestWithParam<Fabric> {
 protected:
  // Returns how many messages the job's ranks have sent by links.
  uint64_t Run(const std::string& ranks, Words variables, const Words& program) {
    variables.push_back("FERRY_PROVIDER=" + std::string(GetParam().daemons));
    variables.push_back("FERRY_DIRECT_LINK_PROVIDER=" + std::string(GetParam().links));
    const std::string out =
        RunWell(PrivateJob({"-n", ranks, "--nodes", "2"}, program), variables, 120);
    EXPECT_EQ(Counter(out, "link_errors"), 0U);
    return Counter(out, "link_messages_sent");
  }

 private:
  static uint64_t Counter(const std::string& out, const std::string& name) {
    const size_t at = out.find(name + ": ");
    return at == std::string::npos ? 0 : std::stoull(out.substr(at + name.size() + 2));
  }
};

const Words kAlways = {"FERRY_DIRECT_LINKS=always"};
// A direction goes back to the daemons when nothing has been sent for that long.
const Words kRestless = {"FERRY_DIRECT_LINKS=auto", "FERRY_DIRECT_LINK_MESSAGES=3",
                         "FERRY_DIRECT_LINK_IDLE_MS=5"};

TEST_P(DirectLinksLibfabricTest, MessagesTakeThem) {
  // With pauses: the ranks first open libfabric, and messages pass meanwhile.
  EXPECT_GT(Run("4", kAlways, {"tests/e2e/ranks/switching", "60", "1", "20"}), 0U);
}

TEST_P(DirectLinksLibfabricTest, PathsMayChangeAtAnyTime) {
  EXPECT_GT(Run("4", kRestless, {"tests/e2e/ranks/switching", "160", "3", "25"}), 0U);
}

TEST_P(DirectLinksLibfabricTest, OneSidedOperationsTakeThem) {
  // Far more than the messages that say where the memory is.
  EXPECT_GT(Run("4", kAlways, {"tests/e2e/ranks/one_sided_switching", "100", "1", "5"}), 200U);
  EXPECT_GT(Run("4", kRestless, {"tests/e2e/ranks/one_sided_switching", "60", "2", "25"}), 0U);
}

TEST_P(DirectLinksLibfabricTest, OtherProgramsDoNotNotice) {
  (void)Run("2", kAlways, {"tests/e2e/ranks/windows", "10"});
  (void)Run("2", kAlways, {"tests/e2e/ranks/one_sided"});
}

// Without links, too: ofi_rxm completes long messages behind shorter ones.
TEST(DaemonsOverLibfabricTest, MessagesKeepTheirOrder) {
  for (const char* const program : {"switching", "one_sided_switching"}) {
    (void)RunWell(PrivateJob({"-n", "4", "--nodes", "2"},
                             {std::string("tests/e2e/ranks/") + program, "40", "1", "20"}),
                  {"FERRY_PROVIDER=tcp;ofi_rxm", "FERRY_DIRECT_LINKS=off"}, 120);
  }
}

INSTANTIATE_TEST_SUITE_P(Over, DirectLinksLibfabricTest,
                         testing::ValuesIn(tests::Slice<Fabric>(
                             {{"Net", "net", "net"}, {"Rxm", "ferry-tcp", "tcp;ofi_rxm"}},
                             {{"NetBesideOwnSockets", "ferry-tcp", "net"}})),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ferry::e2e
