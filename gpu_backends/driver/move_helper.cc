#include "gpu_backends/driver/move_helper.h"

#include <utility>

#include "common/thread.h"
#include "shm/counter.h"
#include "shm/pair_move.h"

namespace ferry::gpu {
namespace {

shm::PairEnds EndsOf(const MatchedMove& move) { return {move.own, move.other, move.other_life}; }

}  // namespace

MoveHelper::~MoveHelper() { Stop(); }

Status MoveHelper::Start() {
  std::lock_guard lock(mutex_);
  if (thread_.joinable() || stopped_) {
    return {};
  }
  StatusOr<std::thread> thread =
      StartThread("ferry-mover", "that moves a stream's messages", [this] { Main(); });
  FERRY_RETURN_IF_ERROR(thread.status());
  thread_ = std::move(*thread);
  return {};
}

void MoveHelper::Begin(const MatchedMove& move) {
  if (!shm::BeginMove(EndsOf(move), move.is_send, move.meets)) {
    return;  // the other end will move it, or neither
  }
  std::lock_guard lock(mutex_);
  if (stopped_) {
    Fail(move, ErrorCode::kCancelled);
    return;
  }
  begun_.push_back(move);
  work_.notify_one();
}

void MoveHelper::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    for (const MatchedMove& move : std::exchange(begun_, {})) {
      Fail(move, ErrorCode::kCancelled);
    }
    work_.notify_one();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void MoveHelper::Fail(const MatchedMove& move, ErrorCode error) {
  shm::Counter(&move.other->done).Fail(error);
  shm::Counter(&move.own->done).Fail(error);
  shm::AbandonMove(EndsOf(move));
  shm::WakeWaiting(*move.other);
}

void MoveHelper::Main() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stopped_ || !begun_.empty(); });
    if (stopped_) {
      return;
    }
    const MatchedMove move = begun_.front();
    begun_.pop_front();
    lock.unlock();
    Move(move);
    lock.lock();
  }
}

void MoveHelper::Move(const MatchedMove& move) {
  const Status status = move.size_bytes == 0 ? Status()
                                             : copies_.Copy(move.destination, move.source,
                                                            move.size_bytes, move.ends);
  if (status.ok()) {
    shm::CompleteMove(EndsOf(move));
  } else {
    Fail(move, status.code());
  }
}

void CloseFailedPair(const MatchedMove& move) {
  const uint64_t value = shm::Counter(&move.own->done).Value();
  if (value >= shm::kCounterFailure && value - shm::kCounterFailure < move.round) {
    shm::ClosePair(EndsOf(move));  // neither end writes to the memory when the stream goes on
  }
}

}  // namespace ferry::gpu
