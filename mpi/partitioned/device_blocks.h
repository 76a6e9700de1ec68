// Blocks for the words of kernels, in memory that the device accesses fast.
//
// Calling thread: any. TakeDeviceBlock blocks on the daemon when the device needs another slab.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/base/failure.h"

namespace ferry::mpi {

struct DeviceBlock {
  std::byte* data = nullptr;  // null: none
  int device = 0;
  bool is_by_stream = false;  // CPUs do not access it
};

// Takes a block, not zeroed. It is host memory where kernels of emulated devices may not touch
// device memory (option host_link_guard). MPI_ERR_NO_MEM.
Result<DeviceBlock> TakeDeviceBlock(uint64_t size_bytes, int device);
// Gives back a block that neither kernels nor hosts use any more, and clears *block. Does nothing
// if block->data is null.
void GiveDeviceBlock(DeviceBlock* block);

}  // namespace ferry::mpi
