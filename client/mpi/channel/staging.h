// Host memory that collectives copy device memory through.
//
// A block of libferry's that the GPU backend knows (FrontEnd::TakeShadow), or, where there is none
// left, ordinary memory.
//
// Calling thread: any. Take may register memory.
#pragma once

#include <cstddef>

namespace ferry::mpi {

// At least `size_bytes`, aligned to 64 bytes. Null: there is no memory.
void* TakeStaging(size_t size_bytes);
// Gives back what TakeStaging returned; does nothing for null.
void GiveStaging(void* memory);

}  // namespace ferry::mpi
