// Messages that the environment asks shmem_init to print (OpenSHMEM 1.5, section 8), on PE 0, on
// the standard error output: SHMEM_VERSION, of which version the library is; SHMEM_INFO, which
// variables there are, what they mean, and how they are set; SHMEM_DEBUG, that calls are checked
// (checks.h). Any value but an empty one counts; so do the names of before 1.4, SMA_VERSION and so
// on.
// Calling thread: that of shmem_init. Nothing blocks.
#pragma once

#include <cstdint>

#include "config/options.h"

namespace ferry::shmem {

// Returns true if SHMEM_DEBUG or the option shmem_check asks for the checking mode.
bool AsksForChecks(const config::Options& options);

// Prints on PE 0 the messages that are asked for. `heap_bytes`: how large the symmetric heap is.
void Announce(const config::Options& options, uint64_t heap_bytes, bool is_checking);

}  // namespace ferry::shmem
