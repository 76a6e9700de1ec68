// Copies by a job's worker process: hands tasks over in the control memory and takes the results.
//
// A result counts only if it names a task that is under way. When the worker has failed, every task
// ends with kWorkerDied.
//
// Calling thread: the progress thread, but for Fail and silent_since_ns. Nothing blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/staging/copier.h"
#include "daemon/worker/worker_channel.h"

namespace ferry::daemon {

class RemoteCopier final : public Copier {
 public:
  // `share` hands the memory of a pool to the worker, under a number that no other has; `condemn`
  // ends a worker that wrote what no worker writes. Both may be called from any member.
  using Share = std::function<void(StagingPool& pool, uint32_t number)>;
  RemoteCopier(std::shared_ptr<WorkerChannel> channel, Share share,
               std::function<void(const std::string& text)> condemn);

  // Serves any number of pools.
  void Open(StagingPool& pool) override;
  void Close(StagingPool& pool) override;
  bool Submit(const CopyTask& task) override;
  uint32_t Collect(CopySink& sink) override;
  bool Abandon(uint32_t lane, CopySink& sink) override;
  uint32_t pending() const override { return pending_; }

  // Any thread: the worker will not answer any more.
  void Fail() { failed_.store(true, std::memory_order_release); }
  // Any thread: since when tasks are under way and no result has come; 0: none is.
  uint64_t silent_since_ns() const { return silent_since_ns_.load(std::memory_order_relaxed); }

 private:
  struct Shared {
    StagingPool* pool;
    uint32_t number;
  };
  struct Slot {
    CopyTask task;
    StagingPool* pool = nullptr;  // null once that is closed
    uint32_t life = 0;            // tells a task from earlier ones in the slot
    bool used = false;
  };

  const Shared* PoolOf(const CopyTask& task) const;
  bool TakeResult(CopySink& sink);
  void FailAll(CopySink& sink);
  void End(Slot& slot, ErrorCode result, CopySink& sink);
  void Condemn(const std::string& text);

  const std::shared_ptr<WorkerChannel> channel_;
  const Share share_;
  const std::function<void(const std::string&)> condemn_;
  std::vector<Shared> pools_;
  uint32_t pools_opened_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  uint64_t commands_ = 0;  // positions in the rings; the worker cannot write to these
  uint64_t results_ = 0;
  uint32_t pending_ = 0;  // abandoned tasks apart
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> silent_since_ns_{0};
};

}  // namespace ferry::daemon
