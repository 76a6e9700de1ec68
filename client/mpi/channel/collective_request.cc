#include "client/mpi/channel/collective_request.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/mpi/base/connection.h"
#include "client/mpi/request/status.h"
#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

// The thread that carries collectives on while the application computes (MPI 5.0, section 6.12:
// nonblocking collectives).
//
// There is one per process, from the first nonblocking collective that is not over at once until
// MPI_Finalize. It sleeps while none is under way, and otherwise as libferry's waiting calls do.
// While it sleeps, threads of the program need not mind it (Threads::BeginCall).
class Helper {
 public:
  void Watch(Comm& comm, Channel& channel) {
    Threads::Allow();
    std::lock_guard lock(mutex_);
    Threads::SetHelperAtRest(false);
    const auto is_same = [&](const Watched& watched) { return watched.channel == &channel; };
    if (std::none_of(watched_.begin(), watched_.end(), is_same)) {
      watched_.push_back({Ref<Comm>::Share(&comm), &channel});
    }
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { Work(); });
      Process::AtFinalize([this] { return Stop(); });
    }
    has_work_.notify_one();
  }

 private:
  struct Watched {
    Ref<Comm> comm;
    Channel* channel;
  };

  void Work() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        Threads::SetHelperAtRest(watched_.empty());
        has_work_.wait(lock, [this] { return is_stopping_ || !watched_.empty(); });
        if (is_stopping_) {
          return;
        }
      }
      front_end->WaitFor([](void* self) { return static_cast<Helper*>(self)->LookRound(); }, this);
      if (front_end->poison() != ErrorCode::kOk) {
        // Nothing can be waited for any more. Threads that wait find the errors by themselves.
        std::lock_guard lock(mutex_);
        watched_.clear();
      }
    }
  }

  // Looks once at all channels. Returns whether there is nothing left to wait for.
  bool LookRound() {
    bool has_ended = false;
    std::vector<Watched> idle;  // let go of without the lock
    bool is_over = false;
    {
      std::lock_guard lock(mutex_);
      for (size_t i = 0; i < watched_.size();) {
        const Channel::Progress progress = watched_[i].channel->AdvanceAll();
        has_ended = has_ended || progress.has_ended;
        if (progress.is_busy) {
          ++i;
          continue;
        }
        idle.push_back(std::move(watched_[i]));
        watched_.erase(watched_.begin() + static_cast<ptrdiff_t>(i));
      }
      is_over = watched_.empty() || is_stopping_;
    }
    if (has_ended) {
      front_end->WakeThreads();  // somebody may be waiting for just that
    }
    return is_over;
  }

  Failure Stop() {
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
      has_work_.notify_one();
    }
    front_end->WakeThreads();
    thread_.join();
    return {};
  }

  std::mutex mutex_;  // guards what follows, but for the thread's own use of it
  std::condition_variable has_work_;
  std::vector<Watched> watched_;
  std::thread thread_;
  bool is_stopping_ = false;
};

// Not destroyed at exit: a program may leave without MPI_Finalize.
Helper& helper = *new Helper();

}  // namespace

void WatchChannel(Comm& comm, Channel& channel) { helper.Watch(comm, channel); }

CollectiveRequest::CollectiveRequest(Comm& comm, std::unique_ptr<CollectiveOperation> operation,
                                     bool persistent)
    : comm_(Ref<Comm>::Share(&comm)),
      channel_(Channel::Of(comm)),
      operation_(std::move(operation)),
      is_persistent_(persistent),
      number_(persistent ? channel_.NextPersistentNumber() : 0),
      call_number_(persistent ? 0 : channel_.CountCall()),
      taken_(channel_.Take(operation_->problem)) {
  operation_->reducer.Keep();
}

CollectiveRequest::~CollectiveRequest() {
  on_stream_.reset();
  channel_.GiveBack(std::move(taken_));
}

Failure CollectiveRequest::Begin() {
  FERRY_RETURN_FAILURE(operation_->Fetch());
  is_active_ = true;
  BeginRun();
  if (!HasCompared() || !channel_.Advance(*taken_.run())) {
    WatchChannel(*comm_, channel_);
  }
  return {};
}

void CollectiveRequest::BeginRun() {
  if (operation_->description != nullptr) [[unlikely]] {
    const uint32_t number = is_persistent_ ? number_ : operation_->number;
    comparison_ = channel_.Compare(
        *operation_->description, number, is_persistent_,
        [this, number] { channel_.StartLocked(taken_.run(), operation_->MakeBinding(), number); });
  } else {
    channel_.Start(taken_.run(), operation_->MakeBinding(),
                   is_persistent_ ? number_ : Channel::kNoNumber);
  }
}

// Whether there is no comparison under way any more.
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

bool CollectiveRequest::IsDone() {
  if (!is_active_) {
    return true;
  }
  if (on_stream_ != nullptr) {
    return channel_.Advance(by_rank_);
  }
  return HasCompared() && channel_.Advance(*taken_.run());
}

void CollectiveRequest::AwaitUntil(bool (*done)(void*), void* argument) {
  if (is_persistent_) {  // which are started in any order
    Request::AwaitUntil(done, argument);
    return;
  }
  const Ref<Comm> keeps_channel = Ref<Comm>::Share(comm_.get());
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
  if (comparison_ != nullptr && !comparison_->failure().ok()) [[unlikely]] {
    return comparison_->failure();
  }
  return operation_->Finish(taken_.run()->failure());
}

// ---- Matching -----------------------------------------------------------------------------------

bool CollectiveRequest::is_enqueued() const {
  return on_stream_ != nullptr && front_end->IsEnqueued(on_stream_->program());
}

Failure CollectiveRequest::AddOffered(std::vector<client::RequestHandle>* requests) {
  if (on_stream_ == nullptr && refusal_.ok()) {
    const StreamCollective::Parts parts{*comm_, channel_, *operation_, taken_.run()->schedule(),
                                        number_};
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
    if (Status status = front_end->IsMatched(request, matched); !status.ok() || !*matched) {
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
