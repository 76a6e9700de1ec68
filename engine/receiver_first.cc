#include "engine/receiver_first.h"

#include <algorithm>
#include <cstring>

#include "engine/rank_engine.h"
#include "engine/receive_engine.h"
#include "engine/rendezvous/receiver_side.h"
#include "engine/send_engine.h"
#include "shm/atomic.h"

namespace ferry::engine {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestLayout;
using shm::RequestState;
using shm::RtrState;

namespace {

RtrState StateOf(const RequestLayout& slot) { return static_cast<RtrState>(slot.rtr); }

}  // namespace

bool ReceiverFirst::MaySendRtr(const RequestLayout& slot) const {
  return options_.receiver_first_min_bytes != 0 &&
         slot.size_bytes >= options_.receiver_first_min_bytes && slot.buffer.region != 0 &&
         IsAdvertisable({slot.context, slot.peer, slot.tag}) && IsRank(slot.peer) &&
         !peers_.by_rank[static_cast<uint32_t>(slot.peer)].local &&
         InwardPath(static_cast<uint32_t>(slot.peer)) == shm::PeerPath::kDaemon;
}

void ReceiverFirst::SendRtr(uint32_t request, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  if (!ProducerOf(Core::kDaemon).HasRoom()) {
    return;
  }
  ReceiveByRtr receive;
  const Rtr rtr = receive.SendRtr({slot.context, slot.peer, slot.tag}, request, slot.generation,
                                  view_.by_rank.rtrs[static_cast<uint32_t>(slot.peer)].taken);
  if (StageRtr(DescriptorKind::kRtr, 0, rtr, effects)) {
    journal_.Set(&slot.rtr, static_cast<uint32_t>(receive.state()));
    statistics_.Add(shm::Statistic::kRtrs);
  }
}

// Joins the open transaction. False: no room.
bool ReceiverFirst::StageRtr(DescriptorKind kind, uint8_t flags, const Rtr& rtr, Effects& effects) {
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

// The daemon learns of the end by the rendezvous get, unless that is for a direct link. Else it is
// told if there is room; it would find out when the request is used anew.
void ReceiverFirst::EndRtr(uint32_t request, const Arrival& arrival, Effects& effects) {
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

void ReceiverFirst::Withdraw(uint32_t request, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  const bool staged =
      sends_.AwaitsReceive(slot)
          ? sends_.StageRetraction(request, effects)
          : StageRtr(DescriptorKind::kWithdraw, 0,
                     {slot.context, slot.tag, request, slot.generation, 0}, effects);
  journal_.Set(&slot.rtr,
               static_cast<uint32_t>(staged ? RtrState::kWithdrawing : RtrState::kToWithdraw));
  if (!staged) {
    journal_.Set(&view_.layout->withdrawals, 1U);
  }
}

// Looks at all requests: only those that were cancelled while the lane was full are left.
void ReceiverFirst::FlushWithdrawals(Effects& effects) {
  const uint32_t fresh =
      std::min(shm::LoadAcquire(view_.layout->request_fresh), view_.request_limit);
  bool is_left = false;
  for (uint32_t request = 1; request < fresh; ++request) {
    const RequestLayout& slot = *view_.request(request);
    if (StateOf(slot) != RtrState::kToWithdraw ||
        !(AwaitsWithdrawal(slot) || sends_.AwaitsReceive(slot))) {
      continue;
    }
    const Core core = sends_.AwaitsReceive(slot) && (slot.flags & shm::kRequestByLink) != 0
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

// Returns true if the request is a receive that is posted still, or that only waits for its RTR.
bool ReceiverFirst::AwaitsWithdrawal(const RequestLayout& slot) const {
  const auto state = static_cast<RequestState>(shm::LoadRelaxed(slot.state));
  return slot.kind == static_cast<uint32_t>(shm::RequestKind::kReceive) && IsRank(slot.peer) &&
         (state == RequestState::kPosted || state == RequestState::kRemoteWait);
}

// A posted receive cannot end before its RTR has: its source might be writing already. It leaves
// the match table, so that no other message comes for it, and ends with `error` once the daemon
// says that its source will not write.
void ReceiverFirst::FailReceiveByRtr(uint32_t request, ErrorCode error, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  if (!receives_.Unpost(slot)) {
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
void ReceiverFirst::HandleWithdrawn(const Arrival& arrival, Effects& effects) {
  shm::TransferResult result;
  std::memcpy(&result, arrival.descriptor.payload, sizeof(result));
  if (!IsRequest(result.request)) {
    engine_.Consume(arrival);
    journal_.Commit();
    return;
  }
  RequestLayout& slot = *view_.request(result.request);
  ReceiveByRtr receive(StateOf(slot));
  if (slot.generation != result.generation || !AwaitsWithdrawal(slot) || !receive.Acknowledge()) {
    engine_.Consume(arrival);  // a message came first
    journal_.Commit();
    return;
  }
  const bool posted = shm::LoadRelaxed(slot.state) == static_cast<uint32_t>(RequestState::kPosted);
  if (posted && !receives_.Unpost(slot)) {
    return;
  }
  engine_.Consume(arrival);
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
bool ReceiverFirst::HandlePut(const Arrival& arrival) {
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
  if (shm::LoadRelaxed(slot->state) == static_cast<uint32_t>(RequestState::kPosted) &&
      !receives_.Unpost(*slot)) {
    return false;
  }
  engine_.Consume(arrival);
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
  receives_.CountArrival(*slot, arrival);
  statistics_.Add(shm::Statistic::kWrittenMessages);
  statistics_.Add(shm::Statistic::kWrittenBytes, std::min(d.size_bytes, slot->size_bytes));
  journal_.Commit();
  return true;
}

}  // namespace ferry::engine
