// What Ferry asks of a vendor's driver or run time, call by call. Each vendor's folder implements
// it over the library that it opened; DriverBackend makes a GpuBackend of it, and holds what all
// vendors share: arguments checked, tables of memory, failures that spread, streams given up.
//
// Every call is thread-safe, sets the device or context that it needs by itself, and leaves the
// calling thread's own as it was. Devices are valid numbers, pointers not null, sizes not zero:
// callers have checked. Errors carry the vendor's call and its own name for the error
// ("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"): kOutOfMemory and kUnsupported where that is what it
// means, kInvalidArgument for what the vendor refuses as such, else kSystem. None blocks, but those
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

// A step that streams take on the host. Returns whether the stream goes on; false only where
// host_steps_hold().
using HostStep = bool (*)(void* argument);

// One argument of a kernel: a number, or an address as the host knows it. Drivers pass on the one
// by which the device knows the same memory.
struct KernelArgument {
  KernelArgument(const void* address)  // NOLINT(google-explicit-constructor): in lists
      : value(reinterpret_cast<uint64_t>(address)), is_address(true) {}
  KernelArgument(uint64_t number)  // NOLINT(google-explicit-constructor)
      : value(number), is_address(false) {}

  uint64_t value;
  bool is_address;
};

// What kernels on a device can do besides computing.
struct KernelPowers {
  // They reach registered host memory, and see what CPUs store there while they run.
  bool host_words = false;
  // They change 64-bit words in it by atomic operations, of which CPUs see nothing but the results.
  bool host_atomics = false;
  // One that waits holds up its own stream only, as far as others' waits do.
  bool may_wait = false;
};

class Driver {
 public:
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  virtual std::string_view name() const = 0;  // of the backend
  virtual std::string version() const = 0;
  virtual int device_count() const = 0;
  virtual StatusOr<DeviceInfo> GetDeviceInfo(int device) = 0;

  // ---- Memory ----

  virtual StatusOr<void*> AllocateDevice(int device, uint64_t size_bytes) = 0;
  // Reachable by all devices, at the same address where the vendor can do that.
  virtual StatusOr<void*> AllocatePinned(uint64_t size_bytes) = 0;
  virtual StatusOr<void*> AllocateManaged(int device, uint64_t size_bytes) = 0;
  // Of one of the three.
  virtual Status Free(PointerKind kind, void* pointer) = 0;

  // What the vendor says of memory that others allocated with its library; kUnknown for any other
  // value. Never touches the memory. `allocation_id` is the vendor's, below 2^63; 0 where it gives
  // none.
  virtual PointerInfo Identify(const void* pointer) = 0;

  // Fills `fd`, `opaque` or both, for the allocation that begins at `base`.
  virtual Status Export(void* base, IpcHandle* handle) = 0;
  // Returns where the allocation begins in this process. `handle.device` is the exporter's.
  virtual StatusOr<void*> Import(int device, const IpcHandle& handle) = 0;
  virtual Status CloseImport(void* base) = 0;
  virtual StatusOr<Dmabuf> ExportDmabuf(void* base, uint64_t size_bytes) = 0;

  // Whole pages, none of which is registered.
  virtual Status Register(void* pointer, uint64_t size_bytes) = 0;
  virtual Status Unregister(void* pointer) = 0;

  // ---- Streams ----

  virtual StatusOr<NativeStream> CreateStream(int device) = 0;
  // Of a stream of the application's: kInvalidArgument where the vendor can tell that it is none of
  // this device.
  virtual Status CheckStream(int device, NativeStream stream) = 0;
  // Frees what CreateStream made, or forgets what it knows of a stream that was checked. Nothing
  // runs on it any more.
  virtual void DestroyStream(int device, NativeStream stream) = 0;
  // kOk: idle; kWouldBlock; else what it has failed with.
  virtual Status QueryStream(int device, NativeStream stream) = 0;
  // May block where one end is ordinary host memory.
  virtual Status Copy(int device, NativeStream stream, void* destination, const void* source,
                      uint64_t size_bytes) = 0;

  virtual StatusOr<NativeEvent> CreateEvent(int device) = 0;
  // No stream refers to it any more.
  virtual void DestroyEvent(int device, NativeEvent event) = 0;
  // Each event is recorded once.
  virtual Status RecordEvent(int device, NativeStream stream, NativeEvent event) = 0;
  virtual Status QueryEvent(int device, NativeEvent event) = 0;  // as QueryStream
  // `event` is recorded, on a stream of any device.
  virtual Status WaitEvent(int device, NativeStream stream, NativeEvent event) = 0;

  // Whether the two below work on this device. The word is in memory that devices reach.
  virtual bool has_stream_words(int device) const = 0;
  virtual Status WriteWord(int device, NativeStream stream, uint64_t* word, uint64_t value) = 0;
  virtual Status WaitWord(int device, NativeStream stream, const uint64_t* word, uint64_t value,
                          WaitCondition condition) = 0;

  // ---- Ferry's own kernels (gpu_backends/device) ----

  // kOk: Launch works on this device; else why it does not, which stays so. The first call of a
  // device loads the kernels, and blocks for as long as the vendor's compiler takes.
  virtual Status LoadKernels(int device) = 0;
  // Of a device whose kernels are loaded.
  virtual KernelPowers kernel_powers(int device) const = 0;
  // Enqueues a kernel, with at least so many threads but no more than the device takes at once
  // (kernels share out what there is to do). LoadKernels has said kOk. Addresses are of memory that
  // the device reaches.
  virtual Status Launch(int device, NativeStream stream, Kernel kernel, uint64_t threads,
                        std::span<const KernelArgument> arguments) = 0;

  // Enqueues step(argument), from a thread that calls nothing of the vendor's. Called once; if what
  // is before it in the stream fails or never ends, then by DestroyStream or never.
  virtual Status EnqueueHostStep(int device, NativeStream stream, HostStep step,
                                 void* argument) = 0;
  // Whether a step may take as long as it likes without holding up other streams, and end its
  // stream by returning false: what is behind it then never runs, and the stream is idle, or busy
  // for ever where the vendor cannot drop it. Needed where has_stream_words() is false: a step then
  // waits for the word.
  virtual bool host_steps_hold() const = 0;

 protected:
  Driver() = default;
};

}  // namespace ferry::gpu
