#include "gpu_backends/level_zero/level_zero_events.h"

#include <utility>

namespace ferry::gpu {
namespace {

constexpr uint32_t kPoolEvents = 64;

}  // namespace

HeldEvent::~HeldEvent() {
  if (stage() == Stage::kInList) {
    events_->ReleaseOnceSignalled(handle_);
  } else {
    events_->Release(handle_);
  }
}

void HeldEvent::Decide(Stage stage, Status why) {
  {
    std::lock_guard lock(events_->decision_mutex_);
    why_ = std::move(why);
    stage_.store(stage, std::memory_order_release);  // Pairs with stage(): publishes why_.
  }
  events_->decided_.notify_all();
}

void HeldEvent::AwaitDecision(const std::atomic<bool>& stopping) const {
  std::unique_lock lock(events_->decision_mutex_);
  events_->decided_.wait(lock, [&] { return stage() != Stage::kNew || stopping.load(); });
}

void LevelZeroEvents::Interrupt() {
  // A thread that has looked, and not yet gone to sleep, holds the mutex.
  { std::lock_guard lock(decision_mutex_); }
  decided_.notify_all();
}

LevelZeroEvents::~LevelZeroEvents() {
  if (abandoned_) {
    return;
  }
  for (const ze_event_handle_t event : events_) {
    api_->event_destroy(event);
  }
  for (const ze_event_pool_handle_t pool : pools_) {
    api_->event_pool_destroy(pool);
  }
}

StatusOr<ze_event_handle_t> LevelZeroEvents::Acquire() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    CollectSignalledLocked();
  }
  if (!free_.empty()) {
    const ze_event_handle_t event = free_.back();
    FERRY_RETURN_IF_ERROR(ZeStatus("zeEventHostReset", api_->event_host_reset(event)));
    free_.pop_back();
    return event;
  }
  ze_event_handle_t event = nullptr;
  FERRY_RETURN_IF_ERROR(CreateLocked(&event));
  return event;
}

StatusOr<std::shared_ptr<HeldEvent>> LevelZeroEvents::Hold() {
  StatusOr<ze_event_handle_t> event = Acquire();
  FERRY_RETURN_IF_ERROR(event.status());
  return std::make_shared<HeldEvent>(this, *event);
}

void LevelZeroEvents::Release(ze_event_handle_t event) {
  std::lock_guard lock(mutex_);
  free_.push_back(event);
}

void LevelZeroEvents::ReleaseOnceSignalled(ze_event_handle_t event) {
  std::lock_guard lock(mutex_);
  to_be_signalled_.push_back(event);
}

void LevelZeroEvents::CollectSignalledLocked() {
  std::erase_if(to_be_signalled_, [this](ze_event_handle_t event) {
    const bool signalled = api_->event_query_status(event) == ZE_RESULT_SUCCESS;
    if (signalled) {
      free_.push_back(event);
    }
    return signalled;
  });
}

void LevelZeroEvents::Abandon() {
  std::lock_guard lock(mutex_);
  abandoned_ = true;
}

Status LevelZeroEvents::CreateLocked(ze_event_handle_t* event) {
  if (pools_.empty() || created_in_last_ == kPoolEvents) {
    ze_event_pool_desc_t pool_description{};
    pool_description.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC;
    pool_description.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE;
    pool_description.count = kPoolEvents;
    ze_event_pool_handle_t pool = nullptr;
    FERRY_RETURN_IF_ERROR(
        ZeStatus("zeEventPoolCreate",
                 api_->event_pool_create(context_, &pool_description, 0, nullptr, &pool)));
    pools_.push_back(pool);
    created_in_last_ = 0;
  }
  ze_event_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_EVENT_DESC;
  description.index = created_in_last_;
  // The host and other devices see what happened before an event, and vice versa.
  description.signal = ZE_EVENT_SCOPE_FLAG_HOST;
  description.wait = ZE_EVENT_SCOPE_FLAG_HOST;
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeEventCreate", api_->event_create(pools_.back(), &description, event)));
  ++created_in_last_;
  events_.push_back(*event);
  return {};
}

}  // namespace ferry::gpu
