// What fork makes of the heap. This program's malloc is libferry_malloc.so's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "client/malloc/heap_view.h"
#include "tests/client/malloc/look.h"
#include "tests/client/malloc/random_blocks.h"

namespace ferry::malloc_heap {
namespace {

// Runs `body` in a child; returns its exit code, or 1000 and the signal that ended it.
template <typename Body>
int InChild(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(body());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

bool Works(uint64_t seed, int calls) {
  RandomBlocks blocks(seed);
  for (int i = 0; i < calls; ++i) {
    if (!blocks.Step()) {
      return false;
    }
  }
  return blocks.CheckAll();
}

int OpenDescriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  }
  return count;
}

TEST(ForkTest, ParentAndChildDoNotSeeEachOthersWrites) {
  std::vector<int> numbers(1 << 20);
  std::iota(numbers.begin(), numbers.end(), 0);
  int to_child[2];
  int to_parent[2];
  ASSERT_EQ(pipe(to_child) | pipe(to_parent), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    std::fill(numbers.begin() + 100, numbers.end(), -1);
    (void)!write(to_parent[1], "x", 1);
    (void)!read(to_child[0], &byte, 1);  // the parent has written
    _exit(numbers[0] == 0 && numbers[99] == 99 && numbers[100] == -1 ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(to_parent[0], &byte, 1), 1);
  EXPECT_EQ(numbers[100], 100);
  EXPECT_EQ(numbers.back(), (1 << 20) - 1);
  std::fill(numbers.begin(), numbers.begin() + 100, -2);
  ASSERT_EQ(write(to_child[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) {
    close(fd);
  }
}

TEST(ForkTest, ChildHasAWorkingHeapOfItsOwn) {
  const HeapView before = Look();
  ASSERT_GE(before.fd, 0);
  EXPECT_EQ(InChild([] {
              const HeapView view = Look();
              if (view.fd >= 0 || view.refusal != Refusal::kForked) {
                return 2;
              }
              return Works(1, 20000) ? 0 : 1;
            }),
            0);
  EXPECT_EQ(Look().fd, before.fd);
  EXPECT_TRUE(Works(2, 20000));
}

TEST(ForkTest, MemoryThatTheChildFreesGoesBack) {
  EXPECT_EQ(InChild([] {
              const size_t size = size_t{64} << 20;
              for (int i = 0; i < 3; ++i) {
                auto* const dirty = static_cast<unsigned char*>(malloc(size));
                std::memset(dirty, 0xee, size);
                free(dirty);
                auto* const zero = static_cast<unsigned char*>(calloc(1, size));
                if (std::count(zero, zero + size, 0) != static_cast<std::ptrdiff_t>(size)) {
                  return 1;
                }
                free(zero);
              }
              return 0;
            }),
            0);
}

TEST(ForkTest, ChildrenOfChildren) {
  const std::string text(100000, 'a');
  EXPECT_EQ(InChild([&] {
              const std::string more(100000, 'b');
              return InChild([&] {
                return text.find_first_not_of('a') == text.npos &&
                               more.find_first_not_of('b') == more.npos && Works(3, 2000)
                           ? 0
                           : 1;
              });
            }),
            0);
}

// What an open FILE holds lies in the heap, and the C library touches it before any handler runs.
TEST(ForkTest, OpenStreamsAreFlushedOnce) {
  char name[] = "/tmp/ferry_fork_test.XXXXXX";
  const int fd = mkstemp(name);
  FILE* const stream = fdopen(fd, "w");
  std::fputs("once ", stream);
  std::fflush(stream);
  EXPECT_EQ(InChild([&] {
              std::fputs("child ", stream);
              return std::fclose(stream);
            }),
            0);
  std::fputs("parent", stream);
  std::fclose(stream);
  FILE* const again = fopen(name, "r");
  char line[64] = {};
  EXPECT_NE(std::fgets(line, sizeof(line), again), nullptr);
  EXPECT_STREQ(line, "once child parent");
  std::fclose(again);
  unlink(name);
}

TEST(ForkTest, WhileOtherThreadsAllocate) {
  std::atomic<bool> stop = false;
  std::atomic<bool> fine = true;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      RandomBlocks blocks(static_cast<uint64_t>(50 + t));
      while (!stop) {
        fine = fine && blocks.Step();
      }
    });
  }
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(InChild([i] { return Works(static_cast<uint64_t>(i + 1), 300) ? 0 : 1; }), 0) << i;
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(fine);
}

TEST(ForkTest, SeveralThreadsForkAtATime) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 15; ++i) {
        EXPECT_EQ(
            InChild([=] { return Works(static_cast<uint64_t>(1 + t * 20 + i), 200) ? 0 : 1; }), 0);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

int Multiply(int depth) {
  int failed = 0;
  pid_t children[3];
  for (pid_t& child : children) {
    child = depth == 0 ? -1 : fork();
    if (child == 0) {
      _exit(Multiply(depth - 1));
    }
  }
  failed += Works(static_cast<uint64_t>(getpid()), 200) ? 0 : 1;
  for (const pid_t child : children) {
    int status = 0;
    failed += depth != 0 && (waitpid(child, &status, 0) != child || status != 0) ? 1 : 0;
  }
  return std::min(failed, 100);
}

TEST(ForkTest, EightyChildrenAndGrandchildrenAtATime) {
  EXPECT_EQ(InChild([] { return Multiply(4); }), 0);
}

TEST(ForkTest, WithoutDescriptorsForAPipe) {
  EXPECT_EQ(InChild([] { return 0; }), 0);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none = limit;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string text(100000, 'c');
  EXPECT_EQ(
      InChild([&] { return text.find_first_not_of('c') == text.npos && Works(9, 2000) ? 0 : 1; }),
      0);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(ForkTest, LeavesSignalsAndDescriptorsAsTheyWere) {
  sigset_t blocked;
  sigset_t found;
  sigfillset(&blocked);
  struct sigaction ignore = {};
  struct sigaction after = {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before = {};
  ASSERT_EQ(sigaction(SIGSEGV, &ignore, &before), 0);
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &blocked, &found), 0);
  const int descriptors = OpenDescriptors();
  const auto check = [&] {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    sigaction(SIGSEGV, nullptr, &after);
    return sigismember(&now, SIGSEGV) == 1 && after.sa_handler == SIG_IGN;
  };
  EXPECT_EQ(InChild([&] {  // without the heap's memfd
              return check() && OpenDescriptors() == descriptors - 1 ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(check());
  EXPECT_EQ(OpenDescriptors(), descriptors);
  pthread_sigmask(SIG_SETMASK, &found, nullptr);
  sigaction(SIGSEGV, &before, nullptr);
}

// A fault that is the program's own ends the child as it would without this library.
TEST(ForkTest, FaultsOfTheProgramStayFaults) {
  EXPECT_EQ(InChild([] {
              const rlimit no_core{0, 0};
              setrlimit(RLIMIT_CORE, &no_core);
              std::memset(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 1);
              return 0;
            }),
            1000 + SIGSEGV);
}

TEST(ForkTest, VforkAndSpawnedProgramsPayNothing) {
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(127);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(std::system("exit 3"), 3 << 8);
}

}  // namespace
}  // namespace ferry::malloc_heap
