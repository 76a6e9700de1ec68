// The receiving side of a partitioned message (MPI_Precv_init).
//
// A receive is posted for the sender's offer (offer.h). Once the offer is there, the receiver's
// next call answers with the place for the data and the rounds that it has begun. Data then arrive
// without its help; but where it can read a local sender's buffer, it takes ready parts from there
// while it waits or asks. Where data cannot go to the program's buffer directly, they *land* in
// memory of the library's, and are copied to their place in those calls.
//
// Calling thread: see request.h and partitioned.h.
#pragma once

#include <atomic>
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

class PartitionedReceive final : public Side {
 public:
  // Makes the request, and posts the receive for the offer. Errors as of a receive.
  static Result<Ref<Request>> Make(const SideArguments& arguments);

  bool IsDone() override;
  void Look(MPI_Status* status) override;
  void GiveUp() override;

  int readied_partitions() const override { return 0; }
  int arriving_partitions() const override { return static_cast<int>(partitions_); }
  Failure Ready(int first, int last) override;
  Failure HasArrived(int partition, bool* has_arrived) override;
  Failure PrepareUnless(const std::atomic<bool>* is_cancelled) override;

  // The library's thread answers the offer while the program does something else, and completes
  // receives for which kernels wait.
  bool IsBusy() override;
  Progress AdvanceAll() override;

  // Answers the sender's offer if it has come. False: it has not, or another thread is answering
  // it.
  bool TryMatch();
  bool IsAwaited() override { return !is_matched_.load(std::memory_order_acquire); }

  Failure Describe(PrequestPlan* plan) override;

 protected:
  void BeginRound() override;
  Failure CheckPartner() override;
  void TellOfRest(bool rests) override;
  bool TryLeaveLocked() override;
  void TellOfWait(bool waits) override;
  bool HasNews() override;
  bool WaitsForCpuKernels() const override;

 private:
  explicit PartitionedReceive(const SideArguments& arguments) : Side(arguments) {}
  Failure Post();
  // Returns true if the sender's offer is there by now.
  bool IsMatched();
  bool MatchLocked();
  void AnswerLocked();
  Failure MakeRoomLocked(ReceiverAnswer* answer);
  bool IsReachable(const shm::Location& where) const;
  bool HasSenderEnded() const;
  // Valid once the receive is matched.
  bool IsLonger() const { return static_cast<uint64_t>(total_bytes()) > units_.total_bytes(); }
  Units::Needed NeededFor(int partition) const;
  // Valid once block_ is set.
  const ReceiverBlock& words() const {
    return *static_cast<const ReceiverBlock*>(static_cast<const void*>(block_.data));
  }
  bool ClearLocked();  // true: there was something to tell
  void TellSender();
  // receive_moves.cc
  bool AdvanceLocked();
  bool TakeReadyLocked();
  bool TakeOnceLocked(uint32_t end, bool takes_stale);
  uint32_t TakeFullLocked(uint32_t unit, bool is_first);
  void TellOfTaken(uint64_t parts);
  uint64_t TakeStaleLocked(uint32_t unit);
  void PullLocked(uint32_t unit, uint64_t bits);
  bool PullBytesLocked(uint64_t offset, uint64_t size_bytes);
  bool ArriveLocked();
  void CopyOutLocked();
  Failure Place(uint64_t offset, uint64_t size_bytes, const std::byte* from) const;
  void Break(Failure failure);

  // offer_ and posted_ change under mutex_ until the receive is matched; the members below are then
  // set once, before is_matched_.
  Offer offer_;
  client::RequestHandle posted_ = 0;
  std::atomic<bool> is_matched_{false};
  Units units_;
  PeerBlock sender_;
  SenderWords sender_words_;  // local
  Block block_;
  Block landing_;
  ArrivalWords arrived_;
  std::unique_ptr<uint64_t[]> copied_;  // with a landing: arrivals that are in their place
  ArrivalWords visible_;                // the words that the program sees: arrived_, or copied_
  bool can_take_ = false;
  PeerData source_;  // valid if can_take_
  Share share_;      // likewise

  std::atomic<bool> is_complete_{false};  // in this round
  // The first unit that was incomplete at the last look, and its word then.
  std::atomic<uint32_t> missed_unit_{0};
  std::atomic<uint64_t> missed_word_{0};
  std::atomic<uint64_t> seen_left_{0};     // the sender's LeftUnit at the last look
  std::atomic<uint64_t> next_look_ns_{0};  // when all units are looked at again

  // Under mutex_.
  uint64_t cleared_ = 0;        // the last value of SenderBlock::cleared
  uint64_t took_ = 0;           // parts taken in this round, as in SenderBlock::took
  uint32_t taken_units_ = 0;    // units before this one have been taken, in this round
  uint32_t visible_units_ = 0;  // units before this one are in their place
  std::vector<uint64_t> seen_;  // words of units that were not complete at the last look
  bool has_told_end_ = false;
};

}  // namespace ferry::mpi
