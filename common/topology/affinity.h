// The CPUs on which the kernel lets threads run, and the NUMA nodes from which it takes memory. Any
// thread.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "common/status.h"
#include "common/topology/cpu_set.h"

namespace ferry::topology {

// Returns the CPUs on which a thread (0: the caller; a pid: that process's main thread) may run.
// Errors: kNotFound (no such thread), kSystem.
StatusOr<CpuSet> AffinityOf(pid_t thread);

// Lets the thread run on these CPUs only. Errors: kInvalidArgument (it may run on none of them),
// kPermissionDenied, kSystem.
Status Pin(pthread_t thread, const CpuSet& cpus);
// Lets a thread, by the kernel's number, run on these CPUs only. Errors: those of Pin, and
// kNotFound.
Status PinThread(pid_t thread, const CpuSet& cpus);

// Makes the pages of [base, base + bytes), which begins with a page, come from a NUMA node by its
// number, or from another one once that is full; pages that are there already move. Shared memory
// is bound for all processes that map it. Errors: kInvalidArgument (no such node),
// kPermissionDenied, kSystem.
Status BindMemory(std::byte* base, uint64_t bytes, uint32_t node);

}  // namespace ferry::topology
