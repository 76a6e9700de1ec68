// The thread behind a stream of the host backend: runs operations in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "common/status.h"
#include "gpu_backends/api/stream.h"
#include "gpu_backends/api/stream_watch.h"
#include "gpu_backends/host/completion.h"
#include "gpu_backends/host/emulated_link.h"
#include "gpu_backends/host/link_options.h"

namespace ferry::gpu {

struct CopyOperation {
  void* destination;
  const void* source;
  uint64_t size_bytes;
  LinkRoute route;  // this and enqueued_ns are used only where a link is emulated
  uint64_t enqueued_ns;
};
struct StridedOperation {
  StridedCopy copy;
  CopyOperation cost;  // its use of the link: as for a copy of all bytes
};
struct SpreadOperation {
  SpreadCopy copy;
  CopyOperation cost;  // its use of the link: as for one copy of all bytes stored
};
struct ReduceOperation {
  Reduction reduction;
  CopyOperation cost;  // its use of the link: as for a copy of the result's bytes
};
struct RecordOperation {
  std::shared_ptr<Completion> completion;
};
struct WaitEventOperation {
  std::shared_ptr<Completion> completion;
};
struct WriteOperation {
  uint64_t* word;
  uint64_t value;
};
struct WaitValueOperation {
  uint64_t* word;
  uint64_t value;
  WaitCondition condition;
};
struct MoveOperation {
  MatchedMove move;
  CopyOperation copy;
};
struct AwaitMoveOperation {
  MatchedMove move;
};
struct HostOperation {
  std::function<Status()> function;
};
using Operation =
    std::variant<CopyOperation, StridedOperation, SpreadOperation, ReduceOperation, RecordOperation,
                 WaitEventOperation, WriteOperation, WaitValueOperation, MoveOperation,
                 AwaitMoveOperation, HostOperation>;

// Thread-safe. The thread starts with the first operation and sleeps while there is none. A wait
// for a value cannot sleep until it is woken, since the writer may be a CPU, or another process,
// that wakes no stream: it yields for `wait_yield_ns`, then looks every 20 us, growing to 1 ms. A
// wait for a matched message helps to move it, and is woken by the other end.
//
// With an emulated link the stream has a modelled time beside the real one: the end of its last
// copy in the model, carried along by events. A copy enters the link at that time (or when it was
// enqueued, if later), however late the thread woke up; so delays of waking up do not add up.
class StreamWorker {
 public:
  // `link` is null where none is emulated; otherwise it outlives the worker.
  StreamWorker(uint64_t wait_yield_ns, EmulatedLink* link, const HostStreamCosts& costs)
      : wait_yield_ns_(wait_yield_ns),
        launch_ns_(costs.launch_us * 1000),
        synchronize_ns_(costs.synchronize_us * 1000),
        link_(link) {}
  // Drops operations that have not begun, abandons a wait, and joins the thread.
  ~StreamWorker();
  StreamWorker(const StreamWorker&) = delete;
  StreamWorker& operator=(const StreamWorker&) = delete;

  // Enqueues an operation. Returns the error that poisoned the stream, or kSystem if the thread
  // cannot start.
  Status Enqueue(Operation operation);
  Status Query();
  Status Synchronize();

 private:
  Status StartLocked();
  void Main();
  void RunBatch();
  Status Run(const Operation& operation);
  // Runs `move` in the time that the emulated link takes for `cost`, if there is a link.
  template <typename Move>
  void OverLink(const CopyOperation& cost, Move&& move);
  void RunCopy(const CopyOperation& copy);
  void RunStrided(const StridedOperation& strided);
  void RunSpread(const SpreadOperation& spread);
  void RunMove(const MoveOperation& operation);
  Status WaitForEvent(const std::shared_ptr<Completion>& completion);
  Status WaitForValue(const WaitValueOperation& wait);
  Status WaitForMove(const MatchedMove& move);
  // Waits until `met()`, which it asks repeatedly; after a while it sleeps in between, by
  // `sleep_for(time)`.
  template <typename Met, typename Sleep>
  Status WaitUntil(Met&& met, Sleep&& sleep_for);
  // Sets the modelled time to the real one. Call it after work that takes real time.
  void AdvanceToNow();
  bool Cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  struct Queued {
    Operation operation;
    uint64_t begin_ns;  // not before
  };

  const uint32_t number_ = NextStreamNumber();
  const uint64_t wait_yield_ns_;
  const uint64_t launch_ns_;
  const uint64_t synchronize_ns_;
  EmulatedLink* const link_;
  std::vector<Queued> batch_;  // the thread's own: operations taken from pending_
  uint64_t modelled_ns_ = 0;   // the thread's own

  std::mutex mutex_;
  std::condition_variable work_;  // the thread sleeps here
  std::condition_variable done_;  // Synchronize sleeps here
  std::vector<Queued> pending_;
  uint64_t enqueued_count_ = 0;
  uint64_t finished_count_ = 0;
  uint64_t awaited_count_ = UINT64_MAX;  // the next of finished_count_ that Synchronize waits for
  Status error_;                         // the first failure
  std::shared_ptr<const Completion> awaited_;  // the point that the thread awaits, to interrupt it
  std::atomic<bool> cancelled_{false};         // set under mutex_
  std::thread thread_;
};

}  // namespace ferry::gpu
