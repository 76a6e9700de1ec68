// The checking mode (FERRY_SHMEM_CHECK=1, or SHMEM_DEBUG): what a program may not do by the
// standard, and what costs too much to look for all the time (docs/shmem.md).
//
// Nothing here is to be called unless job.is_checking. Then no address counts as one in a local
// PE's heap at first sight (team.h), so that every operation passes ReachSlowly, where its checks
// are.
//
// Calling thread: as of the calls that are checked. Whatever is found ends the program, with a
// sentence. Nothing blocks.
#pragma once

#include <cstddef>
#include <string>

#include "shmem/base/operations.h"
#include "shmem/rma/reach.h"

namespace ferry::shmem {

// Some bytes that a call has been given; `name`: of the argument, for messages.
struct MemoryArgument {
  const char* name = "";
  const void* address = nullptr;
  size_t size = 0;

  const std::byte* begin() const { return static_cast<const std::byte*>(address); }
  const std::byte* end() const { return begin() + size; }
};

// If the bytes are in a symmetric heap, the program has them: they were given out, and not freed.
void CheckGiven(const char* call, const MemoryArgument& bytes);
// They have no byte in common.
void CheckApart(const char* call, const MemoryArgument& one, const MemoryArgument& other);
// A put or a get: `local` is given, and apart from the place that it is copied to or from.
void CheckMove(const char* call, const PeAddress& there, const MemoryArgument& local);
// The same for blocks. `local` is `source` of a put, or `dest` of a get.
void CheckStridedMove(const char* call, const PeAddress& there, const char* local_name,
                      const void* local, const Stride& stride);
// A put with signal: the signal is no part of the data.
void CheckSignal(const char* call, const PeAddress& to, size_t bytes, const PeAddress& signal);

}  // namespace ferry::shmem
