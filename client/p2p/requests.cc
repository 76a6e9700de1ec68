#include "client/p2p/requests.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/clock.h"
#include "common/process_memory.h"
#include "engine/request_end.h"
#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::client {

using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

namespace {

// So many messages, and bytes, are copied in one go, so that their senders hear of some before all
// are there.
constexpr size_t kMostTogether = kMostProcessCopies;
// How often a sender looks, for some 10 us, before it copies in a receiver's place.
constexpr uint32_t kPatientLooks = 64;
constexpr uint64_t kMostBytesTogether = uint64_t{256} << 10;

ErrorCode Told(const Status& status) { return FailureWords::Tell(status.code(), status.message()); }

uint32_t FlagOf(Service service) {
  switch (service) {
    case Service::kNone:
      return 0;
    case Service::kServes:
      return shm::kRequestServes;
    case Service::kServed:
      return shm::kRequestServed;
  }
  return 0;
}

}  // namespace

// ---- Beginning ----------------------------------------------------------------------------------

ErrorCode Requests::CheckBuffer(const Message& message) const {
  return Told(parts_.memory->LookAt(message.buffer, message.size_bytes));
}

ErrorCode Requests::CheckSend(Message* message) const {
  const ErrorCode error = CheckReceive(*message);
  if (error == ErrorCode::kOk) {
    parts_.offloads->Redirect(&message->buffer, message->size_bytes);
  }
  return error;
}

ErrorCode Requests::CheckSynchronized(const void* buffer, uint64_t size_bytes) const {
  return Told(parts_.offloads->CheckSynchronized(buffer, size_bytes));
}

ErrorCode Requests::CheckAgain(uint32_t request) const {
  const RequestLayout& slot = Slot(request);
  if (parts_.memory->regions().addresses().IsPlain(UserOf(slot)) && !parts_.offloads->any())
      [[likely]] {
    return ErrorCode::kOk;
  }
  ErrorCode error = Told(parts_.memory->LookAt(UserOf(slot), slot.size_bytes));
  if (error == ErrorCode::kOk && IsSend(slot)) {
    error = CheckSynchronized(UserOf(slot), slot.size_bytes);
  }
  const bool is_region_gone = slot.buffer.region != 0 && slot.size_bytes != 0 &&
                              !parts_.memory->regions().ById(slot.buffer.region);
  return error == ErrorCode::kOk && is_region_gone
             ? FailureWords::Tell(ErrorCode::kInvalidBuffer,
                                  "the device memory of this persistent request has been freed "
                                  "since the request was made; make it anew")
             : error;
}

ErrorCode Requests::TakeSlot(uint32_t* request) {
  if (const ErrorCode poisoned = progress_.poison(); poisoned != ErrorCode::kOk) {
    return FailureWords::Tell(poisoned);
  }
  *request = pool().Take();
  return FailureWords::Tell(*request == 0 ? ErrorCode::kLimitExceeded : ErrorCode::kOk);
}

ErrorCode Requests::Take(const Message& message, RequestKind kind, uint32_t* request) {
  ErrorCode error = TakeSlot(request);
  if (error != ErrorCode::kOk) {
    return error;
  }
  error = Fill(*request, message, kind);
  if (error != ErrorCode::kOk) {
    pool().GiveBack(*request);
  }
  return error;
}

ErrorCode Requests::Fill(uint32_t request, const Message& message, RequestKind kind) {
  RequestLayout& slot = Slot(request);
  slot.kind = static_cast<uint32_t>(kind);
  slot.context = message.context;
  slot.peer = message.peer;
  slot.tag = message.tag;
  // Pair with RequestPool::AnyAt: other threads may look.
  shm::StoreRelaxed(slot.size_bytes, message.size_bytes);
  shm::StoreRelaxed(slot.user_address, reinterpret_cast<uint64_t>(message.buffer));
  slot.buffer = kind == RequestKind::kSend && !progress_.MayBeRemote(message.peer)
                    ? parts_.memory->LocateForNode(message.buffer, message.size_bytes)
                    : parts_.memory->regions().Find(message.buffer, message.size_bytes);
  slot.status_source = message.peer;
  slot.status_tag = message.tag;
  slot.message_bytes = message.size_bytes;
  shm::StoreRelaxed(slot.error, 0);
  if (message.synchronous) {
    slot.flags |= shm::kRequestSynchronous;
  }
  slot.flags |= FlagOf(message.service);
  const ErrorCode error = bounce_buffers_.UseFor(slot, message, kind);
  if (error == ErrorCode::kOk) {
    SetState(slot, RequestState::kInactive);
  }
  return error;
}

ErrorCode Requests::Start(uint32_t request, engine::LaneSet* later, bool to_push) {
  engine::RankEngine& engine = progress_.engine();
  RequestLayout& slot = Slot(request);
  const bool is_send = IsSend(slot);
  // Eager sends and receives that are matched while polling never come here: they pay nothing.
  shm::StoreRelaxed(slot.start_ns, CoarseMonotonicNs());
  if (is_send) {
    if (const ErrorCode error = bounce_buffers_.CopyOut(slot); error != ErrorCode::kOk)
        [[unlikely]] {
      return FailureWords::Tell(error);
    }
    if (!engine.sends().LaneIsOpen(static_cast<uint32_t>(slot.peer))) [[unlikely]] {
      OpenLaneFor(request);
    }
  }
  engine::Effects matched;
  const auto start = [&](engine::Effects& effects) {
    if (is_send) {
      if (to_push &&
          !engine.sends().PushesAtOnce(static_cast<uint32_t>(slot.peer), slot.size_bytes)) {
        return ErrorCode::kWouldBlock;
      }
      engine.sends().StartSend(request, effects);
      if (effects.to_link && later == nullptr) {
        effects.to_link = !progress_.Gathers(static_cast<uint32_t>(slot.peer), slot.size_bytes);
      }
      return ErrorCode::kOk;
    }
    const ErrorCode started = engine.receives().StartReceive(request, effects);
    if (effects.transfer_count != 0) [[unlikely]] {
      matched = effects;
    }
    return started;
  };
  const ErrorCode error = progress_.UnderLease(start, later);
  if (matched.transfer_count != 0) [[unlikely]] {
    HandOver(matched);
  }
  if (is_send && (slot.buffer.flags & shm::kLocationByStream) != 0 && IsTransferring(request)) {
    // Its receiver cannot fetch it: this rank has to copy, and may be waiting for another request.
    std::lock_guard lock(mutex_);
    std::erase_if(announced_, [this](uint32_t other) { return !IsTransferring(other); });
    announced_.push_back(request);
  }
  return error == ErrorCode::kWouldBlock ? error : FailureWords::Tell(error);
}

// If opening the lane fails, so will the request.
void Requests::OpenLaneFor(uint32_t request) {
  const RequestLayout& slot = Slot(request);
  const auto destination = static_cast<uint32_t>(slot.peer);
  if (progress_.engine().sends().OpenLane(destination) != ErrorCode::kOk) {
    failure_words_.Note(request, shm::LoadAcquire(slot.generation), parts_.map_inbox(destination));
  }
}

ErrorCode Requests::TakeLanding(uint32_t request, uint64_t size_bytes, shm::Location* where) {
  RequestLayout& slot = Slot(request);
  if (IsSend(slot) || !HasState(slot, RequestState::kRemoteWait) || size_bytes > slot.size_bytes ||
      (slot.flags & shm::kRequestBounceBuffer) != 0) {
    return ErrorCode::kInvalidBuffer;
  }
  return bounce_buffers_.TakeLanding(slot, size_bytes, where);
}

void Requests::GiveUp(uint32_t request) {
  (void)bounce_buffers_.End(Slot(request), false);
  pool().GiveBack(request);
}

// ---- Moving -------------------------------------------------------------------------------------

// Names the next chunk of a request's transfer. False: that cannot be reached, and the request has
// failed.
bool Requests::NameChunk(uint32_t request, PeerMemory::Chunk* chunk) {
  const RequestLayout& slot = Slot(request);
  chunk->request = request;
  chunk->request_generation = shm::LoadAcquire(slot.generation);
  chunk->slot = progress_.peers().Inbox(slot.transfer_rank).transfer(slot.transfer_index);
  if (chunk->slot == nullptr) [[unlikely]] {
    Status refusal = parts_.map_inbox(slot.transfer_rank);
    const ErrorCode error = refusal.ok() ? ErrorCode::kCorrupt : refusal.code();
    failure_words_.Note(request, chunk->request_generation, std::move(refusal));
    Finish(request, chunk->request_generation, error);
    return false;
  }
  chunk->generation = slot.transfer_generation;
  const bool is_send = IsSend(slot);
  chunk->own = {is_send, progress_.view().rank,
                static_cast<uint32_t>(is_send ? slot.peer : slot.status_source), slot.buffer,
                std::min(slot.message_bytes, slot.size_bytes)};
  return true;
}

// Draws the conclusions for the requests of these chunks. True: the first was copied, and there may
// be more.
bool Requests::CopyChunks(std::span<PeerMemory::Chunk> chunks) {
  parts_.peer_memory->CopyChunks(chunks, [this](const PeerMemory::Chunk& chunk, Status found) {
    failure_words_.Note(chunk.request, chunk.request_generation, std::move(found));
  });
  uint32_t woken = UINT32_MAX;
  for (const PeerMemory::Chunk& chunk : chunks) {
    const engine::TransferProgress progress = engine::Look(*chunk.slot, chunk.generation);
    if (progress.done) {
      Finish(chunk.request, chunk.request_generation, progress.error);
    }
    if (chunk.result != engine::ChunkResult::kNothing &&
        chunk.result != engine::ChunkResult::kLeft) {
      parts_.statistics.AddShared(shm::Statistic::kChunksCopiedByRank);
    }
    if ((chunk.result == engine::ChunkResult::kLeft ||
         chunk.result == engine::ChunkResult::kFinished) &&
        chunk.own.peer != woken) {
      woken = chunk.own.peer;
      progress_.WakeRank(woken);
    }
  }
  return chunks.front().result == engine::ChunkResult::kCopied;
}

bool Requests::CopyChunk(uint32_t request) {
  PeerMemory::Chunk chunk;
  return NameChunk(request, &chunk) && CopyChunks({&chunk, 1});
}

// A message of one chunk is copied at its destination, where it is wanted: the sender may have more
// to send, and would only be in the way of a receiver that copies several at once, into memory that
// its own core has at hand. So is a longer one, while the sender has messages of its own to copy,
// or has just had. Unless the receiver is out of the library, and stays out.
bool Requests::IsLeftToReceiver(uint32_t request) {
  const RequestLayout& slot = Slot(request);
  if (!IsSend(slot) || engine::IsLeftToSource(pool().Transfer(request), slot.transfer_generation)) {
    return false;
  }
  if (HasCopies()) {
    patient_looks_ = kPatientLooks;
  } else if (slot.size_bytes > parts_.chunk_bytes) {
    const uint32_t left = patient_looks_;
    if (left == 0) {
      return false;
    }
    patient_looks_ = left - 1;
  }
  if (shm::Wake(progress_.peers().Wake(static_cast<uint32_t>(slot.peer))).HasVisitors()) {
    looks_at_absent_ = 0;
    return true;
  }
  return ++looks_at_absent_ < kPatientLooks;
}

// Short messages that have been matched meanwhile are copied together with the one that is waited
// for: what they cost is mostly the call.
void Requests::Copy(uint32_t request) {
  if (IsLeftToReceiver(request)) {
    FinishIfArrived(request);
    return;
  }
  if (IsInPlace(Slot(request)) && IsSend(Slot(request))) {
    std::lock_guard lock(mutex_);  // as other threads do, in HelpAnnounced
    while (!Relocate(request) && CopyChunk(request)) {
    }
    return;
  }
  if (!IsSend(Slot(request)) && (progress_.threads() || !background_.empty())) {
    CopyTogether(request);
  }
  while (CopyChunk(request)) {
  }
}

bool Requests::HasCopies() {
  if (!progress_.threads() && background_.empty()) {
    return false;
  }
  std::lock_guard lock(mutex_);
  while (!background_.empty() && !IsToCopy(background_.back())) {
    background_.pop_back();
  }
  return !background_.empty();
}

void Requests::CopyTogether(uint32_t request) {
  std::lock_guard lock(mutex_);
  std::erase_if(background_, [this](uint32_t other) { return !IsToCopy(other); });
  std::array<PeerMemory::Chunk, kMostTogether> chunks;
  size_t count = 0;
  uint64_t size_bytes = 0;
  const auto add = [&](uint32_t next) {
    const RequestLayout& slot = Slot(next);
    size_bytes += std::min(slot.message_bytes, slot.size_bytes);
    if (count < kMostTogether && size_bytes <= kMostBytesTogether &&
        NameChunk(next, &chunks[count])) {
      ++count;
    }
  };
  add(request);
  for (const uint32_t other : background_) {
    if (other != request) {
      add(other);
    }
  }
  if (count > 1) {
    (void)CopyChunks({chunks.data(), count});
  }
}

void Requests::FinishIfArrived(uint32_t request) {
  const RequestLayout& slot = Slot(request);
  const uint32_t generation = shm::LoadAcquire(slot.generation);
  const engine::TransferProgress progress =
      engine::Look(pool().Transfer(request), slot.transfer_generation);
  if (progress.done) {
    Finish(request, generation, progress.error);
  }
}

// Completes a request whose transfer is over.
void Requests::Finish(uint32_t request, uint32_t generation, ErrorCode error) {
  RequestLayout& slot = Slot(request);
  if (error != ErrorCode::kOk) {
    shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
    shm::TransferLayout* const transfer =
        IsSend(slot) ? nullptr
                     : progress_.peers().Inbox(slot.transfer_rank).transfer(slot.transfer_index);
    if (transfer != nullptr) {
      engine::Release(*transfer, slot.transfer_generation);
    }
  }
  (void)engine::EndTransfer(slot, generation);
  ended_.fetch_add(1, std::memory_order_relaxed);
}

void Requests::CopyLanded(uint32_t request) {
  RequestLayout& slot = Slot(request);
  const uint64_t size_bytes = std::min(slot.message_bytes, slot.size_bytes);
  ErrorCode error = ErrorCode::kOk;
  if ((slot.descriptor_flags & shm::kFlagCell) != 0) {
    shm::LaneConsumer lane(progress_.view().inbox.lane(slot.lane));
    error = parts_.memory->CopyTo(UserOf(slot), lane.Cell(slot.cell), size_bytes);
    lane.ReleaseCells(slot.cell, slot.message_bytes);
  } else if (size_bytes != 0) {
    error = parts_.memory->CopyTo(UserOf(slot), slot.payload, size_bytes);
  }
  if (error != ErrorCode::kOk) [[unlikely]] {
    NoteFound(request, error);
    shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
  }
  SetState(slot, RequestState::kComplete);
}

void Requests::NoteTransfers(const engine::Effects& effects) {
  if (effects.transfer_count == 0) {
    return;
  }
  std::lock_guard lock(mutex_);
  background_.insert(background_.end(), effects.transfers.begin(),
                     effects.transfers.begin() + effects.transfer_count);
  if (effects.transfer_count == engine::kMaxTransfersPerStep) [[unlikely]] {
    FindTransfers();
  }
}

// Looks for all that is to be copied, where effects did not tell. Call it with the lock held.
void Requests::FindTransfers() {
  const uint32_t fresh = shm::LoadAcquire(progress_.view().layout->request_fresh);
  for (uint32_t request = 1; request < fresh; ++request) {
    if (IsToCopy(request)) {
      background_.push_back(request);  // twice does no harm
    }
  }
}

void Requests::HandOver(const engine::Effects& matched) {
  NoteTransfers(matched);
  const bool needs_worker =
      std::any_of(matched.transfers.begin(), matched.transfers.begin() + matched.transfer_count,
                  [this](uint32_t request) {
                    const RequestLayout& slot = Slot(request);
                    const shm::Wake sender(progress_.peers().Wake(slot.transfer_rank));
                    return slot.size_bytes > parts_.chunk_bytes && !sender.HasVisitors();
                  });
  if (needs_worker) {
    progress_.AskToAttendSelf();
  }
}

// The lock is held meanwhile, so that Forget returns only when no thread touches the request any
// more.
bool Requests::HelpBackground() {
  if (progress_.TakeCopiesElsewhere()) [[unlikely]] {
    std::lock_guard lock(mutex_);
    FindTransfers();
  }
  if (!progress_.threads() && background_.empty() && announced_.empty()) {
    return false;
  }
  std::lock_guard lock(mutex_);
  if (background_.empty()) {
    return HelpAnnounced();
  }
  const uint32_t request = background_.back();
  const bool moving = IsToCopy(request);
  if (!moving || !CopyChunk(request)) {
    background_.pop_back();
  }
  return moving;
}

// Call it with the lock held.
bool Requests::HelpAnnounced() {
  std::erase_if(announced_, [this](uint32_t request) { return !IsTransferring(request); });
  for (const uint32_t request : announced_) {
    if (engine::IsLeftToSource(pool().Transfer(request), Slot(request).transfer_generation) &&
        (Relocate(request) || CopyChunk(request))) {
      return true;
    }
  }
  return false;
}

// The receiver of a small message does not reach this rank's device memory: it gets a copy in the
// heap to read, as it would have without an RTS. True: it has; else it fails as a large one does.
// Call it with the lock held.
bool Requests::Relocate(uint32_t request) {
  RequestLayout& slot = Slot(request);
  shm::TransferLayout& transfer = pool().Transfer(request);
  if (!IsInPlace(slot) || (slot.flags & shm::kRequestBounceBuffer) != 0 ||
      !engine::IsLeftToSource(transfer, slot.transfer_generation)) {
    return false;
  }
  const auto peer = static_cast<uint32_t>(slot.peer);
  out_of_reach_[peer] = 1;
  void* const bounce_buffer = parts_.memory->AllocateBounceBuffer(slot.size_bytes, true);
  if (bounce_buffer == nullptr) {
    return false;
  }
  const shm::Location copy = parts_.memory->regions().Find(bounce_buffer, slot.size_bytes);
  if (parts_.memory->CopyFrom(bounce_buffer, UserOf(slot), slot.size_bytes) != ErrorCode::kOk ||
      !engine::RelocateSource(transfer, slot.transfer_generation, copy)) {
    parts_.memory->FreeBounceBuffer(bounce_buffer);
    return false;
  }
  slot.buffer = copy;
  slot.flags |= shm::kRequestBounceBuffer;  // Collect frees it
  progress_.WakeRank(peer);
  return true;
}

void Requests::LeaveToReceiver(uint32_t request) {
  std::lock_guard lock(mutex_);
  std::erase(announced_, request);
}

bool Requests::LeaveAllBehind() {
  std::lock_guard lock(mutex_);
  std::erase_if(background_, [this](uint32_t request) { return !IsToCopy(request); });
  return !background_.empty();
}

// Call it before a request's slot is reused.
void Requests::Forget(uint32_t request) {
  if (progress_.threads()) {
    std::lock_guard lock(mutex_);
    std::erase(background_, request);
    std::erase(announced_, request);
  }
}

// ---- Ending -------------------------------------------------------------------------------------

void Requests::Collect(uint32_t request, Completion* completion) {
  RequestLayout& slot = Slot(request);
  const auto state = static_cast<RequestState>(shm::LoadAcquire(slot.state));
  if (state == RequestState::kInactive) {
    *completion = {};
    return;
  }
  if (IsMoved(slot) && !IsUnwatched(slot)) {
    *completion = {slot.status_source, slot.status_tag, ErrorCode::kOk, slot.size_bytes};
    pool().Rename(request);
    // Pairs with IsUnwatched.
    shm::FetchOr(slot.flags, engine::kRequestUnwatched, std::memory_order_release);
    return;
  }
  if (state != RequestState::kComplete) {
    // Poisoned in mid-flight: the slot is never used again, for other processes may still write to
    // it.
    *completion = {slot.status_source, slot.status_tag, FailureWords::Tell(progress_.poison()), 0};
    return;
  }
  Forget(request);
  completion->source = slot.status_source;
  completion->tag = slot.status_tag;
  completion->error = static_cast<ErrorCode>(shm::LoadRelaxed(slot.error));
  const bool usable =
      completion->error == ErrorCode::kOk || completion->error == ErrorCode::kTruncated;
  completion->size_bytes = usable ? std::min(slot.message_bytes, slot.size_bytes) : 0;
  // After any other error another process, or the rank's own core, may still write to the bounce
  // buffer: it stays taken.
  if (usable || completion->error == ErrorCode::kCancelled) {
    if (const ErrorCode error = bounce_buffers_.End(slot, usable); error != ErrorCode::kOk)
        [[unlikely]] {
      completion->error = error;
      completion->size_bytes = 0;
    }
  } else if ((slot.flags & kRequestLanding) != 0) {
    bounce_buffers_.LeaveLanding(slot);
  }
  if (completion->error != ErrorCode::kOk && completion->error != ErrorCode::kCancelled &&
      (slot.flags & engine::kRequestUnwatched) == 0) [[unlikely]] {
    failure_words_.Tell(request, shm::LoadRelaxed(slot.generation), completion->error);
  }
  if ((slot.flags & shm::kRequestPersistent) != 0) {
    SetState(slot, RequestState::kInactive);
  } else {
    pool().GiveBack(request);
  }
}

}  // namespace ferry::client
