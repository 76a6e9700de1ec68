#include "engine/rank_engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/descriptor_check.h"
#include "engine/request_end.h"
#include "shm/atomic.h"

namespace ferry::engine {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestLayout;
using shm::RequestState;

namespace {

// Stands in for a lane that is not read any more: nobody writes to it.
constinit shm::LaneLayout silent_lane{};

// The share of the budget that each lane may take when all get their turn.
constexpr uint32_t kFairBudget = kDrainBudget / 4;

}  // namespace

RankEngine::RankEngine(const SessionView& view, const PeerTable& peers,
                       const EngineOptions& options, Runner runner)
    : view_(view),
      peers_(peers),
      options_(options),
      runner_(runner),
      journal_(&view.layout->journal, view.base(), view.size_bytes, view.inbox.base(),
               view.inbox.size_bytes),
      match_(view.match(), &journal_),
      statistics_(view.layout->counters),
      wake_(view.inbox.wake()),
      served_lanes_(shm::LaneCount(view.inbox.local_size) - (runner == Runner::kWorker ? 1 : 0)),
      closed_paths_(runner == Runner::kWorker ? 3 : 1) {
  const uint32_t own_lane = peers.by_rank[view.rank].local_index;
  for (uint32_t rank : peers.rank_of_local) {
    const Peer& peer = peers.by_rank[rank];
    producers_.emplace_back(peer.is_mapped() ? peer.inbox.lane(own_lane) : nullptr);
  }
  producers_.emplace_back(&view.layout->to_daemon);
  producers_.emplace_back(&view.layout->to_link);
  for (uint32_t lane = 0; lane < shm::LaneCount(view.inbox.local_size); ++lane) {
    consumers_.emplace_back(view.inbox.lane(lane));
  }
  deaths_.resize(view.job_size, ErrorCode::kOk);
}

// ---- Progress --------------------------------------------------------------------------------

uint32_t RankEngine::Progress(Effects& effects) {
  uint32_t handled = DrainActive(effects);
  if (view_.layout->credits_owed != 0) {
    ReturnCredits(effects);
  }
  if ((view_.layout->control_first | view_.layout->link_control_first) != 0) {
    FlushControls(effects);
  }
  if (view_.layout->queued_sends != 0) {
    FlushQueues(effects);
  }
  if (view_.layout->withdrawals != 0) [[unlikely]] {
    FlushWithdrawals(effects);
  }
  if (view_.layout->link_duties != 0) [[unlikely]] {
    DoLinkDuties(effects);
  }
  // Pairs with the daemon's bump: the dead words are visible once the epoch is.
  if (shm::LoadAcquire(wake_.layout()->death_epoch) != deaths_seen_) [[unlikely]] {
    ApplyDeaths(effects);
    ++handled;
  }
  if (alarmed_ || journal_.spoilt()) [[unlikely]] {
    RaiseAlarms(effects);
  }
  if (handled >= kDrainBudget) {
    effects.self = true;  // more may be there: a sleeping thread must not rely on us
  }
  return journal_.spoilt() ? 0 : handled;  // nothing was consumed, nor ever will be
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
  bool found = shm::LoadAcquire(wake_.layout()->death_epoch) != shm::LoadRelaxed(deaths_seen_);
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
  return shm::LoadAcquire(wake_.layout()->death_epoch) != shm::LoadRelaxed(deaths_seen_) ||
         std::any_of(consumers_.begin(), consumers_.end(),
                     [](const shm::LaneConsumer& lane) { return lane.Peek() != nullptr; });
}

bool RankEngine::WaitsForRoom() const {
  return shm::LoadRelaxed(view_.layout->queued_sends) != 0 ||
         shm::LoadRelaxed(view_.layout->control_first) != 0 ||
         shm::LoadRelaxed(view_.layout->link_control_first) != 0 ||
         shm::LoadRelaxed(view_.layout->credits_owed) != 0 ||
         shm::LoadRelaxed(view_.layout->withdrawals) != 0 ||
         shm::LoadRelaxed(view_.layout->link_duties) != 0;
}

ErrorCode RankEngine::RecoverFromDeadHolder() {
  if (!journal_.Recover()) {
    PoisonCorrupt({shm::FaultKind::kJournal, 0, 0});
    return ErrorCode::kCorrupt;
  }
  FinishPush();
  RepublishTransfers();
  // A dead rank may have taken activity bits without looking at what they named.
  for (uint32_t lane = 0; lane < consumers_.size(); ++lane) {
    wake_.RestoreActivity(lane);
  }
  return ErrorCode::kOk;
}

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

// The next descriptor of a lane, copied once and then checked: its producer can still write to it.
// False: the lane is empty.
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
  // Pairs with RankEngine::Push: the producer stores `waiting`, then looks at the head again. It is
  // full for a whole lap, so at least one of the notices of that lap sees the word.
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

// Consumes the arrival, in one transaction with what it changes. False: it stays in the lane.
bool RankEngine::Handle(const Arrival& arrival, Effects& effects) {
  if (!IsPlausible(arrival)) [[unlikely]] {
    statistics_.Add(shm::Statistic::kErrors);
    if (IsRemote(arrival.lane)) {
      PoisonCorrupt({CoreOf(arrival.lane) == Core::kLink ? shm::FaultKind::kLinkLane
                                                         : shm::FaultKind::kDaemonLane,
                     0, arrival.descriptor.kind});
    }
    CloseLane(arrival.lane);  // what lies there stays, for the daemon to see
    return false;
  }
  if (arrival.lane == LaneOf(Core::kLink) && IsOfEarlierLink(arrival)) [[unlikely]] {
    Drop(arrival);
    return true;
  }
  switch (static_cast<DescriptorKind>(arrival.descriptor.kind)) {
    case DescriptorKind::kRndvGetDone:
    case DescriptorKind::kSendDone:
      HandleResult(arrival, effects);
      return true;
    case DescriptorKind::kCredit:
      TakeCredit(arrival, effects);
      return true;
    case DescriptorKind::kRtr:
    case DescriptorKind::kWithdraw:
      TakeRtr(arrival);
      return true;
    case DescriptorKind::kWithdrawn:
      HandleWithdrawn(arrival, effects);
      return true;
    case DescriptorKind::kPut:
      return HandlePut(arrival);
    case DescriptorKind::kRetract:
      return HandleRetract(arrival, effects);
    case DescriptorKind::kLeft:
      HandleLeft(arrival);
      return true;
    case DescriptorKind::kSwitch:
      HandleSwitch(arrival);
      return true;
    default:
      return HandleMessage(arrival, effects);
  }
}

// Reads a lane no more. Its producer is accused, unless that is a core.
void RankEngine::CloseLane(uint32_t lane) {
  consumers_[lane] = shm::LaneConsumer(&silent_lane);
  if (!IsRemote(lane)) {
    accused_.Add(lane);
    alarmed_ = true;
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

// Says outside what went wrong in here.
void RankEngine::RaiseAlarms(Effects& effects) {
  if (journal_.spoilt()) {
    PoisonCorrupt({shm::FaultKind::kStore, 0, 0});
  }
  Accuse(effects);
  alarmed_ = !accused_.empty();
  effects.to_daemon = true;
}

// Adds the consumption to the open transaction; of a message from another node also its credit, and
// its place in the order. `matched`: it goes to a receive at once.
void RankEngine::Consume(const Arrival& arrival, bool matched) {
  uint64_t* head = consumers_[arrival.lane].HeadWord();
  journal_.Set(head, *head + 1);
  const auto kind = static_cast<DescriptorKind>(arrival.descriptor.kind);
  if (!IsRemote(arrival.lane) || arrival.source >= view_.job_size ||
      (kind != DescriptorKind::kEager && kind != DescriptorKind::kRemoteRts &&
       kind != DescriptorKind::kPut)) {
    return;
  }
  uint64_t* const taken = &view_.layout->rtrs[arrival.source].taken;
  journal_.Set(taken, *taken + 1);
  const Descriptor& d = arrival.descriptor;
  Owe(arrival.source, 1, matched ? PushedBytes(d.kind, d.flags, d.size_bytes) : 0);
}

bool RankEngine::HandleMessage(const Arrival& arrival, Effects& effects) {
  const Descriptor& d = arrival.descriptor;
  const shm::Envelope envelope{d.context, static_cast<int32_t>(arrival.source), d.tag};
  const uint32_t posted = match_.FindPosted(envelope);
  if ((posted != 0 || MatchesDirect(envelope)) && !IsToBeHad(arrival.source, d.kind, d.payload))
      [[unlikely]] {
    Consume(arrival);  // its sender has cancelled it
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
    Consume(arrival, /*matched=*/true);
    Match(request, arrival, effects);
    effects.self = true;
  } else if (MatchesDirect(envelope)) {
    Consume(arrival, /*matched=*/true);
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
    statistics_.Add(shm::Statistic::kUnexpectedMessages);
    Consume(arrival);
    journal_.Commit();
    effects.self = true;  // somebody may be probing
  }
  return true;
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
        error = CauseOfLoss(slot);
      }
      AbandonTransfer(result.request);
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
        statistics_.AddMessage(PathOf(slot, arrival),
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
      (void)MustHearOfCut(slot.status_source);  // it hears by this
    }
  }
  journal_.Set(&slot.state, static_cast<uint32_t>(RequestState::kComplete));
}

// Ends the request, in one transaction with whatever is open.
void RankEngine::Complete(RequestLayout& slot, ErrorCode error) {
  shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
  // Pairs with the rank's test and wait: publishes the status words.
  journal_.Set(&slot.state, static_cast<uint32_t>(RequestState::kComplete));
  journal_.Commit();
}

void RankEngine::Poison(ErrorCode error) {
  journal_.Abandon();
  wake_.Poison(error);
}

// The daemon ends the session with what the note says.
void RankEngine::PoisonCorrupt(const shm::Fault& fault) {
  shm::NoteFault(&view_.layout->fault, fault);
  // Pairs with the daemon's look: publishes the note.
  shm::StoreRelease(view_.layout->daemon_wake.poison, static_cast<int32_t>(ErrorCode::kCorrupt));
  alarmed_ = true;
  Poison(ErrorCode::kCorrupt);
}

}  // namespace ferry::engine
