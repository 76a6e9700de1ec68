#include <sched.h>

#include <array>
#include <cstring>

#include "benchmarks/gpu/bare_gpu.h"
#include "gpu_backends/hip/hip_api.h"
#include "shm/atomic.h"

namespace ferry::bench {
namespace {

using gpu::PointerKind;

void Must(const char* call, gpu::HipError error) {
  if (error != gpu::kHipSuccess) {
    FailCall(call, error);
  }
}

class BareHip final : public BareGpu {
 public:
  BareHip(const gpu::HipApi& api, bool is_rocm_5)
      : api_(api),
        ipc_flags_(is_rocm_5 ? gpu::kHip5IpcLazyPeerAccess : gpu::kHip6IpcLazyPeerAccess) {
    Must("hipSetDevice", api_.set_device(0));
    for (gpu::HipStream& stream : streams_) {
      Must("hipStreamCreateWithFlags",
           api_.stream_create_with_flags(&stream, gpu::kHipStreamNonBlocking));
    }
    Must("hipEventCreateWithFlags",
         api_.event_create_with_flags(&event_, gpu::kHipEventDisableTiming));
    gate_ = static_cast<uint64_t*>(Allocate(PointerKind::kPinned, sizeof(uint64_t)));
    *gate_ = 0;
    int words = 0;
    // Releases differ in where they can wait: so it is tried, with a word that is there already.
    has_words_ = api_.stream_write_value64 != nullptr && api_.stream_wait_value64 != nullptr &&
                 api_.device_get_attribute(&words, gpu::kHipAttributeCanUseStreamWaitValue, 0) ==
                     gpu::kHipSuccess &&
                 words != 0 &&
                 api_.stream_wait_value64(streams_[0], gate_, 0, gpu::kHipStreamWaitValueGte,
                                          ~uint64_t{0}) == gpu::kHipSuccess;
  }
  ~BareHip() override {
    (void)api_.host_free(gate_);
    (void)api_.event_destroy(event_);
    for (gpu::HipStream stream : streams_) {
      (void)api_.stream_destroy(stream);
    }
  }

  const char* NameOf(GpuCall call) const override {
    switch (call) {
      case GpuCall::kIdentify:
        return "hipPointerGetAttributes, hipMemGetAddressRange";
      case GpuCall::kCopy:
        return "hipMemcpyAsync";
      case GpuCall::kRecordEvent:
        return "hipEventRecord";
      case GpuCall::kWaitEvent:
        return "hipStreamWaitEvent";
      case GpuCall::kQueryEvent:
        return "hipEventQuery";
      case GpuCall::kQueryStream:
        return "hipStreamQuery";
      case GpuCall::kWriteWord:
        return has_words_ ? "hipStreamWriteValue64" : nullptr;
      case GpuCall::kWaitWord:
        return has_words_ ? "hipStreamWaitValue64" : nullptr;
      case GpuCall::kAllocate:
        return "hipMalloc, hipFree";
      case GpuCall::kExport:
        return "hipIpcGetMemHandle";
      case GpuCall::kImport:
        return "hipIpcOpenMemHandle, ...Close...";
      case GpuCall::kRegister:
        return "hipHostRegister, hipHostUnregister";
    }
    return nullptr;
  }

  // Memory that HIP does not know is an error up to ROCm 5.
  void Identify(const void* pointer) override {
    gpu::HipPointerAttributes attributes{};
    void* base = nullptr;
    size_t size_bytes = 0;
    if (api_.pointer_get_attributes(&attributes, pointer) == gpu::kHipSuccess &&
        attributes.device_pointer != nullptr) {
      (void)api_.mem_get_address_range(&base, &size_bytes, attributes.device_pointer);
    }
  }
  void* Allocate(PointerKind kind, uint64_t size_bytes) override {
    void* pointer = nullptr;
    if (kind == PointerKind::kPinned) {
      Must("hipHostMalloc",
           api_.host_malloc(&pointer, size_bytes,
                            gpu::kHipHostMallocPortable | gpu::kHipHostMallocMapped |
                                gpu::kHipHostMallocCoherent));
    } else if (kind == PointerKind::kManaged) {
      Must("hipMallocManaged", api_.malloc_managed(&pointer, size_bytes, gpu::kHipMemAttachGlobal));
    } else {
      Must("hipMalloc", api_.malloc(&pointer, size_bytes));
    }
    return pointer;
  }
  void Free(PointerKind kind, void* pointer) override {
    Must("hipFree", kind == PointerKind::kPinned ? api_.host_free(pointer) : api_.free(pointer));
  }
  gpu::IpcHandle Export(void* base) override {
    gpu::HipIpcMemHandle native{};
    Must("hipIpcGetMemHandle", api_.ipc_get_mem_handle(&native, base));
    gpu::IpcHandle handle;
    std::memcpy(handle.opaque.data(), &native, sizeof(native));
    return handle;
  }
  void* Import(const gpu::IpcHandle& handle) override {
    gpu::HipIpcMemHandle native{};
    std::memcpy(&native, handle.opaque.data(), sizeof(native));
    void* pointer = nullptr;
    Must("hipIpcOpenMemHandle", api_.ipc_open_mem_handle(&pointer, native, ipc_flags_));
    return pointer;
  }
  void CloseImport(void* pointer) override {
    Must("hipIpcCloseMemHandle", api_.ipc_close_mem_handle(pointer));
  }
  void Register(void* pointer, uint64_t size_bytes) override {
    Must("hipHostRegister",
         api_.host_register(pointer, size_bytes,
                            gpu::kHipHostRegisterPortable | gpu::kHipHostRegisterMapped));
  }
  void Unregister(void* pointer) override {
    Must("hipHostUnregister", api_.host_unregister(pointer));
  }

  void Copy(void* destination, const void* source, uint64_t size_bytes) override {
    Must("hipMemcpyAsync",
         api_.memcpy_async(destination, source, size_bytes, gpu::kHipMemcpyDefault, streams_[0]));
  }
  void RecordEvent() override { Must("hipEventRecord", api_.event_record(event_, streams_[0])); }
  void QueryStream() override { (void)api_.stream_query(streams_[0]); }
  void WriteWord(uint64_t* word, uint64_t value) override {
    Must("hipStreamWriteValue64", api_.stream_write_value64(streams_[0], word, value, 0));
  }
  void WaitWord(uint64_t* word, uint64_t value) override {
    Must("hipStreamWaitValue64",
         api_.stream_wait_value64(streams_[0], word, value, gpu::kHipStreamWaitValueGte,
                                  ~uint64_t{0}));
  }
  void WaitEvent() override {
    Must("hipStreamWaitEvent", api_.stream_wait_event(streams_[1], event_, 0));
  }
  void QueryEvent() override { (void)api_.event_query(event_); }
  bool Hold() override {
    if (!has_words_) {
      return false;
    }
    ++gate_value_;
    for (gpu::HipStream stream : streams_) {
      Must("hipStreamWaitValue64",
           api_.stream_wait_value64(stream, gate_, gate_value_, gpu::kHipStreamWaitValueGte,
                                    ~uint64_t{0}));
    }
    return true;
  }
  void Release() override {
    // Pairs with the device's wait, which is the vendor's.
    shm::StoreRelease(*gate_, gate_value_);
  }
  void Wait() override {
    for (gpu::HipStream stream : streams_) {
      gpu::HipError error = api_.stream_query(stream);
      for (; error == gpu::kHipErrorNotReady; error = api_.stream_query(stream)) {
        sched_yield();
      }
      Must("hipStreamQuery", error);
    }
  }

 private:
  const gpu::HipApi api_;
  const unsigned ipc_flags_;
  std::array<gpu::HipStream, 2> streams_{};
  gpu::HipEvent event_ = nullptr;
  bool has_words_ = false;
  uint64_t* gate_ = nullptr;
  uint64_t gate_value_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<BareGpu>> OpenBareHip(const config::Options& options) {
  StatusOr<gpu::HipApi> api = gpu::OpenHipApi(options.hip_library);
  FERRY_RETURN_IF_ERROR(api.status());
  int version = 0;
  FERRY_RETURN_IF_ERROR(api->Check("hipRuntimeGetVersion", api->runtime_get_version(&version)));
  return std::unique_ptr<BareGpu>(
      std::make_unique<BareHip>(*api, version / gpu::kHipVersionMajor < 6));
}

}  // namespace ferry::bench
