// Each way to wait in MPI is shown in the rank's session, by name, for whoever looks at the rank
// (docs/shm_layout.md): on one node and on two.
#include "tests/e2e/shown_calls.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <tuple>

#include "common/clock.h"
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

using e2e::ShownCalls;
using e2e::ShownPhrases;

struct Stand {
  const char* what;
  const char* phrase;  // of rank 0, which waits for rank 1
};

constexpr Stand kStands[] = {
    {"recv", "MPI_Recv on rows, from rank 1, tag 7, 64 B\n"},
    {"any", "MPI_Recv on rows, from any rank, any tag, 64 B\n"},
    {"ssend", "MPI_Ssend on rows, to rank 1, tag 7, 64 B\n"},
    {"send", "MPI_Send on rows, to rank 1, tag 7, 1048576 B\n"},
    {"sendrecv", "MPI_Sendrecv on rows, with rank 1, tag 9, 64 B\n"},
    {"probe", "MPI_Probe on rows, from rank 1, tag 7\n"},
    {"mprobe", "MPI_Mprobe on rows, from rank 1, tag 7\n"},
    {"wait", "MPI_Wait for MPI_Irecv on rows, with rank 1, tag 7, 64 B\n"},
    {"waitall", "MPI_Waitall for MPI_Irecv on rows, with rank 1, tag 7, 64 B\n"},
    {"waitany", "MPI_Waitany on rows\n"},
    {"persistent", "MPI_Wait for a nonblocking MPI_Irecv on rows, with rank 1, tag 7, 64 B\n"},
    {"partitioned", "MPI_Wait for MPI_Precv_init on rows, with rank 1, tag 7, 64 B\n"},
    {"barrier", "MPI_Barrier on rows, number 5\n"},
    {"bcast", "MPI_Bcast on rows, number 5, root rank 1, 100 B\n"},
    {"allreduce", "MPI_Allreduce on rows, number 5, 100 B\n"},
    {"alltoall", "MPI_Alltoall on rows, number 5, 8 B\n"},
    {"iallreduce", "MPI_Wait for a nonblocking MPI_Allreduce on rows, number 5, 100 B\n"},
    {"split", "MPI_Comm_split on rows\n"},
    {"fence", "MPI_Win_fence"},
    {"lock", "MPI_Win_lock"},
    {"start", "MPI_Win_start"},
    {"target", "MPI_Win_wait"},
    {"finalize", "MPI_Finalize\n"},
};

class ShownCallsTest : public testing::TestWithParam<std::tuple<Stand, const char*>> {
 protected:
  void Start(const std::string& what, const std::string& nodes, const std::string& fifo = "") {
    job_ = std::make_unique<e2e::Command>(
        e2e::PrivateJob({"-n", "2", "--nodes", nodes}, {"tests/mpi/ranks/stands", what, fifo}));
    ASSERT_TRUE(e2e::UnderWay(job_.get(), 2));
  }

  std::unique_ptr<e2e::Command> job_;
};

TEST_P(ShownCallsTest, AreNamed) {
  const auto& [stand, nodes] = GetParam();
  Start(stand.what, nodes);
  std::string shown;
  EXPECT_TRUE(e2e::Eventually([&] {
    shown = ShownPhrases(*job_, 0);
    return shown.starts_with(stand.phrase);
  })) << shown;
  EXPECT_EQ(ShownPhrases(*job_, 1), "") << "it computes";
  // It is still the same call, and has waited for a while.
  const shm::CallsView before = ShownCalls(*job_, 0);
  const shm::CallsView after = ShownCalls(*job_, 0);
  ASSERT_EQ(before.calls.size(), 1U);
  ASSERT_EQ(after.calls.size(), 1U);
  EXPECT_EQ(before.calls[0].generation, after.calls[0].generation);
  EXPECT_NE(after.calls[0].begin_ns, 0U);
  EXPECT_LE(after.calls[0].begin_ns, MonotonicNs());
}

INSTANTIATE_TEST_SUITE_P(Stands, ShownCallsTest,
                         testing::Combine(testing::ValuesIn(kStands), testing::Values("1", "2")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).what) + "On" +
                                  std::get<1>(info.param);
                         });

using ShownCollectiveTest = ShownCallsTest;

// Also while messages move, and a rank hardly waits.
TEST_F(ShownCollectiveTest, AreShownInNearlyAllLooks) {
  Start("moves", "1");
  ASSERT_TRUE(e2e::Eventually([&] { return !ShownPhrases(*job_, 0).empty(); }));
  constexpr int kLooks = 200;
  int shown = 0;
  std::string other;
  for (int i = 0; i < kLooks; ++i) {
    for (const shm::CallView& view : ShownCalls(*job_, 0).calls) {
      const bool is_it = view.name == shm::CallName::kMpiAllreduce && view.bytes == 1048576;
      shown += is_it ? 1 : 0;
      other += is_it ? "" : shm::CallPhrase(view) + "\n";
    }
  }
  EXPECT_GE(shown, kLooks * 9 / 10) << other;
  const shm::CallTotals totals = e2e::ShownTotals(*job_, 0, shm::CallName::kMpiAllreduce);
  EXPECT_GT(totals.calls, 0U);
  EXPECT_EQ(totals.bytes, totals.calls * 1048576);
}

TEST_F(ShownCollectiveTest, NameARankThatHasNotCome) {
  Start("barrier", "1");
  EXPECT_TRUE(e2e::Eventually([&] {
    const shm::CallsView found = ShownCalls(*job_, 0);
    return found.calls.size() == 1 && found.calls[0].missing == 1;
  }));
}

TEST_F(ShownCollectiveTest, ALockNamesItsHolder) {
  for (const char* nodes : {"1", "2"}) {
    Start("lock", nodes);
    EXPECT_TRUE(e2e::Eventually([&] {
      const shm::CallsView found = ShownCalls(*job_, 0);
      return found.calls.size() == 1 && found.calls[0].missing == 1;
    })) << nodes;
  }
}

// An error handler of the program that never returns leaves nothing of the call behind.
TEST_F(ShownCollectiveTest, ACallThatIsLeftByLongjmpIsOver) {
  const std::string fifo = testing::TempDir() + "jump-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0) << fifo;
  Start("jump", "1", fifo);
  const std::string first = "MPI_Recv on rows, from rank 1, tag 6, 64 B\n";
  const std::string second = "MPI_Recv on rows, from rank 1, tag 7, 64 B\n";
  std::string shown;
  EXPECT_TRUE(e2e::Eventually([&] {
    shown = ShownPhrases(*job_, 0);
    return shown == first;
  })) << shown;
  // Opens once the late rank has opened the file, too.
  EXPECT_TRUE(e2e::Eventually([&] {
    const int end = open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return end >= 0 && close(end) == 0;
  }));
  EXPECT_TRUE(e2e::Eventually([&] {
    shown = ShownPhrases(*job_, 0);
    return shown == second;
  })) << shown;
  unlink(fifo.c_str());
}

}  // namespace
}  // namespace ferry::mpi_tests
