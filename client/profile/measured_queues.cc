#include "client/profile/measured_queues.h"

namespace ferry::client {

void MeasuredQueues::NoteQueued(QueueHandle queue, size_t operations, uint64_t begin_ns) {
  const std::lock_guard lock(mutex_);
  uint32_t& position = positions_[queue];
  for (size_t i = 0; i < operations; ++i) {
    events_.NoteQueued(queue, position++, begin_ns);
  }
}

Status MeasuredQueues::FreeQueue(QueueHandle queue) {
  const Status status = own_.FreeQueue(queue);
  if (status.ok()) {
    const std::lock_guard lock(mutex_);
    positions_.erase(queue);
  }
  return status;
}

Status MeasuredQueues::AwaitQueue(QueueHandle queue) {
  const uint64_t begin_ns = EventLog::Now();
  const Status status = own_.AwaitQueue(queue);
  events_.NoteQueueWait(queue, begin_ns);
  return status;
}

Status MeasuredQueues::EnqueueStart(QueueHandle queue, std::span<const RequestHandle> requests) {
  const uint64_t begin_ns = EventLog::Now();
  const Status status = own_.EnqueueStart(queue, requests);
  if (status.ok()) {
    NoteQueued(queue, requests.size(), begin_ns);
  }
  return status;
}

Status MeasuredQueues::EnqueueWait(QueueHandle queue, std::span<const RequestHandle> requests) {
  const uint64_t begin_ns = EventLog::Now();
  const Status status = own_.EnqueueWait(queue, requests);
  if (status.ok()) {
    NoteQueued(queue, requests.size(), begin_ns);
  }
  return status;
}

Status MeasuredQueues::EnqueueCall(QueueHandle queue, HostCall call) {
  const uint64_t begin_ns = EventLog::Now();
  const Status status = own_.EnqueueCall(queue, std::move(call));
  if (status.ok()) {
    NoteQueued(queue, 1, begin_ns);
  }
  return status;
}

}  // namespace ferry::client
