// Work memory of collectives beside the program's buffers: of devices, and of the host to copy
// device memory through.
//
// Calling thread: any. Functions that take memory from a device, or from libferry, may register it
// first, and block on the daemon.
#pragma once

#include <cstddef>

#include "common/status.h"

namespace ferry::mpi {

// Takes host memory to copy device memory through, aligned to 64 bytes: a block of libferry's that
// the GPU backend knows (MemoryAccess::TakeBounceBuffer), or, where there is none left, ordinary
// memory. Null: there is no memory.
void* TakeStaging(size_t size_bytes);
// Gives back what TakeStaging or AllocateAligned
// (coll/messages/front_messenger.h) returned; does nothing for null.
void GiveStaging(void* memory);

// Allocates memory of a device, aligned to 64 bytes, for libferry's FreeMemory. It is the host's if
// the device has no room left: kernels reach pinned memory, too. kOutOfMemory: there is none there
// either.
StatusOr<void*> AllocateDeviceScratch(size_t size_bytes, int device);

// Takes at least `size_bytes` of a device's memory, from the blocks that are kept. To allocate such
// memory is to make it known to the daemon and the peers, which takes longer than most collectives:
// so blocks are kept for later ones, and the oldest is freed when there are too many. Null: out of
// memory.
void* TakeDeviceScratch(size_t size_bytes, int device);
// Gives a block back. False: TakeDeviceScratch has not returned it.
bool GiveDeviceScratch(void* memory);

}  // namespace ferry::mpi
