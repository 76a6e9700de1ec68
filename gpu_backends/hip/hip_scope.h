// The calling thread's current device and last error, which are the application's.
#pragma once

#include "common/status.h"
#include "gpu_backends/hip/hip_api.h"

namespace ferry::gpu {

inline constexpr int kAnyDevice = -1;  // whichever is current

// Makes `device` the thread's current one for as long as it lives, and hides the errors of the
// calls in between. Used by one thread.
class HipScope {
 public:
  HipScope(const HipApi& api, int device)
      : api_(api), keeps_error_(api.peek_at_last_error() != kHipSuccess) {
    if (device == kAnyDevice) {
      return;
    }
    status_ = api_.Check("hipGetDevice", api_.get_device(&previous_));
    if (status_.ok() && previous_ != device) {
      status_ = api_.Check("hipSetDevice", api_.set_device(device));
      changed_ = status_.ok();
    }
  }
  ~HipScope() {
    if (changed_) {
      (void)api_.set_device(previous_);
    }
    if (!keeps_error_) {
      (void)api_.get_last_error();  // forgets it
    }
  }
  HipScope(const HipScope&) = delete;
  HipScope& operator=(const HipScope&) = delete;

  const Status& status() const { return status_; }

 private:
  const HipApi& api_;
  const bool keeps_error_;
  bool changed_ = false;
  int previous_ = 0;
  Status status_;
};

}  // namespace ferry::gpu
