// The GPUs of a worker process: its ranks' device memory, imported, and copies between that and
// staging memory, by streams.
//
// The vendor's library is loaded, and devices get their contexts, when the first import comes, and
// not before: most jobs need none of it. Some time after the last import they are given back.
//
// Main thread only. Import may block for as long as a driver takes to start, ReleaseIdle while it
// ends; nothing else does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "common/clock.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/session/session.h"
#include "daemon/staging/device_copier.h"
#include "daemon/worker/control_layout.h"
#include "gpu_backends/api/gpu_source.h"
#include "shm/segment.h"

namespace ferry::daemon {

// Staging memory as a worker sees it. It stays while the job does.
struct WorkerStaging {
  shm::Mapping mapping;
  uint64_t block_bytes = 0;
};

class WorkerGpu final : private CopySink {
 public:
  using Done = std::function<void(const CopyCommand& command, ErrorCode error)>;

  // `done` tells how each copy has ended. At most `capacity` are under way at a time.
  WorkerGpu(std::shared_ptr<gpu::GpuSource> gpus, uint32_t capacity, Done done);

  // Imports the region's device memory. Errors as of Region::Import.
  Status Import(const gpu::IpcHandle& handle, Region* region);
  // No region is imported any more: once its copies are over, nothing keeps the backend open.
  void Rest();
  // To be called now and then: closes the backend if nothing has kept it open for a while. True if
  // it is to be called again.
  bool ReleaseIdle() { return gpus_->ReleaseIdle(MonotonicNs()); }

  // Begins the copy, whose staging memory lies within `staging`, and the rest in `region`.
  void Begin(const CopyCommand& command, WorkerStaging& staging,
             std::shared_ptr<const Region> region);
  // Tells of the copies that have ended; returns how many.
  uint32_t Collect();
  uint32_t pending() const { return copier_ == nullptr ? 0 : copier_->pending(); }
  // Readable once a copy has ended; Collect silences it. After a failure it stays silent: while
  // copies are pending Collect is to be called now and then.
  int bell() const { return bell_.get(); }

 private:
  struct Flight {
    CopyCommand command;
    std::shared_ptr<const Region> region;  // stays imported until the copy is over
  };

  void MakeCopier();
  void Pin(WorkerStaging& staging, uint64_t offset);
  void OnCopied(const CopyTask& task) override;

  const std::shared_ptr<gpu::GpuSource> gpus_;
  const uint32_t capacity_;
  const Done done_;
  UniqueFd bell_;
  std::unique_ptr<DeviceCopier> copier_;  // null before the first import, and after the last
  bool resting_ = false;                  // it goes with the last copy
  std::map<uint64_t, Flight> flights_;    // by the command's id
  std::set<std::byte*> pinned_;           // blocks of staging memory
};

}  // namespace ferry::daemon
