// Ferry's own kernels by Level Zero.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "gpu_backends/device/kernel_images.h"
#include "gpu_backends/level_zero/level_zero_backend.h"
#include "tests/gpu_backends/kernel_launches.h"
#include "tests/gpu_backends/status_checks.h"

namespace ferry::gpu {

namespace {

StatusOr<std::unique_ptr<Driver>> Open() { return OpenLevelZeroDriver(""); }

// The choice of BUILD for this test.
bool DeviceCompiles() {
  const StatusOr<std::unique_ptr<Driver>> driver = Open();
  return driver.ok() && (*driver)->LoadKernels(0).ok();
}

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
  if (!status.ok() && !KernelImages().empty()) {
    EXPECT_THAT(status.message(), testing::HasSubstr("this device compiles nothing"));
  }
}

}  // namespace

std::vector<KernelDriver> KernelDrivers() {
  std::vector<KernelDriver> drivers;
  if (DeviceCompiles()) {
    drivers.push_back({"LevelZero", Open});
  }
  return drivers;
}

}  // namespace ferry::gpu
