// A descriptor of a process, which polls readable once that has ended (pidfd_open, Linux 5.3).
#pragma once

#include <sys/types.h>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry {

// Opens a descriptor of a process. The result is not valid where the system has no such
// descriptors: an older kernel, or a filter of system calls refuses them. Then the caller learns of
// the end in another way. kPeerDied: there is no such process; kSystem. Any thread; does not block.
StatusOr<UniqueFd> OpenProcessHandle(pid_t pid);

// Returns true if the process of that handle has ended. Any thread; does not block.
bool HasEnded(int handle);

// Returns true if this errno means that the kernel does not have the system call, or that a filter
// (seccomp) refuses it.
bool IsRefusedCall(int error_number);

}  // namespace ferry
