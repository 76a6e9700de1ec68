// Memory that Ferry hands to the application, and memory the application registers.
//
// Host and pinned memory come from one heap segment, made at first use; device memory from the GPU
// backend, one region each. Each region is registered with the daemon (descriptor over the attach
// socket, then RegisterRegion) before its address is given out, and withdrawn before it is freed.
// Memory that libferry_malloc.so hands out is *lent* when a message to a rank of the node first
// needs it: one region of all that there is, and another, larger one when it has grown. A front end
// may *share* memory that it has made itself: a region like the heap. Device memory that the
// program has allocated itself, by its vendor's calls, is *adopted* when a call first names it: a
// region like AllocateDevice's, if other processes can map it; else only this one's streams reach
// it. The vendor is asked again at each use: what was freed meanwhile is withdrawn, and what lies
// there now is adopted anew, under another number.
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
  // MemoryAccess::ShareMemory and UnshareMemory; the size of what is shared at `base`, or 0.
  Status Share(int fd, void* base, uint64_t size_bytes);
  Status Unshare(void* base);
  uint64_t SharedSize(const void* base) const;
  // MemoryAccess::LetDevicesReach of what is shared at `base`.
  Status LetDevicesReach(const void* base);
  // The size of what Allocate returned or Register was given, or 0.
  uint64_t AllocationSize(const void* pointer) const;
  uint64_t RegistrationSize(const void* pointer) const;

  // A heap block for a bounce buffer: a copy of a buffer that others reach in its place. This one
  // is for private memory; null: there is none. `must`: nobody else can reach that memory.
  // Otherwise large blocks leave half of the heap to the application.
  void* AllocateBounceBuffer(uint64_t size_bytes, bool must);
  // The same for device memory, of any size. `kept`: it is registered with the GPU backend, and
  // kept for later messages while nobody else needs the room. Not zeroed.
  StatusOr<void*> AllocateDeviceBounceBuffer(uint64_t size_bytes, bool kept, bool must);
  void FreeBounceBuffer(void* pointer);
  // The heap stays mapped for the life of the process: something may look at it that nobody can
  // wait for, such as a vendor's stream that was destroyed.
  void KeepMapped();

  Status Register(void* pointer, uint64_t size_bytes);
  Status Deregister(void* pointer);

  // Where a buffer lies that a rank of this node is to read. Unlike in regions(), malloc's memory
  // is in a region, if libferry_malloc.so is there. The first look at what it has grown by tells
  // the daemon, and blocks for that.
  shm::Location LocateForNode(const void* pointer, uint64_t size_bytes) {
    const shm::Location known = regions_.FindForNode(pointer, size_bytes);
    return known.region != 0 || !malloc_heap_.Contains(pointer) ? known : Lend(pointer, size_bytes);
  }

  // Tells the user why malloc's memory stays private, if it does although he asked for Ferry's.
  void ExplainMalloc(uint32_t rank) const;

  // Copies between any two kinds of memory; returns when it is done. Asks the vendor if need be.
  Status Copy(void* destination, const void* source, uint64_t size_bytes);
  // What CopyStreams is to know of two ends: the flags tell which only streams reach.
  gpu::DeviceEnds EndsOf(const void* destination, bool is_destination_by_stream, const void* source,
                         bool is_source_by_stream) const;
  // As in gpu::CopyStreams.
  Status CopyStrided(const gpu::StridedCopy& copy);
  Status Reduce(const gpu::Reduction& reduction);
  bool CanReduce(int device, gpu::ReductionType type, gpu::ReductionOp op);
  // Copies a small message to or from memory that the application named, and that was looked at;
  // the other end is ordinary memory. CPUs do, unless the application's end is device memory that
  // only streams reach.
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

  // ---- What a buffer is ------------------------------------------------------------------------
  // A call first looks at each buffer that it is given: IsPlain or LookAt. What it then does goes
  // by IsByStream, which does not ask the vendor again.
  //
  // Whether CPUs reach this memory. Asks the vendor if need be.
  bool IsPlain(const void* pointer) {
    return regions_.addresses().IsPlain(pointer) || IsPlainByLook(pointer);
  }
  // The same for a buffer that need not be plain. kInvalidBuffer for one that begins in device
  // memory that only streams reach, and runs past its end, or that has been freed.
  Status LookAt(const void* pointer, uint64_t size_bytes) {
    return regions_.addresses().IsPlain(pointer) ? Status() : LookCloser(pointer, size_bytes);
  }
  // Whether this is device memory that only streams reach.
  bool IsByStream(const void* pointer) const {
    return regions_.addresses().by_stream().Contains(pointer) && IsRegionByStream(pointer);
  }
  // The device that owns this memory, if only streams reach it; else -1. Looks at it. Of memory
  // that CPUs do not reach, and of which nobody knows more just now, some device: copies say what
  // is wrong with it.
  int DeviceByStream(const void* pointer);
  // Where a buffer lies, in the form that other ranks use for as long as it exists. Looks at it. As
  // OneSided::LocateHere.
  shm::Location LocateForGood(const void* pointer, uint64_t size_bytes);
  // Whether the kernel may refuse other processes this memory, which is no region, although this
  // one's CPUs reach it: drivers make managed and some pinned memory so. Asks the vendor.
  bool IsOutOfKernelsReach(const void* pointer, uint64_t size_bytes) {
    return !regions_.addresses().IsPlain(pointer) && IsHiddenByDriver(pointer, size_bytes);
  }
  // `holds(memory, size_bytes)` says whether requests use that memory, or may once more: until then
  // it stays a region. Before any buffer is looked at.
  void SetHolder(std::function<bool(const void*, uint64_t)> holds) { holds_ = std::move(holds); }
  // Whether this is device memory, whether or not CPUs reach it.
  bool IsDevice(const void* pointer) const;
  // Whether Ferry has, or had, memory that only streams reach.
  bool HasByStream() const { return !regions_.addresses().by_stream().is_empty(); }

  // Null without a GPU backend.
  gpu::CopyStreams* streams() const { return streams_.load(std::memory_order_acquire); }
  // Another one, if the program begins to use a vendor's library. Pairs with Use.
  gpu::GpuBackend* backend() const { return backend_.load(std::memory_order_acquire); }

  const RegionTable& regions() const { return regions_; }

 private:
  struct DeviceAllocation {
    uint32_t region;
    uint64_t size_bytes;
  };
  // The program's own device memory.
  struct Adopted {
    OwnRegion region;
    uint64_t allocation_id = 0;  // 0: the vendor gives none,
    gpu::IpcHandle handle{};     // so its handle of the memory tells
    // Mapped to its addresses piece by piece, with holes. Nobody else maps it, so no piece is
    // stale.
    bool in_pieces = false;
    const void* seen = nullptr;  // where there was some of it at the last look
    bool is_gone = false;        // freed; and nothing else has been seen there since
    bool is_located = false;     // others may name it at any time
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
  Status CheckPieces(const void* pointer, uint64_t size_bytes);
  Status Adopt(const void* pointer, const gpu::PointerInfo& info);
  StatusOr<bool> IsStillThere(const Adopted& adopted, const gpu::PointerInfo& info);
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
  std::function<bool(const void*, uint64_t)> holds_;
  std::map<const void*, uint64_t> registered_;
  struct Shared {
    uint32_t region;
    bool devices_reach;  // the backend knows it
  };
  std::map<const void*, Shared> shared_;
};

}  // namespace ferry::client
