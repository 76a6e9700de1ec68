#include "engine/rank_engine.h"

#include <algorithm>
#include <cstring>

#include "engine/descriptor_check.h"
#include "engine/rendezvous/receiver_side.h"
#include "engine/request_end.h"
#include "shm/atomic.h"

namespace ferry::engine {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestLayout;
using shm::RequestState;

namespace {

// Stands in for a lane that is not read any more: it stays empty.
constinit shm::LaneLayout silent_lane{};

// The share of the budget that each lane may take when all get their turn.
constexpr uint32_t kFairBudget = kDrainBudget / 4;

}  // namespace

RankEngine::RankEngine(const SessionView& view, const PeerTable& peers,
                       const EngineOptions& options, Runner runner)
    : EngineState(view, peers),
      EngineContext(view, peers, options, runner, *this),
      served_lanes_(shm::LaneCount(view.inbox.local_size) - (runner == Runner::kWorker ? 1 : 0)),
      sends_(*this, {*this, paths_, ends_, receiver_first_}),
      receives_(*this, {*this, paths_, ends_, receiver_first_, rndv_get_commands_}),
      receiver_first_(*this, *this, sends_, receives_),
      rndv_get_commands_(*this),
      paths_(*this, *this, receives_),
      ends_(*this, {*this, paths_, sends_, receives_, receiver_first_}) {}

// ---- Progress -----------------------------------------------------------------------------------

uint32_t RankEngine::Progress(Effects& effects) {
  uint32_t handled = DrainActive(effects);
  if (HasDuties()) [[unlikely]] {
    DoDuties(effects);
  }
  if (ends_.HasNews()) [[unlikely]] {
    ends_.ApplyDeaths(effects);
    ++handled;
  }
  if (is_alarmed_ || journal_.spoilt()) [[unlikely]] {
    RaiseAlarms(effects);
  }
  if (handled >= kDrainBudget) {
    effects.self = true;  // more may be there: a sleeping thread must not rely on us
  }
  return journal_.spoilt() ? 0 : handled;  // nothing was consumed, nor ever will be
}

void RankEngine::DoDuties(Effects& effects) {
  const shm::SessionLayout& session = *view_.layout;
  if (session.credits_owed != 0) {
    paths_.ReturnCredits(effects);
  }
  if ((session.control_first | session.link_control_first) != 0) {
    rndv_get_commands_.FlushControls(effects);
  }
  if (session.queued_sends != 0) {
    sends_.FlushQueues(effects);
  }
  if (session.withdrawals != 0) {
    receiver_first_.FlushWithdrawals(effects);
  }
  if (session.link_duties != 0) {
    paths_.DoLinkDuties(effects);
  }
}

LaneSet RankEngine::ForgetLanes() {
  LaneSet lanes;
  for (uint32_t word = 0; word < LaneWords(); ++word) {
    lanes.AddWord(word, wake_.TakeActivity(word));
  }
  return lanes;
}

bool RankEngine::HasWork(const LaneSet& forgotten) {
  LaneSet lanes = forgotten;
  for (uint32_t word = 0; word < LaneWords(); ++word) {
    lanes.AddWord(word, wake_.Activity(word));
  }
  bool found = ends_.HasNews();
  bool restored = false;
  lanes.ForEach([&](uint32_t lane) {
    if (lane < consumers_.size() && consumers_[lane].Peek() != nullptr) {
      wake_.RestoreActivity(lane);
      found = true;
      restored |= forgotten.Has(lane);
    }
  });
  // Another thread of the rank may have looked while the bit was gone. It sleeps, or is about to,
  // and what lies there may be for it alone. Pairs with Wake::PrepareToSleep: either its look sees
  // the bit, or this sees two sleepers, the caller among them.
  if (restored && shm::Load(wake_.layout()->sleepers, std::memory_order_seq_cst) > 1) {
    wake_.Publish();
  }
  return found;
}

bool RankEngine::HasArrivals() const {
  return ends_.HasNews() ||
         std::any_of(consumers_.begin(), consumers_.end(),
                     [](const shm::LaneConsumer& lane) { return lane.Peek() != nullptr; });
}

ErrorCode RankEngine::RecoverFromDeadHolder() {
  if (!journal_.Recover()) {
    PoisonCorrupt({shm::FaultKind::kJournal, 0, 0});
    return ErrorCode::kCorrupt;
  }
  sends_.FinishPush();
  receives_.RepublishTransfers();
  // A dead rank may have taken activity bits without looking at what they named.
  for (uint32_t lane = 0; lane < consumers_.size(); ++lane) {
    wake_.RestoreActivity(lane);
  }
  return ErrorCode::kOk;
}

bool RankEngine::Cancel(uint32_t request, Effects& effects) {
  RequestLayout& slot = *view_.request(request);
  switch (static_cast<RequestState>(shm::LoadRelaxed(slot.state))) {
    case RequestState::kPosted:
      if (ReceiveByRtr receive(static_cast<shm::RtrState>(slot.rtr));
          receive.state() != shm::RtrState::kQuiet) {
        if (receive.state() == shm::RtrState::kOut) {
          receiver_first_.Withdraw(request, effects);
          journal_.Commit();
        }
        return true;
      }
      if (!receives_.Unpost(slot)) {
        return false;
      }
      break;
    case RequestState::kQueued:
      sends_.Unqueue(request);
      break;
    case RequestState::kTransferring:
      return sends_.CancelAnnounced(slot, request, effects);
    case RequestState::kRemoteWait:
      return sends_.Retract(request, effects);
    default:
      return false;
  }
  Complete(slot, ErrorCode::kCancelled);
  return true;
}

// ---- Lanes --------------------------------------------------------------------------------------

uint32_t RankEngine::DrainActive(Effects& effects) {
  // The lane that spoke last is asked first. Every few times all the others are asked before it,
  // and none of them may use up the budget.
  const bool fair = hot_streak_ == kHotStreak;
  if (!fair) {
    if (const uint32_t handled = DrainLane(hot_lane_, kDrainBudget, effects); handled != 0) {
      ++hot_streak_;
      return handled;
    }
  }
  hot_streak_ = 0;
  const uint32_t words = LaneWords();
  const uint32_t start = hot_lane_ + 1;  // then in a circle
  uint32_t handled = 0;
  for (uint32_t i = 0; i <= words && handled < kDrainBudget; ++i) {
    const uint32_t word = (start / 64 + i) % words;
    const uint64_t from_start = ~uint64_t{0} << (start % 64);
    uint64_t bits = wake_.Activity(word);
    bits &= i == 0 ? from_start : i == words ? ~from_start : ~uint64_t{0};
    for (; bits != 0 && handled < kDrainBudget; bits &= bits - 1) {
      const uint32_t lane = word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
      if (lane >= served_lanes_) {
        break;  // the lane of direct links, for a worker; or a bit that no correct peer sets
      }
      const uint32_t budget = std::min(kDrainBudget - handled, fair ? kFairBudget : kDrainBudget);
      if (const uint32_t drained = DrainLane(lane, budget, effects); drained != 0) {
        shm::StoreRelaxed(hot_lane_, lane);
        handled += drained;
      }
    }
  }
  return handled;
}

bool RankEngine::Fetch(uint32_t lane, Arrival* arrival) const {
  const Descriptor* next = consumers_[lane].Peek();
  if (next == nullptr) {
    return false;
  }
  arrival->descriptor = *next;
  arrival->lane = lane;
  arrival->source = IsRemote(lane) ? arrival->descriptor.source : peers_.rank_of_local[lane];
  return true;
}

uint32_t RankEngine::DrainLane(uint32_t lane, uint32_t budget, Effects& effects) {
  uint32_t handled = 0;
  Arrival arrival;
  while (handled < budget && Fetch(lane, &arrival) && Handle(arrival, effects)) {
    ++handled;
    NoticeRoom(lane, effects);
  }
  return handled;
}

void RankEngine::NoticeRoom(uint32_t lane, Effects& effects) {
  const uint64_t head = *consumers_[lane].HeadWord();
  if (head % kRoomNoticeEvery != 0) {
    return;
  }
  shm::LaneLayout* layout = view_.inbox.lane(lane);
  // Pairs with SendEngine::PushLocal: the producer stores `waiting`, then looks at the head again.
  // It is full for a whole lap, so at least one of the notices of that lap sees the word.
  if (shm::Load(layout->producer.waiting, std::memory_order_seq_cst) != 0) {
    shm::StoreRelaxed(layout->producer.waiting, 0);
    if (!IsRemote(lane)) {
      effects.wakes.Add(lane);
      effects.urgent.Add(lane);
    } else {
      (CoreOf(lane) == Core::kLink ? effects.to_link : effects.to_daemon) = true;
    }
  }
}

bool RankEngine::IsPlausible(const Arrival& arrival) const {
  const Descriptor& d = arrival.descriptor;
  if (!IsRemote(arrival.lane)) {
    if (d.kind == static_cast<uint8_t>(DescriptorKind::kEager)) {
      return IsPlausibleEager(d);  // needs nothing of its sender's
    }
    const InboxView& sender = peers_.Inbox(arrival.source);
    // If the sender is gone, or out of reach, the side that matches the message is told.
    return IsPlausibleFromPeer(d, sender.valid() ? sender.request_limit : UINT32_MAX);
  }
  switch (static_cast<DescriptorKind>(d.kind)) {
    case DescriptorKind::kEager:
      // Only a core puts messages into several cells.
      return arrival.source < view_.job_size &&
             (IsPlausibleEager(d) || (d.tag >= 0 && (d.flags & shm::kFlagCell) != 0 &&
                                      shm::LaneConsumer::IsRun(d.cell, d.size_bytes)));
    case DescriptorKind::kRemoteRts:
      return arrival.source < view_.job_size && d.tag >= 0;
    case DescriptorKind::kRndvGetDone:
    case DescriptorKind::kSendDone:
      return true;
    case DescriptorKind::kCredit:
    case DescriptorKind::kRetract:
    case DescriptorKind::kSwitch:
      return arrival.source < view_.job_size;
    case DescriptorKind::kPut:
      return CoreOf(arrival.lane) == Core::kDaemon && arrival.source < view_.job_size && d.tag >= 0;
    case DescriptorKind::kWithdrawn:
      return CoreOf(arrival.lane) == Core::kDaemon;
    case DescriptorKind::kRtr:
    case DescriptorKind::kWithdraw:
    case DescriptorKind::kLeft:
      return CoreOf(arrival.lane) == Core::kDaemon && arrival.source < view_.job_size;
    default:
      return false;
  }
}

bool RankEngine::Handle(const Arrival& arrival, Effects& effects) {
  if (!IsPlausible(arrival)) [[unlikely]] {
    statistics_.Add(shm::Statistic::kErrors);
    if (IsRemote(arrival.lane)) {
      PoisonCorrupt({CoreOf(arrival.lane) == Core::kLink ? shm::FaultKind::kLinkLane
                                                         : shm::FaultKind::kDaemonLane,
                     0, arrival.descriptor.kind});
    }
    CloseLane(arrival.lane);  // the descriptor stays, for the daemon to see
    return false;
  }
  if (arrival.lane == LaneOf(Core::kLink) && paths_.IsOfEarlierLink(arrival)) [[unlikely]] {
    paths_.Drop(arrival);
    return true;
  }
  switch (static_cast<DescriptorKind>(arrival.descriptor.kind)) {
    case DescriptorKind::kRndvGetDone:
    case DescriptorKind::kSendDone:
      HandleResult(arrival, effects);
      return true;
    case DescriptorKind::kCredit:
      paths_.TakeCredit(arrival, effects);
      return true;
    case DescriptorKind::kRtr:
    case DescriptorKind::kWithdraw:
      sends_.TakeRtr(arrival);
      return true;
    case DescriptorKind::kWithdrawn:
      receiver_first_.HandleWithdrawn(arrival, effects);
      return true;
    case DescriptorKind::kPut:
      return receiver_first_.HandlePut(arrival);
    case DescriptorKind::kRetract:
      return receives_.HandleRetract(arrival, effects);
    case DescriptorKind::kLeft:
      ends_.HandleLeft(arrival);
      return true;
    case DescriptorKind::kSwitch:
      paths_.HandleSwitch(arrival);
      return true;
    default:
      return receives_.HandleMessage(arrival, effects);
  }
}

// Reads a lane no more. Its producer is accused, unless that is a core.
void RankEngine::CloseLane(uint32_t lane) {
  consumers_[lane] = shm::LaneConsumer(&silent_lane);
  if (!IsRemote(lane)) {
    accused_.Add(lane);
    is_alarmed_ = true;
  }
}

// Writes each accusation in a transaction of its own; one that finds no room waits for the next
// round.
void RankEngine::Accuse(Effects& effects) {
  LaneSet waiting;
  accused_.ForEach([&](uint32_t lane) {
    Descriptor descriptor{};
    descriptor.kind = static_cast<uint8_t>(DescriptorKind::kAccuse);
    descriptor.source = view_.rank;
    const shm::Accusation accusation{lane, 0, {}};
    std::memcpy(descriptor.payload, &accusation, sizeof(accusation));
    if (!StageTo(Core::kDaemon, descriptor, effects) || !journal_.Commit()) {
      waiting.Add(lane);
    }
  });
  accused_ = waiting;
}

// Tells the daemon of faults and of closed lanes.
void RankEngine::RaiseAlarms(Effects& effects) {
  if (journal_.spoilt()) {
    PoisonCorrupt({shm::FaultKind::kStore, 0, 0});
  }
  Accuse(effects);
  is_alarmed_ = !accused_.empty();
  effects.to_daemon = true;
}

void RankEngine::Consume(const Arrival& arrival, bool matched) {
  uint64_t* head = consumers_[arrival.lane].HeadWord();
  journal_.Set(head, *head + 1);
  if (IsRemote(arrival.lane)) {
    CountConsumed(arrival, matched);
  }
}

// Joins the open transaction.
void RankEngine::CountConsumed(const Arrival& arrival, bool matched) {
  const auto kind = static_cast<DescriptorKind>(arrival.descriptor.kind);
  if (arrival.source >= view_.job_size ||
      (kind != DescriptorKind::kEager && kind != DescriptorKind::kRemoteRts &&
       kind != DescriptorKind::kPut)) {
    return;
  }
  uint64_t* const taken = &view_.by_rank.rtrs[arrival.source].taken;
  journal_.Set(taken, *taken + 1);
  const Descriptor& d = arrival.descriptor;
  paths_.Owe(arrival.source, 1,
             matched ? PeerPaths::PushedBytes(d.kind, d.flags, d.size_bytes) : 0);
}

void RankEngine::HandleResult(const Arrival& arrival, Effects& effects) {
  shm::TransferResult result;
  std::memcpy(&result, arrival.descriptor.payload, sizeof(result));
  Consume(arrival);
  if (IsRequest(result.request)) {
    RequestLayout& slot = *view_.request(result.request);
    // A result for an earlier life of the slot (its request failed with a dead peer) is ignored.
    if (slot.generation == result.generation &&
        shm::LoadRelaxed(slot.state) == static_cast<uint32_t>(RequestState::kRemoteWait)) {
      auto error = static_cast<ErrorCode>(result.error);
      const bool is_lost = error == ErrorCode::kLinkDown && arrival.lane == LaneOf(Core::kLink);
      if (is_lost) [[unlikely]] {
        error = ends_.CauseOfLoss(slot);
      }
      ends_.AbandonTransfer(result.request);
      if (slot.rtr != static_cast<uint32_t>(shm::RtrState::kQuiet)) {
        journal_.Set(&slot.rtr, static_cast<uint32_t>(shm::RtrState::kQuiet));
      }
      if (is_lost && error == ErrorCode::kOk) [[unlikely]] {
        journal_.Set(&slot.link_end, static_cast<uint32_t>(shm::LinkEnd::kHeld));
      } else {
        EndWith(slot, error);
        effects.self = true;
      }
      if (error == ErrorCode::kOk &&
          arrival.descriptor.kind == static_cast<uint8_t>(DescriptorKind::kRndvGetDone)) {
        statistics_.AddMessage(receives_.PathOf(slot, arrival),
                               std::min(slot.message_bytes, slot.size_bytes));
      }
    }
  }
  journal_.Commit();
}

// Joins the open transaction.
void RankEngine::EndWith(RequestLayout& slot, ErrorCode error) {
  if (error != ErrorCode::kOk) {
    shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
    statistics_.Add(shm::Statistic::kErrors, error == ErrorCode::kCancelled ? 0 : 1);
    if (error == ErrorCode::kLinkDown &&
        slot.kind == static_cast<uint32_t>(shm::RequestKind::kReceive) &&
        (slot.flags & kRequestUnwatched) == 0) {
      (void)ends_.MustHearOfCut(slot.status_source);  // it hears by this
    }
  }
  journal_.Set(&slot.state, static_cast<uint32_t>(RequestState::kComplete));
}

}  // namespace ferry::engine
