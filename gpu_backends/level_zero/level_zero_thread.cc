#include "gpu_backends/level_zero/level_zero_thread.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace ferry::gpu {
namespace {

// A driver spins in zeEventHostSynchronize: worth it for work that is about to end, not for longer.
constexpr uint64_t kSpinNs = 50'000;
constexpr std::chrono::microseconds kFirstSleep{20};
constexpr std::chrono::microseconds kLongestSleep{1000};

struct LoaderState {
  std::shared_mutex mutex;
  bool over = false;
};

LoaderState& Loader() {
  static LoaderState& state = *new LoaderState;
  return state;
}

struct AtExit {
  ~AtExit() {
    std::unique_lock lock(Loader().mutex);
    Loader().over = true;
  }
};

}  // namespace

Status LevelZeroThread::StartLocked(std::function<void()> main) {
  if (started_) {
    return {};
  }
  static AtExit at_exit;  // after the loader was opened: so it happens before the loader's end
  // The application's signal handlers must not run on this thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    std::thread([this, main = std::move(main)] {
      pthread_setname_np(pthread_self(), "ferry-ze-host");
      main();
      std::lock_guard lock(mutex_);
      runs_ = false;
      changed_.notify_all();  // with the lock held: the stream may go once it is free
    }).detach();
    started_ = true;
    runs_ = true;
  } catch (const std::system_error& error) {
    status = {ErrorCode::kSystem,
              "starting the thread for host steps of a stream: " + error.code().message()};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
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
  auto sleep = kFirstSleep;
  while (status.code() == ErrorCode::kWouldBlock) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, sleep, [this] { return stopping_.load(); })) {
        return {ErrorCode::kCancelled, "the stream was destroyed"};
      }
    }
    sleep = std::min(2 * sleep, kLongestSleep);
    status = Call([&] { return ZeStatus("zeEventQueryStatus", api.event_query_status(event)); });
  }
  return status;
}

}  // namespace ferry::gpu
