#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu_backends/level_zero/level_zero_list.h"
#include "gpu_backends/level_zero/level_zero_stream.h"
#include "gpu_backends/level_zero/level_zero_thread.h"

namespace ferry::gpu {
namespace {

class OwnStream final : public LevelZeroStream {
 public:
  OwnStream(LevelZeroDevice* device, ze_command_list_handle_t list)
      : device_(*device),
        only_copies_(device->has_copy_engine()),
        list_(std::make_unique<LevelZeroList>(&device->context(), list, false)),
        thread_(&device->context()) {}
  ~OwnStream() override;

  LevelZeroContext& context() const override { return device_.context(); }
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
  // One of: a command, a step, a wait for an event that no list knows yet or that this device
  // cannot wait for.
  struct Item {
    std::function<Status()> append;
    std::shared_ptr<HeldEvent> recorded;  // the event that the command records
    HostStep step = nullptr;
    void* argument = nullptr;
    bool taken = false;
    LevelZeroEvent awaited;
  };

  // Appends the command now, or behind work that the thread has to do first.
  Status Append(std::function<Status()> append, std::shared_ptr<HeldEvent> recorded = nullptr);
  // Appends a command that a copy engine does not take.
  Status AppendOther(std::function<Status()> append);
  Status LeaveCopyEngine();
  Status QueueLocked(Item item);
  void Main();
  Status Run(Item& item);
  Status TakeStep(Item& item);
  Status AwaitEvent(const LevelZeroEvent& event);
  // Drops everything that is queued.
  void DropLocked(const Status& why);

  LevelZeroDevice& device_;
  // These are the thread's while anything is queued.
  bool only_copies_;  // so far
  std::unique_ptr<LevelZeroList> list_;
  std::unique_ptr<LevelZeroList> copies_;  // what list_ was before
  LevelZeroThread thread_;
  bool abandoned_ = false;

  // Under the thread's mutex. The first item is the thread's while it runs.
  std::deque<Item> items_;
  bool ended_ = false;  // by a step
  Status failure_;
  std::vector<Item> steps_not_taken_;
};

Status EndedStatus() { return {ErrorCode::kCancelled, "the stream was destroyed"}; }

OwnStream::~OwnStream() {
  thread_.Stop();
  if (abandoned_) {
    return;
  }
  {
    std::lock_guard lock(thread_.mutex());
    DropLocked(EndedStatus());
  }
  for (const Item& item : steps_not_taken_) {
    static_cast<void>(item.step(item.argument));  // there is no stream that could go on
  }
  list_->Destroy();
  if (copies_ != nullptr) {
    copies_->Destroy();
  }
}

Status OwnStream::Copy(void* destination, const void* source, uint64_t size_bytes) {
  return Append([=, this] { return list_->Copy(destination, source, size_bytes); });
}

Status OwnStream::Launch(std::function<Status(ze_command_list_handle_t)> append) {
  return AppendOther([this, append = std::move(append)] { return list_->Launch(append); });
}

Status OwnStream::Record(const LevelZeroEvent& event) {
  if (event.context != &context()) {
    return {ErrorCode::kInvalidArgument,
            "Level Zero: an event cannot be recorded on a stream of another driver's device"};
  }
  return Append([this, held = event.held] { return list_->Mark(held); }, event.held);
}

Status OwnStream::Wait(const LevelZeroEvent& event) {
  if (event.context == &context() && event.held->stage() == HeldEvent::Stage::kInList) {
    return Append([this, held = event.held] { return list_->Wait(held->handle()); });
  }
  std::lock_guard lock(thread_.mutex());
  Item item;
  item.awaited = event;
  return QueueLocked(std::move(item));
}

Status OwnStream::WriteWord(uint64_t* word, uint64_t value) {
  return AppendOther([=, this] { return list_->WriteWord(word, value); });
}

Status OwnStream::WaitWord(const uint64_t* word, uint64_t value, WaitCondition condition) {
  return AppendOther([=, this] { return list_->WaitWord(word, value, condition); });
}

Status OwnStream::EnqueueStep(HostStep step, void* argument) {
  std::lock_guard lock(thread_.mutex());
  Item item;
  item.step = step;
  item.argument = argument;
  return QueueLocked(std::move(item));
}

Status OwnStream::Append(std::function<Status()> append, std::shared_ptr<HeldEvent> recorded) {
  std::lock_guard lock(thread_.mutex());
  FERRY_RETURN_IF_ERROR(failure_);
  if (items_.empty() && !ended_) {
    return append();
  }
  Item item;
  item.append = std::move(append);
  item.recorded = std::move(recorded);
  return QueueLocked(std::move(item));
}

Status OwnStream::AppendOther(std::function<Status()> append) {
  return Append([this, append = std::move(append)] {
    FERRY_RETURN_IF_ERROR(LeaveCopyEngine());
    return append();
  });
}

Status OwnStream::LeaveCopyEngine() {
  if (!only_copies_) {
    return {};
  }
  StatusOr<std::shared_ptr<HeldEvent>> copied = list_->LastMark();
  FERRY_RETURN_IF_ERROR(copied.status());
  StatusOr<ze_command_list_handle_t> made = device_.CreateList();
  FERRY_RETURN_IF_ERROR(made.status());
  auto next = std::make_unique<LevelZeroList>(&context(), *made, false);
  if (*copied != nullptr) {
    if (Status status = next->Wait((*copied)->handle()); !status.ok()) {
      next->Destroy();
      return status;
    }
  }
  copies_ = std::exchange(list_, std::move(next));
  only_copies_ = false;
  return {};
}

Status OwnStream::QueueLocked(Item item) {
  FERRY_RETURN_IF_ERROR(failure_);
  FERRY_RETURN_IF_ERROR(thread_.StartLocked([this] { Main(); }));
  items_.push_back(std::move(item));
  if (ended_) {
    DropLocked(EndedStatus());
  } else {
    thread_.NotifyLocked();
  }
  return {};
}

Status OwnStream::Query() {
  std::lock_guard lock(thread_.mutex());
  FERRY_RETURN_IF_ERROR(failure_);
  if (!items_.empty()) {
    return {ErrorCode::kWouldBlock, "Level Zero: a host step is not done"};
  }
  return list_->Query();
}

void OwnStream::Abandon() {
  thread_.Stop();
  abandoned_ = true;
  context().Abandon();
}

void OwnStream::Main() {
  std::unique_lock lock(thread_.mutex());
  while (thread_.AwaitWork(lock, [this] { return !items_.empty(); })) {
    Item& item = items_.front();
    lock.unlock();
    Status status = Run(item);
    lock.lock();
    if (status.ok()) {
      items_.pop_front();
    } else if (!thread_.stopping()) {
      if (!ended_) {
        failure_ = status;
      }
      DropLocked(status);
    }
  }
}

Status OwnStream::Run(Item& item) {
  if (item.step != nullptr) {
    return TakeStep(item);
  }
  return item.append != nullptr ? LevelZeroThread::Call(item.append) : AwaitEvent(item.awaited);
}

Status OwnStream::TakeStep(Item& item) {
  std::shared_ptr<HeldEvent> mark;
  FERRY_RETURN_IF_ERROR(LevelZeroThread::Call([&] {
    StatusOr<std::shared_ptr<HeldEvent>> last = list_->LastMark();
    if (last.ok()) {
      mark = std::move(*last);
    }
    return last.status();
  }));
  if (mark != nullptr) {
    FERRY_RETURN_IF_ERROR(thread_.AwaitSignal(context(), mark->handle()));
  }
  item.taken = true;
  if (item.step(item.argument)) {
    return {};
  }
  std::lock_guard lock(thread_.mutex());
  ended_ = true;
  return EndedStatus();
}

Status OwnStream::AwaitEvent(const LevelZeroEvent& event) {
  event.held->AwaitDecision(thread_.stopping());
  switch (event.held->stage()) {
    case HeldEvent::Stage::kNew:
      return EndedStatus();
    case HeldEvent::Stage::kDropped:
      return event.held->why();
    case HeldEvent::Stage::kInList:
      break;
  }
  if (event.context != &context()) {
    return thread_.AwaitSignal(*event.context, event.held->handle());
  }
  return LevelZeroThread::Call([&] { return list_->Wait(event.held->handle()); });
}

void OwnStream::DropLocked(const Status& why) {
  for (Item& item : items_) {
    if (item.recorded != nullptr && item.recorded->stage() == HeldEvent::Stage::kNew) {
      item.recorded->Drop(why);
    }
    if (item.step != nullptr && !item.taken) {
      steps_not_taken_.push_back(std::move(item));
    }
  }
  items_.clear();
}

}  // namespace

std::unique_ptr<LevelZeroStream> MakeOwnStream(LevelZeroDevice* device,
                                               ze_command_list_handle_t list) {
  return std::make_unique<OwnStream>(device, list);
}

}  // namespace ferry::gpu
