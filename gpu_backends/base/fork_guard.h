// Tells whether this process is a forked child of the one that made the guard, without a system
// call.
#pragma once

#include <unistd.h>

#include <cstdint>

#include "common/status.h"

namespace ferry::gpu {

// Thread-safe. The guard holds one page that the kernel wipes in a child (MADV_WIPEONFORK), so a
// check is one load; it sees children made by clone() too, which pthread_atfork handlers miss.
// Where the kernel has no such pages (before Linux 4.14) a check compares process ids instead.
class ForkGuard {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  bool InChild() const { return page_ != nullptr ? *page_ != kMark : getpid() != owner_; }

  // kForked in a child, naming both processes.
  Status Check() const;

 private:
  static constexpr uint64_t kMark = 0x46657272794f6b21;  // anything but 0

  uint64_t* page_ = nullptr;
  pid_t owner_;
};

}  // namespace ferry::gpu
