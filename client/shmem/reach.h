// From an address of this PE to the same place in another PE's memory: what each put, get and
// atomic begins with.
//
// Calling thread: any. Nothing blocks. What cannot be ends the program with a sentence.
#pragma once

#include <cstddef>

#include "client/shmem/job.h"
#include "client/shmem/team.h"

namespace ferry::shmem {

// Finds out what is wrong, or that the address lies in static data.
std::byte* ReachSlowly(const char* call, const Context* context, const void* address, size_t bytes,
                       int pe);

inline std::byte* Reach(const char* call, const Context* context, const void* address, size_t bytes,
                        int pe) {
  if (context != nullptr) [[likely]] {
    const Team& team = *context->team;
    if (team.Has(pe) && job.heap.Contains(address, bytes)) [[likely]] {
      return const_cast<std::byte*>(static_cast<const std::byte*>(address)) + team.heap_shifts[pe];
    }
  }
  return ReachSlowly(call, context, address, bytes, pe);
}

// Ends the program unless all of these bytes are symmetric memory. `argument`: its name in
// messages.
void CheckSymmetric(const char* call, const char* argument, const void* address, size_t bytes);

}  // namespace ferry::shmem
