#include "tools/ferryrun/process_table.h"

#include <unistd.h>

#include <climits>
#include <utility>

// The names, types and values are the interface's.

extern "C" {
struct MPIR_PROCDESC {
  char* host_name;
  char* executable_name;
  int pid;
};
}

enum { MPIR_NULL = 0, MPIR_DEBUG_SPAWNED = 1, MPIR_DEBUG_ABORTING = 2 };

extern "C" {
__attribute__((used)) MPIR_PROCDESC* MPIR_proctable = nullptr;
__attribute__((used)) int MPIR_proctable_size = 0;
__attribute__((used)) int MPIR_being_debugged = 0;
__attribute__((used)) int MPIR_debug_state = MPIR_NULL;
__attribute__((used)) char* MPIR_debug_abort_string = nullptr;
// That it exists says that this is the starter, and no process of the job, and that not all
// processes need be acquired.
__attribute__((used)) int MPIR_i_am_starter = 1;
__attribute__((used)) int MPIR_partial_attach_ok = 1;
// That ranks have not come to main() yet when the debugger acquires them.
__attribute__((used)) int MPIR_acquired_pre_main = 0;

// All that was stored before is in memory when a debugger stops here.
__attribute__((noinline, used)) void MPIR_Breakpoint() { asm volatile("" ::: "memory"); }
}

namespace ferry::tools {
namespace {

std::string OwnHostName() {
  char name[HOST_NAME_MAX + 1] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

}  // namespace

ProcessTable::~ProcessTable() {
  delete[] std::exchange(MPIR_proctable, nullptr);
  MPIR_proctable_size = 0;
}

bool ProcessTable::Add(const std::string& host, const std::string& program, pid_t pid) {
  processes_.push_back({host.empty() ? OwnHostName() : host, program, pid});
  known_ += pid >= 0 ? 1 : 0;
  return Show();
}

bool ProcessTable::SetPid(uint32_t rank, pid_t pid) {
  if (rank >= processes_.size() || processes_[rank].pid >= 0) {
    return false;
  }
  processes_[rank].pid = pid;
  ++known_;
  return Show();
}

bool ProcessTable::IsDebugged() {
  asm volatile("" ::: "memory");  // the debugger has stored it, of which the compiler does not know
  if (MPIR_being_debugged == 0) {
    return false;
  }
  MPIR_acquired_pre_main = 1;
  return true;
}

bool ProcessTable::Show() {
  if (known_ < ranks_ || processes_.size() < ranks_ || MPIR_proctable != nullptr) {
    return false;
  }
  MPIR_proctable = new MPIR_PROCDESC[ranks_];
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    Process& process = processes_[rank];
    MPIR_proctable[rank] = {process.host.data(), process.program.data(), process.pid};
  }
  MPIR_proctable_size = static_cast<int>(ranks_);
  MPIR_debug_state = MPIR_DEBUG_SPAWNED;
  MPIR_Breakpoint();
  return true;
}

void ProcessTable::SayAborted(const std::string& reason) {
  if (std::exchange(is_aborted_, true)) {
    return;
  }
  static std::string& text = *new std::string();
  text = reason;
  MPIR_debug_abort_string = text.data();
  MPIR_debug_state = MPIR_DEBUG_ABORTING;
  MPIR_Breakpoint();
}

}  // namespace ferry::tools
