#include <cstring>

#include "benchmarks/gpu/bare_gpu.h"
#include "gpu_backends/loader/loader.h"

namespace ferry::bench {
namespace {

using gpu::PointerKind;

// An emulated device has no vendor: what stands beside it is what a CPU does with the same memory.
class BareHost final : public BareGpu {
 public:
  explicit BareHost(std::unique_ptr<gpu::GpuBackend> backend) : backend_(std::move(backend)) {}

  const char* NameOf(GpuCall call) const override {
    return call == GpuCall::kCopy ? "memcpy" : nullptr;
  }
  void* Allocate(PointerKind kind, uint64_t size_bytes) override {
    return TakeValue(kind == PointerKind::kPinned    ? backend_->AllocatePinned(size_bytes)
                     : kind == PointerKind::kManaged ? backend_->AllocateManaged(0, size_bytes)
                                                     : backend_->AllocateDevice(0, size_bytes));
  }
  void Free(PointerKind /*kind*/, void* pointer) override { CheckStatus(backend_->Free(pointer)); }
  gpu::IpcHandle Export(void* base) override { return TakeValue(backend_->ExportIpc(base)); }
  void* Import(const gpu::IpcHandle& handle) override {
    return TakeValue(backend_->ImportIpc(handle));
  }
  void CloseImport(void* pointer) override { CheckStatus(backend_->CloseIpc(pointer)); }
  void Copy(void* destination, const void* source, uint64_t size_bytes) override {
    std::memcpy(destination, source, size_bytes);
  }
  bool Hold() override { return false; }
  void Release() override {}
  void Wait() override {}

  void Identify(const void* /*pointer*/) override {}
  void Register(void* /*pointer*/, uint64_t /*size_bytes*/) override {}
  void Unregister(void* /*pointer*/) override {}
  void RecordEvent() override {}
  void QueryStream() override {}
  void WriteWord(uint64_t* /*word*/, uint64_t /*value*/) override {}
  void WaitWord(uint64_t* /*word*/, uint64_t /*value*/) override {}
  void WaitEvent() override {}
  void QueryEvent() override {}

 private:
  const std::unique_ptr<gpu::GpuBackend> backend_;
};

}  // namespace

StatusOr<std::unique_ptr<BareGpu>> OpenBareHost(const config::Options& options) {
  config::Options plain = options;
  plain.gpu_backend = "host";
  StatusOr<std::unique_ptr<gpu::GpuBackend>> backend = gpu::OpenBackend(plain);
  FERRY_RETURN_IF_ERROR(backend.status());
  const StatusOr<gpu::DeviceInfo> info = (*backend)->GetDeviceInfo(0);
  FERRY_RETURN_IF_ERROR(info.status());
  if (!info->direct.cpu) {
    return Status(ErrorCode::kUnsupported,
                  "the emulated link keeps CPUs out of device memory: there is no memcpy to "
                  "compare with");
  }
  return std::unique_ptr<BareGpu>(std::make_unique<BareHost>(std::move(*backend)));
}

}  // namespace ferry::bench
