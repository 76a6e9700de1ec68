// RankEngine: receives that the ranks of other nodes may write into, and sends that do
// (receiver-first rendezvous; engine/rendezvous/rtr.h has the rules). See rank_engine.h.
#include <algorithm>
#include <cstring>

#include "engine/rank_engine.h"
#include "engine/rendezvous/receiver_side.h"
#include "shm/atomic.h"

namespace ferry::engine {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestLayout;
using shm::RequestState;
using shm::RtrBook;
using shm::RtrState;

namespace {

RtrState StateOf(const RequestLayout& slot) { return static_cast<RtrState>(slot.rtr); }

}  // namespace

// ---- Receiving -------------------------------------------------------------------------------

bool RankEngine::MaySendRtr(const RequestLayout& slot) const {
  return options_.receiver_first_min_bytes != 0 &&
         slot.size_bytes >= options_.receiver_first_min_bytes && slot.buffer.region != 0 &&
         IsAdvertisable({slot.context, slot.peer, slot.tag}) && IsRank(slot.peer) &&
         !peers_.by_rank[static_cast<uint32_t>(slot.peer)].local &&
         InwardPath(static_cast<uint32_t>(slot.peer)) == shm::PeerPath::kDaemon;
}

// Tells the source of a receive that is being posted, in the open transaction. Without room it is
// not told: its message comes by another way then.
void RankEngine::SendRtr(uint32_t request, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  if (!ProducerOf(Core::kDaemon).HasRoom()) {
    return;
  }
  ReceiveByRtr receive;
  const Rtr rtr = receive.SendRtr({slot.context, slot.peer, slot.tag}, request, slot.generation,
                                  view_.layout->rtrs[static_cast<uint32_t>(slot.peer)].taken);
  if (StageRtr(DescriptorKind::kRtr, 0, rtr, effects)) {
    journal_.Set(&slot.rtr, static_cast<uint32_t>(receive.state()));
    statistics_.Add(shm::Statistic::kRtrs);
  }
}

// Joins the open transaction. False: no room.
bool RankEngine::StageRtr(DescriptorKind kind, uint8_t flags, const Rtr& rtr, Effects& effects) {
  const RequestLayout& slot = *view_.request(rtr.receive);
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(kind);
  descriptor.flags = flags;
  descriptor.source = view_.rank;
  descriptor.destination = static_cast<uint32_t>(slot.peer);
  descriptor.context = rtr.context;
  descriptor.tag = rtr.tag;
  descriptor.size_bytes = slot.size_bytes;
  const shm::RtrWords words{rtr.receive, rtr.generation, rtr.seen, slot.buffer};
  std::memcpy(descriptor.payload, &words, sizeof(words));
  return StageTo(Core::kDaemon, descriptor, effects);
}

// Joins the open transaction: a message came for the receive by another way. The daemon learns it
// by the rendezvous get, unless that is for a direct link; else it is told if there is room; it
// would find out when the request is used anew.
void RankEngine::EndRtr(uint32_t request, const Arrival& arrival, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  ReceiveByRtr receive(StateOf(slot));
  if (receive.state() == RtrState::kQuiet) {
    return;
  }
  receive.Match();
  journal_.Set(&slot.rtr, static_cast<uint32_t>(receive.state()));
  const bool is_fetched_there =
      arrival.lane == LaneOf(Core::kDaemon) &&
      arrival.descriptor.kind != static_cast<uint8_t>(DescriptorKind::kEager);
  if (!is_fetched_there && ProducerOf(Core::kDaemon).HasRoom()) {
    (void)StageRtr(DescriptorKind::kWithdraw, shm::kFlagMatched,
                   {slot.context, slot.tag, request, slot.generation, 0}, effects);
  }
}

// Joins the open transaction: asks for a receive's RTR back, or for a send's RTS; without
// room, later.
void RankEngine::Withdraw(uint32_t request, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  const bool staged =
      AwaitsReceive(slot)
          ? StageRetraction(request, effects)
          : StageRtr(DescriptorKind::kWithdraw, 0,
                     {slot.context, slot.tag, request, slot.generation, 0}, effects);
  journal_.Set(&slot.rtr,
               static_cast<uint32_t>(staged ? RtrState::kWithdrawing : RtrState::kToWithdraw));
  if (!staged) {
    journal_.Set(&view_.layout->withdrawals, 1U);
  }
}

// The lane was full when these were cancelled: seldom enough to look at all requests.
void RankEngine::FlushWithdrawals(Effects& effects) {
  const uint32_t fresh =
      std::min(shm::LoadAcquire(view_.layout->request_fresh), view_.request_limit);
  bool is_left = false;
  for (uint32_t request = 1; request < fresh; ++request) {
    const RequestLayout& slot = *view_.request(request);
    if (StateOf(slot) != RtrState::kToWithdraw ||
        !(AwaitsWithdrawal(slot) || AwaitsReceive(slot))) {
      continue;
    }
    const Core core = AwaitsReceive(slot) && (slot.flags & shm::kRequestByLink) != 0
                          ? Core::kLink
                          : Core::kDaemon;
    if (core == Core::kLink && runner_ == Runner::kWorker) {
      is_left = true;
      continue;
    }
    if (shm::LaneProducer& producer = ProducerOf(core); !producer.HasRoom()) {
      producer.AskForRoom();
      is_left = true;
      continue;
    }
    Withdraw(request, effects);
    journal_.Commit();
  }
  if (!is_left) {
    journal_.Set(&view_.layout->withdrawals, 0U);
    journal_.Commit();
  }
}

// Whether the request is a receive that is posted still, or that only waits for its RTR.
bool RankEngine::AwaitsWithdrawal(const RequestLayout& slot) const {
  const auto state = static_cast<RequestState>(shm::LoadRelaxed(slot.state));
  return slot.kind == static_cast<uint32_t>(shm::RequestKind::kReceive) && IsRank(slot.peer) &&
         (state == RequestState::kPosted || state == RequestState::kRemoteWait);
}

// Whether the request is a send that another node was told of, and may answer.
bool RankEngine::AwaitsReceive(const RequestLayout& slot) const {
  return slot.kind == static_cast<uint32_t>(shm::RequestKind::kSend) && IsRank(slot.peer) &&
         slot.link_end == static_cast<uint32_t>(shm::LinkEnd::kNone) &&
         shm::LoadRelaxed(slot.state) == static_cast<uint32_t>(RequestState::kRemoteWait);
}

// A posted receive cannot end before its RTR has: its source might be writing already. It leaves
// the match table, so that nothing else comes for it, and ends with `error` once the daemon says
// that nobody will write.
void RankEngine::FailReceiveByRtr(uint32_t request, ErrorCode error, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  match_.Remove(slot.match_entry);
  if (match_.corrupt() != ErrorCode::kOk) {
    PoisonCorrupt(match_.fault());
    return;
  }
  slot.status_source = slot.peer;
  slot.lane = LaneOf(Core::kDaemon);
  slot.transfer_index = 0;
  shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
  journal_.Set(&slot.state, static_cast<uint32_t>(RequestState::kRemoteWait));
  if (StateOf(slot) == RtrState::kOut) {
    Withdraw(request, effects);
  }
  journal_.Commit();
}

// The daemon has the RTR back, or its peer is gone and will not write any more.
void RankEngine::HandleWithdrawn(const Arrival& arrival, Effects& effects) {
  shm::TransferResult result;
  std::memcpy(&result, arrival.descriptor.payload, sizeof(result));
  if (!IsRequest(result.request)) {
    Consume(arrival);
    journal_.Commit();
    return;
  }
  RequestLayout& slot = *view_.request(result.request);
  ReceiveByRtr receive(StateOf(slot));
  if (slot.generation != result.generation || !AwaitsWithdrawal(slot) || !receive.Acknowledge()) {
    Consume(arrival);  // a message came first
    journal_.Commit();
    return;
  }
  const bool posted = shm::LoadRelaxed(slot.state) == static_cast<uint32_t>(RequestState::kPosted);
  if (posted) {
    match_.Remove(slot.match_entry);
    if (match_.corrupt() != ErrorCode::kOk) {
      PoisonCorrupt(match_.fault());
      return;
    }
  }
  Consume(arrival);
  journal_.Set(&slot.rtr, static_cast<uint32_t>(receive.state()));
  effects.self = true;
  if (!posted) {
    statistics_.Add(shm::Statistic::kErrors);
  }
  Complete(slot,
           posted ? ErrorCode::kCancelled : static_cast<ErrorCode>(shm::LoadRelaxed(slot.error)));
}

// A message takes its place in order, and is being written into the receive that its source was
// told of. kRndvGetDone ends it.
bool RankEngine::HandlePut(const Arrival& arrival) {
  const Descriptor& d = arrival.descriptor;
  shm::PutCommand put;
  std::memcpy(&put, d.payload, sizeof(put));
  RequestLayout* const slot = IsRequest(put.receive) ? view_.request(put.receive) : nullptr;
  if (slot == nullptr || slot->generation != put.generation || !AwaitsWithdrawal(*slot) ||
      slot->context != d.context || slot->tag != d.tag ||
      slot->peer != static_cast<int32_t>(arrival.source)) {
    PoisonCorrupt({shm::FaultKind::kDaemonLane, put.receive, d.kind});
    return false;
  }
  ReceiveByRtr receive(StateOf(*slot));
  if (!receive.Announce()) {
    PoisonCorrupt({shm::FaultKind::kDaemonLane, put.receive, d.kind});
    return false;
  }
  if (shm::LoadRelaxed(slot->state) == static_cast<uint32_t>(RequestState::kPosted)) {
    match_.Remove(slot->match_entry);
    if (match_.corrupt() != ErrorCode::kOk) {
      PoisonCorrupt(match_.fault());
      return false;
    }
  }
  Consume(arrival);
  slot->status_source = static_cast<int32_t>(arrival.source);
  slot->status_tag = d.tag;
  slot->message_bytes = d.size_bytes;
  shm::StoreRelaxed(slot->error,
                    static_cast<int32_t>(d.size_bytes > slot->size_bytes ? ErrorCode::kTruncated
                                                                         : ErrorCode::kOk));
  slot->descriptor_kind = d.kind;
  slot->descriptor_flags = d.flags;
  slot->lane = arrival.lane;
  slot->transfer_index = 0;  // none of our own
  journal_.Set(&slot->rtr, static_cast<uint32_t>(receive.state()));
  journal_.Set(&slot->state, static_cast<uint32_t>(RequestState::kRemoteWait));
  CountArrival(*slot, arrival);
  statistics_.Add(shm::Statistic::kWrittenMessages);
  statistics_.Add(shm::Statistic::kWrittenBytes, std::min(d.size_bytes, slot->size_bytes));
  journal_.Commit();
  return true;
}

// ---- Sending ---------------------------------------------------------------------------------

// Whether an RTR is of use to the send. Data that could travel with its RTS needs none.
bool RankEngine::MayPut(const RequestLayout& slot) const {
  return slot.size_bytes > shm::kRunBytes && slot.buffer.region != 0;
}

// An RTR that waits in the lane is worth a look before a large message takes another way.
void RankEngine::LookForRtrs(const RequestLayout& slot, Effects& effects) {
  const uint32_t lane = LaneOf(Core::kDaemon);
  const auto peer = static_cast<uint32_t>(slot.peer);
  if (MayPut(slot) && !peers_.by_rank[peer].local && PathTo(peer) == shm::PeerPath::kDaemon &&
      HasMessage(lane)) {
    (void)DrainLane(lane, kDrainBudget, effects);
  }
}

Descriptor RankEngine::PutRts(uint32_t request, const Descriptor& rts, const Rtr& rtr) const {
  const RequestLayout& slot = *view_.request(request);
  Descriptor descriptor = rts;
  descriptor.kind = static_cast<uint8_t>(DescriptorKind::kPut);
  const shm::PutCommand put{request, slot.generation, rtr.receive, rtr.generation, slot.buffer};
  std::memcpy(descriptor.payload, &put, sizeof(put));
  return descriptor;
}

// Joins the open transaction: a message has taken its place in the order of those to the peer.
void RankEngine::NoteSent(uint32_t destination, const SenderSide& side) {
  RtrBook& book = view_.layout->rtrs[destination];
  shm::SentEnvelope* const last = &book.history[(side.sent() - 1) % SenderSide::kHistory];
  journal_.Set(&book.sent, side.sent());
  journal_.SetBytes(last, &side.envelope(side.sent() - 1), sizeof(*last));
  if (side.held() != book.held) {
    NoteHeld(&book, side);
  }
}

void RankEngine::NoteHeld(RtrBook* book, const SenderSide& side) {
  for (uint32_t i = 0; i < side.held(); ++i) {
    journal_.SetBytes(&book->rtrs[i], &side.rtr(i), sizeof(book->rtrs[i]));
  }
  journal_.Set(&book->held, side.held());
}

void RankEngine::TakeRtr(const Arrival& arrival) {
  const Descriptor& d = arrival.descriptor;
  shm::RtrWords words;
  std::memcpy(&words, d.payload, sizeof(words));
  RtrBook& book = view_.layout->rtrs[arrival.source];
  SenderSide side(book);
  if (static_cast<DescriptorKind>(d.kind) == DescriptorKind::kWithdraw) {
    side.Withdraw(words.receive, words.generation);
  } else if (PathTo(arrival.source) == shm::PeerPath::kDaemon) {  // only that core knows it
    (void)side.Keep({d.context, d.tag, words.receive, words.generation, words.seen});
  }
  NoteHeld(&book, side);
  Consume(arrival);
  journal_.Commit();
}

}  // namespace ferry::engine
