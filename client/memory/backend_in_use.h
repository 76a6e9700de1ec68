// The GPU backend that the rank uses, and the streams of its copies. It changes once, when the
// program begins to use a vendor's library.
//
// Calling thread: any.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/memory/last_library.h"
#include "client/memory/region_table.h"
#include "gpu_backends/api/copy_streams.h"
#include "gpu_backends/api/registry.h"

namespace ferry::client {

class BackendInUse {
 public:
  // Uses the first of the backends that are open, and looks for a vendor's.
  BackendInUse(gpu::BackendRegistry* backends, RegionTable* regions);

  // Null without a GPU backend.
  gpu::CopyStreams* streams() const { return streams_.load(std::memory_order_acquire); }
  // Null without one. Pairs with Use.
  gpu::GpuBackend* backend() const { return backend_.load(std::memory_order_acquire); }
  // Returns the backend that has allocated or registered this memory; the one in use if none says
  // that it has.
  gpu::GpuBackend* OwnerOf(const void* pointer) const;
  // Returns true if a vendor's backend is in use. Looks for one where libraries have been loaded
  // since the last look.
  bool HasVendor();
  // Returns why a vendor's library that is loaded cannot be used; empty: there is none.
  std::string WhyNoVendor() const;

 private:
  void Use(gpu::GpuBackend* backend);
  void LookForVendor();

  gpu::BackendRegistry* const backends_;
  RegionTable& regions_;
  std::atomic<gpu::GpuBackend*> backend_{nullptr};
  std::atomic<gpu::CopyStreams*> streams_{nullptr};
  std::vector<std::unique_ptr<gpu::CopyStreams>> all_streams_;

  mutable std::mutex mutex_;  // of the next three
  LastLibrary last_library_;
  const void* const* next_library_ = nullptr;
  std::string why_no_vendor_;
};

}  // namespace ferry::client
