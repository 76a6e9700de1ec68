// The limit of a process's open files: daemon and launcher hold several for each rank of the node,
// more than the 1,024 of a usual soft limit.
#pragma once

#include <cstdint>

namespace ferry {

struct OpenFiles {
  uint64_t open = 0;   // 0: unknown, for there is no /proc
  uint64_t limit = 0;  // RLIMIT_NOFILE, soft
};

// Counts the open files of this process. Any thread; takes some microseconds for each hundred that
// are open.
OpenFiles CountOpenFiles();

// Raises the soft limit (RLIMIT_NOFILE) to the hard one. Once, in main, before there are threads.
// Where the kernel refuses, the limit stays as it is.
void RaiseOpenFiles();

// For a child before it executes a program: restores the soft limit from before its parent called
// RaiseOpenFiles, since some programs count on descriptors below 1,024 (select). Async-signal-safe.
void RestoreOpenFiles();

// Gives a thread a table of descriptors of its own, so that it, and the processes that it forks, do
// not hold those of the other threads: a copy of the whole. Any thread, for itself. Descriptors
// that are dropped are closed, which may block for as long as their kind of file likes. False: not
// possible (Linux before 5.9, if a filter of system calls refuses unshare, too).
bool OwnDescriptors();
// Gives the calling thread such a table with the descriptor `kept` only.
bool OwnDescriptors(int kept);

// Returns the largest descriptor of the calling thread; -1: unknown, for there is no /proc.
int LastDescriptor();

}  // namespace ferry
