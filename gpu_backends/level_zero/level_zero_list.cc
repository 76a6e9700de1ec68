#include "gpu_backends/level_zero/level_zero_list.h"

#include <utility>

namespace ferry::gpu {

Status LevelZeroList::Copy(void* destination, const void* source, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(Barrier(nullptr));
  FERRY_RETURN_IF_ERROR(ZeStatus("zeCommandListAppendMemoryCopy",
                                 context_->api().command_list_append_memory_copy(
                                     list_, destination, source, size_bytes, nullptr, 0, nullptr)));
  return adopted_ ? Barrier(nullptr) : Status();
}

Status LevelZeroList::Launch(const std::function<Status(ze_command_list_handle_t)>& append) {
  FERRY_RETURN_IF_ERROR(Barrier(nullptr));
  FERRY_RETURN_IF_ERROR(append(list_));
  return adopted_ ? Barrier(nullptr) : Status();
}

Status LevelZeroList::Mark(std::shared_ptr<HeldEvent> event) {
  if (Status status = Barrier(event->handle()); !status.ok()) {
    event->Drop(status);
    return status;
  }
  event->SetInList();  // only now: a thread that sees it may append a wait for it
  mark_ = std::move(event);
  appended_ = false;
  return {};
}

Status LevelZeroList::Wait(ze_event_handle_t event) {
  appended_ = true;
  return ZeStatus("zeCommandListAppendWaitOnEvents",
                  context_->api().command_list_append_wait_on_events(list_, 1, &event));
}

Status LevelZeroList::WriteWord(uint64_t* word, uint64_t value) {
  FERRY_RETURN_IF_ERROR(Barrier(nullptr));
  FERRY_RETURN_IF_ERROR(context_->AppendWrite(list_, word, value));
  return adopted_ ? Barrier(nullptr) : Status();
}

Status LevelZeroList::WaitWord(const uint64_t* word, uint64_t value, WaitCondition condition) {
  appended_ = true;
  return context_->AppendWait(list_, word, value, condition);
}

Status LevelZeroList::Query() {
  const LevelZeroApi& api = context_->api();
  if (mark_ != nullptr) {
    // The work before the mark is not done, whatever is behind it; or there is an error.
    FERRY_RETURN_IF_ERROR(ZeStatus("zeEventQueryStatus", api.event_query_status(mark_->handle())));
  }
  const StatusOr<std::shared_ptr<HeldEvent>> mark = LastMark();
  FERRY_RETURN_IF_ERROR(mark.status());
  return *mark == nullptr
             ? Status()
             : ZeStatus("zeEventQueryStatus", api.event_query_status((*mark)->handle()));
}

StatusOr<std::shared_ptr<HeldEvent>> LevelZeroList::LastMark() {
  if (!appended_ && !adopted_) {  // the application may have appended to an adopted one
    return mark_;
  }
  StatusOr<std::shared_ptr<HeldEvent>> mark = context_->events().Hold();
  FERRY_RETURN_IF_ERROR(mark.status());
  FERRY_RETURN_IF_ERROR(Mark(std::move(*mark)));
  return mark_;
}

void LevelZeroList::Destroy() {
  if (!adopted_) {
    context_->api().command_list_destroy(list_);
  }
}

Status LevelZeroList::Barrier(ze_event_handle_t signal) {
  appended_ = true;
  return ZeStatus("zeCommandListAppendBarrier",
                  context_->api().command_list_append_barrier(list_, signal, 0, nullptr));
}

}  // namespace ferry::gpu
