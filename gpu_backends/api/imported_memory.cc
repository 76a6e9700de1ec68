#include "gpu_backends/api/imported_memory.h"

namespace ferry::gpu {

StatusOr<std::unique_ptr<ImportedMemory>> ImportedMemory::Import(GpuBackend& backend,
                                                                 const IpcHandle& handle) {
  if (handle.offset_bytes != 0) {
    return Status(ErrorCode::kInvalidArgument,
                  "device memory is shared from its beginning, not from offset " +
                      std::to_string(handle.offset_bytes));
  }
  StatusOr<void*> base = backend.ImportIpc(handle);
  FERRY_RETURN_IF_ERROR(base.status());
  return std::unique_ptr<ImportedMemory>(
      new ImportedMemory(backend, static_cast<std::byte*>(*base), handle.size_bytes));
}

ImportedMemory::~ImportedMemory() { (void)backend_.CloseIpc(base_); }

}  // namespace ferry::gpu
