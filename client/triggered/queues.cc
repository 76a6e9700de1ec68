#include "client/triggered/queues.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/counted.h"

namespace ferry::client {

using shm::SendMode;

namespace {

const char* TypeName(QueueType type) {
  switch (type) {
    case QueueType::kFerry:
      return "ferry";
    case QueueType::kCuda:
      return "cuda";
    case QueueType::kHip:
      return "hip";
    case QueueType::kLevelZero:
      return "level_zero";
  }
  return nullptr;
}

Status NoQueue() {
  return {ErrorCode::kInvalidArgument, "the handle names no queue: it was freed, or never made"};
}

// Puts "request 2 of 5: " in front of the error.
Status Naming(size_t index, size_t count, const Status& status) {
  return count == 1 ? status
                    : Status(status.code(), "request " + std::to_string(index) + " of " +
                                                std::to_string(count) + ": " + status.message());
}

}  // namespace

Queues::~Queues() {
  (void)EndCalls();
  for (auto& [handle, queue] : queues_) {
    if (queue.owner != nullptr) {
      (void)queue.stream().Synchronize();
    }
  }
  streams_.clear();
  FreePrograms();
  for (auto& [handle, queue] : queues_) {
    FreeBlocks(std::move(queue.blocks));
  }
}

// ---- Streams ------------------------------------------------------------------------------------

StatusOr<FerryStream*> Queues::MakeStream(int device) {
  gpu::GpuBackend* const backend = memory_.backend();
  if (backend == nullptr) {
    return Status(ErrorCode::kUnsupported, "there is no GPU backend in use to make streams with");
  }
  StatusOr<std::unique_ptr<gpu::Stream>> made = backend->CreateStream(device);
  FERRY_RETURN_IF_ERROR(made.status());
  std::lock_guard lock(mutex_);
  return Add({std::move(*made), device}, &streams_);
}

FerryStream* Queues::Add(FerryStream stream, Streams* streams) {
  auto added = std::make_unique<FerryStream>(std::move(stream));
  FerryStream* const handle = added.get();
  streams->emplace(handle, std::move(added));
  return handle;
}

StatusOr<FerryStream*> Queues::Adopt(void* native) {
  for (const auto& [handle, stream] : streams_) {
    if (stream->native == native) {
      return handle;
    }
  }
  gpu::GpuBackend* const backend = memory_.backend();
  Status refused;
  for (int device = 0; device < backend->device_count(); ++device) {  // the stream is of one
    StatusOr<std::unique_ptr<gpu::Stream>> adopted = backend->AdoptStream(device, native);
    if (adopted.ok()) {
      return Add({std::move(*adopted), device, native}, &streams_);
    }
    refused = adopted.status();
  }
  return refused;
}

void Queues::ReleaseAdopted(FerryStream* stream) {
  const bool is_used = std::any_of(queues_.begin(), queues_.end(), [stream](const auto& entry) {
    return entry.second.owner == stream;
  });
  if (stream != nullptr && stream->native != nullptr && !is_used) {
    streams_.erase(stream);
  }
}

StatusOr<Queues::Streams::iterator> Queues::LookupStream(FerryStream* stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second->native != nullptr) {
    return Status(ErrorCode::kInvalidArgument,
                  "that is no stream of ferry_stream_create, or it was destroyed");
  }
  return found;
}

StatusOr<gpu::Stream*> Queues::Find(FerryStream* stream) {
  std::lock_guard lock(mutex_);
  const auto found = LookupStream(stream);
  FERRY_RETURN_IF_ERROR(found.status());
  return (*found)->second->stream.get();
}

Status Queues::DestroyStream(FerryStream* stream) {
  std::unique_ptr<FerryStream> destroyed;
  std::vector<QueueHandle> bereft;
  std::vector<std::shared_ptr<QueueCalls>> calls;
  {
    std::lock_guard lock(mutex_);
    const auto found = LookupStream(stream);
    FERRY_RETURN_IF_ERROR(found.status());
    destroyed = std::move((*found)->second);
    streams_.erase(*found);
    for (auto& [handle, queue] : queues_) {
      if (queue.owner == stream) {
        queue.owner = nullptr;  // other threads enqueue nothing any more
        bereft.push_back(handle);
        WithdrawStarted(handle, queue);
        if (queue.calls != nullptr) {
          (void)queue.calls->Cancel();
          calls.push_back(queue.calls);
        }
      }
    }
  }
  destroyed.reset();  // waits for what runs, drops the rest
  for (const std::shared_ptr<QueueCalls>& one : calls) {
    one->LetPass();  // a vendor's stream lives on until its waits are over
    one->AwaitBegun();
  }
  std::lock_guard lock(mutex_);
  for (const QueueHandle handle : bereft) {
    if (const auto found = queues_.find(handle); found != queues_.end()) {
      FailStarted(handle, found->second, ErrorCode::kCancelled);
    }
  }
  return {};
}

// Called before the stream ends: some devices carry out operations behind an abandoned wait, and
// those starts must have no effect any more. Withdraws the last start first, since withdrawing ends
// waits.
void Queues::WithdrawStarted(QueueHandle handle, Queue& queue) {
  for (const Program* const program : StartedPrograms(handle)) {
    for (Pair* const pair : program->members()) {
      (void)pairs_.Withdraw(*pair);
    }
  }
  const auto withdraw = [this](Pair& pair) {
    if (pair.IsUnderWay()) {
      (void)pairs_.Withdraw(pair);
    }
  };
  pairs_.ForEach([&](Pair& pair) {
    if (pair.queue == handle && pair.wants_wait) {
      withdraw(pair);
    }
  });
  std::for_each(queue.waited.rbegin(), queue.waited.rend(), [&](Pair* pair) { withdraw(*pair); });
}

// Fails the open starts of a queue whose stream is gone, or has failed.
void Queues::FailStarted(QueueHandle handle, Queue& queue, ErrorCode error) {
  for (Pair* pair : queue.waited) {
    Fail(*pair, error);
  }
  pairs_.ForEach([&](Pair& pair) {
    if (pair.queue == handle && pair.wants_wait) {
      Fail(pair, error);
    }
  });
  for (Program* const program : StartedPrograms(handle)) {
    program->Fail(error);
  }
  queue.open_starts = 0;
}

void Queues::Unlist(Pair* pair) {
  for (auto& [handle, queue] : queues_) {
    std::erase(queue.waited, pair);
  }
  pair->is_listed = false;
}

// Fails a pair whose enqueued operations may never have run.
void Queues::Fail(Pair& pair, ErrorCode error) {
  pair.wants_wait = false;
  if (pair.IsUnderWay()) {
    pairs_.Abandon(pair, error);  // even if it has failed: then no process touches it
  }
}

// Ends a pair whose start or wait the stream refused: no call can enqueue that again.
void Queues::Refuse(Queue& queue, Pair& pair, ErrorCode error) {
  --queue.open_starts;
  Fail(pair, error);
}

// ---- Queues -------------------------------------------------------------------------------------

StatusOr<QueueHandle> Queues::Make(QueueType type, const void* stream_address) {
  const char* const name = TypeName(type);
  if (name == nullptr || stream_address == nullptr) {
    return Status(ErrorCode::kInvalidArgument,
                  name == nullptr
                      ? "there is no queue type " + std::to_string(static_cast<uint32_t>(type))
                      : "the address of the stream is null");
  }
  gpu::GpuBackend* const backend = memory_.backend();
  const bool is_own = type == QueueType::kFerry;
  if (backend == nullptr || (!is_own && backend->name() != name)) {
    return Status(ErrorCode::kUnsupported,
                  std::string("queues of ") + name + " streams need the GPU backend " + name +
                      "; in use is " +
                      (backend == nullptr ? "none" : std::string(backend->name())));
  }
  void* const named = *static_cast<void* const*>(stream_address);
  std::lock_guard lock(mutex_);
  FerryStream* stream = static_cast<FerryStream*>(named);
  if (is_own) {
    FERRY_RETURN_IF_ERROR(LookupStream(stream).status());
  } else {
    const StatusOr<FerryStream*> adopted = Adopt(named);
    FERRY_RETURN_IF_ERROR(adopted.status());
    stream = *adopted;
  }
  Queue& made = queues_[++last_];
  made.owner = stream;
  made.steps = std::make_unique<QueueSteps>(&memory_);
  count_.store(queues_.size(), std::memory_order_relaxed);
  return last_;
}

StatusOr<Queues::Queue*> Queues::Lookup(QueueHandle handle) {
  const auto found = queues_.find(handle);
  if (found == queues_.end()) {
    return NoQueue();
  }
  if (found->second.owner == nullptr) {
    return Status(ErrorCode::kCancelled, "the stream of the queue was destroyed: free the queue");
  }
  return &found->second;
}

void Queues::FreeBlocks(std::vector<void*> blocks) {
  for (void* const block : blocks) {
    pairs_.FreeBlock(block);
  }
}

Status Queues::Free(QueueHandle handle) {
  std::shared_ptr<QueueCalls> calls;  // ends without the lock: that may take time
  std::lock_guard lock(mutex_);
  const auto found = queues_.find(handle);
  if (found == queues_.end()) {
    return NoQueue();
  }
  Queue& queue = found->second;
  if (queue.owner == nullptr) {
    FailStarted(handle, queue, ErrorCode::kCancelled);  // if its stream is still being destroyed
  } else {
    if (queue.open_starts != 0) {
      return {ErrorCode::kInvalidRequest,
              Counted(static_cast<int64_t>(queue.open_starts), "request was", "requests were") +
                  " started on the queue, with no wait yet: enqueue it, then call "
                  "ferry_queue_wait"};
    }
    if (queue.stream().Query().code() == ErrorCode::kWouldBlock) {
      return {ErrorCode::kInvalidRequest,
              "the stream has not done all that was enqueued: call ferry_queue_wait first"};
    }
  }
  for (Pair* pair : queue.waited) {
    pair->queue = 0;
    pair->is_listed = false;
  }
  for (Program* program : queue.waited_programs) {
    program->is_listed = false;
  }
  FreeBlocks(std::move(queue.blocks));
  calls = std::move(queue.calls);
  FerryStream* const owner = queue.owner;
  queues_.erase(found);
  ReleaseAdopted(owner);
  count_.store(queues_.size(), std::memory_order_relaxed);
  return {};
}

Status Queues::Await(QueueHandle handle) {
  gpu::Stream* stream = nullptr;
  std::vector<void*> blocks;
  {
    std::lock_guard lock(mutex_);
    StatusOr<Queue*> queue = Lookup(handle);
    FERRY_RETURN_IF_ERROR(queue.status());
    stream = &(*queue)->stream();
    blocks.swap((*queue)->blocks);
  }
  Status status = stream->Synchronize();
  FreeBlocks(std::move(blocks));
  std::lock_guard lock(mutex_);
  StatusOr<Queue*> queue = Lookup(handle);
  FERRY_RETURN_IF_ERROR(queue.status());
  if (!status.ok()) {
    // A stream that has failed does nothing more, and their partners wait for what it was to do.
    const ErrorCode failure = stream->Query().code();
    if (failure != ErrorCode::kOk && failure != ErrorCode::kWouldBlock) {
      FailStarted(handle, **queue, failure);
    }
  }
  std::erase_if((*queue)->waited, [&](Pair* pair) {
    const bool is_own = pair->queue == handle;  // else the rank itself has started it since
    // Leaves starts that another thread enqueued meanwhile for the next call.
    pair->is_listed = is_own && pair->IsEnqueued();
    if (is_own && !pair->is_listed && status.ok() && pair->IsUnderWay()) {
      status = {pair->Failure(),
                std::string("the ") + (pair->is_send ? "send to" : "receive from") + " rank " +
                    std::to_string(pair->peer) + " with tag " + std::to_string(pair->key.tag) +
                    " failed: free it, make it and match it anew"};
    }
    return !pair->is_listed;
  });
  if (const Status of_programs = TakeProgramEnds(handle, **queue); status.ok()) {
    status = of_programs;
  }
  return status.ok() && (*queue)->calls != nullptr ? (*queue)->calls->TakeFailure() : status;
}

// ---- Calls --------------------------------------------------------------------------------------

Status Queues::EnqueueCall(QueueHandle handle, HostCall call) {
  std::lock_guard lock(mutex_);
  StatusOr<Queue*> queue = Lookup(handle);
  FERRY_RETURN_IF_ERROR(queue.status());
  std::shared_ptr<QueueCalls>& calls = (*queue)->calls;
  if (calls == nullptr) {
    StatusOr<std::unique_ptr<QueueCalls>> made = QueueCalls::Make(&memory_, &(*queue)->stream());
    FERRY_RETURN_IF_ERROR(made.status());
    calls = std::move(*made);
  }
  return calls->Enqueue(std::move(call));
}

size_t Queues::CountOpenCalls() {
  std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& [handle, queue] : queues_) {
    count += queue.calls == nullptr ? 0 : queue.calls->open();
  }
  return count;
}

bool Queues::EndCalls() {
  std::lock_guard lock(mutex_);
  bool have_all_ended = true;
  for (const auto& [handle, queue] : queues_) {
    if (queue.calls != nullptr) {
      have_all_ended = queue.calls->Cancel() && have_all_ended;
      queue.calls->LetPass();
    }
  }
  return have_all_ended;
}

// ---- Starts and waits ---------------------------------------------------------------------------

Status Queues::CheckStart(QueueHandle handle, uint32_t request) {
  FERRY_RETURN_IF_ERROR(pairs_.CheckIdle(request));
  Pair& pair = *pairs_.Find(request);
  if (pair.queue != 0 && pair.queue != handle && pair.IsUnderWay()) {
    return {ErrorCode::kInvalidRequest, "its last start, on another queue, is not complete yet"};
  }
  return IsFirst(pair) ? Status() : Status(ErrorCode::kInvalidRequest, "it is in the array twice");
}

Status Queues::EnqueueStart(QueueHandle handle, std::span<const Item> items) {
  std::lock_guard lock(mutex_);
  StatusOr<Queue*> queue = Lookup(handle);
  FERRY_RETURN_IF_ERROR(queue.status());
  ++mark_;
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    if (Status status = item.program == 0
                            ? CheckStart(handle, item.request)
                            : CheckProgramStart(handle, **queue, FindProgram(item.program));
        !status.ok()) {
      return Naming(i, items.size(), status);
    }
  }
  bool rings = false;
  SharedStart* const shared = Share(items);
  for (const Item& item : items) {
    if (Status status = item.program == 0
                            ? StartRequest(handle, **queue, *pairs_.Find(item.request), &rings)
                            : StartProgram(handle, **queue, *FindProgram(item.program), &rings);
        !status.ok()) {
      RefuseAll(**queue, items, status.code());
      return status;
    }
  }
  if (shared != nullptr) {
    if (Status status = RingShared((*queue)->stream(), *shared); !status.ok()) {
      RefuseAll(**queue, items, status.code());
      return status;
    }
  }
  if (rings) {
    pairs_.RingDaemon();
  }
  return {};
}

Status Queues::RingShared(gpu::Stream& stream, SharedStart& shared) {
  return stream.WriteValue64(&shared.word->value, SharedStarts::Ring(shared));
}

// The doorbell for those items that may share one.
SharedStart* Queues::Share(std::span<const Item> items) {
  sharing_.clear();
  for (const Item& item : items) {
    Pair* const pair = item.program == 0 ? pairs_.Find(item.request) : nullptr;
    if (pair != nullptr && SharedStarts::MayShare(*pair)) {
      sharing_.push_back(pair);
    } else if (pair != nullptr) {
      pairs_.shared_starts().Leave(*pair);
    }
  }
  return pairs_.shared_starts().Join(sharing_);
}

// Ends the pairs whose start the stream had already taken.
void Queues::RefuseAll(Queue& queue, std::span<const Item> items, ErrorCode error) {
  for (const Item& item : items) {
    if (Program* const program = FindProgram(item.program); program != nullptr) {
      if (program->wants_wait) {
        --queue.open_starts;
        program->Fail(error);
      }
    } else if (Pair& pair = *pairs_.Find(item.request); pair.wants_wait) {
      Refuse(queue, pair, error);
    }
  }
}

Status Queues::StartRequest(QueueHandle handle, Queue& queue, Pair& pair, bool* rings) {
  if (pair.is_listed && pair.queue != handle) {
    Unlist(&pair);
  }
  ++pair.starts;
  pair.queue = handle;
  pair.wants_wait = true;
  pair.was_enqueued = true;
  ++queue.open_starts;
  *rings |= !pair.local;
  queue.steps->Note(shm::QueueStepKind::kStart, pair);
  return Start(queue.stream(), pair);
}

// One end is the pair's buffer, the other one host memory.
Status Queues::CopyBuffer(gpu::Stream& stream, const Pair& pair, void* to, const void* from) {
  return pair.buffer.by_stream ? stream.CopyDeviceAsync(to, from, pair.size_bytes)
                               : stream.CopyAsync(to, from, pair.size_bytes);
}

Status Queues::Start(gpu::Stream& stream, Pair& pair) {
  if (pair.is_send && pair.has_window_of_its_own()) {
    FERRY_RETURN_IF_ERROR(CopyBuffer(stream, pair, pair.window.address, pair.buffer.address));
  }
  if (pair.local) {
    return StartInNode(stream, pair);
  }
  uint64_t* const page = pair.shares ? nullptr : pairs_.PageFor(pair, pair.starts);
  shm::StoreRelease(pair.end->armed, pair.starts);  // Pairs with daemon::Starts.
  if (pair.shares) {
    return {};
  }
  return page != nullptr ? stream.WriteValue64(page, 1)
                         : stream.WriteValue64(&pair.end->start.value, pair.starts);
}

Status Queues::StartInNode(gpu::Stream& stream, Pair& pair) {
  pairs_.Count(pair, shm::Statistic::kMatchedByStream);
  pairs_.LetDevicesReach(pair);
  // The send relies only on the ready receive being started.
  return pair.mode == SendMode::kReady && !pair.is_send ? Status()
                                                        : stream.LaunchMove(MoveOf(pair));
}

// The move of a pair; between nodes it has no other end.
gpu::MatchedMove Queues::MoveOf(const Pair& pair) {
  gpu::MatchedMove move;
  const PairMemory& to = pair.is_send ? pair.peer_window : pair.window;
  const PairMemory& from = pair.is_send ? pair.window : pair.peer_window;
  move.destination = to.address;
  move.source = from.address;
  move.size_bytes = pair.size_bytes;
  move.ends = {.destination = to.by_stream, .source = from.by_stream};
  move.own = pair.end;
  move.other = pair.peer_end;
  move.other_life = pair.peer_life;
  move.is_send = pair.is_send;
  move.meets = pair.mode != SendMode::kReady;
  move.round = pair.starts;
  return move;
}

template <typename Startable>
Status Queues::CheckWait(QueueHandle handle, Startable* one) const {
  const bool has_start = one != nullptr && IsFirst(*one) && one->wants_wait;
  if (has_start && one->queue == handle) {
    return {};
  }
  return {ErrorCode::kInvalidRequest,
          has_start ? "its start was enqueued on another queue: wait for it there"
                    : "no start of it that has no wait yet was enqueued on this queue"};
}

Status Queues::EnqueueWait(QueueHandle handle, std::span<const Item> items) {
  std::lock_guard lock(mutex_);
  StatusOr<Queue*> queue = Lookup(handle);
  FERRY_RETURN_IF_ERROR(queue.status());
  ++mark_;
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    if (Status status = item.program == 0 ? CheckWait(handle, pairs_.Find(item.request))
                                          : CheckWait(handle, FindProgram(item.program));
        !status.ok()) {
      return Naming(i, items.size(), status);
    }
  }
  Status result;
  for (const Item& item : items) {
    Status status = item.program == 0 ? WaitRequest(**queue, *pairs_.Find(item.request))
                                      : WaitProgram(**queue, *FindProgram(item.program));
    if (!status.ok()) {
      RefuseAll(**queue, {&item, 1}, status.code());
      result = result.ok() ? status : result;
    }
  }
  return result;
}

Status Queues::WaitRequest(Queue& queue, Pair& pair) {
  queue.steps->Note(shm::QueueStepKind::kWait, pair);
  FERRY_RETURN_IF_ERROR(Wait(queue.stream(), pair));
  pair.wants_wait = false;
  --queue.open_starts;
  if (!std::exchange(pair.is_listed, true)) {
    queue.waited.push_back(&pair);
  }
  return {};
}

Status Queues::Wait(gpu::Stream& stream, Pair& pair) {
  FERRY_RETURN_IF_ERROR(stream.AwaitMove(MoveOf(pair)));
  std::byte* const landing = pair.Landing();
  return pair.is_send || landing == pair.buffer.address
             ? Status()
             : CopyBuffer(stream, pair, pair.buffer.address, landing);
}

void Queues::Release(uint32_t request) {
  std::lock_guard lock(mutex_);
  Pair* const pair = pairs_.Find(request);
  if (pair == nullptr) {
    return;
  }
  if (pair->is_listed) {
    Unlist(pair);
  }
  for (auto& [handle, queue] : queues_) {
    queue.steps->Forget(*pair);
  }
  const auto found = queues_.find(pair->queue);
  pairs_.Release(
      request, found == queues_.end() ? Pairs::Keep() : [&found](void* block) {
        found->second.blocks.push_back(block);
      });
}

}  // namespace ferry::client
