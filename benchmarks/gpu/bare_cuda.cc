#include <sched.h>

#include <array>
#include <cstring>

#include "benchmarks/gpu/bare_gpu.h"
#include "gpu_backends/cuda/cuda_api.h"
#include "shm/atomic.h"

namespace ferry::bench {
namespace {

using gpu::CudaDevicePtr;
using gpu::PointerKind;

void Must(const char* call, gpu::CudaError error) {
  if (error != gpu::kCudaSuccess) {
    FailCall(call, error);
  }
}

CudaDevicePtr AsCuda(const void* pointer) { return reinterpret_cast<CudaDevicePtr>(pointer); }

class BareCuda final : public BareGpu {
 public:
  explicit BareCuda(const gpu::CudaApi& api) : api_(api) {
    gpu::CudaContext context = nullptr;
    Must("cuDeviceGet", api_.device_get(&device_, 0));
    Must("cuDevicePrimaryCtxRetain", api_.primary_ctx_retain(&context, device_));
    Must("cuCtxPushCurrent", api_.ctx_push_current(context));
    for (gpu::CudaStream& stream : streams_) {
      Must("cuStreamCreate", api_.stream_create(&stream, gpu::kCudaStreamNonBlocking));
    }
    Must("cuEventCreate", api_.event_create(&event_, gpu::kCudaEventDisableTiming));
    int words = 0;
    has_words_ = api_.stream_write_value64 != nullptr && api_.stream_wait_value64 != nullptr &&
                 api_.device_get_attribute(&words, gpu::kCudaAttributeStreamMemOps64, device_) ==
                     gpu::kCudaSuccess &&
                 words != 0;
    gate_ = static_cast<uint64_t*>(Allocate(PointerKind::kPinned, sizeof(uint64_t)));
    *gate_ = 0;
  }
  ~BareCuda() override {
    (void)api_.mem_free_host(gate_);
    (void)api_.event_destroy(event_);
    for (gpu::CudaStream stream : streams_) {
      (void)api_.stream_destroy(stream);
    }
    gpu::CudaContext context = nullptr;
    (void)api_.ctx_pop_current(&context);
    (void)api_.primary_ctx_release(device_);
  }

  const char* NameOf(GpuCall call) const override {
    switch (call) {
      case GpuCall::kIdentify:
        return "cuPointerGetAttributes";
      case GpuCall::kCopy:
        return "cuMemcpyAsync";
      case GpuCall::kRecordEvent:
        return "cuEventRecord";
      case GpuCall::kWaitEvent:
        return "cuStreamWaitEvent";
      case GpuCall::kQueryEvent:
        return "cuEventQuery";
      case GpuCall::kQueryStream:
        return "cuStreamQuery";
      case GpuCall::kWriteWord:
        return has_words_ ? "cuStreamWriteValue64" : nullptr;
      case GpuCall::kWaitWord:
        return has_words_ ? "cuStreamWaitValue64" : nullptr;
      case GpuCall::kAllocate:
        return "cuMemAlloc, cuMemFree";
      case GpuCall::kExport:
        return "cuIpcGetMemHandle";
      case GpuCall::kImport:
        return "cuIpcOpenMemHandle, ...Close...";
      case GpuCall::kRegister:
        return "cuMemHostRegister, ...Unregister";
    }
    return nullptr;
  }

  void Identify(const void* pointer) override {
    unsigned type = 0;
    unsigned is_managed = 0;
    int ordinal = 0;
    unsigned long long id = 0;
    CudaDevicePtr start = 0;
    size_t size = 0;
    std::array<int, 6> attributes = {gpu::kCudaPointerMemoryType,    gpu::kCudaPointerIsManaged,
                                     gpu::kCudaPointerDeviceOrdinal, gpu::kCudaPointerBufferId,
                                     gpu::kCudaPointerRangeStart,    gpu::kCudaPointerRangeSize};
    std::array<void*, 6> data = {&type, &is_managed, &ordinal, &id, &start, &size};
    Must("cuPointerGetAttributes", api_.pointer_get_attributes(attributes.size(), attributes.data(),
                                                               data.data(), AsCuda(pointer)));
  }
  void* Allocate(PointerKind kind, uint64_t size_bytes) override {
    CudaDevicePtr pointer = 0;
    void* host = nullptr;
    if (kind == PointerKind::kPinned) {
      Must("cuMemHostAlloc",
           api_.mem_host_alloc(&host, size_bytes,
                               gpu::kCudaHostAllocPortable | gpu::kCudaHostAllocDeviceMap));
      return host;
    }
    if (kind == PointerKind::kManaged) {
      Must("cuMemAllocManaged",
           api_.mem_alloc_managed(&pointer, size_bytes, gpu::kCudaMemAttachGlobal));
    } else {
      Must("cuMemAlloc", api_.mem_alloc(&pointer, size_bytes));
    }
    return reinterpret_cast<void*>(pointer);
  }
  void Free(PointerKind kind, void* pointer) override {
    Must("cuMemFree", kind == PointerKind::kPinned ? api_.mem_free_host(pointer)
                                                   : api_.mem_free(AsCuda(pointer)));
  }
  gpu::IpcHandle Export(void* base) override {
    gpu::CudaIpcMemHandle native{};
    Must("cuIpcGetMemHandle", api_.ipc_get_mem_handle(&native, AsCuda(base)));
    gpu::IpcHandle handle;
    std::memcpy(handle.opaque.data(), &native, sizeof(native));
    return handle;
  }
  void* Import(const gpu::IpcHandle& handle) override {
    gpu::CudaIpcMemHandle native{};
    std::memcpy(&native, handle.opaque.data(), sizeof(native));
    CudaDevicePtr pointer = 0;
    Must("cuIpcOpenMemHandle",
         api_.ipc_open_mem_handle(&pointer, native, gpu::kCudaIpcLazyPeerAccess));
    return reinterpret_cast<void*>(pointer);
  }
  void CloseImport(void* pointer) override {
    Must("cuIpcCloseMemHandle", api_.ipc_close_mem_handle(AsCuda(pointer)));
  }
  void Register(void* pointer, uint64_t size_bytes) override {
    Must("cuMemHostRegister",
         api_.mem_host_register(pointer, size_bytes,
                                gpu::kCudaHostRegisterPortable | gpu::kCudaHostRegisterDeviceMap));
  }
  void Unregister(void* pointer) override {
    Must("cuMemHostUnregister", api_.mem_host_unregister(pointer));
  }

  void Copy(void* destination, const void* source, uint64_t size_bytes) override {
    Must("cuMemcpyAsync",
         api_.memcpy_async(AsCuda(destination), AsCuda(source), size_bytes, streams_[0]));
  }
  void RecordEvent() override { Must("cuEventRecord", api_.event_record(event_, streams_[0])); }
  void QueryStream() override { (void)api_.stream_query(streams_[0]); }
  void WriteWord(uint64_t* word, uint64_t value) override {
    Must("cuStreamWriteValue64",
         api_.stream_write_value64(streams_[0], AsCuda(word), value, gpu::kCudaWriteValueDefault));
  }
  void WaitWord(uint64_t* word, uint64_t value) override {
    Must("cuStreamWaitValue64",
         api_.stream_wait_value64(streams_[0], AsCuda(word), value, gpu::kCudaWaitValueGeq));
  }
  void WaitEvent() override {
    Must("cuStreamWaitEvent", api_.stream_wait_event(streams_[1], event_, 0));
  }
  void QueryEvent() override { (void)api_.event_query(event_); }
  bool Hold() override {
    if (!has_words_) {
      return false;
    }
    ++gate_value_;
    for (gpu::CudaStream stream : streams_) {
      Must("cuStreamWaitValue64",
           api_.stream_wait_value64(stream, AsCuda(gate_), gate_value_, gpu::kCudaWaitValueGeq));
    }
    return true;
  }
  void Release() override {
    // Pairs with the device's wait, which is the vendor's.
    shm::StoreRelease(*gate_, gate_value_);
  }
  void Wait() override {
    for (gpu::CudaStream stream : streams_) {
      gpu::CudaError error = api_.stream_query(stream);
      for (; error == gpu::kCudaErrorNotReady; error = api_.stream_query(stream)) {
        sched_yield();
      }
      Must("cuStreamQuery", error);
    }
  }

 private:
  const gpu::CudaApi api_;
  gpu::CudaDevice device_ = 0;
  std::array<gpu::CudaStream, 2> streams_{};
  gpu::CudaEvent event_ = nullptr;
  bool has_words_ = false;
  uint64_t* gate_ = nullptr;
  uint64_t gate_value_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<BareGpu>> OpenBareCuda(const config::Options& options) {
  StatusOr<gpu::CudaApi> api = gpu::OpenCudaApi(options.cuda_library);
  FERRY_RETURN_IF_ERROR(api.status());
  FERRY_RETURN_IF_ERROR(api->Check("cuInit", api->init(0)));
  return std::unique_ptr<BareGpu>(std::make_unique<BareCuda>(*api));
}

}  // namespace ferry::bench
