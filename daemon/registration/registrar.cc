#include "daemon/registration/registrar.h"

#include <pthread.h>

#include <algorithm>

namespace ferry::daemon {
namespace {

constexpr uint64_t kRetryNs = 10'000'000;  // where the NIC does not let go

}  // namespace

Registrar::Registrar(transport::Transport& transport, std::function<void()> ring)
    : transport_(transport),
      ring_(std::move(ring)),
      self_(std::make_shared<Registrar*>(this)),
      thread_([this] { Loop(); }) {
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
  for (const std::shared_ptr<Pinning>& pinning : ended_) {
    pinning->registration.reset();  // before the transport goes
  }
  *self_ = nullptr;
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
                        : pinning.nic->PrepareMemory(pinning.base, pinning.bytes, pinning.access);
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
    End(*pinning);
    if (pinning->registration != nullptr) {
      Unpin(std::move(pinning->registration), std::move(pinning->memory), nullptr);
    }
  }
  return static_cast<uint32_t>(ended.size());
}

void Registrar::End(Pinning& pinning) {
  if (pinning.unwanted) {
    pinning.status = {ErrorCode::kCancelled, "nobody wants it any more"};
  } else if (pinning.status.ok()) {
    auto adopted = pinning.nic->AdoptMemory(std::move(pinning.registration));
    pinning.status = adopted.status();
    pinning.region = adopted.ok() ? *adopted : transport::MemoryRegion();
  }
  pinning.has_ended = true;
  if (pinning.on_end) {
    pinning.on_end();
  }
}

bool Registrar::TryRelease(Pinning& pinning, std::shared_ptr<UnpinSignal> unpinned) {
  if (!pinning.has_ended) {
    return false;
  }
  std::unique_ptr<transport::Registration> registration;
  if (pinning.status.ok()) {
    auto released = pinning.nic->ReleaseMemory(pinning.region.handle);
    if (released.status().code() == ErrorCode::kWouldBlock) {
      return false;
    }
    registration = released.ok() ? std::move(*released) : nullptr;
  }
  Unpin(std::move(registration), std::move(pinning.memory), std::move(unpinned));
  return true;
}

void Registrar::ReleaseAt(uint64_t time_ns, std::shared_ptr<Pinning> pinning) {
  if (!pinning->has_ended) {
    pinning->unwanted = true;
    pinning->on_end = nullptr;
  } else if (time_ns != 0 || !TryRelease(*pinning, nullptr)) {
    leaving_.push_back({std::move(pinning), time_ns});
    next_ns_ = std::min(next_ns_, time_ns);
  }
}

void Registrar::Advance(uint64_t now_ns) {
  if (now_ns < next_ns_) {
    return;
  }
  next_ns_ = UINT64_MAX;
  std::erase_if(leaving_, [&](const Leaving& one) {
    const bool is_due = now_ns >= one.time_ns;
    if (is_due && TryRelease(*one.pinning, nullptr)) {
      return true;
    }
    next_ns_ = std::min(next_ns_, is_due ? now_ns + kRetryNs : one.time_ns);
    return false;
  });
}

std::vector<std::shared_ptr<Pinning>> Registrar::TakeEnded() {
  std::lock_guard lock(mutex_);
  any_ended_.store(false, std::memory_order_relaxed);
  return std::exchange(ended_, {});
}

}  // namespace ferry::daemon
