// This program's malloc is libferry_malloc.so's, which it is linked with. MALLOC_CONF has pages
// given back at once, so that memory is reused after holes were punched.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "client/malloc/heap_view.h"
#include "tests/client/malloc/look.h"
#include "tests/client/malloc/random_blocks.h"

namespace ferry::malloc_heap {
namespace {

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

TEST(MallocTest, RandomCallsGiveWhatTheyShould) {
  RandomBlocks blocks(4711);
  for (int i = 0; i < 100000; ++i) {
    ASSERT_TRUE(blocks.Step()) << "call " << i;
  }
  EXPECT_TRUE(blocks.CheckAll());
}

}  // namespace
}  // namespace ferry::malloc_heap
