#include "mpi/partitioned/send.h"

#include <algorithm>
#include <bit>
#include <new>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/counted.h"
#include "mpi/base/connection.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {
namespace {

// The fewest bytes that are worth being moved at once; for long messages to a local receiver, up to
// a sixteenth of the message.
constexpr uint64_t kLocalBytes = 16 << 10;
constexpr uint64_t kMostLocalBytes = 64 << 10;
constexpr uint64_t kRemoteBytes = 256 << 10;
// The smallest pieces of large partitions.
constexpr uint64_t kLocalPieceBytes = 64 << 10;
constexpr uint64_t kRemotePieceBytes = 128 << 10;

}  // namespace

// Cuts the send into units. Partitions that a local receiver cannot take from the buffer have the
// smallest units, and leave at once. Memory that only streams reach is copied by the driver, to
// which each copy is work: there pieces would cost more than they bring.
Units PartitionedSend::Cut(const SideArguments& arguments, const UnitLimits& limits) const {
  Units units{
      .partitions = partitions_,
      .partition_bytes = static_cast<uint64_t>(arguments.count * arguments.type->size_bytes())};
  const uint64_t least_bytes =
      limits.min_bytes != 0 ? limits.min_bytes
      : !is_local_          ? kRemoteBytes
      : is_readable_        ? std::clamp(units.total_bytes() / 16, kLocalBytes, kMostLocalBytes)
                            : 1;
  units.per_unit =
      Units::PerUnit(partitions_, units.partition_bytes, least_bytes, limits.max_units);
  if (!is_by_stream_) {
    units.pieces =
        Units::Pieces(units.per_unit, units.partition_bytes,
                      std::max({is_local_ ? kLocalPieceBytes : kRemotePieceBytes, limits.min_bytes,
                                units.total_bytes() / limits.max_units}));
  }
  return units;
}

PartitionedSend::PartitionedSend(const SideArguments& arguments, const UnitLimits& limits)
    : Side(arguments),
      is_readable_(CanBeRead()),
      units_(Cut(arguments, limits)),
      unit_shift_(static_cast<uint32_t>(std::countr_zero(units_.per_unit))),
      partition_bits_(FullMask(units_.pieces)) {}

PartitionedSend::~PartitionedSend() {
  if (context_ != nullptr) {
    front_end->one_sided->FreeContext(context_);
  }
}

// Returns true if the receiver can take ready parts from the buffer.
bool PartitionedSend::CanBeRead() const {
  if (!is_local_ || !payload_.is_dense() || is_own_) {
    return is_own_ && payload_.is_dense();
  }
  const shm::Location where =
      front_end->one_sided->Locate(payload_.data(), static_cast<uint64_t>(total_bytes()));
  return where.region != 0 || (ReachEachOther() && (where.flags & shm::kLocationByStream) == 0);
}

// ---- Beginning and end --------------------------------------------------------------------------

Result<Ref<Request>> PartitionedSend::Make(const SideArguments& arguments,
                                           const UnitLimits& limits) {
  auto* const send = new PartitionedSend(arguments, limits);
  if (Failure failure = send->Open(); !failure.ok()) {
    GiveBlock(&send->block_);
    delete send;
    return failure;
  }
  return Ref<Request>::Adopt(send);
}

Failure PartitionedSend::Open() {
  Result<Block> block = TakeBlock(SenderBlockBytes(units_.count()), Contents::kWords);
  if (!block.ok()) {
    return block.failure();
  }
  block_ = block.value();
  words_ = SenderWords(block_.data, units_);
  if (!payload_.is_dense() && total_bytes() != 0) {
    packed_.reset(new (std::nothrow) std::byte[static_cast<size_t>(total_bytes())]);
    if (packed_ == nullptr) {
      return {MPI_ERR_NO_MEM, "no memory for a packed copy of " + SizeText()};
    }
  }
  if (!is_local_) {
    context_ = front_end->one_sided->MakeContext();
  }
  return SendOffer();
}

Failure PartitionedSend::SendOffer() {
  offer_.partitions = units_.partitions;
  offer_.per_unit = units_.per_unit;
  offer_.pieces = units_.pieces;
  offer_.partition_bytes = units_.partition_bytes;
  offer_.block = block_.where;
  offer_.is_readable = is_readable_ ? 1 : 0;
  if (is_readable_) {
    offer_.data =
        front_end->one_sided->Locate(payload_.data(), static_cast<uint64_t>(total_bytes()));
  }
  const client::Message message = OfferMessage(&offer_);
  return front_end->messages->SendNow(message)
             ? Failure()
             : FailureOf(front_end->messages->StartSend(message, &offer_handle_));
}

// Returns true once the offer has left: it waits while its lane is full.
bool PartitionedSend::IsOfferGone() {
  client::Completion completion;
  if (offer_handle_ != 0 && front_end->messages->TestNow(offer_handle_, &completion)) {
    offer_handle_ = 0;
  }
  return offer_handle_ == 0;
}

// Cancels an offer that has found no place in the lane: without a matching receive it would wait
// there for ever.
void PartitionedSend::GiveUp() {
  std::lock_guard lock(mutex_);
  if (!IsOfferGone()) {
    (void)front_end->messages->Cancel(offer_handle_);
    client::Completion ignored;
    front_end->messages->Wait(std::exchange(offer_handle_, 0), &ignored);
  }
}

bool PartitionedSend::TryLeaveLocked() {
  SenderBlock& block = words_.block();
  shm::StoreRelease(block.sender_ended, 1);  // for a receiver of the node that calls its init later
  const bool is_gone = front_end->peers->PeerState(peer_) != ErrorCode::kOk;
  // The library names the offer; a thread may write to the receiver yet.
  if (!IsOfferGone() || acting_.load(std::memory_order_acquire) != 0) {
    return false;
  }
  if (!is_gone) {
    if (!SettleLocked()) {
      return false;
    }
    if (!std::exchange(has_told_end_, true) && receiver_.is_open()) {
      receiver_.Store(offsetof(ReceiverBlock, sender_ended), 1);
    }
    if (shm::LoadAcquire(block.receiver_ended) == 0) {
      return false;
    }
  }
  if (context_ != nullptr) {
    (void)front_end->one_sided->Quiet(context_, nullptr);
  }
  // Stores from another node may still come.
  if (!is_gone || is_local_) {
    GiveBlock(&block_);
  }
  return true;
}

bool PartitionedSend::IsNamed() {
  std::lock_guard lock(mutex_);
  return !IsOfferGone() || acting_.load(std::memory_order_acquire) != 0;
}

bool PartitionedSend::IsAwaited() {
  std::lock_guard lock(mutex_);
  // A local receiver that has not answered sees it in this side's block.
  return !has_told_end_ && (!is_local_ || is_settled_.load(std::memory_order_relaxed));
}

// ---- The receiver -------------------------------------------------------------------------------

bool PartitionedSend::SettleLocked() {
  if (is_settled_.load(std::memory_order_relaxed)) {
    return true;
  }
  // Pairs with the receiver's answer.
  if (shm::LoadAcquire(words_.block().has_answer) == 0) {
    return false;
  }
  answer_ = words_.block().answer;
  Failure failure;
  if (answer_.error == 0 && answer_.block.region == 0) {
    failure = {MPI_ERR_INTERN, "the answer to the partitioned send names no words of the receiver"};
  } else if (answer_.block.region != 0) {
    failure = receiver_.Open(peer_, is_local_, answer_.block, ReceiverBlockBytes(units_.count()));
  }
  if (failure.ok() && answer_.error == 0 && is_local_) {
    auto* const words = receiver_.mapped() + sizeof(ReceiverBlock);
    arrived_ = ArrivalWords(static_cast<uint64_t*>(static_cast<void*>(words)), units_);
    failure = destination_.Open(peer_, answer_.data, static_cast<uint64_t>(total_bytes()));
    if (!destination_.is_by_stream() && !IsSourceByStream()) {
      share_ = Share(units_, true);
    }
  }
  if (!failure.ok()) {
    answer_.error = static_cast<uint64_t>(failure.error_class);
    if (!receiver_.is_open()) {  // a local receiver sees it there
      shm::StoreRelease(words_.block().sender_ended, 1);
    }
    Break(std::move(failure));
  }
  seen_.resize(answer_.can_take == 0 ? units_.count() : 0);
  is_settled_.store(true, std::memory_order_release);
  return true;
}

bool PartitionedSend::IsSettled() {
  std::lock_guard lock(mutex_);
  return SettleLocked();
}

Failure PartitionedSend::Refusal() const {
  const int error = ErrorClassOf(answer_.error);
  if (error == MPI_ERR_TRUNCATE) {
    return {error, "the partitioned send has " + SizeText() + ", the receive has " +
                       std::to_string(answer_.total_bytes) + " bytes in " +
                       Counted(answer_.partitions, "partition")};
  }
  if (error == MPI_ERR_REQUEST) {
    return EndedFailure();
  }
  return {error, "the other side cannot receive this partitioned message of " + SizeText()};
}

void PartitionedSend::Break(Failure failure) {
  if (receiver_.is_open()) {
    receiver_.Store(offsetof(ReceiverBlock, sender_error),
                    static_cast<uint64_t>(failure.error_class));
  }
  TellReceiver();
  SetFailure(std::move(failure));
}

// Never where they do not fit together, or the receiver is out of reach.
bool PartitionedSend::IsCleared(uint64_t round) {
  if (!words_.IsCleared(round)) {
    return false;
  }
  if (!is_settled_.load(std::memory_order_acquire)) [[unlikely]] {
    std::lock_guard lock(mutex_);
    if (!SettleLocked()) {
      return false;
    }
  }
  return answer_.error == 0;
}

void PartitionedSend::TellOfRest(bool rests) {
  if (is_local_ && is_settled_.load(std::memory_order_acquire) && receiver_.is_open()) {
    receiver_.Store(offsetof(ReceiverBlock, sender_rests), rests ? 1 : 0);
  }
}

void PartitionedSend::TellOfWait(bool waits) {
  if (has_prequest_.load(std::memory_order_acquire) && prequest_ != nullptr) {
    prequest_->SetAttended(waits ? round() : 0);
  }
}

void PartitionedSend::TellOfPrequest() {
  if (is_local_ && receiver_.is_open()) {
    receiver_.Store(offsetof(ReceiverBlock, sender_kernels), HasCpuKernels() ? 1 : 0);
  }
}

bool PartitionedSend::IsRefused() const {
  return is_settled_.load(std::memory_order_acquire) && answer_.error != 0;
}

// ---- Rounds -------------------------------------------------------------------------------------

Failure PartitionedSend::CheckPartner() {
  if (const ErrorCode state = front_end->peers->PeerState(peer_); state != ErrorCode::kOk) {
    return FailureOf(state);
  }
  return shm::LoadAcquire(words_.block().receiver_ended) != 0 ? EndedFailure() : Failure();
}

void PartitionedSend::BeginRound() {
  __builtin_prefetch(&words_.block());  // IsCleared looks at it soon
  const bool is_watched = IsWatchedByHelper();
  {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (is_watched) {
      lock.lock();
    }
    readied_units_ = taken_units_ = arrived_units_ = 0;
    is_done_ = false;
    needs_quiet_.store(false, std::memory_order_relaxed);
    round_.store(round() + 1, std::memory_order_relaxed);
    is_active_.store(true, std::memory_order_release);
  }
  if (is_watched) {
    Watch(Ref<Object>::Share(this), this);
  }
}

// *again: the first partition that was ready already, if there is one. A thread that marks the last
// partition of all may find the request gone after that, unless acting_ counts it.
inline void PartitionedSend::MarkReady(uint32_t unit, uint64_t bits, uint32_t* again) {
  const uint64_t this_round = round();
  const bool is_alone = !Threads::AreAllowed() && !has_prequest_.load(std::memory_order_relaxed);
  const SenderWords::Marked marked = is_alone ? words_.MarkAlone(unit, bits, this_round, &acting_)
                                              : words_.Mark(unit, bits, this_round, &acting_);
  if (marked.again != 0) [[unlikely]] {
    *again = std::min(
        *again, unit * units_.per_unit + static_cast<uint32_t>(std::countr_zero(marked.again)));
  }
  if (marked.is_full) {
    if (IsCleared(this_round) && !LeaveToReceiver(unit, this_round, is_alone)) {
      Move(unit, this_round);
    }
    // Pairs with IsOverLocked, TryLeaveLocked.
    if (is_alone) {
      acting_.store(acting_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    } else {
      acting_.fetch_sub(1, std::memory_order_release);
    }
  }
}

bool PartitionedSend::TryReady(int partition) {
  const auto number = static_cast<uint32_t>(partition);
  if (number >= partitions_ || !is_active() || has_prequest_.load(std::memory_order_relaxed))
      [[unlikely]] {
    return false;
  }
  uint32_t again = UINT32_MAX;
  MarkReady(number >> unit_shift_, BitsOf(number), &again);
  return again == UINT32_MAX;
}

Failure PartitionedSend::Ready(int first, int last) {
  if (!is_active()) [[unlikely]] {
    return {MPI_ERR_REQUEST, "the partitioned send is not active; start it first"};
  }
  if (prequest_ != nullptr) [[unlikely]] {
    prequest_->NoteReadiedByHost();
  }
  const auto from = static_cast<uint32_t>(first);
  const auto to = static_cast<uint32_t>(last);
  uint32_t again = UINT32_MAX;
  if (from == to) {
    MarkReady(from >> unit_shift_, BitsOf(from), &again);
  } else {
    const uint32_t last_unit = units_.UnitOf(to);
    for (uint32_t unit = units_.UnitOf(from); unit <= last_unit; ++unit) {
      MarkReady(unit, units_.BitsOf(unit, from, to), &again);
    }
  }
  if (again != UINT32_MAX) [[unlikely]] {
    return {MPI_ERR_REQUEST,
            "partition " + std::to_string(again) + " is ready already in this round"};
  }
  return {};
}

Failure PartitionedSend::HasArrived(int, bool*) {
  return {MPI_ERR_REQUEST, "the request is a partitioned send: only those of a receive arrive"};
}

Failure PartitionedSend::PrepareUnless(const std::atomic<bool>* is_cancelled) {
  if (!is_active()) {
    return {MPI_ERR_REQUEST, "the partitioned send is not active; start it first"};
  }
  const auto is_prepared = [](void* self) {
    auto* const send = static_cast<PartitionedSend*>(self);
    return send->IsCleared(send->round()) || send->IsDone() || send->IsRefused();
  };
  CancellableWait wait{is_prepared, this, is_cancelled};
  AwaitUntil(CancellableWait::IsOver, &wait);
  return IsRefused() ? Refusal() : RoundFailure();
}

void PartitionedSend::Look(MPI_Status* status) { SetEmptyStatus(status); }

// ---- Kernels ------------------------------------------------------------------------------------

Failure PartitionedSend::Describe(PrequestPlan* plan) {
  FERRY_RETURN_FAILURE(AwaitPartner(
      [](void* self) { return static_cast<PartitionedSend*>(self)->IsSettled(); }, this));
  if (answer_.error != 0) {
    return Refusal();
  }
  plan->is_send = true;
  plan->units = units_;
  plan->partitions = partitions_;
  plan->round = round();
  plan->peer = peer_;
  plan->is_local = is_local_;
  plan->source = packed_ == nullptr ? static_cast<std::byte*>(payload_.data()) : nullptr;
  plan->is_packed = packed_ != nullptr;
  plan->words = words_;
  plan->destination = answer_.data;
  plan->receiver_block = answer_.block;
  if (is_local_) {
    plan->destination_mapped = destination_.mapped();
    plan->is_destination_by_stream = destination_.is_by_stream();
    plan->receiver_mapped = receiver_.mapped();
  }
  return {};
}

}  // namespace ferry::mpi
