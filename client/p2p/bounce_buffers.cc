#include "client/p2p/bounce_buffers.h"

#include <algorithm>
#include <new>
#include <utility>

#include "client/memory/failure_words.h"

namespace ferry::client {

using shm::RequestKind;
using shm::RequestLayout;

namespace {

// Up to this size the rank's own copies, into its heap and out of it, beat the pipeline of staging
// blocks between nodes: they need no other thread, and the rank is awake anyway.
constexpr uint64_t kBounceBufferMaxBytes = uint64_t{8} << 20;

}  // namespace

ErrorCode BounceBuffers::UseFor(RequestLayout& slot, const Message& message, RequestKind kind) {
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
    if (message.size_bytes <= unseen_max || !WantsForPrivate(message, kind)) {
      return ErrorCode::kOk;
    }
    must = !parts_.private_reachable;
    bounce_buffer = parts_.memory->AllocateBounceBuffer(message.size_bytes, must);
  } else {
    must = NeedsForDevice(slot.buffer, message, kind);
    if (!must && !WantsForDevice(slot.buffer, message, kind)) {
      return ErrorCode::kOk;
    }
    bounce_buffer = parts_.offloads->TakeBounceBuffer(message.size_bytes, must);
    if (bounce_buffer == nullptr && must) {  // the daemon may be able to do without
      progress_.GiveUpLinks();
      must = NeedsForDevice(slot.buffer, message, kind);
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
uint64_t BounceBuffers::DirectMax(const Message& message, RequestKind kind) const {
  if (kind != RequestKind::kSend) {
    return parts_.eager_max_bytes;
  }
  return message.synchronous ? 0 : std::min<uint64_t>(parts_.eager_max_bytes, shm::kInlineBytes);
}

// The size up to which a buffer needs no bounce buffer although other ranks reach no byte of it:
// the sender may announce a small message, too.
uint64_t BounceBuffers::LocalMax(const Message& message, RequestKind kind) {
  return kind == RequestKind::kSend && !message.synchronous ? shm::kInlineBytes : 0;
}

// Returns true for private memory that other ranks do not reach although they reach other memory of
// this process.
bool BounceBuffers::IsOutOfOthersReach(const void* buffer, uint64_t size_bytes) const {
  return parts_.memory->IsByStream(buffer) ||
         parts_.memory->IsOutOfKernelsReach(buffer, size_bytes);
}

// Private memory gets a bounce buffer where other processes cannot reach it: for sends, whose data
// they fetch, and for receives that the daemon may have to fill. Messages between nodes get one,
// too, if a copy here is sooner done than staging by both daemons.
bool BounceBuffers::WantsForPrivate(const Message& message, RequestKind kind) const {
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
bool BounceBuffers::NeedsForDevice(const shm::Location& buffer, const Message& message,
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
bool BounceBuffers::WantsForDevice(const shm::Location& buffer, const Message& message,
                                   RequestKind kind) const {
  return kind == RequestKind::kSend && (buffer.flags & shm::kLocationByStream) != 0 &&
         progress_.MayBeRemote(message.peer) && message.size_bytes > shm::kInlineBytes &&
         parts_.offloads->IsWorthBounceBuffer(message.size_bytes, parts_.one_block_bytes);
}

std::byte* BounceBuffers::BlockOf(const RequestLayout& slot) const {
  if (slot.buffer.region == 0) {
    return reinterpret_cast<std::byte*>(slot.buffer.address);  // landings_
  }
  return parts_.memory->regions().ById(slot.buffer.region).base + slot.buffer.address;
}

ErrorCode BounceBuffers::CopyToBlock(const RequestLayout& slot) {
  const void* const user = UserOf(slot);
  return parts_.memory->IsByStream(user)
             ? parts_.offloads->CopyIn(BlockOf(slot), user, slot.size_bytes)
             : parts_.memory->CopyFrom(BlockOf(slot), user, slot.size_bytes);
}

// A landing takes only room that the heap has to spare, since any number of receives may need one.
ErrorCode BounceBuffers::TakeLanding(RequestLayout& slot, uint64_t size_bytes,
                                     shm::Location* where) {
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

ErrorCode BounceBuffers::End(RequestLayout& slot, bool deliver) {
  ErrorCode error = ErrorCode::kOk;
  // A matched request's pair has delivered.
  if ((slot.flags & shm::kRequestBounceBuffer) == 0 ||
      (deliver && (slot.flags & shm::kRequestPaired) != 0)) {
    return error;
  }
  std::byte* const bounce_buffer = BlockOf(slot);
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

void BounceBuffers::FreeLanding(const RequestLayout& slot) {
  if (slot.buffer.region == 0) {
    const std::lock_guard lock(landings_mutex_);
    landings_.erase(slot.buffer.address);
  } else {
    parts_.memory->FreeBounceBuffer(BlockOf(slot));
  }
}

void BounceBuffers::LeaveLanding(RequestLayout& slot) {
  slot.flags &= ~(shm::kRequestBounceBuffer | kRequestLanding);
  slot.buffer = parts_.memory->regions().Find(UserOf(slot), slot.size_bytes);
}

}  // namespace ferry::client
