// The calls of a vendor's library that Ferry's stand beside, made as an application would make
// them: through the same table of functions, without checks, tables or conversions.
//
// For one thread, that which opens it; on device 0. A call that fails ends the program, with the
// call's name. Memory is the caller's to free; streams and events are its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "common/status.h"
#include "config/options.h"
#include "gpu_backends/api/backend.h"

namespace ferry::bench {

enum class GpuCall {
  kIdentify,
  kCopy,
  kRecordEvent,
  kWaitEvent,
  kQueryEvent,
  kQueryStream,
  kWriteWord,
  kWaitWord,
  kAllocate,  // and free
  kExport,
  kImport,    // and close
  kRegister,  // and unregister
};

class BareGpu {
 public:
  virtual ~BareGpu() = default;
  BareGpu(const BareGpu&) = delete;
  BareGpu& operator=(const BareGpu&) = delete;

  // Returns the vendor's name of the call; null where the vendor has none for that.
  virtual const char* NameOf(GpuCall call) const = 0;

  virtual void Identify(const void* pointer) = 0;
  virtual void* Allocate(gpu::PointerKind kind, uint64_t size_bytes) = 0;
  virtual void Free(gpu::PointerKind kind, void* pointer) = 0;
  virtual gpu::IpcHandle Export(void* base) = 0;
  virtual void* Import(const gpu::IpcHandle& handle) = 0;
  virtual void CloseImport(void* pointer) = 0;
  virtual void Register(void* pointer, uint64_t size_bytes) = 0;
  virtual void Unregister(void* pointer) = 0;

  // Work on the first of its two streams.
  virtual void Copy(void* destination, const void* source, uint64_t size_bytes) = 0;
  virtual void RecordEvent() = 0;
  virtual void QueryStream() = 0;
  virtual void WriteWord(uint64_t* word, uint64_t value) = 0;
  virtual void WaitWord(uint64_t* word, uint64_t value) = 0;
  // The second stream waits for an event that RecordEvent recorded on the first.
  virtual void WaitEvent() = 0;
  // Queries an event that has happened.
  virtual void QueryEvent() = 0;
  // Makes both streams wait until Release, so that they run none of the work enqueued next; false:
  // the vendor has no way to do that.
  virtual bool Hold() = 0;
  virtual void Release() = 0;
  // Blocks until both streams are idle.
  virtual void Wait() = 0;

 protected:
  BareGpu() = default;
};

// Opens the library that the options name for the backend of that name. Returns the library's error
// if it cannot be opened. The host backend's "vendor" is memcpy.
StatusOr<std::unique_ptr<BareGpu>> OpenBareGpu(std::string_view backend,
                                               const config::Options& options);

// One function for each vendor; OpenBareGpu chooses.
StatusOr<std::unique_ptr<BareGpu>> OpenBareCuda(const config::Options& options);
StatusOr<std::unique_ptr<BareGpu>> OpenBareHip(const config::Options& options);
StatusOr<std::unique_ptr<BareGpu>> OpenBareLevelZero(const config::Options& options);
StatusOr<std::unique_ptr<BareGpu>> OpenBareHost(const config::Options& options);

// Ends the program unless the status is ok.
void CheckStatus(const Status& status);
// Ends the program, since a vendor's call has failed.
[[noreturn]] void FailCall(const char* call, int64_t error);

template <typename T>
T TakeValue(StatusOr<T> value) {
  CheckStatus(value.status());
  return std::move(*value);
}

}  // namespace ferry::bench
