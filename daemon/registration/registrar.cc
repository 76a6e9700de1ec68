#include "daemon/registration/registrar.h"

#include <pthread.h>

namespace ferry::daemon {

Registrar::Registrar(transport::Transport& transport, std::function<void()> ring)
    : transport_(transport), ring_(std::move(ring)), thread_([this] { Loop(); }) {
  pthread_setname_np(thread_.native_handle(), "ferry-pin");
}

Registrar::~Registrar() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    for (const Task& task : tasks_) {
      if (task.pin != nullptr) {
        task.pin->unwanted = true;
      }
    }
  }
  asked_.notify_one();
  thread_.join();
}

void Registrar::Pin(std::shared_ptr<Pinning> pinning) {
  ++pending_;
  Task task;
  task.pin = std::move(pinning);
  Add(std::move(task));
}

void Registrar::Unpin(std::unique_ptr<transport::Registration> registration,
                      std::shared_ptr<const void> memory, std::shared_ptr<UnpinSignal> signal) {
  Add({nullptr, std::move(registration), std::move(memory), std::move(signal)});
}

void Registrar::Add(Task task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  asked_.notify_one();
}

void Registrar::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) {
      return;
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    Do(std::move(task));
    lock.lock();
  }
}

void Registrar::Do(Task task) {
  if (task.pin == nullptr) {
    task.unpin.reset();
    task.memory.reset();  // here it is unmapped, unless somebody has it still
    return;
  }
  Pinning& pinning = *task.pin;
  if (!pinning.unwanted) {
    if (pinning.prepare) {
      pinning.prepare();
    }
    auto prepared = pinning.pin
                        ? pinning.pin()
                        : transport_.PrepareMemory(pinning.base, pinning.bytes, pinning.access);
    if (prepared.ok()) {
      pinning.registration = std::move(*prepared);
    }
    pinning.status = prepared.status();
  }
  pinning.prepare = nullptr;  // and what it holds
  pinning.pin = nullptr;
  if (pinning.unwanted) {
    pinning.registration.reset();
    pinning.memory.reset();
  }
  {
    std::lock_guard lock(mutex_);
    ended_.push_back(std::move(task.pin));
    any_ended_.store(true, std::memory_order_release);  // Pairs with Collect.
  }
  ring_();
}

uint32_t Registrar::Collect() {
  if (!any_ended_.load(std::memory_order_acquire)) {  // Pairs with Do.
    return 0;
  }
  const std::vector<std::shared_ptr<Pinning>> ended = TakeEnded();
  for (const std::shared_ptr<Pinning>& pinning : ended) {
    --pending_;
    pinning->sink->OnPinned(*pinning);
    if (pinning->registration != nullptr) {
      Unpin(std::move(pinning->registration), std::move(pinning->memory), nullptr);
    }
  }
  return static_cast<uint32_t>(ended.size());
}

std::vector<std::shared_ptr<Pinning>> Registrar::TakeEnded() {
  std::lock_guard lock(mutex_);
  any_ended_.store(false, std::memory_order_relaxed);
  return std::exchange(ended_, {});
}

}  // namespace ferry::daemon
