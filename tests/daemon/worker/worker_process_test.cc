// Worker processes under a real data plane: what they may do, and what happens when they are killed
// or stopped. (The whole of progress_*_test runs over them too: progress_*_process_test.)
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "common/clock.h"
#include "daemon/sockets/disposal.h"
#include "tests/daemon/test_rank.h"
#include "tests/internode/core/progress_fixture.h"
#include "tests/support/processes.h"

namespace ferry::daemon {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;

class WorkerProcessTest : public PlaneTest {
 protected:
  static config::Options Patient() { return FastOptions(3'600'000); }
  static config::Options Impatient() { return FastOptions(600); }

  // The worker process, once its ranks have been answered.
  pid_t Worker() {
    const std::vector<pid_t> workers = tests::WorkersOf(getpid());
    EXPECT_EQ(workers.size(), planes_.size());
    return workers.empty() ? -1 : workers.front();
  }
  void WaitForFailure(const std::string& text) {
    EXPECT_TRUE(Eventually([&] { return !told_.Get(&Told::failed_jobs).empty(); }));
    std::lock_guard lock(told_.mutex);
    ASSERT_FALSE(told_.failed_jobs.empty());
    EXPECT_THAT(told_.failed_jobs[0], HasSubstr(text));
    EXPECT_EQ(told_.failures[0], ErrorCode::kWorkerDied);
  }
  bool IsPoisoned(uint32_t number) {
    return Eventually([&] { return rank(number).wake().poison() == ErrorCode::kWorkerDied; });
  }
  // A message of 4 MiB between two nodes, from device memory or from private memory.
  Passage BeginLong(bool of_devices = false) {
    std::memset(got_.data(), 0, got_.size());
    return of_devices ? Begin(0, 1, InDevice(0), InDevice(0), 4 * kMiB)
                      : Begin(0, 1, Private(sent_.data()), Private(got_.data()), 4 * kMiB);
  }
  static void SignalWorkers(int signal) {
    for (const pid_t worker : tests::WorkersOf(getpid())) {
      kill(worker, signal);
    }
  }
  // Begins a message while the workers are stopped, and waits until it is under way.
  Passage BeginWhileStopped() {
    EXPECT_EQ(tests::WorkersOf(getpid()).size(), 2U);
    SignalWorkers(SIGSTOP);
    const Passage passage = BeginLong();
    EXPECT_TRUE(Meanwhile([this] { return !plane(0).Idle(); }));
    return passage;
  }
  // A worker is killed later and later.
  void ExpectKillsFailTheJob(int rounds, bool of_devices) {
    for (int round = 0; round < rounds; ++round) {
      told_.failed_jobs.clear();
      Start({1, 1});
      const std::vector<pid_t> workers = tests::WorkersOf(getpid());
      ASSERT_EQ(workers.size(), 2U);
      BeginLong(of_devices);
      for (int i = 0; i < round * 3; ++i) {
        ProgressAll();
      }
      kill(workers[static_cast<size_t>(round) % 2], SIGKILL);
      WaitForFailure("was killed by signal 9");
      Stop();
      EXPECT_THAT(tests::WorkersOf(getpid()), IsEmpty());
    }
  }

  // Workers may use it after a test.
  static inline const std::vector<std::byte> sent_ = Pattern(4 * kMiB, 1);
  static inline std::vector<std::byte> got_ = std::vector<std::byte>(4 * kMiB);
};

TEST_F(WorkerProcessTest, IsOneForEachJobAndLeavesNothingBehind) {
  Disposal::Instance();  // opens a descriptor of its own the first time
  for (int round = 0; round < 2; ++round) {
    const size_t before = OpenDescriptors();
    Start({2, 1});
    EXPECT_EQ(tests::WorkersOf(getpid()).size(), 2U);  // one on each "node"
    const std::vector<std::byte> sent = Pattern(kMiB, 1);
    std::vector<std::byte> got(kMiB);
    ExpectEnd(Begin(0, 2, Private(sent.data()), Private(got.data()), kMiB));
    EXPECT_EQ(got, sent);
    EXPECT_EQ(OwnMappings("memfd:ferry-staging"), 2U);
    Stop();
    EXPECT_THAT(tests::WorkersOf(getpid()), IsEmpty());
    EXPECT_EQ(OwnMappings("memfd:ferry-staging"), 0U);
    EXPECT_EQ(OwnMappings("memfd:ferry-worker"), 0U);
    EXPECT_EQ(SettledDescriptors(before), before);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // all reaped
  }
}

TEST_F(WorkerProcessTest, HasNoRightsAndNoDescriptorsOfFerryd) {
  Start({1});
  const pid_t worker = Worker();
  EXPECT_EQ(tests::StatusOf(worker, "CapPrm"), "0000000000000000");
  EXPECT_EQ(tests::StatusOf(worker, "CapEff"), "0000000000000000");
  EXPECT_EQ(tests::StatusOf(worker, "CapAmb"), "0000000000000000");
  EXPECT_EQ(tests::StatusOf(worker, "NoNewPrivs"), "1");
  EXPECT_EQ(tests::StatusOf(worker, "SigBlk"), "0000000000000000");
  EXPECT_EQ(tests::ReadFile("/proc/" + std::to_string(worker) + "/cmdline"),
            std::string("ferry-worker\0job\0", 17));
  // Only root looks into it, not even its own user.
  struct stat info {};
  ASSERT_EQ(stat(("/proc/" + std::to_string(worker) + "/environ").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U);
}

TEST_F(WorkerProcessTest, KilledWhileIdleFailsTheJob) {
  Start({2});
  kill(Worker(), SIGKILL);
  WaitForFailure("was killed by signal 9 (Killed)");
  EXPECT_TRUE(IsPoisoned(0));
  EXPECT_TRUE(IsPoisoned(1));
  Stop();
  // The next job gets another.
  told_.failed_jobs.clear();
  Start({2});
  EXPECT_EQ(tests::WorkersOf(getpid()).size(), 1U);
}

TEST_F(WorkerProcessTest, KilledAmongCopiesFailsTheJobAndEndsThem) {
  ExpectKillsFailTheJob(8, /*of_devices=*/false);
}

TEST_F(WorkerProcessTest, KilledAmongCopiesOfDevicesFailsTheJobAndEndsThem) {
  UseDevices(200, 200);
  ExpectKillsFailTheJob(6, /*of_devices=*/true);
}

// Its streams have threads, which end with the backend.
TEST_F(WorkerProcessTest, OpensAGpuWhenItIsNeededAndGivesItBack) {
  config::Options options = FastOptions();
  options.gpu_idle_release_ms = 0;
  const auto threads = [&] { return tests::StatusOf(Worker(), "Threads"); };
  Start({1, 1}, options);
  EXPECT_EQ(threads(), "1");
  Stop();
  UseDevices(2000, 2000);
  Start({1, 1}, options);
  ExpectEnd(Begin(0, 1, InDevice(0), InDevice(0), kMiB));
  EXPECT_NE(threads(), "1");
  plane(0).RemoveRegion(kJob, 0, kDeviceRegion);
  plane(1).RemoveRegion(kJob, 1, kDeviceRegion);
  EXPECT_TRUE(Eventually([&] { return threads() == "1"; }));
  // It takes the GPU anew.
  const auto region = rank(0).MakeDevice(*rank_gpu_);
  region->id = 77;
  EXPECT_TRUE(Import(0, region).ok());
}

TEST_F(WorkerProcessTest, KilledBeforeAnImportFailsTheJob) {
  UseDevices(200, 200);
  Start({1});
  kill(Worker(), SIGKILL);
  const auto region = rank(0).MakeDevice(*rank_gpu_);
  region->id = 77;
  EXPECT_EQ(plane(0).ImportRegion(rank(0).session(), region).code(), ErrorCode::kWouldBlock);
  WaitForFailure("was killed by signal 9");
}

// The rank that asked then copies by itself; nothing else changes.
TEST_F(WorkerProcessTest, SaysWhyItCannotImport) {
  UseDevices(200, 200);
  Start({1});
  const auto without_memory = rank(0).MakeDevice(*rank_gpu_);
  without_memory->id = 77;
  without_memory->fd = UniqueFd();
  EXPECT_THAT(Import(0, without_memory).message(), HasSubstr("descriptor"));
  EXPECT_FALSE(without_memory->is_staged());
  const auto no_memory = rank(0).MakeDevice(*rank_gpu_);
  no_memory->id = 78;
  no_memory->fd.Reset(eventfd(0, EFD_CLOEXEC));
  EXPECT_FALSE(Import(0, no_memory).ok());
  EXPECT_FALSE(no_memory->is_staged());
  const auto right = rank(0).MakeDevice(*rank_gpu_);
  right->id = 79;
  EXPECT_TRUE(Import(0, right).ok());
  EXPECT_TRUE(right->is_staged());
}

TEST_F(WorkerProcessTest, StoppedForAMomentLosesNothing) {
  Start({1, 1}, Patient());
  const Passage passage = BeginWhileStopped();
  EXPECT_FALSE(rank(1).Test(passage.receive));
  SignalWorkers(SIGCONT);
  ExpectEnd(passage);
  EXPECT_EQ(got_, sent_);
}

TEST_F(WorkerProcessTest, StoppedForTooLongFailsTheJob) {
  Start({1, 1}, Impatient());
  SignalWorkers(SIGSTOP);
  BeginLong();
  const uint64_t began_ns = MonotonicNs();
  ASSERT_TRUE(Meanwhile([&] { return !told_.Get(&Told::failed_jobs).empty(); }));
  WaitForFailure("(operation_timeout_ms): it was stopped, or waits for memory that does not come");
  std::printf("a stopped worker was noticed after %.0f ms; its deadline is 600 ms\n",
              static_cast<double>(MonotonicNs() - began_ns) * 1e-6);
}

// A rank computes, with nothing to copy: only the question for attention is left open.
TEST_F(WorkerProcessTest, StoppedWhileAskedToAttendFailsTheJob) {
  Start({1, 1}, Impatient());
  SignalWorkers(SIGSTOP);
  rank(0).SendFrom(1, 7, InHeap(0), kMiB);
  WaitForFailure("has stood still for more than 600 ms");
}

TEST_F(WorkerProcessTest, StoppedHoldsUpNeitherRemovalsNorItsOwnEnd) {
  Start({1, 1}, Patient());
  BeginWhileStopped();
  plane(0).RemoveRegion(kJob, 0, kHeapRegion);
  Stop();  // returns, though the deadline is an hour away
  EXPECT_THAT(tests::WorkersOf(getpid()), IsEmpty());
}

// A rank that lets no process look into it.
TEST_F(WorkerProcessTest, FindsOutWhoseMemoryItReaches) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
    close(ready[1]);
    while (true) {
      pause();
    }
  }
  close(ready[1]);
  char none = 0;
  ASSERT_EQ(read(ready[0], &none, 1), 0);
  close(ready[0]);
  amend_session_ = [&](Session& session) { session.pid = session.rank == 0 ? child : getpid(); };
  Start({2});
  EXPECT_FALSE(rank(0).session().private_memory_reachable);
  EXPECT_TRUE(rank(1).session().private_memory_reachable);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace ferry::daemon
