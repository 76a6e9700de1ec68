#include "daemon/worker/worker_gpu.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace ferry::daemon {
namespace {

// Workers write no files (worker_main.cc), but drivers make some to share memory.
void AllowFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
}

}  // namespace

WorkerGpu::WorkerGpu(std::shared_ptr<gpu::GpuSource> gpus, uint32_t capacity, Done done)
    : gpus_(std::move(gpus)),
      capacity_(capacity),
      done_(std::move(done)),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Status WorkerGpu::Import(const gpu::IpcHandle& handle, Region* region) {
  AllowFiles();
  FERRY_RETURN_IF_ERROR(region->Import(*gpus_, handle));
  MakeCopier();
  return {};
}

void WorkerGpu::MakeCopier() {
  resting_ = false;
  if (copier_ == nullptr) {
    copier_ = std::make_unique<DeviceCopier>(gpus_, [bell = bell_.get()] {
      const uint64_t one = 1;
      (void)!write(bell, &one, sizeof(one));
    });
    copier_->Allow(capacity_);
  }
}

void WorkerGpu::Rest() {
  resting_ = true;
  if (copier_ != nullptr && copier_->pending() == 0) {
    for (std::byte* const block : pinned_) {
      copier_->memory_user()->Dismiss(block);
    }
    pinned_.clear();
    copier_.reset();
  }
}

// A whole block when it is first used: it stays in its pool (Stage::shrinks).
void WorkerGpu::Pin(WorkerStaging& staging, uint64_t offset) {
  const uint64_t begin = offset - offset % staging.block_bytes;
  std::byte* const base = staging.mapping.base() + begin;
  if (pinned_.insert(base).second) {
    copier_->memory_user()->Admit(
        base, std::min(staging.block_bytes, staging.mapping.size_bytes() - begin));
  }
}

void WorkerGpu::Begin(const CopyCommand& command, WorkerStaging& staging,
                      std::shared_ptr<const Region> region) {
  if (region == nullptr || region->device_memory == nullptr ||
      !region->IsInside(command.remote_address, command.size_bytes)) {
    return done_(command, ErrorCode::kInvalidBuffer);
  }
  Pin(staging, command.offset);
  Flight& flight = flights_[command.id];
  flight = {command, std::move(region)};
  CopyTask task;
  task.direction = static_cast<CopyTask::Direction>(command.direction);
  task.device = flight.region->device_memory->base() + command.remote_address;
  task.local = staging.mapping.base() + command.offset;
  task.size_bytes = command.size_bytes;
  task.context = &flight;
  if (!copier_->Submit(task)) {
    flights_.erase(command.id);
    done_(command, ErrorCode::kInternal);  // ferryd gives no more commands than there is room for
  }
}

uint32_t WorkerGpu::Collect() {
  if (pending() == 0) {
    return 0;
  }
  uint64_t rung = 0;
  (void)!read(bell_.get(), &rung, sizeof(rung));
  const uint32_t ended = copier_->Collect(*this);
  if (resting_) {
    Rest();
  }
  return ended;
}

void WorkerGpu::OnCopied(const CopyTask& task) {
  const CopyCommand command = static_cast<Flight*>(task.context)->command;
  flights_.erase(command.id);
  done_(command, task.result);
}

}  // namespace ferry::daemon
