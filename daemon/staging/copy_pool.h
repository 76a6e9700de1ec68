// Threads that copy between staging memory and the private memory of ranks: the host-side stages of
// the pipelines between nodes.
//
// Calling thread: one owner (the progress thread) for all members; `notify` is called by the
// workers. Submit and Collect take a lock for a few instructions; the copies run outside it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "common/error_code.h"

namespace ferry::daemon {

struct CopyTask {
  enum class Direction { kFromProcess, kToProcess };
  Direction direction = Direction::kFromProcess;
  pid_t pid = 0;
  uint64_t remote_address = 0;  // in the process
  std::byte* local = nullptr;   // here; kToProcess only reads it
  uint64_t size_bytes = 0;
  void* context = nullptr;            // the owner's
  ErrorCode result = ErrorCode::kOk;  // set when it is collected; see common/process_memory.h
};

class CopyPool {
 public:
  // At most `capacity` tasks are submitted and not collected. `notify` (any thread; must not block)
  // says that Collect will find something. Without workers Submit copies by itself.
  CopyPool(uint32_t workers, uint32_t capacity, std::function<void()> notify);
  // Finishes what is being copied, drops what waits.
  ~CopyPool();
  CopyPool(const CopyPool&) = delete;
  CopyPool& operator=(const CopyPool&) = delete;

  // False: full.
  bool Submit(const CopyTask& task);
  // Calls visit(task) for every finished task; it may submit. Returns how many.
  template <typename Visitor>
  uint32_t Collect(Visitor&& visit) {
    if (!any_finished_.load(std::memory_order_acquire)) {  // Pairs with Finish.
      return 0;
    }
    TakeFinished();
    for (const CopyTask& task : collected_) {
      visit(task);
    }
    return static_cast<uint32_t>(collected_.size());
  }
  uint32_t pending() const { return pending_; }

 private:
  void Work();
  void Finish(const CopyTask& task);
  void TakeFinished();

  const uint32_t capacity_;
  const std::function<void()> notify_;
  uint32_t pending_ = 0;
  std::vector<CopyTask> collected_;

  std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_. `waiting_` is a queue: taken from `next_` on.
  std::vector<CopyTask> waiting_;
  size_t next_ = 0;
  std::vector<CopyTask> finished_;
  bool stop_ = false;
  std::atomic<bool> any_finished_{false};

  std::vector<std::thread> workers_;
};

}  // namespace ferry::daemon
