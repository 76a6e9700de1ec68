// The calls of one queue that a thread of this rank carries out, such as those of OpenSHMEM.
//
//   stream                              thread of the queue
//     │ function: the call's turn has come ──► wakes it
//     │ waits for "over" >= n                  carries the call out
//     │◄───────────────────────────────────── over = n
//
// The function only wakes the thread. It could not make the call itself: functions on streams must
// not call the GPU's library, as copies of device memory do, and one thread of a vendor's may run
// those of all streams, so that calls which wait for one another would stand in line.
//
// Each queue has a thread of its own, which sleeps unless a call is under way, so queues never wait
// for each other. A call that fails lets the stream go on.
//
// Calling thread: Enqueue, one at a time; streams call what they are given; the rest any. Only what
// says so blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <thread>

#include "client/api/host_call.h"
#include "client/memory/memory.h"
#include "common/status.h"
#include "gpu_backends/api/stream.h"
#include "shm/layout/counter_layout.h"

namespace ferry::client {

class QueueCalls {
 public:
  // Both outlive it. kOutOfMemory; kSystem where no thread can be started; kUnsupported where the
  // stream cannot wait for words.
  static StatusOr<std::unique_ptr<QueueCalls>> Make(Memory* memory, gpu::Stream* stream);
  // The stream has done everything, or is gone. Blocks until a call that has begun is over; others
  // are dropped.
  ~QueueCalls();
  QueueCalls(const QueueCalls&) = delete;
  QueueCalls& operator=(const QueueCalls&) = delete;

  // Errors are the stream's; the call may still be carried out then.
  Status Enqueue(HostCall call);
  // The first failure since the last TakeFailure.
  Status TakeFailure();
  // How many calls were enqueued and are neither over nor dropped.
  size_t open() const;

  // From now on no call begins. One that has begun is asked to end. True: there is none.
  bool Cancel();
  // Lets the stream pass all that waits for calls, after Cancel.
  void LetPass();
  // Blocks until a call that has begun is over.
  void AwaitBegun();

 private:
  struct State;
  class Turn;

  QueueCalls(Memory* memory, gpu::Stream* stream, shm::CounterLayout* over);

  Memory& memory_;
  gpu::Stream& stream_;
  shm::CounterLayout* const over_;
  uint64_t enqueued_ = 0;
  bool has_let_pass_ = false;
  const std::shared_ptr<State> state_;  // the stream's functions have it, too
  std::thread thread_;
};

}  // namespace ferry::client
