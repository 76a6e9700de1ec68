#include "mpi/coll/collective_request.h"

#include <string>
#include <utility>

#include "mpi/base/connection.h"
#include "mpi/base/tool_watch.h"
#include "mpi/coll/collective_note.h"
#include "mpi/coll/helper.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {

CollectiveRequest::CollectiveRequest(Comm& comm, std::unique_ptr<CollectiveOperation> operation,
                                     bool persistent)
    : comm_(Ref<Comm>::Share(&comm)),
      channel_(Channel::Of(comm)),
      operation_(std::move(operation)),
      is_persistent_(persistent),
      number_(persistent ? channel_.NextPersistentNumber() : 0),
      call_number_(persistent ? 0 : channel_.CountCall()),
      started_(std::make_unique<Channel::Started>()) {
  if (persistent || operation_->description != nullptr) {
    started_->taken = channel_.Take(operation_->problem);
  }
  operation_->reducer.Keep();
}

CollectiveRequest::~CollectiveRequest() {
  on_stream_.reset();
  if (!started_->is_done()) {  // poisoned: what never ends still names it
    (void)started_.release();
    (void)operation_.release();
    return;
  }
  channel_.GiveBack(std::move(started_->taken));
}

Failure CollectiveRequest::Begin() {
  operation_->FetchForRun();
  is_active_ = true;
  if (ToolWatch* const watch = CurrentToolWatch(); watch != nullptr) [[unlikely]] {
    shm::CallDescription call;
    DescribeWait(&call);
    watch->CollectiveEntered(call);
  }
  BeginRun();
  if (channel_.IsBusy()) {
    WatchChannel(*comm_, channel_);
  }
  return {};
}

void CollectiveRequest::BeginRun() {
  if (operation_->description != nullptr) [[unlikely]] {
    const uint32_t number = is_persistent_ ? number_ : operation_->number;
    comparison_ =
        channel_.Compare(*operation_->description, number, is_persistent_, [this, number] {
          channel_.StartLocked(started_->taken.run(), operation_->MakeBinding(), number);
        });
  } else if (is_persistent_) {
    channel_.StartPersistent(started_->taken.run(), operation_->MakeBinding(), number_);
  } else {
    channel_.StartNonblocking(started_.get(), &operation_->problem, operation_->MakeBinding());
  }
}

// Returns true once no comparison is under way any more.
bool CollectiveRequest::HasCompared() {
  return comparison_ == nullptr || channel_.Advance(*comparison_);
}

Failure CollectiveRequest::Start() {
  if (!is_persistent_) {
    return Request::Start();
  }
  if (is_active_) {
    return {MPI_ERR_REQUEST, "the persistent request is active; complete it first"};
  }
  if (!refusal_.ok()) {  // the others may have it matched
    return {refusal_.error_class,
            "its match has failed, so free it and make it anew: " + refusal_.text};
  }
  return on_stream_ != nullptr ? BeginMatched() : Begin();
}

// Begins it as queues would: other ranks may have enqueued theirs.
Failure CollectiveRequest::BeginMatched() {
  by_rank_.program = on_stream_->program();
  if (Status status = channel_.StartProgram(&by_rank_); !status.ok()) {
    return FailureOfQueue(status);
  }
  is_active_ = true;
  if (!by_rank_.is_done()) {
    WatchChannel(*comm_, channel_);
  }
  return {};
}

Failure CollectiveRequest::EndMatched() const {
  const ErrorCode error = by_rank_.error;
  return error == ErrorCode::kOk
             ? Failure()
             : FailureOfQueue({error, std::string("the ") +
                                          CollectiveName(operation_->problem.collective) +
                                          " failed (" + ErrorCodeText(error) +
                                          "): free it, make it and match it anew"});
}

void CollectiveRequest::DescribeWait(shm::CallDescription* description) const {
  DescribeProblem(*comm_, operation_->problem, description);
  description->inner = client::CallOf(operation_->call_name);
  description->flags |= shm::kCallNonblocking;
  if (!is_persistent_) {
    description->number = call_number_;
    description->flags |= shm::kCallHasNumber;
  }
}

bool CollectiveRequest::IsDone() {
  if (!is_active_) {
    return true;
  }
  if (on_stream_ != nullptr) {
    return channel_.Advance(by_rank_);
  }
  return HasCompared() && channel_.Advance(*started_);
}

void CollectiveRequest::AwaitUntil(bool (*done)(void*), void* argument) {
  const Ref<Comm> keeps_channel = Ref<Comm>::Share(comm_.get());
  const Channel::Waiting waiting(&channel_);
  if (is_persistent_) {  // which are started in any order
    Request::AwaitUntil(done, argument);
    return;
  }
  channel_.AwaitCall({call_number_, operation_->call_name}, done, argument);
}

Failure CollectiveRequest::End(MPI_Status* status) {
  SetEmptyStatus(status);
  if (!is_active_) {
    return {};
  }
  is_active_ = false;
  if (on_stream_ != nullptr) {
    return EndMatched();
  }
  if (ToolWatch* const watch = CurrentToolWatch(); watch != nullptr) [[unlikely]] {
    shm::CallDescription call;
    DescribeWait(&call);
    watch->CollectiveLeft(call);
  }
  if (comparison_ != nullptr && !comparison_->failure().ok()) [[unlikely]] {
    return comparison_->failure();
  }
  return operation_->Finish(started_->outcome());
}

// ---- Matching -----------------------------------------------------------------------------------

bool CollectiveRequest::is_enqueued() const {
  return on_stream_ != nullptr && front_end->queues->IsEnqueued(on_stream_->program());
}

Failure CollectiveRequest::AddOffered(std::vector<client::RequestHandle>* requests) {
  if (on_stream_ == nullptr && refusal_.ok()) {
    schedule_ = channel_.MakeScheduleOfQueue(operation_->problem);
    const StreamCollective::Parts parts{*comm_, channel_, *operation_, schedule_, number_};
    auto made = StreamCollective::Make(parts);
    if (made.ok()) {
      on_stream_ = std::move(made).value();
    } else {
      refusal_ = made.failure();
      StreamCollective::Refuse(parts);
    }
  }
  FERRY_RETURN_FAILURE(Failure(refusal_));
  requests->insert(requests->end(), on_stream_->requests().begin(), on_stream_->requests().end());
  return {};
}

Failure CollectiveRequest::IsMatched(bool* matched) {
  *matched = on_stream_ != nullptr;
  if (!*matched) {
    return {};
  }
  for (const client::RequestHandle request : on_stream_->requests()) {
    if (Status status = front_end->queues->IsMatched(request, matched); !status.ok() || !*matched) {
      return FailureOf(status);
    }
  }
  return {};
}

Failure CollectiveRequest::FindEnqueued(client::RequestHandle* handle) {
  if (on_stream_ == nullptr) {
    return {MPI_ERR_REQUEST, "it is not matched: call MPIX_Match first"};
  }
  if (operation_->reduces && !operation_->reducer.MayRunAnywhere()) {
    return {MPI_ERR_TYPE,
            "its datatype was freed, and the program's own operation needs its handle: keep it"};
  }
  *handle = on_stream_->program();
  return {};
}

}  // namespace ferry::mpi
