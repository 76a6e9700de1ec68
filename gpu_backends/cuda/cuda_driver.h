// CUDA as DriverBackend sees it.
//
// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS is left alone: it makes the synchronous copies of others wait
// for the device, and is meant for memory that a NIC reads behind CUDA's back. Here device memory
// is out of NICs' direct reach, and Ferry's own copies are all asynchronous and waited for by
// events.
#pragma once

#include <memory>
#include <string_view>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

// `library` and the errors are those of CreateCudaBackend.
StatusOr<std::unique_ptr<Driver>> OpenCudaDriver(std::string_view library);

}  // namespace ferry::gpu
