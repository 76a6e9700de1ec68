// Memory of devices for what collectives work with beside the program's buffers.
//
// To allocate such memory is to make it known to the daemon and the peers, which takes longer than
// most collectives: so blocks are kept for later ones, the oldest of them until there are too many.
//
// Calling thread: any. Take may block on the daemon.
#pragma once

#include <cstddef>

namespace ferry::mpi {

// At least `size_bytes`, aligned to 64 bytes; of the host, where the device has no room left: its
// kernels reach pinned memory, too. Null: there is none there either.
void* TakeDeviceScratch(size_t size_bytes, int device);
// Gives back what TakeDeviceScratch returned.
void GiveDeviceScratch(void* memory);

}  // namespace ferry::mpi
