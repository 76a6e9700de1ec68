// Fibers, on which the nonblocking collectives of a board run.
#include "mpi/coll/fiber.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ferry::mpi {
namespace {

TEST(FiberTest, GoesOnWhereItStopped) {
  std::vector<int> steps;
  std::unique_ptr<Fiber> fiber;
  fiber = std::make_unique<Fiber>([&] {
    for (int i = 0;; ++i) {
      steps.push_back(i);
      fiber->Suspend();
    }
  });
  EXPECT_TRUE(steps.empty()) << "it begins when it is resumed";
  for (int i = 0; i < 3; ++i) {
    fiber->Resume();
  }
  EXPECT_EQ(steps, (std::vector<int>{0, 1, 2}));
}

// Each thread sees what the body did on the others.
TEST(FiberTest, ThreadsResumeItInTurn) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 1000;
  int count = 0;
  std::unique_ptr<Fiber> fiber;
  fiber = std::make_unique<Fiber>([&] {
    for (;; fiber->Suspend()) {
      ++count;
    }
  });
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        std::lock_guard lock(mutex);
        fiber->Resume();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(count, kThreads * kRounds);
}

TEST(FiberTest, UnwindsItsStack) {
  struct Counted {
    explicit Counted(int* living) : living(living) { ++*living; }
    ~Counted() { --*living; }
    int* living;
  };
  int living = 0;
  std::unique_ptr<Fiber> fiber;
  fiber = std::make_unique<Fiber>([&] {
    const Counted outer(&living);
    for (;;) {
      const Counted inner(&living);
      fiber->Suspend();
    }
  });
  fiber->Resume();
  EXPECT_EQ(living, 2);
  fiber.reset();
  EXPECT_EQ(living, 0);
}

TEST(FiberTest, MayEndUnbegun) {
  bool has_begun = false;
  {
    const Fiber fiber([&] { has_begun = true; });
  }
  EXPECT_FALSE(has_begun);
}

// A program's own reduction may need much.
TEST(FiberTest, HasAStackAsLargeAsAThreads) {
  std::unique_ptr<Fiber> fiber;
  size_t sum = 0;
  fiber = std::make_unique<Fiber>([&] {
    char large[size_t{4} << 20];
    for (size_t i = 0; i < sizeof(large); i += 4096) {
      large[i] = 1;
    }
    for (size_t i = 0; i < sizeof(large); i += 4096) {
      sum += static_cast<size_t>(large[i]);
    }
    for (;;) {
      fiber->Suspend();
    }
  });
  fiber->Resume();
  EXPECT_EQ(sum, (size_t{4} << 20) / 4096);
}

}  // namespace
}  // namespace ferry::mpi
