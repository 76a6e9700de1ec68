#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu_backends/level_zero/level_zero_list.h"
#include "gpu_backends/level_zero/level_zero_stream.h"
#include "gpu_backends/level_zero/level_zero_thread.h"

namespace ferry::gpu {
namespace {

class AdoptedStream final : public LevelZeroStream {
 public:
  AdoptedStream(LevelZeroContext* context, ze_command_list_handle_t list)
      : list_(context, list, true), thread_(context) {}
  ~AdoptedStream() override;

  LevelZeroContext& context() const override { return list_.context(); }
  Status Copy(void* destination, const void* source, uint64_t size_bytes) override;
  Status Launch(std::function<Status(ze_command_list_handle_t)> append) override;
  Status Record(const LevelZeroEvent& event) override;
  Status Wait(const LevelZeroEvent& event) override;
  Status WriteWord(uint64_t* word, uint64_t value) override;
  Status WaitWord(const uint64_t* word, uint64_t value, WaitCondition condition) override;
  Status EnqueueStep(HostStep step, void* argument) override;
  Status Query() override;
  void Abandon() override;

 private:
  // Work for the thread once the device has signalled `reached`; the device goes on when the thread
  // has signalled `passed`, which is not reused if that fails.
  struct Item {
    std::shared_ptr<HeldEvent> reached;
    ze_event_handle_t passed = nullptr;
    HostStep step = nullptr;  // null: wait for `awaited` instead
    void* argument = nullptr;
    bool taken = false;
    LevelZeroEvent awaited;
  };

  Status Enqueue(Item item);
  void Main();
  Status Run(Item& item);
  Status AwaitEvent(const LevelZeroEvent& event);

  std::mutex mutex_;  // of the list; taken before the thread's
  LevelZeroList list_;
  LevelZeroThread thread_;
  bool abandoned_ = false;
  std::deque<Item> items_;                 // under the thread's mutex; the first is the thread's
  Status failure_;                         // likewise: what the list waits for is never signalled
  std::vector<ze_event_handle_t> passed_;  // the thread's own: the list may still wait for them
};

AdoptedStream::~AdoptedStream() {
  thread_.Stop();
  if (abandoned_) {
    return;
  }
  for (const Item& item : items_) {
    if (item.step != nullptr && !item.taken) {
      static_cast<void>(item.step(item.argument));  // there is no stream that could go on
    }
    if (!failure_.ok()) {  // the rest of the list is the application's
      static_cast<void>(context().api().event_host_signal(item.passed));
    }
  }
  for (const ze_event_handle_t event : passed_) {
    context().events().Release(event);
  }
}

Status AdoptedStream::Copy(void* destination, const void* source, uint64_t size_bytes) {
  std::lock_guard lock(mutex_);
  return list_.Copy(destination, source, size_bytes);
}

Status AdoptedStream::Launch(std::function<Status(ze_command_list_handle_t)> append) {
  std::lock_guard lock(mutex_);
  return list_.Launch(append);
}

Status AdoptedStream::Record(const LevelZeroEvent& event) {
  if (event.context != &context()) {
    return {ErrorCode::kInvalidArgument,
            "Level Zero: an event cannot be recorded on a list of another driver's device"};
  }
  std::lock_guard lock(mutex_);
  return list_.Mark(event.held);
}

Status AdoptedStream::Wait(const LevelZeroEvent& event) {
  if (event.context == &context() && event.held->stage() == HeldEvent::Stage::kInList) {
    std::lock_guard lock(mutex_);
    return list_.Wait(event.held->handle());
  }
  Item item;
  item.awaited = event;
  return Enqueue(std::move(item));
}

Status AdoptedStream::WriteWord(uint64_t* word, uint64_t value) {
  std::lock_guard lock(mutex_);
  return list_.WriteWord(word, value);
}

Status AdoptedStream::WaitWord(const uint64_t* word, uint64_t value, WaitCondition condition) {
  std::lock_guard lock(mutex_);
  return list_.WaitWord(word, value, condition);
}

Status AdoptedStream::EnqueueStep(HostStep step, void* argument) {
  Item item;
  item.step = step;
  item.argument = argument;
  return Enqueue(std::move(item));
}

Status AdoptedStream::Query() {
  std::lock_guard lock(mutex_);
  {
    std::lock_guard items_lock(thread_.mutex());
    FERRY_RETURN_IF_ERROR(failure_);
  }
  return list_.Query();
}

void AdoptedStream::Abandon() {
  thread_.Stop();
  abandoned_ = true;
  context().Abandon();
}

Status AdoptedStream::Enqueue(Item item) {
  std::lock_guard lock(mutex_);
  std::lock_guard items_lock(thread_.mutex());
  FERRY_RETURN_IF_ERROR(thread_.StartLocked([this] { Main(); }));
  LevelZeroEvents& events = context().events();
  StatusOr<std::shared_ptr<HeldEvent>> reached = events.Hold();
  FERRY_RETURN_IF_ERROR(reached.status());
  StatusOr<ze_event_handle_t> passed = events.Acquire();
  FERRY_RETURN_IF_ERROR(passed.status());
  item.reached = std::move(*reached);
  item.passed = *passed;
  FERRY_RETURN_IF_ERROR(list_.Mark(item.reached));
  FERRY_RETURN_IF_ERROR(list_.Wait(item.passed));
  items_.push_back(std::move(item));
  thread_.NotifyLocked();
  return {};
}

void AdoptedStream::Main() {
  std::unique_lock lock(thread_.mutex());
  while (thread_.AwaitWork(lock, [this] { return !items_.empty(); })) {
    Item& item = items_.front();
    lock.unlock();
    const Status status = Run(item);
    lock.lock();
    if (!status.ok()) {
      if (status.code() != ErrorCode::kCancelled) {
        failure_ = status;
      }
      return;  // leaves the item, and those behind it, queued
    }
    items_.pop_front();
  }
}

Status AdoptedStream::Run(Item& item) {
  FERRY_RETURN_IF_ERROR(thread_.AwaitSignal(context(), item.reached->handle()));
  // Everything before the signal is done, including the waits of earlier items.
  for (const ze_event_handle_t event : passed_) {
    context().events().Release(event);
  }
  passed_.clear();
  if (item.step == nullptr) {
    FERRY_RETURN_IF_ERROR(AwaitEvent(item.awaited));
  } else {
    item.taken = true;
    if (!item.step(item.argument)) {
      return {ErrorCode::kCancelled, "the stream ends here"};
    }
  }
  FERRY_RETURN_IF_ERROR(LevelZeroThread::Call([&] {
    return ZeStatus("zeEventHostSignal", context().api().event_host_signal(item.passed));
  }));
  passed_.push_back(item.passed);
  return {};
}

Status AdoptedStream::AwaitEvent(const LevelZeroEvent& event) {
  event.held->AwaitDecision(thread_.stopping());
  if (event.held->stage() != HeldEvent::Stage::kInList) {
    return {ErrorCode::kCancelled, "nothing will signal the event"};
  }
  return thread_.AwaitSignal(*event.context, event.held->handle());
}

}  // namespace

std::unique_ptr<LevelZeroStream> MakeAdoptedStream(LevelZeroContext* context,
                                                   ze_command_list_handle_t list) {
  return std::make_unique<AdoptedStream>(context, list);
}

}  // namespace ferry::gpu
