// Streams and events of the host backend: they check arguments, a StreamWorker does the work.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "common/status.h"
#include "gpu_backends/api/stream.h"
#include "gpu_backends/base/allocation_table.h"
#include "gpu_backends/base/argument_checks.h"
#include "gpu_backends/base/fork_guard.h"
#include "gpu_backends/host/completion.h"
#include "gpu_backends/host/emulated_link.h"
#include "gpu_backends/host/stream_worker.h"

namespace ferry::gpu {

class HostEvent final : public Event {
 public:
  explicit HostEvent(const ForkGuard* fork_guard);
  ~HostEvent() override;

  Status Query() override;
  Status Synchronize() override;

  // The point last recorded, or null. A wait keeps the point it took.
  std::shared_ptr<Completion> Current();
  void SetCurrent(std::shared_ptr<Completion> completion);

 private:
  struct State {
    std::mutex mutex;
    std::shared_ptr<Completion> completion;
  };

  const ForkGuard* const fork_guard_;
  std::unique_ptr<State> state_;
};

class HostStream final : public Stream {
 public:
  // The table, the guard and the link (null: none) are the backend's, which outlives its streams.
  HostStream(int device, const AllocationTable* table, const ForkGuard* fork_guard,
             EmulatedLink* link, const HostStreamCosts& costs, uint64_t wait_yield_ns);
  ~HostStream() override;

  Status CopyAsync(void* destination, const void* source, uint64_t size_bytes) override;
  Status CopyStrided(const StridedCopy& copy) override;
  Status CopySpread(const SpreadCopy& copy) override;
  Status Reduce(const Reduction& reduction) override;
  Status RecordEvent(Event* event) override;
  Status WaitEvent(Event* event) override;
  Status WriteValue64(uint64_t* word, uint64_t value) override;
  Status WaitValue64(uint64_t* word, uint64_t value, WaitCondition condition) override;
  Status LaunchMove(const MatchedMove& move) override;
  Status AwaitMove(const MatchedMove& move) override;
  Status LaunchHost(std::function<Status()> function) override;
  Status Query() override;
  Status Synchronize() override;

 private:
  CopyOperation CopyOf(void* destination, const void* source, uint64_t size_bytes) const;
  // Returns what a kernel costs that moves so many bytes between several places.
  CopyOperation CostOf(std::span<void* const> to, std::span<const void* const> from,
                       uint64_t size_bytes) const;
  LinkRoute Route(const void* destination, const void* source) const;

  const int device_;
  const AllocationTable* const table_;
  const ArgumentChecks checks_;
  const ForkGuard* const fork_guard_;
  EmulatedLink* const link_;
  std::unique_ptr<StreamWorker> worker_;
};

}  // namespace ferry::gpu
