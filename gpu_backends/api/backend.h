// The interface that every GPU stack implements (host, Level Zero, HIP, CUDA): identify pointers,
// allocate, share allocations between processes, make streams and events.
//
// Every call is thread-safe and, unless it says otherwise, may block for a short time only. Devices
// are numbered from 0; a number outside gives kInvalidArgument. After fork(), calls in the child
// return kForked (Identify knows nothing): GPU runtimes do not survive a fork. The backend frees
// what is still allocated when it is destroyed; its streams and events must be gone by then.
//
// docs/adding_a_gpu_backend.md tells how to implement it; tests/conformance holds the suite that
// every implementation passes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/status.h"
#include "gpu_backends/api/stream.h"
#include "gpu_backends/api/types.h"

namespace ferry::gpu {

class GpuBackend {
 public:
  virtual ~GpuBackend() = default;
  GpuBackend(const GpuBackend&) = delete;
  GpuBackend& operator=(const GpuBackend&) = delete;

  // The name users select it by: "host", "level_zero", "hip", "cuda".
  virtual std::string_view name() const = 0;
  // The version of the vendor's driver or run time, for people: "CUDA 12.4".
  virtual std::string version() const = 0;
  // Returns true if the program can allocate memory of these devices itself, by calls of the
  // vendor's. Identify knows of such memory.
  virtual bool is_vendors() const { return false; }
  // At least 1: a backend without a device is not created.
  virtual int device_count() const = 0;
  virtual StatusOr<DeviceInfo> GetDeviceInfo(int device) const = 0;

  // Says what `pointer` points to. Safe for any value: it never touches the memory. O(log n) in the
  // number of allocations; it is called on every send.
  virtual PointerInfo Identify(const void* pointer) const = 0;
  // Returns the part of the allocation around `pointer`, of which Identify has said `info`, that
  // surely exists: all of it, unless the program has mapped memory to its addresses piece by piece.
  // Then there may be no memory behind this piece. kSystem where the vendor's own call fails.
  virtual StatusOr<MemoryPiece> PieceAround(const void* /*pointer*/,
                                            const PointerInfo& info) const {
    const auto* const base = static_cast<const std::byte*>(info.base);
    return MemoryPiece{base, base + info.size_bytes};
  }

  // All return memory aligned to at least 256 bytes, of unspecified content, already backed by
  // pages that count as this process's (managed memory may be backed later). kInvalidArgument for
  // zero bytes; kOutOfMemory, with the sizes, where it does not fit; kUnsupported where
  // DeviceInfo::managed is false.
  virtual StatusOr<void*> AllocateDevice(int device, uint64_t size_bytes) = 0;
  virtual StatusOr<void*> AllocatePinned(uint64_t size_bytes) = 0;
  virtual StatusOr<void*> AllocateManaged(int device, uint64_t size_bytes) = 0;
  // Releases memory that one of the three above returned. No operation may still use it;
  // synchronize first. kInvalidBuffer for anything else: unknown, inside an allocation, freed
  // before, imported, registered.
  virtual Status Free(void* pointer) = 0;

  // Exports the device allocation around `pointer` to another process of the node, which can then
  // read and write all of it, for as long as it keeps the handle or a mapping. kInvalidBuffer
  // unless `pointer` lies in device memory that this process allocated.
  virtual StatusOr<IpcHandle> ExportIpc(const void* pointer) = 0;
  // Maps the allocation in this process and returns the address of the exported pointer. The handle
  // is not consumed and may be imported again. Importing in the exporting process may be refused.
  // kInvalidArgument for a handle without its descriptor or with an offset outside the allocation;
  // kCorrupt where the memory is not what an exporter of this backend would send.
  virtual StatusOr<void*> ImportIpc(const IpcHandle& handle) = 0;
  // Undoes one ImportIpc, given the pointer it returned. kInvalidBuffer for any other.
  virtual Status CloseIpc(void* pointer) = 0;

  // Exports the device allocation around `pointer` as a dma-buf. kInvalidBuffer as for ExportIpc;
  // kUnsupported where the driver, the device or the kernel has none.
  virtual StatusOr<Dmabuf> ExportDmabuf(const void* pointer) = 0;

  // Lets kernels of the device load from and store to device memory at `pointer`, allocated here or
  // imported. They reach memory of their own device anyway, and that of other devices over a link
  // between the two, which stays open. kUnsupported where there is no link, and, unless kernels are
  // functions of this process, for a pointer that this backend does not know.
  virtual Status LetKernelsReach(int device, const void* pointer) = 0;

  // Makes [pointer, pointer + size_bytes) of existing host memory reachable by devices. It stays
  // the caller's and must be unregistered before it is released. kInvalidArgument for null, zero
  // bytes or a range that wraps around; kAlreadyExists where it overlaps memory that this backend
  // knows.
  virtual Status RegisterHostMemory(void* pointer, uint64_t size_bytes) = 0;
  // Registers whole pages of another device's registers that this process has mapped, such as a
  // counter of the NIC, in the same way: streams store there (WriteValue64), and kernels; nothing
  // loads from there. kUnsupported where the vendor has no call for it, or the device cannot.
  virtual Status RegisterIoMemory(void* /*pointer*/, uint64_t /*size_bytes*/) {
    return {ErrorCode::kUnsupported,
            "this backend's devices do not reach other devices' registers"};
  }
  // kInvalidBuffer unless `pointer` starts a registered range, of either kind.
  virtual Status UnregisterHostMemory(void* pointer) = 0;

  virtual StatusOr<std::unique_ptr<Stream>> CreateStream(int device) = 0;
  // Adopts a stream that the application made with the vendor's library (a cudaStream_t, a
  // hipStream_t, an immediate ze_command_list_handle_t) and that outlives the result, which only
  // enqueues on it. kInvalidArgument for null and for a pointer that the vendor says is no stream
  // of that device; kUnsupported on a backend that cannot adopt streams. A pointer that the vendor
  // cannot tell from a stream gives undefined behaviour.
  virtual StatusOr<std::unique_ptr<Stream>> AdoptStream(int device, void* native) = 0;
  virtual StatusOr<std::unique_ptr<Event>> CreateEvent(int device) = 0;

 protected:
  GpuBackend() = default;
};

}  // namespace ferry::gpu
