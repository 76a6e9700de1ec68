#include "shm/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ferry::shm {

namespace internal {
std::atomic<bool> light_fence_enabled{false};
}  // namespace internal

bool EnableLightFence() {
  const bool registered =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  internal::light_fence_enabled.store(registered, std::memory_order_relaxed);
  return registered;
}

void DisableLightFence() { internal::light_fence_enabled.store(false, std::memory_order_relaxed); }

bool HeavyFence() { return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0; }

}  // namespace ferry::shm
