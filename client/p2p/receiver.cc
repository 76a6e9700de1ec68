#include "client/p2p/receiver.h"

#include <algorithm>

#include "engine/transfer.h"
#include "shm/atomic.h"
#include "shm/word_copy.h"

namespace ferry::client {

using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

namespace {

constexpr size_t kMaxHeld = 128;

}  // namespace

// ---- Small messages that are there --------------------------------------------------------------

// `lane` is the source's; `waits`: the caller would wait.
bool Receiver::TakeEager(const Message& message, uint32_t lane, bool waits, Completion* completion,
                         uint64_t* message_bytes) {
  if (!progress_.TryEnter()) {
    return false;
  }
  engine::EagerMessage found;
  const bool taken = (!waits || engine_.TakeTurn()) &&
                     receives_.TryTakeEager(lane, {message.context, message.peer, message.tag},
                                            message.size_bytes, &found);
  progress_.Exit();
  if (!taken) {
    return false;
  }
  const uint64_t size_bytes = std::min(found.size_bytes, message.size_bytes);
  ErrorCode error = ErrorCode::kOk;
  if (found.cell != shm::kNoCell) {
    error = memory_.CopyTo(message.buffer, receives_.CellBytes(found), size_bytes);
    receives_.ReleaseCell(found);
  } else if (!memory_.IsByStream(message.buffer)) [[likely]] {
    shm::CopyWords(message.buffer, found.payload, size_bytes);
  } else {
    error = memory_.CopyTo(message.buffer, found.payload, size_bytes);
  }
  if (error == ErrorCode::kOk && found.size_bytes > message.size_bytes) {
    error = ErrorCode::kTruncated;
  }
  *completion = {static_cast<int>(found.source), found.tag, error, size_bytes};
  *message_bytes = found.size_bytes;
  return true;
}

// Takes an eager message for a receive that is over with it, and notes the error of that for the
// caller.
bool Receiver::EndByEager(const Message& message, uint32_t lane, bool waits,
                          Completion* completion) {
  uint64_t message_bytes = 0;
  if (!TakeEager(message, lane, waits, completion, &message_bytes)) {
    return false;
  }
  (void)FailureWords::Tell(completion->error);
  return true;
}

bool Receiver::ReceiveNow(const Message& message, Completion* completion) {
  const uint32_t lane = engine_.LaneOf(message.peer);
  return !has_held() && engine_.HasMessage(lane) && memory_.IsPlain(message.buffer) &&
         progress_.poison() == ErrorCode::kOk && EndByEager(message, lane, false, completion);
}

// The lane is looked at with a pause between (most of a microsecond in all), before anything is
// done that costs more. Without the pauses these loads would keep the line from the sender, who is
// about to write to it: 60 ns one way instead of 28.
bool Receiver::AwaitAtOnce(const Message& message, Completion* completion) {
  const uint32_t lane = engine_.LaneOf(message.peer);
  if (lane >= daemon_lane_) {
    return false;  // daemons on its way may need this core; of a link only turns bring it
  }
  const bool is_long = message.size_bytes > shm::kCellBytes;
  const uint32_t most = is_long && first_looks_ != 1 ? kFirstLooksForLong : first_looks_;
  for (uint32_t looks = 0; !engine_.HasMessage(lane); shm::CpuPause()) {
    if (++looks >= most) {
      return false;
    }
  }
  return progress_.poison() == ErrorCode::kOk &&
         (EndByEager(message, lane, true, completion) ||
          (is_long && TakeAnnounced(message, lane, completion)));
}

// No request and no journal: the sender's transfer slot says all that others have to know, and if
// this rank dies they hear of that.
bool Receiver::TakeAnnounced(const Message& message, uint32_t lane, Completion* completion) {
  if (memory_.IsByStream(message.buffer) || !progress_.TryEnter()) {
    return false;
  }
  engine::AnnouncedMessage rts;
  const bool taken = receives_.FindRts(lane, {message.context, message.peer, message.tag}, &rts) &&
                     peer_memory_.IsAtHand(rts.source, rts.where) &&
                     receives_.TakeWhole(rts, message.size_bytes);
  progress_.Exit();
  if (!taken) {
    return false;
  }
  const uint64_t size_bytes = std::min(rts.size_bytes, message.size_bytes);
  ErrorCode error = ErrorCode::kOk;
  if (size_bytes != 0) {
    error = peer_memory_
                .CopyWithPeer(rts.source, rts.where, {static_cast<std::byte*>(message.buffer)},
                              size_bytes, PeerMemory::Direction::kFromPeer)
                .code();
  }
  (void)engine::EndChunk(*rts.transfer, rts.generation, 1, error);
  if (error != ErrorCode::kOk) [[unlikely]] {
    engine::Release(*rts.transfer, rts.generation);
  }
  statistics_.AddShared(shm::Statistic::kChunksCopiedByRank);
  progress_.WakeRank(rts.source);
  if (error == ErrorCode::kOk && rts.size_bytes > message.size_bytes) {
    error = ErrorCode::kTruncated;
  }
  const bool usable = error == ErrorCode::kOk || error == ErrorCode::kTruncated;
  *completion = {static_cast<int>(rts.source), rts.tag, FailureWords::Tell(error),
                 usable ? size_bytes : 0};
  return true;
}

// The request is complete before it is known.
bool Receiver::ReceiveAtOnce(uint32_t request, const Message& message, uint32_t lane) {
  Completion found;
  uint64_t message_bytes = 0;
  if (!TakeEager(message, lane, false, &found, &message_bytes)) {
    return false;
  }
  RequestLayout& slot = requests_.Slot(request);
  slot.kind = static_cast<uint32_t>(RequestKind::kReceive);
  slot.context = message.context;
  slot.peer = message.peer;
  slot.tag = message.tag;
  shm::StoreRelaxed(slot.size_bytes, message.size_bytes);  // as Requests::Fill
  slot.status_source = found.source;
  slot.status_tag = found.tag;
  slot.message_bytes = message_bytes;
  requests_.NoteFound(request, found.error);
  Requests::Complete(slot, found.error);
  return true;
}

// ---- Requests -----------------------------------------------------------------------------------

ErrorCode Receiver::Start(const Message& message, uint32_t* request) {
  ErrorCode error = requests_.CheckReceive(message);
  if (error == ErrorCode::kOk) {
    error = requests_.TakeSlot(request);
  }
  if (error != ErrorCode::kOk) {
    return error;
  }
  const uint32_t lane = engine_.LaneOf(message.peer);
  if (!has_held() && engine_.HasMessage(lane) && ReceiveAtOnce(*request, message, lane)) {
    return ErrorCode::kOk;
  }
  error = requests_.Fill(*request, message, RequestKind::kReceive);
  if (error == ErrorCode::kOk && MayHold(requests_.Slot(*request))) {
    requests_.Slot(*request).flags |= kRequestHeld;
    held_.push_back(*request);
    return ErrorCode::kOk;
  }
  if (error == ErrorCode::kOk) {
    PostHeld();
    error = requests_.Start(*request);
  }
  if (error != ErrorCode::kOk) {
    requests_.GiveUp(*request);
  }
  return error;
}

ErrorCode Receiver::Take(const Message& message, uint32_t* request) {
  return requests_.Take(message, RequestKind::kReceive, request);
}

// Links are turned only if the message has not come: a turn looks into the kernel.
bool Receiver::TryMatch(uint32_t request) {
  if (!progress_.TryEnter()) {
    return false;
  }
  engine::Effects effects;
  bool matched = receives_.ReceiveNow(request, effects);
  if (matched) {
    (void)progress_.TurnBusyLinks(effects);
  } else {
    if (progress_.TurnLinks(effects) != 0) {
      matched = receives_.ReceiveNow(request, effects);
    }
    if (effects.to_link) {
      (void)progress_.TurnLinks(effects);  // a rendezvous get
    }
  }
  progress_.Exit();
  requests_.NoteTransfers(effects);
  progress_.Perform(effects);
  return matched;
}

ErrorCode Receiver::TakeProbed(uint32_t request, const Message& pattern,
                               const Completion& envelope) {
  engine::Effects matched;
  const ErrorCode error = progress_.UnderLease([&](engine::Effects& effects) {
    engine::ProbeResult first;
    const ErrorCode found = receives_.Probe({pattern.context, pattern.peer, pattern.tag}, &first,
                                            engine::ReceiveEngine::Use::kTake);
    if (found != ErrorCode::kOk) {
      return found;
    }
    if (first.source != envelope.source || first.tag != envelope.tag ||
        first.size_bytes != envelope.size_bytes) {
      return ErrorCode::kWouldBlock;
    }
    const ErrorCode started = receives_.StartReceive(request, effects);
    matched = effects;
    return started;
  });
  requests_.HandOver(matched);
  return error;
}

// ---- Held receives ------------------------------------------------------------------------------

bool Receiver::MayHold(const RequestLayout& slot) const {
  return !progress_.threads() && slot.size_bytes <= shm::kCellBytes && held_.size() < kMaxHeld &&
         (slot.flags & shm::kRequestBounceBuffer) == 0 &&
         !memory_.IsByStream(reinterpret_cast<void*>(slot.user_address)) &&
         !progress_.MayBeRemote(slot.peer) && !receives_.HasUnexpected();
}

bool Receiver::IsHeldUp(uint32_t request) {
  TakeHeld();
  is_held_up_ = IsHeld(requests_.Slot(request));
  return is_held_up_;
}

// If a message cannot be taken this way, it and its receive are left to the engine.
void Receiver::TakeHeld() {
  while (has_held()) {
    const uint32_t request = held_.front();
    RequestLayout& slot = requests_.Slot(request);
    const uint32_t lane = engine_.LaneOf(slot.peer);
    if (!engine_.HasMessage(lane)) {
      return;
    }
    held_.pop_front();
    slot.flags &= ~kRequestHeld;
    const Message message{reinterpret_cast<void*>(slot.user_address), slot.size_bytes, slot.peer,
                          slot.tag, slot.context};
    if (!ReceiveAtOnce(request, message, lane)) {
      PostOne(request);
    }
  }
}

void Receiver::PostAllHeld() {
  while (has_held()) {
    const uint32_t request = held_.front();
    held_.pop_front();
    requests_.Slot(request).flags &= ~kRequestHeld;
    PostOne(request);
  }
}

// A held receive has already started: if posting fails, it ends with the error.
void Receiver::PostOne(uint32_t request) {
  if (const ErrorCode error = requests_.Start(request); error != ErrorCode::kOk) {
    Requests::Complete(requests_.Slot(request), error);
  }
}

}  // namespace ferry::client
