// The GPU backends of this process, by name. It names no concrete backend: whoever wires the
// process opens them (gpu_backends/loader) and adds them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::gpu {

// Thread-safe. Owns its backends, which live as long as it does. Lookups take no lock, so that
// identifying a pointer on every send costs no more than the backends' own Identify.
class BackendRegistry {
 public:
  static constexpr size_t kMaxBackends = 8;

  // The backend that knows a pointer, and what it knows. `backend` is null if none does.
  struct Match {
    GpuBackend* backend = nullptr;
    PointerInfo info;
  };

  BackendRegistry() = default;
  BackendRegistry(const BackendRegistry&) = delete;
  BackendRegistry& operator=(const BackendRegistry&) = delete;

  // kInvalidArgument for null, kAlreadyExists for a name that is taken, kLimitExceeded beyond
  // kMaxBackends.
  Status Add(std::unique_ptr<GpuBackend> backend);

  // Null if there is none of that name.
  GpuBackend* Find(std::string_view name) const;

  // Asks the backends in the order they were added; the first that knows `pointer` wins.
  Match Identify(const void* pointer) const;

  // All backends, in the order they were added.
  std::vector<GpuBackend*> List() const;

 private:
  std::mutex add_mutex_;
  std::array<std::unique_ptr<GpuBackend>, kMaxBackends> backends_;
  std::atomic<size_t> count_{0};  // slots below it are filled and never change again
};

}  // namespace ferry::gpu
