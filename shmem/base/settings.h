// The environment's settings of the symmetric heap (OpenSHMEM 1.5, section 8).
//
// Pure functions, but for FindHeapSize, which reads the environment: any thread that does not
// change it meanwhile. Nothing blocks.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/status.h"

namespace ferry::shmem {

// Parses a size as SHMEM_SYMMETRIC_SIZE has it: "64M", "1.5g", "20e6"; suffixes k, m, g, t of
// either case count in powers of 1024. A fraction of a byte is rounded up. kConfiguration for
// anything else.
StatusOr<uint64_t> ParseSize(std::string_view text);

// The largest size of a PE's heap: SHMEM_SYMMETRIC_SIZE or, as before OpenSHMEM 1.4,
// SMA_SYMMETRIC_SIZE; else `option_bytes`; else, where that is 0, the PE's part of half of the
// machine's memory: that is the default. `pes`: of this node. kConfiguration, naming the variable
// and the values that it may have.
struct HeapSize {
  uint64_t bytes = 0;
  bool is_default = false;
};
StatusOr<HeapSize> FindHeapSize(uint64_t option_bytes, int pes);

// Returns the size of the machine's memory, the most that a region may have.
uint64_t MachineBytes();

}  // namespace ferry::shmem
