#include "gpu_backends/host/completion.h"

#include <utility>

namespace ferry::gpu {

void Completion::Complete(Status status, uint64_t reached_ns) {
  std::lock_guard lock(mutex_);
  if (done_) {
    return;
  }
  done_ = true;
  reached_ns_ = reached_ns;
  status_ = std::move(status);
  changed_.notify_all();
}

uint64_t Completion::reached_ns() const {
  std::lock_guard lock(mutex_);
  return reached_ns_;
}

Status Completion::Query() const {
  std::lock_guard lock(mutex_);
  return done_ ? status_ : Status(ErrorCode::kWouldBlock, "the event is not complete yet");
}

Status Completion::Wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_; });
  return status_;
}

Status Completion::WaitUnless(const std::atomic<bool>& cancelled) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ || cancelled.load(std::memory_order_relaxed); });
  return done_ ? status_ : Status(ErrorCode::kCancelled, "the waiting stream was destroyed");
}

void Completion::InterruptWaits() const {
  std::lock_guard lock(mutex_);  // orders the caller's flag before the waiters' next look at it
  changed_.notify_all();
}

}  // namespace ferry::gpu
