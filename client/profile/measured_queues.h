// The queues of a measured rank that keeps its events: passes calls on to the rank's own, and notes
// what is put into which queue, at which position, and how long the rank waits for a queue.
//
// Front ends get it in the place of the rank's own (FrontEnd::queues).
//
// Calling thread: as StreamQueues.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/api/stream_queues.h"
#include "client/profile/event_log.h"

namespace ferry::client {

class MeasuredQueues final : public StreamQueues {
 public:
  // Both outlive it.
  MeasuredQueues(StreamQueues* own, EventLog* events) : own_(*own), events_(*events) {}

  Status BeginMatch(std::span<const RequestHandle> requests, RequestHandle* match) override {
    return own_.BeginMatch(requests, match);
  }
  Status IsMatched(RequestHandle request, bool* matched) override {
    return own_.IsMatched(request, matched);
  }
  bool IsEnqueued(RequestHandle request) override { return own_.IsEnqueued(request); }
  StatusOr<QueueHandle> MakeQueue(uint32_t type, const void* stream_address) override {
    return own_.MakeQueue(type, stream_address);
  }
  Status FreeQueue(QueueHandle queue) override;
  Status AwaitQueue(QueueHandle queue) override;
  Status EnqueueStart(QueueHandle queue, std::span<const RequestHandle> requests) override;
  Status EnqueueWait(QueueHandle queue, std::span<const RequestHandle> requests) override;
  Status EnqueueCall(QueueHandle queue, HostCall call) override;
  StatusOr<RequestHandle> MakeProgram(std::string name, std::span<const RequestHandle> requests,
                                      std::vector<ProgramStep> steps) override {
    return own_.MakeProgram(std::move(name), requests, std::move(steps));
  }
  Status FreeProgram(RequestHandle program) override { return own_.FreeProgram(program); }
  Status StartProgram(RequestHandle program) override { return own_.StartProgram(program); }
  bool AdvanceProgram(RequestHandle program, ErrorCode* error) override {
    return own_.AdvanceProgram(program, error);
  }
  StatusOr<DeviceRing> MakeRing(int device, uint32_t slots, uint32_t completions) override {
    return own_.MakeRing(device, slots, completions);
  }
  Status FreeRing(uint64_t handle) override { return own_.FreeRing(handle); }

 private:
  // So many operations were put into the queue.
  void NoteQueued(QueueHandle queue, size_t operations, uint64_t begin_ns);

  StreamQueues& own_;
  EventLog& events_;
  std::mutex mutex_;                           // guards what follows
  std::map<QueueHandle, uint32_t> positions_;  // of the next operation of each
};

}  // namespace ferry::client
