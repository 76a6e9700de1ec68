#include "mpi/rma/operation.h"

#include "mpi/base/connection.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {

Operation::Operation(Win& win, int target)
    : win_(Ref<Win>::Share(&win)), target_(target), context_(front_end->one_sided->MakeContext()) {}

Operation::~Operation() { front_end->one_sided->FreeContext(context_); }

Failure Operation::Finish() {
  std::lock_guard lock(mutex_);
  if (!is_over()) {
    uint32_t rank = 0;
    failure_ = FailureOf(front_end->one_sided->Quiet(context_, &rank));
    if (failure_.ok() && rest_ != nullptr) {
      failure_ = rest_();
    }
    rest_ = nullptr;
    is_over_.store(true, std::memory_order_release);
  }
  return failure_;
}

bool Operation::IsDone() { return is_over() || front_end->one_sided->IsQuiet(context_); }

Failure Operation::End(MPI_Status* status) {
  SetEmptyStatus(status);
  return Finish();
}

int32_t Operation::awaited_peer() const { return static_cast<int32_t>(win_->target(target_).rank); }

}  // namespace ferry::mpi
