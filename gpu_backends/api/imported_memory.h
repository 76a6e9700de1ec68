// Device memory of another process, mapped here for as long as this object lives.
//
// Any thread. Where the device's memory is not direct, `base` is for streams only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::gpu {

class ImportedMemory {
 public:
  // The backend outlives the result. Errors as of GpuBackend::ImportIpc, and kInvalidArgument for a
  // handle that stands for another place than the allocation's beginning.
  static StatusOr<std::unique_ptr<ImportedMemory>> Import(GpuBackend& backend,
                                                          const IpcHandle& handle);
  ~ImportedMemory();
  ImportedMemory(const ImportedMemory&) = delete;
  ImportedMemory& operator=(const ImportedMemory&) = delete;

  std::byte* base() const { return base_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  ImportedMemory(GpuBackend& backend, std::byte* base, uint64_t size_bytes)
      : backend_(backend), base_(base), size_bytes_(size_bytes) {}

  GpuBackend& backend_;
  std::byte* const base_;
  const uint64_t size_bytes_;
};

}  // namespace ferry::gpu
