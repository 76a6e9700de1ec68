// Tests of Ferry's own kernels are skipped where the build had no compiler for them, and say which.
// device_kernels_test fails where it is installed all the same.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "gpu_backends/device/kernel_images.h"

#define FERRY_SKIP_WITHOUT(missing)                           \
  if (const std::string_view what = missing; !what.empty()) { \
    GTEST_SKIP() << "this build was made without " << what;   \
  }                                                           \
  static_assert(true)

#define FERRY_SKIP_WITHOUT_IMAGES(format) FERRY_SKIP_WITHOUT(WhyNoKernelImages(format))
