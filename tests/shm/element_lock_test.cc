// The lock of elements: its holder is alone, in whatever process, and no process waits for a dead
// holder.
#include "shm/element_lock.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace ferry::shm {
namespace {

class ElementLockTest : public testing::Test {
 protected:
  struct Shared {
    ElementLock lock;
    uint64_t count = 0;
  };

  ElementLockTest() {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    shared_ = new (memory) Shared;
  }
  ~ElementLockTest() override { munmap(shared_, sizeof(Shared)); }

  // The action of a child process, which ends without releasing its locks.
  template <typename Action>
  static pid_t Start(Action&& action) {
    const pid_t child = fork();
    if (child == 0) {
      action();
      _exit(0);
    }
    EXPECT_GT(child, 0);
    return child;
  }
  static void AwaitEnd(pid_t child) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  void Count(int times) {
    for (int i = 0; i < times; ++i) {
      const std::lock_guard lock(shared_->lock);
      ++shared_->count;
    }
  }

  Shared* shared_ = nullptr;
};

TEST_F(ElementLockTest, ProcessesAndThreadsTakeTurns) {
  constexpr int kTimes = 20'000;
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(Start([this] { Count(kTimes); }));
  }
  std::thread other([this] { Count(kTimes); });
  Count(kTimes);
  other.join();
  for (const pid_t child : children) {
    AwaitEnd(child);
  }
  EXPECT_EQ(shared_->count, 5U * kTimes);
}

TEST_F(ElementLockTest, TheDeadKeepNobodyWaiting) {
  for (int i = 0; i < 3; ++i) {
    AwaitEnd(Start([this] { shared_->lock.lock(); }));
    Count(2);
  }
  EXPECT_EQ(shared_->count, 6U);
}

TEST_F(ElementLockTest, WhoTriesDoesNotWait) {
  shared_->lock.lock();
  AwaitEnd(Start([this] { _exit(shared_->lock.try_lock() ? 1 : 0); }));
  shared_->lock.unlock();
  AwaitEnd(Start([this] { _exit(shared_->lock.try_lock() ? 0 : 1); }));  // and dies with it
  EXPECT_TRUE(shared_->lock.try_lock());
  shared_->lock.unlock();
}

}  // namespace
}  // namespace ferry::shm
