#include "client/shmem/queues.h"

#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "client/shmem/fail.h"
#include "client/shmem/job.h"
#include "client/shmem/operations.h"
#include "client/shmem/reach.h"

namespace ferry::shmem {
namespace {

// How long shmem_finalize waits before it says for whom.
constexpr std::chrono::seconds kSilence(10);

// Calls that were enqueued, and are neither over nor dropped.
struct OpenCalls {
  struct One {
    const char* call;
    client::QueueHandle queue;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::list<One> calls;
};
OpenCalls& open_calls = *new OpenCalls();

// One of them, for as long as libferry has the call.
class OpenCall {
 public:
  OpenCall(const char* call, client::QueueHandle queue) {
    std::lock_guard lock(open_calls.mutex);
    place_ = open_calls.calls.insert(open_calls.calls.end(), {call, queue});
  }
  ~OpenCall() {
    std::lock_guard lock(open_calls.mutex);
    open_calls.calls.erase(place_);
    open_calls.changed.notify_all();
  }
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;

 private:
  std::list<OpenCalls::One>::iterator place_;
};

// Whether no CPU can copy it. (Far PEs are reached by libferry, which knows all kinds of memory.)
bool IsByStream(const void* memory, size_t bytes) {
  return bytes != 0 && job.front_end->IsByStream(memory);
}

void CopyByStream(const char* call, void* to, const void* from, size_t bytes) {
  const Status copied = job.front_end->Copy(to, from, bytes);
  if (!copied.ok()) {
    GiveUp(call, copied.code(), "the device cannot copy the data: " + copied.ToString());
  }
}

}  // namespace

int OnQueue(const char* call, uint64_t queue, std::function<void()> make) {
  CheckRunning(call);
  auto open = std::make_shared<OpenCall>(call, queue);
  const Status status = job.front_end->EnqueueCall(
      queue, {[make = std::move(make), open](const std::atomic<bool>& is_cancelled) -> Status {
        const QueueTurn turn(is_cancelled);
        try {
          make();
        } catch (const GivenUp& given_up) {
          return given_up.status;
        }
        return {};
      }});
  if (status.code() == ErrorCode::kInvalidArgument) {
    Fail(call, "queue: " + status.message());
  }
  if (!status.ok()) {
    Warn(call, status.ToString());
  }
  return static_cast<int>(status.code());
}

void AwaitQueues(const char* call) {
  std::set<client::QueueHandle> queues;
  {
    std::unique_lock lock(open_calls.mutex);
    for (const OpenCalls::One& one : open_calls.calls) {
      queues.insert(one.queue);
    }
    if (!open_calls.changed.wait_for(lock, kSilence, [] { return open_calls.calls.empty(); })) {
      Warn(call, "waiting for " + std::to_string(open_calls.calls.size()) +
                     " calls on queues, the first of them " + open_calls.calls.front().call);
    }
  }
  for (const client::QueueHandle queue : queues) {
    const Status status = job.front_end->AwaitQueue(queue);
    // Not of queues that the program has freed meanwhile, nor of streams that it has destroyed.
    if (!status.ok() && status.code() != ErrorCode::kInvalidArgument &&
        status.code() != ErrorCode::kCancelled) {
      Warn(call, "what a queue has failed at, and no ferry_queue_wait has returned: " +
                     status.ToString());
    }
  }
}

// ---- Other memory of any kind -------------------------------------------------------------------

void PutFromAny(const char* call, Context* context, void* dest, const void* source, size_t bytes,
                int pe, Completion completion) {
  if (IsByStream(source, bytes)) {
    if (const Target to = Reach(call, context, dest, bytes, pe); to.is_near()) {
      return CopyByStream(call, to.address(), source, bytes);
    }
  }
  Put(call, context, dest, source, bytes, pe, completion);
}

void GetToAny(const char* call, Context* context, void* dest, const void* source, size_t bytes,
              int pe, Completion completion) {
  if (IsByStream(dest, bytes)) {
    if (const Target from = Reach(call, context, source, bytes, pe); from.is_near()) {
      return CopyByStream(call, dest, from.address(), bytes);
    }
  }
  Get(call, context, dest, source, bytes, pe, completion);
}

void PutSignalFromAny(const char* call, Context* context, void* dest, const void* source,
                      size_t bytes, uint64_t* signal_address, uint64_t signal, int signal_op,
                      int pe, Completion completion) {
  if (IsByStream(source, bytes)) {
    if (const Target to = Reach(call, context, dest, bytes, pe); to.is_near()) {
      CopyByStream(call, to.address(), source, bytes);
      bytes = 0;
    }
  }
  PutSignal(call, context, dest, source, bytes, signal_address, signal, signal_op, pe, completion);
}

}  // namespace ferry::shmem
