#include "engine/send_engine.h"

#include <cstring>
#include <optional>

#include "engine/peer_ends.h"
#include "engine/peer_paths.h"
#include "engine/rank_engine.h"
#include "engine/receiver_first.h"
#include "engine/request_end.h"
#include "engine/transfer.h"
#include "shm/atomic.h"
#include "shm/histograms.h"
#include "shm/word_copy.h"

namespace ferry::engine {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestLayout;
using shm::RequestState;
using shm::RtrBook;

namespace {

Descriptor MessageDescriptor(DescriptorKind kind, uint32_t source, const SendArguments& send) {
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(kind);
  descriptor.source = source;
  descriptor.destination = send.destination;
  descriptor.context = send.context;
  descriptor.tag = send.tag;
  descriptor.size_bytes = send.size_bytes;
  return descriptor;
}

}  // namespace

ErrorCode SendEngine::OpenLane(uint32_t destination) {
  shm::LaneProducer& producer = ProducerTo(destination);
  if (!producer.has_lane()) {
    if (const ErrorCode refusal = peers_.Refusal(destination); refusal != ErrorCode::kOk) {
      return refusal;
    }
    const uint32_t own_lane = peers_.by_rank[view_.rank].local_index;
    producer.Bind(peers_.Inbox(destination).lane(own_lane));
  }
  producer.Open(view_.rank);
  return ErrorCode::kOk;
}

// Pushes a message's first descriptor: to a local peer at once, to a core in the open transaction,
// which the caller commits.
bool SendEngine::Push(uint32_t destination, const Descriptor& descriptor, Effects& effects) {
  if (peers_.by_rank[destination].local) {
    return PushLocal(destination, descriptor, effects);
  }
  SenderSide side(view_.by_rank.rtrs[destination]);
  (void)side.Send(descriptor.context, descriptor.tag, /*large=*/false);
  return PushRemote(destination, descriptor, side, effects);
}

bool SendEngine::PushLocal(uint32_t destination, const Descriptor& descriptor, Effects& effects) {
  const Peer& peer = peers_.by_rank[destination];
  shm::LaneProducer& producer = ProducerTo(destination);
  effects.lanes.Add(peer.local_index);
  if (!producer.TryPush(descriptor)) {
    producer.AskForRoom();
    if (!producer.TryPush(descriptor)) {
      effects.urgent.Add(peer.local_index);  // a full lane must be drained
      return false;
    }
  }
  statistics_.Add(shm::Statistic::kMessagesSent);
  statistics_.Add(shm::Statistic::kBytesSent, descriptor.size_bytes);
  shm::CountSize(shm::HistogramsOf(*view_.layout), descriptor.size_bytes);
  return true;
}

// `side` has counted the message already.
bool SendEngine::PushRemote(uint32_t destination, const Descriptor& descriptor,
                            const SenderSide& side, Effects& effects) {
  const Core core = CoreTo(destination);
  if (!StageTo(core, descriptor, effects)) {
    return false;
  }
  shm::PeerWords& peer = view_.by_rank.peers[destination];
  journal_.Set(&peer.sent, peer.sent + 1);
  if (const uint32_t pushed =
          PeerPaths::PushedBytes(descriptor.kind, descriptor.flags, descriptor.size_bytes);
      pushed != 0) {
    journal_.Set(&peer.pushed, peer.pushed + pushed);
  }
  NoteSent(destination, side);
  if (core == Core::kDaemon) {
    paths_.CountByDaemon(destination, descriptor.size_bytes);
  }
  statistics_.Add(shm::Statistic::kMessagesSent);
  statistics_.Add(shm::Statistic::kBytesSent, descriptor.size_bytes);
  shm::CountSize(shm::HistogramsOf(*view_.layout), descriptor.size_bytes);
  return true;
}

bool SendEngine::TrySendLocal(const SendArguments& send, const void* data, uint32_t cell) {
  shm::LaneProducer& producer = producers_[peers_.by_rank[send.destination].local_index];
  const bool in_cell = cell != shm::kNoCell;
  Descriptor* slot = CanLeave(send.destination) ? producer.TryReserve() : nullptr;
  if (slot == nullptr) {
    if (in_cell) {
      producer.ReturnCell(cell);
    }
    return false;
  }
  slot->kind = static_cast<uint8_t>(DescriptorKind::kEager);
  slot->flags = in_cell ? shm::kFlagCell : 0;
  slot->cell = static_cast<uint16_t>(in_cell ? cell : 0);
  slot->source = view_.rank;
  slot->destination = send.destination;
  slot->context = send.context;
  slot->tag = send.tag;
  slot->size_bytes = send.size_bytes;
  if (!in_cell) {
    shm::CopyWords(slot->payload, data, send.size_bytes);
  }
  producer.Publish(slot);
  if (in_cell) {
    producer.PrepareCell(send.size_bytes);
  }
  statistics_.Add(shm::Statistic::kMessagesSent);
  statistics_.Add(shm::Statistic::kBytesSent, send.size_bytes);
  shm::CountSize(shm::HistogramsOf(*view_.layout), send.size_bytes);
  return true;
}

bool SendEngine::TrySendInline(const SendArguments& send, const void* data, Effects& effects) {
  if (!CanLeave(send.destination)) {
    return false;
  }
  Descriptor descriptor = MessageDescriptor(DescriptorKind::kEager, view_.rank, send);
  if (send.size_bytes != 0) {  // then `data` may be null
    std::memcpy(descriptor.payload, data, send.size_bytes);
  }
  const bool pushed = Push(send.destination, descriptor, effects);
  return pushed && journal_.Commit();
}

uint32_t SendEngine::TryTakeCell(uint32_t destination) {
  shm::LaneProducer& producer = ProducerTo(destination);
  if (!CanLeave(destination) || !producer.is_open() || !producer.HasRoom()) {
    return shm::kNoCell;
  }
  const uint32_t cell = producer.TryTakeCell();
  const bool by_link = !peers_.by_rank[destination].local && CoreTo(destination) == Core::kLink;
  return cell == shm::kNoCell || !by_link ? cell : cell | kCellByLink;
}

shm::LaneProducer& SendEngine::ProducerOfCell(uint32_t destination, uint32_t cell) {
  const Peer& peer = peers_.by_rank[destination];
  return peer.local ? producers_[peer.local_index] : ProducerOf(CoreOfCell(cell));
}

uint8_t* SendEngine::CellBytes(uint32_t destination, uint32_t cell) {
  return ProducerOfCell(destination, cell).Cell(cell & ~kCellByLink);
}

bool SendEngine::TrySendCell(const SendArguments& send, uint32_t cell, Effects& effects) {
  Descriptor descriptor = MessageDescriptor(DescriptorKind::kEager, view_.rank, send);
  descriptor.flags = shm::kFlagCell;
  descriptor.cell = static_cast<uint16_t>(cell & ~kCellByLink);
  const bool on_its_way =
      peers_.by_rank[send.destination].local || CoreOfCell(cell) == CoreTo(send.destination);
  if (on_its_way && CanLeave(send.destination) && Push(send.destination, descriptor, effects)) {
    return journal_.Commit();
  }
  ProducerOfCell(send.destination, cell).ReturnCell(cell & ~kCellByLink);
  return false;
}

void SendEngine::StartSend(uint32_t request, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  const auto destination = static_cast<uint32_t>(slot.peer);
  const bool hears_of_cut = (slot.flags & kRequestUnwatched) != 0 ? ends_.HasToHearOfCut(slot.peer)
                                                                  : ends_.MustHearOfCut(slot.peer);
  ErrorCode death = hears_of_cut ? ErrorCode::kLinkDown : ends_.DeathOf(slot.peer);
  if (death == ErrorCode::kOk && !ProducerTo(destination).has_lane()) [[unlikely]] {
    death = OpenLane(destination);
  }
  if (death != ErrorCode::kOk) {
    Complete(slot, death);
    return;
  }
  if (MayPut(slot)) {
    LookForRtrs(slot, effects);
  }
  if (CanLeave(destination) && Rts(request, destination, effects)) {
    journal_.Commit();
  } else {
    Enqueue(request);
    statistics_.Add(shm::Statistic::kSendsQueued);
  }
}

// Pushes the first descriptor of a request's message. All other changes join the open transaction,
// which the caller commits. False: no room.
bool SendEngine::Rts(uint32_t request, uint32_t destination, Effects& effects) {
  return peers_.by_rank[destination].local ? AnnounceLocal(request, destination, effects)
                                           : AnnounceRemote(request, destination, effects);
}

bool SendEngine::AnnounceLocal(uint32_t request, uint32_t destination, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  const SendArguments send{destination, slot.context, slot.tag, slot.size_bytes};
  const bool eager = slot.descriptor_kind == static_cast<uint8_t>(DescriptorKind::kEager);
  const uint32_t before = shm::LoadRelaxed(slot.state);
  const Descriptor descriptor = eager ? EagerRts(request, send) : LocalRtsOf(request, send);
  IntendPush(request, destination);
  if (!eager) {  // the state first: the other side may be done before Push returns
    shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kTransferring));
  }
  if (!Push(destination, descriptor, effects)) {
    shm::StoreRelease(slot.state, before);
    shm::StoreRelease(view_.layout->push_request, 0);
    if (!eager) {  // the RTS did not leave: a request cancelled now leaves its slot free
      shm::StoreRelaxed(view_.inbox.transfer(request)->state,
                        static_cast<uint32_t>(shm::TransferState::kIdle));
    }
    return false;
  }
  journal_.Set(&view_.layout->push_request, 0U);
  if (eager) {
    SetSent(slot);
    effects.self = true;
  } else {
    effects.urgent.Add(peers_.by_rank[destination].local_index);
  }
  return true;
}

bool SendEngine::AnnounceRemote(uint32_t request, uint32_t destination, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  const SendArguments send{destination, slot.context, slot.tag, slot.size_bytes};
  const bool eager = slot.descriptor_kind == static_cast<uint8_t>(DescriptorKind::kEager);
  SenderSide side(view_.by_rank.rtrs[destination]);
  const std::optional<Rtr> rtr =
      side.Send(slot.context, slot.tag,
                /*large=*/!eager && MayPut(slot) && CoreTo(destination) == Core::kDaemon);
  Descriptor descriptor = eager ? EagerRts(request, send) : RemoteRtsOf(request, send);
  if (rtr) {
    descriptor = PutRts(request, descriptor, *rtr);
  }
  if (!PushRemote(destination, descriptor, side, effects)) {
    return false;
  }
  if (eager) {
    SetSent(slot);
    effects.self = true;
  } else {
    journal_.Set(&slot.state, static_cast<uint32_t>(RequestState::kRemoteWait));
  }
  return true;
}

// Joins the open transaction: an eager message has left.
void SendEngine::SetSent(RequestLayout& slot) {
  shm::StoreRelaxed(slot.error, static_cast<int32_t>(ErrorCode::kOk));
  journal_.Set(&slot.state, static_cast<uint32_t>(RequestState::kComplete));
}

// A lane in a peer's inbox is beyond the journal: notes there the push that is about to happen.
void SendEngine::IntendPush(uint32_t request, uint32_t destination) {
  const uint32_t own_lane = peers_.by_rank[view_.rank].local_index;
  const shm::LaneLayout& lane = *peers_.by_rank[destination].inbox.lane(own_lane);  // open
  shm::StoreRelaxed(view_.layout->push_number, shm::LoadRelaxed(lane.producer.tail));
  // Pairs with FinishPush: publishes the number.
  shm::StoreRelease(view_.layout->push_request, request);
}

void SendEngine::FinishPush() {
  const uint32_t request = shm::LoadAcquire(view_.layout->push_request);  // Pairs with IntendPush.
  if (!IsRequest(request)) {
    return;
  }
  RequestLayout& slot = *view_.request(request);
  const auto destination = static_cast<uint32_t>(shm::LoadRelaxed(slot.peer));
  if (destination >= view_.job_size || !peers_.by_rank[destination].local) {
    PoisonCorrupt({shm::FaultKind::kRequestPeer, request, destination});
    return;
  }
  const uint32_t own_lane = peers_.by_rank[view_.rank].local_index;
  const InboxView& inbox = peers_.Inbox(destination);
  const shm::LaneLayout* const lane = inbox.valid() ? inbox.lane(own_lane) : nullptr;
  const uint64_t number = view_.layout->push_number;
  const bool happened =  // where the destination is gone, it does not matter
      lane != nullptr &&
      shm::LoadAcquire(lane->slots[number % shm::kLaneSlots].stamp) == shm::StampOf(number);
  const bool queued = view_.by_rank.peers[destination].queue_first == request;
  if (happened && slot.descriptor_kind == static_cast<uint8_t>(DescriptorKind::kEager)) {
    SetSent(slot);
  } else if (!happened && queued) {
    journal_.Set(&slot.state, static_cast<uint32_t>(RequestState::kQueued));
  }
  if (happened && queued) {
    Unqueue(request);
  }
  journal_.Set(&view_.layout->push_request, 0U);
  journal_.Commit();
}

Descriptor SendEngine::EagerRts(uint32_t request, const SendArguments& send) const {
  Descriptor descriptor = MessageDescriptor(DescriptorKind::kEager, view_.rank, send);
  std::memcpy(descriptor.payload, view_.request(request)->payload, shm::kInlineBytes);
  return descriptor;
}

// Describes the source in the transfer slot that belongs to the request.
Descriptor SendEngine::LocalRtsOf(uint32_t request, const SendArguments& send) {
  RequestLayout& slot = *view_.request(request);
  AnnounceTransfer(
      *view_.inbox.transfer(request), slot.generation,
      {slot.buffer, slot.size_bytes, options_.chunk_bytes, view_.rank, send.destination});
  slot.transfer_rank = view_.rank;
  slot.transfer_index = request;
  slot.transfer_generation = slot.generation;
  Descriptor descriptor = MessageDescriptor(DescriptorKind::kRts, view_.rank, send);
  shm::LocalRts rts{};
  rts.transfer = request;
  rts.generation = slot.generation;
  std::memcpy(descriptor.payload, &rts, sizeof(rts));
  return descriptor;
}

// Tells the core where the source is; it adds what a remote read needs.
Descriptor SendEngine::RemoteRtsOf(uint32_t request, const SendArguments& send) {
  RequestLayout& slot = *view_.request(request);
  const bool by_link = CoreTo(send.destination) == Core::kLink;
  slot.transfer_index = 0;  // none of our own
  slot.link_end = static_cast<uint32_t>(shm::LinkEnd::kNone);
  slot.flags = by_link ? slot.flags | shm::kRequestByLink : slot.flags & ~shm::kRequestByLink;
  Descriptor descriptor = MessageDescriptor(DescriptorKind::kRemoteRts, view_.rank, send);
  descriptor.flags = slot.buffer.region == 0 ? shm::kFlagSourcePrivate : 0;
  if ((slot.flags & shm::kRequestSynchronous) != 0) {
    descriptor.flags |= shm::kFlagSynchronous;
  } else if (by_link && MayPush(send.destination, slot.size_bytes)) {
    descriptor.flags |= shm::kFlagPushed;
  }
  shm::RemoteRts rts{};
  rts.send_request = request;
  rts.send_generation = slot.generation;
  rts.where = slot.buffer;
  std::memcpy(descriptor.payload, &rts, sizeof(rts));
  return descriptor;
}

bool SendEngine::MayPush(uint32_t destination, uint64_t size_bytes) const {
  const shm::PeerWords& peer = view_.by_rank.peers[destination];
  const uint32_t out = shm::LoadRelaxed(peer.pushed) - shm::LoadRelaxed(peer.pushed_credited);
  return size_bytes <= options_.push_max_bytes && out < kPushWindow &&
         size_bytes <= kPushWindow - out;
}

// The descriptor stays in the lane; the rank that finds it there drops it.
bool SendEngine::CancelAnnounced(RequestLayout& slot, uint32_t request, Effects& effects) {
  if (slot.kind != static_cast<uint32_t>(shm::RequestKind::kSend) ||
      slot.transfer_rank != view_.rank || slot.transfer_index != request ||
      !WithdrawRts(*view_.inbox.transfer(request), slot.transfer_generation)) {
    return false;
  }
  shm::StoreRelaxed(slot.error, static_cast<int32_t>(ErrorCode::kCancelled));
  effects.self = true;
  return EndTransfer(slot, shm::LoadAcquire(slot.generation));
}

bool SendEngine::AwaitsReceive(const RequestLayout& slot) const {
  return slot.kind == static_cast<uint32_t>(shm::RequestKind::kSend) && IsRank(slot.peer) &&
         slot.link_end == static_cast<uint32_t>(shm::LinkEnd::kNone) &&
         shm::LoadRelaxed(slot.state) == static_cast<uint32_t>(RequestState::kRemoteWait);
}

// The matching side on the other node has to agree; its answer ends the request either way.
bool SendEngine::Retract(uint32_t request, Effects& effects) {
  const RequestLayout& slot = *view_.request(request);
  if (!AwaitsReceive(slot)) {
    return false;
  }
  if (slot.rtr == static_cast<uint32_t>(shm::RtrState::kQuiet)) {
    receiver_first_.Withdraw(request, effects);
    journal_.Commit();
  }
  return true;
}

bool SendEngine::StageRetraction(uint32_t request, Effects& effects) {
  const RequestLayout& slot = *view_.request(request);
  Descriptor descriptor =
      MessageDescriptor(DescriptorKind::kRetract, view_.rank,
                        {static_cast<uint32_t>(slot.peer), slot.context, slot.tag, 0});
  shm::RemoteRts rts{};
  rts.send_request = request;
  rts.send_generation = slot.generation;
  std::memcpy(descriptor.payload, &rts, sizeof(rts));
  const bool by_link = (slot.flags & shm::kRequestByLink) != 0;
  return StageTo(by_link ? Core::kLink : Core::kDaemon, descriptor, effects);
}

// ---- One-sided operations -----------------------------------------------------------------------

uint32_t SendEngine::TryTakeCommandCell(Core core) {
  shm::LaneProducer& producer = ProducerOf(core);
  uint32_t cell = producer.TryTakeCell();
  if (cell == shm::kNoCell) {
    // All cells belong to commands and messages that the core has yet to take. They are so many
    // that it passes one of the places where it looks for a waiting producer.
    producer.AskForRoom();
    cell = producer.TryTakeCell();
  }
  return cell == shm::kNoCell || core == Core::kDaemon ? cell : cell | kCellByLink;
}

// No transaction: the command changes nothing else in the segments, and its stamp alone says
// whether there is one. A holder killed before the stamp leaves none, but at most a lost cell; one
// killed after it leaves a whole one, behind which the next producer goes on (shm/lane.h). The
// number that belongs to it is the rank's own, and dies with it.
bool SendEngine::TryCommand(Core core, const Descriptor& command) {
  shm::LaneProducer& producer = ProducerOf(core);
  if (!producer.TryPush(command)) {
    producer.AskForRoom();
    if (!producer.TryPush(command)) {
      return false;
    }
  }
  if (core == Core::kDaemon && !peers_.by_rank[command.destination].local) {
    paths_.CountByDaemon(command.destination, command.size_bytes);
    journal_.Commit();
  }
  return true;
}

// ---- The rank's own queue of sends that wait for room or credit ---------------------------------

void SendEngine::Enqueue(uint32_t request) {
  RequestLayout& slot = *view_.request(request);
  shm::PeerWords& peer = view_.by_rank.peers[static_cast<uint32_t>(slot.peer)];
  slot.next = 0;
  if (peer.queue_first == 0) {
    view_.by_rank.SetBusy(static_cast<uint32_t>(slot.peer));
    journal_.Set(&peer.queue_first, request);
  } else {
    journal_.Set(&view_.request(peer.queue_last)->next, request);
  }
  journal_.Set(&peer.queue_last, request);
  journal_.Set(&view_.layout->queued_sends, view_.layout->queued_sends + 1);
  journal_.Set(&slot.state, static_cast<uint32_t>(RequestState::kQueued));
  journal_.Commit();
}

void SendEngine::FlushQueues(Effects& effects) {
  paths_.ForEachBusyPeer([&](uint32_t rank) {
    if (view_.by_rank.peers[rank].queue_first != 0) {
      FlushQueue(rank, effects);
    }
    paths_.RestIfIdle(rank);
    return view_.layout->queued_sends != 0;
  });
}

void SendEngine::FlushQueue(uint32_t destination, Effects& effects) {
  shm::PeerWords& peer = view_.by_rank.peers[destination];
  for (uint32_t n = 0;
       n < kDrainBudget && HasCredit(destination) && shm::LoadRelaxed(peer.dead) == 0; ++n) {
    const uint32_t request = shm::LoadRelaxed(peer.queue_first);
    if (request == 0) {
      return;
    }
    // The state, too: a queue that bites its tail comes back to one that has been sent.
    if (request >= view_.request_limit ||
        view_.request(request)->peer != static_cast<int32_t>(destination) ||
        shm::LoadRelaxed(view_.request(request)->state) !=
            static_cast<uint32_t>(RequestState::kQueued)) {
      PoisonCorrupt({shm::FaultKind::kRequestChain, request, 0});
      return;
    }
    const uint32_t next = view_.request(request)->next;
    if (!Rts(request, destination, effects)) {
      return;
    }
    journal_.Set(&peer.queue_first, next);
    if (next == 0) {
      journal_.Set(&peer.queue_last, 0U);
    }
    journal_.Set(&view_.layout->queued_sends, view_.layout->queued_sends - 1);
    journal_.Commit();
  }
}

// Takes a queued send out of the middle of its queue (cancel, death), in the open transaction.
void SendEngine::Unqueue(uint32_t request) {
  const auto destination = static_cast<uint32_t>(shm::LoadRelaxed(view_.request(request)->peer));
  if (destination >= view_.job_size) {
    PoisonCorrupt({shm::FaultKind::kRequestPeer, request, destination});
    return;
  }
  shm::PeerWords& peer = view_.by_rank.peers[destination];
  uint32_t previous = 0;
  uint32_t current = shm::LoadRelaxed(peer.queue_first);
  for (uint32_t n = 0; current != 0 && current != request && n < view_.request_limit; ++n) {
    if (current >= view_.request_limit) {
      PoisonCorrupt({shm::FaultKind::kRequestChain, current, 0});
      return;
    }
    previous = current;
    current = shm::LoadRelaxed(view_.request(current)->next);
  }
  if (current == request) {
    const uint32_t next = view_.request(request)->next;
    journal_.Set(previous == 0 ? &peer.queue_first : &view_.request(previous)->next, next);
    if (next == 0) {
      journal_.Set(&peer.queue_last, previous);
    }
  }
  journal_.Set(&view_.layout->queued_sends, view_.layout->queued_sends - 1);
}

// ---- Sends into receives that RTRs name ---------------------------------------------------------

// Drains RTRs that wait in the lane, before a large message takes another way.
void SendEngine::LookForRtrs(const RequestLayout& slot, Effects& effects) {
  const uint32_t lane = LaneOf(Core::kDaemon);
  const auto peer = static_cast<uint32_t>(slot.peer);
  if (!peers_.by_rank[peer].local && PathTo(peer) == shm::PeerPath::kDaemon && HasMessage(lane)) {
    (void)engine_.DrainLane(lane, kDrainBudget, effects);
  }
}

Descriptor SendEngine::PutRts(uint32_t request, const Descriptor& rts, const Rtr& rtr) const {
  const RequestLayout& slot = *view_.request(request);
  Descriptor descriptor = rts;
  descriptor.kind = static_cast<uint8_t>(DescriptorKind::kPut);
  const shm::PutCommand put{request, slot.generation, rtr.receive, rtr.generation, slot.buffer};
  std::memcpy(descriptor.payload, &put, sizeof(put));
  return descriptor;
}

// Joins the open transaction: a message has taken its place in the order of those to the peer.
void SendEngine::NoteSent(uint32_t destination, const SenderSide& side) {
  RtrBook& book = view_.by_rank.rtrs[destination];
  shm::SentEnvelope* const last = &book.history[(side.sent() - 1) % SenderSide::kHistory];
  journal_.Set(&book.sent, side.sent());
  journal_.SetBytes(last, &side.envelope(side.sent() - 1), sizeof(*last));
  if (side.held() != book.held) {
    NoteHeld(&book, side);
  }
}

void SendEngine::NoteHeld(RtrBook* book, const SenderSide& side) {
  for (uint32_t i = 0; i < side.held(); ++i) {
    journal_.SetBytes(&book->rtrs[i], &side.rtr(i), sizeof(book->rtrs[i]));
  }
  journal_.Set(&book->held, side.held());
}

void SendEngine::TakeRtr(const Arrival& arrival) {
  const Descriptor& d = arrival.descriptor;
  shm::RtrWords words;
  std::memcpy(&words, d.payload, sizeof(words));
  RtrBook& book = view_.by_rank.rtrs[arrival.source];
  SenderSide side(book);
  if (static_cast<DescriptorKind>(d.kind) == DescriptorKind::kWithdraw) {
    side.Withdraw(words.receive, words.generation);
  } else if (PathTo(arrival.source) == shm::PeerPath::kDaemon) {  // only that core knows it
    (void)side.Keep({d.context, d.tag, words.receive, words.generation, words.seen});
  }
  NoteHeld(&book, side);
  engine_.Consume(arrival);
  journal_.Commit();
}

}  // namespace ferry::engine
