// Memory that Ferry hands to the application, and memory that the application registers.
//
// Host and pinned memory come from one heap segment, made at first use; device memory from the GPU
// backend, one region each. Each region is registered with the daemon (descriptor over the attach
// socket, then RegisterRegion) before its address is given out, and withdrawn before it is freed.
// Memory that libferry_malloc.so hands out is *lent* when a message to a rank of the node first
// needs it: one region of all that there is, and another, larger one when it has grown. A front end
// may *share* memory that it has made itself: a region like the heap. Device memory of the
// program's own is *adopted* (adopted_memory.h).
//
// Calling thread: any; changes are serialised by a lock and may block on the daemon.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include "client/api/front_end.h"
#include "client/bootstrap/attach_connection.h"
#include "client/memory/bounce_buffer_pool.h"
#include "client/memory/buffer_looks.h"
#include "client/memory/offset_allocator.h"
#include "common/status.h"
#include "gpu_backends/api/copy_streams.h"
#include "gpu_backends/api/registry.h"
#include "shm/segment.h"
#include "shm/word_copy.h"

namespace ferry::client {

class Memory : public BufferLooks {
 public:
  Memory(uint64_t heap_bytes, gpu::BackendRegistry* backends, AttachConnection* attach);
  ~Memory();

  StatusOr<void*> Allocate(uint64_t size_bytes, MemoryKind kind, int device);
  Status Free(void* pointer);
  // MemoryAccess::ShareMemory and UnshareMemory. SharedSize returns the size of what is shared at
  // `base`, or 0.
  Status Share(int fd, void* base, uint64_t size_bytes);
  Status Unshare(void* base);
  uint64_t SharedSize(const void* base) const;
  // MemoryAccess::LetDevicesReach for the memory that is shared at `base`.
  Status LetDevicesReach(const void* base);
  // Return the size of what Allocate returned or Register was given, or 0.
  uint64_t AllocationSize(const void* pointer) const;
  uint64_t RegistrationSize(const void* pointer) const;

  // Allocates a heap block for a bounce buffer of private memory: a copy that other ranks reach in
  // place of the buffer. Null: there is none. `must`: no other rank can reach the private memory
  // itself. Without it, large blocks leave half of the heap to the application.
  void* AllocateBounceBuffer(uint64_t size_bytes, bool must);
  // Allocates a heap block for a bounce buffer of device memory, of any size; `must` as in
  // AllocateBounceBuffer. `kept`: registers the block with the GPU backend, and keeps it for later
  // messages while the room is not needed otherwise. Not zeroed.
  StatusOr<void*> AllocateDeviceBounceBuffer(uint64_t size_bytes, bool kept, bool must);
  void FreeBounceBuffer(void* pointer);
  // Keeps the heap mapped for the life of the process: a part of the system may still read it
  // without a way to wait for its end, such as a vendor's stream that was destroyed.
  void KeepMapped();

  Status Register(void* pointer, uint64_t size_bytes);
  Status Deregister(void* pointer);

  // Returns where a buffer lies that a rank of this node is to read. Unlike in regions(), malloc's
  // memory is in a region, if libferry_malloc.so is there. The first call after the malloc heap has
  // grown tells the daemon, and blocks for that.
  shm::Location LocateForNode(const void* pointer, uint64_t size_bytes) {
    const shm::Location known = state_.regions.FindForNode(pointer, size_bytes);
    return known.region != 0 || !state_.malloc_heap.Contains(pointer) ? known
                                                                      : Lend(pointer, size_bytes);
  }

  // Tells the user why malloc's memory stays private, if it does although the user asked for
  // Ferry's malloc.
  void ExplainMalloc(uint32_t rank) const;

  // Copies between any two kinds of memory; returns when the copy is done. Asks the vendor if need
  // be.
  Status Copy(void* destination, const void* source, uint64_t size_bytes);
  // Describes the two ends of a copy for gpu::CopyStreams. The flags say of each end if only
  // streams reach it.
  gpu::DeviceEnds EndsOf(const void* destination, bool is_destination_by_stream, const void* source,
                         bool is_source_by_stream) const;
  // These three are as in gpu::CopyStreams.
  Status CopyStrided(const gpu::StridedCopy& copy);
  Status Reduce(const gpu::Reduction& reduction);
  bool CanReduce(int device, gpu::ReductionType type, gpu::ReductionOp op);
  // Copies a small message to or from memory that the application named, and that IsPlain or LookAt
  // was called for; the other end is ordinary memory. CPUs copy, unless the application's end is
  // device memory that only streams reach.
  ErrorCode CopyTo(void* application, const void* source, uint64_t size_bytes) {
    if (IsByStream(application)) {
      return CopyToDevice(application, source, size_bytes);
    }
    shm::CopyWords(application, source, size_bytes);
    return ErrorCode::kOk;
  }
  ErrorCode CopyFrom(void* destination, const void* application, uint64_t size_bytes) {
    if (IsByStream(application)) {
      return CopyFromDevice(destination, application, size_bytes);
    }
    if (size_bytes != 0) {  // else either may be null
      std::memcpy(destination, application, size_bytes);
    }
    return ErrorCode::kOk;
  }

 private:
  struct DeviceAllocation {
    uint32_t region;
    uint64_t size_bytes;
  };

  StatusOr<void*> AllocateHost(uint64_t size_bytes);  // not zeroed
  bool HasSpare(uint64_t size_bytes) const;
  void ReleaseBounceBuffer(void* block);
  shm::Location Lend(const void* pointer, uint64_t size_bytes);
  Status LendUpTo(const malloc_heap::HeapView& view);
  Status FreeLocked(void* pointer);
  StatusOr<void*> AllocateDevice(uint64_t size_bytes, int device);
  Status MakeHeap();
  Status Clear(void* pointer, uint64_t size_bytes);
  ErrorCode CopyToDevice(void* application, const void* source, uint64_t size_bytes);
  ErrorCode CopyFromDevice(void* destination, const void* application, uint64_t size_bytes);

  const uint64_t heap_bytes_;

  // Under the mutex of the state:
  shm::Mapping heap_;
  bool keeps_mapped_ = false;
  bool heap_refused_ = false;  // making it failed when Ferry wanted it for itself
  OffsetAllocator heap_pieces_;
  uint64_t lent_bytes_ = 0;                 // of malloc's heap
  bool lending_refused_ = false;            // and no message should ask again
  std::map<const void*, uint64_t> pinned_;  // pieces of the heap that the backend knows
  BounceBufferPool bounce_buffers_;         // the backend knows these, too
  std::map<const void*, DeviceAllocation> device_;
  std::map<const void*, uint64_t> registered_;
  struct Shared {
    uint32_t region;
    bool devices_reach;  // the backend knows it
  };
  std::map<const void*, Shared> shared_;
};

}  // namespace ferry::client
