#include "daemon/pairs/shared_trigger.h"

#include "shm/atomic.h"

namespace ferry::daemon {

void SharedTrigger::Ring() {
  const uint64_t value = shm::LoadAcquire(doorbell_->value);
  if (value <= rung_) {
    return;
  }
  if (counter_) {
    deferred_.AddToCounter(*counter_, value - rung_);
  }
  rung_ = value;
}

StatusOr<transport::NicCounter> SharedTrigger::Counter() {
  if (!counter_) {
    StatusOr<transport::NicCounter> opened = deferred_.OpenCounter(/*write_back=*/nullptr);
    FERRY_RETURN_IF_ERROR(opened.status());
    counter_ = *opened;
    if (rung_ != 0) {
      deferred_.AddToCounter(*counter_, rung_);
    }
  }
  return *counter_;
}

void SharedTrigger::NoteOver(bool is_left) {
  --armed_;
  any_left_ |= is_left;
  if (armed_ == 0 && any_left_) {
    CloseCounter();
  }
}

void SharedTrigger::CloseCounter() {
  if (counter_) {
    deferred_.CloseCounter(*counter_);
    counter_.reset();
  }
  any_left_ = false;
}

std::shared_ptr<SharedTrigger> SharedTriggers::Hold(const shm::CounterLayout* doorbell) {
  std::erase_if(by_doorbell_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<SharedTrigger>& known = by_doorbell_[doorbell];
  std::shared_ptr<SharedTrigger> trigger = known.lock();
  if (trigger == nullptr) {
    trigger = std::make_shared<SharedTrigger>(deferred_, doorbell);
    known = trigger;
  }
  return trigger;
}

}  // namespace ferry::daemon
