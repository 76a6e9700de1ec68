// The sending half of the engine: sends messages at once, by RTS, or from the rank's queue.
//
// Part of RankEngine. Calling thread: the holder of the rank's progress lease, for every member
// unless noted. Nothing blocks, but OpenLane enters the kernel.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "engine/engine_context.h"
#include "engine/message.h"
#include "engine/rendezvous/sender_side.h"

namespace ferry::engine {

class PeerEnds;
class PeerPaths;
class RankEngine;
class ReceiverFirst;

class SendEngine : private EngineContext {
 public:
  struct Parts {
    RankEngine& engine;
    PeerPaths& paths;
    PeerEnds& ends;
    ReceiverFirst& receiver_first;
  };
  SendEngine(const EngineContext& context, const Parts& parts)
      : EngineContext(context),
        engine_(parts.engine),
        paths_(parts.paths),
        ends_(parts.ends),
        receiver_first_(parts.receiver_first),
        closed_paths_(runner_ == Runner::kWorker ? 3 : 1) {}
  SendEngine(const SendEngine&) = delete;
  SendEngine& operator=(const SendEngine&) = delete;

  // ---- Messages ---------------------------------------------------------------------------------
  // True if the lane that messages to `destination` take can be used; any thread.
  bool LaneIsOpen(uint32_t destination) { return ProducerTo(destination).is_open(); }
  // Opens that lane, once, before the first send and without the lease: it touches the lane's pages
  // (system calls). Any thread. An error: it cannot be opened, and only StartSend may be called,
  // which then fails.
  ErrorCode OpenLane(uint32_t destination);
  // Sends a message of the node that can leave at once: inline, or in a cell that was taken and
  // filled (given back if the message cannot leave). No effects, but a message sent is to be
  // announced. False: nothing happened.
  bool TrySendLocal(const SendArguments& send, const void* data, uint32_t cell);
  // Sends a message of at most kInlineBytes that can leave at once. False: nothing happened.
  bool TrySendInline(const SendArguments& send, const void* data, Effects& effects);
  // Takes a slab cell on the way to `destination` if a message of at most kCellBytes could leave
  // now; else returns kNoCell. The caller fills CellBytes without the lease, then calls
  // TrySendCell. The number also says which lane the cell is of: the path may be switched
  // meanwhile.
  uint32_t TryTakeCell(uint32_t destination);
  uint8_t* CellBytes(uint32_t destination, uint32_t cell);  // any thread
  // Sends the message that lies in the cell. False: it cannot leave that way any more; the cell was
  // given back.
  bool TrySendCell(const SendArguments& send, uint32_t cell, Effects& effects);
  // Starts any other message. The request's slot is filled in (kind, context, peer, tag, buffer,
  // size; inline data in `payload` with descriptor_kind kEager). Announces it by RTS, or queues it;
  // never fails to take it.
  void StartSend(uint32_t request, Effects& effects);
  // True if the receiver has room for the data of an RTS that leaves by a direct link now. Any
  // thread, a hint unless the caller holds the lease.
  bool MayPush(uint32_t destination, uint64_t size_bytes) const;
  // True if a send that starts now takes a direct link and its data follow at once, so that it ends
  // without its receive: also nothing waits before it, which would take that room.
  bool PushesAtOnce(uint32_t destination, uint64_t size_bytes) {
    return CoreTo(destination) == Core::kLink && CanLeave(destination) &&
           MayPush(destination, size_bytes) && ProducerOf(Core::kLink).HasRoom();
  }

  // ---- One-sided commands -----------------------------------------------------------------------
  // Commands go without credits to the core that the caller chooses; to the rank's own core only
  // while messages to the peer take the direct link. If there is no room, the core wakes this rank
  // once there is. The caller announces a command that was pushed (to ferryd by Wake::MustRing).
  uint32_t TryTakeCommandCell(Core core);
  uint8_t* CommandCellBytes(uint32_t cell) {
    return ProducerOf(CoreOfCell(cell)).Cell(cell & ~kCellByLink);
  }
  void ReturnCommandCell(uint32_t cell) {
    ProducerOf(CoreOfCell(cell)).ReturnCell(cell & ~kCellByLink);
  }
  bool TryCommand(Core core, const shm::Descriptor& command);

  // ---- For the engine's other parts -------------------------------------------------------------
  // Cancels a send inside the node that no receive has matched. False: one has.
  bool CancelAnnounced(shm::RequestLayout& slot, uint32_t request, Effects& effects);
  // Withdraws a send that was announced to another node. False: it is no such send.
  bool Retract(uint32_t request, Effects& effects);
  // Adds the retraction of a send to the open transaction. False: no room.
  bool StageRetraction(uint32_t request, Effects& effects);
  // True if the request is a send that was announced to another node, whose receiver may answer.
  bool AwaitsReceive(const shm::RequestLayout& slot) const;
  // Sends queued messages, where there is room and credit.
  void FlushQueues(Effects& effects);
  // Takes a queued send out of the middle of its queue (cancel, end), in the open transaction.
  void Unqueue(uint32_t request);
  // For a successor in the lease: does the rest of a push that happened, forgets one that did not.
  void FinishPush();
  void TakeRtr(const Arrival& arrival);

 private:
  // Marks the number of a cell, as TryTakeCell returns it, as one of the lane to the direct links.
  static constexpr uint32_t kCellByLink = 1U << 16;
  static Core CoreOfCell(uint32_t cell) {
    return (cell & kCellByLink) != 0 ? Core::kLink : Core::kDaemon;
  }
  shm::LaneProducer& ProducerOfCell(uint32_t destination, uint32_t cell);

  bool HasCredit(uint32_t destination) const {
    const shm::PeerWords& peer = view_.by_rank.peers[destination];
    return peers_.by_rank[destination].local ||
           (peer.sent - peer.credited < kRemoteWindow && (peer.path & closed_paths_) == 0);
  }
  // Returns true if a new message may go at once: no message to `destination` waits before it.
  bool CanLeave(uint32_t destination) const {
    const shm::PeerWords& peer = view_.by_rank.peers[destination];
    return peer.queue_first == 0 && shm::LoadRelaxed(peer.dead) == 0 &&
           shm::LoadRelaxed(peer.cut) != static_cast<uint32_t>(shm::CutState::kTell) &&
           HasCredit(destination);
  }

  bool Push(uint32_t destination, const shm::Descriptor& descriptor, Effects& effects);
  bool PushLocal(uint32_t destination, const shm::Descriptor& descriptor, Effects& effects);
  bool PushRemote(uint32_t destination, const shm::Descriptor& descriptor, const SenderSide& side,
                  Effects& effects);
  bool Rts(uint32_t request, uint32_t destination, Effects& effects);
  bool AnnounceLocal(uint32_t request, uint32_t destination, Effects& effects);
  bool AnnounceRemote(uint32_t request, uint32_t destination, Effects& effects);
  void SetSent(shm::RequestLayout& slot);
  void IntendPush(uint32_t request, uint32_t destination);
  shm::Descriptor EagerRts(uint32_t request, const SendArguments& send) const;
  shm::Descriptor LocalRtsOf(uint32_t request, const SendArguments& send);
  shm::Descriptor RemoteRtsOf(uint32_t request, const SendArguments& send);
  void Enqueue(uint32_t request);
  void FlushQueue(uint32_t destination, Effects& effects);

  // Sends into receives that RTRs name (engine/rendezvous/rtr.h).
  // Returns true if an RTR is of use to the send. Data that could travel with its RTS needs none.
  static bool MayPut(const shm::RequestLayout& slot) {
    return slot.size_bytes > shm::kRunBytes && slot.buffer.region != 0;
  }
  void LookForRtrs(const shm::RequestLayout& slot, Effects& effects);
  shm::Descriptor PutRts(uint32_t request, const shm::Descriptor& rts, const Rtr& rtr) const;
  void NoteSent(uint32_t destination, const SenderSide& side);
  void NoteHeld(shm::RtrBook* book, const SenderSide& side);

  RankEngine& engine_;
  PeerPaths& paths_;
  PeerEnds& ends_;
  ReceiverFirst& receiver_first_;
  const uint32_t closed_paths_;  // bits of PeerWords::path that keep messages from leaving here
};

}  // namespace ferry::engine
