// The receiving side of a partitioned message (MPI_Precv_init).
//
// A receive is posted for the sender's offer (offer.h). Once it is there, in whatever call, the
// receiver answers where data go and which rounds it has begun. Data then arrive without it; but
// where it can read a local sender's buffer, it takes what is ready from there while it waits or
// asks. Where data cannot go to the program's buffer directly, they *land* in memory of the
// library's, and are copied to their place in those calls.
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
  // Errors of a receive.
  static Result<Ref<Request>> Make(const SideArguments& arguments);

  bool IsDone() override;
  void Look(MPI_Status* status) override;
  void GiveUp() override;

  int readied_partitions() const override { return 0; }
  int arriving_partitions() const override { return static_cast<int>(partitions_); }
  Failure Ready(int first, int last) override;
  Failure HasArrived(int partition, bool* has_arrived) override;
  Failure PrepareUnless(const std::atomic<bool>* is_cancelled) override;

  // The library's thread answers the offer while the program does something else, and looks after
  // what kernels wait for.
  bool IsBusy() override;
  Progress AdvanceAll() override;

  // Answers the sender if it has come. False: it has not, or another thread is about it.
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
  // Whether the sender's offer is there by now.
  bool IsMatched();
  bool MatchLocked();
  void AnswerLocked();
  Failure MakeRoomLocked(ReceiverAnswer* answer);
  bool IsReachable(const shm::Location& where) const;
  bool HasSenderEnded() const;
  // Once it is matched.
  bool IsLonger() const { return static_cast<uint64_t>(total_bytes()) > units_.total_bytes(); }
  Units::Needed NeededFor(int partition) const;
  // Once block_ is there.
  const ReceiverBlock& words() const {
    return *static_cast<const ReceiverBlock*>(static_cast<const void*>(block_.data));
  }
  bool ClearLocked();  // whether there was something to tell
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

  // Under mutex_ until it is matched; what follows then is set once, before is_matched_.
  Offer offer_;
  client::RequestHandle posted_ = 0;
  std::atomic<bool> is_matched_{false};
  Units units_;
  PeerBlock sender_;
  SenderWords sender_words_;  // local
  Block block_;
  Block landing_;
  ArrivalWords arrived_;
  std::unique_ptr<uint64_t[]> copied_;  // landing: `arrived` up to what is in its place
  ArrivalWords visible_;                // what the program sees: arrived_, or copied_
  bool can_take_ = false;
  PeerData source_;  // then
  Share share_;      // likewise

  std::atomic<bool> is_complete_{false};  // in this round
  // The unit that the last look missed, and its word then.
  std::atomic<uint32_t> missed_unit_{0};
  std::atomic<uint64_t> missed_word_{0};
  std::atomic<uint64_t> seen_left_{0};     // the sender's last LeftUnit that it has seen
  std::atomic<uint64_t> next_look_ns_{0};  // at all units

  // Under mutex_.
  uint64_t cleared_ = 0;        // as the sender was told
  uint64_t took_ = 0;           // parts, in this round; as the sender was told
  uint32_t taken_units_ = 0;    // units before have been taken, in this round
  uint32_t visible_units_ = 0;  // likewise: are in their place
  std::vector<uint64_t> seen_;  // words of units that were not complete at the last look
  bool has_told_end_ = false;
};

}  // namespace ferry::mpi
