// Changes by the program of memory that is watched.
#include "client/direct/memory_monitor.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "common/unique_fd.h"

namespace ferry::client {
namespace {

using progress::MemoryRange;

constexpr size_t kPage = 4096;
constexpr size_t kBytes = 64 * kPage;

std::byte* Map(size_t bytes = kBytes, void* at = nullptr) {
  void* const base = mmap(at, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
  EXPECT_NE(base, MAP_FAILED);
  return static_cast<std::byte*>(base);
}

MemoryRange RangeOf(const void* base, size_t bytes = kBytes) {
  const auto begin = reinterpret_cast<uintptr_t>(base);
  return {begin, begin + bytes};
}

class MemoryMonitorTest : public testing::Test {
 protected:
  void SetUp() override {
    auto monitor = MemoryMonitor::Create();
    if (!monitor.ok()) {
      GTEST_SKIP() << "this system does not let us watch memory: " << monitor.status().message();
    }
    monitor_ = std::move(*monitor);
  }
  Status Watch(const void* base, size_t bytes = kBytes) {
    const MemoryRange range = RangeOf(base, bytes);
    return monitor_->Watch(range.begin, range.end);
  }
  std::byte* MapWatched() {
    std::byte* const base = Map();
    const Status status = Watch(base);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return base;
  }
  // Returns true if some of these pages have gone, as far as is known now.
  bool HasGone(const void* base, size_t bytes = kBytes) {
    std::vector<MemoryRange> gone;
    monitor_->TakeGone(&gone);
    const MemoryRange range = RangeOf(base, bytes);
    bool any = false;
    for (const MemoryRange& one : gone) {
      any |= one.begin < range.end && range.begin < one.end;
    }
    return any;
  }

  std::unique_ptr<MemoryMonitor> monitor_;
};

TEST_F(MemoryMonitorTest, UnmappedMemoryIsKnownWhenTheCallReturns) {
  for (int i = 0; i < 200; ++i) {
    std::byte* const base = MapWatched();
    ASSERT_FALSE(HasGone(base));
    munmap(base, kBytes);
    ASSERT_TRUE(HasGone(base)) << i;
  }
}

TEST_F(MemoryMonitorTest, PartsAreMemoryToo) {
  std::byte* const base = MapWatched();
  munmap(base + 8 * kPage, kPage);
  EXPECT_TRUE(HasGone(base + 8 * kPage, kPage));
  munmap(base, 8 * kPage);
  EXPECT_FALSE(HasGone(base + 16 * kPage, kPage));
  munmap(base, kBytes);
}

TEST_F(MemoryMonitorTest, NewMappingInThePlaceOfAnOldOne) {
  std::byte* const base = MapWatched();
  EXPECT_EQ(Map(kBytes, base), base);
  EXPECT_TRUE(HasGone(base));
  munmap(base, kBytes);
  EXPECT_FALSE(HasGone(base));  // the new one is not watched
}

TEST_F(MemoryMonitorTest, PagesThatAreDropped) {
  std::byte* const base = MapWatched();
  std::memset(base, 1, kBytes);
  ASSERT_EQ(madvise(base, kPage, MADV_DONTNEED), 0);
  EXPECT_TRUE(HasGone(base, kPage));
  EXPECT_EQ(base[0], std::byte{0});  // it is there again, without a fault of ours
  munmap(base, kBytes);
}

TEST_F(MemoryMonitorTest, MovedMemory) {
  std::byte* const base = MapWatched();
  void* const room = Map(4 * kBytes);
  void* const moved = mremap(base, kBytes, 2 * kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, room);
  ASSERT_EQ(moved, room);
  EXPECT_TRUE(HasGone(base));
  munmap(room, 4 * kBytes);
}

TEST_F(MemoryMonitorTest, MallocAndFree) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "its free keeps the memory for a while, mapped";
#endif
  void* const block = std::malloc(4 << 20);  // mapped for itself
  std::memset(block, 1, 4 << 20);
  const auto begin = (reinterpret_cast<uintptr_t>(block) + kPage - 1) / kPage * kPage;
  ASSERT_TRUE(monitor_->Watch(begin, begin + kBytes).ok());
  std::free(block);
  EXPECT_TRUE(HasGone(reinterpret_cast<void*>(begin)));
}

TEST_F(MemoryMonitorTest, MoreThanThereIsRoomForIsAll) {
  std::byte* const base = MapWatched();
  std::byte* const other = MapWatched();
  for (size_t page = 0; page < 64; page += 2) {
    munmap(base + page * kPage, kPage);
    munmap(other + page * kPage, kPage);
    (void)madvise(base + (page + 1) * kPage, kPage, MADV_DONTNEED);
  }
  EXPECT_TRUE(HasGone(&monitor_, 1));
  munmap(base, kBytes);
  munmap(other, kBytes);
}

TEST_F(MemoryMonitorTest, ReadingAndWritingDoNotFault) {
  std::byte* const base = MapWatched();
  for (size_t i = 0; i < kBytes; i += kPage / 2) {
    base[i] = std::byte{7};
  }
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const UniqueFd from(pipe_fds[0]), to(pipe_fds[1]);
  std::byte* const fresh = MapWatched();
  ASSERT_EQ(write(to.get(), base, kPage), static_cast<ssize_t>(kPage));
  ASSERT_EQ(read(from.get(), fresh, kPage), static_cast<ssize_t>(kPage));  // by the kernel
  EXPECT_EQ(std::memcmp(base, fresh, kPage), 0);
  EXPECT_FALSE(HasGone(base));
  munmap(base, kBytes);
  munmap(fresh, kBytes);
}

TEST_F(MemoryMonitorTest, FilesAndHolesAreRefused) {
  const UniqueFd file(memfd_create("f", MFD_CLOEXEC));
  std::byte* const base = Map();
  munmap(base + kPage, kPage);
  EXPECT_FALSE(Watch(base + kPage, kPage).ok());
  munmap(base, kBytes);
  EXPECT_EQ(Watch(base).code(), ErrorCode::kUnsupported);
  const auto code = reinterpret_cast<uintptr_t>(&std::malloc) / kPage * kPage;
  EXPECT_EQ(monitor_->Watch(code, code + kPage).code(), ErrorCode::kUnsupported);
}

TEST_F(MemoryMonitorTest, ThreadsMapAndUnmapWithoutRest) {
  std::atomic<int> running = 2;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        std::byte* const base = MapWatched();
        munmap(base, kBytes);
      }
      --running;
    });
  }
  while (running != 0) {
    std::vector<MemoryRange> gone;
    monitor_->TakeGone(&gone);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(MemoryMonitorTest, AChildIsNotWatched) {
  std::byte* const base = MapWatched();
  const pid_t child = fork();
  if (child == 0) {
    munmap(base, kBytes);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(HasGone(base));
  munmap(base, kBytes);
  EXPECT_TRUE(HasGone(base));
}

TEST_F(MemoryMonitorTest, MemoryOutlivesItsMonitor) {
  std::byte* const base = MapWatched();
  monitor_.reset();
  base[0] = std::byte{1};
  EXPECT_EQ(munmap(base, kBytes), 0);
}

}  // namespace
}  // namespace ferry::client
