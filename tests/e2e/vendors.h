// The GPU backends of the vendors, over their stand-ins in software (tests/fixtures).
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {

// "NAME=" and the absolute path of a file that the test is given.
inline std::string FileVariable(const std::string& name, const std::string& file) {
  return name + "=" + std::filesystem::absolute(file).string();
}

struct Vendor {
  std::string name;  // of the backend
  Words library;     // variables that lead to the stand-in

  // All variables of jobs on this backend.
  Words variables() const { return Joined(library, {"FERRY_GPU_BACKEND=" + name}); }
};
inline void PrintTo(const Vendor& vendor, std::ostream* out) { *out << vendor.name; }

inline std::vector<Vendor> Vendors() {
  return {
      {"cuda", {FileVariable("FERRY_CUDA_LIBRARY", "tests/fixtures/cuda/libcuda_11.so")}},
      {"hip", {FileVariable("FERRY_HIP_LIBRARY", "tests/fixtures/hip/libamdhip64_6.so")}},
      {"level_zero",
       {FileVariable("ZE_ENABLE_ALT_DRIVERS", "tests/fixtures/level_zero/libferry_level_zero.so"),
        "ZE_FIXTURE=atomics,imports"}},
  };
}

// The vendors with stand-ins that launch kernels: CUDA 11's has none.
inline std::vector<Vendor> VendorsWithKernels() {
  std::vector<Vendor> vendors = Vendors();
  vendors[0].library = {FileVariable("FERRY_CUDA_LIBRARY", "tests/fixtures/cuda/libcuda_13.so")};
  return vendors;
}

}  // namespace ferry::e2e
