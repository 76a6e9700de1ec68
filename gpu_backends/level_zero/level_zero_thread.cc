#include "gpu_backends/level_zero/level_zero_thread.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "common/sleep.h"
#include "common/thread.h"

namespace ferry::gpu {
namespace {

// A driver spins in zeEventHostSynchronize: worth it for work that is about to end, not for longer.
constexpr uint64_t kSpinNs = 50'000;

struct LoaderState {
  std::shared_mutex mutex;
  bool over = false;
};

LoaderState& Loader() {
  static LoaderState& state = *new LoaderState;
  return state;
}

void EndLoader(int, void*) {
  std::unique_lock lock(Loader().mutex);
  Loader().over = true;
}

}  // namespace

Status LevelZeroThread::StartLocked(std::function<void()> main) {
  if (started_) {
    return {};
  }
  // After the loader was opened: so it happens before the loader's end.
  [[maybe_unused]] static const int registered = on_exit(EndLoader, nullptr);
  StatusOr<std::thread> thread =
      StartThread("ferry-ze-host", "for host steps of a stream", [this, main = std::move(main)] {
        main();
        std::lock_guard lock(mutex_);
        runs_ = false;
        changed_.notify_all();  // with the lock held: the stream may go once it is free
      });
  FERRY_RETURN_IF_ERROR(thread.status());
  thread->detach();
  started_ = true;
  runs_ = true;
  return {};
}

void LevelZeroThread::Stop() {
  std::unique_lock lock(mutex_);
  stopping_.store(true);
  changed_.notify_all();
  if (runs_) {
    lock.unlock();
    context_->events().Interrupt();
    lock.lock();
    changed_.wait(lock, [this] { return !runs_; });
  }
}

Status LevelZeroThread::Call(const std::function<Status()>& call) {
  std::shared_lock lock(Loader().mutex);
  return Loader().over ? Status(ErrorCode::kSystem, "Level Zero: the process ends") : call();
}

Status LevelZeroThread::AwaitSignal(const LevelZeroContext& context, ze_event_handle_t event) {
  const LevelZeroApi& api = context.api();
  Status status = Call([&] {
    return ZeStatus("zeEventHostSynchronize", api.event_host_synchronize(event, kSpinNs));
  });
  GrowingSleep sleep;
  while (status.code() == ErrorCode::kWouldBlock) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, sleep.Next(), [this] { return stopping_.load(); })) {
        return {ErrorCode::kCancelled, "the stream was destroyed"};
      }
    }
    status = Call([&] { return ZeStatus("zeEventQueryStatus", api.event_query_status(event)); });
  }
  return status;
}

}  // namespace ferry::gpu
