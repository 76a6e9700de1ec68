// Tells which memory of this process has been unmapped. The rank needs it for memory that stays
// registered with the network after the transfer for which it was registered.
//
// A userfaultfd reports munmap, mremap, and madvise that drops pages; also those that free and
// malloc make by themselves, and a new mapping in the place of an old one. The memory is watched
// for write protection, which is never set: so no access to it ever faults. A thread that unmaps
// watched memory waits until the monitor's thread has noted it, some 50 microseconds: once munmap
// has returned, TakeGone knows it. The monitor's thread holds the monitor's lock while it reads,
// and under the lock nothing is allocated or freed, which could itself be such a munmap.
//
// A child that a fork makes has no monitor.
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
  // kUnsupported: the system has no userfaultfd, or does not allow it.
  static StatusOr<std::unique_ptr<MemoryMonitor>> Create();
  // Stops watching all memory.
  ~MemoryMonitor();
  MemoryMonitor(const MemoryMonitor&) = delete;
  MemoryMonitor& operator=(const MemoryMonitor&) = delete;

  // Watches these pages until they are unmapped. kUnsupported: the kernel cannot watch them; or
  // some of them belong to a file, or are not mapped.
  Status Watch(uintptr_t begin, uintptr_t end);
  // Appends the watched memory that has been unmapped since the last call.
  void TakeGone(std::vector<progress::MemoryRange>* gone);

 private:
  MemoryMonitor() = default;
  void Run();
  void Note(uint64_t begin, uint64_t end);

  UniqueFd events_;  // the userfaultfd
  UniqueFd stop_;
  std::mutex mutex_;
  // The next three are guarded by mutex_.
  std::array<progress::MemoryRange, 64> noted_;
  size_t noted_count_ = 0;
  bool is_full_ = false;  // more was unmapped than noted_ has room for
  std::thread thread_;
};

}  // namespace ferry::client
