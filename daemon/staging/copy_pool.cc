#include "daemon/staging/copy_pool.h"

#include <algorithm>
#include <utility>

#include "common/clock.h"
#include "common/process_memory.h"
#include "common/thread.h"
#include "internode/staging/staging_pool.h"

namespace ferry::daemon {
namespace {

ErrorCode Copy(const progress::CopyTask& task) {
  return task.direction == progress::CopyTask::Direction::kFromProcess
             ? ReadProcessMemory(task.pid, task.remote_address, task.local, task.size_bytes)
             : WriteProcessMemory(task.pid, task.remote_address, task.local, task.size_bytes);
}

}  // namespace

CopyPool::CopyPool(uint32_t workers, std::function<void()> notify) : notify_(std::move(notify)) {
  for (uint32_t i = 0; i < workers; ++i) {
    workers_.push_back(MakeThread("ferry-copy", [this, i] { Work(static_cast<uint16_t>(i)); }));
  }
}

CopyPool::~CopyPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

// Allocates the memory of all queues here, so that nothing allocates later.
void CopyPool::Open(progress::StagingPool& pool) {
  capacity_ += pool.fragments();
  std::lock_guard lock(mutex_);
  waiting_.reserve(2 * size_t{capacity_});
  finished_.reserve(capacity_);
  collected_.reserve(capacity_);
}

void CopyPool::Close(progress::StagingPool& pool) { capacity_ -= pool.fragments(); }

bool CopyPool::Submit(const progress::CopyTask& task) {
  if (pending_ >= capacity_) {
    return false;
  }
  ++pending_;
  if (workers_.empty()) {
    Finish(task, progress::TracePlace::kProgressThread, 0);
    return true;
  }
  {
    std::lock_guard lock(mutex_);
    if (waiting_.size() == waiting_.capacity()) {
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(next_));
      next_ = 0;
    }
    waiting_.push_back(task);
  }
  wake_.notify_one();
  return true;
}

void CopyPool::Work(uint16_t worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || next_ < waiting_.size(); });
    if (stop_) {
      return;
    }
    const progress::CopyTask task = waiting_[next_++];
    lock.unlock();
    Finish(task, progress::TracePlace::kCopyWorker, worker);
    lock.lock();
  }
}

void CopyPool::Finish(const progress::CopyTask& task, progress::TracePlace place, uint16_t worker) {
  progress::CopyTask done = task;
  done.place = place;
  done.worker = worker;
  done.begun_ns = task.timed ? MonotonicNs() : 0;
  done.result = Copy(task);
  done.ended_ns = task.timed ? MonotonicNs() : 0;
  {
    std::lock_guard lock(mutex_);
    finished_.push_back(done);
    any_finished_.store(true, std::memory_order_release);  // Pairs with Collect.
  }
  notify_();
}

uint32_t CopyPool::Collect(progress::CopySink& sink) {
  if (!any_finished_.load(std::memory_order_acquire)) {  // Pairs with Finish.
    return 0;
  }
  TakeFinished();
  for (const progress::CopyTask& task : collected_) {
    sink.OnCopied(task);
  }
  return static_cast<uint32_t>(collected_.size());
}

void CopyPool::TakeFinished() {
  collected_.clear();
  std::lock_guard lock(mutex_);
  collected_.swap(finished_);
  any_finished_.store(false, std::memory_order_relaxed);
  pending_ -= static_cast<uint32_t>(collected_.size());
}

}  // namespace ferry::daemon
