// Memory of other processes that a vendor has mapped here.
//
// When a handle is opened again, vendors return the existing mapping or refuse. So each handle is
// opened once, and closed after its last use.
//
// Thread-safe; Open and Close block for as long as the driver maps memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "common/status.h"
#include "gpu_backends/base/allocation_table.h"
#include "gpu_backends/driver/driver.h"
#include "gpu_backends/driver/parked_streams.h"

namespace ferry::gpu {

class Imports {
 public:
  // All of them outlive this. Imports are entered into the table.
  Imports(Driver& driver, AllocationTable& table, ParkedStreams& parked)
      : driver_(driver), table_(table), parked_(parked) {}

  // As of GpuBackend::ImportIpc and CloseIpc.
  StatusOr<void*> Open(int device, const IpcHandle& handle);
  Status Close(void* pointer);

 private:
  using Opaque = std::array<uint8_t, 64>;
  struct Import {
    Opaque opaque{};              // set where there is no descriptor to identify the handle
    std::vector<void*> pointers;  // what Open returned
  };

  // Where the handle's allocation is mapped already; null: nowhere.
  void* FindLocked(const IpcHandle& handle) const;
  StatusOr<void*> MapLocked(int device, const IpcHandle& handle);

  Driver& driver_;
  AllocationTable& table_;
  ParkedStreams& parked_;
  std::mutex mutex_;
  std::map<void*, Import> by_base_;
};

}  // namespace ferry::gpu
