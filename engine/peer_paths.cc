// A direction is switched so that no message of the old path can be overtaken by one of the new:
// the sender ends the old path with a marker, and sends nothing by the new one before the receiver
// has answered it. The receiver's engine answers when it drains the marker, so when it has
// drained all that came before. It keeps no message back and needs no room for any: those that come
// up meanwhile wait in the sender's queue, as without credit.
//
// Answers go by the daemons, whatever the paths. A marker that comes by them may be drained by the
// worker, which turns no core of the rank; and after a switch back neither end may rely on the
// link.
#include "engine/peer_paths.h"

#include <algorithm>
#include <cstring>

#include "engine/rank_engine.h"
#include "engine/receive_engine.h"
#include "shm/atomic.h"

namespace ferry::engine {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::LinkState;
using shm::PeerPath;
using shm::PeerWords;
using shm::RequestLayout;
using shm::RequestState;

namespace {

LinkState StateOf(const shm::LinkWords& link) {
  return static_cast<LinkState>(shm::LoadRelaxed(link.state));
}

bool IsSwitching(uint32_t path) {
  return path == static_cast<uint32_t>(PeerPath::kToLink) ||
         path == static_cast<uint32_t>(PeerPath::kToDaemon);
}

// Without the journal: a kill may lose it, which only delays the next wish for a link.
void ForgetTraffic(shm::LinkWords& link) {
  shm::StoreRelaxed(link.bytes, uint64_t{0});
  shm::StoreRelaxed(link.messages, 0U);
}

// True for states in which the engine has something to do about the link, or about its path.
bool IsDuty(LinkState state) {
  return state == LinkState::kToAsk || state == LinkState::kOpen || state == LinkState::kToTell;
}

bool IsGone(uint32_t dead) {
  return dead != static_cast<uint32_t>(ErrorCode::kOk) &&
         dead != static_cast<uint32_t>(ErrorCode::kLinkDown);
}

}  // namespace

// ---- Use of direct links ------------------------------------------------------------------------

ErrorCode PeerPaths::UseLink(uint32_t peer, Effects& effects) {
  if (peers_.by_rank[peer].local) {
    return ErrorCode::kInvalidRank;
  }
  const PeerWords& words = view_.by_rank.peers[peer];
  shm::LinkWords& link = view_.by_rank.links[peer];
  const uint32_t dead = shm::LoadAcquire(words.dead);
  if (IsGone(dead)) {
    return static_cast<ErrorCode>(dead);
  }
  // A cut that is still to be applied ends this link, too. After it the switch waits for the two to
  // be back.
  const shm::RtrBook& book = view_.by_rank.rtrs[peer];
  if (PathTo(peer) == PeerPath::kBroken || shm::LoadAcquire(book.cuts) != book.cuts_applied) {
    return ErrorCode::kLinkDown;
  }
  if (shm::LaneProducer& producer = ProducerOf(Core::kLink); !producer.is_open()) [[unlikely]] {
    producer.Open(view_.rank);
  }
  ForgetTraffic(link);
  SetLinkState(peer, LinkState::kOpen);
  HaveDutyTo(peer);
  journal_.Commit();
  DoLinkDuties(effects);
  return ErrorCode::kOk;
}

void PeerPaths::LeaveLink(uint32_t peer, Effects& effects) {
  if (StateOf(view_.by_rank.links[peer]) != LinkState::kOpen) {
    return;
  }
  ForgetTraffic(view_.by_rank.links[peer]);
  SetLinkState(peer, LinkState::kNone);
  HaveDutyTo(peer);
  journal_.Commit();
  DoLinkDuties(effects);
}

void PeerPaths::LeaveLinks(Effects& effects) {
  ForEachBusyPeer([&](uint32_t peer) {
    LeaveLink(peer, effects);
    return true;
  });
}

void PeerPaths::RefuseLink(uint32_t peer) {
  const LinkState state = StateOf(view_.by_rank.links[peer]);
  if (state != LinkState::kAsked && state != LinkState::kToAsk) {
    return;
  }
  ForgetTraffic(view_.by_rank.links[peer]);
  SetLinkState(peer, LinkState::kRefused);
  journal_.Commit();
}

// A link that no message takes loses none. If RTSs of the peer still wait here, the peer's engine
// has the two parted; but it is through with the data that it has pushed.
void PeerPaths::FailLink(uint32_t peer, Effects& effects, bool was_taken) {
  // Arrivals of this link count now, or never: they must not be taken for those of a later link.
  engine_.DrainLane(LaneOf(Core::kLink), shm::kLaneSlots, effects);
  const PeerWords& words = view_.by_rank.peers[peer];
  const bool is_used =
      was_taken || (words.path | words.inward_path) != 0 || HasRequestsByLink(peer);
  const bool is_gone = IsGone(shm::LoadAcquire(words.dead));
  if (is_gone) {  // nothing more comes of it
    SetPaths(peer, PeerPath::kDaemon, PeerPath::kDaemon);
  } else if (is_used) {
    SetPaths(peer, PeerPath::kBroken, InwardPath(peer));
    HaveDutyTo(peer);
  } else {
    receives_.LoseRtsFrom(peer, LaneOf(Core::kLink), shm::kFlagPushed);
  }
  const LinkState state = StateOf(view_.by_rank.links[peer]);
  if (is_used && !is_gone) {
    SetLinkState(peer, LinkState::kToTell);
  } else if (state == LinkState::kOpen) {
    ForgetTraffic(view_.by_rank.links[peer]);
    SetLinkState(peer, LinkState::kNone);
  }
  journal_.Commit();
  if (view_.layout->link_duties != 0) {
    DoLinkDuties(effects);
  }
}

bool PeerPaths::SendsByLink() const {
  if (!UsesLinks()) {
    return false;
  }
  bool is_any = false;
  ForEachBusyPeer([&](uint32_t peer) {
    const PeerWords& words = view_.by_rank.peers[peer];
    is_any = shm::LoadRelaxed(words.path) != 0 && !IsGone(shm::LoadRelaxed(words.dead));
    return !is_any;
  });
  return is_any;
}

bool PeerPaths::IsLinkFree(uint32_t peer) const {
  const PeerWords& words = view_.by_rank.peers[peer];
  return (words.path | words.inward_path | words.marker_owed) == 0 && !HasRequestsByLink(peer) &&
         !receives_.HasRtsFrom(peer, LaneOf(Core::kLink));
}

// Returns true while an RTS to the peer waits for its receive, or a transfer with it is under way,
// by this link and not an earlier one.
bool PeerPaths::HasRequestsByLink(uint32_t peer) const {
  const auto rank = static_cast<int32_t>(peer);
  const uint32_t fresh =
      std::min(shm::LoadAcquire(view_.layout->request_fresh), view_.request_limit);
  for (uint32_t request = 1; request < fresh; ++request) {
    const RequestLayout& slot = *view_.request(request);
    if (shm::LoadAcquire(slot.state) != static_cast<uint32_t>(RequestState::kRemoteWait) ||
        slot.link_end == static_cast<uint32_t>(shm::LinkEnd::kParted)) {
      continue;
    }
    const bool sends = slot.kind == static_cast<uint32_t>(shm::RequestKind::kSend);
    if (sends ? slot.peer == rank && (slot.flags & shm::kRequestByLink) != 0
              : slot.status_source == rank && CoreOfRndvGet(slot) == Core::kLink) {
      return true;
    }
  }
  return false;
}

// ---- Switching ----------------------------------------------------------------------------------

void PeerPaths::SetPaths(uint32_t peer, PeerPath path, PeerPath inward) {
  PeerWords& words = view_.by_rank.peers[peer];
  const bool was_linked = (words.path | words.inward_path) != 0;
  const bool is_linked = path != PeerPath::kDaemon || inward != PeerPath::kDaemon;
  if (is_linked) {
    view_.by_rank.SetBusy(peer);
  }
  if (words.path != static_cast<uint32_t>(path)) {
    journal_.Set(&words.path, static_cast<uint32_t>(path));
  }
  if (words.inward_path != static_cast<uint32_t>(inward)) {
    journal_.Set(&words.inward_path, static_cast<uint32_t>(inward));
  }
  if (was_linked != is_linked) {
    journal_.Set(&view_.layout->linked_peers,
                 view_.layout->linked_peers + (is_linked ? 1 : ~uint32_t{0}));
  }
}

// Joins the open transaction: DoLinkDuties is to look at the peer.
void PeerPaths::HaveDutyTo(uint32_t peer) {
  view_.by_rank.SetBusy(peer);
  journal_.Set(&view_.layout->link_duties, 1U);
}

void PeerPaths::SetLinkState(uint32_t peer, LinkState state) {
  if (IsDuty(state)) {
    view_.by_rank.SetBusy(peer);
  }
  journal_.Set(&view_.by_rank.links[peer].state, static_cast<uint32_t>(state));
}

PeerPath PeerPaths::PathWanted(uint32_t peer) const {
  return StateOf(view_.by_rank.links[peer]) == LinkState::kOpen ? PeerPath::kLink
                                                                : PeerPath::kDaemon;
}

bool PeerPaths::HasSwitchDue(uint32_t peer) const {
  const PeerPath path = PathTo(peer);
  return path != PathWanted(peer) && (path == PeerPath::kDaemon || path == PeerPath::kLink);
}

// Ends the path that messages take now with a marker. False: there is no room.
bool PeerPaths::TrySwitch(uint32_t peer, Effects& effects) {
  PeerWords& words = view_.by_rank.peers[peer];
  shm::RtrBook& book = view_.by_rank.rtrs[peer];
  const Core core = CoreTo(peer);
  const uint32_t epoch = std::max(words.path_epoch + 1, 1U);
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(DescriptorKind::kSwitch);
  descriptor.source = view_.rank;
  descriptor.destination = peer;
  const shm::SwitchMarker marker{epoch, 0, {}};
  std::memcpy(descriptor.payload, &marker, sizeof(marker));
  if (!StageTo(core, descriptor, effects)) {
    return false;
  }
  journal_.Set(&words.path_epoch, epoch);
  SetPaths(peer, core == Core::kLink ? PeerPath::kToDaemon : PeerPath::kToLink, InwardPath(peer));
  if (book.held != 0) {  // RTRs are the daemon's, and hints
    journal_.Set(&book.held, 0U);
  }
  journal_.Commit();
  return true;
}

// The peer sends no more by the path that it has taken so far.
void PeerPaths::HandleSwitch(const Arrival& arrival) {
  shm::SwitchMarker marker;
  std::memcpy(&marker, arrival.descriptor.payload, sizeof(marker));
  PeerWords& words = view_.by_rank.peers[arrival.source];
  if (marker.epoch != 0) {
    SetPaths(arrival.source, PathTo(arrival.source),
             CoreOf(arrival.lane) == Core::kLink ? PeerPath::kDaemon : PeerPath::kLink);
    if (!Owes(words)) {
      BeginToOwe(arrival.source);
    }
    journal_.Set(&words.marker_owed, marker.epoch);
  }
  engine_.Consume(arrival);
  journal_.Commit();
}

bool PeerPaths::IsOfEarlierLink(const Arrival& arrival) const {
  switch (static_cast<DescriptorKind>(arrival.descriptor.kind)) {
    case DescriptorKind::kEager:
    case DescriptorKind::kRemoteRts:
    case DescriptorKind::kSwitch:
      return InwardPath(arrival.source) != PeerPath::kLink;
    case DescriptorKind::kCredit: {
      // After the answer to a marker it adds nothing.
      const PeerPath path = PathTo(arrival.source);
      return path != PeerPath::kLink && path != PeerPath::kToDaemon;
    }
    default:
      return false;
  }
}

void PeerPaths::Drop(const Arrival& arrival) {
  const Descriptor& d = arrival.descriptor;
  uint64_t* const head = consumers_[arrival.lane].HeadWord();
  journal_.Set(head, *head + 1);
  journal_.Commit();
  if (d.kind == static_cast<uint8_t>(DescriptorKind::kEager) && (d.flags & shm::kFlagCell) != 0) {
    consumers_[arrival.lane].ReleaseCells(d.cell, d.size_bytes);
  }
}

// ---- Duties to links ----------------------------------------------------------------------------

bool PeerPaths::TellOfLink(uint32_t peer, shm::LinkMatter matter, Effects& effects) {
  return StageLinkCommand(peer, matter, effects) && journal_.Commit();
}

// Joins the open transaction. False: there is no room.
bool PeerPaths::StageLinkCommand(uint32_t peer, shm::LinkMatter matter, Effects& effects) {
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(DescriptorKind::kLinkWanted);
  descriptor.source = view_.rank;
  descriptor.destination = peer;
  const shm::LinkCommand command{static_cast<uint32_t>(matter), 0, {}};
  std::memcpy(descriptor.payload, &command, sizeof(command));
  return StageTo(Core::kDaemon, descriptor, effects);
}

void PeerPaths::DoLinkDuties(Effects& effects) {
  bool is_left = false;
  ForEachBusyPeer([&](uint32_t peer) {
    is_left |= !peers_.by_rank[peer].local && !DoLinkDuty(peer, effects);
    RestIfIdle(peer);
    return true;
  });
  if (!is_left) {
    journal_.Set(&view_.layout->link_duties, 0U);
    journal_.Commit();
  }
}

// False: a duty to the peer is left, until there is room, or to the rank's own process.
bool PeerPaths::DoLinkDuty(uint32_t peer, Effects& effects) {
  const uint32_t dead = shm::LoadAcquire(view_.by_rank.peers[peer].dead);
  const LinkState state = StateOf(view_.by_rank.links[peer]);
  const bool has_to_say = state == LinkState::kToAsk || state == LinkState::kToTell;
  if (dead != 0) {  // what was granted, or lost, after a cut waits for the peer
    return IsGone(dead) || !(has_to_say || HasSwitchDue(peer));
  }
  if (has_to_say) {
    const bool asks = state == LinkState::kToAsk;
    if (!StageLinkCommand(peer, asks ? shm::LinkMatter::kWanted : shm::LinkMatter::kBroken,
                          effects)) {
      return false;
    }
    SetLinkState(peer, asks ? LinkState::kAsked : LinkState::kTold);
    journal_.Commit();
    return true;
  }
  if (!HasSwitchDue(peer)) {
    return true;
  }
  return (runner_ == Runner::kRank || CoreTo(peer) == Core::kDaemon) && TrySwitch(peer, effects);
}

void PeerPaths::CountByDaemon(uint32_t destination, uint64_t size_bytes) {
  shm::SessionLayout& session = *view_.layout;
  if ((session.link_after_bytes | session.link_after_messages) == 0) {
    return;
  }
  shm::LinkWords& link = view_.by_rank.links[destination];
  shm::StoreRelaxed(link.bytes, link.bytes + size_bytes);
  shm::StoreRelaxed(link.messages, link.messages + 1);
  const LinkState state = StateOf(link);
  if (state != LinkState::kNone && state != LinkState::kRefused) {
    return;
  }
  const uint64_t times = state == LinkState::kRefused ? kRefusedPatience : 1;
  if ((session.link_after_bytes != 0 && link.bytes / times >= session.link_after_bytes) ||
      (session.link_after_messages != 0 && link.messages / times >= session.link_after_messages)) {
    SetLinkState(destination, LinkState::kToAsk);
    HaveDutyTo(destination);
  }
}

// A duty that is staged, but not committed, is not seen here: then the bit stays.
void PeerPaths::RestIfIdle(uint32_t peer) {
  const PeerWords& words = view_.by_rank.peers[peer];
  if (journal_.pending() == 0 && words.queue_first == 0 && !Owes(words) &&
      (words.path | words.inward_path) == 0 && !IsDuty(StateOf(view_.by_rank.links[peer]))) {
    view_.by_rank.ClearBusy(peer);
  }
}

// ---- Credit -------------------------------------------------------------------------------------

bool PeerPaths::Owes(const PeerWords& peer) {
  return peer.drained - peer.returned >= kRemoteWindow / 2 ||
         peer.pushed_taken - peer.pushed_returned >= kPushWindow / 2 || peer.marker_owed != 0;
}

void PeerPaths::Owe(uint32_t source, uint32_t messages, uint32_t pushed_bytes) {
  PeerWords& peer = view_.by_rank.peers[source];
  PeerWords after = peer;
  after.drained += messages;
  after.pushed_taken += pushed_bytes;
  if (messages != 0) {
    journal_.Set(&peer.drained, after.drained);
  }
  if (pushed_bytes != 0) {
    journal_.Set(&peer.pushed_taken, after.pushed_taken);
  }
  if (!Owes(peer) && Owes(after)) {
    BeginToOwe(source);
  }
}

// Joins the open transaction: ReturnCredits is to look at the peer.
void PeerPaths::BeginToOwe(uint32_t source) {
  view_.by_rank.SetBusy(source);
  journal_.Set(&view_.layout->credits_owed, view_.layout->credits_owed + 1);
}

// Joins the open transaction: a peer that was owed credit has been told, or need not be.
void PeerPaths::SettleCredits(PeerWords& peer) {
  journal_.Set(&peer.returned, peer.drained);
  journal_.Set(&peer.pushed_returned, peer.pushed_taken);
  journal_.Set(&peer.marker_owed, 0U);
  journal_.Set(&view_.layout->credits_owed, view_.layout->credits_owed - 1);
}

// Credit goes back by the path that the messages came by: the thread that it wakes there, of the
// rank or of the worker, may push the messages that have waited for it by that path.
void PeerPaths::ReturnCredits(Effects& effects) {
  bool has_room[] = {true, runner_ == Runner::kRank};
  ForEachBusyPeer([&](uint32_t source) {
    if (Owes(view_.by_rank.peers[source])) {
      ReturnCredit(source, has_room, effects);
    }
    RestIfIdle(source);
    return view_.layout->credits_owed != 0;
  });
}

void PeerPaths::ReturnCredit(uint32_t source, bool (&has_room)[2], Effects& effects) {
  PeerWords& peer = view_.by_rank.peers[source];
  const uint32_t dead = shm::LoadAcquire(peer.dead);
  if (dead == static_cast<uint32_t>(ErrorCode::kLinkDown)) {
    return;  // once it is back
  }
  const bool by_link = peer.marker_owed == 0 && InwardPath(source) == PeerPath::kLink;
  const Core core = by_link ? Core::kLink : Core::kDaemon;
  if (!IsGone(dead)) {
    bool& room = has_room[static_cast<uint32_t>(core)];
    room = room && StageCredit(source, core, effects);
    if (!room) {
      return;
    }
  }
  SettleCredits(peer);
  journal_.Commit();
}

bool PeerPaths::StageCredit(uint32_t source, Core core, Effects& effects) {
  const PeerWords& peer = view_.by_rank.peers[source];
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(DescriptorKind::kCredit);
  descriptor.source = view_.rank;
  descriptor.destination = source;
  shm::CreditReturn credit{};
  credit.count = peer.drained;
  credit.bytes = peer.pushed_taken;
  credit.flags = peer.marker_owed != 0 ? shm::kCreditAll : 0;
  credit.epoch = peer.marker_owed;
  std::memcpy(descriptor.payload, &credit, sizeof(credit));
  return StageTo(core, descriptor, effects);
}

// A rank can give no more credit than it owes, and no less than it gave before. The answer to a
// marker gives back all of it: every message that was sent lay in front of the marker.
void PeerPaths::TakeCredit(const Arrival& arrival, Effects& effects) {
  shm::CreditReturn credit;
  std::memcpy(&credit, arrival.descriptor.payload, sizeof(credit));
  PeerWords& peer = view_.by_rank.peers[arrival.source];
  const bool answers = (credit.flags & shm::kCreditAll) != 0 && IsSwitching(peer.path) &&
                       credit.epoch == peer.path_epoch;
  if (answers) {
    const PeerPath path =
        PathTo(arrival.source) == PeerPath::kToLink ? PeerPath::kLink : PeerPath::kDaemon;
    journal_.Set(&peer.credited, peer.sent);
    SetPaths(arrival.source, path, InwardPath(arrival.source));
    if (path != PathWanted(arrival.source)) {
      HaveDutyTo(arrival.source);
    }
    effects.self = true;
  } else if (credit.count - peer.credited <= peer.sent - peer.credited) {
    journal_.Set(&peer.credited, credit.count);
  }
  if (credit.bytes - peer.pushed_credited <= peer.pushed - peer.pushed_credited) {
    journal_.Set(&peer.pushed_credited, credit.bytes);
  }
  engine_.Consume(arrival);
  journal_.Commit();
}

void PeerPaths::EndPaths(uint32_t peer) {
  if (PathTo(peer) != PeerPath::kDaemon || view_.by_rank.links[peer].state != 0) {
    SetPaths(peer, PeerPath::kDaemon, InwardPath(peer));
    SetLinkState(peer, LinkState::kNone);
    journal_.Commit();
  }
}

}  // namespace ferry::engine
