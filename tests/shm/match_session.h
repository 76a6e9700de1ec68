// A session segment with a match table, for tests to play with.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shm/journal.h"
#include "shm/layout/lease_layout.h"
#include "shm/layout/match_layout.h"
#include "shm/match_table.h"

namespace ferry::shm {

// An inbox of one page and a session segment {lease, journal, match table}, in a memfd mapped
// shared, with an inaccessible page behind. A copy lies at another address.
class TestSession {
 public:
  explicit TestSession(uint32_t capacity)
      : session_bytes_(kMatchOffset + sizeof(MatchTableLayout) + capacity * sizeof(MatchEntry)) {
    const uint64_t mapped = RoundUp(kPage + session_bytes_);
    const int fd = memfd_create("match_test", MFD_CLOEXEC);
    void* const reserved =
        mmap(nullptr, mapped + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(mapped)) != 0 ||
        mmap(reserved, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != reserved) {
      std::perror("TestSession");
      std::abort();
    }
    close(fd);
    base_ = static_cast<std::byte*>(reserved);
    MatchTable::Initialize(match(), capacity);
  }
  TestSession(const TestSession& other) : TestSession(other.match()->capacity) { CopyFrom(other); }
  TestSession& operator=(const TestSession&) = delete;
  ~TestSession() { munmap(base_, RoundUp(kPage + session_bytes_) + kPage); }

  // `other` has the same capacity.
  void CopyFrom(const TestSession& other) {
    std::memcpy(base_, other.base_, kPage + session_bytes_);
  }
  bool SameBytes(const TestSession& other) const {
    return std::memcmp(base_, other.base_, kPage + session_bytes_) == 0;
  }

  std::byte* inbox() const { return base_; }
  std::byte* session() const { return base_ + kPage; }
  uint64_t session_bytes() const { return session_bytes_; }
  LeaseLayout* lease() const { return reinterpret_cast<LeaseLayout*>(session()); }
  JournalLayout* journal() const {
    return reinterpret_cast<JournalLayout*>(session() + kJournalOffset);
  }
  MatchTableLayout* match() const {
    return reinterpret_cast<MatchTableLayout*>(session() + kMatchOffset);
  }
  MatchEntry* entries() const { return reinterpret_cast<MatchEntry*>(match() + 1); }
  // Words of the caller that change in the same transactions: how many operations were done.
  uint64_t* operations() const { return reinterpret_cast<uint64_t*>(inbox()); }

  Journal MakeJournal() const {
    return Journal(journal(), session(), session_bytes_, inbox(), kPage);
  }

 private:
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kJournalOffset = 256;
  static constexpr uint64_t kMatchOffset = 4096;
  static uint64_t RoundUp(uint64_t size_bytes) { return (size_bytes + kPage - 1) & ~(kPage - 1); }

  std::byte* base_ = nullptr;
  uint64_t session_bytes_;
};

}  // namespace ferry::shm
