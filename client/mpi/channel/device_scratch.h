// Memory of devices for what collectives work with beside the program's buffers.
//
// To allocate such memory is to make it known to the daemon and the peers, which takes longer than
// most collectives: so blocks are kept for later ones, the oldest of them until there are too many.
//
// Calling thread: any. Take may block on the daemon.
#pragma once

#include <cstddef>

#include "common/status.h"

namespace ferry::mpi {

// Memory aligned to 64 bytes, for libferry's FreeMemory. It is the host's if the device has no room
// left: kernels reach pinned memory, too. kOutOfMemory: there is none there either.
StatusOr<void*> AllocateDeviceScratch(size_t size_bytes, int device);

// The same, at least `size_bytes`, from those that are kept if there is one. Null: out of memory.
void* TakeDeviceScratch(size_t size_bytes, int device);
// False: TakeDeviceScratch has not returned it.
bool GiveDeviceScratch(void* memory);

}  // namespace ferry::mpi
