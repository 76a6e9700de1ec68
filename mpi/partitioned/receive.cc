#include "mpi/partitioned/receive.h"

#include <cstddef>
#include <new>
#include <string>
#include <utility>

#include "common/counted.h"
#include "mpi/base/connection.h"
#include "mpi/p2p/status.h"
#include "mpi/partitioned/unmatched.h"

namespace ferry::mpi {
namespace {

// The most private memory that two copies through the landing move faster than one copy by the
// kernel.
constexpr int64_t kLandingBytes = 8 << 10;
// The least size of units that a sender leaves to the receiver.
constexpr uint64_t kLeastAttended = 8 << 10;

}  // namespace

// ---- Beginning and end --------------------------------------------------------------------------

Result<Ref<Request>> PartitionedReceive::Make(const SideArguments& arguments) {
  auto* const receive = new PartitionedReceive(arguments);
  if (Failure failure = receive->Post(); !failure.ok()) {
    delete receive;
    return failure;
  }
  return Ref<Request>::Adopt(receive);
}

Failure PartitionedReceive::Post() {
  FERRY_RETURN_FAILURE(
      FailureOf(front_end->messages->StartReceive(OfferMessage(&offer_), &posted_)));
  if (!IsMatched() && front_end->memory->DeviceCount() != 0) {
    WatchUnmatched(this);
  }
  return {};
}

void PartitionedReceive::GiveUp() {
  std::lock_guard lock(mutex_);
  if (posted_ != 0 && !MatchLocked()) {
    (void)front_end->messages->Cancel(posted_);
    client::Completion ignored;
    front_end->messages->Wait(posted_, &ignored);
    posted_ = 0;
  }
}

bool PartitionedReceive::TryLeaveLocked() {
  ForgetUnmatched(this);
  if (posted_ != 0) {
    SetFailure(EndedFailure());  // from now on it only tells the sender that it is gone
    if (!MatchLocked()) {
      return false;
    }
  }
  if (!sender_.is_open()) {
    return true;
  }
  if (!std::exchange(has_told_end_, true)) {
    sender_.Store(offsetof(SenderBlock, receiver_ended), 1);
    TellSender();
  }
  if (block_.data == nullptr) {
    return true;
  }
  const bool is_gone = front_end->peers->PeerState(peer_) != ErrorCode::kOk;
  if (!is_gone && shm::LoadAcquire(words().sender_ended) == 0) {
    return false;
  }
  if (!is_gone || is_local_) {  // stores from another node may still come
    GiveBlock(&block_);
    GiveBlock(&landing_);
  }
  return true;
}

// ---- The sender ---------------------------------------------------------------------------------

bool PartitionedReceive::IsMatched() {
  std::lock_guard lock(mutex_);
  return MatchLocked();
}

bool PartitionedReceive::TryMatch() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && MatchLocked();
}

bool PartitionedReceive::MatchLocked() {
  if (is_matched_.load(std::memory_order_relaxed)) {
    return true;
  }
  client::Completion completion;
  if (posted_ == 0 || !front_end->messages->TestNow(posted_, &completion)) {
    return false;
  }
  posted_ = 0;
  if (completion.error != ErrorCode::kOk) {
    SetFailure(FailureOf(completion.error));
  } else if (completion.size_bytes != sizeof(offer_) || !offer_.IsSound()) {
    SetFailure({MPI_ERR_INTERN, "what came for the partitioned receive is no offer of a send"});
  } else {
    AnswerLocked();
  }
  is_matched_.store(true, std::memory_order_release);
  return true;
}

void PartitionedReceive::AnswerLocked() {
  units_ = offer_.units();
  Failure failure;
  if (Failure opened =
          sender_.Open(peer_, is_local_, offer_.block, SenderBlockBytes(units_.count()));
      !opened.ok()) {
    failure = std::move(opened);
    // A block that cannot be mapped is written by one-sided operations, like one of another node,
    // so that the sender hears of the failure.
    (void)sender_.Open(peer_, false, offer_.block, SenderBlockBytes(units_.count()));
  } else if (is_local_) {
    sender_words_ = SenderWords(sender_.mapped(), units_);
  }
  ReceiverAnswer answer;
  answer.total_bytes = static_cast<uint64_t>(total_bytes());
  answer.partitions = partitions_;
  if (!failure.ok()) {
    // said already
  } else if (has_failed()) {
    failure = EndedFailure();  // freed before there was a sender
  } else if (units_.total_bytes() > answer.total_bytes) {
    failure = {MPI_ERR_TRUNCATE, "the partitioned receive has " + SizeText() + ", the send has " +
                                     Counted(units_.total_bytes(), "byte") + " in " +
                                     Counted(units_.partitions, "partition")};
  } else {
    failure = MakeRoomLocked(&answer);
  }
  if (!failure.ok()) {
    answer.error = static_cast<uint64_t>(failure.error_class);
    SetFailure(std::move(failure));
  }
  sender_.Write(offsetof(SenderBlock, answer), &answer, sizeof(answer));
  sender_.Store(offsetof(SenderBlock, has_answer), 1);
  if (is_local_ && !is_own_) {
    front_end->one_sided->TellOfChange(peer_);
  }
  (void)ClearLocked();
}

// Returns true if the sender can put data into this memory.
bool PartitionedReceive::IsReachable(const shm::Location& where) const {
  if (total_bytes() == 0 || !payload_.is_dense()) {
    return total_bytes() == 0;
  }
  return where.region != 0 || is_own_ ||
         (is_local_ && total_bytes() > kLandingBytes && ReachEachOther() &&
          (where.flags & shm::kLocationByStream) == 0);
}

Failure PartitionedReceive::MakeRoomLocked(ReceiverAnswer* answer) {
  Result<Block> block = TakeBlock(ReceiverBlockBytes(units_.count()), Contents::kWords);
  if (!block.ok()) {
    return block.failure();
  }
  block_ = block.value();
  auto* const words = block_.data + sizeof(ReceiverBlock);
  visible_ = arrived_ = ArrivalWords(static_cast<uint64_t*>(static_cast<void*>(words)), units_);
  answer->block = block_.where;
  const auto size_bytes = static_cast<uint64_t>(total_bytes());
  answer->data = front_end->one_sided->Locate(payload_.data(), size_bytes);
  if (!IsReachable(answer->data)) {
    Result<Block> landing = TakeBlock(size_bytes, Contents::kData);
    copied_.reset(new (std::nothrow) uint64_t[units_.count()]());
    if (!landing.ok() || copied_ == nullptr) {
      return landing.ok()
                 ? Failure{MPI_ERR_NO_MEM, "no memory for a partitioned receive of " + SizeText()}
                 : landing.failure();
    }
    landing_ = landing.value();
    answer->data = landing_.where;
    answer->is_landing = 1;
    visible_ = ArrivalWords(copied_.get(), units_);
  }
  if (is_local_ && offer_.is_readable != 0) {
    const bool is_private = offer_.data.region == 0 && !is_own_;
    can_take_ = (!is_private || ReachEachOther()) &&
                source_.Open(peer_, offer_.data, units_.total_bytes()).ok();
  }
  if (can_take_) {
    seen_.resize(units_.count());
    if (!source_.is_by_stream() && !is_by_stream_) {
      share_ = Share(units_, false);
    }
    answer->can_take = 1;
  }
  return {};
}

// Clears a round for the sender. The landing is free again once its data are in their place, so the
// next round's data may come before the program begins that round.
bool PartitionedReceive::ClearLocked() {
  if (block_.data == nullptr || has_failed()) {
    return false;
  }
  const uint64_t this_round = round();
  const bool is_under_way = is_active() && !is_complete_.load(std::memory_order_relaxed);
  const uint64_t value = landing_.data != nullptr && !is_under_way ? this_round + 1 : this_round;
  if (value <= cleared_) {
    return false;
  }
  cleared_ = value;
  if (is_local_ && value > this_round) {  // if the sender misses it, it looks again when it waits
    sender_.StoreSoon(offsetof(SenderBlock, cleared), value);
  } else {
    sender_.Store(offsetof(SenderBlock, cleared), value);
  }
  TellSender();
  return true;
}

// Pairs with the sender's TellOfRest: either it sees what was changed, or this sees that it rests.
void PartitionedReceive::TellSender() {
  if (!is_local_ || block_.data == nullptr) {
    return;
  }
  if (shm::Load(words().sender_rests, std::memory_order_seq_cst) != 0) {
    front_end->one_sided->TellOfChange(peer_);
  }
}

void PartitionedReceive::TellOfRest(bool rests) {
  if (is_local_ && is_matched_.load(std::memory_order_acquire) && sender_.is_open()) {
    sender_.Store(offsetof(SenderBlock, receiver_rests), rests ? 1 : 0);
    // Units that were readied before the sender could see that are found by a look at all units.
    next_look_ns_.store(0, std::memory_order_relaxed);
  }
}

void PartitionedReceive::TellOfWait(bool waits) {
  // The sender moves smaller units before the receiver could take them.
  if (waits && is_matched_.load(std::memory_order_acquire) && can_take_ &&
      units_.unit_bytes() >= kLeastAttended) {
    shm::StoreRelaxed(sender_words_.block().attending, round());
  }
}

bool PartitionedReceive::WaitsForCpuKernels() const {
  if (HasCpuKernels()) {
    return true;
  }
  if (!is_local_ || !is_matched_.load(std::memory_order_acquire) || block_.data == nullptr) {
    return false;
  }
  return shm::LoadRelaxed(words().sender_kernels) != 0;
}

void PartitionedReceive::Break(Failure failure) {
  if (sender_.is_open()) {
    sender_.Store(offsetof(SenderBlock, receiver_error),
                  static_cast<uint64_t>(failure.error_class));
  }
  TellSender();
  SetFailure(std::move(failure));
}

// ---- Rounds -------------------------------------------------------------------------------------

Failure PartitionedReceive::CheckPartner() {
  if (const ErrorCode state = front_end->peers->PeerState(peer_); state != ErrorCode::kOk) {
    return FailureOf(state);
  }
  std::lock_guard lock(mutex_);
  (void)MatchLocked();
  // Data that the sender sent before its end may have landed already.
  const bool is_over = HasSenderEnded() && arrived_.FirstMissing(0, round() + 1) != units_.count();
  return is_over ? EndedFailure() : Failure();
}

bool PartitionedReceive::HasSenderEnded() const {
  if (block_.data == nullptr) {
    return false;
  }
  return shm::LoadAcquire(words().sender_ended) != 0 ||
         (is_local_ && shm::LoadAcquire(sender_words_.block().sender_ended) != 0);
}

void PartitionedReceive::BeginRound() {
  bool is_watched = false;
  {
    std::lock_guard lock(mutex_);
    taken_units_ = visible_units_ = 0;
    took_ = 0;
    is_complete_.store(false, std::memory_order_relaxed);
    round_.store(round() + 1, std::memory_order_relaxed);
    is_active_.store(true, std::memory_order_release);
    is_watched = !MatchLocked() || prequest_ != nullptr;
    if (ClearLocked()) {  // parts that the sender has readied before wait for that
      next_look_ns_.store(0, std::memory_order_relaxed);
      (void)TakeReadyLocked();
    } else if (landing_.data != nullptr) {
      TellSender();  // the round was cleared before, perhaps while the sender was about to rest
    }
  }
  if (is_watched) {
    Watch(Ref<Object>::Share(this), this);
  }
}

Failure PartitionedReceive::Ready(int, int) {
  return {MPI_ERR_REQUEST,
          "the request is a partitioned receive: only those of a send are readied"};
}

Failure PartitionedReceive::PrepareUnless(const std::atomic<bool>* is_cancelled) {
  if (!is_active()) {
    return {MPI_ERR_REQUEST, "the partitioned receive is not active; start it first"};
  }
  const auto is_prepared = [](void* self) {
    auto* const receive = static_cast<PartitionedReceive*>(self);
    return receive->IsDone() || receive->IsMatched();
  };
  CancellableWait wait{is_prepared, this, is_cancelled};
  AwaitUntil(CancellableWait::IsOver, &wait);
  return RoundFailure();
}

Units::Needed PartitionedReceive::NeededFor(int partition) const {
  if (IsLonger()) [[unlikely]] {
    const uint64_t bytes = static_cast<uint64_t>(total_bytes()) / partitions_;
    const uint64_t begin = static_cast<uint64_t>(partition) * bytes;
    return units_.NeededForBytes(begin, begin + bytes);
  }
  return units_.NeededFor(static_cast<uint32_t>(partition), partitions_);
}

void PartitionedReceive::Look(MPI_Status* status) {
  if (!is_active()) {
    SetEmptyStatus(status);
    return;
  }
  const bool is_matched = is_matched_.load(std::memory_order_acquire);
  SetStatus(status, comm_->RankOf(static_cast<int>(peer_)), tag_,
            is_matched && IsLonger() ? static_cast<int64_t>(units_.total_bytes()) : total_bytes());
}

// ---- Kernels ------------------------------------------------------------------------------------

Failure PartitionedReceive::Describe(PrequestPlan* plan) {
  FERRY_RETURN_FAILURE(AwaitPartner(
      [](void* self) { return static_cast<PartitionedReceive*>(self)->IsMatched(); }, this));
  FERRY_RETURN_FAILURE(failure());
  if (IsLonger()) {
    return {MPI_ERR_UNSUPPORTED_OPERATION,
            "kernels cannot ask for partitions of a receive that is longer than its message: the "
            "partitioned receive has " +
                SizeText() + ", the send " + Counted(units_.total_bytes(), "byte")};
  }
  plan->is_send = false;
  plan->units = units_;
  plan->partitions = partitions_;
  plan->round = round();
  plan->peer = peer_;
  plan->is_local = is_local_;
  plan->arrived = landing_.data == nullptr ? &arrived_.of(0) : nullptr;
  return {};
}

}  // namespace ferry::mpi
