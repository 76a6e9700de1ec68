// The lease among threads and among processes. lease_kill_test.cc kills holders at a given
// instruction.
#include "shm/lease.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "shm/atomic.h"
#include "shm/fence.h"
#include "shm/journal.h"
#include "tests/shm/asleep.h"
#include "tests/shm/shared_memory.h"

namespace ferry::shm {
namespace {

constexpr uint32_t kMain = 1;

TEST(LeaseTest, IsTakenByOneOnly) {
  Shared<LeaseLayout> layout;
  Lease lease(layout.get());
  EXPECT_EQ(lease.Holder(), kLeaseFree);
  EXPECT_TRUE(lease.TryAcquire(kMain));
  EXPECT_EQ(lease.Holder(), kMain);
  EXPECT_FALSE(lease.TryAcquire(kLeaseWorker));
  EXPECT_FALSE(lease.TryAcquire(kMain)) << "the lease is not recursive";
  EXPECT_FALSE(lease.IsWanted()) << "a mere try wants nothing";
  lease.Release(kMain);
  EXPECT_TRUE(lease.TryAcquire(kLeaseWorker));
  EXPECT_EQ(lease.Holder(), kLeaseWorker);
}

TEST(LeaseTest, AWaitMayBeBounded) {
  Shared<LeaseLayout> layout;
  Lease lease(layout.get());
  ASSERT_TRUE(lease.TryAcquire(kMain));
  EXPECT_FALSE(lease.Acquire(kMain + 1, nullptr, 5'000'000));
  lease.Release(kMain);
  EXPECT_TRUE(lease.Acquire(kMain + 1, nullptr, 5'000'000));
  lease.Release(kMain + 1);
}

TEST(LeaseTest, CountsNoHandoverWithoutAWaiter) {
  Shared<LeaseLayout> layout;
  Lease lease(layout.get());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(lease.Acquire(kMain));
    lease.Release(kMain);
  }
  EXPECT_EQ(layout->handovers, 0U);
}

TEST(LeaseTest, ReleaseByAnotherDoesNothing) {
  Shared<LeaseLayout> layout;
  Lease lease(layout.get());
  lease.Release(kMain);
  EXPECT_EQ(lease.Holder(), kLeaseFree);
  ASSERT_TRUE(lease.TryAcquire(kMain));
  lease.Release(kMain + 1);
  EXPECT_EQ(lease.Holder(), kMain);
}

TEST(LeaseTest, WakesEverySleeperInTurn) {
  constexpr uint32_t kWaiters = 3;
  Shared<LeaseLayout> layout;
  Lease lease(layout.get());
  ASSERT_TRUE(lease.TryAcquire(kMain));
  uint32_t inside = 0;  // guarded by the lease
  std::vector<std::thread> waiters;
  std::atomic<pid_t> tids[kWaiters]{};
  for (uint32_t i = 0; i < kWaiters; ++i) {
    waiters.emplace_back([&, i] {
      tids[i].store(gettid());
      ASSERT_TRUE(lease.Acquire(kMain + 1 + i));
      ++inside;
      lease.Release(kMain + 1 + i);
    });
  }
  for (const auto& tid : tids) {
    WaitUntilAsleep(tid);
  }
  EXPECT_TRUE(lease.IsWanted());
  EXPECT_EQ(lease.Holder(), kMain);
  EXPECT_EQ(inside, 0U);
  lease.Release(kMain);
  for (std::thread& waiter : waiters) {
    waiter.join();
  }
  EXPECT_EQ(inside, kWaiters);
  EXPECT_EQ(lease.Holder(), kLeaseFree);
  EXPECT_GE(LoadRelaxed(layout->handovers), 1U);
  EXPECT_LE(LoadRelaxed(layout->handovers), kWaiters);
}

TEST(LeaseTest, GivesUpOnlyWhenItWouldWait) {
  Shared<LeaseLayout> layout;
  Lease lease(layout.get());
  const int32_t poison = 1;
  EXPECT_TRUE(lease.Acquire(kMain, &poison));
  EXPECT_FALSE(lease.Acquire(kMain + 1, &poison));
  EXPECT_EQ(lease.Holder(), kMain);
}

TEST(LeaseTest, SleeperGivesUp) {
  Shared<LeaseLayout> layout;
  Lease lease(layout.get());
  ASSERT_TRUE(lease.TryAcquire(kMain));
  int32_t poison = 0;
  std::atomic<pid_t> tid{0};
  std::thread waiter([&] {
    tid.store(gettid());
    EXPECT_FALSE(lease.Acquire(kMain + 1, &poison));
  });
  WaitUntilAsleep(tid);
  StoreRelease(poison, 1);
  waiter.join();
  EXPECT_EQ(lease.Holder(), kMain);
  lease.Release(kMain);  // WANTED is still there, and harmless
  EXPECT_TRUE(lease.TryAcquire(kMain));
  EXPECT_FALSE(lease.IsWanted());
}

// Light fences for the length of a test.
class BiasedLeaseTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EnableLightFence()) {
      GTEST_SKIP() << "the kernel refuses membarrier";
    }
    owner_.Bias(kMain);
  }
  void TearDown() override { DisableLightFence(); }

  Shared<LeaseLayout> layout_;
  Lease owner_{layout_.get()};
  Lease other_{layout_.get()};
};

TEST_F(BiasedLeaseTest, IsTakenByOneOnly) {
  EXPECT_EQ(other_.Holder(), kLeaseFree);
  ASSERT_TRUE(owner_.TryAcquire(kMain));
  EXPECT_FALSE(other_.TryAcquire(kLeaseWorker));
  owner_.Release(kMain);
  ASSERT_TRUE(other_.TryAcquire(kLeaseWorker));
  EXPECT_EQ(owner_.Holder(), kLeaseWorker);
  EXPECT_FALSE(owner_.TryAcquire(kMain));
  EXPECT_FALSE(other_.TryAcquire(kLeaseWorker)) << "the lease is not recursive";
  other_.Release(kLeaseWorker);
  EXPECT_TRUE(owner_.Acquire(kMain));
}

TEST_F(BiasedLeaseTest, OwnerWaitsForWhoTookIt) {
  uint32_t inside = 0;  // guarded by the lease
  ASSERT_TRUE(other_.TryAcquire(kLeaseWorker));
  std::atomic<pid_t> tid{0};
  std::thread waiter([&] {
    tid.store(gettid());
    ASSERT_TRUE(owner_.Acquire(kMain));
    ++inside;
    owner_.Release(kMain);
  });
  WaitUntilAsleep(tid);
  EXPECT_TRUE(other_.IsWanted());
  EXPECT_EQ(inside, 0U);
  other_.Release(kLeaseWorker);
  waiter.join();
  EXPECT_EQ(inside, 1U);
  EXPECT_FALSE(other_.IsWanted());
}

TEST_F(BiasedLeaseTest, UnbiasedItIsAsAnyOther) {
  ASSERT_TRUE(owner_.Acquire(kMain));
  owner_.Release(kMain);
  owner_.Unbias(kMain);
  EXPECT_EQ(LoadRelaxed(layout_.get()->word), kLeaseFree);
  // Two threads of the rank now share the object, and exclude each other.
  uint32_t inside = 0;
  std::thread second([&] {
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(owner_.Acquire(kMain + 1));
      ++inside;
      owner_.Release(kMain + 1);
    }
  });
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(owner_.Acquire(kMain));
    ++inside;
    owner_.Release(kMain);
  }
  second.join();
  EXPECT_EQ(inside, 2000U);
  owner_.Unbias(kMain);  // again: nothing
  EXPECT_TRUE(other_.TryAcquire(kLeaseWorker));
}

TEST_F(BiasedLeaseTest, BiasedAnewItIsTheOwnersAgain) {
  for (int i = 0; i < 3; ++i) {
    owner_.Unbias(kMain);
    ASSERT_TRUE(owner_.Acquire(kMain + 1));  // a second thread's turn
    owner_.Release(kMain + 1);
    owner_.Bias(kMain);
    EXPECT_EQ(LoadRelaxed(layout_.get()->word), kLeaseBiased);
    ASSERT_TRUE(owner_.TryAcquire(kMain));
    EXPECT_EQ(LoadRelaxed(layout_.get()->word), kLeaseBiased);  // it keeps no other record
    EXPECT_FALSE(other_.TryAcquire(kLeaseWorker));
    owner_.Release(kMain);
    ASSERT_TRUE(other_.TryAcquire(kLeaseWorker));
    EXPECT_FALSE(owner_.TryAcquire(kMain));
    other_.Release(kLeaseWorker);
  }
}

TEST_F(BiasedLeaseTest, BiasWaitsForWhoTookIt) {
  owner_.Unbias(kMain);
  ASSERT_TRUE(other_.TryAcquire(kLeaseWorker));
  std::atomic<pid_t> tid{0};
  std::thread biasing([&] {
    tid.store(gettid());
    owner_.Bias(kMain);
  });
  WaitUntilAsleep(tid);
  other_.Release(kLeaseWorker);
  biasing.join();
  EXPECT_EQ(LoadRelaxed(layout_.get()->word), kLeaseBiased);
}

TEST_F(BiasedLeaseTest, UnbiasWaitsForWhoTookIt) {
  ASSERT_TRUE(other_.TryAcquire(kLeaseWorker));
  std::atomic<pid_t> tid{0};
  std::thread unbiasing([&] {
    tid.store(gettid());
    owner_.Unbias(kMain);
  });
  WaitUntilAsleep(tid);
  other_.Release(kLeaseWorker);
  unbiasing.join();
  EXPECT_EQ(LoadRelaxed(layout_.get()->word), kLeaseFree);
}

TEST_F(BiasedLeaseTest, BreakDeadTakesItFromOwnerAndRevokerAlike) {
  EXPECT_FALSE(other_.BreakDead(kMain, kLeaseWorker)) << "free";
  ASSERT_TRUE(owner_.TryAcquire(kMain));
  EXPECT_FALSE(other_.BreakDead(kMain + 1, kLeaseWorker)) << "held by another";
  EXPECT_TRUE(other_.BreakDead(kMain, kLeaseWorker));
  EXPECT_EQ(other_.Holder(), kLeaseWorker);
  EXPECT_TRUE(other_.BreakDead(kLeaseWorker, kMain + 2));
  EXPECT_EQ(other_.Holder(), kMain + 2);
  other_.Release(kMain + 2);
  EXPECT_TRUE(owner_.TryAcquire(kMain)) << "it is still biased";
}

TEST_F(BiasedLeaseTest, OwnerAndOthersNeverMeetInside) {
  constexpr uint32_t kTurns = 20'000;
  uint64_t count = 0;  // guarded by the lease
  std::thread worker([&] {
    for (uint32_t i = 0; i < kTurns / 20; ++i) {
      while (!other_.TryAcquire(kLeaseWorker)) {
        sched_yield();
      }
      ++count;
      other_.Release(kLeaseWorker);
    }
  });
  for (uint32_t i = 0; i < kTurns; ++i) {
    ASSERT_TRUE(owner_.Acquire(kMain));
    ++count;
    owner_.Release(kMain);
  }
  worker.join();
  EXPECT_EQ(count, kTurns + kTurns / 20);
}

TEST(LeaseTest, BreakDeadTakesItFromTheDeadOnly) {
  Shared<LeaseLayout> layout;
  Lease lease(layout.get());
  EXPECT_FALSE(lease.BreakDead(kMain, kLeaseWorker)) << "free";
  ASSERT_TRUE(lease.TryAcquire(kMain + 1));
  EXPECT_FALSE(lease.BreakDead(kMain, kLeaseWorker)) << "held by another";
  EXPECT_EQ(lease.Holder(), kMain + 1);
  EXPECT_TRUE(lease.BreakDead(kMain + 1, kLeaseWorker));
  EXPECT_EQ(lease.Holder(), kLeaseWorker);
  lease.Release(kMain + 1);  // the dead one turns out alive: too late
  EXPECT_EQ(lease.Holder(), kLeaseWorker);
}

TEST(LeaseTest, BreakDeadKeepsTheWaiters) {
  Shared<LeaseLayout> layout;
  Lease lease(layout.get());
  ASSERT_TRUE(lease.TryAcquire(kMain));
  std::atomic<pid_t> tid{0};
  std::thread waiter([&] {
    tid.store(gettid());
    EXPECT_TRUE(lease.Acquire(kMain + 1));
  });
  WaitUntilAsleep(tid);
  ASSERT_TRUE(lease.BreakDead(kMain, kLeaseWorker));
  EXPECT_TRUE(lease.IsWanted());
  EXPECT_EQ(lease.Holder(), kLeaseWorker);
  lease.Release(kLeaseWorker);
  waiter.join();
  EXPECT_EQ(lease.Holder(), kMain + 1);
}

TEST(LeaseTest, GuardsPlainWordsAmongThreads) {
  constexpr uint32_t kThreads = 4;
  constexpr uint32_t kRounds = 20'000;
  Shared<LeaseLayout> layout;
  Lease lease(layout.get());
  uint64_t counter = 0;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (uint32_t round = 0; round < kRounds; ++round) {
        ASSERT_TRUE(lease.Acquire(kMain + i));
        ++counter;
        lease.Release(kMain + i);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(counter, uint64_t{kThreads} * kRounds);
  EXPECT_EQ(layout->word, kLeaseFree);
}

// Each thread holds the lease until another wants it: without hand-over no thread would get on.
TEST(LeaseTest, PollingHoldersHandOver) {
  constexpr uint32_t kThreads = 3;
  constexpr uint32_t kRounds = 200;
  Shared<LeaseLayout> layout;
  Lease lease(layout.get());
  uint32_t finished = 0;  // guarded by the lease
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (uint32_t round = 0; round < kRounds; ++round) {
        ASSERT_TRUE(lease.Acquire(kMain + i));
        while (finished + 1 < kThreads && !lease.IsWanted()) {
          sched_yield();
        }
        finished += round + 1 == kRounds ? 1 : 0;
        lease.Release(kMain + i);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(finished, kThreads);
  EXPECT_GE(layout->handovers, kRounds);
}

// Two words that change together, in a session that several processes share.
struct Account {
  LeaseLayout lease;
  JournalLayout journal;
  alignas(128) uint64_t first;
  uint32_t padding[31];
  alignas(8) uint64_t second;
};

class LeaseProcessTest : public testing::Test {
 protected:
  ~LeaseProcessTest() override {
    for (const pid_t child : children_) {
      Reap(child, SIGKILL);
    }
  }

  Journal MakeJournal() {
    auto* const base = reinterpret_cast<std::byte*>(account_.get());
    return Journal(&account_->journal, base, sizeof(Account), nullptr, 0);
  }

  // Forks a process that adds 1 to both words `rounds` times.
  pid_t Fork(uint32_t holder, uint64_t rounds) {
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) {
        _exit(1);
      }
      Lease lease(&account_->lease);
      Journal journal = MakeJournal();
      for (uint64_t i = 0; i < rounds; ++i) {
        lease.Acquire(holder);
        journal.Set(&account_->first, account_->first + 1);
        journal.Set(&account_->second, account_->second + 1);
        journal.Commit();
        lease.Release(holder);
      }
      _exit(0);
    }
    children_.push_back(child);
    return child;
  }

  int Reap(pid_t child, int signal_number) {
    int status = 0;
    if (signal_number != 0) {
      kill(child, signal_number);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    std::erase(children_, child);
    return status;
  }

  Shared<Account> account_;
  std::vector<pid_t> children_;
};

TEST_F(LeaseProcessTest, GuardsPlainWordsAmongProcesses) {
  constexpr uint64_t kRounds = 20'000;
  std::vector<pid_t> children;
  for (uint32_t i = 0; i < 3; ++i) {
    children.push_back(Fork(kMain + i, kRounds));
  }
  for (const pid_t child : children) {
    EXPECT_EQ(Reap(child, 0), 0);
  }
  EXPECT_EQ(account_->first, 3 * kRounds);
  EXPECT_EQ(account_->second, 3 * kRounds);
  EXPECT_EQ(account_->lease.word, kLeaseFree);
}

TEST_F(LeaseProcessTest, SurvivesHoldersKilledAtAnyTime) {
  constexpr uint32_t kKilledHolders = 25;
  constexpr uint32_t kSurvivor = 100;
  std::mt19937 random(1);
  Lease lease(&account_->lease);
  Journal journal = MakeJournal();
  Fork(kSurvivor, ~uint64_t{0});
  for (uint32_t i = 0, held = 0; held < kKilledHolders; ++i) {
    const uint32_t victim_id = kSurvivor + 1 + i;
    const uint64_t until = LoadRelaxed(account_->first) + random() % 2000;
    const pid_t victim = Fork(victim_id, ~uint64_t{0});
    while (LoadRelaxed(account_->first) < until || lease.Holder() != victim_id) {
      sched_yield();
    }
    Reap(victim, SIGKILL);
    if (lease.BreakDead(victim_id, kMain)) {
      ++held;
      ASSERT_TRUE(journal.Recover());
    } else {
      ASSERT_TRUE(lease.Acquire(kMain));
    }
    ASSERT_EQ(account_->first, account_->second) << "torn after kill " << i;
    ASSERT_EQ(account_->journal.count, 0U);
    lease.Release(kMain);
  }
  const uint64_t first = LoadRelaxed(account_->first);
  while (LoadRelaxed(account_->first) == first) {  // the survivor goes on
    sched_yield();
  }
}

TEST_F(LeaseProcessTest, AKilledWaiterIsMissedByNobody) {
  Lease lease(&account_->lease);
  ASSERT_TRUE(lease.TryAcquire(kMain));
  const pid_t victim = Fork(kMain + 1, 1);
  WaitUntilAsleep(victim);
  const pid_t other = Fork(kMain + 2, 1);
  WaitUntilAsleep(other);
  Reap(victim, SIGKILL);
  EXPECT_FALSE(lease.BreakDead(kMain + 1, kLeaseWorker));
  lease.Release(kMain);
  EXPECT_EQ(Reap(other, 0), 0);
  EXPECT_EQ(account_->first, 1U);
  EXPECT_EQ(account_->lease.word, kLeaseFree);
}

}  // namespace
}  // namespace ferry::shm
