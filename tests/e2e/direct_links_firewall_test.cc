// Two nodes whose ranks a firewall keeps apart, though not their daemons: no rank notices. In a
// network namespace of the test's own; skipped where the machine lets us make none.
//
// The ranks' sockets have ports of a range that the namespace gives out only once the daemons have
// theirs, and a rule rejects what goes from that range to that range.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

constexpr char kDaemonPorts[] = "20000 29999";
constexpr char kRankPorts[] = "40000 49999";
constexpr char kReject[] =
    "ip rule add pref 100 lookup local && ip rule del pref 0 && "
    "ip rule add pref 50 ipproto tcp sport 40000-49999 dport 40000-49999 prohibit";

Words InNamespace() { return {"/usr/bin/unshare", geteuid() == 0 ? "-n" : "-rn"}; }

Words Shell(const std::string& commands, const Words& program) {
  return Joined({"sh", "-c", commands + " && exec \"$@\"", "sh"}, program);
}

std::string WithPorts(const std::string& range) {
  return "echo " + range + " > /proc/sys/net/ipv4/ip_local_port_range";
}

// The counters that the ranks print, of a job in a namespace that `commands` make ready.
std::string RunBehind(const std::string& commands) {
  const Words ranks = Shell(WithPorts(kRankPorts), {"tests/e2e/ranks/switching", "40", "6", "25"});
  const Words job = Shell("ip link set lo up && " + WithPorts(kDaemonPorts) + commands,
                          PrivateJob({"-n", "4", "--nodes", "2"}, ranks));
  return RunWell(Joined(InNamespace(), job),
                 {"FERRY_DIRECT_LINKS=auto", "FERRY_DIRECT_LINK_MESSAGES=3"}, 120);
}

bool HasCounter(const std::string& out, const std::string& name, bool is_zero) {
  const size_t at = out.find(name + ": ");
  EXPECT_NE(at, std::string::npos) << name << " in " << out;
  return at != std::string::npos && (std::stoull(out.substr(at + name.size() + 2)) == 0) == is_zero;
}

class FirewallTest : public testing::Test {
 protected:
  void SetUp() override {
    const Words tries = Shell(WithPorts(kDaemonPorts) + " && " + kReject, {"true"});
    if (RunCommand(Joined(InNamespace(), tries)).exit_code != 0) {
      GTEST_SKIP() << "this machine lets us make no network namespace with rules";
    }
  }
};

TEST_F(FirewallTest, WhereItLetsRanksConnectTheyHaveLinks) {
  const std::string out = RunBehind("");
  EXPECT_TRUE(HasCounter(out, "link_messages_sent", /*is_zero=*/false)) << out;
}

TEST_F(FirewallTest, WhereItRejectsThemAllMessagesGoByTheDaemons) {
  const std::string out = RunBehind(std::string(" && ") + kReject);
  EXPECT_TRUE(HasCounter(out, "link_messages_sent", /*is_zero=*/true)) << out;
  EXPECT_TRUE(HasCounter(out, "link_errors", /*is_zero=*/true)) << out;
}

}  // namespace
}  // namespace ferry::e2e
