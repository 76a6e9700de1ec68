// Memory of a rank and of its devices, for front ends (front_end.h): allocating it, sharing it,
// copying it, and letting devices reach it.
//
// Calling thread: any that the thread level allows; after NodePeers::SetThreads(true), any.
// Functions that block say so.
#pragma once

#include <cstdint>

#include "common/status.h"
#include "gpu_backends/api/reduction.h"
#include "gpu_backends/api/strided_copy.h"
#include "gpu_backends/api/types.h"

namespace ferry::client {

enum class MemoryKind { kHost, kPinned, kDevice };

class MemoryAccess {
 public:
  virtual StatusOr<void*> AllocateMemory(uint64_t size_bytes, MemoryKind kind, int device) = 0;
  virtual Status FreeMemory(void* pointer) = 0;
  // Gives the caller's own memory the properties of AllocateMemory's: ranks of the node may map it,
  // and the network reaches it. `fd` is a sealed memfd (shm/segment.h) of `size_bytes`, all of
  // which is mapped, shared, at `base` until UnshareMemory. Untouched pages take no memory. Both
  // block on the daemon. kLimitExceeded: the user's quota of regions. kInvalidBuffer: a request
  // that is not complete uses it, or it is not shared.
  virtual Status ShareMemory(int fd, void* base, uint64_t size_bytes) = 0;
  virtual Status UnshareMemory(void* base) = 0;
  // A heap block for a bounce buffer of device memory: registered with the GPU backend, which then
  // copies at full speed, and kept for reuse while no other allocation needs the room. Not zeroed.
  // Null if it would take room from the half of the heap that is the application's.
  virtual void* TakeBounceBuffer(uint64_t size_bytes) = 0;
  // Gives the block back. False: TakeBounceBuffer has not returned it.
  virtual bool GiveBounceBuffer(void* bounce_buffer) = 0;
  // Copies between any two kinds of memory; blocks until it is done.
  virtual Status Copy(void* destination, const void* source, uint64_t size_bytes) = 0;
  // The device copies between blocks of its memory and any other memory; blocks until it is done.
  // kUnsupported: the device cannot, so Copy has to move the blocks one by one.
  virtual Status CopyStrided(const gpu::StridedCopy& copy) = 0;
  // Reduces on the device that owns the result's memory, or else an operand's; blocks until it is
  // done. Errors as of gpu::Stream::Reduce. kUnsupported where CanReduce says no, or some memory
  // belongs to another device.
  virtual Status Reduce(const gpu::Reduction& reduction) = 0;
  virtual bool CanReduce(int device, gpu::ReductionType type, gpu::ReductionOp op) = 0;
  // The device whose memory this is, if only streams reach it; -1: other memory.
  virtual int DeviceOf(const void* pointer) const = 0;
  // Lets kernels of all devices reach host memory at this process's addresses, until the mapping
  // ends: `base` is the beginning of a peer's region, as MapPeer has returned it, or memory that
  // this rank shares. All of it is pinned, so that each of its pages takes memory from now on; may
  // block while that happens. Does nothing if they reach it already. kUnsupported without a GPU
  // backend; kInvalidBuffer for other memory; errors of gpu::GpuBackend::RegisterHostMemory.
  virtual Status LetDevicesReach(const std::byte* base) = 0;
  // Lets kernels of the device load from and store to memory of a device at this address, which
  // AllocateMemory or MapPeer has returned. kUnsupported, with the reason: they cannot.
  virtual Status LetKernelsReach(int device, const void* pointer) = 0;
  // How many devices the GPU backend has; 0 without one.
  virtual int DeviceCount() const = 0;
  // Describes a device; `device` is below DeviceCount().
  virtual StatusOr<gpu::DeviceInfo> DescribeDevice(int device) const = 0;

 protected:
  ~MemoryAccess() = default;
};

}  // namespace ferry::client
