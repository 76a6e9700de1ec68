// Limits the system calls that a worker process may make (seccomp).
//
// A worker reads memory that ranks write. A rank that takes the worker over by such memory has a
// process of its own user, but outside its job: in ferryd's control group and namespaces, not in
// the container or the limits that the rank is in. So a worker may make only the system calls that
// it needs: none that start programs or processes, open sockets, signal or trace other processes,
// or change what the process may do. Where no GPU can be opened, it opens no files and runs no new
// code either.
//
// One power remains, since it is the worker's work: it copies from and to the memory of any process
// of its user that the kernel lets it trace (process_vm_readv, process_vm_writev).
#pragma once

#include "common/status.h"

namespace ferry::daemon {

enum class WorkerCalls {
  kCopies,       // the calls for copies between shared memory, processes and ferryd's socket
  kWithDrivers,  // and those of GPU drivers, when they are opened and later: files, devices,
                 // threads, code
};

// Refuses all other calls to all threads of the process, for good. A refused call fails with EPERM.
// Call it before the process reads memory that others write. Does not block. Fails where the kernel
// has no seccomp.
Status RefuseOtherCalls(WorkerCalls allowed);

}  // namespace ferry::daemon
