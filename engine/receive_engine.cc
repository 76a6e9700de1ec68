#include "engine/receive_engine.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "engine/message_watch.h"
#include "engine/peer_ends.h"
#include "engine/peer_paths.h"
#include "engine/rank_engine.h"
#include "engine/receiver_first.h"
#include "engine/rndv_get_commands.h"
#include "engine/rndv_get_end.h"
#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::engine {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestLayout;
using shm::RequestState;

namespace {

bool Matches(const shm::Envelope& pattern, const shm::Envelope& envelope) {
  return pattern.context == envelope.context &&
         (pattern.source == envelope.source || pattern.source == shm::kAnySource) &&
         (pattern.tag == envelope.tag || pattern.tag == shm::kAnyTag);
}

bool IsMessage(const Descriptor& descriptor) {
  const auto kind = static_cast<DescriptorKind>(descriptor.kind);
  return kind == DescriptorKind::kEager || kind == DescriptorKind::kRts ||
         kind == DescriptorKind::kRemoteRts;
}

constinit std::atomic<shm::MessageWatch*> message_watch{nullptr};

// Null: there is none.
inline shm::MessageWatch* Watch() {
  return message_watch.load(std::memory_order_acquire);  // Pairs with WatchMessages.
}

// Tells of a message that came for a receive that waited.
inline void TellExpected(const shm::Envelope& envelope, uint64_t size_bytes) {
  if (shm::MessageWatch* const watch = Watch(); watch != nullptr) [[unlikely]] {
    const shm::MessageSeen seen{envelope.context, envelope.source, envelope.tag, size_bytes};
    watch->Arrived(seen, true);
    watch->Matched(seen, true);
  }
}

}  // namespace

void WatchMessages(shm::MessageWatch* watch) {
  message_watch.store(watch, std::memory_order_release);  // Pairs with Watch.
}

// Returns true if the sender of a message has not taken it back: only an RTS of the node can be.
inline bool ReceiveEngine::IsToBeHad(uint32_t source, uint8_t kind, const uint8_t* payload,
                                     Use use) const {
  return kind != static_cast<uint8_t>(DescriptorKind::kRts) || IsRtsToBeHad(source, payload, use);
}

// Takes, or only looks at, an RTS of the node. Taking one decides for it: its sender cannot cancel
// it any more.
bool ReceiveEngine::IsRtsToBeHad(uint32_t source, const uint8_t* payload, Use use) const {
  shm::LocalRts rts;
  std::memcpy(&rts, payload, sizeof(rts));
  shm::TransferLayout* const transfer =
      source < view_.job_size ? peers_.Inbox(source).transfer(rts.transfer) : nullptr;
  return transfer == nullptr ||  // Match says so
         (use == Use::kTake ? TakeRts(*transfer, rts.generation)
                            : IsRtsThere(*transfer, rts.generation));
}

// Returns true if the message is for the receive that ReceiveNow was called with.
inline bool ReceiveEngine::MatchesDirect(const shm::Envelope& envelope) const {
  if (direct_ == 0) {
    return false;
  }
  const RequestLayout& slot = *view_.request(direct_);
  return Matches({slot.context, slot.peer, slot.tag}, envelope);
}

// Finds the earliest unexpected message that matches, and was not taken back. 0: there is none.
uint32_t ReceiveEngine::FindUnexpected(const shm::Envelope& pattern, Use use) {
  for (;;) {
    const uint32_t entry = match_.FindUnexpected(pattern);
    if (entry == 0) {
      return 0;
    }
    const shm::MatchEntry& found = match_.Entry(entry);
    if (IsToBeHad(static_cast<uint32_t>(found.source), found.kind, found.payload, use)) [[likely]] {
      return entry;
    }
    match_.Remove(entry);
    if (match_.corrupt() != ErrorCode::kOk) [[unlikely]] {
      return 0;  // the caller looks
    }
    journal_.Commit();
  }
}

// Gives the request the earliest unexpected message that it matches. False: there is none.
bool ReceiveEngine::TakeUnexpected(uint32_t request, Effects& effects) {
  const RequestLayout& slot = *view_.request(request);
  const uint32_t entry = FindUnexpected({slot.context, slot.peer, slot.tag}, Use::kTake);
  if (entry == 0) {
    return false;
  }
  const shm::MatchEntry& found = match_.Entry(entry);
  Arrival arrival{};
  arrival.source = static_cast<uint32_t>(found.source);
  arrival.lane = found.lane;
  arrival.descriptor.kind = found.kind;
  arrival.descriptor.flags = found.flags;
  arrival.descriptor.cell = found.cell;
  arrival.descriptor.source = arrival.source;
  arrival.descriptor.tag = found.tag;
  arrival.descriptor.size_bytes = found.size_bytes;
  std::memcpy(arrival.descriptor.payload, found.payload, shm::kInlineBytes);
  if (arrival.lane >= consumers_.size() || !engine_.IsPlausible(arrival)) [[unlikely]] {
    PoisonCorrupt({shm::FaultKind::kMatchState, entry, found.state});
    return false;
  }
  if (shm::MessageWatch* const watch = Watch(); watch != nullptr) [[unlikely]] {
    watch->QueuesAre(match_.posted_count(), match_.unexpected_count());
    watch->Matched({slot.context, found.source, found.tag, found.size_bytes}, false);
  }
  match_.Remove(entry);
  if (match_.corrupt() != ErrorCode::kOk) [[unlikely]] {
    PoisonCorrupt(match_.fault());
    return false;
  }
  const Descriptor& d = arrival.descriptor;
  if (const uint32_t pushed = PeerPaths::PushedBytes(d.kind, d.flags, d.size_bytes); pushed != 0) {
    paths_.Owe(arrival.source, 0, pushed);
  }
  Match(request, arrival, effects);
  return true;
}

bool ReceiveEngine::ReceiveNow(uint32_t request, Effects& effects) {
  if (ends_.HasToHearOfCut(view_.request(request)->peer)) [[unlikely]] {
    return false;  // StartReceive says so
  }
  if (match_.unexpected_count() != 0 && TakeUnexpected(request, effects)) {
    return true;
  }
  direct_ = request;
  (void)engine_.Progress(effects);
  return std::exchange(direct_, 0) == 0;
}

// Gives the request the next message of its lane, if that is for it and there already: two stores
// of the journal instead of the many that it takes to post a receive and to take it out again.
// Messages before it that receives posted earlier wait for are handed to them; at any other, which
// would have to be kept, it stops. False: the receive has to be posted.
bool ReceiveEngine::TakeArrived(uint32_t request, Effects& effects) {
  const uint32_t lane = engine_.LaneOf(view_.request(request)->peer);
  if (!HasMessage(lane)) {
    return false;
  }
  direct_ = request;
  for (uint32_t n = 0; n < kDrainBudget && direct_ != 0; ++n) {
    Arrival arrival;
    if (!engine_.Fetch(lane, &arrival)) {
      break;
    }
    const Descriptor& d = arrival.descriptor;
    const shm::Envelope envelope{d.context, static_cast<int32_t>(arrival.source), d.tag};
    if (!IsMessage(d) || !(MatchesDirect(envelope) || match_.FindPosted(envelope) != 0) ||
        !engine_.Handle(arrival, effects)) {
      break;
    }
    engine_.NoticeRoom(lane, effects);
  }
  return std::exchange(direct_, 0) == 0;
}

// Returns the next message of a lane of the node. Null: there is none, Progress has more to do, or
// there is a watch: only Progress tells of messages.
const Descriptor* ReceiveEngine::PeekForShortWay(uint32_t lane) const {
  const Descriptor* next = consumers_[lane].Peek();
  return next == nullptr || IsRemote(lane) || match_.unexpected_count() != 0 || HasDuties() ||
                 ends_.HasNews() || (*consumers_[lane].HeadWord() + 1) % kRoomNoticeEvery == 0 ||
                 Watch() != nullptr
             ? nullptr
             : next;
}

void ReceiveEngine::ConsumeShortWay(uint32_t lane, uint64_t size_bytes, shm::Path path) {
  uint64_t* const head = consumers_[lane].HeadWord();
  shm::StoreRelease(*head, *head + 1);  // Pairs with LaneProducer::HasRoomAt.
  statistics_.Add(shm::Statistic::kMessagesReceived);
  statistics_.Add(shm::Statistic::kBytesReceived, size_bytes);
  statistics_.AddMessage(path, size_bytes);
}

// No journal: to consume the message is one store, and nothing else changes.
bool ReceiveEngine::TryTakeEager(uint32_t lane, const shm::Envelope& pattern,
                                 uint64_t capacity_bytes, EagerMessage* message) {
  const Descriptor* next = PeekForShortWay(lane);
  if (next == nullptr) {
    return false;
  }
  // Each word is read once, then checked: its producer can still write to it.
  const uint8_t flags = shm::LoadRelaxed(next->flags);
  const uint16_t cell = shm::LoadRelaxed(next->cell);
  const bool in_cell = (flags & shm::kFlagCell) != 0;
  message->source = peers_.rank_of_local[lane];
  message->tag = shm::LoadRelaxed(next->tag);
  message->size_bytes = shm::LoadRelaxed(next->size_bytes);
  message->lane = lane;
  message->cell = in_cell ? cell : shm::kNoCell;
  const shm::Envelope envelope{shm::LoadRelaxed(next->context),
                               static_cast<int32_t>(message->source), message->tag};
  if (shm::LoadRelaxed(next->kind) != static_cast<uint8_t>(DescriptorKind::kEager) ||
      !Matches(pattern, envelope) || message->tag < 0 || (in_cell && cell >= shm::kLaneCells) ||
      message->size_bytes > (in_cell ? shm::kCellBytes : shm::kInlineBytes) ||
      (match_.posted_count() != 0 && match_.FindPosted(envelope) != 0)) {
    return false;
  }
  std::memcpy(message->payload, next->payload, shm::kInlineBytes);
  ConsumeShortWay(lane, std::min(message->size_bytes, capacity_bytes),
                  in_cell ? shm::Path::kCell : shm::Path::kInline);
  return true;
}

bool ReceiveEngine::FindRts(uint32_t lane, const shm::Envelope& pattern,
                            AnnouncedMessage* announced) {
  Arrival arrival;
  if (PeekForShortWay(lane) == nullptr || !engine_.Fetch(lane, &arrival)) {
    return false;
  }
  const Descriptor& d = arrival.descriptor;
  const shm::Envelope envelope{d.context, static_cast<int32_t>(arrival.source), d.tag};
  if (d.kind != static_cast<uint8_t>(DescriptorKind::kRts) || !Matches(pattern, envelope) ||
      !engine_.IsPlausible(arrival) || ends_.DeathOf(envelope.source) != ErrorCode::kOk ||
      (match_.posted_count() != 0 && match_.FindPosted(envelope) != 0)) {
    return false;
  }
  shm::LocalRts rts;
  std::memcpy(&rts, d.payload, sizeof(rts));
  shm::TransferLayout* const transfer = peers_.Inbox(arrival.source).transfer(rts.transfer);
  if (transfer == nullptr || d.size_bytes > options_.single_chunk_max_bytes ||
      !TakeRts(*transfer, rts.generation)) {
    return false;
  }
  *announced = {arrival.source, d.tag,          d.size_bytes,       lane,
                transfer,       rts.generation, SourceOf(*transfer)};
  return true;
}

// A rank that dies before the chunk has ended leaves its sender to the news of its death.
bool ReceiveEngine::TakeWhole(const AnnouncedMessage& announced, uint64_t capacity_bytes) {
  const uint64_t size_bytes = std::min(announced.size_bytes, capacity_bytes);
  if (!MatchWhole(*announced.transfer, announced.generation, size_bytes)) {
    return false;
  }
  ConsumeShortWay(announced.lane, size_bytes,
                  announced.where.region != 0 ? shm::Path::kHeapCopy : shm::Path::kProcessVm);
  return true;
}

ErrorCode ReceiveEngine::StartReceive(uint32_t request, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  const shm::Envelope pattern{slot.context, slot.peer, slot.tag};
  if (ends_.MustHearOfCut(slot.peer)) {  // what comes now may not be the next that was sent
    Complete(slot, ErrorCode::kLinkDown);
    return ErrorCode::kOk;
  }
  if (TakeUnexpected(request, effects)) {
    return ErrorCode::kOk;
  }
  if (is_alarmed_ || match_.corrupt() != ErrorCode::kOk) [[unlikely]] {
    if (const ErrorCode error = Ailment(); error != ErrorCode::kOk) {
      return error;
    }
  }
  if (TakeArrived(request, effects)) {
    return ErrorCode::kOk;
  }
  if (const ErrorCode death = ends_.DeathOf(slot.peer); death != ErrorCode::kOk) {
    Complete(slot, death);
    return ErrorCode::kOk;
  }
  // Not while one posted earlier could match the same message.
  const bool announce = receiver_first_.MaySendRtr(slot) && match_.FindPosted(pattern) == 0;
  slot.rtr = static_cast<uint32_t>(shm::RtrState::kQuiet);
  const uint32_t entry = match_.Post(pattern, request);
  if (entry == 0) {
    journal_.Abandon();
    const ErrorCode error = Ailment();
    return error != ErrorCode::kOk ? error : ErrorCode::kLimitExceeded;
  }
  slot.match_entry = entry;
  journal_.Set(&slot.state, static_cast<uint32_t>(RequestState::kPosted));
  if (announce) {
    receiver_first_.SendRtr(request, effects);
  }
  journal_.Commit();
  if (shm::MessageWatch* const watch = Watch(); watch != nullptr) [[unlikely]] {
    watch->QueuesAre(match_.posted_count(), match_.unexpected_count());
  }
  return ErrorCode::kOk;
}

// Returns kCorrupt once the match table, or an entry found in it, is corrupt: the rank is poisoned.
ErrorCode ReceiveEngine::Ailment() {
  if (match_.corrupt() != ErrorCode::kOk) {
    PoisonCorrupt(match_.fault());
  }
  return wake_.poison() == ErrorCode::kCorrupt ? ErrorCode::kCorrupt : ErrorCode::kOk;
}

ErrorCode ReceiveEngine::Probe(const shm::Envelope& pattern, ProbeResult* result, Use use) {
  if (ends_.MustHearOfCut(pattern.source)) {
    return ErrorCode::kLinkDown;
  }
  const uint32_t entry = FindUnexpected(pattern, use);
  if (entry == 0) {
    if (const ErrorCode error = Ailment(); error != ErrorCode::kOk) {
      return error;
    }
    const ErrorCode death = ends_.DeathOf(pattern.source);
    return death == ErrorCode::kOk ? ErrorCode::kWouldBlock : death;
  }
  const shm::MatchEntry& found = match_.Entry(entry);
  *result = {found.source, found.tag, found.size_bytes};
  return ErrorCode::kOk;
}

bool ReceiveEngine::Unpost(const RequestLayout& slot) {
  match_.Remove(slot.match_entry);
  if (match_.corrupt() != ErrorCode::kOk) {
    PoisonCorrupt(match_.fault());
    return false;
  }
  return true;
}

bool ReceiveEngine::HandleMessage(const Arrival& arrival, Effects& effects) {
  const Descriptor& d = arrival.descriptor;
  const shm::Envelope envelope{d.context, static_cast<int32_t>(arrival.source), d.tag};
  const uint32_t posted = match_.FindPosted(envelope);
  if ((posted != 0 || MatchesDirect(envelope)) && !IsToBeHad(arrival.source, d.kind, d.payload))
      [[unlikely]] {
    engine_.Consume(arrival);  // its sender has cancelled it
    journal_.Commit();
  } else if (posted != 0) {
    const uint32_t request = shm::LoadRelaxed(match_.Entry(posted).request);
    if (!IsRequest(request)) {
      PoisonCorrupt({shm::FaultKind::kMatchRequest, posted, request});
      return false;
    }
    match_.Remove(posted);
    if (match_.corrupt() != ErrorCode::kOk) [[unlikely]] {
      PoisonCorrupt(match_.fault());
      return false;
    }
    engine_.Consume(arrival, /*matched=*/true);
    TellExpected(envelope, d.size_bytes);
    Match(request, arrival, effects);
    effects.self = true;
  } else if (MatchesDirect(envelope)) {
    engine_.Consume(arrival, /*matched=*/true);
    TellExpected(envelope, d.size_bytes);
    Match(std::exchange(direct_, 0), arrival, effects);
  } else {
    Descriptor known = d;
    known.source = arrival.source;  // a local peer's word for it does not count
    if (match_.AddUnexpected(known, arrival.lane) == 0) {
      if (match_.corrupt() != ErrorCode::kOk) {
        PoisonCorrupt(match_.fault());
      } else {
        Poison(ErrorCode::kLimitExceeded);
      }
      return false;
    }
    if (shm::MessageWatch* const watch = Watch(); watch != nullptr) [[unlikely]] {
      watch->Arrived({envelope.context, envelope.source, envelope.tag, d.size_bytes}, false);
    }
    statistics_.Add(shm::Statistic::kUnexpectedMessages);
    engine_.Consume(arrival);
    journal_.Commit();
    if (shm::MessageWatch* const watch = Watch(); watch != nullptr) [[unlikely]] {
      watch->QueuesAre(match_.posted_count(), match_.unexpected_count());
    }
    effects.self = true;  // another thread may be probing
  }
  return true;
}

// The sender, on another node, takes its RTS back. The engine that matches messages decides that,
// under the lease: the rank need not call anything. If the RTS is not among the
// unexpected messages it has been matched, and the rendezvous get tells the sender how it went.
// False: the answer finds no room.
bool ReceiveEngine::HandleRetract(const Arrival& arrival, Effects& effects) {
  const Descriptor& d = arrival.descriptor;
  shm::RemoteRts rts;
  std::memcpy(&rts, d.payload, sizeof(rts));
  const uint32_t entry = match_.FindRts({d.context, static_cast<int32_t>(arrival.source), d.tag},
                                        arrival.lane, rts.key);
  if (entry != 0) {
    const shm::MatchEntry& found = match_.Entry(entry);
    Descriptor answer{};
    answer.kind = static_cast<uint8_t>(DescriptorKind::kRetracted);
    answer.source = view_.rank;
    answer.destination = arrival.source;
    std::memcpy(answer.payload, &rts, sizeof(rts));
    if (!StageTo(CoreOf(arrival.lane), answer, effects)) {
      return false;
    }
    if (const uint32_t pushed = PeerPaths::PushedBytes(found.kind, found.flags, found.size_bytes);
        pushed != 0) {
      paths_.Owe(arrival.source, 0, pushed);
    }
    match_.Remove(entry);
  }
  if (match_.corrupt() != ErrorCode::kOk) [[unlikely]] {
    PoisonCorrupt(match_.fault());
    return false;
  }
  engine_.Consume(arrival);
  journal_.Commit();
  return true;
}

// Completes the open transaction: the match table's change, the request's new state, and the
// caller's stores. The request's other words are plain stores: no thread reads them before the new
// state, and a successor that finds the old state writes them again.
void ReceiveEngine::Match(uint32_t request, const Arrival& arrival, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  const Descriptor& d = arrival.descriptor;
  const auto kind = static_cast<DescriptorKind>(d.kind);
  slot.status_source = static_cast<int32_t>(arrival.source);
  slot.status_tag = d.tag;
  slot.message_bytes = d.size_bytes;
  shm::StoreRelaxed(slot.error,
                    static_cast<int32_t>(d.size_bytes > slot.size_bytes ? ErrorCode::kTruncated
                                                                        : ErrorCode::kOk));
  slot.descriptor_kind = d.kind;
  slot.descriptor_flags = d.flags;
  slot.lane = arrival.lane;
  RequestState state = RequestState::kLanded;
  if (kind == DescriptorKind::kEager) {
    slot.cell = d.cell;
    std::memcpy(slot.payload, d.payload, shm::kInlineBytes);
  } else if (kind == DescriptorKind::kRts) {
    state = RequestState::kTransferring;
    OpenTransfer(slot, arrival);
  } else {
    state = RequestState::kRemoteWait;
    slot.link_end = static_cast<uint32_t>(
        (d.flags & shm::kFlagLinkDown) != 0 ? shm::LinkEnd::kParted : shm::LinkEnd::kNone);
    rndv_get_commands_.Describe(slot, request, arrival);
  }
  CountArrival(slot, arrival);
  receiver_first_.EndRtr(request, arrival, effects);
  journal_.Set(&slot.state, static_cast<uint32_t>(state));
  if (state == RequestState::kRemoteWait) {
    rndv_get_commands_.Stage(
        request,
        effects);  // from the dead, too: the core may hold the data, and answers
  }
  journal_.Commit();
  if (state != RequestState::kTransferring) {
    return;
  }
  if (ends_.DeathOf(static_cast<int32_t>(arrival.source)) != ErrorCode::kOk) [[unlikely]] {
    ends_.FailIfEnded(request, effects);  // announced before the death, but the data will not come
  } else {
    PublishTransfer(request, arrival.source, effects);
  }
}

// Names the transfer slot in the sender's inbox; nothing there changes yet.
void ReceiveEngine::OpenTransfer(RequestLayout& slot, const Arrival& arrival) {
  shm::LocalRts rts;
  std::memcpy(&rts, arrival.descriptor.payload, sizeof(rts));
  slot.transfer_rank = arrival.source;
  slot.transfer_index = rts.transfer;
  slot.transfer_generation = rts.generation;
}

// Fills in the destination; from then on all participants may copy.
void ReceiveEngine::PublishTransfer(uint32_t request, uint32_t source, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  shm::TransferLayout* transfer = TransferOf(slot);
  const uint64_t size_bytes = std::min(slot.message_bytes, slot.size_bytes);
  if (transfer == nullptr ||
      !MatchTransfer(*transfer, slot.transfer_generation, slot.buffer, size_bytes)) {
    statistics_.Add(shm::Statistic::kErrors);
    const ErrorCode refusal = peers_.Refusal(source);
    // With an inbox, it announces nothing of the kind.
    Complete(slot, refusal == ErrorCode::kOk ? ErrorCode::kCorrupt : refusal);
    return;
  }
  effects.AddTransfer(request);
  if (size_bytes > options_.single_chunk_max_bytes) {
    effects.wakes.Add(peers_.by_rank[source].local_index);  // the sender may help to copy
  }
}

void ReceiveEngine::RepublishTransfers() {
  const uint32_t fresh =
      std::min(shm::LoadAcquire(view_.layout->request_fresh), view_.request_limit);
  for (uint32_t request = 1; request < fresh; ++request) {
    const RequestLayout& slot = *view_.request(request);
    if (shm::LoadAcquire(slot.state) != static_cast<uint32_t>(RequestState::kTransferring) ||
        slot.kind != static_cast<uint32_t>(shm::RequestKind::kReceive)) {
      continue;
    }
    if (shm::TransferLayout* transfer = TransferOf(slot);
        transfer != nullptr) {  // one that is published already stays as it is
      (void)MatchTransfer(*transfer, slot.transfer_generation, slot.buffer,
                          std::min(slot.message_bytes, slot.size_bytes));
    }
  }
}

shm::Path ReceiveEngine::PathOf(const RequestLayout& slot, const Arrival& arrival) const {
  using shm::Path;
  const uint8_t flags = arrival.descriptor.flags;
  switch (static_cast<DescriptorKind>(arrival.descriptor.kind)) {
    case DescriptorKind::kEager:
      if (IsRemote(arrival.lane)) {
        return Path::kPacket;
      }
      return (flags & shm::kFlagCell) != 0 ? Path::kCell : Path::kInline;
    case DescriptorKind::kRts: {
      const shm::TransferLayout* transfer = TransferOf(slot);
      const bool heap = transfer != nullptr && shm::LoadRelaxed(transfer->source.region) != 0;
      return heap ? Path::kHeapCopy : Path::kProcessVm;
    }
    default:  // kRndvGetDone
      if ((flags & kRndvGetStaged) != 0) {
        return Path::kStaged;
      }
      return (slot.flags & shm::kRequestBounceBuffer) != 0 ? Path::kBounce : Path::kRdma;
  }
}

void ReceiveEngine::CountArrival(const RequestLayout& slot, const Arrival& arrival) {
  const uint64_t size_bytes = std::min(slot.message_bytes, slot.size_bytes);
  statistics_.Add(shm::Statistic::kMessagesReceived);
  statistics_.Add(shm::Statistic::kBytesReceived, size_bytes);
  if (const auto kind = static_cast<DescriptorKind>(arrival.descriptor.kind);
      kind == DescriptorKind::kEager || kind == DescriptorKind::kRts) {
    statistics_.AddMessage(PathOf(slot, arrival), size_bytes);  // else its end says which it was
  }
  if (runner_ == Runner::kWorker) {
    statistics_.Add(shm::Statistic::kWorkerMatches);
  }
}

}  // namespace ferry::engine
