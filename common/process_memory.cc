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

ErrorCode TransferEach(ProcessVmCall call, pid_t pid, std::span<const ProcessCopy> copies,
                       size_t* done) {
  std::array<iovec, kMostProcessCopies> here;
  std::array<iovec, kMostProcessCopies> there;
  for (*done = 0; *done < copies.size();) {
    const size_t count = std::min(copies.size() - *done, kMostProcessCopies);
    for (size_t i = 0; i < count; ++i) {
      const ProcessCopy& copy = copies[*done + i];
      here[i] = {copy.local, copy.size_bytes};
      there[i] = {reinterpret_cast<void*>(copy.remote_address), copy.size_bytes};
    }
    // The kernel stops at the first bytes that it cannot reach.
    ssize_t moved = call(pid, here.data(), count, there.data(), count, 0);
    for (const size_t end = *done + count; *done < end; ++*done) {
      moved -= static_cast<ssize_t>(copies[*done].size_bytes);
      if (moved < 0) {
        break;
      }
    }
    if (moved < 0) {  // asked for this one alone, it says why
      const ProcessCopy& next = copies[*done];
      const ErrorCode error =
          Transfer(call, pid, next.remote_address, static_cast<char*>(next.local), next.size_bytes);
      if (error != ErrorCode::kOk) {
        return error;
      }
      ++*done;
    }
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

ErrorCode ReadProcessMemory(pid_t pid, std::span<const ProcessCopy> reads, size_t* done) {
  return TransferEach(process_vm_readv, pid, reads, done);
}

ErrorCode WriteProcessMemory(pid_t pid, std::span<const ProcessCopy> writes, size_t* done) {
  return TransferEach(process_vm_writev, pid, writes, done);
}

bool IsProcessMemoryReachable(pid_t pid) {
  // Rights are checked before the address, and nothing is mapped at 0.
  char byte = 0;
  const iovec local{&byte, 1};
  const iovec remote{nullptr, 1};
  return process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT;
}

}  // namespace ferry
