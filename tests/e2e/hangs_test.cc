// Ways to hang, each made by a test program, on one node and on two: `ferryctl why` names who is to
// blame, and the call, within two looks. Each row of the table is one: a new way to wait gets a
// row. And programs that are well, of which it never says the like, however often it is asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/slice.h"

namespace ferry::e2e {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

constexpr char kMpi[] = "tests/mpi/ranks/stands";
constexpr char kMpiCircles[] = "tests/mpi/ranks/circles";
constexpr char kShmem[] = "tests/shmem/ranks/stands";
constexpr char kFerry[] = "tests/e2e/ranks/waits";
constexpr char kQueues[] = "tests/e2e/ranks/stuck_queues";
constexpr char kRings[] = "tests/e2e/ranks/stuck_rings";

// For so long a rank has hung before anyone asks.
constexpr int kAWhileMs = 700;

struct Hang {
  const char* program;
  const char* mode;
  int ranks;
  std::vector<int> waiting;             // the ranks that must be in Ferry before a look counts
  int rank;                             // that is asked about; of node 0
  std::vector<std::string> words = {};  // each is in the verdict
  int deadlock_on = 0;          // so many nodes at most it is certain that none of them can go on
  int least_nodes = 1;          // inside a node kernels start no matched requests
  const char* never = nullptr;  // is not in the verdict
};

constexpr char kNotTheSystem[] = "the system has not carried it out";

void PrintTo(const Hang& hang, std::ostream* out) { *out << hang.program << " " << hang.mode; }

// clang-format off
const Hang kHangs[] = {
    // Messages of MPI. Rank 1 never sends, or receives.
    {kMpi, "recv", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "MPI_Recv on rows, from rank 1, tag 7"}},
    {kMpi, "any", 2, {0}, 0,
     {"rank 0 is in MPI_Recv on rows, from any rank", "no message that fits has come"}},
    {kMpi, "ssend", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "MPI_Ssend on rows, to rank 1"}},
    {kMpi, "send", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "MPI_Send on rows, to rank 1"}},
    {kMpi, "sendrecv", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "MPI_Sendrecv"}},
    {kMpi, "wait", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "MPI_Wait for MPI_Irecv on rows"}},
    {kMpi, "waitall", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "MPI_Waitall for MPI_Irecv on rows"}},
    {kMpi, "waitany", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "MPI_Waitany on rows"}},
    {kMpi, "persistent", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "MPI_Wait for a nonblocking MPI_Irecv"}},
    {kMpi, "partitioned", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "MPI_Wait for MPI_Precv_init on rows"}},
    // Probes.
    {kMpi, "probe", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "MPI_Probe on rows, from rank 1"}},
    {kMpi, "mprobe", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "MPI_Mprobe on rows, from rank 1"}},
    // Collectives: the last rank has not come.
    {kMpi, "barrier", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank 3, which is outside Ferry", "rank 0 is in MPI_Barrier on rows, number 5"}},
    {kMpi, "bcast", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank 3, which is outside Ferry", "rank 0 is in MPI_Bcast on rows, number 5"}},
    {kMpi, "allreduce", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank 3, which is outside Ferry", "rank 0 is in MPI_Allreduce on rows"}},
    {kMpi, "alltoall", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank 3, which is outside Ferry", "rank 0 is in MPI_Alltoall on rows"}},
    {kMpi, "iallreduce", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank", "rank 3, which is outside Ferry",
      "MPI_Wait for a nonblocking MPI_Allreduce"}},
    {kMpi, "split", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank", "rank 3, which is outside Ferry",
      "rank 0 is in MPI_Comm_split on rows"}},
    {kMpi, "finalize", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank 3, which is outside Ferry", "rank 0 is in MPI_Finalize"}},
    {kMpiCircles, "half", 4, {1}, 1,
     {"rank 1 waits for rank 3, which is outside Ferry", "rank 1 is in MPI_Barrier on half"}},
    // Windows.
    {kMpi, "fence", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank", "rank 3, which is outside Ferry", "rank 0 is in MPI_Win_fence"}},
    {kMpi, "lock", 3, {0, 1}, 0,
     {"rank 0 waits for rank 2, which is outside Ferry", "rank 0 is in MPI_Win_lock"}},
    {kMpi, "start", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "rank 0 is in MPI_Win_start"}},
    {kMpi, "target", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "rank 0 is in MPI_Win_wait"}},
    // Files: the system does not answer, or a rank has not come.
    {kMpi, "file_lock", 2, {0}, 0,
     {"rank 0 is in MPI_File_write_at of /tmp/stands-", ", from byte 4096 on, 64 B",
      "the system has not carried it out"}},
    {kMpi, "file_open", 2, {0}, 0,
     {"rank 0 is in MPI_File_open of /proc/self/fd/", "the system has not carried it out"}},
    {kMpi, "file_wait", 2, {0}, 0,
     {"rank 0 is in MPI_Wait for a nonblocking MPI_File_read_shared of /proc/self/fd/", ", 8 B",
      "the system has not carried it out"}},
    {kMpi, "file_all", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank", "rank 3, which is outside Ferry",
      "rank 0 is in MPI_File_write_at_all of /tmp/stands-"}, 0, 1, kNotTheSystem},
    {kMpi, "file_begin", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank", "rank 3, which is outside Ferry",
      "rank 0 is in MPI_File_write_at_all of /tmp/stands-", ", number "}, 0, 1, kNotTheSystem},
    {kMpi, "file_iall", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank", "rank 3, which is outside Ferry",
      "rank 0 is in MPI_Wait for a nonblocking MPI_File_write_at_all of /tmp/stands-", ", number "},
     0, 1, kNotTheSystem},
    {kMpi, "file_before", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank", "rank 3, which is outside Ferry",
      "rank 0 is in MPI_File_write_at_all of /tmp/stands-", ", number "}, 0, 1, kNotTheSystem},
    // OpenSHMEM.
    {kShmem, "wait_until", 2, {0}, 0,
     {"rank 0 is in shmem_wait_until", "any rank may change the memory"}},
    {kShmem, "signal", 2, {0}, 0,
     {"rank 0 is in shmem_signal_wait_until", "any rank may change the memory"}},
    {kShmem, "set_lock", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "rank 0 is in shmem_set_lock"}},
    {kShmem, "barrier_all", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank 3, which is outside Ferry", "rank 0 is in shmem_barrier_all"}},
    {kShmem, "team_sync", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank 3, which is outside Ferry", "rank 0 is in shmem_team_sync"}},
    {kShmem, "broadcast", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank 3, which is outside Ferry", "rank 0 is in shmem_broadcast"}},
    {kShmem, "reduce", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank 3, which is outside Ferry", "rank 0 is in shmem_reduce"}},
    {kShmem, "malloc", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank 3, which is outside Ferry", "rank 0 is in shmem_malloc"}},
    {kShmem, "finalize", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank", "rank 3, which is outside Ferry", "rank 0 is in shmem_finalize"}},
    // ferry.h.
    {kFerry, "send", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "ferry_send to rank 1, tag 3"}},
    {kFerry, "chain", 4, {0, 1, 2}, 0,
     {"rank 0 waits for rank 1, which waits for rank 2, which waits for rank 3, which is outside",
      "rank 0 is in ferry_recv from rank 1"}},
    {kQueues, "match", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "rank 0 is in ferry_matchall"}},
    {kQueues, "start", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry", "rank 0 is in ferry_wait"}},
    {kQueues, "queue", 2, {0}, 0,
     {"rank 0 is in ferry_queue_wait: its stream has not done all that was enqueued",
      "the next message that it waits for is one to receive from rank 1, tag 3"}},
    // Kernels, by their device rings. Ferry does not know what their ranks' hosts would do.
    {kRings, "signal", 2, {0}, 0,
     {"rank 0 is outside Ferry, asleep", "; a kernel of it has had no answer for ",
      " s to ferry_device_ring_await, request 1 of ring 0, until the counter at byte ",
      " is 1 (it is 0): any rank may change the memory that it waits for"}},
    {kRings, "queue", 2, {0}, 0,
     {"rank 0 is in ferry_queue_wait: its stream has not done all that was enqueued; a kernel of it",
      "ferry_device_ring_await, request 1 of ring 0", "is 1 (it is 0): any rank may change"}},
    {kRings, "behind", 2, {0, 1}, 0,
     {"rank 0 waits for rank 1, which is in ferry_stream_synchronize: its stream has not done",
      "to ferry_device_ring_await, request 1 of ring 0", "rank 0 is in ferry_recv from rank 1"}},
    {kRings, "signals", 2, {0, 1}, 0,
     {"rank 0 is outside Ferry, asleep", "to ferry_device_ring_await, request 1 of ring 0",
      "in a circle of kernels: ranks 0, 1 wait for each other"}},
    {kRings, "start", 2, {0}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry",
      "to ferry_device_ring_start, request 1 of ring 0, to receive from rank 1, tag 3"}, 0, 2},
    {kRings, "starts", 2, {0, 1}, 0,
     {"rank 0 waits for rank 1, which is outside Ferry",
      "ferry_device_ring_start, request 1 of ring 0, to receive from rank 0, tag 3",
      "ferry_device_ring_start, request 1 of ring 0, to receive from rank 1, tag 3",
      "in a circle of kernels: ranks 0, 1 wait for each other"}, 0, 2},
    // None of them can ever go on.
    {kMpiCircles, "mismatch", 2, {0, 1}, 0,
     {"deadlock: rank 0 waits for rank 1, which waits for rank 0", "rank 0 is in MPI_Bcast",
      "rank 1 is in MPI_Scatter"}, 2},
    {kMpiCircles, "ssend", 2, {0, 1}, 0,
     {"deadlock: rank 0 waits for rank 1, which waits for rank 0", "rank 0 is in MPI_Ssend",
      "rank 1 is in MPI_Barrier"}, 2},
    {kMpiCircles, "probes", 3, {0, 1, 2}, 0,
     {"deadlock: rank 0 waits for rank 1, which waits for rank 2, which waits for rank 0",
      "rank 0 is in MPI_Probe"}, 2},
    {kMpiCircles, "anybody", 3, {0, 1, 2}, 0,
     {"deadlock: rank 0 waits for rank 1, which waits for rank 0", "wait, too: 0, 1, 2",
      "rank 0 is in MPI_Recv on MPI_COMM_WORLD, from any rank"}, 2},
    {kMpiCircles, "all_but", 3, {0, 1}, 0,
     {"rank 0 is in MPI_Recv on MPI_COMM_WORLD, from any rank", "has come from any rank"}},
    {kMpiCircles, "waitany", 3, {0, 1, 2}, 0,
     {"deadlock: rank 0 waits for rank 1, which waits for rank 0", "wait, too: 0, 1, 2",
      "rank 0 is in MPI_Waitany"}, 2},
    // Between nodes the end of such a wait may be under way.
    {kMpiCircles, "locks", 2, {0, 1}, 0,
     {"rank 0 waits for rank 1", "rank 0 is in MPI_Win_lock"}, 1},
    {kMpiCircles, "posts", 2, {0, 1}, 0,
     {"rank 0 waits for rank 1", "rank 0 is in MPI_Win_"}, 1},
    {kFerry, "circle", 3, {0, 1, 2}, 0,
     {"deadlock: rank 0 waits for rank 1, which waits for rank 2, which waits for rank 0",
      "rank 0 is in ferry_recv"}, 2},
    {kQueues, "circle", 2, {0, 1}, 0,
     {"deadlock: rank 0 waits for rank 1, which waits for rank 0", "rank 0 is in ferry_queue_wait",
      "to receive from rank 1, tag 3"}, 2},
    {kQueues, "later", 3, {0, 1, 2}, 0,
     {"deadlock: rank 0 waits for rank 2, which waits for rank 1, which waits for rank 0",
      "rank 0 is in ferry_queue_wait", "to receive from rank 2, tag 3"}, 2},
    {kFerry, "crossed", 2, {0, 1}, 0,
     {"deadlock: rank 0 waits for rank 1, which waits for rank 0", "rank 0 is in ferry_send",
      "rank 1 is in ferry_recv"}, 2},
};
// clang-format on

class Looks {
 public:
  void Start(const Words& program, int ranks, int nodes) {
    job_ = std::make_unique<Command>(
        PrivateJob({"-n", std::to_string(ranks), "--nodes", std::to_string(nodes),
                    "--peer_timeout_ms=60000", "--operation_timeout_ms=60000"},
                   program));
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_TRUE(job_->WaitForOutput(" " + std::to_string(rank) + ": under way\n"));
    }
    directories_ = Daemons(*job_);
    ASSERT_THAT(directories_, SizeIs(nodes));
  }
  json Ask(size_t node, const Words& arguments) const {
    return json::parse(RunCommand(Joined({"tools/ferryctl/ferryctl", "--json",
                                          "--run_directory=" + directories_[node]},
                                         arguments))
                           .out,
                       nullptr, false);
  }
  size_t nodes() const { return directories_.size(); }

 private:
  std::unique_ptr<Command> job_;
  Words directories_;
};

// ---- Hangs --------------------------------------------------------------------------------------

class HangTest : public testing::TestWithParam<std::tuple<Hang, int>> {
 protected:
  // Returns true if those ranks, and no others, have waited in calls for a while.
  bool Wait(const std::vector<int>& ranks) {
    std::vector<int> waiting;
    for (size_t node = 0; node < looks_.nodes(); ++node) {
      const json answer = looks_.Ask(node, {"why"});
      for (const json& rank : answer["ranks"]) {
        if (!rank["calls"].empty() && rank["calls"][0]["for_ms"] >= kAWhileMs) {
          waiting.push_back(rank["rank"]);
        }
      }
    }
    std::sort(waiting.begin(), waiting.end());
    return waiting == ranks;
  }

  Looks looks_;
};

TEST_P(HangTest, IsNamedRightlyWithinTwoLooks) {
  const auto& [hang, nodes] = GetParam();
  ASSERT_NO_FATAL_FAILURE(looks_.Start({hang.program, hang.mode}, hang.ranks, nodes));
  ASSERT_TRUE(Eventually([&] { return Wait(hang.waiting); })) << looks_.Ask(0, {"why"}).dump(2);
  json why;
  bool is_right = false;
  for (int look = 0; look < 2 && !is_right; ++look) {
    why = looks_.Ask(0, {"why", std::to_string(hang.rank)})["ranks"][0];
    const std::string verdict = why["verdict"];
    is_right = why["deadlock"] == (nodes <= hang.deadlock_on) &&
               (hang.never == nullptr || verdict.find(hang.never) == verdict.npos) &&
               std::all_of(hang.words.begin(), hang.words.end(), [&](const std::string& words) {
                 return verdict.find(words) != verdict.npos;
               });
  }
  EXPECT_TRUE(is_right) << why.dump(2);
}

std::string NameOf(const testing::TestParamInfo<std::tuple<Hang, int>>& info) {
  const auto& [hang, nodes] = info.param;
  std::string name = std::string(hang.program) + "_" + hang.mode + "_on_" + std::to_string(nodes);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

// Each on as many nodes as it may be.
std::vector<std::tuple<Hang, int>> HangsOnNodes() {
  std::vector<std::tuple<Hang, int>> hangs;
  for (const Hang& hang : kHangs) {
    for (int nodes = hang.least_nodes; nodes <= 2; ++nodes) {
      hangs.emplace_back(hang, nodes);
    }
  }
  return hangs;
}

INSTANTIATE_TEST_SUITE_P(All, HangTest, testing::ValuesIn(HangsOnNodes()), NameOf);

// Puts go on until the other node's ferryd stands still; then the ring fills up.
class StoppedNodeTest : public testing::Test {
 protected:
  void TearDown() override {
    if (stopped_ > 1) {
      kill(stopped_, SIGCONT);
    }
  }
  Looks looks_;
  pid_t stopped_ = -1;
};

TEST_F(StoppedNodeTest, ARingThatIsFullNamesItsTarget) {
  ASSERT_NO_FATAL_FAILURE(looks_.Start({kRings, "puts"}, 2, 2));
  stopped_ = looks_.Ask(1, {"status"})["pid"];
  ASSERT_GT(stopped_, 1);
  ASSERT_EQ(kill(stopped_, SIGSTOP), 0);
  json why;
  EXPECT_TRUE(Eventually([&] {
    why = looks_.Ask(0, {"why", "0"})["ranks"][0];
    return why["verdict"].get<std::string>().find("slots of the ring are taken") !=
           std::string::npos;
  })) << why.dump(2);
  EXPECT_THAT(why["verdict"].get<std::string>(),
              AllOf(StartsWith("rank 0 waits for rank 1, which is on node 1"),
                    HasSubstr("rank 0 is in ferry_stream_synchronize: its stream has not done"),
                    HasSubstr(" s to ferry_device_ring_put_value, request "),
                    ContainsRegex(", 8 B at rank 1, and at least [0-9]+ like it; all 64 slots")));
  EXPECT_EQ(why["deadlock"], false);
  EXPECT_THAT(why["troubles"].dump(), HasSubstr("the ferryd of rank 1's node was asked"));
}

// ---- Programs that are well ---------------------------------------------------------------------

// So often each of them is asked: 1,000 times all together in the stress test.
int LooksWanted() { return tests::RunsAll() ? 72 : 4; }

const Words kHealthy[] = {
    {"tests/mpi/ranks/healthy", "collectives"},
    {"tests/mpi/ranks/healthy", "workers"},
    {"tests/mpi/ranks/healthy", "probes"},
    {"tests/mpi/ranks/healthy", "windows"},
    {"tests/mpi/ranks/healthy", "parts"},
    {"tests/mpi/ranks/healthy", "threads"},
    {"tests/shmem/ranks/healthy", "pes"},
    {kQueues, "halo"},
    {kQueues, "relay"},
    {kRings, "halo"},
};

class HealthyTest : public testing::TestWithParam<std::tuple<Words, int>> {};

TEST_P(HealthyTest, IsNeverCalledADeadlock) {
  const auto& [program, nodes] = GetParam();
  Looks looks;
  ASSERT_NO_FATAL_FAILURE(looks.Start(program, 4, nodes));
  std::set<std::string> told;
  size_t waits = 0;
  const auto take = [&](const json& answer) {
    for (const json& rank : answer["ranks"]) {
      waits += rank["state"] == "waits" ? 1 : 0;
      const std::string verdict = rank["verdict"];
      if (rank["deadlock"] == true || verdict.find("deadlock") != verdict.npos ||
          verdict.find("circle of kernels") != verdict.npos) {
        told.insert(verdict);
      }
    }
  };
  for (int look = 0; look < LooksWanted(); ++look) {
    take(looks.Ask(static_cast<size_t>(look % nodes),
                   {"why", std::string(program[0]).substr(program[0].rfind('/') + 1)}));
  }
  EXPECT_THAT(told, testing::IsEmpty());
  EXPECT_TRUE(Eventually([&] {
    take(looks.Ask(0, {"why"}));
    return waits > 0;
  })) << "the looks must have met ranks that wait";
}

INSTANTIATE_TEST_SUITE_P(All, HealthyTest,
                         testing::Combine(testing::ValuesIn(kHealthy), testing::Values(1, 2)),
                         [](const auto& info) {
                           const Words& program = std::get<0>(info.param);
                           const bool is_ring = program[0] == kRings;
                           return (is_ring ? "rings_" : "") + program[1] + "_on_" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace ferry::e2e
