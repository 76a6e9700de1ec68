// In the checking mode (checks.h), the PEs of a team or an active set compare each collective call
// before they carry it out: which function, how much, from which root, and with which symmetric
// memory. All calls that PEs meet in are compared, those for memory and teams, too, so that calls
// in another order are reported by name wherever they are.
//
// Calling thread: that of the collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "shmem/base/assembly.h"
#include "shmem/base/job.h"

namespace ferry::shmem {

// The arguments that a PE has passed to a collective. Members keep their defaults for arguments
// that the function does not have.
struct CollectiveCall {
  const void* dest = nullptr;
  size_t dest_bytes = 0;
  const void* source = nullptr;
  size_t source_bytes = 0;
  bool may_be_in_place = false;  // dest and source may be the same
  uint64_t amount = 0;           // the same on all PEs: of bytes, or of elements
  bool counts_elements = false;
  int root = -1;
  ptrdiff_t dest_stride = 0;
  ptrdiff_t source_stride = 0;
};

// Checks the memory, then compares the calls of all PEs. Blocks until all PEs of the assembly have
// called it. If a call differs, ends the program with a sentence that names the PE and both calls.
void CompareCalls(const char* call, Assembly& assembly, const CollectiveCall& own);

inline void CheckCollective(const char* call, Assembly& assembly, const CollectiveCall& own) {
  if (job.is_checking) [[unlikely]] {
    CompareCalls(call, assembly, own);
  }
}

}  // namespace ferry::shmem
