// A descriptor of a process, which polls readable once that has ended (pidfd_open, Linux 5.3).
#pragma once

#include <sys/types.h>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry {

// Not valid where the system has no such descriptors: an older kernel, or a filter of system calls
// refuses them. Then the caller learns of the end in another way. kPeerDied: there is no such
// process; kSystem. Any thread; does not block.
StatusOr<UniqueFd> OpenProcessHandle(pid_t pid);

// Whether the process of that handle has ended. Any thread; does not block.
bool HasEnded(int handle);

// Whether a system call that ended with this errno is one that the kernel does not have, or that a
// filter (seccomp) refuses.
bool IsRefusedCall(int error_number);

}  // namespace ferry
