// What the kernel says of the worker processes of this test.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ferry::daemon {

std::string ReadFile(const std::string& path);
// Field of /proc/PID/status; empty when there is none.
std::string StatusOf(pid_t pid, const std::string& field);
// This process's workers that have not ended, oldest first.
std::vector<pid_t> Workers();

}  // namespace ferry::daemon
