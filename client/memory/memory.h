// Memory that Ferry hands to the application, and memory that the application registers.
//
// Host and pinned memory come from one heap segment, made at first use; device memory from the GPU
// backend, one region each. Each region is registered with the daemon (descriptor over the attach
// socket, then RegisterRegion) before its address is given out, and withdrawn before it is freed.
// Memory that libferry_malloc.so hands out is *lent* when a message to a rank of the node first
// needs it: one region of all that there is, and another, larger one when it has grown. A front end
// may *share* memory that it has made itself: a region like the heap. Device memory that the
// program has allocated itself, by its vendor's calls, is *adopted* when a call first names it: a
// region like AllocateDevice's, if other processes can map it; else only this process's streams
// reach it. Memory asks the vendor again at each use: it withdraws what was freed meanwhile, and
// adopts what lies there now anew, under another number.
//
// Calling thread: any; changes are serialised by a lock and may block on the daemon.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/api/front_end.h"
#include "client/bootstrap/attach_connection.h"
#include "client/memory/bounce_buffer_pool.h"
#include "client/memory/last_library.h"
#include "client/memory/malloc_heap.h"
#include "client/memory/offset_allocator.h"
#include "client/memory/region_table.h"
#include "common/status.h"
#include "gpu_backends/api/copy_streams.h"
#include "gpu_backends/api/registry.h"
#include "shm/segment.h"
#include "shm/word_copy.h"

namespace ferry::client {

class Memory {
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
    const shm::Location known = regions_.FindForNode(pointer, size_bytes);
    return known.region != 0 || !malloc_heap_.Contains(pointer) ? known : Lend(pointer, size_bytes);
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

  // ---- Kinds of buffers ------------------------------------------------------------------------
  // A call first looks at each buffer that it is given: IsPlain or LookAt. It then decides by
  // IsByStream, which does not ask the vendor again.
  //
  // Returns true if CPUs reach this memory. Asks the vendor if need be.
  bool IsPlain(const void* pointer) {
    return regions_.addresses().IsPlain(pointer) || IsPlainByLook(pointer);
  }
  // Looks at a buffer as IsPlain does, where device memory is allowed, too. Returns kInvalidBuffer
  // if the buffer begins in device memory that only streams reach, and runs past the end of that
  // memory, or if the memory has been freed.
  Status LookAt(const void* pointer, uint64_t size_bytes) {
    return regions_.addresses().IsPlain(pointer) ? Status() : LookCloser(pointer, size_bytes);
  }
  // Returns true if this is device memory that only streams reach.
  bool IsByStream(const void* pointer) const {
    return regions_.addresses().by_stream().Contains(pointer) && IsRegionByStream(pointer);
  }
  // Returns the device that owns this memory, if only streams reach it; else -1. Looks at the
  // memory first, as LookAt does. For memory that CPUs do not reach, and that no backend knows any
  // more, it returns some device: copies then report what is wrong.
  int DeviceByStream(const void* pointer);
  // Returns where a buffer lies, in the form that other ranks may use for as long as the buffer
  // exists. Looks at it first, as LookAt does. As OneSided::LocateHere.
  shm::Location LocateForGood(const void* pointer, uint64_t size_bytes);
  // Returns true if the kernel may refuse other processes this memory, which is no region, although
  // CPUs of this process reach it: drivers make managed and some pinned memory so. Asks the vendor.
  bool IsOutOfKernelsReach(const void* pointer, uint64_t size_bytes) {
    return !regions_.addresses().IsPlain(pointer) && IsHiddenByDriver(pointer, size_bytes);
  }
  // `holds(memory, size_bytes)` says if requests use that memory, or may once more: until they no
  // longer do, it stays a region. Called before any buffer is looked at.
  void SetHolder(std::function<bool(const void*, uint64_t)> holds) { holds_ = std::move(holds); }
  // Returns true if this is device memory, both where CPUs reach it and where they do not.
  bool IsDevice(const void* pointer) const;
  // Returns true if Ferry has, or had, memory that only streams reach.
  bool HasByStream() const { return !regions_.addresses().by_stream().is_empty(); }

  // Null without a GPU backend.
  gpu::CopyStreams* streams() const { return streams_.load(std::memory_order_acquire); }
  // The backend in use; it changes if the program begins to use a vendor's library. Pairs with Use.
  gpu::GpuBackend* backend() const { return backend_.load(std::memory_order_acquire); }

  const RegionTable& regions() const { return regions_; }

 private:
  struct DeviceAllocation {
    uint32_t region;
    uint64_t size_bytes;
  };
  // Device memory that the program has allocated itself.
  struct Adopted {
    OwnRegion region;
    uint64_t allocation_id = 0;  // 0: the vendor gives none,
    gpu::IpcHandle handle{};     // so its handle of the memory tells
    // The program maps it to addresses that it has reserved: one mapping, or several with holes
    // between them. No other process maps it, so no mapping is stale.
    bool is_mapped = false;
    const void* seen = nullptr;  // an address of it at the last look
    bool is_gone = false;        // freed; and nothing else has been seen there since
    bool is_located = false;     // other ranks may name it at any time
    uint64_t last_look = 0;
  };

  StatusOr<void*> AllocateHost(uint64_t size_bytes);  // not zeroed
  bool HasSpare(uint64_t size_bytes) const;
  void ReleaseBounceBuffer(void* block);
  shm::Location Lend(const void* pointer, uint64_t size_bytes);
  Status LendUpTo(const malloc_heap::HeapView& view);
  Status FreeLocked(void* pointer);
  StatusOr<void*> AllocateDevice(uint64_t size_bytes, int device);
  Status MakeHeap();
  StatusOr<uint32_t> AnnounceHost(int fd, uint64_t size_bytes, uint32_t flags);
  Status AnnounceDevice(gpu::GpuBackend& gpu, OwnRegion* region, const gpu::IpcHandle& handle,
                        const gpu::DirectAccess& direct);
  Status Clear(void* pointer, uint64_t size_bytes);
  bool IsRegionByStream(const void* pointer) const;
  // memory_looks.cc
  void Use(gpu::GpuBackend* backend);
  gpu::GpuBackend* OwnerOf(const void* pointer) const;
  bool HasVendor();
  void LookForVendor();
  bool IsPlainByLook(const void* pointer);
  bool IsSurelyReadable(const void* pointer);
  Status LookCloser(const void* pointer, uint64_t size_bytes);
  Status LookAtProgramsOwn(const void* pointer, uint64_t size_bytes);
  bool IsHiddenByDriver(const void* pointer, uint64_t size_bytes);
  Status CheckAll(const Adopted& first, const void* pointer, uint64_t size_bytes);
  Status AdoptUnlessKnown(const void* pointer, const gpu::PointerInfo& info,
                          const gpu::MemoryPiece& piece);
  Status AdoptAnew(const void* pointer, const gpu::PointerInfo& info);
  Status Adopt(const void* pointer, const gpu::PointerInfo& info);
  StatusOr<bool> IsStillThere(const Adopted& adopted, const void* pointer,
                              const gpu::PointerInfo& info);
  void NoteGone(Adopted* adopted);
  void WithdrawFreed(size_t most_looks);
  void MakeRoom();
  void WithdrawBetween(const std::byte* begin, const std::byte* end);
  void Withdraw(const Adopted& adopted);
  ErrorCode CopyToDevice(void* application, const void* source, uint64_t size_bytes);
  ErrorCode CopyFromDevice(void* destination, const void* application, uint64_t size_bytes);

  const uint64_t heap_bytes_;
  gpu::BackendRegistry* const backends_;
  AttachConnection* const attach_;
  RegionTable regions_;
  const MallocHeap malloc_heap_;
  std::atomic<gpu::GpuBackend*> backend_{nullptr};
  std::atomic<gpu::CopyStreams*> streams_{nullptr};
  std::vector<std::unique_ptr<gpu::CopyStreams>> all_streams_;

  std::mutex vendor_mutex_;  // of the next three
  LastLibrary last_library_;
  const void* const* next_library_ = nullptr;
  std::string why_no_vendor_;
  // Pages that were seen to be readable, at places that their addresses tell.
  static constexpr size_t kReadablePages = 256;
  std::array<std::atomic<uintptr_t>, kReadablePages> readable_{};

  mutable std::mutex mutex_;
  uint32_t next_region_ = 1;
  shm::Mapping heap_;
  bool keeps_mapped_ = false;
  bool heap_refused_ = false;  // making it failed when Ferry wanted it for itself
  OffsetAllocator heap_pieces_;
  uint64_t lent_bytes_ = 0;                 // of malloc's heap
  bool lending_refused_ = false;            // and no message should ask again
  std::map<const void*, uint64_t> pinned_;  // pieces of the heap that the backend knows
  BounceBufferPool bounce_buffers_;         // the backend knows these, too
  std::map<const void*, DeviceAllocation> device_;
  std::map<const std::byte*, Adopted> adopted_;  // by base; none overlap
  uint64_t looks_ = 0;
  uint64_t earlier_looks_ = 0;  // before the call that looks now
  std::function<bool(const void*, uint64_t)> holds_;
  std::map<const void*, uint64_t> registered_;
  struct Shared {
    uint32_t region;
    bool devices_reach;  // the backend knows it
  };
  std::map<const void*, Shared> shared_;
};

}  // namespace ferry::client
