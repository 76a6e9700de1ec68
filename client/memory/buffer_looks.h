// Tells what a buffer is that a call is given: memory that CPUs reach, or device memory that only
// streams do, and where it lies.
//
// A call first looks at each buffer that it is given: IsPlain or LookAt. It then decides by
// IsByStream, which does not ask the vendor again.
//
// Calling thread: any. Looks at device memory of the program's own may block on the daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "client/memory/adopted_memory.h"
#include "client/memory/memory_state.h"
#include "common/status.h"
#include "shm/layout/descriptor.h"

namespace ferry::client {

class BufferLooks {
 public:
  BufferLooks(gpu::BackendRegistry* backends, AttachConnection* attach)
      : state_(backends, attach), adopted_(&state_) {}

  // Returns true if CPUs reach this memory. Asks the vendor if need be.
  bool IsPlain(const void* pointer) {
    return state_.regions.addresses().IsPlain(pointer) || IsPlainByLook(pointer);
  }
  // Looks at a buffer as IsPlain does, where device memory is allowed, too. Returns kInvalidBuffer
  // if the buffer begins in device memory that only streams reach, and runs past the end of that
  // memory, or if the memory has been freed.
  Status LookAt(const void* pointer, uint64_t size_bytes) {
    return state_.regions.addresses().IsPlain(pointer) ? Status() : LookCloser(pointer, size_bytes);
  }
  // Returns true if this is device memory that only streams reach.
  bool IsByStream(const void* pointer) const {
    return state_.regions.addresses().by_stream().Contains(pointer) && IsRegionByStream(pointer);
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
    return !state_.regions.addresses().IsPlain(pointer) && IsHiddenByDriver(pointer, size_bytes);
  }
  // See AdoptedMemory::SetHolder.
  void SetHolder(std::function<bool(const void*, uint64_t)> holds) {
    adopted_.SetHolder(std::move(holds));
  }
  // Returns true if this is device memory, both where CPUs reach it and where they do not.
  bool IsDevice(const void* pointer) const;
  // Returns true if Ferry has, or had, memory that only streams reach.
  bool HasByStream() const { return !state_.regions.addresses().by_stream().is_empty(); }

  // Null without a GPU backend.
  gpu::CopyStreams* streams() const { return state_.gpu.streams(); }
  // The backend in use; it changes if the program begins to use a vendor's library.
  gpu::GpuBackend* backend() const { return state_.gpu.backend(); }

  const RegionTable& regions() const { return state_.regions; }

 protected:
  ~BufferLooks() = default;

  MemoryState state_;

 private:
  bool IsRegionByStream(const void* pointer) const;
  bool IsPlainByLook(const void* pointer);
  Status LookCloser(const void* pointer, uint64_t size_bytes);
  bool IsHiddenByDriver(const void* pointer, uint64_t size_bytes);

  AdoptedMemory adopted_;
};

}  // namespace ferry::client
