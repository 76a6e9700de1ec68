#include "daemon/staging/device_copier.h"

#include <mutex>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "internode/staging/staging_pool.h"

namespace ferry::daemon {
namespace {

// Pins memory with the driver, which then copies it fast.
class DriverPins final : public progress::MemoryUser {
 public:
  explicit DriverPins(std::shared_ptr<gpu::GpuSource> gpus) : gpus_(std::move(gpus)) {}

  void Admit(std::byte* base, uint64_t bytes) override {
    const Status status = Pin(base, bytes);
    if (!status.ok() && !warned_.exchange(true, std::memory_order_relaxed)) {
      spdlog::warn("copies from and to devices are slow, for staging memory is not pinned: {}",
                   status.message());
    }
  }
  void Dismiss(std::byte* base) override {
    std::map<std::byte*, std::shared_ptr<gpu::OpenedGpu>>::node_type pinned;
    {
      std::lock_guard lock(mutex_);
      pinned = pinned_.extract(base);
    }
    if (!pinned.empty()) {
      (void)pinned.mapped()->backend->UnregisterHostMemory(base);
    }
  }

 private:
  Status Pin(std::byte* base, uint64_t bytes) {
    StatusOr<std::shared_ptr<gpu::OpenedGpu>> gpu = gpus_->Get();
    FERRY_RETURN_IF_ERROR(gpu.status());
    FERRY_RETURN_IF_ERROR((*gpu)->backend->RegisterHostMemory(base, bytes));
    std::lock_guard lock(mutex_);
    pinned_[base] = std::move(*gpu);
    return {};
  }

  const std::shared_ptr<gpu::GpuSource> gpus_;
  std::mutex mutex_;
  std::map<std::byte*, std::shared_ptr<gpu::OpenedGpu>> pinned_;  // by whom
  std::atomic<bool> warned_{false};
};

}  // namespace

DeviceCopier::DeviceCopier(std::shared_ptr<gpu::GpuSource> gpus, std::function<void()> notify)
    : gpus_(std::move(gpus)),
      memory_user_(std::make_shared<DriverPins>(gpus_)),
      notify_(std::move(notify)) {}

DeviceCopier::~DeviceCopier() {
  for (auto& [number, line] : lines_) {
    line.stream.reset();  // before the flights that it writes to
  }
}

void DeviceCopier::Open(progress::StagingPool& pool) { Allow(pool.fragments()); }

void DeviceCopier::Close(progress::StagingPool& pool) { Disallow(pool.fragments()); }

void DeviceCopier::Disallow(uint32_t tasks) {
  capacity_ -= tasks;
  Rest();
}

void DeviceCopier::Rest() {
  if (capacity_ == 0 && pending_ == 0) {
    lines_.clear();
    gpu_.reset();
  }
}

// Imported memory may be of a device that this process does not have.
int DeviceCopier::DeviceOf(const progress::CopyTask& task) const {
  if (gpu_ == nullptr) {
    return 0;
  }
  const int device = gpu_->backend->Identify(task.device).device;
  return device >= 0 && device < gpu_->backend->device_count() ? device : 0;
}

bool DeviceCopier::Submit(const progress::CopyTask& task) {
  if (pending_ >= capacity_) {
    return false;
  }
  ++pending_;
  if (gpu_ == nullptr) {
    // The backend is open, since it has imported the task's memory.
    StatusOr<std::shared_ptr<gpu::OpenedGpu>> gpu = gpus_->Get();
    gpu_ = gpu.ok() ? std::move(*gpu) : nullptr;
  }
  const int device = DeviceOf(task);
  const uint16_t number = progress::StreamNumber(
      static_cast<uint32_t>(device), task.direction == progress::CopyTask::Direction::kToProcess);
  Line& line = lines_[number];
  Flight& flight = line.flights.emplace_back(task);
  flight.task.place = progress::TracePlace::kStream;
  flight.task.worker = number;
  flight.task.result = Enqueue(line, flight, device).code();
  if (line.stream == nullptr) {
    flight.done.store(true, std::memory_order_release);
    notify_();
  } else {
    // Behind all that the stream may still do to the flight, even if it refused the copy. If it
    // refuses this too it has failed, which Collect finds out.
    (void)EnqueueEnd(line, flight);
  }
  return true;
}

Status DeviceCopier::Enqueue(Line& line, Flight& flight, int device) {
  if (line.stream == nullptr) {
    if (gpu_ == nullptr) {
      return {ErrorCode::kUnsupported, "the GPU backend cannot be opened"};
    }
    StatusOr<std::unique_ptr<gpu::Stream>> stream = gpu_->backend->CreateStream(device);
    FERRY_RETURN_IF_ERROR(stream.status());
    line.stream = std::move(*stream);
  }
  const progress::CopyTask& task = flight.task;
  const bool to_device = task.direction == progress::CopyTask::Direction::kToProcess;
  if (task.timed) {
    FERRY_RETURN_IF_ERROR(line.stream->LaunchHost([&flight] {
      flight.begun_ns = MonotonicNs();
      return Status();
    }));
  }
  return line.stream->CopyAsync(to_device ? task.device : task.local,
                                to_device ? task.local : task.device, task.size_bytes);
}

// Afterwards the flight may be over at any moment.
Status DeviceCopier::EnqueueEnd(Line& line, Flight& flight) {
  return line.stream->LaunchHost([&flight, timed = flight.task.timed, notify = &notify_] {
    flight.ended_ns = timed ? MonotonicNs() : 0;
    flight.done.store(true, std::memory_order_release);  // Pairs with Collect.
    (*notify)();
    return Status();
  });
}

uint32_t DeviceCopier::Collect(progress::CopySink& sink) {
  uint32_t ended = 0;
  for (auto& [number, line] : lines_) {
    ended += Collect(line, sink);
  }
  Rest();
  return ended;
}

uint32_t DeviceCopier::Collect(Line& line, progress::CopySink& sink) {
  uint32_t ended = 0;
  // Asks the stream first, so that copies which have run by then are seen as done below.
  const Status status =
      line.flights.empty() || line.stream == nullptr ? Status() : line.stream->Query();
  // Pairs with EnqueueEnd.
  while (!line.flights.empty() && line.flights.front().done.load(std::memory_order_acquire)) {
    End(line, line.flights.front().task.result, sink);
    ++ended;
  }
  if (status.ok() || status.code() == ErrorCode::kWouldBlock) {
    return ended;
  }
  line.stream.reset();  // from here on nothing writes to the flights
  for (size_t left = line.flights.size(); left > 0; --left) {
    const Flight& flight = line.flights.front();
    const bool done = flight.done.load(std::memory_order_acquire);
    End(line, done ? flight.task.result : status.code(), sink);
    ++ended;
  }
  return ended;
}

// The sink may submit.
void DeviceCopier::End(Line& line, ErrorCode result, progress::CopySink& sink) {
  Flight& flight = line.flights.front();
  progress::CopyTask task = flight.task;
  task.result = result;
  task.begun_ns = flight.begun_ns;
  task.ended_ns = flight.ended_ns;
  line.flights.pop_front();
  --pending_;
  sink.OnCopied(task);
}

}  // namespace ferry::daemon
