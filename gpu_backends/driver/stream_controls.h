// The words by which the host reaches the kernels of streams (gpu_backends/device/control.h): lines
// of pinned memory, since an allocation for each stream would take a page or more.
//
// Thread-safe. Must outlive the work on the streams.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

class StreamControls : public std::enable_shared_from_this<StreamControls> {
 public:
  explicit StreamControls(std::shared_ptr<Driver> driver) : driver_(std::move(driver)) {}
  ~StreamControls();
  StreamControls(const StreamControls&) = delete;
  StreamControls& operator=(const StreamControls&) = delete;

  // A line of zeroes. It comes back when the last copy of the pointer is gone, which keeps this
  // alive. Errors as for AllocatePinned.
  StatusOr<std::shared_ptr<uint64_t>> Take();

 private:
  void Give(uint64_t* line);

  const std::shared_ptr<Driver> driver_;
  std::mutex mutex_;
  std::vector<void*> blocks_;
  std::vector<uint64_t*> free_;
};

}  // namespace ferry::gpu
