// Level Zero's events, from pools that grow.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "common/status.h"
#include "gpu_backends/level_zero/level_zero_api.h"

namespace ferry::gpu {

class LevelZeroEvents;

// Holds one event and releases it at its end; if a list is going to signal the event, only after
// that.
class HeldEvent {
 public:
  enum class Stage : uint8_t {
    kNew,      // no list knows it yet; a stream may append it
    kInList,   // a list signals it, or has
    kDropped,  // no list ever will
  };

  HeldEvent(LevelZeroEvents* events, ze_event_handle_t handle) : events_(events), handle_(handle) {}
  ~HeldEvent();
  HeldEvent(const HeldEvent&) = delete;
  HeldEvent& operator=(const HeldEvent&) = delete;

  ze_event_handle_t handle() const { return handle_; }
  Stage stage() const { return stage_.load(std::memory_order_acquire); }  // Pairs with Decide.
  // Why the event was dropped.
  const Status& why() const { return why_; }
  void SetInList() { Decide(Stage::kInList, {}); }
  void Drop(const Status& why) { Decide(Stage::kDropped, why); }
  // Blocks while it is new, unless `stopping` is set and LevelZeroEvents::Interrupt was called.
  void AwaitDecision(const std::atomic<bool>& stopping) const;

 private:
  void Decide(Stage stage, Status why);

  LevelZeroEvents* const events_;
  const ze_event_handle_t handle_;
  std::atomic<Stage> stage_{Stage::kNew};  // changes once
  Status why_;
};

// The events of one context, visible to the host and to all its devices. Thread-safe. The API and
// the context outlive it.
class LevelZeroEvents {
 public:
  LevelZeroEvents(const LevelZeroApi* api, ze_context_handle_t context)
      : api_(api), context_(context) {}
  // Destroys all of them, released or not, unless Abandon was called.
  ~LevelZeroEvents();
  LevelZeroEvents(const LevelZeroEvents&) = delete;
  LevelZeroEvents& operator=(const LevelZeroEvents&) = delete;

  // Returns an event that is not signalled. May make a pool.
  StatusOr<ze_event_handle_t> Acquire();
  // Returns an event that is not signalled, and is released with its last holder. May make a pool.
  StatusOr<std::shared_ptr<HeldEvent>> Hold();
  // Releases an event that no command list and no thread refers to any more.
  void Release(ze_event_handle_t event);
  // Releases an event that only the list that is going to signal it refers to.
  void ReleaseOnceSignalled(ze_event_handle_t event);
  // Makes threads that wait for decisions check whether to stop.
  void Interrupt();
  // Keeps all events until the process ends, since the device still refers to some.
  void Abandon();

 private:
  Status CreateLocked(ze_event_handle_t* event);
  void CollectSignalledLocked();

  const LevelZeroApi* const api_;
  const ze_context_handle_t context_;

  std::mutex mutex_;
  std::vector<ze_event_pool_handle_t> pools_;
  uint32_t created_in_last_ = 0;  // of the last pool's events
  std::vector<ze_event_handle_t> events_;
  std::vector<ze_event_handle_t> free_;
  std::vector<ze_event_handle_t> to_be_signalled_;
  bool abandoned_ = false;

  friend class HeldEvent;
  std::mutex decision_mutex_;
  std::condition_variable decided_;
};

}  // namespace ferry::gpu
