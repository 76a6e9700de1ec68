#include "client/triggered/queue_calls.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "common/thread.h"
#include "shm/atomic.h"

namespace ferry::client {

struct QueueCalls::State {
  explicit State(shm::CounterLayout* over) : over(over) {}

  // ---- For the stream ----
  void Begin(HostCall call) {
    std::lock_guard lock(mutex);
    if (is_cancelled.load(std::memory_order_relaxed)) {
      --open;
      return;
    }
    ready.push_back(std::move(call));
    changed.notify_all();
  }
  void NoteDropped() {
    std::lock_guard lock(mutex);
    --open;
  }

  // ---- The thread ----
  void Work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return is_ending || !ready.empty(); });
      if (ready.empty()) {
        return;
      }
      HostCall call = std::move(ready.front());
      ready.pop_front();
      has_begun = true;
      lock.unlock();
      const Status status = call.run(is_cancelled);
      call.run = nullptr;  // lets go of what it holds before anybody hears that it is over
      lock.lock();
      has_begun = false;
      NoteOver(status);
    }
  }

  void NoteOver(const Status& status) {
    --open;
    if (failure.ok()) {
      failure = status;
    }
    ++over_count;
    if (!is_cancelled.load(std::memory_order_relaxed)) {  // else LetPass has the word
      shm::StoreRelease(over->value, over_count);         // Pairs with the stream's wait.
    }
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> is_cancelled{false};  // set under the mutex
  bool is_ending = false;
  bool has_begun = false;      // the thread is in a call
  std::deque<HostCall> ready;  // whose turn has come
  size_t open = 0;
  uint64_t over_count = 0;
  Status failure;
  shm::CounterLayout* const over;
};

// A stream's hold on a call. A stream that has failed, or goes, drops it without calling Come.
class QueueCalls::Turn {
 public:
  Turn(std::shared_ptr<State> state, HostCall call)
      : state_(std::move(state)), call_(std::move(call)) {}
  ~Turn() {
    if (state_ != nullptr) {
      state_->NoteDropped();
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void Come() { std::exchange(state_, nullptr)->Begin(std::move(call_)); }

 private:
  std::shared_ptr<State> state_;
  HostCall call_;
};

StatusOr<std::unique_ptr<QueueCalls>> QueueCalls::Make(Memory* memory, gpu::Stream* stream) {
  StatusOr<void*> place = memory->Allocate(sizeof(shm::CounterLayout), MemoryKind::kPinned, 0);
  FERRY_RETURN_IF_ERROR(place.status());
  auto* const over = new (*place) shm::CounterLayout{};
  std::unique_ptr<QueueCalls> made(new QueueCalls(memory, stream, over));
  // It is met: this only asks whether the stream can wait, before a call relies on it.
  FERRY_RETURN_IF_ERROR(stream->WaitValue64(&over->value, 0, gpu::WaitCondition::kGreaterOrEqual));
  StatusOr<std::thread> thread = StartThread("ferry-queue", "that carries out the calls of a queue",
                                             [state = made->state_] { state->Work(); });
  FERRY_RETURN_IF_ERROR(thread.status());
  made->thread_ = std::move(*thread);
  return made;
}

QueueCalls::QueueCalls(Memory* memory, gpu::Stream* stream, shm::CounterLayout* over)
    : memory_(*memory), stream_(*stream), over_(over), state_(std::make_shared<State>(over)) {}

QueueCalls::~QueueCalls() {
  (void)Cancel();
  {
    std::lock_guard lock(state_->mutex);
    state_->is_ending = true;
  }
  state_->changed.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
  if (!has_let_pass_) {  // else a stream that was destroyed may still look at the word
    (void)memory_.Free(over_);
  }
}

Status QueueCalls::Enqueue(HostCall call) {
  {
    std::lock_guard lock(state_->mutex);
    ++state_->open;
  }
  auto turn = std::make_shared<Turn>(state_, std::move(call));
  FERRY_RETURN_IF_ERROR(stream_.LaunchHost([turn = std::move(turn)] {
    turn->Come();
    return Status();
  }));
  return stream_.WaitValue64(&over_->value, ++enqueued_, gpu::WaitCondition::kGreaterOrEqual);
}

Status QueueCalls::TakeFailure() {
  std::lock_guard lock(state_->mutex);
  return std::exchange(state_->failure, Status());
}

size_t QueueCalls::open() const {
  std::lock_guard lock(state_->mutex);
  return state_->open;
}

bool QueueCalls::Cancel() {
  std::deque<HostCall> dropped;  // ends without the mutex
  std::lock_guard lock(state_->mutex);
  state_->is_cancelled.store(true, std::memory_order_relaxed);
  state_->open -= state_->ready.size();
  dropped.swap(state_->ready);
  return !state_->has_begun;
}

void QueueCalls::LetPass() {
  memory_.KeepMapped();
  std::lock_guard lock(state_->mutex);
  has_let_pass_ = true;
  shm::StoreRelease(over_->value, shm::kCounterFailure);
}

void QueueCalls::AwaitBegun() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return !state_->has_begun; });
}

}  // namespace ferry::client
