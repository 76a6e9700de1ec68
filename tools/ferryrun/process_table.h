// Tells a debugger which processes a job has: the starter's side of "The MPIR Process Acquisition
// Interface", version 1.1 (MPI Forum).
//
// The debugger runs ferryrun, or attaches to it, and reads the symbols MPIR_* in its memory. It
// sets MPIR_being_debugged, and a breakpoint at MPIR_Breakpoint, which is called once all processes
// are in MPIR_proctable, and once the job is aborted. Where it has set MPIR_being_debugged before
// the ranks are started, they stand before their first instruction until MPIR_Breakpoint returns:
// so no rank needs MPIR_debug_gate, and those that the debugger does not attach to go on, too.
//
// Main thread; nothing blocks but a debugger.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>

namespace ferry::tools {

// There is one in a process, as the symbols are.
class ProcessTable {
 public:
  explicit ProcessTable(uint32_t ranks) : ranks_(ranks) {}
  ~ProcessTable();
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  // Adds the next rank, from 0 on. `host`: its name, empty: this one. `pid`: -1 if it is not known
  // yet.
  // True: the table is whole now, and the debugger has seen it; ranks that are held are to go on.
  bool Add(const std::string& host, const std::string& program, pid_t pid);
  // Sets, once, the process of a rank that was added with -1. Unknown ranks are ignored. Returns as
  // Add does.
  bool SetPid(uint32_t rank, pid_t pid);
  // Returns true if ranks that are started now are to be held, until one of the above returns true.
  bool IsDebugged();
  // The job is ended because of `reason`; only the first time.
  void SayAborted(const std::string& reason);

 private:
  struct Process {
    std::string host;
    std::string program;
    pid_t pid;
  };
  // Shows the table, once all ranks are known. True: it has been shown now.
  bool Show();

  const uint32_t ranks_;
  std::deque<Process> processes_;  // whose texts stay where they are
  uint32_t known_ = 0;             // with a pid
  bool is_aborted_ = false;
};

}  // namespace ferry::tools
