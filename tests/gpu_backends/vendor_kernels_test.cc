// Ferry's own kernels by CUDA and HIP: launches, and what happens where they cannot be loaded.
#include <gtest/gtest.h>

#include "gpu_backends/cuda/cuda_backend.h"
#include "gpu_backends/hip/hip_backend.h"
#include "tests/gpu_backends/kernel_launches.h"
#include "tests/gpu_backends/skip_without_images.h"
#include "tests/gpu_backends/status_checks.h"
#include "tests/gpu_backends/vendor_scenario.h"

namespace ferry::gpu {

namespace {

constexpr const char* kCuda11 = "tests/fixtures/cuda/libcuda_11.so";
constexpr const char* kCuda13 = "tests/fixtures/cuda/libcuda_13.so";
constexpr const char* kHip5 = "tests/fixtures/hip/libamdhip64_5.so";
constexpr const char* kHip6 = "tests/fixtures/hip/libamdhip64_6.so";
constexpr const char* kHipOnCuda = "tests/fixtures/hip_on_cuda/libamdhip64_on_cuda.so";

class VendorKernelsTest : public testing::Test {
 protected:
  // Opens the driver, makes `fault` happen while kernels are loaded, and expects `words` in the
  // report of it, then and later.
  template <typename Open>
  static void ExpectNoKernels(Open&& open, const std::string& library, const std::string& fault,
                              const std::string& words) {
    std::unique_ptr<Driver> driver = Must(open(library));
    Status status;
    {
      const StandInFaults faults(library, fault);
      status = driver->LoadKernels(0);
    }
    EXPECT_THAT(status.message(), testing::HasSubstr(words)) << fault;
    EXPECT_EQ(driver->LoadKernels(0).message(), status.message());
    const DeviceInfo info = Must(driver->GetDeviceInfo(0));
    EXPECT_FALSE(info.kernels);
    EXPECT_EQ(info.no_kernels_because, status.message());
  }
};

TEST_F(VendorKernelsTest, ALibraryWithoutModulesIsUsedWithoutKernels) {
  ExpectNoKernels(OpenCudaDriver, kCuda11, "", "CUDA 11.8 loads no modules");
  ExpectNoKernels(OpenHipDriver, kHip5, "", "loads no modules");
}

TEST_F(VendorKernelsTest, WhyKernelsCouldNotBeLoadedIsKept) {
  FERRY_SKIP_WITHOUT_IMAGES(ImageFormat::kPtx);
  ExpectNoKernels(OpenCudaDriver, kCuda13, "cuModuleLoadDataEx:1:218",
                  "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX");
  ExpectNoKernels(OpenCudaDriver, kCuda13, "cuModuleGetFunction:3:500", "cuModuleGetFunction");
  FERRY_SKIP_WITHOUT_IMAGES(ImageFormat::kAmdgcn);
  ExpectNoKernels(OpenHipDriver, kHip6, "hipModuleLoadData:1+:209",
                  "hipModuleLoadData: hipErrorNoBinaryForGpu, of code for gfx906");
  ExpectNoKernels(OpenHipDriver, kHip6, "hipModuleGetFunction:1+:2", "hipModuleGetFunction");
}

TEST_F(VendorKernelsTest, WithoutDoublePrecisionTheOthersRun) {
  FERRY_SKIP_WITHOUT_IMAGES(ImageFormat::kPtx);
  std::unique_ptr<Driver> driver = Must(OpenCudaDriver(kCuda13));
  {
    const StandInFaults faults(kCuda13, "cuModuleLoadDataEx:2:218");
    ASSERT_TRUE(driver->LoadKernels(0).ok());
  }
  const NativeStream stream = Must(driver->CreateStream(0));
  const Status status = driver->Launch(0, stream, Kernel::kReduceF64, 1, {});
  EXPECT_THAT(status.message(), testing::HasSubstr("CUDA_ERROR_INVALID_PTX"));
  driver->DestroyStream(0, stream);
}

}  // namespace

std::vector<KernelDriver> KernelDrivers() {
  return {{"Cuda13", [] { return OpenCudaDriver(kCuda13); }, ImageFormat::kPtx},
          {"HipRocm6", [] { return OpenHipDriver(kHip6); }, ImageFormat::kAmdgcn},
          {"HipOnCuda", [] { return OpenHipDriver(kHipOnCuda); }, ImageFormat::kPtx}};
}

}  // namespace ferry::gpu
