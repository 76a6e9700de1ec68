// A worker process that an attacker has taken over: this test does so by ptrace, and makes it try
// the ways out of its confinement.
#include <gmock/gmock.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <vector>

#include "tests/internode/core/progress_fixture.h"
#include "tests/support/processes.h"
#include "tests/support/registers.h"

namespace ferry::daemon {
namespace {

// Calls that Arm has under newer names alone.
#ifdef SYS_fork
constexpr long kFork = SYS_fork;
constexpr long kOpen = SYS_open;
#else
constexpr long kFork = SYS_clone;
constexpr long kOpen = SYS_openat;
#endif

// The process, stopped in a system call. The test is skipped where it may not be traced.
class TakenOver {
 public:
  explicit TakenOver(pid_t process) : process_(process) {
    error_ = ptrace(PTRACE_ATTACH, process_, nullptr, nullptr) == 0 ? 0 : errno;
    if (error_ == 0) {
      EXPECT_EQ(waitpid(process_, nullptr, __WALL), process_);
      EXPECT_TRUE(saved_.Read(process_)) << strerror(errno);
    }
  }
  ~TakenOver() {
    if (error_ == 0) {
      saved_.Write(process_);
      ptrace(PTRACE_DETACH, process_, nullptr, nullptr);
    }
  }
  TakenOver(const TakenOver&) = delete;
  TakenOver& operator=(const TakenOver&) = delete;

  int error() const { return error_; }

  // Returns the call's result in the process: -EPERM and so on if it fails.
  long Try(long number, std::initializer_list<unsigned long> arguments = {}) {
    std::array<uint64_t, 6> values{};
    std::copy(arguments.begin(), arguments.end(), values.begin());
    tests::Registers changed = saved_;
    changed.set_counter(changed.counter() - tests::Registers::kBehindCall);
    changed.SetCall(static_cast<uint64_t>(number), values);
    EXPECT_TRUE(changed.Write(process_)) << strerror(errno);
    EXPECT_EQ(ptrace(PTRACE_SINGLESTEP, process_, nullptr, nullptr), 0);
    int status = 0;
    EXPECT_EQ(waitpid(process_, &status, __WALL), process_);
    EXPECT_TRUE(WIFSTOPPED(status)) << "it has ended: " << status;
    EXPECT_TRUE(changed.Read(process_)) << strerror(errno);
    return static_cast<long>(changed.result());
  }

 private:
  const pid_t process_;
  int error_;
  tests::Registers saved_;
};

class WorkerConfinedTest : public PlaneTest {
 protected:
  void SetUp() override {
    keep_capabilities_ = true;  // that to trace
    PlaneTest::SetUp();
  }
  void TakeOverWorker() {
    Start({1});
    const std::vector<pid_t> workers = tests::WorkersOf(getpid());
    ASSERT_EQ(workers.size(), 1U);
    worker_.emplace(workers[0]);
    if (worker_->error() != 0) {
      GTEST_SKIP() << "this user may not trace a worker, which is not dumpable: "
                   << strerror(worker_->error());
    }
    ASSERT_EQ(worker_->Try(SYS_getpid), workers[0]) << "it does as it is told";
  }
  void TearDown() override {
    worker_.reset();
    PlaneTest::TearDown();
  }

  struct Call {
    const char* name;
    long number;
    std::initializer_list<unsigned long> arguments;
  };

  // Ends with the first call that is not refused: what comes later would leave processes behind.
  void ExpectNoWayOut() {
    const auto self = static_cast<unsigned long>(getpid());
    for (const Call& call :
         std::initializer_list<Call>{{"socket", SYS_socket, {AF_INET, SOCK_STREAM}},
                                     {"local socket", SYS_socket, {AF_UNIX, SOCK_STREAM}},
                                     {"netlink", SYS_socket, {AF_NETLINK, SOCK_RAW}},
                                     {"connect", SYS_connect, {}},
                                     {"ptrace", SYS_ptrace, {PTRACE_ATTACH, self}},
                                     {"kill", SYS_kill, {self}},
                                     {"tgkill", SYS_tgkill, {self, self}},
                                     {"pidfd_open", SYS_pidfd_open, {self}},
                                     {"pidfd_getfd", SYS_pidfd_getfd, {}},
                                     {"prctl", SYS_prctl, {PR_SET_DUMPABLE, 1}},
                                     {"limits of another", SYS_prlimit64, {self, RLIMIT_NOFILE}},
                                     {"setresuid", SYS_setresuid, {}},
                                     {"unshare", SYS_unshare, {CLONE_NEWUSER}},
                                     {"setns", SYS_setns, {}},
                                     {"bpf", SYS_bpf, {}},
                                     {"perf_event_open", SYS_perf_event_open, {}},
                                     {"io_uring_setup", SYS_io_uring_setup, {1}},
                                     {"userfaultfd", SYS_userfaultfd, {}},
                                     {"keyctl", SYS_keyctl, {}},
                                     {"mount", SYS_mount, {}},
                                     {"chroot", SYS_chroot, {}},
                                     {"execve", SYS_execve, {}},
                                     {"execveat", SYS_execveat, {}},
                                     {"fork by clone", SYS_clone, {SIGCHLD}},
                                     {"fork", kFork, {}}}) {
      ASSERT_EQ(worker_->Try(call.number, call.arguments), -EPERM) << call.name;
    }
    ASSERT_EQ(worker_->Try(SYS_clone3), -ENOSYS) << "so the C library uses clone";
  }

  std::optional<TakenOver> worker_;
};

TEST_F(WorkerConfinedTest, WithoutGpusItOnlyCopies) {
  ASSERT_NO_FATAL_FAILURE(TakeOverWorker());
  if (IsSkipped()) {
    return;
  }
  ExpectNoWayOut();
  constexpr unsigned long kBytes = 4096;
  constexpr unsigned long kOwn = MAP_PRIVATE | MAP_ANONYMOUS;
  constexpr auto kNone = static_cast<unsigned long>(-1);
  EXPECT_EQ(worker_->Try(SYS_openat), -EPERM);
  EXPECT_EQ(worker_->Try(kOpen), -EPERM);
  EXPECT_EQ(worker_->Try(SYS_ioctl), -EPERM);
  EXPECT_EQ(worker_->Try(SYS_mmap, {0, kBytes, PROT_READ | PROT_EXEC, kOwn, kNone}), -EPERM);
  EXPECT_EQ(worker_->Try(SYS_mprotect, {0, kBytes, PROT_EXEC}), -EPERM);
  EXPECT_GT(worker_->Try(SYS_mmap, {0, kBytes, PROT_READ | PROT_WRITE, kOwn, kNone}), 0);
}

TEST_F(WorkerConfinedTest, WithGpusItOpensWhatDriversNeed) {
  UseDevices(2000, 2000);
  ASSERT_NO_FATAL_FAILURE(TakeOverWorker());
  if (IsSkipped()) {
    return;
  }
  ExpectNoWayOut();
  EXPECT_EQ(worker_->Try(SYS_openat), -EFAULT) << "there is no such path, but it may be opened";
  EXPECT_EQ(worker_->Try(SYS_ioctl, {static_cast<unsigned long>(-1)}), -EBADF);
}

}  // namespace
}  // namespace ferry::daemon
