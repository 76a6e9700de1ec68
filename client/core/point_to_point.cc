// Client: starting sends and receives. See client.h.
#include <algorithm>
#include <array>
#include <cstring>

#include "client/core/progress.h"
#include "common/clock.h"
#include "shm/atomic.h"
#include "shm/inline_copy.h"

namespace ferry::client {

using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

namespace {

// Up to this size the rank's own copies, into its heap and out of it, beat the pipeline of staging
// blocks between nodes: they need no other thread, and the rank is awake anyway.
constexpr uint64_t kBounceMaxBytes = uint64_t{8} << 20;

}  // namespace

// ---- Sending ----------------------------------------------------------------------------------

// A small message inside the node. The copy into a slab cell happens outside the lease.
bool Client::SendLocal(const Message& message) {
  const auto destination = static_cast<uint32_t>(message.peer);
  const engine::SendArguments send{destination, message.context, message.tag, message.size_bytes};
  uint32_t cell = shm::kNoCell;
  if (message.size_bytes > shm::kInlineBytes) {
    if (!EnterLease()) {
      return false;
    }
    cell = engine_->TryTakeCell(destination);
    lease_.Release(Holder());
    if (cell == shm::kNoCell) {
      return false;
    }
    std::memcpy(engine_->CellBytes(destination, cell), message.buffer, message.size_bytes);
  }
  if (!EnterLease()) {
    return false;
  }
  const bool sent = engine_->TrySendLocal(send, message.buffer, cell);
  lease_.Release(Holder());
  if (sent) {
    shm::Wake(peers_.by_rank[destination].inbox.wake()).PublishLane(own_lane_);
  }
  return sent;
}

// Sends a small message that can leave at once, without a request.
bool Client::SendEager(const Message& message) {
  const auto destination = static_cast<uint32_t>(message.peer);
  if (!engine_->LaneIsOpen(destination)) [[unlikely]] {  // the first message there
    if (engine_->OpenLane(destination) != ErrorCode::kOk) {
      return false;  // a request will say why
    }
  }
  if ((message.size_bytes > eager_max_bytes_ && message.size_bytes > shm::kInlineBytes) ||
      message.synchronous) {
    return false;  // nobody says when an eager message is matched
  }
  if (memory_->IsByStream(message.buffer)) [[unlikely]] {
    return SendEagerByStream(message);
  }
  if (peers_.by_rank[destination].local) {
    return SendLocal(message);
  }
  const engine::SendArguments send{destination, message.context, message.tag, message.size_bytes};
  const auto sent = [](bool done) { return done ? ErrorCode::kOk : ErrorCode::kWouldBlock; };
  if (message.size_bytes <= shm::kInlineBytes) {
    return UnderLease([&](engine::Effects& effects) {
             return sent(engine_->TrySendInline(send, message.buffer, effects));
           }) == ErrorCode::kOk;
  }
  uint32_t cell = shm::kNoCell;
  (void)UnderLease([&](engine::Effects&) {
    cell = engine_->TryTakeCell(send.destination);
    return ErrorCode::kOk;
  });
  if (cell == shm::kNoCell) {
    return false;
  }
  std::memcpy(engine_->CellBytes(send.destination, cell), message.buffer, message.size_bytes);
  return UnderLease([&](engine::Effects& effects) {
           return sent(engine_->TrySendCell(send, cell, effects));
         }) == ErrorCode::kOk;
}

// The same from device memory: its bytes are brought here first, while no lease is held. False also
// if that fails; a request will find out why.
bool Client::SendEagerByStream(const Message& message) {
  std::array<std::byte, shm::kCellBytes> bytes;
  if (memory_->CopyFrom(bytes.data(), message.buffer, message.size_bytes) != ErrorCode::kOk) {
    return false;
  }
  Message here = message;
  here.buffer = bytes.data();
  return SendEager(here);
}

ErrorCode Client::StartSend(const Message& message, RequestHandle* handle) {
  if (SendEager(message) || SendStaged(message)) {
    *handle = kCompletedSend;
    return ErrorCode::kOk;
  }
  uint32_t request = 0;
  if (const ErrorCode error = Take(message, RequestKind::kSend, &request);
      error != ErrorCode::kOk) {
    return error;
  }
  *handle = requests_->HandleOf(request);
  const ErrorCode error = StartSlot(request);
  if (error != ErrorCode::kOk) {
    GiveUp(request);
    *handle = 0;
  }
  return error;
}

ErrorCode Client::Send(const Message& message, Completion* completion) {
  if (SendEager(message) || SendStaged(message)) {
    return ErrorCode::kOk;
  }
  uint32_t request = 0;
  if (const ErrorCode error = Take(message, RequestKind::kSend, &request);
      error != ErrorCode::kOk) {
    return error;
  }
  engine::LaneSet later;
  ErrorCode error = StartSlot(request, &later);
  if (error == ErrorCode::kOk) {
    WaitUntil([&] { return Advance(request); }, PolicyFor(message.peer), &later);
    Collect(request, completion);
  } else {
    GiveUp(request);
  }
  return error;
}

// ---- Receiving --------------------------------------------------------------------------------

ErrorCode Client::StartReceive(const Message& message, RequestHandle* handle) {
  uint32_t request = 0;
  ErrorCode error = TakeSlot(&request);
  if (error != ErrorCode::kOk) {
    return error;
  }
  *handle = requests_->HandleOf(request);
  const uint32_t lane = engine_->LaneOf(message.peer);
  if (held_.empty() && engine_->HasMessage(lane) && ReceiveAtOnce(request, message, lane)) {
    return ErrorCode::kOk;
  }
  error = FillSlot(request, message, RequestKind::kReceive);
  if (error == ErrorCode::kOk && MayHold(request)) {
    Hold(request);
    return ErrorCode::kOk;
  }
  if (error == ErrorCode::kOk) {
    PostHeld();
    error = StartSlot(request);
  }
  if (error != ErrorCode::kOk) {
    GiveUp(request);
  }
  return error;
}

// The same for a small message that is there already: the request is complete before it is known.
bool Client::ReceiveAtOnce(uint32_t request, const Message& message, uint32_t lane) {
  Completion found;
  uint64_t message_bytes = 0;
  if (!TakeEager(message, lane, false, &found, &message_bytes)) {
    return false;
  }
  RequestLayout& slot = requests_->Slot(request);
  slot.kind = static_cast<uint32_t>(RequestKind::kReceive);
  slot.context = message.context;
  slot.peer = message.peer;
  slot.tag = message.tag;
  slot.size_bytes = message.size_bytes;
  slot.status_source = found.source;
  slot.status_tag = found.tag;
  slot.message_bytes = message_bytes;
  shm::StoreRelaxed(slot.error, static_cast<int32_t>(found.error));
  // Pairs with Advance.
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kComplete));
  return true;
}

bool Client::TryReceiveNow(uint32_t request) {
  if (!lease_.TryAcquire(Holder())) {
    return false;
  }
  engine::Effects effects;
  const bool matched = engine_->ReceiveNow(request, effects);
  lease_.Release(Holder());
  NoteTransfers(effects);
  Perform(effects);
  return matched;
}

// Receives a small message of the node that is there, without a request. `lane` is its source's;
// `waits`: the caller would wait.
bool Client::TakeEager(const Message& message, uint32_t lane, bool waits, Completion* completion,
                       uint64_t* message_bytes) {
  if (!lease_.TryAcquire(Holder())) {
    return false;
  }
  engine::EagerMessage found;
  const bool taken = (!waits || engine_->TakeTurn()) &&
                     engine_->TryTakeEager(lane, {message.context, message.peer, message.tag},
                                           message.size_bytes, &found);
  lease_.Release(Holder());
  if (!taken) {
    return false;
  }
  const uint64_t size_bytes = std::min(found.size_bytes, message.size_bytes);
  ErrorCode error = ErrorCode::kOk;
  if (found.cell != shm::kNoCell) {
    error = memory_->CopyTo(message.buffer, engine_->CellBytes(found), size_bytes);
    engine_->ReleaseCell(found);
  } else if (!memory_->IsByStream(message.buffer)) [[likely]] {
    shm::CopyInline(message.buffer, found.payload, size_bytes);
  } else {
    error = memory_->CopyTo(message.buffer, found.payload, size_bytes);
  }
  if (error == ErrorCode::kOk && found.size_bytes > message.size_bytes) {
    error = ErrorCode::kTruncated;
  }
  *completion = {static_cast<int>(found.source), found.tag, FailureWords::Tell(error), size_bytes};
  *message_bytes = found.size_bytes;
  return true;
}

// The same for a message that may come in a moment. The lane is looked at with a pause between
// (most of a microsecond in all), before anything is done that costs more. Without the pauses these
// loads would keep the line from the sender, who is about to write to it: 60 ns one way instead of
// 28.
bool Client::ReceiveEager(const Message& message, Completion* completion) {
  const uint32_t lane = engine_->LaneOf(message.peer);
  if (lane == shm::DaemonLane(view_.inbox.local_size)) {
    return false;  // the daemons on the message's way may need this core
  }
  for (uint32_t looks = 0; !engine_->HasMessage(lane); shm::CpuPause()) {
    if (++looks >= first_looks_) {
      return false;
    }
  }
  uint64_t message_bytes = 0;
  return poison() == ErrorCode::kOk && TakeEager(message, lane, true, completion, &message_bytes);
}

// The message is often only a moment away, so the receive is posted only if it did not come while
// we polled.
ErrorCode Client::ReceiveUntil(const Message& message, uint64_t end_ns, Completion* completion,
                               RequestHandle* handle) {
  PostHeld();
  if (ReceiveEager(message, completion)) {
    return ErrorCode::kOk;
  }
  uint32_t request = 0;
  if (const ErrorCode error = Take(message, RequestKind::kReceive, &request);
      error != ErrorCode::kOk) {
    return error;
  }
  bool matched = false;
  wake_.Enter();
  const shm::WaitPolicy policy = PolicyFor(message.peer);
  shm::Waiter waiter(policy);
  // A receive that is advertised to its source is posted at once, or the message would come first.
  const bool advertise = engine_->MayAdvertise(requests_->Slot(request));
  do {
    matched = TryReceiveNow(request);
  } while (!matched && !advertise && !waiter.Idle());
  ErrorCode error = matched ? ErrorCode::kOk : StartSlot(request);
  bool is_complete = true;
  if (error == ErrorCode::kOk) {
    const auto is_over = [&] {
      is_complete = Advance(request);
      return is_complete || CoarseMonotonicNs() >= end_ns;
    };
    end_ns == UINT64_MAX ? WaitUntil([&] { return Advance(request); }, policy)
                         : WaitUntil(is_over, policy, nullptr, end_ns);
    if (is_complete) {
      Collect(request, completion);
    } else {
      *handle = requests_->HandleOf(request);
      error = ErrorCode::kWouldBlock;
    }
  } else {
    GiveUp(request);
  }
  LeaveLibrary();
  return error;
}

// ---- Both -------------------------------------------------------------------------------------

ErrorCode Client::TakeSlot(uint32_t* request) {
  if (const ErrorCode poisoned = poison(); poisoned != ErrorCode::kOk) {
    return FailureWords::Tell(poisoned);
  }
  *request = requests_->Take();
  return FailureWords::Tell(*request == 0 ? ErrorCode::kLimitExceeded : ErrorCode::kOk);
}

ErrorCode Client::Take(const Message& message, RequestKind kind, uint32_t* request) {
  ErrorCode error = TakeSlot(request);
  if (error != ErrorCode::kOk) {
    return error;
  }
  error = FillSlot(*request, message, kind);
  if (error != ErrorCode::kOk) {
    requests_->GiveBack(*request);
  }
  return error;
}

// Whether a block of the heap should stand in for the message's private memory. Where nobody else
// may reach that memory: for sends, whose data others fetch, and for receives that the daemon may
// have to fill. Also for messages between nodes that are copied here sooner than staged by both
// daemons.
bool Client::WantsBounce(const Message& message, RequestKind kind) const {
  if (!private_reachable_ && (kind == RequestKind::kSend || MayBeRemote(shm::kAnySource))) {
    return true;
  }
  return message.peer >= 0 && !peers_.by_rank[static_cast<uint32_t>(message.peer)].local &&
         message.size_bytes <= kBounceMaxBytes;
}

// Up to this size a message surely needs nobody else to reach its buffer. Others have to fetch an
// eager send that finds no cell, and a synchronous one of any size.
uint64_t Client::DirectMax(const Message& message, RequestKind kind) const {
  if (kind != RequestKind::kSend) {
    return eager_max_bytes_;
  }
  return message.synchronous ? 0 : std::min<uint64_t>(eager_max_bytes_, shm::kInlineBytes);
}

bool Client::MayBeRemote(int32_t peer) const {
  return peer < 0 ? peers_.rank_of_local.size() != size()
                  : !peers_.by_rank[static_cast<uint32_t>(peer)].local;
}

// Whether the message needs such a block as a shadow of device memory that only streams reach: to
// or from another node, if the daemon has no pipeline for it.
bool Client::NeedsBounce(const shm::Location& buffer, const Message& message,
                         RequestKind kind) const {
  if ((buffer.flags & shm::kLocationByStream) == 0 || !MayBeRemote(message.peer)) {
    return false;
  }
  return message.size_bytes > DirectMax(message, kind) &&
         !memory_->regions().ById(buffer.region)->staged;
}

// Whether such memory is better sent from a shadow, although the daemon has a pipeline for it.
bool Client::WantsShadow(const shm::Location& buffer, const Message& message,
                         RequestKind kind) const {
  return kind == RequestKind::kSend && (buffer.flags & shm::kLocationByStream) != 0 &&
         MayBeRemote(message.peer) && message.size_bytes > shm::kInlineBytes &&
         offloads_->IsWorthShadow(message.size_bytes, one_block_bytes_);
}

ErrorCode Client::FillSlot(uint32_t request, const Message& message, RequestKind kind) {
  RequestLayout& slot = requests_->Slot(request);
  slot.kind = static_cast<uint32_t>(kind);
  slot.context = message.context;
  slot.peer = message.peer;
  slot.tag = message.tag;
  slot.size_bytes = message.size_bytes;
  slot.user_address = reinterpret_cast<uint64_t>(message.buffer);
  slot.buffer = memory_->regions().Find(message.buffer, message.size_bytes);
  slot.status_source = message.peer;
  slot.status_tag = message.tag;
  slot.message_bytes = message.size_bytes;
  shm::StoreRelaxed(slot.error, 0);
  if (message.synchronous) {
    slot.flags |= shm::kRequestSynchronous;
  }
  const uint64_t unseen_max = private_reachable_ ? eager_max_bytes_ : DirectMax(message, kind);
  const bool is_private = slot.buffer.region == 0;
  const bool must = is_private ? !private_reachable_ : NeedsBounce(slot.buffer, message, kind);
  if (is_private ? message.size_bytes > unseen_max && WantsBounce(message, kind)
                 : must || WantsShadow(slot.buffer, message, kind)) {
    void* const block = StandIn(message.size_bytes, is_private, must);
    if (block != nullptr) {
      slot.flags |= shm::kRequestBounce;
      slot.buffer = memory_->regions().Find(block, message.size_bytes);
    } else if (must) {
      return FailureWords::Tell(ErrorCode::kOutOfMemory);
    }
  }
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kInactive));
  return ErrorCode::kOk;
}

void* Client::StandIn(uint64_t size_bytes, bool is_private, bool must) {
  if (is_private) {
    return memory_->AllocateBounce(size_bytes, must);
  }
  StatusOr<void*> shadow = offloads_->TakeShadow(size_bytes, must);
  return shadow.ok() ? *shadow : nullptr;
}

ErrorCode Client::StartSlot(uint32_t request, engine::LaneSet* later) {
  RequestLayout& slot = requests_->Slot(request);
  const bool is_send = slot.kind == static_cast<uint32_t>(RequestKind::kSend);
  // Eager sends and receives that are matched while polling never come here: they pay nothing.
  shm::StoreRelaxed(slot.start_ns, CoarseMonotonicNs());
  const auto* user = reinterpret_cast<const std::byte*>(slot.user_address);
  ErrorCode copied = ErrorCode::kOk;
  const bool synchronous = (slot.flags & shm::kRequestSynchronous) != 0;
  if (is_send && slot.size_bytes <= shm::kInlineBytes && !synchronous) {
    slot.descriptor_kind = static_cast<uint8_t>(shm::DescriptorKind::kEager);
    copied = memory_->CopyFrom(slot.payload, user, slot.size_bytes);
  } else if (is_send && (slot.flags & shm::kRequestBounce) != 0) {
    std::byte* const block =
        memory_->regions().ById(slot.buffer.region)->base + slot.buffer.address;
    copied = memory_->IsByStream(user) ? offloads_->CopyIn(block, user, slot.size_bytes)
                                       : memory_->CopyFrom(block, user, slot.size_bytes);
  }
  if (copied != ErrorCode::kOk) [[unlikely]] {
    return FailureWords::Tell(copied);
  }
  if (is_send && !engine_->LaneIsOpen(static_cast<uint32_t>(slot.peer))) [[unlikely]] {
    OpenLaneFor(request);
  }
  engine::Effects matched;
  const auto start = [&](engine::Effects& effects) {
    if (is_send) {
      engine_->StartSend(request, effects);
      return ErrorCode::kOk;
    }
    const ErrorCode started = engine_->StartReceive(request, effects);
    if (effects.transfer_count != 0) [[unlikely]] {
      matched = effects;
    }
    return started;
  };
  const ErrorCode error = UnderLease(start, later);
  if (matched.transfer_count != 0) [[unlikely]] {
    HandOver(matched);
  }
  if (is_send && (slot.buffer.flags & shm::kLocationByStream) != 0 && IsTransferring(request)) {
    NoteOffered(request);
  }
  return FailureWords::Tell(error);
}

// If opening the lane fails, so will the request.
void Client::OpenLaneFor(uint32_t request) {
  const RequestLayout& slot = requests_->Slot(request);
  const auto destination = static_cast<uint32_t>(slot.peer);
  if (engine_->OpenLane(destination) != ErrorCode::kOk) {
    failure_words_.Note(request, shm::LoadAcquire(slot.generation), MapInbox(destination));
  }
}

// Called when messages were there already, for the receive just started or for earlier ones. While
// the rank computes, large messages are copied by their senders, if those wait; else by the worker.
void Client::HandOver(const engine::Effects& matched) {
  NoteTransfers(matched);
  const bool needs_worker = std::any_of(
      matched.transfers.begin(), matched.transfers.begin() + matched.transfer_count,
      [this](uint32_t request) {
        const RequestLayout& slot = requests_->Slot(request);
        const shm::WakeLayout* sender = peers_.Wake(slot.transfer_rank);
        return slot.size_bytes > worker_min_bytes_ && shm::LoadRelaxed(sender->inside) == 0;
      });
  if (needs_worker) {
    engine::LaneSet self;
    self.Add(own_lane_);
    CallWorker(self, false);
  }
}

// ---- Persistent requests ------------------------------------------------------------------------

ErrorCode Client::MakePersistent(const Message& message, RequestKind kind, RequestHandle* handle) {
  uint32_t request = 0;
  const ErrorCode error = Take(message, kind, &request);
  if (error == ErrorCode::kOk) {
    requests_->Slot(request).flags |=
        shm::kRequestPersistent | (message.ready ? shm::kRequestReady : 0);
    channels_->NoteMade(request);
    *handle = requests_->HandleOf(request);
  }
  return error;
}

ErrorCode Client::Start(RequestHandle handle) {
  const uint32_t request = requests_->Resolve(handle);
  if (request == 0) {
    return ErrorCode::kInvalidRequest;
  }
  RequestLayout& slot = requests_->Slot(request);
  if ((slot.flags & shm::kRequestPersistent) == 0 ||
      shm::LoadAcquire(slot.state) != static_cast<uint32_t>(RequestState::kInactive)) {
    return ErrorCode::kInvalidRequest;
  }
  if (poison() != ErrorCode::kOk) {
    return poison();
  }
  if ((slot.flags & shm::kRequestPaired) != 0) {
    return StartPaired(request);
  }
  if (!requests_->Renew(request)) {
    return ErrorCode::kInvalidRequest;
  }
  PostHeld();
  const bool is_send = slot.kind == static_cast<uint32_t>(RequestKind::kSend);
  if (is_send) {
    const Message message{reinterpret_cast<void*>(slot.user_address),
                          slot.size_bytes,
                          slot.peer,
                          slot.tag,
                          slot.context,
                          (slot.flags & shm::kRequestSynchronous) != 0};
    if (SendEager(message) || SendStaged(message)) {
      shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kComplete));
      return ErrorCode::kOk;
    }
  }
  return StartSlot(request);
}

Status Client::CheckStart(RequestHandle handle) const {
  const uint32_t request = requests_->Resolve(handle);
  if (request == 0 || !offloads_->any()) {
    return {};
  }
  const RequestLayout& slot = requests_->Slot(request);
  return slot.kind == static_cast<uint32_t>(RequestKind::kSend)
             ? offloads_->CheckSynchronized(reinterpret_cast<const void*>(slot.user_address),
                                            slot.size_bytes)
             : Status();
}

ErrorCode Client::FreePersistent(RequestHandle handle) {
  const uint32_t request = requests_->Resolve(handle);
  if (request == 0) {
    return ErrorCode::kInvalidRequest;
  }
  RequestLayout& slot = requests_->Slot(request);
  if ((slot.flags & shm::kRequestPersistent) == 0 ||
      shm::LoadAcquire(slot.state) != static_cast<uint32_t>(RequestState::kInactive)) {
    return ErrorCode::kInvalidRequest;
  }
  if (IsEnqueued(handle)) {
    return ErrorCode::kInvalidRequest;
  }
  queues_->Release(request);
  slot.flags &= ~shm::kRequestPersistent;
  GiveUp(request);
  return ErrorCode::kOk;
}

// ---- Probe, cancel, barrier ---------------------------------------------------------------------

ErrorCode Client::Probe(const Message& pattern, bool block, Completion* found) {
  PostHeld();
  ErrorCode result = ErrorCode::kWouldBlock;
  const auto look = [&] {
    engine::ProbeResult probe;
    result = UnderLease([&](engine::Effects&) {
      return engine_->Probe({pattern.context, pattern.peer, pattern.tag}, &probe);
    });
    if (result == ErrorCode::kOk) {
      *found = {probe.source, probe.tag, ErrorCode::kOk, probe.size_bytes};
    }
    return result != ErrorCode::kWouldBlock || poison() != ErrorCode::kOk;
  };
  if (block) {
    WaitUntil(look, PolicyFor(pattern.peer));
  } else {
    (void)PollOnce();
    (void)look();
  }
  return poison() != ErrorCode::kOk ? poison() : result;
}

bool Client::Cancel(RequestHandle handle) {
  PostHeld();
  const uint32_t request = requests_->Resolve(handle);
  return request != 0 && UnderLease([&](engine::Effects& effects) {
                           return engine_->Cancel(request, effects) ? ErrorCode::kOk
                                                                    : ErrorCode::kWouldBlock;
                         }) == ErrorCode::kOk;
}

// Dissemination (Hensgen, Finkel and Manber, 1988): in round k a rank tells the one 2^k further.
ErrorCode Client::Barrier() {
  const uint32_t barrier = barriers_++ & 0xffffU;
  for (uint32_t distance = 1, round = 0; distance < size(); distance *= 2, ++round) {
    const auto tag = static_cast<int32_t>(barrier << 8 | round);
    const auto to = static_cast<int32_t>((rank() + distance) % size());
    const auto from = static_cast<int32_t>((rank() + size() - distance) % size());
    RequestHandle send = 0;
    RequestHandle receive = 0;
    Completion sent;
    Completion received;
    if (ErrorCode error = StartReceive({nullptr, 0, from, tag, kInternalContext}, &receive);
        error != ErrorCode::kOk) {
      return error;
    }
    ErrorCode error = StartSend({nullptr, 0, to, tag, kInternalContext}, &send);
    if (error == ErrorCode::kOk) {
      Wait(send, &sent);
      error = sent.error;
    }
    if (error != ErrorCode::kOk) {
      (void)Cancel(receive);
    }
    Wait(receive, &received);
    if (error != ErrorCode::kOk || received.error != ErrorCode::kOk) {
      return error != ErrorCode::kOk ? error : received.error;
    }
  }
  return ErrorCode::kOk;
}

}  // namespace ferry::client
