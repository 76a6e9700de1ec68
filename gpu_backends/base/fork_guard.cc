#include "gpu_backends/base/fork_guard.h"

#include <sys/mman.h>

#include <string>

namespace ferry::gpu {

ForkGuard::ForkGuard() : owner_(getpid()) {
  void* page =
      mmap(nullptr, sizeof(kMark), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    return;
  }
  if (madvise(page, sizeof(kMark), MADV_WIPEONFORK) != 0) {
    munmap(page, sizeof(kMark));
    return;
  }
  page_ = static_cast<uint64_t*>(page);
  *page_ = kMark;
}

ForkGuard::~ForkGuard() {
  if (page_ != nullptr) {
    munmap(page_, sizeof(kMark));
  }
}

Status ForkGuard::Check() const {
  if (!InChild()) {
    return {};
  }
  return {ErrorCode::kForked, "process " + std::to_string(getpid()) + " was forked from process " +
                                  std::to_string(owner_) +
                                  ", which made the GPU backend; make one after the fork, or exec"};
}

}  // namespace ferry::gpu
