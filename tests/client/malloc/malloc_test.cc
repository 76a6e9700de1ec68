// This program's malloc is libferry_malloc.so's, which it is linked with: what it gives, and what
// fork makes of its heap. MALLOC_CONF has pages given back at once, so that memory is reused after
// holes were punched.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

bool Works(uint64_t seed, int calls) { return RandomBlocks(seed).Steps(calls); }

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

// The buffer of an open FILE lies in the heap, and the C library touches it before any handler
// runs.
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

// Run by the next test, as a program of its own, since the heap of a forked one is private.
TEST(ForkTest, DISABLED_Forks) {
  std::vector<int> numbers(1 << 20, 1);
  ASSERT_EQ(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr), 0);
  raise(SIGSTOP);
  const pid_t child = fork();
  numbers[0] = 2;
  _exit(child == 0 ? 7 : 42);
}

TEST(ForkTest, AStoppedChildDoesNotKeepItsParentForEver) {
  const pid_t parent = fork();
  if (parent == 0) {
    unsetenv("GTEST_TOTAL_SHARDS");  // the shard that has this test may not have that one
    unsetenv("GTEST_SHARD_INDEX");
    execl("/proc/self/exe", "forks", "--gtest_filter=ForkTest.DISABLED_Forks",
          "--gtest_also_run_disabled_tests", nullptr);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  ASSERT_TRUE(WIFSTOPPED(status)) << status;
  ASSERT_EQ(ptrace(PTRACE_SETOPTIONS, parent, nullptr, PTRACE_O_TRACEFORK), 0);
  ASSERT_EQ(ptrace(PTRACE_CONT, parent, nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(parent, &status, 0), parent);  // it forks; the child begins stopped
  ASSERT_EQ(status >> 8, SIGTRAP | (PTRACE_EVENT_FORK << 8));
  unsigned long child = 0;
  ASSERT_EQ(ptrace(PTRACE_GETEVENTMSG, parent, nullptr, &child), 0);
  ASSERT_EQ(waitpid(static_cast<pid_t>(child), &status, __WALL), static_cast<pid_t>(child));
  ASSERT_EQ(ptrace(PTRACE_CONT, parent, nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
  // The memory that it would copy now may be of different moments.
  ASSERT_EQ(ptrace(PTRACE_CONT, static_cast<pid_t>(child), nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(static_cast<pid_t>(child), &status, __WALL), static_cast<pid_t>(child));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 127) << status;
}

// The other threads write to what fork copies, so that each takes long: random_stress has more.
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
  for (int i = 0; i < 6; ++i) {
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
      for (int i = 0; i < 6; ++i) {
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

constexpr size_t kMebi = size_t{1} << 20;

bool IsInHeap(const void* pointer, size_t size_bytes) {
  const HeapView view = Look();
  const auto* begin = static_cast<const std::byte*>(pointer);
  return view.fd >= 0 && begin >= view.base && begin + size_bytes <= view.base + view.mapped_bytes;
}

uint64_t FileMemoryBytes() {
  struct stat file {};
  EXPECT_EQ(fstat(Look().fd, &file), 0);
  return static_cast<uint64_t>(file.st_blocks) * 512;
}

TEST(MallocTest, EveryBlockLiesInTheFile) {
  for (const size_t size :
       {size_t{1}, size_t{100}, size_t{5000}, size_t{70000}, 3 * kMebi, 200 * kMebi}) {
    void* const block = malloc(size);
    EXPECT_TRUE(IsInHeap(block, size)) << size;
    free(block);
  }
  const auto number = std::make_unique<int>(7);
  EXPECT_TRUE(IsInHeap(number.get(), sizeof(int)));
  const std::vector<double> numbers(100000, 1.0);
  EXPECT_TRUE(IsInHeap(numbers.data(), numbers.size() * sizeof(double)));
  void* aligned = nullptr;
  ASSERT_EQ(posix_memalign(&aligned, 1 << 16, 12345), 0);
  EXPECT_TRUE(IsInHeap(aligned, 12345));
  free(aligned);
  char* const text = strdup("what the C library allocates");
  EXPECT_TRUE(IsInHeap(text, 29));
  free(text);
}

TEST(MallocTest, WhoMapsTheFileSeesTheBlock) {
  const size_t size = 10 * kMebi;
  auto* const block = static_cast<unsigned char*>(malloc(size));
  for (size_t i = 0; i < size; ++i) {
    block[i] = static_cast<unsigned char>(i * 7 + (i >> 13));
  }
  const HeapView view = Look();
  void* const peer = mmap(nullptr, view.file_bytes, PROT_READ, MAP_SHARED, view.fd, 0);
  ASSERT_NE(peer, MAP_FAILED);
  const auto offset = reinterpret_cast<std::byte*>(block) - view.base;
  EXPECT_EQ(std::memcmp(static_cast<std::byte*>(peer) + offset, block, size), 0);
  block[size / 2] ^= 1;
  EXPECT_EQ(std::memcmp(static_cast<std::byte*>(peer) + offset, block, size), 0);
  munmap(peer, view.file_bytes);
  free(block);
}

TEST(MallocTest, FileIsSealedAgainstShrinking) {
  const HeapView view = Look();
  ASSERT_GE(view.fd, 0);
  EXPECT_NE(fcntl(view.fd, F_GET_SEALS) & F_SEAL_SHRINK, 0);
  EXPECT_NE(ftruncate(view.fd, 4096), 0);
  EXPECT_NE(fcntl(view.fd, F_ADD_SEALS, F_SEAL_GROW), 0);
  EXPECT_NE(fcntl(view.fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST(MallocTest, OtherVersionsAreRefused) {
  const auto look = reinterpret_cast<HeapViewFunction>(dlsym(RTLD_DEFAULT, kHeapViewSymbol));
  ASSERT_NE(look, nullptr);
  HeapView view{};
  view.version = kHeapViewVersion + 1;
  EXPECT_EQ(look(&view), ENOTSUP);
}

TEST(MallocTest, CallocIsZeroWhereHolesWerePunched) {
  for (int round = 0; round < 4; ++round) {
    for (const size_t size : {size_t{20000}, 3 * kMebi, 40 * kMebi}) {
      auto* const dirty = static_cast<unsigned char*>(malloc(size));
      std::memset(dirty, 0xee, size);
      free(dirty);
      auto* const zero = static_cast<unsigned char*>(calloc(size / 4, 4));
      EXPECT_EQ(std::count(zero, zero + size, 0), static_cast<std::ptrdiff_t>(size)) << size;
      std::memset(zero, 0xdd, size);
      free(zero);
    }
  }
}

TEST(MallocTest, ReallocKeepsTheData) {
  std::string expected;
  char* block = nullptr;
  for (size_t size = 1000; size < 50 * kMebi; size = size * 3 / 2) {
    block = static_cast<char*>(realloc(block, size));
    ASSERT_EQ(std::memcmp(block, expected.data(), expected.size()), 0) << size;
    while (expected.size() < size) {
      expected += static_cast<char>('a' + expected.size() % 23);
    }
    std::memcpy(block, expected.data(), size);
  }
  block = static_cast<char*>(realloc(block, 3000));
  EXPECT_EQ(std::memcmp(block, expected.data(), 3000), 0);
  free(block);
}

TEST(MallocTest, AlignedBlocksAreAligned) {
  for (size_t alignment = 16; alignment <= 8 * kMebi; alignment *= 2) {
    for (const size_t size : {alignment, 3 * alignment}) {
      void* const block = aligned_alloc(alignment, size);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
      EXPECT_TRUE(IsInHeap(block, size));
      std::memset(block, 1, size);
      free(block);
    }
  }
  void* const page = pvalloc(5000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(page) % 4096, 0u);
  EXPECT_GE(malloc_usable_size(page), 8192u);
  free(page);
  free(valloc(100));
  free(memalign(64, 100));
}

TEST(MallocTest, FreedMemoryGoesBackToTheSystem) {
  const uint64_t before = FileMemoryBytes();
  const size_t size = 300 * kMebi;
  void* const block = malloc(size);
  std::memset(block, 1, size);
  EXPECT_GE(FileMemoryBytes(), before + size);
  free(block);
  EXPECT_LT(FileMemoryBytes(), before + 20 * kMebi);
}

TEST(MallocTest, TooMuchIsRefused) {
  const size_t most = std::strtoull("-1", nullptr, 0);  // the compiler knows what these return
  EXPECT_EQ(malloc(most / 2), nullptr);
  EXPECT_EQ(calloc(most / 2, 4), nullptr);
  EXPECT_EQ(pvalloc(most), nullptr);
}

TEST(MallocTest, ThreadsFreeEachOthersBlocks) {
  constexpr size_t kThreads = 4;
  constexpr size_t kRounds = 3;
  constexpr size_t kBlocks = 2000;
  std::vector<std::vector<unsigned char*>> blocks(kThreads, std::vector<unsigned char*>(kBlocks));
  const auto size_of = [](size_t i) { return 16 + i * 37 % 9000; };
  for (size_t round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = 0; i < kBlocks; ++i) {
          blocks[t][i] = static_cast<unsigned char*>(malloc(size_of(i)));
          std::memset(blocks[t][i], static_cast<int>(t + i), size_of(i));
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    threads.clear();
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = 0; i < kBlocks; ++i) {
          unsigned char* const block = blocks[(t + 1) % kThreads][i];
          const auto value = static_cast<unsigned char>((t + 1) % kThreads + i);
          EXPECT_EQ(std::count(block, block + size_of(i), value),
                    static_cast<std::ptrdiff_t>(size_of(i)));
          free(block);
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
}

TEST(MallocTest, RandomCallsGiveWhatTheyShould) { EXPECT_TRUE(RandomBlocks(4711).Steps(100'000)); }

}  // namespace
}  // namespace ferry::malloc_heap
