// The words for buffers in device memory, and for memory that is not there. Pure: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "client/memory/region_table.h"
#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::client {

std::string AddressText(const void* pointer);
// Returns "4096 bytes at 0x7f...".
std::string RangeText(const OwnRegion& region);

// Returns true if this is device memory that CPUs do not reach.
inline bool IsDeviceOnly(const gpu::PointerInfo& info) {
  return info.kind == gpu::PointerKind::kDevice && !info.direct.cpu;
}

// Fails with kInvalidBuffer if the buffer, which begins in the region, runs past its end.
Status CheckEnd(const OwnRegion& region, const void* pointer, uint64_t size_bytes);

}  // namespace ferry::client
