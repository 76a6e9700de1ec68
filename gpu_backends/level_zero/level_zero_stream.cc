#include "gpu_backends/level_zero/level_zero_stream.h"

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

// The loader is gone before the process is. A thread of a stream that was given up lasts as long as
// the process, and must then call nothing of it any more.
class LoaderCalls {
 public:
  // The result of `call`, or that the loader is gone.
  template <typename Call>
  static ze_result_t Make(Call&& call) {
    State& state = Instance();
    std::shared_lock lock(state.mutex);
    return state.over ? ZE_RESULT_ERROR_UNINITIALIZED : call();
  }

  // Once the loader is open: what is registered later happens earlier at the end.
  static void EndWithProcess() { static AtExit at_exit; }

 private:
  struct State {
    std::shared_mutex mutex;
    bool over = false;
  };
  struct AtExit {
    ~AtExit() {
      std::unique_lock lock(Instance().mutex);
      Instance().over = true;
    }
  };
  static State& Instance() {
    static State& state = *new State;
    return state;
  }
};

}  // namespace

LevelZeroStream::~LevelZeroStream() {
  StopThread();
  if (abandoned_) {
    return;
  }
  LevelZeroEvents& events = context_->events();
  for (const HostItem& item : items_) {
    if (item.step != nullptr && !item.taken) {
      static_cast<void>(item.step(item.argument));  // there is no stream that could go on
    }
    events.Release(item.reached);
    events.Release(item.passed);
  }
  for (const ze_event_handle_t event : passed_) {
    events.Release(event);
  }
  if (!adopted_) {
    context_->api().command_list_destroy(list_);
  }
}

Status LevelZeroStream::Copy(void* destination, const void* source, uint64_t size_bytes) {
  std::lock_guard lock(mutex_);
  FERRY_RETURN_IF_ERROR(BarrierLocked(nullptr));
  FERRY_RETURN_IF_ERROR(ZeStatus("zeCommandListAppendMemoryCopy",
                                 context_->api().command_list_append_memory_copy(
                                     list_, destination, source, size_bytes, nullptr, 0, nullptr)));
  return adopted_ ? BarrierLocked(nullptr) : Status();
}

Status LevelZeroStream::Record(const LevelZeroEvent& event) {
  if (event.context != context_) {
    return {ErrorCode::kInvalidArgument,
            "Level Zero: an event cannot be recorded on a stream of another driver's device"};
  }
  std::lock_guard lock(mutex_);
  return MarkLocked(event.held);
}

Status LevelZeroStream::Wait(const LevelZeroEvent& event) {
  std::lock_guard lock(mutex_);
  appended_ = true;
  if (event.context != context_) {
    HostItem item;
    item.foreign = event;
    return EnqueueItemLocked(item);
  }
  ze_event_handle_t handle = event.held->handle();
  return ZeStatus("zeCommandListAppendWaitOnEvents",
                  context_->api().command_list_append_wait_on_events(list_, 1, &handle));
}

Status LevelZeroStream::WriteWord(uint64_t* word, uint64_t value) {
  std::lock_guard lock(mutex_);
  FERRY_RETURN_IF_ERROR(BarrierLocked(nullptr));
  FERRY_RETURN_IF_ERROR(context_->AppendWrite(list_, word, value));
  return adopted_ ? BarrierLocked(nullptr) : Status();
}

Status LevelZeroStream::WaitWord(const uint64_t* word, uint64_t value, WaitCondition condition) {
  std::lock_guard lock(mutex_);
  appended_ = true;
  return context_->AppendWait(list_, word, value, condition);
}

Status LevelZeroStream::EnqueueStep(HostStep step, void* argument) {
  std::lock_guard lock(mutex_);
  HostItem item;
  item.step = step;
  item.argument = argument;
  return EnqueueItemLocked(item);
}

Status LevelZeroStream::Query() {
  std::lock_guard lock(mutex_);
  const LevelZeroApi& api = context_->api();
  if (mark_ != nullptr) {
    // The work before the mark is not done, whatever is behind it; or there is an error.
    FERRY_RETURN_IF_ERROR(ZeStatus("zeEventQueryStatus", api.event_query_status(mark_->handle())));
  }
  if (!appended_ && !adopted_) {
    return {};
  }
  StatusOr<std::shared_ptr<HeldEvent>> mark = context_->events().Hold();
  FERRY_RETURN_IF_ERROR(mark.status());
  FERRY_RETURN_IF_ERROR(MarkLocked(std::move(*mark)));
  return ZeStatus("zeEventQueryStatus", api.event_query_status(mark_->handle()));
}

void LevelZeroStream::Abandon() {
  StopThread();
  abandoned_ = true;
  context_->Abandon();
}

Status LevelZeroStream::BarrierLocked(ze_event_handle_t signal) {
  appended_ = true;
  return ZeStatus("zeCommandListAppendBarrier",
                  context_->api().command_list_append_barrier(list_, signal, 0, nullptr));
}

Status LevelZeroStream::MarkLocked(std::shared_ptr<HeldEvent> mark) {
  mark->SetRecorded();  // also where that fails: nobody knows what the list then refers to
  FERRY_RETURN_IF_ERROR(BarrierLocked(mark->handle()));
  mark_ = std::move(mark);
  appended_ = false;
  return {};
}

Status LevelZeroStream::EnqueueItemLocked(HostItem item) {
  std::lock_guard lock(items_mutex_);
  FERRY_RETURN_IF_ERROR(StartThreadLocked());
  LevelZeroEvents& events = context_->events();
  StatusOr<ze_event_handle_t> reached = events.Acquire();
  FERRY_RETURN_IF_ERROR(reached.status());
  StatusOr<ze_event_handle_t> passed = events.Acquire();
  if (!passed.ok()) {
    events.Release(*reached);
    return passed.status();
  }
  item.reached = *reached;
  item.passed = *passed;
  // Where this fails the list may refer to the events: they are not used again.
  FERRY_RETURN_IF_ERROR(AppendItemLocked(item));
  items_.push_back(std::move(item));
  items_changed_.notify_one();
  return {};
}

Status LevelZeroStream::AppendItemLocked(const HostItem& item) {
  FERRY_RETURN_IF_ERROR(BarrierLocked(item.reached));
  ze_event_handle_t passed = item.passed;
  return ZeStatus("zeCommandListAppendWaitOnEvents",
                  context_->api().command_list_append_wait_on_events(list_, 1, &passed));
}

Status LevelZeroStream::StartThreadLocked() {
  if (thread_started_) {
    return {};
  }
  LoaderCalls::EndWithProcess();
  // The application's signal handlers must not run on this thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    std::thread([this] { Main(); }).detach();
    thread_started_ = true;
    thread_runs_ = true;
  } catch (const std::system_error& error) {
    status = {ErrorCode::kSystem,
              "starting the thread for host steps of a stream: " + error.code().message()};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

void LevelZeroStream::Main() {
  pthread_setname_np(pthread_self(), "ferry-ze-host");
  RunItems();
  std::lock_guard lock(items_mutex_);
  thread_runs_ = false;
  items_changed_.notify_all();  // with the lock held: the stream may go once it is free
}

void LevelZeroStream::RunItems() {
  std::unique_lock lock(items_mutex_);
  while (true) {
    items_changed_.wait(lock, [this] { return stopping_ || !items_.empty(); });
    if (stopping_) {
      return;
    }
    const HostItem item = items_.front();
    lock.unlock();
    const bool goes_on = RunItem(item);
    lock.lock();
    if (!goes_on) {
      return;  // with the item, and those behind it, still queued
    }
    items_.pop_front();
  }
}

bool LevelZeroStream::RunItem(const HostItem& item) {
  if (!AwaitSignal(item.reached)) {
    return false;
  }
  // Everything before the signal is done, the waits of earlier items too.
  LevelZeroEvents& events = context_->events();
  for (const ze_event_handle_t event : passed_) {
    events.Release(event);
  }
  passed_.clear();
  if (item.step == nullptr ? !AwaitSignal(item.foreign.held->handle()) : !TakeStep(item)) {
    return false;
  }
  if (LoaderCalls::Make([&] { return context_->api().event_host_signal(item.passed); }) !=
      ZE_RESULT_SUCCESS) {
    return false;  // the device is lost: Query says so
  }
  passed_.push_back(item.passed);
  events.Release(item.reached);
  return true;
}

bool LevelZeroStream::TakeStep(const HostItem& item) {
  {
    std::lock_guard lock(items_mutex_);
    items_.front().taken = true;
  }
  return item.step(item.argument);
}

bool LevelZeroStream::AwaitSignal(ze_event_handle_t event) {
  const LevelZeroApi& api = context_->api();
  ze_result_t result =
      LoaderCalls::Make([&] { return api.event_host_synchronize(event, kSpinNs); });
  auto sleep = kFirstSleep;
  std::unique_lock lock(items_mutex_);
  while (result == ZE_RESULT_NOT_READY && !stopping_) {
    items_changed_.wait_for(lock, sleep);
    sleep = std::min(2 * sleep, kLongestSleep);
    lock.unlock();
    result = LoaderCalls::Make([&] { return api.event_query_status(event); });
    lock.lock();
  }
  return result == ZE_RESULT_SUCCESS && !stopping_;
}

void LevelZeroStream::StopThread() {
  std::unique_lock lock(items_mutex_);
  stopping_ = true;
  items_changed_.notify_all();
  items_changed_.wait(lock, [this] { return !thread_runs_; });
}

}  // namespace ferry::gpu
