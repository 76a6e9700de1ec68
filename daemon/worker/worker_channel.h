// WorkerChannel: ferryd's end of the channel to one worker process: the control memory, the socket,
// the bell.
//
// Calling thread: any, for all members; nothing blocks, whatever the worker does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/plane/data_plane.h"
#include "daemon/plane/worker_client.h"
#include "daemon/worker/control_layout.h"
#include "internode/staging/copier.h"
#include "shm/segment.h"

namespace ferry::daemon {

class WorkerChannel {
 public:
  // `capacity`: copies under way at a time. kOutOfMemory, kSystem.
  static StatusOr<std::shared_ptr<WorkerChannel>> Create(const JobPlan& plan, uint32_t capacity);
  ~WorkerChannel();

  // Ends the worker's sleep, if it sleeps. Call it after storing what the worker is to see
  // (sequentially consistent).
  void Rouse();

  WorkerControlLayout* control() const {
    return reinterpret_cast<WorkerControlLayout*>(mapping_.base());
  }
  CopyCommand* commands() const {
    return reinterpret_cast<CopyCommand*>(mapping_.base() + at_.commands);
  }
  CopyResult* results() const {
    return reinterpret_cast<CopyResult*>(mapping_.base() + at_.results);
  }
  RankPlace* places() const { return reinterpret_cast<RankPlace*>(mapping_.base() + at_.places); }
  uint32_t capacity() const { return capacity_; }
  uint64_t control_bytes() const { return at_.end; }
  int control_fd() const { return control_fd_.get(); }
  int bell() const { return bell_.get(); }
  int socket() const { return socket_.get(); }
  // The worker's end; ferryd closes it once the worker has it.
  UniqueFd& worker_socket() { return worker_socket_; }

 private:
  WorkerChannel() = default;

  uint32_t capacity_ = 0;
  ControlPlaces at_{};
  UniqueFd control_fd_;
  shm::Mapping mapping_;
  UniqueFd bell_;  // the worker writes it, ferryd never reads it: a read could be made to block
  UniqueFd socket_;
  UniqueFd worker_socket_;
};

// Makes the attention of the rank at `lane`, by which the worker is asked to serve it.
progress::AttentionPtr MakeRemoteAttention(std::shared_ptr<WorkerChannel> channel, uint32_t lane);

// RemoteCopier: copies by a job's worker process. Hands tasks over in the control memory and takes
// the results.
//
// A result counts only if it names a task that is under way. When the worker has failed, every task
// ends with kWorkerDied.
//
// Calling thread: the progress thread, but for Fail and silent_since_ns. Nothing blocks.
class RemoteCopier final : public progress::Copier {
 public:
  // `share` hands the memory of a pool to the worker, under a number that no other has; `condemn`
  // ends a worker that wrote invalid results. Both may be called from any member.
  using Share = std::function<void(progress::StagingPool& pool, uint32_t number)>;
  RemoteCopier(std::shared_ptr<WorkerChannel> channel, Share share,
               std::function<void(const std::string& text)> condemn);

  // Serves any number of pools.
  void Open(progress::StagingPool& pool) override;
  void Close(progress::StagingPool& pool) override;
  bool Submit(const progress::CopyTask& task) override;
  uint32_t Collect(progress::CopySink& sink) override;
  bool Abandon(uint32_t lane, progress::CopySink& sink) override;
  uint32_t pending() const override { return pending_; }

  // Any thread: the worker will not answer any more.
  void Fail() { failed_.store(true, std::memory_order_release); }
  // Any thread: the time since which tasks are under way and no result has come; 0: none is under
  // way.
  uint64_t silent_since_ns() const { return silent_since_ns_.load(std::memory_order_relaxed); }

 private:
  struct Shared {
    progress::StagingPool* pool;
    uint32_t number;
  };
  struct Slot {
    progress::CopyTask task;
    progress::StagingPool* pool = nullptr;  // null once the pool is closed
    uint32_t life = 0;                      // tells a task from earlier ones in the slot
    bool used = false;
  };

  const Shared* PoolOf(const progress::CopyTask& task) const;
  bool TakeResult(progress::CopySink& sink);
  void FailAll(progress::CopySink& sink);
  void End(Slot& slot, ErrorCode result, progress::CopySink& sink);
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
  uint32_t pending_ = 0;  // without abandoned tasks
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> silent_since_ns_{0};
};

}  // namespace ferry::daemon
