// Copies to and from the private memory of another process of the same user (process_vm_readv,
// writev).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/error_code.h"

namespace ferry {

// Copies all `size_bytes` or fails: kPeerDied (no such process), kPermissionDenied (another user,
// not dumpable, or ptrace is restricted), kInvalidBuffer (not mapped there). Any thread; enters the
// kernel.
ErrorCode ReadProcessMemory(pid_t pid, uint64_t remote_address, void* local, uint64_t size_bytes);
ErrorCode WriteProcessMemory(pid_t pid, uint64_t remote_address, const void* local,
                             uint64_t size_bytes);

// Several copies from one process, or to one, with a call for each kMostProcessCopies of them.
struct ProcessCopy {
  uint64_t remote_address;
  void* local;
  uint64_t size_bytes;
};
inline constexpr size_t kMostProcessCopies = 32;
// Make the first `*done` copies whole, and fail with the next one's error; the others are not
// begun.
ErrorCode ReadProcessMemory(pid_t pid, std::span<const ProcessCopy> reads, size_t* done);
ErrorCode WriteProcessMemory(pid_t pid, std::span<const ProcessCopy> writes, size_t* done);

// Returns true if this process may make these calls for that process.
bool IsProcessMemoryReachable(pid_t pid);

}  // namespace ferry
