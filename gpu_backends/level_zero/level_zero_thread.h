// The thread of a stream: does the work that the stream's device cannot do.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "common/status.h"
#include "gpu_backends/level_zero/level_zero_context.h"

namespace ferry::gpu {

// Starts when it is first needed. The loader is gone before the process ends, so the thread calls
// it only through Call.
class LevelZeroThread {
 public:
  explicit LevelZeroThread(LevelZeroContext* context) : context_(context) {}
  // Stop must have been called.
  ~LevelZeroThread() = default;
  LevelZeroThread(const LevelZeroThread&) = delete;
  LevelZeroThread& operator=(const LevelZeroThread&) = delete;

  // Guards the state that the thread and others share.
  std::mutex& mutex() { return mutex_; }

  // ---- For others ----

  // With the mutex held. Starts main(), with all signals blocked, unless it has been started.
  Status StartLocked(std::function<void()> main);
  // With the mutex held. Tells the thread that there is work.
  void NotifyLocked() { changed_.notify_all(); }
  // Without the mutex. Asks the thread to end and waits until it has.
  void Stop();

  // ---- For the thread ----

  const std::atomic<bool>& stopping() const { return stopping_; }
  // Blocks until has_work(), asked with the mutex held. False: the thread must end.
  template <typename HasWork>
  bool AwaitWork(std::unique_lock<std::mutex>& lock, HasWork&& has_work) {
    changed_.wait(lock, [&] { return stopping_.load() || has_work(); });
    return !stopping_.load();
  }
  // Makes a call to the loader, or fails if the loader is gone.
  static Status Call(const std::function<Status()>& call);
  // Blocks until the event is signalled. An error: it never will be, or the thread must end.
  Status AwaitSignal(const LevelZeroContext& context, ze_event_handle_t event);

 private:
  LevelZeroContext* const context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopping_{false};  // set under mutex_

  // The thread is never joined: it ends by itself where its stream ends, perhaps long before the
  // stream is abandoned.
  bool started_ = false;
  bool runs_ = false;
};

}  // namespace ferry::gpu
