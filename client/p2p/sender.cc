#include "client/p2p/sender.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/process_memory.h"
#include "engine/request_end.h"
#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::client {

using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

namespace {

// Up to this size private memory moves into a bounce buffer when its receiver, a rank of the node,
// does not come. To another node the limit is the size that travels with the RTS.
constexpr uint64_t kBounceBufferMaxBytes = uint64_t{512} * 1024;
constexpr uint64_t kRemoteBounceBufferMaxBytes = shm::kRunBytes;

// Bounce buffers on the way use at most so many bytes and such a part of the heap, and such a part
// of the requests.
constexpr uint64_t kAllBounceBuffersMaxBytes = uint64_t{4} << 20;
constexpr uint64_t kHeapPart = 4;
constexpr uint32_t kRequestPart = 8;

// After so many blocking sends in a row that had to move, those to the same rank are made from
// bounce buffers at once, but for one in so many: it finds out whether the rank has become
// punctual.
constexpr uint8_t kLateInARow = 4;
constexpr uint32_t kSampleEvery = 16;

constexpr size_t kPruneFrom = 128;  // requests in in_place_

// So many messages to one rank in a row are a window. A rank that exchanges data with its
// neighbours sends fewer to each before it looks for theirs.
constexpr uint32_t kWindowMessages = 4;

}  // namespace

Sender::Sender(Progress* progress, Requests* requests, Memory* memory, uint64_t eager_max_bytes,
               uint64_t heap_bytes)
    : progress_(*progress),
      sends_(progress->engine().sends()),
      peers_(progress->peers()),
      requests_(*requests),
      memory_(*memory),
      eager_max_bytes_(eager_max_bytes),
      limit_(progress->view().request_limit / kRequestPart),
      late_(progress->view().job_size),
      bytes_left_(std::min(kAllBounceBuffersMaxBytes, heap_bytes / kHeapPart)) {}

ErrorCode Sender::Start(const Message& message, uint32_t* request, engine::LaneSet* later) {
  Message sent = message;
  const bool is_blocking = later != nullptr;
  bool is_over = false;
  bool in_place = false;
  if (!requests_.IsPlainSend(message)) {
    ErrorCode error = requests_.CheckSend(&sent);
    if (error == ErrorCode::kOk) {
      error = requests_.CheckSynchronized(sent.buffer, sent.size_bytes);
    }
    if (error != ErrorCode::kOk) {
      return error;
    }
    NoteDeviceSend(sent);
    in_place = IsForOneCopy(sent, is_blocking);
    is_over = !in_place && SendEager(sent);
  }
  *request = 0;
  const BounceBuffer bounce_buffer =
      is_over ? BounceBuffer::kNone : BounceBufferFor(sent, is_blocking);
  if (is_over || (bounce_buffer == BounceBuffer::kAtOnce && SendFromBounceBuffer(sent))) {
    return ErrorCode::kOk;
  }
  ErrorCode error = requests_.Take(sent, RequestKind::kSend, request);
  if (error != ErrorCode::kOk) {
    return in_place && SendEager(sent) ? ErrorCode::kOk : error;  // that takes no request
  }
  if (in_place) {
    requests_.AnnounceInPlace(*request);
  }
  // One that may move needs no worker at its receiver: that comes, or the message moves.
  engine::LaneSet uncalled;
  const bool may_move = MayMove(requests_.Slot(*request)) && (is_blocking || !progress_.threads());
  error = requests_.Start(*request, may_move ? &uncalled : later,
                          bounce_buffer == BounceBuffer::kUnlessPushed);
  if (error == ErrorCode::kWouldBlock) {
    if (SendFromBounceBuffer(sent)) {
      requests_.GiveUp(std::exchange(*request, 0));
      return ErrorCode::kOk;
    }
    error = requests_.Start(*request, later);
  }
  if (error != ErrorCode::kOk) {
    requests_.GiveUp(*request);
  } else if (may_move && !is_blocking) {
    NoteInPlace(*request);
  }
  return error;
}

ErrorCode Sender::Restart(uint32_t request) {
  RequestLayout& slot = requests_.Slot(request);
  const Message message{reinterpret_cast<void*>(slot.user_address),
                        slot.size_bytes,
                        slot.peer,
                        slot.tag,
                        slot.context,
                        (slot.flags & shm::kRequestSynchronous) != 0};
  NoteDeviceSend(message);
  if (!SendEager(message) && !(BounceBufferFor(message, false) == BounceBuffer::kAtOnce &&
                               SendFromBounceBuffer(message))) {
    return requests_.Start(request);
  }
  Requests::SetState(slot, RequestState::kComplete);
  return ErrorCode::kOk;
}

// In a window of messages the copies out of the device here, and into it there, take most of the
// time. With ferryd the network moves other messages meanwhile; by a link the thread that copies
// would do that, too. So such a rank gives its links up, as one with long messages does.
void Sender::NoteDeviceSend(const Message& message) {
  if (!memory_.IsByStream(message.buffer) || !progress_.MayBeRemote(message.peer) ||
      !progress_.LinksCarryDeviceMemory()) {
    return;
  }
  if (window_peer_.exchange(message.peer, std::memory_order_relaxed) != message.peer) {
    EndWindow();
  }
  if (window_messages_.fetch_add(1, std::memory_order_relaxed) + 1 >= kWindowMessages) {
    progress_.GiveUpLinks();
  }
}

// ---- Eager sends --------------------------------------------------------------------------------

// Sends a small message that can leave at once, without a request. The copy into a slab cell
// happens outside the lease. Inside the node the descriptor needs no journal, and only the receiver
// has to be told.
bool Sender::SendEager(const Message& message) {
  const auto destination = static_cast<uint32_t>(message.peer);
  if (!sends_.LaneIsOpen(destination)) [[unlikely]] {  // the first message there
    if (sends_.OpenLane(destination) != ErrorCode::kOk) {
      return false;  // a request will say why
    }
  }
  const bool in_cell = message.size_bytes > shm::kInlineBytes;
  if ((in_cell && message.size_bytes > eager_max_bytes_) || message.synchronous) {
    return false;  // an eager send does not learn when it is matched
  }
  return memory_.IsByStream(message.buffer) ? SendEagerByStream(message)
                                            : SendEagerFromHost(message);
}

inline bool Sender::SendEagerFromHost(const Message& message) {
  const auto destination = static_cast<uint32_t>(message.peer);
  const bool in_cell = message.size_bytes > shm::kInlineBytes;
  uint32_t cell = shm::kNoCell;
  if (in_cell) {
    if (!progress_.Enter()) {
      return false;
    }
    cell = sends_.TryTakeCell(destination);
    progress_.Exit();
    if (cell == shm::kNoCell) {
      return false;
    }
    std::memcpy(sends_.CellBytes(destination, cell), message.buffer, message.size_bytes);
  }
  const engine::SendArguments send{destination, message.context, message.tag, message.size_bytes};
  if (!peers_.by_rank[destination].local) {
    return progress_.UnderLease([&](engine::Effects& effects) {
      const bool sent = in_cell ? sends_.TrySendCell(send, cell, effects)
                                : sends_.TrySendInline(send, message.buffer, effects);
      if (effects.to_link && sent) {
        effects.to_link = !progress_.Gathers(destination, message.size_bytes);
      }
      return sent ? ErrorCode::kOk : ErrorCode::kWouldBlock;
    }) == ErrorCode::kOk;
  }
  if (!progress_.Enter()) {
    return false;
  }
  const bool sent = sends_.TrySendLocal(send, message.buffer, cell);
  progress_.Exit();
  if (sent) {
    progress_.Announce(destination);
  }
  return sent;
}

// Sends a small message from device memory: copies its bytes here first, while no lease is held.
// Returns false also if that copy fails; a request will find out why. The bytes are copied to
// ordinary memory, whatever has been at its address: a thread's stack may lie where the program has
// freed device memory.
bool Sender::SendEagerByStream(const Message& message) {
  std::array<std::byte, shm::kCellBytes> bytes;
  if (memory_.CopyFrom(bytes.data(), message.buffer, message.size_bytes) != ErrorCode::kOk) {
    return false;
  }
  Message here = message;
  here.buffer = bytes.data();
  return SendEagerFromHost(here);
}

// ---- Sends in place -----------------------------------------------------------------------------

// Returns true if a small message is announced from where it lies in device memory: then one copy
// of the receiver's stream brings it to its place, instead of one out of the device here and one
// into the device there. Only if the message may move: a sender that would not wait with a message
// of host memory must not wait with this one. To itself a rank would wait in vain.
bool Sender::IsForOneCopy(const Message& message, bool blocking) {
  const auto peer = static_cast<uint32_t>(message.peer);
  return memory_.IsByStream(message.buffer) && message.size_bytes != 0 &&
         message.size_bytes <= std::max<uint64_t>(eager_max_bytes_, shm::kInlineBytes) &&
         !message.synchronous && peers_.by_rank[peer].local && peer != progress_.view().rank &&
         memory_.regions().Find(message.buffer, message.size_bytes).region != 0 &&
         !requests_.IsOutOfReach(peer) && (blocking ? !IsLate(peer) : !progress_.threads());
}

// Returns true if a request may be moved into a bounce buffer when its receiver turns out to be
// late. A persistent request is not moved: its next start needs the slot.
bool Sender::MayMove(const RequestLayout& slot) const {
  constexpr uint32_t kNever = shm::kRequestPersistent | shm::kRequestSynchronous;
  if (slot.size_bytes == 0 || slot.size_bytes > kBounceBufferMaxBytes ||
      (slot.flags & kNever) != 0 || !peers_.by_rank[static_cast<uint32_t>(slot.peer)].local) {
    return false;
  }
  if ((slot.buffer.flags & shm::kLocationByStream) != 0) {
    return Requests::IsInPlace(slot);
  }
  return slot.buffer.region == 0 || memory_.regions().ById(slot.buffer.region).lent;
}

void Sender::NoteInPlace(uint32_t request) {
  if (in_place_.size() >= kPruneFrom) {
    std::erase_if(in_place_, [this](const InPlace& sent) { return !IsUntaken(sent); });
  }
  in_place_.push_back({request, shm::LoadRelaxed(requests_.Slot(request).generation)});
}

// Returns true if the receiver has not come for the message yet.
bool Sender::IsUntaken(const InPlace& sent) const {
  const RequestLayout& slot = requests_.Slot(sent.request);
  return shm::LoadRelaxed(slot.generation) == sent.generation &&
         requests_.IsTransferring(sent.request) &&
         engine::IsAnnounced(requests_.pool().Transfer(sent.request), slot.transfer_generation);
}

bool Sender::MoveLate(bool patient) {
  if (progress_.threads()) {
    CallReceivers();
    return false;
  }
  if (in_place_.empty()) {
    return false;
  }
  const size_t before = in_place_.size();
  std::erase_if(in_place_, [this](const InPlace& sent) { return !IsUntaken(sent); });
  if (in_place_.size() == before) {
    std::erase_if(in_place_, [&](const InPlace& sent) { return Move(sent.request, patient); });
  }
  return in_place_.size() != before;
}

// Threads came after these were sent: they do not move any more, so their receivers may need help.
void Sender::CallReceivers() {
  engine::LaneSet receivers;
  {
    std::lock_guard lock(mutex_);
    for (const InPlace& sent : in_place_) {
      if (IsUntaken(sent)) {
        const auto peer = static_cast<uint32_t>(requests_.Slot(sent.request).peer);
        receivers.Add(peers_.by_rank[peer].local_index);
      }
    }
    in_place_.clear();
  }
  progress_.AskToAttend(receivers);
}

bool Sender::MoveLate(uint32_t request, bool patient) {
  const RequestLayout& slot = requests_.Slot(request);
  return MayMove(slot) && IsUntaken({request, shm::LoadRelaxed(slot.generation)}) &&
         Move(request, patient);
}

// Memory that the application has unmapped must not end this process, which only waits: the message
// fails at its receiver. malloc's memory stays mapped.
bool Sender::CopySource(void* bounce_buffer, const RequestLayout& slot) {
  const auto* const source = reinterpret_cast<const void*>(slot.user_address);
  if (Requests::IsInPlace(slot)) {
    return memory_.CopyFrom(bounce_buffer, source, slot.size_bytes) == ErrorCode::kOk;
  }
  if (slot.buffer.region != 0) {
    std::memcpy(bounce_buffer, source, slot.size_bytes);
    return true;
  }
  return ReadProcessMemory(getpid(), slot.user_address, bounce_buffer, slot.size_bytes) ==
         ErrorCode::kOk;
}

// Returns true if the peer has looked at all messages that this rank has sent it: then no receive
// is posted for those that it has not taken.
bool Sender::HasLooked(uint32_t peer) const {
  const uint32_t own_lane = peers_.by_rank[progress_.view().rank].local_index;
  const shm::LaneLayout& lane = *peers_.by_rank[peer].inbox.lane(own_lane);  // open
  return shm::LoadAcquire(lane.consumer.head) == shm::LoadAcquire(lane.producer.tail);
}

bool Sender::Move(uint32_t request, bool patient) {
  RequestLayout& slot = requests_.Slot(request);
  const auto peer = static_cast<uint32_t>(slot.peer);
  const bool in_place = Requests::IsInPlace(slot);
  if (patient && shm::Wake(peers_.Wake(peer)).HasVisitors() && !(in_place && HasLooked(peer))) {
    return false;
  }
  void* const bounce_buffer = TakeBounceBuffer(slot.size_bytes);
  if (bounce_buffer == nullptr) {
    return false;
  }
  const shm::Location copy = memory_.regions().Find(bounce_buffer, slot.size_bytes);
  const bool is_moved =
      CopySource(bounce_buffer, slot) &&
      engine::MoveAnnounced(requests_.pool().Transfer(request), slot.transfer_generation, copy);
  if (is_moved && in_place) {
    requests_.LeaveToReceiver(request);
  }
  std::lock_guard lock(mutex_);
  if (!is_moved) {
    GiveBounceBuffer(bounce_buffer, slot.size_bytes);
    return false;
  }
  slot.buffer = copy;
  shm::StoreRelaxed(slot.user_address, reinterpret_cast<uint64_t>(bounce_buffer));
  Requests::MarkMoved(slot);
  on_the_way_.push_back(request);
  return true;
}

void Sender::NotePunctuality(uint32_t request) {
  const RequestLayout& slot = requests_.Slot(request);
  uint8_t& late = late_[static_cast<uint32_t>(slot.peer)];
  if (Requests::IsMoved(slot)) {
    shm::StoreRelaxed(late, std::min<uint8_t>(shm::LoadRelaxed(late) + 1, kLateInARow));
  } else if (MayMove(slot)) {
    shm::StoreRelaxed(late, uint8_t{0});
  }
}

// Returns true if a blocking send to the rank should not wait for it.
bool Sender::IsLate(uint32_t rank) {
  return shm::LoadRelaxed(late_[rank]) == kLateInARow &&
         shm::FetchAdd(samples_, 1, std::memory_order_relaxed) % kSampleEvery != 0;
}

// ---- Sends from bounce buffers ------------------------------------------------------------------

// An eager message to another node waits for credit, not for a reader of its buffer. By a link a
// pushed message has no reader to wait for, either; that a message is pushed is known only once it
// starts. Inside the node a bounce buffer is for receivers that are late, and for memory that they
// do not reach.
Sender::BounceBuffer Sender::BounceBufferFor(const Message& message, bool blocking) {
  const auto peer = static_cast<uint32_t>(message.peer);
  const uint64_t size_bytes = message.size_bytes;
  const auto is_of_program = [&] {
    return memory_.regions().Find(message.buffer, size_bytes).region == 0;
  };
  if (message.synchronous || memory_.IsByStream(message.buffer)) {
    return BounceBuffer::kNone;
  }
  if (!peers_.by_rank[peer].local) {
    const bool is_by_link = progress_.SendsByLink(message.peer);
    if (size_bytes <= eager_max_bytes_ || size_bytes > kRemoteBounceBufferMaxBytes ||
        (is_by_link && !blocking) || !is_of_program()) {
      return BounceBuffer::kNone;
    }
    return is_by_link && sends_.MayPush(peer, size_bytes) ? BounceBuffer::kUnlessPushed
                                                          : BounceBuffer::kAtOnce;
  }
  if (size_bytes == 0 || size_bytes > kBounceBufferMaxBytes) {
    return BounceBuffer::kNone;
  }
  const bool is_wanted = (blocking && IsLate(peer) && is_of_program()) ||
                         (!requests_.is_private_reachable() &&
                          memory_.LocateForNode(message.buffer, size_bytes).region == 0);
  return is_wanted ? BounceBuffer::kAtOnce : BounceBuffer::kNone;
}

// False: the message has to go another way.
bool Sender::SendFromBounceBuffer(const Message& message) {
  void* const bounce_buffer = TakeBounceBuffer(message.size_bytes);
  if (bounce_buffer == nullptr) {
    return false;
  }
  std::memcpy(bounce_buffer, message.buffer, message.size_bytes);
  Message copy = message;
  copy.buffer = bounce_buffer;
  uint32_t request = 0;
  bool started = requests_.Take(copy, RequestKind::kSend, &request) == ErrorCode::kOk;
  if (started) {
    RequestLayout& slot = requests_.Slot(request);
    slot.flags |= engine::kRequestUnwatched;
    // No thread waits for this send, so the receiver may take its time: no worker is called for it.
    engine::LaneSet uncalled;
    // A peer that is gone is noticed at once; an ordinary send then reports it.
    started = requests_.Start(request, &uncalled) == ErrorCode::kOk &&
              !(Requests::HasState(slot, RequestState::kComplete) &&
                shm::LoadRelaxed(slot.error) != static_cast<int32_t>(ErrorCode::kOk));
    if (!started) {
      requests_.pool().GiveBack(request);
    }
  }
  std::lock_guard lock(mutex_);
  if (started) {
    on_the_way_.push_back(request);
  } else {
    GiveBounceBuffer(bounce_buffer, message.size_bytes);
  }
  return started;
}

bool Sender::HaveArrived() {
  std::lock_guard lock(mutex_);
  std::erase_if(on_the_way_, [this](uint32_t request) { return HasArrived(request); });
  return std::all_of(on_the_way_.begin(), on_the_way_.end(), [this](uint32_t request) {
    return Requests::HasState(requests_.Slot(request), RequestState::kComplete);
  });
}

// Null when those on the way use up their share.
void* Sender::TakeBounceBuffer(uint64_t size_bytes) {
  std::lock_guard lock(mutex_);
  while (!on_the_way_.empty() && HasArrived(on_the_way_.front())) {
    on_the_way_.pop_front();
  }
  const auto has_room = [&] { return bytes_left_ >= size_bytes && on_the_way_.size() < limit_; };
  if (!has_room()) {  // one receiver that is late must not hold up the others' bounce buffers
    std::erase_if(on_the_way_, [this](uint32_t request) { return HasArrived(request); });
  }
  void* const bounce_buffer =
      has_room() ? memory_.AllocateBounceBuffer(size_bytes, false) : nullptr;
  if (bounce_buffer != nullptr) {
    bytes_left_ -= size_bytes;
  }
  return bounce_buffer;
}

// Call it, and the next, with the lock held.
void Sender::GiveBounceBuffer(void* bounce_buffer, uint64_t size_bytes) {
  memory_.FreeBounceBuffer(bounce_buffer);
  bytes_left_ += size_bytes;
}

// Ends a send that has arrived, or whose receiver is dead. False: it is still under way.
bool Sender::HasArrived(uint32_t request) {
  const RequestLayout& slot = requests_.Slot(request);
  if (requests_.IsTransferring(request)) {
    requests_.FinishIfArrived(request);
  }
  if (!Requests::HasState(slot, RequestState::kComplete) || !Requests::IsUnwatched(slot)) {
    return false;
  }
  void* const bounce_buffer = reinterpret_cast<void*>(slot.user_address);
  const uint64_t size_bytes = slot.size_bytes;
  Completion ignored;
  requests_.Collect(request, &ignored);
  GiveBounceBuffer(bounce_buffer, size_bytes);
  return true;
}

}  // namespace ferry::client
