// CopyPool: copies by threads of this process, for the jobs of the daemon's own user: the host-side
// stages of the pipelines between nodes.
//
// Calling thread: one owner (the progress thread) for all members; `notify` is called by the
// workers. Submit and Collect take a lock for a few instructions; the copies run outside it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "internode/staging/copier.h"

namespace ferry::daemon {

class CopyPool final : public progress::Copier {
 public:
  // The workers call `notify` (any thread; must not block) when Collect will find something.
  // Without workers Submit itself copies.
  CopyPool(uint32_t workers, std::function<void()> notify);
  // Finishes the copies under way, and drops those that wait.
  ~CopyPool() override;
  CopyPool(const CopyPool&) = delete;
  CopyPool& operator=(const CopyPool&) = delete;

  // Serves any number of pools.
  void Open(progress::StagingPool& pool) override;
  void Close(progress::StagingPool& pool) override;
  bool Submit(const progress::CopyTask& task) override;
  uint32_t Collect(progress::CopySink& sink) override;
  bool Abandon(uint32_t /*lane*/, progress::CopySink& /*sink*/) override { return false; }
  uint32_t pending() const override { return pending_; }

 private:
  void Work(uint16_t worker);
  void Finish(const progress::CopyTask& task, progress::TracePlace place, uint16_t worker);
  void TakeFinished();

  const std::function<void()> notify_;
  uint32_t capacity_ = 0;
  uint32_t pending_ = 0;
  std::vector<progress::CopyTask> collected_;

  std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_. `waiting_` is a queue: taken from `next_` on.
  std::vector<progress::CopyTask> waiting_;
  size_t next_ = 0;
  std::vector<progress::CopyTask> finished_;
  bool stop_ = false;
  std::atomic<bool> any_finished_{false};

  std::vector<std::thread> workers_;
};

}  // namespace ferry::daemon
