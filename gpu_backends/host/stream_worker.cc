#include "gpu_backends/host/stream_worker.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "common/clock.h"
#include "common/sleep.h"
#include "common/thread.h"
#include "gpu_backends/host/host_reduction.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "shm/pair_move.h"
#include "shm/wait_policy.h"
#include "shm/word_copy.h"

namespace ferry::gpu {
namespace {

constexpr int kPausesBeforeYield = 64;

Status CancelledStatus() { return {ErrorCode::kCancelled, "the stream was destroyed"}; }

bool WordMeets(const WaitValueOperation& wait) {
  // Pairs with the store in Run, or with the release store of whoever else writes the word.
  const uint64_t current = shm::LoadAcquire(*wait.word);
  return wait.condition == WaitCondition::kEqual ? current == wait.value : current >= wait.value;
}

shm::PairEnds EndsOf(const MatchedMove& move) { return {move.own, move.other, move.other_life}; }

// For chunks of a message.
auto ChunkCopier(const MatchedMove& move) {
  return [&move](uint64_t offset, uint64_t size_bytes) {
    shm::CopyWords(static_cast<std::byte*>(move.destination) + offset,
                   static_cast<const std::byte*>(move.source) + offset, size_bytes);
  };
}

// An operation as watchers hear of it (stream_watch.h).
struct Told {
  StreamWork work = StreamWork::kNone;
  uint64_t bytes = 0;
};

// Builds a std::visit visitor from lambdas.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

Told ToldOf(const Operation& operation) {
  return std::visit(Overloaded{
                        [](const CopyOperation& copy) {
                          return Told{StreamWork::kCopy, copy.size_bytes};
                        },
                        [](const StridedOperation& strided) {
                          return Told{StreamWork::kCopy, strided.cost.size_bytes};
                        },
                        [](const SpreadOperation& spread) {
                          return Told{StreamWork::kCopy, spread.cost.size_bytes};
                        },
                        [](const ReduceOperation& reduce) {
                          return Told{StreamWork::kReduction, reduce.cost.size_bytes};
                        },
                        [](const MoveOperation& move) {
                          return Told{StreamWork::kMove, move.move.size_bytes};
                        },
                        [](const AwaitMoveOperation& await) {
                          return Told{StreamWork::kMoveWait, await.move.size_bytes};
                        },
                        [](const WaitEventOperation&) { return Told{StreamWork::kEventWait}; },
                        [](const WaitValueOperation&) { return Told{StreamWork::kValueWait}; },
                        [](const HostOperation&) { return Told{StreamWork::kHostCall}; },
                        [](const auto&) { return Told(); },
                    },
                    operation);
}

}  // namespace

StreamWorker::~StreamWorker() {
  {
    std::lock_guard lock(mutex_);
    cancelled_.store(true, std::memory_order_relaxed);
    work_.notify_one();
    if (awaited_ != nullptr) {
      awaited_->InterruptWaits();
    }
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

Status StreamWorker::Enqueue(Operation operation) {
  const uint64_t begin_ns = launch_ns_ == 0 ? 0 : MonotonicNs() + launch_ns_;
  std::lock_guard lock(mutex_);
  FERRY_RETURN_IF_ERROR(error_);
  FERRY_RETURN_IF_ERROR(StartLocked());
  pending_.push_back({std::move(operation), begin_ns});
  ++enqueued_count_;
  work_.notify_one();
  return {};
}

Status StreamWorker::Query() {
  std::lock_guard lock(mutex_);
  if (error_.ok() && finished_count_ < enqueued_count_) {
    return {ErrorCode::kWouldBlock, "the stream has work to do"};
  }
  return error_;
}

Status StreamWorker::Synchronize() {
  std::unique_lock lock(mutex_);
  const uint64_t target = enqueued_count_;
  while (finished_count_ < target) {
    awaited_count_ = std::min(awaited_count_, target);
    done_.wait(lock);
  }
  Status status = error_;
  lock.unlock();
  if (synchronize_ns_ != 0) {
    EmulatedLink::SleepUntil(MonotonicNs() + synchronize_ns_);
  }
  return status;
}

Status StreamWorker::StartLocked() {
  if (thread_.joinable()) {
    return {};
  }
  StatusOr<std::thread> thread = StartThread("ferry-stream", "of a stream", [this] { Main(); });
  FERRY_RETURN_IF_ERROR(thread.status());
  thread_ = std::move(*thread);
  return {};
}

void StreamWorker::Main() {
  if (link_ != nullptr || launch_ns_ != 0) {
    WakeInTime();
  }
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return !pending_.empty() || Cancelled(); });
    if (pending_.empty()) {
      return;
    }
    batch_.swap(pending_);
    lock.unlock();
    RunBatch();
    batch_.clear();  // keeps its room: steady work allocates nothing
    lock.lock();
  }
}

// After a failure or a cancellation the rest is skipped, except that events learn why.
void StreamWorker::RunBatch() {
  Status status;
  {
    std::lock_guard lock(mutex_);
    status = error_;
  }
  for (const auto& [operation, begin_ns] : batch_) {
    if (begin_ns != 0 && begin_ns > MonotonicNs()) {
      EmulatedLink::SleepUntil(begin_ns);
    }
    if (status.ok() && Cancelled()) {
      status = CancelledStatus();
    }
    if (status.ok()) {
      status = Run(operation);
    }
    if (const auto* record = std::get_if<RecordOperation>(&operation)) {
      record->completion->Complete(status, modelled_ns_);
    }
    std::lock_guard lock(mutex_);
    error_ = status;
    // Waking a thread that must go back to sleep would cost more than most operations.
    if (++finished_count_ >= awaited_count_) {
      awaited_count_ = UINT64_MAX;
      done_.notify_all();
    }
  }
}

Status StreamWorker::Run(const Operation& operation) {
  const Told told = ToldOf(operation);
  const StreamWorkScope scope(number_, told.work, told.bytes);
  return std::visit(
      Overloaded{
          [this](const CopyOperation& copy) {
            RunCopy(copy);
            return Status();
          },
          [this](const StridedOperation& strided) {
            RunStrided(strided);
            return Status();
          },
          [this](const SpreadOperation& spread) {
            RunSpread(spread);
            return Status();
          },
          [this](const ReduceOperation& reduce) {
            OverLink(reduce.cost, [&reduce] { ReduceOnHost(reduce.reduction); });
            return Status();
          },
          [](const RecordOperation&) { return Status(); },
          [this](const WaitEventOperation& wait) { return WaitForEvent(wait.completion); },
          [](const WriteOperation& write) {
            // Pairs with WordMeets, here or in another process: publishes what the stream did
            // before.
            shm::StoreRelease(*write.word, write.value);
            return Status();
          },
          [this](const WaitValueOperation& wait) {
            Status status = WaitForValue(wait);
            AdvanceToNow();  // even where the word was there: the time since when is unknown
            return status;
          },
          [this](const AwaitMoveOperation& await) {
            Status status = WaitForMove(await.move);
            AdvanceToNow();
            return status;
          },
          [this](const MoveOperation& move) {
            RunMove(move);
            return Status();
          },
          [this](const HostOperation& host) {
            Status status = host.function();
            AdvanceToNow();
            return status;
          },
      },
      operation);
}

template <typename Move>
void StreamWorker::OverLink(const CopyOperation& cost, Move&& move) {
  if (link_ == nullptr) {
    move();
    return;
  }
  modelled_ns_ =
      link_->Occupy(cost.route, cost.size_bytes, std::max(cost.enqueued_ns, modelled_ns_)).end_ns;
  move();
  EmulatedLink::SleepUntil(modelled_ns_);
}

void StreamWorker::RunCopy(const CopyOperation& copy) {
  OverLink(copy, [&] { shm::CopyWords(copy.destination, copy.source, copy.size_bytes); });
}

void StreamWorker::RunStrided(const StridedOperation& strided) {
  OverLink(strided.cost, [&copy = strided.copy] {
    auto* block = static_cast<std::byte*>(copy.blocks);
    auto* packed = static_cast<std::byte*>(copy.packed);
    for (uint64_t i = 0; i < copy.block_count; ++i) {
      shm::CopyWords(copy.is_pack ? packed : block, copy.is_pack ? block : packed,
                     copy.block_bytes);
      block += copy.stride_bytes;
      packed += copy.block_bytes;
    }
  });
}

void StreamWorker::RunSpread(const SpreadOperation& spread) {
  OverLink(spread.cost, [&copy = spread.copy] {
    for (uint64_t to = 0; to < copy.destination_count; ++to) {
      for (uint64_t from = 0; from < copy.source_count; ++from) {
        void* const place = copy.Place(to, from);
        if (place != copy.sources[from]) {
          shm::CopyWords(place, copy.sources[from], copy.block_bytes);
        }
      }
    }
  });
}

void StreamWorker::RunMove(const MoveOperation& operation) {
  const MatchedMove& move = operation.move;
  const shm::PairEnds ends = EndsOf(move);
  const bool moves = shm::BeginMove(ends, move.is_send, move.meets);
  AdvanceToNow();
  if (!moves) {
    return;  // the other end will, or neither
  }
  if (link_ == nullptr && shm::IsMovedInChunks(move.size_bytes)) {
    shm::MoveInChunks(ends, move.round, move.size_bytes, ChunkCopier(move));
    return;
  }
  if (move.size_bytes != 0) {
    RunCopy(operation.copy);
  }
  shm::CompleteMove(ends);
}

Status StreamWorker::WaitForMove(const MatchedMove& move) {
  const shm::PairEnds ends = EndsOf(move);
  const shm::Counter done(&move.own->done);
  const auto goes_on = [this] { return !Cancelled(); };
  // Over a link the model gives copies their time, so the mover does not offer chunks.
  const auto met = [&] {
    return done.Reached(move.round) ||
           (move.other != nullptr &&
            shm::HelpMove(ends, move.round, move.size_bytes, ChunkCopier(move), goes_on) &&
            done.Reached(move.round));
  };
  Status status = WaitUntil(met, [&](std::chrono::nanoseconds time) {
    shm::SleepUnless(*ends.own, static_cast<uint64_t>(time.count()), met);
  });
  const uint64_t value = done.Value();
  if (status.ok() && move.other != nullptr && value >= shm::kCounterFailure &&
      value - shm::kCounterFailure < move.round) {
    shm::ClosePair(ends);  // neither end writes to the memory when the stream goes on
  }
  return status;
}

Status StreamWorker::WaitForValue(const WaitValueOperation& wait) {
  return WaitUntil([&wait] { return WordMeets(wait); },
                   [this](std::chrono::nanoseconds time) {
                     std::unique_lock lock(mutex_);
                     work_.wait_for(lock, time, [this] { return Cancelled(); });
                   });
}

void StreamWorker::AdvanceToNow() {
  if (link_ != nullptr) {
    modelled_ns_ = std::max(modelled_ns_, MonotonicNs());
  }
}

Status StreamWorker::WaitForEvent(const std::shared_ptr<Completion>& completion) {
  {
    std::lock_guard lock(mutex_);
    awaited_ = completion;
  }
  Status status = completion->WaitUnless(cancelled_);
  modelled_ns_ = std::max(modelled_ns_, completion->reached_ns());
  std::lock_guard lock(mutex_);
  awaited_.reset();
  return status;
}

template <typename Met, typename Sleep>
Status StreamWorker::WaitUntil(Met&& met, Sleep&& sleep_for) {
  for (int i = 0; i < kPausesBeforeYield; ++i) {
    if (met()) {
      return {};
    }
    shm::CpuPause();
  }
  const uint64_t yield_until_ns = MonotonicNs() + wait_yield_ns_;
  while (MonotonicNs() < yield_until_ns) {
    if (met()) {
      return {};
    }
    if (Cancelled()) {
      return CancelledStatus();
    }
    std::this_thread::yield();
  }
  for (GrowingSleep sleep; !met();) {
    sleep_for(sleep.Next());
    if (Cancelled()) {
      return CancelledStatus();
    }
  }
  return {};
}

}  // namespace ferry::gpu
