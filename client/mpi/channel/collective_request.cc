#include "client/mpi/channel/collective_request.h"

#include <utility>

#include "client/mpi/channel/helper.h"
#include "client/mpi/request/status.h"

namespace ferry::mpi {

CollectiveRequest::CollectiveRequest(Comm& comm, std::unique_ptr<CollectiveOperation> operation,
                                     bool persistent)
    : comm_(Ref<Comm>::Share(&comm)),
      channel_(Channel::Of(comm)),
      operation_(std::move(operation)),
      is_persistent_(persistent),
      number_(persistent ? channel_.NextPersistentNumber() : 0),
      run_(channel_.Take(operation_->problem)) {}

CollectiveRequest::~CollectiveRequest() {
  if (run_ != nullptr) {
    channel_.GiveBack(operation_->problem, std::move(run_));
  }
}

Failure CollectiveRequest::Begin() {
  if (Failure failure = operation_->Fetch(); !failure.ok()) {
    return failure;
  }
  is_active_ = true;
  if (is_persistent_) {
    channel_.StartPersistent(run_.get(), operation_->MakeBinding(), number_);
  } else {
    channel_.Start(run_.get(), operation_->MakeBinding());
  }
  if (!channel_.Advance(*run_)) {
    WatchChannel(*comm_, channel_);
  }
  return {};
}

Failure CollectiveRequest::Start() {
  if (!is_persistent_) {
    return Request::Start();
  }
  if (is_active_) {
    return {MPI_ERR_REQUEST, "the persistent request is active; complete it first"};
  }
  return Begin();
}

bool CollectiveRequest::IsDone() { return !is_active_ || channel_.Advance(*run_); }

void CollectiveRequest::Look(MPI_Status* status) { SetEmptyStatus(status); }

Failure CollectiveRequest::End(MPI_Status* status) {
  SetEmptyStatus(status);
  if (!is_active_) {
    return {};
  }
  is_active_ = false;
  return operation_->Finish(run_->failure());
}

}  // namespace ferry::mpi
