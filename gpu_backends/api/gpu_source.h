// A process's GPU backend, open only while a part of the process needs it.
//
// With some vendors a process that has touched a device keeps a context there, of hundreds of MB of
// its memory, until the backend is closed. So a daemon opens it when it is needed, shares it, and
// closes it once it has not been in use for a while.
//
// Thread-safe. Opening and closing block for as long as the driver takes, with a lock held that
// only Get and ReleaseIdle take.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "common/status.h"
#include "gpu_backends/api/backend.h"
#include "gpu_backends/api/copy_streams.h"

namespace ferry::gpu {

struct OpenedGpu {
  explicit OpenedGpu(std::unique_ptr<GpuBackend> opened)
      : backend(std::move(opened)), streams(*backend) {}

  const std::unique_ptr<GpuBackend> backend;
  CopyStreams streams;  // destroyed first
};

class GpuSource {
 public:
  using Open = std::function<StatusOr<std::unique_ptr<GpuBackend>>()>;
  // `opened` may be null: the backend is then opened when it is needed.
  GpuSource(Open open, uint64_t idle_ns, std::unique_ptr<GpuBackend> opened = nullptr);

  // Returns the backend, which stays open for as long as any result of Get is held. Errors as of
  // `open`, which is tried anew each time.
  StatusOr<std::shared_ptr<OpenedGpu>> Get();
  // Called now and then: closes the backend once it has not been in use for idle_ns, as far as
  // these calls see. True if it is still open, and not in use.
  bool ReleaseIdle(uint64_t now_ns);
  bool is_open() const;

 private:
  const Open open_;
  const uint64_t idle_ns_;
  mutable std::mutex mutex_;
  std::shared_ptr<OpenedGpu> opened_;
  uint64_t idle_since_ns_ = 0;  // 0: it was in use when it was last looked at
};

}  // namespace ferry::gpu
