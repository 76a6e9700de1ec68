#include "internode/registration/registrar.h"

#include <algorithm>
#include <utility>

#include "common/thread.h"

namespace ferry::progress {
namespace {

constexpr uint64_t kRetryNs = 10'000'000;  // where the NIC does not let go

}  // namespace

Registrar::Registrar(transport::Transport& transport, std::function<void()> ring)
    : transport_(transport),
      ring_(std::move(ring)),
      pins_(transport.capabilities().pins),
      self_(std::make_shared<Registrar*>(this)) {}

Registrar::~Registrar() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    for (const auto& [owner, tasks] : pin_tasks_) {
      for (const Task& task : tasks) {
        task.pin->unwanted = true;
      }
    }
  }
  if (thread_.joinable()) {
    asked_.notify_one();
    thread_.join();
  }
  for (const std::shared_ptr<Pinning>& pinning : ended_) {
    pinning->registration.reset();  // before the transport goes
  }
  *self_ = nullptr;
}

void Registrar::Pin(std::shared_ptr<Pinning> pinning) {
  ++pending_;
  if (!pins_ && !pinning->prepare && !pinning->pin) {
    Prepare(*pinning);
    Adopt(*pinning);
    told_next_.push_back(std::move(pinning));
    return;
  }
  Task task;
  task.pin = std::move(pinning);
  Add(std::move(task));
}

void Registrar::Unpin(std::unique_ptr<transport::Registration> registration,
                      std::shared_ptr<const void> memory, std::shared_ptr<UnpinSignal> signal) {
  if (!pins_) {
    registration.reset();
    if (memory == nullptr && !thread_.joinable()) {
      return;  // there is nothing before it, either
    }
  }
  Add({.unpin = std::move(registration), .memory = std::move(memory), .signal = std::move(signal)});
}

void Registrar::Add(Task task) {
  {
    std::lock_guard lock(mutex_);
    task.number = ++last_task_;
    if (task.pin == nullptr) {
      unpin_tasks_.push_back(std::move(task));
    } else {
      const uint64_t owner = task.pin->owner;
      std::deque<Task>& pins = pin_tasks_[owner];
      pins.push_back(std::move(task));
      if (pins.size() == 1) {
        turns_.push_back(owner);
      }
    }
  }
  if (!thread_.joinable()) {
    thread_ = MakeThread("ferry-pin", [this] { Loop(); });
  }
  asked_.notify_one();
}

// With the lock. Nothing if nothing was asked for.
std::optional<Registrar::Task> Registrar::TakeNext() {
  uint64_t oldest_pin = UINT64_MAX;
  for (const auto& [owner, tasks] : pin_tasks_) {
    oldest_pin = std::min(oldest_pin, tasks.front().number);
  }
  // One without a registration waits for all that was asked for before.
  const auto unpin = std::find_if(unpin_tasks_.begin(), unpin_tasks_.end(), [&](const Task& task) {
    return task.unpin != nullptr || task.number < oldest_pin;
  });
  if (unpin != unpin_tasks_.end()) {
    std::optional<Task> task = std::move(*unpin);
    unpin_tasks_.erase(unpin);
    return task;
  }
  if (turns_.empty()) {
    return std::nullopt;
  }
  const auto pins = pin_tasks_.find(turns_.front());
  turns_.pop_front();
  std::optional<Task> task = std::move(pins->second.front());
  pins->second.pop_front();
  if (pins->second.empty()) {
    pin_tasks_.erase(pins);
  } else {
    turns_.push_back(pins->first);
  }
  return task;
}

void Registrar::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [this] { return stop_ || !unpin_tasks_.empty() || !turns_.empty(); });
    if (unpin_tasks_.empty() && turns_.empty()) {
      return;
    }
    Task task = TakeNext().value();
    lock.unlock();
    Do(std::move(task));
    lock.lock();
  }
}

void Registrar::Do(Task task) {
  if (task.pin == nullptr) {
    task.unpin.reset();
    task.memory.reset();  // here it is unmapped, unless it has another holder
    return;
  }
  Pinning& pinning = *task.pin;
  if (!pinning.unwanted) {
    Prepare(pinning);
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

void Registrar::Prepare(Pinning& pinning) {
  if (pinning.prepare) {
    pinning.prepare();
  }
  transport::Transport& nic = *pinning.nic;
  auto prepared = pinning.pin      ? pinning.pin()
                  : pinning.device ? nic.PrepareDeviceMemory(*pinning.device, pinning.base,
                                                             pinning.bytes, pinning.access)
                                   : nic.PrepareMemory(pinning.base, pinning.bytes, pinning.access);
  if (prepared.ok()) {
    pinning.registration = std::move(*prepared);
  }
  pinning.status = prepared.status();
}

uint32_t Registrar::CollectAtOnce() {
  const std::vector<std::shared_ptr<Pinning>> ended = std::exchange(told_next_, {});
  for (const std::shared_ptr<Pinning>& pinning : ended) {
    Tell(*pinning);
  }
  return static_cast<uint32_t>(ended.size());
}

uint32_t Registrar::Collect() {
  uint32_t told = CollectAtOnce();
  if (!any_ended_.load(std::memory_order_acquire)) {  // Pairs with Do.
    return told;
  }
  for (const std::shared_ptr<Pinning>& pinning : TakeEnded()) {
    Adopt(*pinning);
    Tell(*pinning);
    ++told;
    if (pinning->registration != nullptr) {
      Unpin(std::move(pinning->registration), std::move(pinning->memory), nullptr);
    }
  }
  return told;
}

void Registrar::Tell(Pinning& pinning) {
  --pending_;
  if (!pinning.is_given_up && pinning.on_end) {
    pinning.on_end();
  }
}

void Registrar::Adopt(Pinning& pinning) {
  if (pinning.unwanted) {
    pinning.status = {ErrorCode::kCancelled, "nobody wants it any more"};
  } else if (pinning.status.ok()) {
    auto adopted = pinning.nic->AdoptMemory(std::move(pinning.registration));
    pinning.status = adopted.status();
    pinning.region = adopted.ok() ? *adopted : transport::MemoryRegion();
  }
  pinning.has_ended = true;
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
  pinning.is_given_up = true;  // perhaps before its end was told
  Unpin(std::move(registration), std::move(pinning.memory), std::move(unpinned));
  return true;
}

void Registrar::ReleaseAt(uint64_t time_ns, std::shared_ptr<Pinning> pinning) {
  pinning->is_given_up = true;
  if (!pinning->has_ended) {
    pinning->unwanted = true;
    pinning->on_end = nullptr;  // and what it holds
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

}  // namespace ferry::progress
