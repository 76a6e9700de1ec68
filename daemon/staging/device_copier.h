// Copies between staging memory and device memory that only streams reach, by streams of this
// process: the device-side stages of the pipelines between nodes.
//
// Each device has one stream for each direction, so that a copy out of it runs beside one into it,
// and copies of one direction in the order in which they were asked for. Blocks are registered with
// the backend while they belong to their pool. A stream that fails takes along what is queued
// behind; the next copy gets a new one. Streams go with the last pool.
//
// Calling thread: one owner (the progress thread) for all members, none of which waits for a copy;
// `notify` is called by threads of the backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "gpu_backends/api/gpu_source.h"
#include "internode/staging/copier.h"

namespace ferry::daemon {

class DeviceCopier final : public progress::Copier {
 public:
  // The backend calls `notify` (any thread; must not block) when Collect will find something, but
  // not after a failure: so call Collect now and then while copies are pending.
  DeviceCopier(std::shared_ptr<gpu::GpuSource> gpus, std::function<void()> notify);
  // Waits for the copy that each stream is carrying out, and drops the others.
  ~DeviceCopier() override;
  DeviceCopier(const DeviceCopier&) = delete;
  DeviceCopier& operator=(const DeviceCopier&) = delete;

  // Raises, or lowers, the number of tasks that may be under way at a time.
  void Allow(uint32_t tasks) { capacity_ += tasks; }
  void Disallow(uint32_t tasks);

  // Serves any number of pools. Tasks are those with `device`.
  void Open(progress::StagingPool& pool) override;
  void Close(progress::StagingPool& pool) override;
  bool Submit(const progress::CopyTask& task) override;
  uint32_t Collect(progress::CopySink& sink) override;
  bool Abandon(uint32_t /*lane*/, progress::CopySink& /*sink*/) override { return false; }
  uint32_t pending() const override { return pending_; }
  std::shared_ptr<progress::MemoryUser> memory_user() const override { return memory_user_; }

 private:
  // A copy that a stream has been given. Its address stays: the stream writes to it.
  struct Flight {
    explicit Flight(const progress::CopyTask& its_task) : task(its_task) {}
    progress::CopyTask task;
    std::atomic<bool> done{false};  // publishes the others
    uint64_t begun_ns = 0;
    uint64_t ended_ns = 0;
  };
  struct Line {
    std::unique_ptr<gpu::Stream> stream;
    std::deque<Flight> flights;  // in order
  };

  int DeviceOf(const progress::CopyTask& task) const;
  Status Enqueue(Line& line, Flight& flight, int device);
  Status EnqueueEnd(Line& line, Flight& flight);
  uint32_t Collect(Line& line, progress::CopySink& sink);
  void End(Line& line, ErrorCode result, progress::CopySink& sink);

  void Rest();

  const std::shared_ptr<gpu::GpuSource> gpus_;
  const std::shared_ptr<progress::MemoryUser> memory_user_;
  const std::function<void()> notify_;
  uint32_t capacity_ = 0;
  uint32_t pending_ = 0;
  std::shared_ptr<gpu::OpenedGpu> gpu_;  // while there are streams
  std::map<uint16_t, Line> lines_;       // by StreamNumber
};

}  // namespace ferry::daemon
