#include "mpi/partitioned/null_request.h"

#include <algorithm>

#include "mpi/p2p/status.h"

namespace ferry::mpi {
namespace {

Failure Inactive() {
  return {MPI_ERR_REQUEST, "the partitioned request is not active; start it first"};
}

}  // namespace

Failure NullPartitioned::Start() {
  if (is_active()) {
    return {MPI_ERR_REQUEST, "the partitioned request is active; complete it first"};
  }
  // Kernels take a receive that has never begun for one where all has arrived.
  if (const std::shared_ptr<Prequest> kernels = prequest(); kernels != nullptr && is_send_) {
    if (kernels->HasNoted()) {
      return kernels->TakeNoted();
    }
    FERRY_RETURN_FAILURE(kernels->Begin(++round_));
  }
  named().Forget();
  is_active_ = true;
  return {};
}

Failure NullPartitioned::End(MPI_Status* status) {
  Look(status);
  if (prequest_ != nullptr && is_active()) {
    if (prequest_->HasNoted()) {
      return prequest_->TakeNoted();  // and stays active
    }
    prequest_->End();
  }
  is_active_ = false;
  return {};
}

void NullPartitioned::Look(MPI_Status* status) {
  if (is_active() && !is_send_) {
    SetStatus(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
  } else {
    SetEmptyStatus(status);
  }
}

Failure NullPartitioned::Cancel() {
  return {MPI_ERR_REQUEST, "partitioned operations cannot be cancelled"};
}

Failure NullPartitioned::Ready(int, int) { return is_active() ? Failure() : Inactive(); }

Failure NullPartitioned::HasArrived(int, bool* has_arrived) {
  *has_arrived = true;
  return {};
}

Failure NullPartitioned::PrepareUnless(const std::atomic<bool>* /*is_cancelled*/) {
  return is_active() ? Failure() : Inactive();
}

// ---- Kernels ------------------------------------------------------------------------------------

Failure NullPartitioned::Describe(PrequestPlan* plan) {
  const auto partitions = static_cast<uint32_t>(partitions_);
  const Units units{partitions, std::min(partitions, kPartitionsPerUnit), 0};
  if (words_.data == nullptr) {
    Result<Block> words = TakeBlock(SenderBlockBytes(units.count()), Contents::kWords);
    FERRY_RETURN_FAILURE(words.failure());
    words_ = words.value();
  }
  plan->is_send = is_send_;
  plan->units = units;
  plan->partitions = partitions;
  // The round that is under way has not been counted: there were no kernels.
  plan->round = is_send_ && is_active() ? ++round_ : round_;
  plan->is_null = true;
  plan->words = SenderWords(words_.data, units);
  plan->arrived = is_send_ ? nullptr : &plan->words.of(0).ready;
  return {};
}

std::shared_ptr<Prequest> NullPartitioned::prequest() {
  if (prequest_ != nullptr && prequest_->is_freed()) {
    prequest_ = nullptr;
  }
  return prequest_;
}

}  // namespace ferry::mpi
