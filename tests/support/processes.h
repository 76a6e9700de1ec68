// The kernel's information on processes, and on files, for tests.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ferry::tests {

// All that is in the file; empty when there is none.
std::string ReadFile(const std::string& path);
// Field of /proc/PID/status; empty when there is none.
std::string StatusOf(pid_t pid, const std::string& field);
// Stops it by SIGSTOP, and returns once all its threads have stopped.
void Stop(pid_t pid);
// The ferry-worker processes with this parent that have not ended, oldest first.
std::vector<pid_t> WorkersOf(pid_t parent);
// Paths of the descriptors of shared memory that the process holds.
std::vector<std::string> MemfdsOf(pid_t pid);

}  // namespace ferry::tests
