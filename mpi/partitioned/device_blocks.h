// Memory for kernels' words, in which a device is quick.
//
// Calling thread: any. Take blocks on the daemon when the device needs another slab.
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

// Not zeroed. Where emulated devices' kernels may not touch device memory (option host_link_guard)
// it is host memory. MPI_ERR_NO_MEM.
Result<DeviceBlock> TakeDeviceBlock(uint64_t size_bytes, int device);
// Nobody uses it any more. Does nothing to none.
void GiveDeviceBlock(DeviceBlock* block);

}  // namespace ferry::mpi
