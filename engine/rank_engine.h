// The message engine of one rank: starts sends and receives, drains lanes, matches.
//
// Pure: it changes shared memory and private state, and says in Effects what is to be done outside
// the lease; it never copies user data, wakes, sleeps, reads a clock or enters the kernel. The same
// class runs in the rank and, while the rank computes, in the daemon's progress worker, each with
// its own mappings.
//
// Calling thread: the holder of the rank's progress lease, for every member unless noted. Errors of
// a message end up in its request; errors of the whole rank (a corrupt table, too many unexpected
// messages) in WakeLayout::poison, and in SessionLayout::fault what was found.
//
// Nothing in the segments is believed, not even what the rank itself wrote: an index is loaded once
// and checked before it leads anywhere, each walk is bounded, and the journal refuses stores that
// lie outside. If a peer wrote something wrong, the engine stops reading that lane and accuses the
// peer to the daemon, which ends the peer's session or parts the two.
//
// Messages to another node take one of two paths: by the daemons, or by a direct link of the two
// ranks, which the rank's own core serves (docs/protocol.md, "Direct links"). What has to do with
// direct links is for the rank's own process, whose threads turn that core: an engine of the worker
// pushes nothing to it, and leaves its lane alone.
//
// Follows MPI 5.0 sections 3.5 (order, matching) and 3.8 (probe, cancel), and docs/architecture.md.
#pragma once

#include <cstdint>
#include <vector>

#include "common/error_code.h"
#include "engine/effects.h"
#include "engine/message.h"
#include "engine/peer_table.h"
#include "engine/rendezvous/sender_side.h"
#include "engine/session_view.h"
#include "shm/counters.h"
#include "shm/fault.h"
#include "shm/journal.h"
#include "shm/lane.h"
#include "shm/match_table.h"
#include "shm/wake.h"

namespace ferry::engine {

inline constexpr uint32_t kDrainBudget = 32;   // descriptors in one step
inline constexpr uint32_t kRemoteWindow = 64;  // messages to one remote rank before a credit
// Polls that find something in the lane that spoke last, before the others get their turn.
inline constexpr uint32_t kHotStreak = 32;
inline constexpr uint32_t kRoomNoticeEvery = 64;  // how often consumers look for who waits for room
inline constexpr uint32_t kPushWindow = 1
                                        << 20;  // bytes pushed to one remote rank, and not matched
// A rank whose wish for a direct link was refused asks again after so many times the traffic.
inline constexpr uint32_t kRefusedPatience = 10;

// Who serves the rank's messages with other nodes. Each takes commands from a lane of its own, and
// brings arrivals by one.
enum class Core : uint32_t { kDaemon = 0, kLink = 1 };

// The side that runs the engine.
enum class Runner { kRank, kWorker };

struct EngineOptions {
  uint32_t eager_max_bytes = shm::kCellBytes;  // larger messages are announced by RTS
  uint32_t chunk_bytes = 128 * 1024;
  uint32_t single_chunk_max_bytes = 128 * 1024;  // larger transfers are worth helping with
  // Receives from other nodes of this size or more are announced by an RTR to their source; 0:
  // none.
  uint64_t receiver_first_min_bytes = 0;
  // RTSs by a direct link of this size or less may have their data pushed behind them.
  uint64_t push_max_bytes = 1 << 20;
};

class RankEngine {
 public:
  // `view` and `peers` outlive the engine, which maps the inbox of a peer of the node (PeerTable)
  // when a lane to it is opened, or when it has announced a message that lies in its memory.
  RankEngine(const SessionView& view, const PeerTable& peers, const EngineOptions& options,
             Runner runner);

  // ---- Sending -----------------------------------------------------------------------------
  // The lane that messages to `destination` take. Opening it touches its pages (system calls): done
  // once, before the first send and without the lease. Any thread. An error: it cannot be opened,
  // and only StartSend may be called, which then fails.
  bool LaneIsOpen(uint32_t destination) { return ProducerTo(destination).is_open(); }
  ErrorCode OpenLane(uint32_t destination);
  // A message of the node that can leave at once: inline, or in a cell that was taken and filled
  // (given back if it cannot). No effects, but a message sent is to be announced. False: nothing
  // happened.
  bool TrySendLocal(const SendArguments& send, const void* data, uint32_t cell);
  // A message of at most kInlineBytes that can leave at once. False: nothing happened.
  bool TrySendInline(const SendArguments& send, const void* data, Effects& effects);
  // A slab cell on the way to `destination` if a message of at most kCellBytes could leave now,
  // else kNoCell. Its bytes are at CellBytes; the caller fills them without the lease, then sends.
  // The number also says which lane the cell is of: the path may be switched meanwhile.
  uint32_t TryTakeCell(uint32_t destination);
  uint8_t* CellBytes(uint32_t destination, uint32_t cell);  // any thread
  // False: the message cannot leave that way any more; the cell was given back.
  bool TrySendCell(const SendArguments& send, uint32_t cell, Effects& effects);
  // Everything else: the request's slot is filled in (kind, context, peer, tag, buffer, size;
  // inline data in `payload` with descriptor_kind kEager). Announces it by RTS, or queues it; never
  // fails to take it.
  void StartSend(uint32_t request, Effects& effects);
  // One-sided commands: the same, without credits, to the core that the caller chooses; to the
  // rank's own only while messages to the peer take the direct link. If there is no room, the core
  // wakes this rank. Whoever pushes a command announces it (to ferryd by Wake::MustRing).
  uint32_t TryTakeCommandCell(Core core);
  uint8_t* CommandCellBytes(uint32_t cell) {
    return ProducerOf(CoreOfCell(cell)).Cell(cell & ~kCellByLink);
  }
  void ReturnCommandCell(uint32_t cell) {
    ProducerOf(CoreOfCell(cell)).ReturnCell(cell & ~kCellByLink);
  }
  bool TryCommand(Core core, const shm::Descriptor& command);

  // ---- Receiving ----------------------------------------------------------------------------
  // The request's slot is filled in. Matches a message that is there, or posts the receive.
  // kLimitExceeded: the match table is full; the request was not started.
  ErrorCode StartReceive(uint32_t request, Effects& effects);
  // For a blocking receive, before it is posted: gives the request an unexpected message, or one
  // that this round of Progress drains, and so spares the way through the table of posted receives.
  // Receives posted before come first. False: not yet; call again, or StartReceive.
  bool ReceiveNow(uint32_t request, Effects& effects);
  // Whether the receive, if it is posted, would be announced by an RTR: then that is not to be put
  // off.
  bool MaySendRtr(const shm::RequestLayout& slot) const;
  // The short way of a receive for a small message of the node: takes the next message of `lane` if
  // it is eager and for `pattern`, and nobody else's. False: nothing happened.
  bool TryTakeEager(uint32_t lane, const shm::Envelope& pattern, uint64_t capacity_bytes,
                    EagerMessage* message);
  // The same for an RTS of the node. FindRts decides for it, and changes nothing else: the lane
  // goes on with it if the caller does not take it. TakeWhole does, cut to the capacity: the caller
  // copies it, without the lease, and ends the transfer's only chunk. False: there is no such
  // RTS; it is longer than a chunk.
  bool FindRts(uint32_t lane, const shm::Envelope& pattern, AnnouncedMessage* rts);
  bool TakeWhole(const AnnouncedMessage& rts, uint64_t capacity_bytes);
  // For a blocking receive, which must not go that way for ever while other lanes wait: whether it
  // may, once more, before Progress has looked at all of them.
  bool TakeTurn() { return hot_streak_ != kHotStreak && ++hot_streak_ != 0; }
  // The lane to look at for a message from `source` (for kAnySource the one that spoke last), and
  // whether there is something in it; any thread, a hint.
  uint32_t LaneOf(int32_t source) const {
    if (source == shm::kAnySource) {
      return shm::LoadRelaxed(hot_lane_);
    }
    const Peer& peer = peers_.by_rank[static_cast<uint32_t>(source)];
    return peer.local ? peer.local_index : LaneFrom(static_cast<uint32_t>(source));
  }
  bool HasMessage(uint32_t lane) const { return consumers_[lane].Peek() != nullptr; }
  // Whether a message waits for its receive; any thread, a hint.
  bool HasUnexpected() const { return match_.unexpected_count() != 0; }
  // Whether receives are posted.
  // Without the lease, when the data was copied.
  void ReleaseCell(const EagerMessage& m) { consumers_[m.lane].ReleaseCell(m.cell); }
  const uint8_t* CellBytes(const EagerMessage& message) const {
    return consumers_[message.lane].Cell(message.cell);
  }
  // kWouldBlock: no unexpected message matches. Else what a receive would get, or the error it
  // would. A message that is only looked at can still be taken back by its sender (MPI 5.0, section
  // 3.8.1); one that is taken is there for the receive that follows under the same lease.
  enum class Use : uint8_t { kLook, kTake };
  ErrorCode Probe(const shm::Envelope& pattern, ProbeResult* result, Use use = Use::kLook);
  // True: it was still queued or posted, or announced inside the node and not taken, and is now
  // complete with kCancelled. So it will be if another node was told of it and has to agree: a
  // receive unless a message comes first, a send unless a receive has matched it.
  bool Cancel(uint32_t request, Effects& effects);

  // ---- Progress -----------------------------------------------------------------------------
  // Handles up to kDrainBudget descriptors; returns how many. Also does what else is due: queued
  // sends, credits, dead peers.
  uint32_t Progress(Effects& effects);
  // For a thread that is going to sleep (any, without the lease). Forgets which lanes had
  // something; then Wake::PrepareToSleep; then HasWork says whether Progress would find something,
  // and remembers where.
  LaneSet ForgetLanes();
  bool HasWork(const LaneSet& forgotten = {});
  // Whether some lane holds a descriptor (looks at each), or a death is news; any thread.
  bool HasArrivals() const;
  // True while something waits for room that a peer or a core will make (any thread).
  bool WaitsForRoom() const;
  // After the lease was taken from a dead holder: rolls its mutation forward and forgets nothing it
  // may have had in hand.
  ErrorCode RecoverFromDeadHolder();

  // ---- Direct links (rank_engine_paths.cc) ---------------------------------------------------
  // Messages to `peer`, of another node, take the direct link from now on, once what went by the
  // daemons is there. Before the call both ends must be able to send and receive. kInvalidRank: it
  // is on this node; else why nothing passes between the two: its end, kLinkDown.
  ErrorCode UseLink(uint32_t peer, Effects& effects);
  // They go by the daemons again, once what went by the link is there. The link has to stay until
  // IsLinkFree says that nothing takes it any more.
  void LeaveLink(uint32_t peer, Effects& effects);
  // The same for all peers. A rank that leaves its job waits until SendsByLink is false.
  void LeaveLinks(Effects& effects);
  // The daemon grants no link: the rank asks again after kRefusedPatience times the traffic.
  void RefuseLink(uint32_t peer);
  // The direct link has ended, whoever closed it, and the core has ended its own work for the peer.
  // If something still took it, nothing passes between the two any more, and what was under way
  // waits. The daemon is told: it parts the two (kLinkDown), which fails that, and they begin anew;
  // or it finds that the peer is dead, which fails that with the peer's end. `was_taken`: by
  // operations that the engine knows nothing of.
  void FailLink(uint32_t peer, Effects& effects, bool was_taken = false);
  // Tells the daemon something of the direct link to `peer`. False: there is no room now.
  bool TellOfLink(uint32_t peer, shm::LinkMatter matter, Effects& effects);

  // Any thread, a hint unless the caller holds the lease.
  shm::PeerPath PathTo(uint32_t peer) const {
    return static_cast<shm::PeerPath>(shm::LoadRelaxed(view_.layout->peers[peer].path));
  }
  // By a direct link: whether the receiver has room for the data of an RTS that leaves now. The
  // same.
  bool MayPush(uint32_t destination, uint64_t size_bytes) const;
  // Whether a send that starts now takes a direct link and its data follows at once, so that it
  // ends without its receive: also nothing waits before it, which would take that room. Calling
  // thread: the holder of the lease.
  bool PushesAtOnce(uint32_t destination, uint64_t size_bytes) {
    return CoreTo(destination) == Core::kLink && CanLeave(destination) &&
           MayPush(destination, size_bytes) && ProducerOf(Core::kLink).HasRoom();
  }
  // Whether some direction, to or from this rank, takes a direct link, or is about to.
  bool UsesLinks() const { return shm::LoadRelaxed(view_.layout->linked_peers) != 0; }
  // Whether messages to some rank that lives take a direct link, or do not yet go by the daemons.
  bool SendsByLink() const;
  // Whether sends wait that may be for a direct link. What the worker drains, an answer to a marker
  // or credit, may let them go; nobody wakes the rank for that, and the worker may not push there.
  // So a thread that turns the rank's core while it computes does not sleep for long while this is
  // true.
  bool AwaitsLink() const {
    return UsesLinks() && shm::LoadRelaxed(view_.layout->queued_sends) != 0;
  }
  // Whether nothing of the two takes the direct link: no direction, no RTS that waits for its
  // receive at either end, no transfer. Looks at all requests and unexpected messages.
  bool IsLinkFree(uint32_t peer) const;
  // How many cuts from the peer this rank has acted on. They have told of what a link that was used
  // before has lost.
  uint32_t CutsApplied(uint32_t peer) const { return view_.layout->rtrs[peer].cuts_applied; }

  const SessionView& view() const { return view_; }
  const PeerTable& peers() const { return peers_; }

 private:
  // A descriptor taken from a lane, and whom it is really from.
  struct Arrival {
    shm::Descriptor descriptor;
    uint32_t source;
    uint32_t lane;
  };

  // Sending (rank_engine_send.cc).
  shm::LaneProducer& ProducerOf(Core core) {
    return producers_[view_.inbox.local_size + static_cast<uint32_t>(core)];
  }
  shm::LaneProducer& ProducerTo(uint32_t destination) {
    const Peer& peer = peers_.by_rank[destination];
    return peer.local ? producers_[peer.local_index] : ProducerOf(CoreTo(destination));
  }
  Core CoreTo(uint32_t destination) const {
    return PathTo(destination) == shm::PeerPath::kLink ? Core::kLink : Core::kDaemon;
  }
  bool HasCredit(uint32_t destination) const {
    const shm::PeerWords& peer = view_.layout->peers[destination];
    return peers_.by_rank[destination].local ||
           (peer.sent - peer.credited < kRemoteWindow && (peer.path & closed_paths_) == 0);
  }
  // Whether a new message may go at once: nothing to `destination` waits before it.
  bool CanLeave(uint32_t destination) const {
    const shm::PeerWords& peer = view_.layout->peers[destination];
    return peer.queue_first == 0 && shm::LoadRelaxed(peer.dead) == 0 &&
           shm::LoadRelaxed(peer.cut) != static_cast<uint32_t>(shm::CutState::kTell) &&
           HasCredit(destination);
  }
  bool IsRank(int32_t peer) const { return static_cast<uint32_t>(peer) < view_.job_size; }
  bool IsRequest(uint32_t request) const { return request != 0 && request < view_.request_limit; }
  // In the number of a cell that TryTakeCell has given: it is of the lane to the direct links.
  static constexpr uint32_t kCellByLink = 1U << 16;
  static Core CoreOfCell(uint32_t cell) {
    return (cell & kCellByLink) != 0 ? Core::kLink : Core::kDaemon;
  }
  shm::LaneProducer& ProducerOfCell(uint32_t destination, uint32_t cell);
  shm::TransferLayout* TransferOf(const shm::RequestLayout& slot) const;
  bool StageTo(Core core, const shm::Descriptor& descriptor, Effects& effects);
  bool Push(uint32_t destination, const shm::Descriptor& descriptor, Effects& effects);
  bool PushLocal(uint32_t destination, const shm::Descriptor& descriptor, Effects& effects);
  bool PushRemote(uint32_t destination, const shm::Descriptor& descriptor, const SenderSide& side,
                  Effects& effects);
  bool Rts(uint32_t request, uint32_t destination, Effects& effects);
  bool AnnounceLocal(uint32_t request, uint32_t destination, Effects& effects);
  bool AnnounceRemote(uint32_t request, uint32_t destination, Effects& effects);
  void SetSent(shm::RequestLayout& slot);
  void IntendPush(uint32_t request, uint32_t destination);
  void FinishPush();
  shm::Descriptor EagerRts(uint32_t request, const SendArguments& send) const;
  shm::Descriptor LocalRtsOf(uint32_t request, const SendArguments& send);
  shm::Descriptor RemoteRtsOf(uint32_t request, const SendArguments& send);
  bool Retract(uint32_t request, Effects& effects);
  bool StageRetraction(uint32_t request, Effects& effects);
  void Enqueue(uint32_t request);
  void Unqueue(uint32_t request);
  void FlushQueue(uint32_t destination, Effects& effects);
  void FlushQueues(Effects& effects);

  // Draining (rank_engine.cc).
  uint32_t LaneWords() const { return (shm::LaneCount(view_.inbox.local_size) + 63) / 64; }
  bool IsRemote(uint32_t lane) const { return shm::IsRemoteLane(lane, view_.inbox.local_size); }
  // Of a lane for which IsRemote is true.
  Core CoreOf(uint32_t lane) const { return static_cast<Core>(lane - view_.inbox.local_size); }
  uint32_t LaneOf(Core core) const { return view_.inbox.local_size + static_cast<uint32_t>(core); }
  // The lane that messages from a rank of another node come by.
  uint32_t LaneFrom(uint32_t source) const {
    return LaneOf(InwardPath(source) == shm::PeerPath::kLink ? Core::kLink : Core::kDaemon);
  }
  uint32_t DrainActive(Effects& effects);
  bool Fetch(uint32_t lane, Arrival* arrival) const;
  uint32_t DrainLane(uint32_t lane, uint32_t budget, Effects& effects);
  void NoticeRoom(uint32_t lane, Effects& effects);
  bool IsPlausible(const Arrival& arrival) const;
  bool Handle(const Arrival& arrival, Effects& effects);
  void CloseLane(uint32_t lane);
  void Accuse(Effects& effects);
  bool HandleMessage(const Arrival& arrival, Effects& effects);
  void HandleResult(const Arrival& arrival, Effects& effects);
  void EndWith(shm::RequestLayout& slot, ErrorCode error);
  bool HandleRetract(const Arrival& arrival, Effects& effects);
  void HandleLeft(const Arrival& arrival);
  void Consume(const Arrival& arrival, bool matched = false);
  void Complete(shm::RequestLayout& slot, ErrorCode error);
  void Poison(ErrorCode error);
  void PoisonCorrupt(const shm::Fault& fault);
  void RaiseAlarms(Effects& effects);

  // Matching (rank_engine_receive.cc).
  bool TakeUnexpected(uint32_t request, Effects& effects);
  uint32_t FindUnexpected(const shm::Envelope& pattern, Use use);
  bool IsToBeHad(uint32_t source, uint8_t kind, const uint8_t* payload, Use use = Use::kTake) const;
  bool TakeArrived(uint32_t request, Effects& effects);
  ErrorCode Ailment();
  bool HasDuties() const;
  const shm::Descriptor* PeekForShortWay(uint32_t lane) const;
  void ConsumeShortWay(uint32_t lane, uint64_t size_bytes, shm::Path path);
  bool MatchesDirect(const shm::Envelope& envelope) const;
  void Match(uint32_t request, const Arrival& arrival, Effects& effects);
  bool CancelAnnounced(shm::RequestLayout& slot, uint32_t request, Effects& effects);
  void OpenTransfer(shm::RequestLayout& slot, const Arrival& arrival);
  void PublishTransfer(uint32_t request, uint32_t source, Effects& effects);
  void RepublishTransfers();
  void DescribeRndvGet(shm::RequestLayout& slot, uint32_t request, const Arrival& arrival);
  void StageRndvGet(uint32_t request, Effects& effects);
  bool TryStageRndvGet(uint32_t request, Effects& effects);
  void FlushControls(Effects& effects);
  void FlushControl(Core core, Effects& effects);
  Core CoreOfRndvGet(const shm::RequestLayout& slot) const {
    return slot.lane == LaneOf(Core::kLink) ? Core::kLink : Core::kDaemon;
  }
  shm::Path PathOf(const shm::RequestLayout& slot, const Arrival& arrival) const;
  void CountArrival(const shm::RequestLayout& slot, const Arrival& arrival);

  // Receiver-first rendezvous (rank_engine_rtr.cc).
  void SendRtr(uint32_t request, Effects& effects);
  bool StageRtr(shm::DescriptorKind kind, uint8_t flags, const Rtr& rtr, Effects& effects);
  void EndRtr(uint32_t request, const Arrival& arrival, Effects& effects);
  void Withdraw(uint32_t request, Effects& effects);
  void FlushWithdrawals(Effects& effects);
  bool AwaitsWithdrawal(const shm::RequestLayout& slot) const;
  bool AwaitsReceive(const shm::RequestLayout& slot) const;
  void FailReceiveByRtr(uint32_t request, ErrorCode error, Effects& effects);
  void HandleWithdrawn(const Arrival& arrival, Effects& effects);
  bool HandlePut(const Arrival& arrival);
  bool MayPut(const shm::RequestLayout& slot) const;
  void LookForRtrs(const shm::RequestLayout& slot, Effects& effects);
  shm::Descriptor PutRts(uint32_t request, const shm::Descriptor& rts, const Rtr& rtr) const;
  void NoteSent(uint32_t destination, const SenderSide& side);
  void NoteHeld(shm::RtrBook* book, const SenderSide& side);
  void TakeRtr(const Arrival& arrival);

  // Paths and credit (rank_engine_paths.cc).
  shm::PeerPath InwardPath(uint32_t peer) const {
    return static_cast<shm::PeerPath>(shm::LoadRelaxed(view_.layout->peers[peer].inward_path));
  }
  void SetPaths(uint32_t peer, shm::PeerPath path, shm::PeerPath inward);
  void SetLinkState(uint32_t peer, shm::LinkState state);
  bool TrySwitch(uint32_t peer, Effects& effects);
  shm::PeerPath PathWanted(uint32_t peer) const;
  bool HasSwitchDue(uint32_t peer) const;
  bool HasRequestsByLink(uint32_t peer) const;
  bool StageLinkCommand(uint32_t peer, shm::LinkMatter matter, Effects& effects);
  void DoLinkDuties(Effects& effects);
  bool DoLinkDuty(uint32_t peer, Effects& effects);
  void CountByDaemon(uint32_t destination, uint64_t size_bytes);
  bool IsOfEarlierLink(const Arrival& arrival) const;
  void Drop(const Arrival& arrival);
  void HandleSwitch(const Arrival& arrival);
  void TakeCredit(const Arrival& arrival, Effects& effects);
  // What the receiver of a message gives back of PeerWords::pushed, once it has matched it.
  static uint32_t PushedBytes(uint8_t kind, uint8_t flags, uint64_t size_bytes) {
    return kind == static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts) &&
                   (flags & shm::kFlagPushed) != 0
               ? static_cast<uint32_t>(size_bytes)
               : 0;
  }
  static bool Owes(const shm::PeerWords& peer);
  void Owe(uint32_t source, uint32_t messages, uint32_t pushed_bytes);
  void SettleCredits(shm::PeerWords& peer);
  void ReturnCredits(Effects& effects);
  bool StageCredit(uint32_t source, Core core, Effects& effects);
  void EndPaths(uint32_t peer);

  // Deaths (rank_engine_deaths.cc).
  ErrorCode DeathOf(int32_t peer) const;
  ErrorCode CauseOfLoss(const shm::RequestLayout& slot) const;
  bool HasToHearOfCut(int32_t peer) const;
  bool MustHearOfCut(int32_t peer);
  void ForgetCredits(uint32_t rank);
  void ApplyDeaths(Effects& effects);
  void FailIfDead(uint32_t request, Effects& effects);
  void AbandonTransfer(uint32_t request);
  bool IsTransferDone(const shm::RequestLayout& slot) const;

  SessionView view_;
  const PeerTable& peers_;
  EngineOptions options_;
  Runner runner_;
  shm::Journal journal_;
  shm::MatchTable match_;
  shm::Statistics statistics_;
  shm::Wake wake_;
  std::vector<shm::LaneProducer> producers_;  // by local index; the last two lead to the cores
  std::vector<shm::LaneConsumer> consumers_;  // by lane
  const uint32_t served_lanes_;               // those that Progress drains: the first so many
  const uint32_t closed_paths_;  // bits of PeerWords::path that keep messages from leaving here
  uint32_t direct_ = 0;          // the request of ReceiveNow while that runs
  uint32_t hot_lane_ = 0;
  uint32_t hot_streak_ = 0;
  bool alarmed_ = false;  // the daemon is to be told of a fault, or of the lanes of accused_
  LaneSet accused_;
  // The deaths this engine has applied: a receive fails only once what the dead had sent before was
  // drained. Another engine of the session applies them by itself.
  uint32_t deaths_seen_ = 0;
  std::vector<ErrorCode> deaths_;        // by rank
  ErrorCode any_died_ = ErrorCode::kOk;  // how some rank of the job died, orderly leaves apart
};

}  // namespace ferry::engine
