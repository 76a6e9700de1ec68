#include "gpu_backends/loader/late_vendors.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "gpu_backends/cuda/cuda_abi.h"
#include "gpu_backends/cuda/cuda_backend.h"
#include "gpu_backends/hip/hip_backend.h"
#include "gpu_backends/level_zero/level_zero_backend.h"

namespace ferry::gpu {
namespace {

constexpr int kZeUninitialized = 0x78000001;  // ZE_RESULT_ERROR_UNINITIALIZED

bool IsCudaInUse(void* call) {
  using GetCurrent = CudaError (*)(CudaContext*);
  auto* const get_current = reinterpret_cast<GetCurrent>(call);
  CudaContext context = nullptr;
  return get_current != nullptr && get_current(&context) != kCudaErrorNotInitialized;
}

// Whatever it is asked first initialises HIP, so there is no call that could tell; a program does
// not load it for nothing. It makes no context by that.
bool IsHipInUse(void* /*call*/) { return true; }

bool IsLevelZeroInUse(void* call) {
  using DriverGet = int (*)(uint32_t * count, void* drivers);
  auto* const driver_get = reinterpret_cast<DriverGet>(call);
  uint32_t count = 0;
  return driver_get != nullptr && driver_get(&count, nullptr) != kZeUninitialized;
}

struct Vendor {
  std::string_view backend;
  std::string_view file;  // how the name of the library's file begins
  const char* call;       // that tells whether it is in use
  bool (*is_in_use)(void* call);
  StatusOr<std::unique_ptr<GpuBackend>> (*open)(const std::string& path);
};

constexpr Vendor kVendors[] = {
    {"cuda", "libcuda.so", "cuCtxGetCurrent", &IsCudaInUse,
     [](const std::string& path) { return CreateCudaBackend({path}); }},
    {"hip", "libamdhip64.so", "hipInit", &IsHipInUse,
     [](const std::string& path) { return CreateHipBackend({path}); }},
    {"level_zero", "libze_loader.so", "zeDriverGet", &IsLevelZeroInUse,
     [](const std::string& path) { return CreateLevelZeroBackend({path}); }},
};

std::vector<std::string> LoadedPaths() {
  std::vector<std::string> paths;
  (void)dl_iterate_phdr(
      [](dl_phdr_info* info, size_t /*size*/, void* found) {
        static_cast<std::vector<std::string>*>(found)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

bool IsOf(const Vendor& vendor, std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with(vendor.file);
}

}  // namespace

bool IsVendorLoaded(std::string_view backend) {
  const std::vector<std::string> paths = LoadedPaths();
  return std::any_of(std::begin(kVendors), std::end(kVendors), [&](const Vendor& vendor) {
    return vendor.backend == backend &&
           std::any_of(paths.begin(), paths.end(),
                       [&](const std::string& path) { return IsOf(vendor, path); });
  });
}

void LateVendors::LookForLibraries() {
  for (const std::string& path : LoadedPaths()) {
    for (size_t i = 0; i < std::size(kVendors); ++i) {
      const bool is_known =
          std::any_of(libraries_.begin(), libraries_.end(),
                      [&](const Library& library) { return library.path == path; });
      if (!IsOf(kVendors[i], path) || is_known) {
        continue;
      }
      if (void* const handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD); handle != nullptr) {
        libraries_.push_back({i, path, dlsym(handle, kVendors[i].call)});
      }
    }
  }
}

bool LateVendors::MayOpen() const {
  return std::any_of(libraries_.begin(), libraries_.end(),
                     [](const Library& library) { return library.why_not.empty(); });
}

std::unique_ptr<GpuBackend> LateVendors::TryOpen() {
  for (Library& library : libraries_) {
    const Vendor& vendor = kVendors[library.vendor];
    if (!library.why_not.empty() || !vendor.is_in_use(library.call)) {
      continue;
    }
    auto backend = vendor.open(library.path);
    if (backend.ok()) {
      return std::move(*backend);
    }
    library.why_not = library.path + ": " + backend.status().ToString();
  }
  return nullptr;
}

std::string LateVendors::WhyRefused() const {
  std::string why;
  for (const Library& library : libraries_) {
    if (!library.why_not.empty()) {
      why += (why.empty() ? "" : "; ") + library.why_not;
    }
  }
  return why;
}

}  // namespace ferry::gpu
