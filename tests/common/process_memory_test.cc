// Copies from the private memory of a process: here, of this one.
#include "common/process_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace ferry {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kReads = 3 * kMostProcessCopies + 5;  // several calls

class ProcessReadsTest : public testing::Test {
 protected:
  ProcessReadsTest() : to_(kReads, std::byte{0}) {
    void* const pages =
        mmap(nullptr, kReads * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(pages, MAP_FAILED);
    from_ = static_cast<std::byte*>(pages);
    for (size_t i = 0; i < kReads; ++i) {
      from_[i * kPage] = std::byte(i + 1);
      reads_.push_back({reinterpret_cast<uint64_t>(from_ + i * kPage), &to_[i], 1});
    }
  }
  ~ProcessReadsTest() override { munmap(from_, kReads * kPage); }
  void Unmap(size_t page) { ASSERT_EQ(munmap(from_ + page * kPage, kPage), 0); }
  void ExpectCopied(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
      EXPECT_EQ(to_[i], std::byte(i + 1)) << i;
    }
  }

  std::byte* from_ = nullptr;
  std::vector<std::byte> to_;
  std::vector<ProcessCopy> reads_;
};

TEST_F(ProcessReadsTest, CopiesMoreThanOneCallTakes) {
  size_t done = 0;
  EXPECT_EQ(ReadProcessMemory(getpid(), reads_, &done), ErrorCode::kOk);
  EXPECT_EQ(done, kReads);
  ExpectCopied(0, kReads);
}

TEST_F(ProcessReadsTest, SaysWhichOneFailed) {
  for (const size_t hole : {size_t{0}, size_t{7}, kMostProcessCopies, kReads - 1}) {
    Unmap(hole);
    std::fill(to_.begin(), to_.end(), std::byte{0});
    size_t done = kReads;
    EXPECT_EQ(ReadProcessMemory(getpid(), reads_, &done), ErrorCode::kInvalidBuffer);
    EXPECT_EQ(done, 0U) << "the first page is gone since the first round";
    const std::span after(reads_.data() + 1, kReads - 1);
    EXPECT_EQ(ReadProcessMemory(getpid(), after, &done),
              hole == 0 ? ErrorCode::kOk : ErrorCode::kInvalidBuffer);
    const size_t first_hole = hole == 0 ? kReads - 1 : 6;
    EXPECT_EQ(done, first_hole);
    ExpectCopied(1, 1 + first_hole);
  }
}

TEST_F(ProcessReadsTest, AReadThatBeginsWellAndEndsInAHoleFails) {
  Unmap(1);
  const std::vector<ProcessCopy> reads = {
      {reinterpret_cast<uint64_t>(from_), to_.data(), 1},
      {reinterpret_cast<uint64_t>(from_ + kPage - 8), to_.data() + 1, 16}};
  size_t done = 0;
  EXPECT_EQ(ReadProcessMemory(getpid(), reads, &done), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(done, 1U);
}

TEST_F(ProcessReadsTest, WritesTakeTheOtherDirection) {
  std::vector<ProcessCopy> writes = reads_;
  size_t done = 0;
  for (size_t i = 0; i < writes.size(); ++i) {
    std::memset(writes[i].local, static_cast<int>(i + 1), writes[i].size_bytes);
  }
  EXPECT_EQ(WriteProcessMemory(getpid(), writes, &done), ErrorCode::kOk);
  EXPECT_EQ(done, writes.size());
  for (const ProcessCopy& write : writes) {
    EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(write.remote_address), write.local,
                          write.size_bytes),
              0);
  }
}

TEST_F(ProcessReadsTest, NamesAProcessThatIsGone) {
  size_t done = 0;
  EXPECT_EQ(ReadProcessMemory(0x3fffff, reads_, &done), ErrorCode::kPeerDied);
  EXPECT_EQ(done, 0U);
}

}  // namespace
}  // namespace ferry
