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
      taken_(channel_.Take(operation_->problem)) {
  operation_->reducer.Keep();
}

CollectiveRequest::~CollectiveRequest() { channel_.GiveBack(std::move(taken_)); }

Failure CollectiveRequest::Begin() {
  if (Failure failure = operation_->Fetch(); !failure.ok()) {
    return failure;
  }
  is_active_ = true;
  if (is_persistent_) {
    channel_.StartPersistent(taken_.run(), operation_->MakeBinding(), number_);
  } else {
    channel_.Start(taken_.run(), operation_->MakeBinding());
  }
  if (!channel_.Advance(*taken_.run())) {
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

bool CollectiveRequest::IsDone() { return !is_active_ || channel_.Advance(*taken_.run()); }

void CollectiveRequest::Look(MPI_Status* status) { SetEmptyStatus(status); }

Failure CollectiveRequest::End(MPI_Status* status) {
  SetEmptyStatus(status);
  if (!is_active_) {
    return {};
  }
  is_active_ = false;
  return operation_->Finish(taken_.run()->failure());
}

}  // namespace ferry::mpi
