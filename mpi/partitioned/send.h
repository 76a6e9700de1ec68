// The sending side of a partitioned message (MPI_Psend_init).
//
// Ready marks partitions by one atomic exchange for each unit, or by a store where the thread is
// alone in the library and does not complete the unit; a thread that completes a unit whose round
// the receiver has cleared moves it at once. The receiver moves the rest, if it is local and can
// read the buffer; otherwise this side's other calls, or the library's thread, move it.
//
// Calling thread: see request.h and partitioned.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "client/api/front_end.h"
#include "mpi/partitioned/blocks.h"
#include "mpi/partitioned/offer.h"
#include "mpi/partitioned/peer.h"
#include "mpi/partitioned/side.h"
#include "mpi/partitioned/units.h"
#include "mpi/partitioned/words.h"

namespace ferry::mpi {

class PartitionedSend final : public Side {
 public:
  // MPI_ERR_NO_MEM; errors of the message to the receiver.
  static Result<Ref<Request>> Make(const SideArguments& arguments, const UnitLimits& limits);
  ~PartitionedSend() override;

  bool IsDone() override;
  void Look(MPI_Status* status) override;

  int readied_partitions() const override { return static_cast<int>(partitions_); }
  int arriving_partitions() const override { return 0; }
  Failure Ready(int first, int last) override;
  bool TryReady(int partition) override;
  Failure HasArrived(int partition, bool* has_arrived) override;
  Failure PrepareUnless(const std::atomic<bool>* is_cancelled) override;

  // The library's thread moves the data that the receiver cannot take.
  bool IsBusy() override;
  Progress AdvanceAll() override;

  bool IsNamed() override;
  void GiveUp() override;
  bool IsAwaited() override;

  Failure Describe(PrequestPlan* plan) override;

 protected:
  void BeginRound() override;
  Failure CheckPartner() override;
  void TellOfRest(bool rests) override;
  bool TryLeaveLocked() override;
  void TellOfWait(bool waits) override;
  void TellOfPrequest() override;

 private:
  PartitionedSend(const SideArguments& arguments, const UnitLimits& limits);
  bool CanBeRead() const;
  Failure Open();
  Failure SendOffer();
  bool IsOfferGone();
  bool IsSettled();
  Units Cut(const SideArguments& arguments, const UnitLimits& limits) const;
  bool SettleLocked();
  void MarkReady(uint32_t unit, uint64_t bits, uint32_t* again);
  uint64_t BitsOf(uint32_t partition) const {
    return partition_bits_ << (partition & (units_.per_unit - 1));
  }
  bool IsRefused() const;
  Failure Refusal() const;
  bool IsCleared(uint64_t round);
  // send_moves.cc
  bool LeaveToReceiver(uint32_t unit, uint64_t round, bool is_alone);
  void Move(uint32_t unit, uint64_t round);
  uint32_t MoveFullLocked(uint32_t unit, uint64_t round, bool* is_first);
  void MoveBits(uint32_t unit, uint64_t bits, uint64_t round);
  ErrorCode MoveRun(uint32_t unit, const Units::Run& run, uint64_t round);
  const std::byte* SourceAt(uint64_t offset, uint64_t size_bytes);
  bool IsSourceByStream() const { return is_by_stream_ && packed_ == nullptr; }
  void BreakBy(ErrorCode error);
  // Returns true if the receiver has said that it takes nothing, whether or not it can read the
  // buffer.
  bool IsLeftAlone() const {
    return is_settled_.load(std::memory_order_acquire) && answer_.can_take == 0;
  }
  bool IsWatchedByHelper() const {
    return !is_local_ || !is_readable_ || IsLeftAlone() ||
           (prequest_ != nullptr && prequest_->LeavesToHost());
  }
  void TellReceiver();
  bool IsOver();
  bool AdvanceLocked();
  void FlushLocked(uint64_t round);
  void MoveReadyLocked(uint64_t round);
  void MoveStale(uint32_t unit, uint64_t round);
  bool IsOverLocked(uint64_t round);
  bool AreAskedLocked(uint64_t round);
  bool AreAllReadiedLocked(uint64_t round);
  void Break(Failure failure);

  const bool is_readable_;  // by ranks of the node
  const Units units_;
  const uint32_t unit_shift_;      // units_.per_unit is a power of two
  const uint64_t partition_bits_;  // of the first one of a unit
  Block block_;
  SenderWords words_;
  Offer offer_;
  client::RequestHandle offer_handle_ = 0;
  std::unique_ptr<std::byte[]> packed_;         // null: the data are dense
  client::OneSidedContext* context_ = nullptr;  // remote

  // Set once, under mutex_, before is_settled_.
  std::atomic<bool> is_settled_{false};
  ReceiverAnswer answer_;
  PeerBlock receiver_;
  PeerData destination_;
  ArrivalWords arrived_;  // local
  Share share_;           // local

  std::atomic<uint64_t> left_{0};  // PartsOfRound: how many were left to the receiver
  std::atomic<bool> needs_quiet_{
      false};  // remote: puts of this round read the buffer until the context is quiet

  // Under mutex_. Units before these have been readied, taken, and have arrived, in this round.
  uint32_t readied_units_ = 0;
  uint32_t taken_units_ = 0;
  uint32_t arrived_units_ = 0;
  bool is_done_ = false;
  std::vector<uint64_t> seen_;  // words of units that were not complete at the last look
  uint64_t next_look_ns_ = 0;
  uint64_t next_flush_ns_ = 0;
  bool has_told_end_ = false;

  // Threads in Ready that have made a unit full, or are about to: while there are any the request
  // stays, even if others have seen the unit, ended the round and freed it. For a remote receiver
  // they may also be about to put parts that they have taken. On a line of its own.
  alignas(64) std::atomic<uint32_t> acting_{0};
};

}  // namespace ferry::mpi
