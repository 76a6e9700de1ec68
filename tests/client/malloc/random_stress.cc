// Ten million random calls, by three threads at a time, of which the main one forks meanwhile: its
// children go on with the same blocks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "tests/client/malloc/random_blocks.h"

namespace ferry::malloc_heap {
namespace {

constexpr int kCalls = 10'000'000;
constexpr int kOtherThreads = 2;
constexpr int kCallsPerFork = 100'000;
constexpr int kCallsOfChild = 20'000;

TEST(RandomStress, TenMillionCalls) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kOtherThreads; ++t) {
    threads.emplace_back([t] {
      RandomBlocks blocks(static_cast<uint64_t>(100 + t));
      EXPECT_TRUE(blocks.Steps(kCalls / (kOtherThreads + 1)));
    });
  }
  RandomBlocks blocks(1);
  for (int done = 0; done < kCalls / (kOtherThreads + 1); done += kCallsPerFork) {
    ASSERT_TRUE(blocks.Steps(kCallsPerFork));
    const pid_t child = fork();
    if (child == 0) {
      _exit(blocks.Steps(kCallsOfChild) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace ferry::malloc_heap
