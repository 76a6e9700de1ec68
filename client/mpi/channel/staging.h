// Host memory that collectives copy device memory through.
//
// It is registered with the GPU backend, which copies to and from it at full speed, and kept for
// later calls: registering costs more than most copies. Where there is none left, ordinary memory
// stands in.
//
// Calling thread: any. Take may register memory.
#pragma once

#include <cstddef>

namespace ferry::mpi {

// At least `size_bytes`, aligned to 64 bytes. Null: there is no memory.
void* TakeStaging(size_t size_bytes);
// Gives back what TakeStaging returned; null is nothing.
void GiveStaging(void* memory);

}  // namespace ferry::mpi
