// Says which memory of this process has gone: for what was registered with the network, and stays
// so after the transfer that it was needed for.
//
// A userfaultfd tells of munmap, mremap, and madvise that drops pages; also of those that free and
// malloc make by themselves, and of a new mapping in the place of an old one. The memory is watched
// for write protection, which nobody sets: so no access to it ever faults. Whoever unmaps memory
// that is watched waits until a thread of the monitor's has noted that, some 50 microseconds: once
// munmap has returned, TakeGone knows it. That thread holds the monitor's lock while it reads, and
// under the lock nothing is allocated or freed, which could itself be such a munmap.
//
// A child that a fork makes is watched by nobody.
//
// Calling thread: Watch any, TakeGone one at a time. Does not block, but for that lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "internode/delivery/home.h"

namespace ferry::client {

class MemoryMonitor {
 public:
  // kUnsupported: the system has no such thing, or does not allow it.
  static StatusOr<std::unique_ptr<MemoryMonitor>> Create();
  // No memory is watched any more.
  ~MemoryMonitor();
  MemoryMonitor(const MemoryMonitor&) = delete;
  MemoryMonitor& operator=(const MemoryMonitor&) = delete;

  // Watches these pages until they go. kUnsupported: the kernel cannot; some of it is of a file,
  // or is not mapped.
  Status Watch(uintptr_t begin, uintptr_t end);
  // Appends what has gone of the memory that is watched since the last call.
  void TakeGone(std::vector<progress::MemoryRange>* gone);

 private:
  MemoryMonitor() = default;
  void Run();
  void Note(uint64_t begin, uint64_t end);

  UniqueFd events_;  // the userfaultfd
  UniqueFd stop_;
  std::mutex mutex_;
  // Under it.
  std::array<progress::MemoryRange, 64> noted_;
  size_t noted_count_ = 0;
  bool is_full_ = false;  // more has gone than there was room for
  std::thread thread_;
};

}  // namespace ferry::client
