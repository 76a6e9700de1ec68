// The GPU backends of this process, by name. The registry names no concrete backend: the code that
// wires the process opens them (gpu_backends/loader) and adds them.
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

// Backends for vendors' libraries that the program loads, or begins to use, while it runs.
//
// Calling thread: one at a time.
class LateBackends {
 public:
  virtual ~LateBackends() = default;
  // Looks for vendors' libraries among those that are loaded by now. Loads none itself.
  virtual void LookForLibraries() = 0;
  // Returns true if some library is loaded that the program may begin to use.
  virtual bool MayOpen() const = 0;
  // Opens the backend of a library that the program has begun to use; null: there is none. Takes a
  // few nanoseconds until then.
  virtual std::unique_ptr<GpuBackend> TryOpen() = 0;
  // Returns why a library that is in use has no backend; empty: there is no such library.
  virtual std::string WhyRefused() const = 0;
};

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

  // Sets the source of later backends, before other threads use the registry. Null: there are none.
  void SetLate(std::unique_ptr<LateBackends> late) { late_ = std::move(late); }
  LateBackends* late() const { return late_.get(); }

  // Returns the backend of that name, or null.
  GpuBackend* Find(std::string_view name) const;

  // Asks the backends in the order they were added; the first that knows `pointer` wins.
  Match Identify(const void* pointer) const;

  // All backends, in the order they were added.
  std::vector<GpuBackend*> List() const;

 private:
  std::mutex add_mutex_;
  std::array<std::unique_ptr<GpuBackend>, kMaxBackends> backends_;
  std::atomic<size_t> count_{0};  // slots below it are filled and never change again
  std::unique_ptr<LateBackends> late_;
};

}  // namespace ferry::gpu
