// A ferryd of root, without CAP_SYS_PTRACE, and ranks of an ordinary user: a worker process of that
// user moves their private memory. Skipped unless root runs it.
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "common/process_memory.h"
#include "tests/internode/core/progress_fixture.h"
#include "tests/support/processes.h"

namespace ferry::daemon {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;
constexpr uid_t kForeignUid = 64321;
constexpr gid_t kForeignGid = 64322;

class ForeignRank {
 public:
  static constexpr uint64_t kBytes = 8 * kMiB;

  // A process of that user, whose memory this process sees as well.
  ForeignRank(uid_t uid, gid_t gid) {
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const bool became = setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0;
      prctl(PR_SET_DUMPABLE, 1);  // as after an exec
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)!write(ready[1], became ? "y" : "n", 1);
      while (true) {
        pause();
      }
    }
    char answer = 'n';
    EXPECT_EQ(read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    close(ready[0]);
    close(ready[1]);
  }
  ~ForeignRank() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(memory_, kBytes);
  }
  ForeignRank(const ForeignRank&) = delete;
  ForeignRank& operator=(const ForeignRank&) = delete;

  pid_t pid() const { return pid_; }
  std::byte* memory() const { return memory_; }

 private:
  std::byte* memory_ = nullptr;
  pid_t pid_ = -1;
};

class ForeignUserTest : public PlaneTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "only root can start ranks of another user";
    }
    for (int i = 0; i < 2; ++i) {
      processes_.push_back(std::make_unique<ForeignRank>(kForeignUid, kForeignGid));
    }
    // The capabilities that ferryd is documented to need; above all, not CAP_SYS_PTRACE.
    constexpr uint64_t kNeeded =
        uint64_t{1} << CAP_SETUID | uint64_t{1} << CAP_SETGID | uint64_t{1} << CAP_KILL;
    ASSERT_NO_FATAL_FAILURE(DropCapabilities(kNeeded));
    keep_capabilities_ = true;
    amend_session_ = [this](Session& session) {
      session.uid = kForeignUid;
      session.gid = kForeignGid;
      session.pid = processes_[session.rank]->pid();
      session.private_memory_reachable = false;
    };
  }

  static config::Options Auto() {
    config::Options options = FastOptions();
    options.worker_mode = "auto";
    return options;
  }

  void Exchange(bool source_in_heap, bool destination_in_heap, uint64_t size_bytes) {
    const std::vector<std::byte> sent =
        Pattern(size_bytes, static_cast<uint32_t>(size_bytes) + source_in_heap);
    std::byte* from = source_in_heap ? rank(0).heap() : processes_[0]->memory();
    std::byte* to = destination_in_heap ? rank(1).heap() : processes_[1]->memory();
    std::memcpy(from, sent.data(), size_bytes);
    std::memset(to, 0xee, size_bytes + 1);
    // The receiver computes, so the worker matches and copies.
    const Passage passage = Begin(0, 1, source_in_heap ? InHeap(0) : Private(from),
                                  destination_in_heap ? InHeap(0) : Private(to), size_bytes);
    EXPECT_TRUE(Eventually([&] { return rank(1).Test(passage.receive); })) << size_bytes;
    ExpectEnd(passage);
    EXPECT_EQ(std::memcmp(to, sent.data(), size_bytes), 0) << size_bytes;
    EXPECT_EQ(to[size_bytes], std::byte{0xee});
  }
  void ExchangeAll() {
    for (const uint64_t size_bytes : {uint64_t{8193}, uint64_t{65536}, kMiB + 7, 4 * kMiB}) {
      for (const bool source_in_heap : {false, true}) {
        for (const bool destination_in_heap : {false, true}) {
          Exchange(source_in_heap, destination_in_heap, size_bytes);
        }
      }
    }
  }

  std::vector<std::unique_ptr<ForeignRank>> processes_;
};

TEST_F(ForeignUserTest, PrivateMemoryMovesWithoutCapSysPtraceInsideANode) {
  Start({2}, Auto());
  // This process itself does not reach it.
  char byte = 0;
  EXPECT_EQ(ReadProcessMemory(processes_[0]->pid(),
                              reinterpret_cast<uint64_t>(processes_[0]->memory()), &byte, 1),
            ErrorCode::kPermissionDenied);
  EXPECT_TRUE(rank(0).session().private_memory_reachable);
  ExchangeAll();
}

TEST_F(ForeignUserTest, PrivateMemoryMovesWithoutCapSysPtraceBetweenNodes) {
  Start({1, 1}, Auto());
  ExchangeAll();
}

TEST_F(ForeignUserTest, TheWorkerIsThatUserAndNobodyElse) {
  Start({2}, Auto());
  ASSERT_EQ(tests::WorkersOf(getpid()).size(), 1U);
  const pid_t worker = tests::WorkersOf(getpid())[0];
  const std::string uid = std::to_string(kForeignUid);
  const std::string gid = std::to_string(kForeignGid);
  EXPECT_EQ(tests::StatusOf(worker, "Uid"), uid + "\t" + uid + "\t" + uid + "\t" + uid);
  EXPECT_EQ(tests::StatusOf(worker, "Gid"), gid + "\t" + gid + "\t" + gid + "\t" + gid);
  EXPECT_EQ(tests::StatusOf(worker, "Groups"), gid + " ");
  EXPECT_EQ(tests::StatusOf(worker, "CapEff"), "0000000000000000");
}

TEST_F(ForeignUserTest, AStoppedWorkerOfAnotherUserIsEndedToo) {
  Start({2}, Auto());
  ASSERT_EQ(tests::WorkersOf(getpid()).size(), 1U);
  kill(tests::WorkersOf(getpid())[0], SIGSTOP);
  Stop();
  EXPECT_THAT(tests::WorkersOf(getpid()), IsEmpty());
}

TEST_F(ForeignUserTest, AnotherGroupIsOutOfReach) {
  amend_session_ = [this](Session& session) {
    session.uid = kForeignUid;
    session.gid = kForeignGid + 1;
    session.pid = processes_[session.rank]->pid();
  };
  Start({1}, Auto());
  EXPECT_FALSE(rank(0).session().private_memory_reachable);
}

// Drops this thread's effective capabilities, and restores them.
class WithoutEffectiveCapabilities {
 public:
  WithoutEffectiveCapabilities() {
    syscall(SYS_capget, &header_, &before_);
    __user_cap_data_struct none[2] = {before_[0], before_[1]};
    none[0].effective = none[1].effective = 0;
    EXPECT_EQ(syscall(SYS_capset, &header_, &none), 0);
  }
  ~WithoutEffectiveCapabilities() { syscall(SYS_capset, &header_, &before_); }

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2] = {};
};

class RefusedUserTest : public ForeignUserTest {
 protected:
  void ExpectRefusal(const config::Options& options, ErrorCode code, const std::string& words,
                     uid_t second_uid = kForeignUid) {
    StartPlanes({2}, options);
    amend_session_ = [=](Session& session) {
      session.uid = session.rank == 0 ? kForeignUid : second_uid;
      session.gid = kForeignGid;
    };
    Status status;
    for (uint32_t rank = 0; rank < 2 && status.ok(); ++rank) {
      status = plane(0).AddSession(MakeSession(rank));
    }
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(status.message(), HasSubstr(words));
  }
};

TEST_F(RefusedUserTest, ByTheThread) {
  config::Options options = FastOptions();
  options.worker_mode = "thread";
  ExpectRefusal(options, ErrorCode::kPermissionDenied, "worker_mode is thread");
}

TEST_F(RefusedUserTest, ByAFerrydThatCannotBecomeTheUser) {
  const WithoutEffectiveCapabilities without;
  ExpectRefusal(Auto(), ErrorCode::kPermissionDenied,
                "run it as root (or with CAP_SETUID and CAP_SETGID)");
}

TEST_F(RefusedUserTest, BesideRanksOfAnother) {
  ExpectRefusal(Auto(), ErrorCode::kPermissionDenied, "run all ranks of a job as one user",
                kForeignUid + 1);
}

TEST_F(RefusedUserTest, WithoutTheProgram) {
  config::Options options = Auto();
  options.worker_program = "/nowhere/ferry-worker";
  ExpectRefusal(options, ErrorCode::kNotFound, "there is no program /nowhere/ferry-worker");
}

}  // namespace
}  // namespace ferry::daemon
