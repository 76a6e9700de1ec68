#include "client/p2p/requests.h"

#include <algorithm>
#include <array>
#include <new>
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

// Up to this size the rank's own copies, into its heap and out of it, beat the pipeline of staging
// blocks between nodes: they need no other thread, and the rank is awake anyway.
constexpr uint64_t kBounceBufferMaxBytes = uint64_t{8} << 20;

// So many messages, and bytes, are copied in one go, so that their senders hear of some before all
// are there.
constexpr size_t kMostTogether = kMostProcessCopies;
// How often a sender looks, for some 10 us, before it copies in a receiver's place.
constexpr uint32_t kPatientLooks = 64;
constexpr uint64_t kMostBytesTogether = uint64_t{256} << 10;

ErrorCode Told(const Status& status) { return FailureWords::Tell(status.code(), status.message()); }

void* UserOf(const RequestLayout& slot) { return reinterpret_cast<void*>(slot.user_address); }

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
  const ErrorCode error = UseBounceBuffer(slot, message, kind);
  if (error == ErrorCode::kOk) {
    SetState(slot, RequestState::kInactive);
  }
  return error;
}

// Puts a bounce buffer in place of the request's buffer, if it needs one or is better off with one.
inline ErrorCode Requests::UseBounceBuffer(RequestLayout& slot, const Message& message,
                                           RequestKind kind) {
  const bool is_private = slot.buffer.region == 0;
  bool must = false;
  void* bounce_buffer = nullptr;
  if (is_private && message.size_bytes > LocalMax(message, kind) &&
      IsOutOfOthersReach(message.buffer, message.size_bytes)) {
    must = true;
    bounce_buffer = parts_.offloads->TakeBounceBuffer(message.size_bytes, must);
  } else if (is_private) {
    const uint64_t unseen_max =
        parts_.private_reachable ? parts_.eager_max_bytes : DirectMax(message, kind);
    if (message.size_bytes <= unseen_max || !WantsPrivateBounceBuffer(message, kind)) {
      return ErrorCode::kOk;
    }
    must = !parts_.private_reachable;
    bounce_buffer = parts_.memory->AllocateBounceBuffer(message.size_bytes, must);
  } else {
    must = NeedsDeviceBounceBuffer(slot.buffer, message, kind);
    if (!must && !WantsDeviceBounceBuffer(slot.buffer, message, kind)) {
      return ErrorCode::kOk;
    }
    bounce_buffer = parts_.offloads->TakeBounceBuffer(message.size_bytes, must);
    if (bounce_buffer == nullptr && must) {  // the daemon may be able to do without
      progress_.GiveUpLinks();
      must = NeedsDeviceBounceBuffer(slot.buffer, message, kind);
    }
  }
  if (bounce_buffer == nullptr) {
    return must ? FailureWords::Tell(ErrorCode::kOutOfMemory) : ErrorCode::kOk;
  }
  slot.flags |= shm::kRequestBounceBuffer;
  slot.buffer = parts_.memory->regions().Find(bounce_buffer, message.size_bytes);
  return ErrorCode::kOk;
}

// The size up to which neither another rank nor the daemon needs to reach a message's buffer. They
// have to fetch an eager send that finds no cell, and a synchronous one of any size.
uint64_t Requests::DirectMax(const Message& message, RequestKind kind) const {
  if (kind != RequestKind::kSend) {
    return parts_.eager_max_bytes;
  }
  return message.synchronous ? 0 : std::min<uint64_t>(parts_.eager_max_bytes, shm::kInlineBytes);
}

// The size up to which a buffer needs no bounce buffer although other ranks reach no byte of it:
// the sender may announce a small message, too.
uint64_t Requests::LocalMax(const Message& message, RequestKind kind) {
  return kind == RequestKind::kSend && !message.synchronous ? shm::kInlineBytes : 0;
}

// Returns true for private memory that other ranks do not reach although they reach other memory of
// this process.
bool Requests::IsOutOfOthersReach(const void* buffer, uint64_t size_bytes) const {
  return parts_.memory->IsByStream(buffer) ||
         parts_.memory->IsOutOfKernelsReach(buffer, size_bytes);
}

// Private memory gets a bounce buffer where other processes cannot reach it: for sends, whose data
// they fetch, and for receives that the daemon may have to fill. Messages between nodes get one,
// too, if a copy here is sooner done than staging by both daemons.
bool Requests::WantsPrivateBounceBuffer(const Message& message, RequestKind kind) const {
  if (!parts_.private_reachable &&
      (kind == RequestKind::kSend || progress_.MayBeRemote(shm::kAnySource))) {
    return true;
  }
  const bool is_by_link = kind == RequestKind::kSend ? progress_.SendsByLink(message.peer)
                                                     : progress_.ReceivesByLink(message.peer);
  return message.peer >= 0 && progress_.MayBeRemote(message.peer) && !is_by_link &&
         message.size_bytes <= kBounceBufferMaxBytes;
}

// Device memory that only streams reach needs a bounce buffer for a message to or from another
// node, if the daemon has no pipeline for it; and for a message that leaves by a direct link, as
// short ones do. A message that comes by a link gets its memory when it is matched (TakeLanding).
bool Requests::NeedsDeviceBounceBuffer(const shm::Location& buffer, const Message& message,
                                       RequestKind kind) const {
  if ((buffer.flags & shm::kLocationByStream) == 0 || !progress_.MayBeRemote(message.peer)) {
    return false;
  }
  if (message.size_bytes <= DirectMax(message, kind)) {
    return false;
  }
  const bool is_send = kind == RequestKind::kSend;
  const bool is_long =
      is_send ? message.size_bytes > parts_.one_block_bytes : has_landed_long_.load();
  // The daemon's pipeline copies long messages while the network moves other blocks and this rank
  // computes; or its NIC reaches the memory.
  if (is_long || !parts_.offloads->copies() || !progress_.LinksCarryDeviceMemory()) {
    progress_.GiveUpLinks();
  }
  const bool may_take_link =
      is_send && (progress_.LinksCarryDeviceMemory() || progress_.WillSendByLink(message.peer));
  return may_take_link || !parts_.memory->regions().ById(buffer.region).staged;
}

// Returns true if such device memory is better sent from a bounce buffer, although the daemon has a
// pipeline for it.
bool Requests::WantsDeviceBounceBuffer(const shm::Location& buffer, const Message& message,
                                       RequestKind kind) const {
  return kind == RequestKind::kSend && (buffer.flags & shm::kLocationByStream) != 0 &&
         progress_.MayBeRemote(message.peer) && message.size_bytes > shm::kInlineBytes &&
         parts_.offloads->IsWorthBounceBuffer(message.size_bytes, parts_.one_block_bytes);
}

std::byte* Requests::BounceBufferOf(const RequestLayout& slot) const {
  if (slot.buffer.region == 0) {
    return reinterpret_cast<std::byte*>(slot.buffer.address);  // landings_
  }
  return parts_.memory->regions().ById(slot.buffer.region).base + slot.buffer.address;
}

// Copies the data that the engine, or other processes, read in place of the buffer of a send.
inline ErrorCode Requests::CopyOut(RequestLayout& slot) {
  const void* const user = UserOf(slot);
  if (slot.size_bytes <= shm::kInlineBytes &&
      (slot.flags & (shm::kRequestSynchronous | kRequestInPlace)) == 0) {
    slot.descriptor_kind = static_cast<uint8_t>(shm::DescriptorKind::kEager);
    return parts_.memory->CopyFrom(slot.payload, user, slot.size_bytes);
  }
  if ((slot.flags & shm::kRequestBounceBuffer) == 0) {
    return ErrorCode::kOk;
  }
  return parts_.memory->IsByStream(user)
             ? parts_.offloads->CopyIn(BounceBufferOf(slot), user, slot.size_bytes)
             : parts_.memory->CopyFrom(BounceBufferOf(slot), user, slot.size_bytes);
}

ErrorCode Requests::Start(uint32_t request, engine::LaneSet* later, bool to_push) {
  engine::RankEngine& engine = progress_.engine();
  RequestLayout& slot = Slot(request);
  const bool is_send = IsSend(slot);
  // Eager sends and receives that are matched while polling never come here: they pay nothing.
  shm::StoreRelaxed(slot.start_ns, CoarseMonotonicNs());
  if (is_send) {
    if (const ErrorCode error = CopyOut(slot); error != ErrorCode::kOk) [[unlikely]] {
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

// A landing takes only room that the heap has to spare, since any number of receives may need one.
ErrorCode Requests::TakeLanding(uint32_t request, uint64_t size_bytes, shm::Location* where) {
  RequestLayout& slot = Slot(request);
  if (IsSend(slot) || !HasState(slot, RequestState::kRemoteWait) || size_bytes > slot.size_bytes ||
      (slot.flags & shm::kRequestBounceBuffer) != 0) {
    return ErrorCode::kInvalidBuffer;
  }
  if (void* const block = parts_.offloads->TakeBounceBuffer(size_bytes, false); block != nullptr) {
    *where = parts_.memory->regions().Find(block, size_bytes);
  } else {
    std::unique_ptr<std::byte[]> own(new (std::nothrow) std::byte[size_bytes]);
    if (own == nullptr) {
      return ErrorCode::kOutOfMemory;
    }
    *where = {0, 0, reinterpret_cast<uint64_t>(own.get())};
    const std::lock_guard lock(landings_mutex_);
    landings_[where->address] = std::move(own);
  }
  slot.buffer = *where;
  shm::FetchOr(slot.flags, shm::kRequestBounceBuffer | kRequestLanding, std::memory_order_relaxed);
  if (size_bytes > parts_.one_block_bytes) {
    has_landed_long_ = true;
  }
  return ErrorCode::kOk;
}

void Requests::GiveUp(uint32_t request) {
  (void)EndBounceBuffer(Slot(request), false);
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

// Ends the use of a bounce buffer: moves received data to where the application wants it, and frees
// the block unless a persistent request will need it again.
ErrorCode Requests::EndBounceBuffer(RequestLayout& slot, bool deliver) {
  ErrorCode error = ErrorCode::kOk;
  // A matched request's pair has delivered.
  if ((slot.flags & shm::kRequestBounceBuffer) == 0 ||
      (deliver && (slot.flags & shm::kRequestPaired) != 0)) {
    return error;
  }
  std::byte* const bounce_buffer = BounceBufferOf(slot);
  const bool fetched =
      !IsSend(slot) && slot.descriptor_kind != static_cast<uint8_t>(shm::DescriptorKind::kEager);
  if (deliver && fetched) {
    error = parts_.memory->CopyTo(UserOf(slot), bounce_buffer,
                                  std::min(slot.message_bytes, slot.size_bytes));
  }
  if ((slot.flags & kRequestLanding) != 0) {
    FreeLanding(slot);
    LeaveLanding(slot);
  } else if ((slot.flags & shm::kRequestPersistent) == 0) {
    parts_.memory->FreeBounceBuffer(bounce_buffer);
  }
  return error;
}

void Requests::FreeLanding(const RequestLayout& slot) {
  if (slot.buffer.region == 0) {
    const std::lock_guard lock(landings_mutex_);
    landings_.erase(slot.buffer.address);
  } else {
    parts_.memory->FreeBounceBuffer(BounceBufferOf(slot));
  }
}

// A persistent receive uses its own memory again: the next message may be longer than this one, or
// come by the daemons.
void Requests::LeaveLanding(RequestLayout& slot) {
  slot.flags &= ~(shm::kRequestBounceBuffer | kRequestLanding);
  slot.buffer = parts_.memory->regions().Find(UserOf(slot), slot.size_bytes);
}

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
    if (const ErrorCode error = EndBounceBuffer(slot, usable); error != ErrorCode::kOk)
        [[unlikely]] {
      completion->error = error;
      completion->size_bytes = 0;
    }
  } else if ((slot.flags & kRequestLanding) != 0) {
    LeaveLanding(slot);
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
