// The fields of /proc/PID/stat (proc(5)) about a process or a thread.
//
// Any thread; does not block.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace ferry {

struct ProcessStat {
  pid_t pid = -1;     // -1: there is no such process, no /proc, or the text is not of this form
  char state = '\0';  // 'R' runs or is ready to, 'S' sleeps, 'T' is stopped, 'Z' has ended, ...
  pid_t parent = -1;
  pid_t session = -1;
  int cpu = -1;  // on which it runs, ran last, or waits to run
  // The address at which the memory of brk(2) begins; 0: there is none, or the kernel hides that of
  // another process.
  uint64_t heap_begin = 0;
};

// Reads the text of such a file.
ProcessStat ParseProcessStat(std::string_view text);

// Reads the file of the process or thread with that folder: "/proc/12" or "/proc/12/task/13".
ProcessStat ReadProcessStat(const std::string& folder);
ProcessStat ReadProcessStat(pid_t pid);

}  // namespace ferry
