// The system calls that a worker process may make from now on (seccomp).
//
// A worker reads memory that ranks write. Should one of them take it over by that, it has a process
// of its own user, but outside its job: in ferryd's control group and namespaces, not in the
// container or the limits that the rank is in. So a worker makes no others than it needs: none that
// start programs or processes, open sockets, signal or trace other processes, or change what the
// process may do. Where no GPU can be opened, it opens no files and runs no new code either.
//
// What remains: it copies from and to the memory of any process of its user that the kernel lets it
// trace (process_vm_readv, process_vm_writev). That is its work.
#pragma once

#include "common/status.h"

namespace ferry::daemon {

enum class WorkerCalls {
  kCopies,       // what copying between shared memory, processes and ferryd's socket takes
  kWithDrivers,  // and what drivers of GPUs do, when they are opened and later: files, devices,
                 // threads, code
};

// For all threads of the process, and for good. A refused call fails with EPERM. Call it before the
// first look at memory that others write. Does not block. Fails where the kernel has no seccomp.
Status RefuseOtherCalls(WorkerCalls allowed);

}  // namespace ferry::daemon
