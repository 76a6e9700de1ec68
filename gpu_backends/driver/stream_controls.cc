#include "gpu_backends/driver/stream_controls.h"

#include <algorithm>

namespace ferry::gpu {
namespace {

constexpr uint64_t kBlockBytes = 4096;
constexpr uint64_t kLineWords = 128 / sizeof(uint64_t);  // no two streams share a cache line

}  // namespace

StreamControls::~StreamControls() {
  for (void* const block : blocks_) {
    (void)driver_->Free(PointerKind::kPinned, block);
  }
}

StatusOr<std::shared_ptr<uint64_t>> StreamControls::Take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    const StatusOr<void*> block = driver_->AllocatePinned(kBlockBytes);
    FERRY_RETURN_IF_ERROR(block.status());
    blocks_.push_back(*block);
    auto* const words = static_cast<uint64_t*>(*block);
    for (uint64_t at = 0; at < kBlockBytes / sizeof(uint64_t); at += kLineWords) {
      free_.push_back(words + at);
    }
  }
  uint64_t* const line = free_.back();
  free_.pop_back();
  std::fill_n(line, kLineWords, 0);
  return std::shared_ptr<uint64_t>(
      line, [pool = shared_from_this()](uint64_t* given) { pool->Give(given); });
}

void StreamControls::Give(uint64_t* line) {
  std::lock_guard lock(mutex_);
  free_.push_back(line);
}

}  // namespace ferry::gpu
