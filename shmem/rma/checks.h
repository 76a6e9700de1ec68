// The checking mode (FERRY_SHMEM_CHECK=1, or SHMEM_DEBUG): finds calls that the standard forbids,
// and that cost too much to look for all the time (docs/shmem.md).
//
// Call these functions only if job.is_checking. Then no address counts as one in a local PE's heap
// at first sight (team.h), so that every operation passes ReachSlowly, where its checks are.
//
// Calling thread: as of the calls that are checked. A check that finds an error ends the program
// with a sentence that says what is wrong. Nothing blocks.
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

// Checks that bytes in a symmetric heap are the program's: they were allocated, and not freed.
void CheckGiven(const char* call, const MemoryArgument& bytes);
// Checks that the two arguments have no byte in common.
void CheckApart(const char* call, const MemoryArgument& one, const MemoryArgument& other);
// Checks a put or a get: `local` is allocated, and apart from the memory that it is copied to or
// from.
void CheckMove(const char* call, const PeAddress& there, const MemoryArgument& local);
// Checks a strided put or get, as CheckMove does, for its blocks. `local` is `source` of a put, or
// `dest` of a get.
void CheckStridedMove(const char* call, const PeAddress& there, const char* local_name,
                      const void* local, const Stride& stride);
// Checks a put with signal: the signal is no part of the data.
void CheckSignal(const char* call, const PeAddress& to, size_t bytes, const PeAddress& signal);

}  // namespace ferry::shmem
