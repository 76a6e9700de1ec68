// Code for devices, as the build has compiled and embedded it (bazel/device_code.bzl).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ferry::gpu {

enum class ImageFormat : uint8_t {
  kSpirv,   // any device of Level Zero
  kPtx,     // for NVIDIA's devices from `architecture` on; a zero follows
  kAmdgcn,  // a code object for AMD's devices of `architecture`
};

struct DeviceImage {
  ImageFormat format;
  const char* architecture;
  std::string_view bytes;
};

}  // namespace ferry::gpu
