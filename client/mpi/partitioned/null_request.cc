#include "client/mpi/partitioned/null_request.h"

#include "client/mpi/request/status.h"

namespace ferry::mpi {
namespace {

Failure Inactive() {
  return {MPI_ERR_REQUEST, "the partitioned request is not active; start it first"};
}

}  // namespace

Failure NullPartitioned::Start() {
  if (is_active_.exchange(true)) {
    return {MPI_ERR_REQUEST, "the partitioned request is active; complete it first"};
  }
  named().Forget();
  return {};
}

Failure NullPartitioned::End(MPI_Status* status) {
  Look(status);
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

Failure NullPartitioned::Prepare() { return is_active() ? Failure() : Inactive(); }

}  // namespace ferry::mpi
