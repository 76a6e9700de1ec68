// The CUDA backend in adverse surroundings, and what it leaves to the application.
#include "gpu_backends/cuda/cuda_backend.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "gpu_backends/cuda/cuda_abi.h"
#include "gpu_backends/device/kernel_images.h"
#include "tests/gpu_backends/status_checks.h"
#include "tests/gpu_backends/vendor_faults.h"
#include "tests/gpu_backends/vendor_scenario.h"

namespace ferry::gpu {
namespace {

constexpr const char* kCuda11 = "tests/fixtures/cuda/libcuda_11.so";
constexpr const char* kCuda13 = "tests/fixtures/cuda/libcuda_13.so";
constexpr const char* kCuda13WithoutWords = "tests/fixtures/cuda/libcuda_13_without_words.so";
// The toolkit's, of which there are many where no driver is.
constexpr const char* kStub = "/usr/local/cuda/lib64/stubs/libcuda.so";

// ---- Opening ----

Status OpenStatus(const std::string& library) { return CreateCudaBackend({library}).status(); }

TEST(CudaBackendOpeningTest, SaysThatTheLibraryIsMissing) {
  ExpectFails(OpenStatus("/nowhere/libcuda.so.1"), ErrorCode::kNotFound, "/nowhere/libcuda.so.1");
}

TEST(CudaBackendOpeningTest, SaysWhatALibraryLacks) {
  ExpectFails(OpenStatus("libm.so.6"), ErrorCode::kUnsupported, "cuMemAlloc_v2");
}

TEST(CudaBackendOpeningTest, RefusesAnOlderDriver) {
  ExpectFails(OpenStatus("tests/fixtures/cuda/libcuda_10.so"), ErrorCode::kUnsupported,
              "CUDA 10.0");
}

TEST(CudaBackendOpeningTest, SaysThatThereIsNoDeviceOrDriver) {
  struct Case {
    const char* fault;
    ErrorCode code;
    const char* words;
  };
  for (const Case& wrong :
       {Case{"cuInit:1:100", ErrorCode::kNotFound, "no device"},
        Case{"cuInit:1:34", ErrorCode::kNotFound, "stub"},
        Case{"cuInit:1:803", ErrorCode::kUnsupported, "does not fit"},
        Case{"cuInit:1:999", ErrorCode::kSystem, "cuInit: CUDA_ERROR_UNKNOWN"},
        Case{"cuDeviceGetCount:1:999", ErrorCode::kSystem, "cuDeviceGetCount"},
        Case{"cuDeviceGet:2:999", ErrorCode::kSystem, "cuDeviceGet:"},
        Case{"cuDriverGetVersion:1:999", ErrorCode::kSystem, "cuDriverGetVersion"}}) {
    const StandInFaults faults(kCuda13, wrong.fault);
    SCOPED_TRACE(wrong.fault);
    ExpectFails(OpenStatus(kCuda13), wrong.code, wrong.words);
  }
}

TEST(CudaBackendOpeningTest, TellsTheToolkitsStubFromADriver) {
  if (access(kStub, R_OK) != 0) {
    GTEST_SKIP() << "no toolkit is installed: " << kStub;
  }
  ExpectFails(OpenStatus(kStub), ErrorCode::kNotFound, "stub");
}

// ---- The application's state ----

// A call of the application's: the stand-in exports its functions by name, as programs link them.
template <typename... Arguments>
CudaError Cuda(const char* name, Arguments... arguments) {
  return VendorFunction<CudaError(Arguments...)>(kCuda11, name)(arguments...);
}

class CudaBackendTest : public testing::Test {
 protected:
  void SetUp() override { backend_ = Must(CreateCudaBackend({kCuda11})); }
  static CudaContext CurrentContext() {
    CudaContext context = nullptr;
    EXPECT_EQ(Cuda("cuCtxGetCurrent", &context), kCudaSuccess);
    return context;
  }
  static bool IsActive(CudaDevice device) {
    unsigned flags = 0;
    int active = 0;
    EXPECT_EQ(Cuda("cuDevicePrimaryCtxGetState", device, &flags, &active), kCudaSuccess);
    return active != 0;
  }

  std::unique_ptr<GpuBackend> backend_;
};

// The primary context of a device, current as in an application.
class CurrentDevice {
 public:
  explicit CurrentDevice(CudaDevice device) : device_(device) {
    EXPECT_EQ(Cuda("cuDevicePrimaryCtxRetain", &context_, device), kCudaSuccess);
    EXPECT_EQ(Cuda("cuCtxPushCurrent_v2", context_), kCudaSuccess);
  }
  ~CurrentDevice() {
    CudaContext popped = nullptr;
    EXPECT_EQ(Cuda("cuCtxPopCurrent_v2", &popped), kCudaSuccess);
    EXPECT_EQ(popped, context_);
    EXPECT_EQ(Cuda("cuDevicePrimaryCtxRelease_v2", device_), kCudaSuccess);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  CudaContext context() const { return context_; }

 private:
  const CudaDevice device_;
  CudaContext context_ = nullptr;
};

TEST_F(CudaBackendTest, LeavesTheThreadsContextAlone) {
  EXPECT_TRUE(UseEverything(*backend_).empty());
  EXPECT_EQ(CurrentContext(), nullptr);
  const CurrentDevice applications(1);
  const std::vector<Status> failures = UseEverything(*backend_);  // on device 0
  EXPECT_TRUE(failures.empty()) << Text(failures);
  EXPECT_EQ(CurrentContext(), applications.context());
}

TEST_F(CudaBackendTest, MakesContextsWhenTheyAreNeededAndReleasesThem) {
  EXPECT_TRUE(backend_->GetDeviceInfo(0).ok());
  EXPECT_EQ(backend_->GetDeviceInfo(0)->free_bytes, 0u);  // which takes a context to find out
  const int on_stack = 0;
  EXPECT_EQ(backend_->Identify(&on_stack).kind, PointerKind::kUnknown);
  EXPECT_FALSE(IsActive(0) || IsActive(1));
  void* memory = Must(backend_->AllocateDevice(1, 4096));
  EXPECT_TRUE(!IsActive(0) && IsActive(1));
  EXPECT_GT(backend_->GetDeviceInfo(1)->free_bytes, 0u);
  // Host memory needs no further one.
  void* pinned = Must(backend_->AllocatePinned(4096));
  EXPECT_FALSE(IsActive(0));
  EXPECT_TRUE(backend_->Free(pinned).ok());
  EXPECT_TRUE(backend_->Free(memory).ok());
  backend_.reset();
  EXPECT_FALSE(IsActive(0) || IsActive(1));
}

TEST_F(CudaBackendTest, KnowsWhatTheApplicationAllocates) {
  const CurrentDevice applications(1);
  CudaDevicePtr memory = 0;
  ASSERT_EQ(Cuda("cuMemAlloc_v2", &memory, size_t{5000}), kCudaSuccess);
  auto* pointer = reinterpret_cast<std::byte*>(memory);
  PointerInfo info = backend_->Identify(pointer + 4999);
  EXPECT_EQ(info.kind, PointerKind::kDevice);
  EXPECT_EQ(info.device, 1);
  EXPECT_EQ(info.base, pointer);
  EXPECT_EQ(info.size_bytes, 5000u);
  EXPECT_NE(info.allocation_id, 0u);
  EXPECT_EQ(backend_->Free(pointer).code(), ErrorCode::kInvalidBuffer);
  EXPECT_TRUE(backend_->ExportIpc(pointer).ok());
  ASSERT_EQ(Cuda("cuMemFree_v2", memory), kCudaSuccess);
  EXPECT_EQ(backend_->Identify(pointer).kind, PointerKind::kUnknown);

  void* pinned = nullptr;
  ASSERT_EQ(Cuda("cuMemHostAlloc", &pinned, size_t{100}, 0U), kCudaSuccess);
  EXPECT_EQ(backend_->Identify(pinned).kind, PointerKind::kPinned);
  ASSERT_EQ(Cuda("cuMemFreeHost", pinned), kCudaSuccess);

  ASSERT_EQ(Cuda("cuMemAllocManaged", &memory, size_t{100}, 1U), kCudaSuccess);
  info = backend_->Identify(reinterpret_cast<void*>(memory));
  EXPECT_EQ(info.kind, PointerKind::kManaged);
  EXPECT_EQ(info.direct, (DirectAccess{true, false}));
  ASSERT_EQ(Cuda("cuMemFree_v2", memory), kCudaSuccess);
}

TEST_F(CudaBackendTest, AdoptsStreamsOfItsDeviceOnly) {
  const CurrentDevice applications(0);
  void* native = nullptr;
  ASSERT_EQ(Cuda("cuStreamCreate", &native, 1U), kCudaSuccess);
  {
    std::unique_ptr<Stream> stream = Must(backend_->AdoptStream(0, native));
    EXPECT_TRUE(CallsHost(*stream));
  }
  EXPECT_EQ(backend_->AdoptStream(1, native).status().code(), ErrorCode::kInvalidArgument);
  ASSERT_EQ(Cuda("cuStreamDestroy_v2", native), kCudaSuccess);
  const Status destroyed = backend_->AdoptStream(0, native).status();
  EXPECT_EQ(destroyed.code(), ErrorCode::kInvalidArgument) << destroyed.ToString();
  EXPECT_EQ(backend_->AdoptStream(0, reinterpret_cast<void*>(kCudaStreamPerThread)).status().code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(CudaBackendTest, DescribesItsDevices) {
  ASSERT_EQ(backend_->device_count(), 2);
  const DeviceInfo info = Must(backend_->GetDeviceInfo(1));
  EXPECT_EQ(info.name, "software NVIDIA GPU 1");
  EXPECT_EQ(info.pci_address, "fe7e:b1:00.0");
  EXPECT_EQ(info.total_bytes, uint64_t{256} << 20);
  EXPECT_EQ(info.stream_words, StreamWords::kNative);
  EXPECT_TRUE(info.ipc);
  EXPECT_TRUE(info.managed);
  EXPECT_FALSE(info.dmabuf);
  EXPECT_EQ(info.direct, DirectAccess{});
  EXPECT_EQ(backend_->version(), "CUDA 11.8");
  const std::unique_ptr<GpuBackend> newer = Must(CreateCudaBackend({kCuda13}));
  EXPECT_EQ(newer->version(), "CUDA 13.0");
  EXPECT_TRUE(newer->GetDeviceInfo(0)->dmabuf);
}

VendorUnderTest CudaVendor(const char* name, const char* library, const char* export_dmabuf) {
  VendorUnderTest vendor;
  vendor.name = name;
  vendor.library = library;
  vendor.create = [](const std::string& path) { return CreateCudaBackend({path}); };
  vendor.exporter = "cuda";
  vendor.calls = {"cuDeviceGetName",   "cuDeviceTotalMem",  "cuCtxPushCurrent",
                  "cuMemAlloc",        "cuMemFree",         "cuMemHostAlloc",
                  "cuMemFreeHost",     "cuMemAllocManaged", "cuPointerGetAttributes",
                  "cuIpcGetMemHandle", "cuMemHostRegister", "cuMemHostUnregister",
                  "cuStreamCreate",    "cuStreamQuery",     "cuMemcpyAsync",
                  "cuEventCreate",     "cuEventRecord",     "cuEventQuery",
                  "cuStreamWaitEvent", "cuLaunchHostFunc"};
  if (library == std::string_view(kCuda13WithoutWords)) {
    vendor.launch = "cuLaunchKernel";
    vendor.missing = WhyNoKernelImages(ImageFormat::kPtx);
    vendor.calls.push_back(vendor.launch);
  } else {
    vendor.calls.insert(vendor.calls.end(), {"cuStreamWriteValue64", "cuStreamWaitValue64"});
  }
  vendor.some_error = kCudaErrorUnknown;
  vendor.some_error_name = "CUDA_ERROR_UNKNOWN";
  vendor.allocate_device = "cuMemAlloc";
  vendor.allocate_pinned = "cuMemHostAlloc";
  vendor.out_of_memory = kCudaErrorOutOfMemory;
  vendor.copy = "cuMemcpyAsync";
  vendor.open_import = "cuIpcOpenMemHandle";
  vendor.close_import = "cuIpcCloseMemHandle";
  vendor.device_info = "cuDeviceTotalMem";
  vendor.export_dmabuf = export_dmabuf;
  vendor.device_lost = kCudaErrorIllegalAddress;
  vendor.device_lost_name = "CUDA_ERROR_ILLEGAL_ADDRESS";
  return vendor;
}

}  // namespace

std::vector<VendorUnderTest> VendorsUnderTest() {
  return {CudaVendor("Cuda11", kCuda11, ""),
          CudaVendor("Cuda13", kCuda13, "cuMemGetHandleForAddressRange"),
          CudaVendor("Cuda13WithoutWords", kCuda13WithoutWords, "cuMemGetHandleForAddressRange")};
}

}  // namespace ferry::gpu
