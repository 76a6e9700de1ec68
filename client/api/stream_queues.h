// Matched requests, the queues by which streams start and await them, programs of such steps, and
// rings by which kernels ask ferryd for something, for front ends (front_end.h).
//
// Calling thread: any that the thread level allows; after NodePeers::SetThreads(true), any.
// Functions that block say so.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "client/api/host_call.h"
#include "client/api/message.h"
#include "client/api/program_step.h"
#include "common/error_code.h"
#include "common/status.h"

namespace ferry::client {

class StreamQueues {
 public:
  // BeginMatch, IsMatched and the functions of queues are like ferry_imatchall, ferry_is_matched
  // and the functions of queues in ferry/stream.h. `match` is a request that completes once all of
  // `requests` are matched, or one of them cannot be.
  virtual Status BeginMatch(std::span<const RequestHandle> requests, RequestHandle* match) = 0;
  virtual Status IsMatched(RequestHandle request, bool* matched) = 0;
  // Returns true while the request belongs to a queue; then nothing else may be done with it.
  virtual bool IsEnqueued(RequestHandle request) = 0;
  virtual StatusOr<QueueHandle> MakeQueue(uint32_t type, const void* stream_address) = 0;
  virtual Status FreeQueue(QueueHandle queue) = 0;
  virtual Status AwaitQueue(QueueHandle queue) = 0;  // blocks
  virtual Status EnqueueStart(QueueHandle queue, std::span<const RequestHandle> requests) = 0;
  virtual Status EnqueueWait(QueueHandle queue, std::span<const RequestHandle> requests) = 0;
  // Enqueues a call: when the stream gets there, a thread of libferry's carries it out; the stream
  // goes on once it is over, however it ends. AwaitQueue returns the first failure. Queues do not
  // wait for each other. When the stream is destroyed, a call that has begun is waited for. Allows
  // threads for good, as AllowThreads does. Errors of the stream; kInvalidArgument: no such queue;
  // kUnsupported: the stream cannot wait; kSystem: no thread can be started.
  virtual Status EnqueueCall(QueueHandle queue, HostCall call) = 0;
  // Makes a program: steps over matched requests that only the program uses
  // (client/triggered/program.h). A queue starts it, and waits for it, as it does a request. Each
  // request is started, and then waited for, once. EnqueueStart, EnqueueWait, IsEnqueued and the
  // calls below take its handle. `name` says what the program does, for messages. kOutOfMemory,
  // kUnsupported without a GPU backend.
  virtual StatusOr<RequestHandle> MakeProgram(std::string name,
                                              std::span<const RequestHandle> requests,
                                              std::vector<ProgramStep> steps) = 0;
  // Frees the program but keeps its requests. kInvalidRequest while it is enqueued, or the rank
  // carries it out.
  virtual Status FreeProgram(RequestHandle program) = 0;
  // Begins a start that the rank carries out itself, in place of a queue; its partners' starts may
  // be on queues. Errors as of EnqueueStart.
  virtual Status StartProgram(RequestHandle program) = 0;
  // Carries on with that start as far as possible without waiting. Call it again, one thread at a
  // time, until it returns true: the start is over, and *error says how it ended.
  virtual bool AdvanceProgram(RequestHandle program, ErrorCode* error) = 0;
  // MakeRing and FreeRing are like ferry_ring_create and ferry_ring_destroy (ferry/device_ring.h),
  // which say more.
  struct DeviceRing {
    uint64_t handle = 0;  // 0: none
    void* address = nullptr;
  };
  virtual StatusOr<DeviceRing> MakeRing(int device, uint32_t slots, uint32_t completions) = 0;
  virtual Status FreeRing(uint64_t handle) = 0;

 protected:
  ~StreamQueues() = default;
};

}  // namespace ferry::client
