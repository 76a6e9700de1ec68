// Jobs whose daemons are a tree, and that no ferryrun started: each rank has only the variables of
// torchrun, and the lowest one of each node makes the job known to its daemon (client/bootstrap/
// pmi_job.h). The nodes are daemons of this machine, in one network, and a host name for each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <tuple>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::HasSubstr;

constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";
constexpr char kTraffic[] = "tests/faults/ranks/traffic";
constexpr char kSecret[] = "FERRY_JOB_SECRET=0123456789abcdef0123456789abcdef";
constexpr int kAborted = 30;  // FERRY_ERR_ABORTED
constexpr int kNodes = 7;     // node 1 has 3 and 4 below it, and node 2 has 5 and 6
constexpr int kPerNode = 2;
constexpr int kRanks = kNodes * kPerNode;

// Starts the daemons, then the ranks, says their pids, and ends the daemons once all ranks have
// ended. Only rank 0 has the radix. Its exit code is the largest of the ranks'.
constexpr char kLauncher[] = R"(
import ctypes, os, socket, subprocess, sys

nodes, per_node, folder, radix = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
libc = ctypes.CDLL(None, use_errno=True)

def become_host(node):
    if libc.unshare(0x04000000) != 0:  # CLONE_NEWUTS
        raise OSError(ctypes.get_errno(), "unshare")
    socket.sethostname(f"tree{node}")

def run_directory(node):
    return f"{folder}/run{node}"

of_daemons = {name: value for name, value in os.environ.items() if name != "FERRY_JOB_SECRET"}
daemons, lines = [], []
for node in range(nodes):
    readable, writable = os.pipe()
    daemons.append(subprocess.Popen(
        ["daemon/ferryd", f"--run_directory={run_directory(node)}", f"--node_name=tree{node}",
         "--control_address=10.77.0.1", "--fabric_address=10.77.0.1",
         f"--tls_ca_file={folder}/certs/ca.pem", f"--tls_cert_file={folder}/certs/node.pem",
         f"--tls_key_file={folder}/certs/node.key", "--direct_links=off",
         "--ready-fd", str(writable)],
        env=of_daemons, pass_fds=[writable]))
    os.close(writable)
    lines.append(os.fdopen(readable))
for node, line in enumerate(lines):
    if not line.readline():
        sys.exit(f"ferryd of node {node} does not serve")
    print(f"daemon {node}: pid {daemons[node].pid}", flush=True)

ranks = []
for rank in range(nodes * per_node):
    variables = dict(
        RANK=rank, WORLD_SIZE=nodes * per_node, LOCAL_RANK=rank % per_node,
        LOCAL_WORLD_SIZE=per_node, MASTER_ADDR="10.77.0.1", MASTER_PORT=29500,
        FERRY_RUN_DIRECTORY=run_directory(rank // per_node))
    if rank == 0:
        variables["FERRY_TREE_RADIX"] = radix
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    ranks.append(subprocess.Popen(
        sys.argv[5:], env=environment,
        preexec_fn=lambda: become_host(rank // per_node)))
    print(f"rank {rank}: pid {ranks[-1].pid}", flush=True)
codes = [rank.wait() for rank in ranks]
for daemon in daemons:
    daemon.terminate()
for daemon in daemons:
    daemon.wait()
sys.exit(max(codes))
)";

class TreeMeetingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (e2e::RunCommand(e2e::InOwnNetwork({"true"})).exit_code != 0) {
      GTEST_SKIP() << "network namespaces are not permitted here";
    }
    const CommandResult certs =
        e2e::RunCommand({kFerryctl, "certs", folder_ / "certs", "--node", "node,10.77.0.1"});
    ASSERT_EQ(certs.exit_code, 0) << certs.err;
  }

  e2e::Words Job(const std::string& radix, const e2e::Words& program) const {
    return e2e::InOwnNetwork(e2e::Joined(
        {"sh", "-c", "ip address add 10.77.0.1/32 dev lo && exec \"$@\"", "sh", "/usr/bin/python3",
         "-c", kLauncher, std::to_string(kNodes), std::to_string(kPerNode), folder_.path(), radix},
        program));
  }
  // The pid that the launcher has said. `who`: "daemon 3" or "rank 3".
  static pid_t PidOf(Command* job, const std::string& who) {
    const std::string name = who + ": pid ";
    EXPECT_TRUE(job->WaitForOutput(name));
    const std::string output = job->Output();
    const size_t at = output.find(name);
    return at == output.npos ? -1 : std::atoi(output.c_str() + at + name.size());
  }
  // How many other nodes that daemon has not needed yet.
  int DormantAt(int node) const {
    const CommandResult status = e2e::RunCommand(
        {kFerryctl, "--run_directory=" + folder_.path() + "/run" + std::to_string(node), "status"});
    EXPECT_EQ(status.exit_code, 0) << status.err;
    int count = 0;
    for (size_t at = status.out.find("dormant"); at != std::string::npos;
         at = status.out.find("dormant", at + 1)) {
      ++count;
    }
    return count;
  }

  const e2e::TempDirectory folder_;
};

TEST_F(TreeMeetingTest, EachRankReachesEachOther) {
  const CommandResult result =
      e2e::RunCleanly(Job("2", {"tests/faults/ranks/all_to_all"}), {kSecret}, "", 240);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  ExpectAllRight(result.out, kRanks);
}

TEST_F(TreeMeetingTest, TheRadixOfRankZeroHoldsOnAllNodes) {
  for (const auto& [radix, root, leaf] : {std::tuple("2", 4, 5), std::tuple("0", 0, 0)}) {
    Command job(Job(radix, {kTraffic, "wait"}), {kSecret}, "", 240);
    ASSERT_TRUE(UnderWay(&job, kRanks));
    // Ranks wait for rank 0 here, and have had nothing to do with any other.
    EXPECT_EQ(DormantAt(0), root) << radix;
    EXPECT_THAT(DormantAt(6), testing::AnyOf(leaf, leaf - 1)) << radix;  // 0 may be needed, too
    kill(PidOf(&job, "rank 0"), SIGKILL);
    const CommandResult result = job.WaitCleanly();
    ExpectErrors(result.out, kRanks - 1, {kPeerDied, kAborted});
  }
}

TEST_F(TreeMeetingTest, ADaemonThatDiesAmongTheOthersIsKnownToAllRanks) {
  Command job(Job("2", {kTraffic, "exchange", "8"}), {kSecret}, "", 240);
  ASSERT_TRUE(UnderWay(&job, kRanks));
  kill(PidOf(&job, "daemon 1"), SIGKILL);
  const CommandResult result = job.WaitCleanly();
  ExpectErrors(result.out, kRanks, {kDaemonDied, kNodeUnreachable, kPeerDied, kLinkDown, kAborted});
}

}  // namespace
}  // namespace ferry::faults
