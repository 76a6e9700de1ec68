// Backends for vendors' libraries that the program loads, or begins to use, while it runs: Python
// imports them when its first module needs a GPU.
//
// Nothing here loads a library, or initialises one that the program does not use. Calling thread:
// one at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_backends/api/backend.h"
#include "gpu_backends/api/registry.h"

namespace ferry::gpu {

// Returns true if this process has loaded the library of the backend with this name.
bool IsVendorLoaded(std::string_view backend);

class LateVendors final : public LateBackends {
 public:
  void LookForLibraries() override;
  bool MayOpen() const override;
  std::unique_ptr<GpuBackend> TryOpen() override;
  std::string WhyRefused() const override;

 private:
  struct Library {
    size_t vendor;  // in the list of vendors
    std::string path;
    void* call = nullptr;   // of the library, whose handle is kept, so that it stays
    std::string why_not{};  // its backend cannot be opened
  };
  std::vector<Library> libraries_;
};

}  // namespace ferry::gpu
