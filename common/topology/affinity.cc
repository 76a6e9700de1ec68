#include "common/topology/affinity.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <string>

namespace ferry::topology {
namespace {

using KernelMask = std::array<uint64_t, kMaxCpus / 64>;

}  // namespace

StatusOr<CpuSet> AffinityOf(pid_t thread) {
  KernelMask mask{};
  if (sched_getaffinity(thread, sizeof(mask), reinterpret_cast<cpu_set_t*>(mask.data())) != 0) {
    if (errno == ESRCH) {
      return Status(ErrorCode::kNotFound, "no thread " + std::to_string(thread));
    }
    return StatusFromErrno(errno, "sched_getaffinity of thread " + std::to_string(thread));
  }
  CpuSet cpus;
  for (uint32_t word = 0; word < mask.size(); ++word) {
    for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) {
      cpus.Add(word * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
    }
  }
  return cpus;
}

Status Pin(pthread_t thread, const CpuSet& cpus) {
  const int error = pthread_setaffinity_np(thread, cpus.words().size() * sizeof(uint64_t),
                                           reinterpret_cast<const cpu_set_t*>(cpus.words().data()));
  return error == 0 ? Status() : StatusFromErrno(error, "pinning a thread to CPUs " + cpus.Text());
}

Status PinThread(pid_t thread, const CpuSet& cpus) {
  if (sched_setaffinity(thread, cpus.words().size() * sizeof(uint64_t),
                        reinterpret_cast<const cpu_set_t*>(cpus.words().data())) == 0) {
    return {};
  }
  return errno == ESRCH ? Status(ErrorCode::kNotFound, "no thread " + std::to_string(thread))
                        : StatusFromErrno(errno, "pinning a thread to CPUs " + cpus.Text());
}

// The call itself, for hwloc would need its picture of the machine for this.
Status BindMemory(std::byte* base, uint64_t bytes, uint32_t node) {
  std::array<uint64_t, 16> nodes{};
  if (node >= nodes.size() * 64) {
    return {ErrorCode::kInvalidArgument, "there is no NUMA node " + std::to_string(node)};
  }
  nodes[node / 64] = uint64_t{1} << (node % 64);
  // The kernel takes one bit less than it is told.
  if (syscall(SYS_mbind, base, bytes, MPOL_PREFERRED, nodes.data(), nodes.size() * 64 + 1,
              MPOL_MF_MOVE) != 0) {
    return StatusFromErrno(errno, "binding memory to NUMA node " + std::to_string(node));
  }
  return {};
}

}  // namespace ferry::topology
