#include "shmem/device/queues.h"

#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/operations.h"

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

}  // namespace

int EnqueueCall(const char* call, uint64_t queue, const QueuedCall& queued) {
  CheckRunning(call);
  auto open = std::make_shared<OpenCall>(call, queue);
  const Status status = job.front_end->queues->EnqueueCall(
      queue, {[queued, open](const std::atomic<bool>& is_cancelled) -> Status {
        const QueueTurn turn(is_cancelled);
        try {
          queued.make(queued.closure.data());
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
    const Status status = job.front_end->queues->AwaitQueue(queue);
    // Not of queues that the program has freed meanwhile, nor of streams that it has destroyed.
    if (!status.ok() && status.code() != ErrorCode::kInvalidArgument &&
        status.code() != ErrorCode::kCancelled) {
      Warn(call, "what a queue has failed at, and no ferry_queue_wait has returned: " +
                     status.ToString());
    }
  }
}

}  // namespace ferry::shmem
