// The HIP backend in adverse surroundings, and what it leaves to the application.
#include "gpu_backends/hip/hip_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_backends/device/kernel_images.h"
#include "gpu_backends/hip/hip_abi.h"
#include "tests/fixtures/hip/hip_stand_in.h"
#include "tests/gpu_backends/skip_without_images.h"
#include "tests/gpu_backends/status_checks.h"
#include "tests/gpu_backends/vendor_faults.h"
#include "tests/gpu_backends/vendor_scenario.h"

namespace ferry::gpu {
namespace {

using testing::HasSubstr;

constexpr const char* kRocm5 = "tests/fixtures/hip/libamdhip64_5.so";
constexpr const char* kRocm6 = "tests/fixtures/hip/libamdhip64_6.so";
constexpr const char* kRocm6WithoutWords = "tests/fixtures/hip/libamdhip64_6_without_words.so";

std::string Name(const testing::TestParamInfo<const char*>& info) {
  return info.param == std::string_view(kRocm5) ? "Rocm5" : "Rocm6";
}

// ---- Opening ----

Status OpenStatus(const std::string& library) { return CreateHipBackend({library}).status(); }

TEST(HipBackendOpeningTest, SaysThatTheLibraryIsMissing) {
  ExpectFails(OpenStatus("/nowhere/libamdhip64.so"), ErrorCode::kNotFound,
              "/nowhere/libamdhip64.so");
}

TEST(HipBackendOpeningTest, SaysWhatALibraryLacks) {
  ExpectFails(OpenStatus("libm.so.6"), ErrorCode::kUnsupported, "hipMalloc");
}

TEST(HipBackendOpeningTest, RefusesAnOlderRelease) {
  ExpectFails(OpenStatus("tests/fixtures/hip/libamdhip64_4.so"), ErrorCode::kUnsupported,
              "HIP 4.4");
}

TEST(HipBackendOpeningTest, SaysThatThereIsNoDeviceOrDriver) {
  {
    const StandInFaults faults(kRocm5, "hipGetDeviceCount:1:100");
    ExpectFails(OpenStatus(kRocm5), ErrorCode::kNotFound, "no device");
  }
  const StandInFaults faults(kRocm5, "hipGetDeviceCount:1:35");
  ExpectFails(OpenStatus(kRocm5), ErrorCode::kNotFound, "no driver");
}

TEST(HipBackendOpeningTest, TellsOtherErrorsOfOpening) {
  for (const char* call : {"hipRuntimeGetVersion", "hipGetDeviceCount"}) {
    const StandInFaults faults(kRocm5, std::string(call) + ":1:999");
    ExpectFails(OpenStatus(kRocm5), ErrorCode::kSystem, std::string(call) + ": hipErrorUnknown");
  }
}

// ---- Mappings ----

#define FERRY_ROCM6(call, ...) \
  ASSERT_EQ(VendorFunction<decltype(fixtures::call)>(kRocm6, #call)(__VA_ARGS__), kHipSuccess)

// Three pieces of addresses side by side, to which memory of device 0 is mapped.
class HipMappingsTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = size_t{2} << 20;  // of each
  static constexpr size_t kCount = 1000;             // of a vector's elements
  static constexpr size_t kHalf = kCount / 2 * sizeof(int32_t);

  void SetUp() override {
    FERRY_SKIP_WITHOUT_IMAGES(ImageFormat::kAmdgcn);
    backend_ = Must(CreateHipBackend({kRocm6}));
    stream_ = Must(backend_->CreateStream(0));
    void* begin = nullptr;
    FERRY_ROCM6(hipMemAddressReserve, &begin, memory_.size() * kBytes, 0, nullptr, 0);
    begin_ = static_cast<std::byte*>(begin);
  }
  void TearDown() override {
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (memory_[i] != nullptr) {
        FERRY_ROCM6(hipMemUnmap, begin_ + i * kBytes, kBytes);
        FERRY_ROCM6(hipMemRelease, memory_[i]);
      }
    }
    if (begin_ != nullptr) {
      FERRY_ROCM6(hipMemAddressFree, begin_, memory_.size() * kBytes);
    }
    // Of the stand-in's thread, for tests that look at it.
    (void)VendorFunction<decltype(fixtures::hipGetLastError)>(kRocm6, "hipGetLastError")();
  }
  void Map(size_t i) {
    fixtures::HipMemProperties properties{};
    properties.type = fixtures::kHipMemPinnedType;
    properties.location = {kHipMemLocationDevice, 0};
    const fixtures::HipMemAccess access{properties.location, fixtures::kHipMemReadWrite};
    FERRY_ROCM6(hipMemCreate, &memory_[i], kBytes, &properties, 0);
    FERRY_ROCM6(hipMemMap, begin_ + i * kBytes, kBytes, 0, memory_[i], 0);
    FERRY_ROCM6(hipMemSetAccess, begin_ + i * kBytes, kBytes, &access, 1);
  }
  // Doubles the elements from there on.
  Status Double(std::byte* memory, size_t count) {
    auto* const numbers = reinterpret_cast<int32_t*>(memory);
    const Status begun = stream_->Reduce({numbers, numbers, numbers, count, ReductionType::kI32});
    return begun.ok() ? stream_->Synchronize() : begun;
  }

  std::unique_ptr<GpuBackend> backend_;
  std::unique_ptr<Stream> stream_;
  std::byte* begin_ = nullptr;
  std::array<fixtures::HipMemHandle, 3> memory_{};
};

// HIP tells of one mapping at a time.
TEST_F(HipMappingsTest, KernelsReduceVectorsThatRunOnIntoTheNext) {
  Map(0);
  Map(1);
  std::byte* const across = begin_ + kBytes - kHalf;
  std::vector<int32_t> numbers(kCount, 21);
  for (const size_t half : {size_t{0}, kCount / 2}) {  // no copy of these releases crosses mappings
    FERRY_ROCM6(hipMemcpy, across + half * sizeof(int32_t), &numbers[half], kHalf,
                kHipMemcpyDefault);
  }
  const Status reduced = Double(across, kCount);
  EXPECT_TRUE(reduced.ok()) << reduced.message();
  for (const size_t half : {size_t{0}, kCount / 2}) {
    FERRY_ROCM6(hipMemcpy, &numbers[half], across + half * sizeof(int32_t), kHalf,
                kHipMemcpyDefault);
  }
  EXPECT_EQ(numbers, std::vector<int32_t>(kCount, 42));
  EXPECT_TRUE(Double(begin_, 2 * kBytes / sizeof(int32_t)).ok());
}

TEST_F(HipMappingsTest, KernelsAreKeptFromHolesBetweenThem) {
  Map(0);
  Map(2);
  EXPECT_TRUE(Double(begin_ + kBytes - kHalf, kCount / 2).ok()) << "up to the hole";
  EXPECT_FALSE(Double(begin_ + kBytes - kHalf, kCount).ok());
  EXPECT_FALSE(Double(begin_, memory_.size() * kBytes / sizeof(int32_t)).ok());
}

#undef FERRY_ROCM6

class HipBackendTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { backend_ = Must(CreateHipBackend({GetParam()})); }
  // A call of the application's.
  template <typename... Arguments>
  HipError Hip(const char* name, Arguments... arguments) {
    return VendorFunction<HipError(Arguments...)>(GetParam(), name)(arguments...);
  }

  std::unique_ptr<GpuBackend> backend_;
};

TEST_P(HipBackendTest, StreamsWithoutWordsSaySo) {
  // Words do not work, nor can kernels be loaded, which shows when they are needed.
  const StandInFaults faults(GetParam(), "hipStreamWaitValue64:1+:1,hipModuleLoadData:1+:209");
  std::unique_ptr<GpuBackend> backend = Must(CreateHipBackend({GetParam()}));
  const StatusOr<DeviceInfo> info = backend->GetDeviceInfo(0);
  EXPECT_EQ(info->stream_words, info->kernels ? StreamWords::kKernel : StreamWords::kHelper);
  void* pinned = Must(backend->AllocatePinned(8));
  const std::unique_ptr<Stream> stream = std::move(*backend->CreateStream(0));
  const Status status =
      stream->WaitValue64(static_cast<uint64_t*>(pinned), 0, WaitCondition::kEqual);
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported) << status.ToString();
  const StatusOr<DeviceInfo> afterwards = backend->GetDeviceInfo(0);
  EXPECT_EQ(afterwards->stream_words, StreamWords::kHelper);
  EXPECT_FALSE(afterwards->kernels);
  EXPECT_THAT(status.message(), HasSubstr(afterwards->no_kernels_because));
  EXPECT_TRUE(backend->Free(pinned).ok());
}

// ---- The application's state ----

TEST_P(HipBackendTest, LeavesTheThreadsDeviceAndErrorAlone) {
  ASSERT_EQ(Hip("hipSetDevice", 1), kHipSuccess);
  const std::vector<Status> failures = UseEverything(*backend_);  // on device 0
  EXPECT_TRUE(failures.empty()) << Text(failures);
  int device = -1;
  ASSERT_EQ(Hip("hipGetDevice", &device), kHipSuccess);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(Hip("hipGetLastError"), kHipSuccess);
  // An error that the application has not fetched yet is still there.
  ASSERT_EQ(Hip("hipFree", static_cast<void*>(&device)), kHipErrorInvalidValue);
  EXPECT_TRUE(UseEverything(*backend_).empty());
  EXPECT_NE(Hip("hipGetLastError"), kHipSuccess);
  ASSERT_EQ(Hip("hipSetDevice", 0), kHipSuccess);
}

TEST_P(HipBackendTest, KnowsWhatTheApplicationAllocates) {
  void* memory = nullptr;
  ASSERT_EQ(Hip("hipSetDevice", 1), kHipSuccess);
  ASSERT_EQ(Hip("hipMalloc", &memory, size_t{5000}), kHipSuccess);
  ASSERT_EQ(Hip("hipSetDevice", 0), kHipSuccess);
  PointerInfo info = backend_->Identify(static_cast<std::byte*>(memory) + 4999);
  EXPECT_EQ(info.kind, PointerKind::kDevice);
  EXPECT_EQ(info.device, 1);
  EXPECT_EQ(info.base, memory);
  EXPECT_EQ(info.size_bytes, 5000u);
  EXPECT_NE(info.allocation_id, 0u);
  EXPECT_EQ(backend_->Free(memory).code(), ErrorCode::kInvalidBuffer);
  EXPECT_TRUE(backend_->ExportIpc(memory).ok());
  ASSERT_EQ(Hip("hipFree", memory), kHipSuccess);
  EXPECT_EQ(backend_->Identify(memory).kind, PointerKind::kUnknown);

  ASSERT_EQ(Hip("hipHostMalloc", &memory, size_t{100}, 0U), kHipSuccess);
  EXPECT_EQ(backend_->Identify(memory).kind, PointerKind::kPinned);
  ASSERT_EQ(Hip("hipHostFree", memory), kHipSuccess);

  ASSERT_EQ(Hip("hipMallocManaged", &memory, size_t{100}, 1U), kHipSuccess);
  info = backend_->Identify(memory);
  EXPECT_EQ(info.kind, PointerKind::kManaged);
  EXPECT_EQ(info.direct, (DirectAccess{true, false}));
  ASSERT_EQ(Hip("hipFree", memory), kHipSuccess);
}

TEST_P(HipBackendTest, AdoptsStreamsOfItsDeviceOnly) {
  void* native = nullptr;
  ASSERT_EQ(Hip("hipStreamCreateWithFlags", &native, 1U), kHipSuccess);
  {
    std::unique_ptr<Stream> stream = Must(backend_->AdoptStream(0, native));
    EXPECT_TRUE(CallsHost(*stream));
  }
  if (GetParam() == std::string_view(kRocm6)) {  // 5.2 cannot tell
    EXPECT_EQ(backend_->AdoptStream(1, native).status().code(), ErrorCode::kInvalidArgument);
  }
  ASSERT_EQ(Hip("hipStreamDestroy", native), kHipSuccess);
  const Status destroyed = backend_->AdoptStream(0, native).status();
  EXPECT_EQ(destroyed.code(), ErrorCode::kInvalidArgument) << destroyed.ToString();
  EXPECT_EQ(backend_->AdoptStream(0, reinterpret_cast<void*>(kHipStreamPerThread)).status().code(),
            ErrorCode::kInvalidArgument);
}

TEST_P(HipBackendTest, DescribesItsDevices) {
  ASSERT_EQ(backend_->device_count(), 2);
  const DeviceInfo info = Must(backend_->GetDeviceInfo(1));
  EXPECT_EQ(info.name, "software AMD GPU 1");
  EXPECT_EQ(info.pci_address, "fe7e:a1:00.0");
  EXPECT_EQ(info.total_bytes, uint64_t{256} << 20);
  EXPECT_LE(info.free_bytes, info.total_bytes);
  EXPECT_GT(info.free_bytes, 0u);
  EXPECT_EQ(info.stream_words, StreamWords::kNative);
  EXPECT_TRUE(info.ipc);
  EXPECT_TRUE(info.managed);
  EXPECT_EQ(info.dmabuf, GetParam() == std::string_view(kRocm6));
  EXPECT_EQ(info.direct, DirectAccess{});
  EXPECT_EQ(backend_->version(),
            GetParam() == std::string_view(kRocm5) ? "HIP 5.2.21153" : "HIP 6.0.32830");
}

INSTANTIATE_TEST_SUITE_P(Releases, HipBackendTest, testing::Values(kRocm5, kRocm6), Name);

VendorUnderTest HipVendor(const char* name, const char* library, const char* host_function,
                          const char* export_dmabuf) {
  VendorUnderTest vendor;
  vendor.name = name;
  vendor.library = library;
  vendor.create = [](const std::string& path) { return CreateHipBackend({path}); };
  vendor.exporter = "hip";
  vendor.calls = {"hipGetDevice",
                  "hipDeviceGetName",
                  "hipDeviceTotalMem",
                  "hipMemGetInfo",
                  "hipMalloc",
                  "hipFree",
                  "hipHostMalloc",
                  "hipHostFree",
                  "hipMallocManaged",
                  "hipPointerGetAttributes",
                  "hipIpcGetMemHandle",
                  "hipHostRegister",
                  "hipHostGetDevicePointer",
                  "hipHostUnregister",
                  "hipStreamCreateWithFlags",
                  "hipStreamQuery",
                  "hipMemcpyAsync",
                  "hipEventCreateWithFlags",
                  "hipEventRecord",
                  "hipEventQuery",
                  "hipStreamWaitEvent",
                  host_function};
  if (library == std::string_view(kRocm6WithoutWords)) {
    vendor.launch = "hipModuleLaunchKernel";
    vendor.missing = WhyNoKernelImages(ImageFormat::kAmdgcn);
    vendor.calls.push_back(vendor.launch);
  } else {
    vendor.calls.insert(vendor.calls.end(), {"hipStreamWriteValue64", "hipStreamWaitValue64"});
  }
  vendor.some_error = kHipErrorUnknown;
  vendor.some_error_name = "hipErrorUnknown";
  vendor.allocate_device = "hipMalloc";
  vendor.allocate_pinned = "hipHostMalloc";
  vendor.out_of_memory = kHipErrorOutOfMemory;
  vendor.copy = "hipMemcpyAsync";
  vendor.open_import = "hipIpcOpenMemHandle";
  vendor.close_import = "hipIpcCloseMemHandle";
  vendor.device_info = "hipDeviceTotalMem";
  vendor.export_dmabuf = export_dmabuf;
  vendor.device_lost = kHipErrorLaunchFailure;
  vendor.device_lost_name = "hipErrorLaunchFailure";
  return vendor;
}

}  // namespace

std::vector<VendorUnderTest> VendorsUnderTest() {
  return {HipVendor("Rocm5", kRocm5, "hipStreamAddCallback", ""),
          HipVendor("Rocm6", kRocm6, "hipLaunchHostFunc", "hsa_amd_portable_export_dmabuf"),
          HipVendor("Rocm6WithoutWords", kRocm6WithoutWords, "hipLaunchHostFunc",
                    "hsa_amd_portable_export_dmabuf")};
}

}  // namespace ferry::gpu
