#include "common/process_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace ferry {
namespace {

using ProcessVmCall = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                  unsigned long);

ErrorCode Transfer(ProcessVmCall call, pid_t pid, uint64_t remote_address, char* local,
                   uint64_t size_bytes) {
  while (size_bytes != 0) {
    const iovec here{local, size_bytes};
    const iovec there{reinterpret_cast<void*>(remote_address), size_bytes};
    const ssize_t moved = call(pid, &here, 1, &there, 1, 0);
    if (moved < 0) {
      return errno == ESRCH ? ErrorCode::kPeerDied : ErrorCodeFromErrno(errno);
    }
    if (moved == 0) {
      return ErrorCode::kInvalidBuffer;
    }
    local += moved;
    remote_address += static_cast<uint64_t>(moved);
    size_bytes -= static_cast<uint64_t>(moved);
  }
  return ErrorCode::kOk;
}

}  // namespace

ErrorCode ReadProcessMemory(pid_t pid, uint64_t remote_address, void* local, uint64_t size_bytes) {
  return Transfer(process_vm_readv, pid, remote_address, static_cast<char*>(local), size_bytes);
}

ErrorCode WriteProcessMemory(pid_t pid, uint64_t remote_address, const void* local,
                             uint64_t size_bytes) {
  // The call only reads from `local`; iovec has no const.
  return Transfer(process_vm_writev, pid, remote_address,
                  const_cast<char*>(static_cast<const char*>(local)), size_bytes);
}

ErrorCode ReadProcessMemory(pid_t pid, std::span<const ProcessRead> reads, size_t* done) {
  std::array<iovec, kMostProcessReads> here;
  std::array<iovec, kMostProcessReads> there;
  for (*done = 0; *done < reads.size();) {
    const size_t count = std::min(reads.size() - *done, kMostProcessReads);
    for (size_t i = 0; i < count; ++i) {
      const ProcessRead& read = reads[*done + i];
      here[i] = {read.local, read.size_bytes};
      there[i] = {reinterpret_cast<void*>(read.remote_address), read.size_bytes};
    }
    // The kernel stops at the first bytes that it cannot read.
    ssize_t moved = process_vm_readv(pid, here.data(), count, there.data(), count, 0);
    for (const size_t end = *done + count; *done < end; ++*done) {
      moved -= static_cast<ssize_t>(reads[*done].size_bytes);
      if (moved < 0) {
        break;
      }
    }
    if (moved < 0) {  // asked for this one alone, it says why
      const ProcessRead& next = reads[*done];
      const ErrorCode error =
          ReadProcessMemory(pid, next.remote_address, next.local, next.size_bytes);
      if (error != ErrorCode::kOk) {
        return error;
      }
      ++*done;
    }
  }
  return ErrorCode::kOk;
}

bool IsProcessMemoryReachable(pid_t pid) {
  // Rights are checked before the address, and nothing is mapped at 0.
  char byte = 0;
  const iovec local{&byte, 1};
  const iovec remote{nullptr, 1};
  return process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT;
}

}  // namespace ferry
