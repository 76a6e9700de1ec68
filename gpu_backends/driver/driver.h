// The calls that Ferry needs from a vendor's driver or run time. Each vendor's folder implements
// them over the library that it opened. DriverBackend makes a GpuBackend of them and holds what all
// vendors share: argument checks, tables of memory, spreading failures, abandoned streams.
//
// Every call is thread-safe, sets the device or context that it needs by itself, and leaves the
// calling thread's own as it was. Devices are valid numbers, pointers not null, sizes not zero:
// callers have checked. Errors carry the vendor's call and its own name for the error ("cuMemAlloc:
// CUDA_ERROR_OUT_OF_MEMORY"): kOutOfMemory and kUnsupported where the vendor means that,
// kInvalidArgument where it refuses an argument, else kSystem. No call blocks, except that those
// that allocate, free, import or register may for a while.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/status.h"
#include "gpu_backends/api/stream.h"
#include "gpu_backends/api/types.h"
#include "gpu_backends/device/kernel_list.h"

namespace ferry::gpu {

// The vendor's own objects; null is none.
using NativeStream = void*;
using NativeEvent = void*;

// A step that streams take on the host. Returns whether the stream goes on; may return false only
// where host_steps_hold().
using HostStep = bool (*)(void* argument);

// One argument of a kernel: a number, or an address as the host knows it. Drivers pass on the one
// by which the device knows the same memory.
struct KernelArgument {
  KernelArgument() = default;
  KernelArgument(const void* address)  // NOLINT(google-explicit-constructor): in lists
      : value(reinterpret_cast<uint64_t>(address)), is_address(true) {}
  KernelArgument(uint64_t number)  // NOLINT(google-explicit-constructor)
      : value(number), is_address(false) {}

  uint64_t value = 0;
  bool is_address = false;
};

// The operations of a device's kernels that not every device can do.
struct KernelPowers {
  // Kernels reach registered host memory, and see what CPUs store there while the kernels run.
  bool host_words = false;
  // Kernels change 64-bit words in host memory by operations that are atomic for CPUs, too.
  bool host_atomics = false;
  // A kernel that waits holds up no more than its own stream.
  bool may_wait = false;
};

// The answer of Driver::Identify where the vendor gives none.
inline PointerInfo LookupFailed(const Status& failure) {
  PointerInfo nothing;
  nothing.failure = {failure.code(), "the GPU's driver does not answer: " + failure.message()};
  return nothing;
}

class Driver {
 public:
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  virtual std::string_view name() const = 0;  // the backend's name
  virtual std::string version() const = 0;
  virtual int device_count() const = 0;
  virtual StatusOr<DeviceInfo> GetDeviceInfo(int device) = 0;

  // ---- Memory ----

  virtual StatusOr<void*> AllocateDevice(int device, uint64_t size_bytes) = 0;
  // Allocates memory that all devices reach, at the same address where the vendor can do that.
  virtual StatusOr<void*> AllocatePinned(uint64_t size_bytes) = 0;
  virtual StatusOr<void*> AllocateManaged(int device, uint64_t size_bytes) = 0;
  // Frees what one of the three allocated.
  virtual Status Free(PointerKind kind, void* pointer) = 0;

  // Returns what the vendor says about memory that others allocated with its library; kUnknown for
  // any other value, and with `failure` if the vendor's call fails (LookupFailed). Never touches
  // the memory. `allocation_id` is the vendor's, below 2^63; 0 where it gives none.
  virtual PointerInfo Identify(const void* pointer) = 0;
  // GpuBackend::PieceAround, of memory of which Identify has said `info`. kUnsupported or
  // kInvalidArgument where the vendor does not tell, or it is an allocation in one piece.
  virtual StatusOr<MemoryPiece> PieceAround(const void* /*pointer*/, const PointerInfo& /*info*/) {
    return Status(ErrorCode::kUnsupported, "this driver tells of whole allocations");
  }

  // Fills `fd`, `opaque` or both, for the allocation that begins at `base`.
  virtual Status Export(void* base, IpcHandle* handle) = 0;
  // Returns where the allocation begins in this process. `handle.device` is the exporter's.
  virtual StatusOr<void*> Import(int device, const IpcHandle& handle) = 0;
  virtual Status CloseImport(void* base) = 0;
  virtual StatusOr<Dmabuf> ExportDmabuf(void* base, uint64_t size_bytes) = 0;

  // Lets kernels of `device` load and store in the memory of another one, from now on. kUnsupported
  // where there is no way. It may be called again.
  virtual Status LetKernelsReach(int device, int other) = 0;

  // Registers whole pages, none of which is registered yet.
  virtual Status Register(void* pointer, uint64_t size_bytes) = 0;
  virtual Status Unregister(void* pointer) = 0;
  // Registers pages of another device's registers, until Unregister.
  virtual Status RegisterIo(void* /*pointer*/, uint64_t /*size_bytes*/) {
    return {ErrorCode::kUnsupported, "this driver registers no other device's registers"};
  }

  // ---- Streams ----

  virtual StatusOr<NativeStream> CreateStream(int device) = 0;
  // Checks a stream of the application's: kInvalidArgument where the vendor can tell that it is no
  // stream of this device.
  virtual Status CheckStream(int device, NativeStream stream) = 0;
  // Frees a stream that CreateStream made, or forgets one that was checked. Nothing runs on it any
  // more.
  virtual void DestroyStream(int device, NativeStream stream) = 0;
  // Returns kOk if the stream is idle, kWouldBlock while it has work, else its failure.
  virtual Status QueryStream(int device, NativeStream stream) = 0;
  // Enqueues a copy. May block where one end is ordinary host memory.
  virtual Status Copy(int device, NativeStream stream, void* destination, const void* source,
                      uint64_t size_bytes) = 0;

  virtual StatusOr<NativeEvent> CreateEvent(int device) = 0;
  // Destroys an event that no stream refers to any more.
  virtual void DestroyEvent(int device, NativeEvent event) = 0;
  // Records an event in the stream; each event is recorded once.
  virtual Status RecordEvent(int device, NativeStream stream, NativeEvent event) = 0;
  virtual Status QueryEvent(int device, NativeEvent event) = 0;  // as QueryStream
  // Has the stream wait for an event that was recorded on a stream of any device.
  virtual Status WaitEvent(int device, NativeStream stream, NativeEvent event) = 0;

  // Returns true if WriteWord and WaitWord work on this device. Words are in memory that devices
  // reach.
  virtual bool has_stream_words(int device) const = 0;
  virtual Status WriteWord(int device, NativeStream stream, uint64_t* word, uint64_t value) = 0;
  virtual Status WaitWord(int device, NativeStream stream, const uint64_t* word, uint64_t value,
                          WaitCondition condition) = 0;

  // ---- Ferry's own kernels (gpu_backends/device) ----

  // kOk: Launch works on this device; else why it does not, for good. The first call for a device
  // loads the kernels, and blocks for as long as the vendor's compiler takes.
  virtual Status LoadKernels(int device) = 0;
  // The powers of a device whose kernels are loaded.
  virtual KernelPowers kernel_powers(int device) const = 0;
  // Enqueues a kernel with at least `threads` threads, but no more than the device takes at once
  // (kernels divide the work among their threads). LoadKernels has said kOk. Addresses are of
  // memory that the device reaches.
  virtual Status Launch(int device, NativeStream stream, Kernel kernel, uint64_t threads,
                        std::span<const KernelArgument> arguments) = 0;

  // Enqueues step(argument), from a thread that calls nothing of the vendor's. The step is called
  // once; if earlier work in the stream fails or never ends, DestroyStream calls it, or it is never
  // called.
  virtual Status EnqueueHostStep(int device, NativeStream stream, HostStep step,
                                 void* argument) = 0;
  // Returns true if a step may take as long as it likes without holding up other streams, and may
  // end its stream by returning false: operations behind it then never run, and the stream is idle,
  // or busy for ever where the vendor cannot drop them. Needed where has_stream_words() is false: a
  // step then waits for the word.
  virtual bool host_steps_hold() const = 0;

 protected:
  Driver() = default;
};

// GpuBackend::PieceAround by a driver.
inline StatusOr<MemoryPiece> PieceOrWhole(Driver& driver, const void* pointer,
                                          const PointerInfo& info) {
  StatusOr<MemoryPiece> piece = driver.PieceAround(pointer, info);
  if (piece.status().code() == ErrorCode::kUnsupported ||
      piece.status().code() == ErrorCode::kInvalidArgument) {
    const auto* const base = static_cast<const std::byte*>(info.base);
    return MemoryPiece{base, base + info.size_bytes};
  }
  return piece;
}

}  // namespace ferry::gpu
