#include "mpi/partitioned/side.h"

#include <atomic>
#include <utility>

#include "client/api/word_wait.h"
#include "common/counted.h"
#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/comm/call_notes.h"
#include "mpi/p2p/status.h"
#include "mpi/partitioned/orphans.h"
#include "mpi/partitioned/unmatched.h"
#include "shm/wait_policy.h"

namespace ferry::mpi {
namespace {

// How many looks by HasNews come before a call of `done`.
constexpr int kShortLooks = 32;

}  // namespace

Side::Side(const SideArguments& arguments)
    : comm_(Ref<Comm>::Share(arguments.comm)),
      peer_(arguments.peer),
      tag_(arguments.tag),
      is_local_(front_end->NodeOf(arguments.peer) == front_end->NodeOf(front_end->rank())),
      is_own_(arguments.peer == front_end->rank()),
      partitions_(arguments.partitions),
      payload_(arguments.buffer, arguments.count * arguments.partitions, *arguments.type),
      is_by_stream_(payload_.IsByStream()) {}

void Side::Unpublish(MPI_Request handle) {
  if (requests.Remove(handle) == this) {
    (void)TryLeave();
    Release();
  }
}

bool Side::TryLeave() {
  std::lock_guard lock(mutex_);
  has_left_ = has_left_ || TryLeaveLocked();
  return has_left_;
}

void Side::Destroy() {
  comm_ = nullptr;
  if (TryLeave()) {
    delete this;
  } else {
    AddOrphan(this);
  }
}

Failure Side::Start() {
  if (is_active()) {
    return {MPI_ERR_REQUEST, "the partitioned request is active; complete it first"};
  }
  const std::shared_ptr<Prequest> kernels =
      has_prequest_.load(std::memory_order_relaxed) ? prequest() : nullptr;
  if (kernels != nullptr && kernels->HasNoted()) {
    return kernels->TakeNoted();
  }
  FERRY_RETURN_FAILURE(CheckPartner());
  named().Forget();
  has_seen_end_ = false;
  if (kernels != nullptr) {
    FERRY_RETURN_FAILURE(kernels->Begin(round() + 1));
    if (has_failed()) {
      kernels->EndWaits(ErrorCode::kInvalidRequest);
    }
  }
  BeginRound();
  return {};
}

Failure Side::Cancel() { return {MPI_ERR_REQUEST, "partitioned operations cannot be cancelled"}; }

Failure Side::End(MPI_Status* status) {
  Look(status);
  if (!is_active()) {
    return {};
  }
  if (prequest_ != nullptr && prequest_->HasNoted()) {
    return prequest_->TakeNoted();  // and stays active
  }
  Failure result = RoundFailure();
  is_active_.store(false, std::memory_order_release);
  if (prequest_ != nullptr) {
    prequest_->End();
  }
  return result;
}

// ---- Kernels ------------------------------------------------------------------------------------

std::shared_ptr<Prequest> Side::prequest() {
  std::lock_guard lock(mutex_);
  if (prequest_ != nullptr && prequest_->is_freed()) {
    prequest_ = nullptr;
    has_prequest_.store(false, std::memory_order_relaxed);
    TellOfPrequest();
  }
  return prequest_;
}

void Side::set_prequest(std::shared_ptr<Prequest> prequest) {
  std::lock_guard lock(mutex_);
  prequest_ = std::move(prequest);
  has_prequest_.store(true, std::memory_order_release);  // Pairs with SetFailure.
  TellOfPrequest();
}

void Side::LookAfterKernels() {
  if (has_failed()) {
    prequest_->EndWaits(ErrorCode::kInvalidRequest);
  }
  Watch(Ref<Object>::Share(this), this);
}

// ---- Waiting ------------------------------------------------------------------------------------

void Side::DescribeWait(shm::CallDescription* description) const {
  description->inner =
      readied_partitions() != 0 ? shm::CallName::kMpiPsendInit : shm::CallName::kMpiPrecvInit;
  Request::DescribeWait(description);
  DescribeTag(tag_, description);
  DescribeBytes(static_cast<uint64_t>(total_bytes()), description);
}

void Side::AwaitUntil(bool (*done)(void*), void* argument) {
  if (!done(argument)) {
    attending_.fetch_add(1, std::memory_order_relaxed);
    TellOfWait(true);
    WaitUntil(done, argument);
    TellOfWait(false);
    attending_.fetch_sub(1, std::memory_order_relaxed);
  }
}

// An event between the last look and the sleep ends the sleep: the side that causes it looks
// afterwards whether this side rests.
void Side::WaitUntil(bool (*done)(void*), void* argument) {
  using From = client::WordWait::From;
  const bool has_kernels = WaitsForCpuKernels();
  const bool looks_shortly = is_local_ && !has_kernels;  // else news come with a turn of the links
  client::WordWait wait(*front_end, !is_local_    ? From::kNetwork
                                    : has_kernels ? From::kKernels
                                                  : From::kNode);
  while (!done(argument) && front_end->poison() == ErrorCode::kOk) {
    if (wait.Pause()) {
      for (int i = 0; looks_shortly && i < kShortLooks && !HasNews(); ++i) {
        shm::CpuPause();
      }
      continue;
    }
    rests_.store(true, std::memory_order_seq_cst);  // Pairs with TellOwnThread.
    TellOfRest(true);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // done() looks by loads that only acquire
    const bool is_done = done(argument);
    if (!is_done) {
      wait.Rest();
    }
    TellOfRest(false);
    rests_.store(false, std::memory_order_relaxed);
    if (is_done) {
      return;
    }
  }
}

void Side::TellOwnThread() {
  if (!has_prequest_.load(std::memory_order_relaxed) && !Threads::AreAllowed()) {
    return;
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);  // Pairs with AwaitUntil.
  if (rests_.load(std::memory_order_relaxed)) {
    front_end->one_sided->TellOfChange(front_end->rank());
  }
}

Failure Side::AwaitPartner(bool (*done)(void*), void* argument) {
  struct Wait {
    Side* self;
    bool (*done)(void*);
    void* argument;
  } wait{this, done, argument};
  const auto is_over = [](void* of) {
    const auto& each = *static_cast<Wait*>(of);
    (void)front_end->peers->Poll();  // the other side's init may be a message
    AnswerUnmatched();               // another rank may wait for this one, too
    return each.done(each.argument) ||
           front_end->peers->PeerState(each.self->peer_) != ErrorCode::kOk;
  };
  if (!is_over(&wait)) {
    WaitUntil(is_over, &wait);
  }
  return done(argument) ? Failure() : FailureOf(front_end->peers->PeerState(peer_));
}

// ---- Failures -----------------------------------------------------------------------------------

void Side::SetFailure(Failure failure, ErrorCode error) {
  std::lock_guard lock(failure_mutex_);
  if (failure_.ok()) {
    failure_ = std::move(failure);
    has_failed_.store(true, std::memory_order_release);
    // Pairs with set_prequest.
    if (has_prequest_.load(std::memory_order_acquire) && prequest_ != nullptr) {
      prequest_->EndWaits(error);
    }
  }
}

Failure Side::failure() const {
  if (!has_failed()) [[likely]] {
    return {};
  }
  std::lock_guard lock(failure_mutex_);
  return failure_;
}

Failure Side::RoundFailure() {
  const ErrorCode poison = front_end->poison();
  const bool is_cut_short = poison != ErrorCode::kOk && !IsDone();  // this look may note it
  Failure result = failure();
  return is_cut_short && result.ok() ? FailureOf(poison) : result;
}

void Side::LookForEnd(bool has_ended) {
  const ErrorCode state = front_end->peers->PeerState(peer_);
  if (state == ErrorCode::kOk && !has_ended) [[likely]] {
    return;
  }
  if (!std::exchange(has_seen_end_, true)) {
    return;
  }
  if (state != ErrorCode::kOk) {
    SetFailure(FailureOf(state), state);
  } else {
    SetFailure(EndedFailure());
  }
}

bool Side::ReachEachOther() const {
  return front_end->peers->IsPrivateMemoryReachable(peer_) &&
         front_end->peers->IsPrivateMemoryReachable(front_end->rank());
}

Failure Side::EndedFailure() {
  return {MPI_ERR_REQUEST, "the other side has freed its partitioned request"};
}

client::Message Side::OfferMessage(Offer* offer) const {
  client::Message message;
  message.buffer = offer;
  message.size_bytes = sizeof(*offer);
  message.peer = static_cast<int32_t>(peer_);
  message.tag = tag_;
  message.context = comm_->context(Traffic::kPartitioned);
  return message;
}

std::string Side::SizeText() const {
  return Counted(total_bytes(), "byte") + " in " + Counted(partitions_, "partition");
}

}  // namespace ferry::mpi
