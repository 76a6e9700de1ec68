// A thread that shares its core with another rank's process. Skipped where there is but one CPU.
#include "client/p2p/core_sharing.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/topology/affinity.h"
#include "shm/wait_policy.h"

namespace ferry::client {
namespace {

using topology::CpuSet;

void RunOn(const CpuSet& cpus) { ASSERT_TRUE(topology::Pin(pthread_self(), cpus).ok()); }

// A process that runs on one CPU all the time, but lets others run, too.
class OtherRank {
 public:
  explicit OtherRank(const CpuSet& cpus) : pid_(fork()) {
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)topology::Pin(pthread_self(), cpus);
      for (;;) {
        for (int i = 0; i < 500; ++i) {
          shm::CpuPause();
        }
        sched_yield();
      }
    }
    while (*topology::AffinityOf(pid_) != cpus) {
      sched_yield();
    }
  }
  ~OtherRank() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

class CoreSharingTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = *topology::AffinityOf(0);
    const std::vector<uint32_t> cpus = before_.Cpus();
    if (cpus.size() < 2) {
      GTEST_SKIP() << "this machine has one CPU for us";
    }
    first_ = {cpus[0]};
    both_ = {cpus[0], cpus[1]};
  }
  void TearDown() override { RunOn(before_); }

  CpuSet before_;
  CpuSet first_;
  CpuSet both_;
};

TEST_F(CoreSharingTest, MovesToAFreeCoreAndKeepsItsMask) {
  const OtherRank other(first_);
  CoreSharing sharing({other.pid()});
  RunOn(first_);
  RunOn(both_);  // it stays where it is
  while (first_.Contains(static_cast<uint32_t>(sched_getcpu())) && !sharing.MoveAway()) {
  }
  EXPECT_FALSE(first_.Contains(static_cast<uint32_t>(sched_getcpu())));
  EXPECT_EQ(*topology::AffinityOf(0), both_);
}

TEST_F(CoreSharingTest, AMaskOfOneCoreIsKept) {
  const OtherRank other(first_);
  CoreSharing sharing({other.pid()});
  RunOn(first_);
  EXPECT_FALSE(sharing.MoveAway());
  EXPECT_EQ(*topology::AffinityOf(0), first_);
}

TEST_F(CoreSharingTest, StaysBesideWhoSleeps) {
  const OtherRank other(first_);
  kill(other.pid(), SIGSTOP);
  waitpid(other.pid(), nullptr, WUNTRACED);
  CoreSharing sharing({other.pid()});
  RunOn(first_);
  RunOn(both_);
  EXPECT_FALSE(sharing.MoveAway());
}

// Every CPU of its mask has a rank.
TEST_F(CoreSharingTest, StaysWhereNoCoreIsFree) {
  const OtherRank one(first_);
  const OtherRank other(both_.Without(first_));
  CoreSharing sharing({one.pid(), other.pid()});
  RunOn(first_);
  RunOn(both_);
  EXPECT_FALSE(sharing.MoveAway());
  EXPECT_EQ(*topology::AffinityOf(0), both_);
}

// A rank that waits looks for a free core, until it has moved or the kernel has moved it.
TEST_F(CoreSharingTest, AWaitNoticesByItself) {
  const OtherRank other(first_);
  const CoreSharing sharing({other.pid()});
  RunOn(first_);
  RunOn(both_);
  while (first_.Contains(static_cast<uint32_t>(sched_getcpu()))) {
    (void)shm::YieldToOthers();
  }
  EXPECT_EQ(*topology::AffinityOf(0), both_);
}

TEST_F(CoreSharingTest, CountsTheCpusOfAllRanks) {
  const OtherRank one(first_);
  const OtherRank two(first_);
  EXPECT_TRUE(OutnumberCpus({one.pid(), two.pid()}));
  const OtherRank three(both_.Without(first_));
  EXPECT_FALSE(OutnumberCpus({one.pid(), three.pid()}));
}

}  // namespace
}  // namespace ferry::client
