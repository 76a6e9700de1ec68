// Moves the messages of a matched pair by deferred work of the nodes' NICs, started by a doorbell
// that a stream rings ("Co-Design and Evaluation of a CPU-Free MPI GPU Communication Abstraction
// and Implementation", sections V-A and V-B).
//
//   sender                                        receiver
//   start ──► trigger ◄──────── increment ◄────── start          clear to send (not if ready)
//                │ = n (ready) or 2n
//                ▼
//              write ──────────────────────────► window
//                │ done                             │ each write counts
//                ▼                                  ▼
//              sent ──► increment ──► done word   arrived ──► increment ──► done word
//
// A send that follows receives (Pair::follows) has their arrivals counted by its trigger, too,
// which then fires at (2 + receives) n: the NIC adds them, as it adds what clears the send, by
// increments of the send's target. A receive that has moved round n otherwise (by software, by
// another NIC, before the send's NIC was ready) has it added by this class. No sum is reached too
// early: no NIC and no mover adds for round n+1 before all have added for n, because a receive's
// message n+1 needs this rank's start n+1, which comes after the send's message n.
//
// Starts by a doorbell that several ends share reach the NIC as one addition, to a counter of its
// own (SharedTrigger): it clears receives, and begins regular sends, by increments of their
// targets.
//
// Messages of more than kNicChunkBytes are several writes of one trigger. As sends and starts take
// turns, 2n is reached only when the n-th start and the n-th clear-to-send have both come. Ready
// sends that start together have one trigger (SharedTrigger), else each its own.
//
// Setting up. NicResources pins the memory and opens the counters. Then the mover tells the keeper,
// which tells the other daemon, and passes that one's answer to Connect; starts that were made
// meanwhile are not lost. Where the NIC cannot move the messages (no counters left, memory that it
// does not take), the mover tells the keeper so, before anything has moved.
//
// Where the NIC's driver lets another process map the page of a counter, this class tells the rank
// of the trigger's page (CounterPage): from the next start on its stream adds to the trigger
// itself, and this class arms and counts, but adds nothing. Ready sends then have a trigger each
// from the beginning.
//
// This class itself does the operations for which the NIC has no entry (DeferredPool), one by one,
// by the same counters: the other end, and the other operations, do not notice. A round is armed
// once it is wanted, up to kRoundsAhead before the last one is over.
//
// Failure. An operation that fails, or does not end within the time-out from the moment at which
// its trigger was seen reached, breaks the pair.
//
// Words that both the NIC and this class write: never at the same time, as rounds follow each
// other, but for a failure, which is therefore written again until the time-out has passed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "common/status.h"
#include "daemon/triggered/deferred_nics.h"
#include "daemon/triggered/nic_resources.h"
#include "daemon/triggered/pair.h"
#include "transports/api/deferred_work.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

inline constexpr uint32_t kRoundsAhead = 2;

class NicMover final : public PairMover {
 public:
  // Begins to pin. `peer`: a peer of the whole transport, which the NIC has, too. `weight`: of the
  // job.
  NicMover(Pair& pair, PairKeeper& keeper, DeferredNic& nic, transport::PeerId peer,
           DeferredPool::Job job, uint32_t weight);
  ~NicMover() override;
  NicMover(const NicMover&) = delete;
  NicMover& operator=(const NicMover&) = delete;

  // Connects this end to `other`, the place that the other end's mover has passed to OnNicOpen.
  // Only the first call counts.
  void Connect(NicPlace other);
  bool is_connected() const { return other_.has_value(); }
  const DeferredNic& nic() const { return nic_; }

  bool is_nic() const override { return true; }
  uint32_t Advance(uint64_t now_ns) override;
  bool IsDue() const override;
  void OnEnd(uint64_t context, ErrorCode code) override;
  bool may_lag() const override { return !pair_->is_send() || is_open_; }
  void OnFailed() override;
  void Leave() override;
  bool TryEnd() override;

 private:
  // kBegin: the trigger of a regular send counts a start by the shared doorbell. kFollow: the
  // trigger of a follower counts a message of this receive.
  enum class Kind : uint8_t { kMove, kClear, kStore, kBegin, kFollow };
  enum class Phase : uint8_t { kWaiting, kPosted, kDone };
  struct Operation {
    Kind kind{};
    uint32_t chunk = 0;  // of a move
    uint64_t round = 0;
    bool is_shared = false;    // SharedTrigger fires it
    Pair* follower = nullptr;  // of kFollow; may have gone since
    DeferredPool::Place place{};
    Phase phase = Phase::kWaiting;
    uint64_t due_ns = 0;  // its trigger was seen reached then; 0: not yet
  };
  struct Chunk {
    std::byte* local = nullptr;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  void OnSettled(ErrorCode code);
  Status OpenTrigger();

  uint64_t bytes() const { return pair_->plan.size_bytes; }
  uint32_t parts() const;
  Chunk ChunkAt(uint32_t index) const;
  uint64_t ContextOf(const Operation& operation) const;
  bool is_regular_send() const { return pair_->is_send() && !pair_->is_ready(); }
  // Returns true if an operation waits for this end's starts.
  bool has_starts() const { return pair_->is_send() || !pair_->is_ready(); }
  bool IsShared(uint64_t round) const { return shared_ != nullptr && doorbell_.Counts(round); }
  StatusOr<transport::DeferredTrigger> TriggerOf(const Operation& operation);
  // Returns true if only a start fires such an operation.
  bool IsFiredByStarts(Kind kind) const {
    return kind == Kind::kClear || kind == Kind::kBegin ||
           (kind == Kind::kMove && pair_->is_ready());
  }
  // Returns how far the trigger counts up in one round.
  uint64_t addends() const { return is_regular_send() ? 2 + pair_->follows.size() : 1; }
  StatusOr<transport::NicCounter> DoneCounterOf(Kind kind);
  bool IsReached(const Operation& operation);

  void OfferPage();
  void TakeStarts(uint64_t now_ns);
  void Share();
  void TakeRing();
  void TakeFollowed();
  NicMover* NextOf(const Pair* follower) const;
  bool LeaveToNic(const Pair& followed, uint64_t round);
  void Want(uint64_t round);
  void ArmWanted();
  void Arm(Kind kind, uint64_t round, uint32_t chunk = 0, Pair* follower = nullptr);
  ErrorCode ArmOnNic(const Operation& operation);
  NicPlace PlaceOf(const Operation& operation) const;
  bool is_active() const {
    return ring_waits_ > rounds_done_ ||
           (resources_.page().Counts(armed_) && armed_ > rounds_done_);
  }
  // Returns true if no wanted round is under way.
  bool is_idle() const { return wanted_ <= rounds_done_; }
  uint32_t Poll(uint64_t now_ns);
  uint32_t Perform(Operation* operation, uint64_t now_ns);
  ErrorCode PostWrite(const Operation& operation, uint64_t now_ns);
  ErrorCode MeaningOf(const Operation& operation, ErrorCode code) const;
  void EndOperation(Operation* operation);
  void Retire();
  void HoldFailure(uint64_t now_ns);
  void SetDeadline();
  void Close();

  Pair* pair_;  // null: it has left
  PairKeeper& keeper_;
  DeferredNic& nic_;
  const transport::PeerId peer_;         // of the whole transport
  const transport::PeerId peer_on_nic_;  // the same one
  const DeferredPool::Job job_;

  NicResources resources_;
  std::optional<NicPlace> other_;
  bool is_open_ = false;  // the keeper was told
  bool is_closed_ = false;

  std::shared_ptr<SharedTrigger> shared_;  // of the doorbell that its starts share
  SharedDoorbell doorbell_;                // of shared_

  // How far the trigger of a regular send has counted the messages of a receive that it follows.
  struct Followed {
    uint64_t added = 0;                 // rounds that this class has added
    uint64_t by_nic_from = UINT64_MAX;  // the NIC adds this round, and all later ones
  };
  std::vector<Followed> followed_;  // as pair_->follows; empty before the first look

  uint64_t wanted_ = 0;
  uint64_t armed_ = 0;
  uint64_t rung_ = 0;
  uint64_t trigger_rung_ = 0;   // of rung_, those that the trigger counts
  uint64_t ring_waits_ = 0;     // the last start made; > rung_: too early, as far as counters say
  uint64_t ring_waits_ns_ = 0;  // since then
  uint64_t rounds_done_ = 0;
  std::deque<Operation> operations_;  // of the rounds armed, and not done
  uint64_t hold_until_ns_ = 0;        // the failure is written again; 0: not begun
  bool has_held_ = false;             // the failure stays
};

}  // namespace ferry::daemon
