// Memory that Ferry hands to the application, and memory the application registers.
//
// Host and pinned memory come from one heap segment, made at first use; device memory from the GPU
// backend, one region each. Each region is made known to the daemon (descriptor over the attach
// socket, then RegisterRegion) before its address is given out, and taken back before it is freed.
//
// Calling thread: any; changes are serialised by a lock and may block on the daemon.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "client/core/attach_connection.h"
#include "client/core/control_library.h"
#include "client/core/offset_allocator.h"
#include "client/core/region_table.h"
#include "common/status.h"
#include "gpu_backends/api/registry.h"
#include "shm/segment.h"

namespace ferry::client {

enum class MemoryKind { kHost, kPinned, kDevice };

class Memory {
 public:
  Memory(uint64_t heap_bytes, gpu::BackendRegistry* backends, AttachConnection* attach,
         ControlLibrary* control);
  ~Memory();

  StatusOr<void*> Allocate(uint64_t size_bytes, MemoryKind kind, int device);
  Status Free(void* pointer);
  // The size of what Allocate returned or Register was given, or 0.
  uint64_t AllocationSize(const void* pointer) const;
  uint64_t RegistrationSize(const void* pointer) const;

  // A heap block of Ferry's own, to stand in for private memory, or null. `must`: nobody else can
  // reach that memory; else a large block leaves half of the heap to the application.
  void* AllocateBounce(uint64_t size_bytes, bool must);
  void FreeBounce(void* pointer);

  Status Register(void* pointer, uint64_t size_bytes);
  Status Deregister(void* pointer);

  // Copies between any two kinds of memory; returns when it is done.
  Status Copy(void* destination, const void* source, uint64_t size_bytes);

  const RegionTable& regions() const { return regions_; }

 private:
  struct DeviceAllocation {
    uint32_t region;
    uint64_t size_bytes;
  };

  StatusOr<void*> AllocateHost(uint64_t size_bytes);  // not zeroed
  StatusOr<void*> AllocateDevice(uint64_t size_bytes, int device);
  Status MakeHeap();
  Status Announce(uint32_t region, uint64_t size_bytes, int fd, uint32_t kind, int device,
                  uint64_t allocation_id);
  gpu::GpuBackend* backend() const;

  const uint64_t heap_bytes_;
  gpu::BackendRegistry* const backends_;
  AttachConnection* const attach_;
  ControlLibrary* const control_;
  RegionTable regions_;

  mutable std::mutex mutex_;
  uint32_t next_region_ = 1;
  shm::Mapping heap_;
  bool heap_refused_ = false;  // when Ferry wanted it for itself
  OffsetAllocator heap_pieces_;
  std::map<const void*, uint64_t> pinned_;  // of the heap's pieces, those the backend knows
  std::map<const void*, DeviceAllocation> device_;
  std::map<const void*, uint64_t> registered_;
};

}  // namespace ferry::client
