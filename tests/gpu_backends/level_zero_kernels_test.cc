// Ferry's own kernels by Level Zero.
#include <gtest/gtest.h>

#include "gpu_backends/level_zero/level_zero_backend.h"
#include "tests/gpu_backends/kernel_launches.h"
#include "tests/gpu_backends/skip_without_images.h"
#include "tests/gpu_backends/status_checks.h"

namespace ferry::gpu {

namespace {

StatusOr<std::unique_ptr<Driver>> Open() { return OpenLevelZeroDriver(""); }

constexpr bool kDeviceCompiles = FERRY_TEST_DEVICE_COMPILES;  // as BUILD chooses the device

TEST(LevelZeroKernelsOpeningTest, WhatADeviceDoesNotCompileItSays) {
  StatusOr<std::unique_ptr<Driver>> driver = Open();
  if (driver.status().code() == ErrorCode::kNotFound) {
    GTEST_SKIP() << driver.status().message();
  }
  ASSERT_TRUE(driver.ok()) << driver.status().ToString();
  const Status status = (*driver)->LoadKernels(0);
  const DeviceInfo info = Must((*driver)->GetDeviceInfo(0));
  EXPECT_EQ(info.kernels, status.ok());
  EXPECT_EQ(info.no_kernels_because, status.message());
  FERRY_SKIP_WITHOUT_IMAGES(ImageFormat::kSpirv);
  EXPECT_EQ(status.ok(), kDeviceCompiles) << status.ToString();
  if (!status.ok()) {
    EXPECT_THAT(status.message(), testing::HasSubstr("this device compiles nothing"));
  }
}

}  // namespace

std::vector<KernelDriver> KernelDrivers() {
  std::vector<KernelDriver> drivers;
  if (kDeviceCompiles && Open().status().code() != ErrorCode::kNotFound) {
    drivers.push_back({"LevelZero", Open, ImageFormat::kSpirv});
  }
  return drivers;
}

}  // namespace ferry::gpu
