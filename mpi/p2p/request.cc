#include "mpi/p2p/request.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/comm/call_notes.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {

std::atomic<bool> may_be_enqueued{false};
namespace {

// The request of operations that were complete at their start, mostly sends, with an empty status.
class Completed : public Request {
 public:
  bool IsDone() override { return true; }
  Failure End(MPI_Status* status) override {
    SetEmptyStatus(status);
    return {};
  }
  bool EndWell(MPI_Request* handle, MPI_Status* status) override {
    SetEmptyStatus(status);
    *handle = MPI_REQUEST_NULL;
    return true;
  }
  Failure Cancel() override { return {}; }
  void Unpublish(MPI_Request) override {}  // the handle serves other operations, too
};

std::mutex abandoned_mutex;
std::vector<Ref<Request>>& abandoned = *new std::vector<Ref<Request>>();
std::atomic<size_t> abandoned_count{0};

}  // namespace

// Offers the requests for a match, and takes the offer back at once.
void RefuseMatch(const std::vector<client::RequestHandle>& requests) {
  client::RequestHandle match = 0;
  const bool is_offered = !requests.empty() && front_end->queues->BeginMatch(requests, &match).ok();
  for (const client::RequestHandle request : requests) {
    (void)front_end->messages->FreePersistent(request);
  }
  if (is_offered) {
    client::Completion completion;
    front_end->messages->Wait(match, &completion);  // over: its requests are gone
  }
}

void Request::DescribeWait(shm::CallDescription* description) const {
  if (comm() != nullptr) {
    DescribeComm(*comm(), description);
  }
  if (const int32_t peer = awaited_peer(); peer != client::kAny) {
    DescribeWorldPeer(comm(), peer, description);
  }
}

void CompletionNote::DescribeIt(const CallNote& note, shm::CallDescription* description) {
  const auto& call = static_cast<const CompletionNote&>(note);
  if (call.request != nullptr) {
    call.request->DescribeWait(description);
  }
  description->name = client::CallOf(call.function);
}

void AnyNote::DescribeIt(const CallNote& note, shm::CallDescription* description) {
  const auto& call = static_cast<const AnyNote&>(note);
  const Request* first = nullptr;
  int active = 0;
  bool is_one_comm = true;
  for (const MPI_Request handle : call.handles) {
    const Request* const request = requests.Find(handle);
    if (request != nullptr && request->is_active()) {
      first = active++ == 0 ? request : first;
      is_one_comm = is_one_comm && request->comm() == first->comm();
    }
  }
  if (active == 1) {
    first->DescribeWait(description);
  } else if (active != 0 && is_one_comm && first->comm() != nullptr) {
    DescribeComm(*first->comm(), description);
  }
  description->name = client::CallOf(call.function);
}

void Request::Await() {
  AwaitUntil([](void* request) { return static_cast<Request*>(request)->IsDone(); }, this);
}

void Request::AwaitUntil(bool (*done)(void*), void* argument) {
  front_end->peers->WaitFor(done, argument, awaited_peer());
}

void Request::Look(MPI_Status* status) { SetEmptyStatus(status); }

Failure Request::Start() {
  return {MPI_ERR_REQUEST, "only persistent requests can be started, and this one is none"};
}

Failure Request::Cancel() { return {MPI_ERR_REQUEST, "requests of this kind cannot be cancelled"}; }

MPI_Request Request::Publish() { return requests.Add(this); }

void Request::Unpublish(MPI_Request handle) {
  if (requests.Remove(handle) == this) {
    Release();
  }
}

Failure Request::FreeActive(MPI_Request handle) {
  Retain();
  Abandon(this);
  Unpublish(handle);
  return {};
}

void Abandon(Request* request) {
  std::lock_guard lock(abandoned_mutex);
  abandoned.push_back(Ref<Request>::Adopt(request));
  abandoned_count.store(abandoned.size(), std::memory_order_relaxed);
}

void EndAbandoned() {
  if (abandoned_count.load(std::memory_order_relaxed) == 0) {
    return;
  }
  std::lock_guard lock(abandoned_mutex);
  std::erase_if(abandoned, [](Ref<Request>& request) {
    const bool done = request->IsDone();
    if (done) {
      (void)request->End(MPI_STATUS_IGNORE);  // no caller is left to report a failure to
    }
    return done;
  });
  abandoned_count.store(abandoned.size(), std::memory_order_relaxed);
}

void AwaitAbandoned() {
  for (EndAbandoned(); abandoned_count.load(std::memory_order_relaxed) != 0; EndAbandoned()) {
    Ref<Request> first;
    {
      std::lock_guard lock(abandoned_mutex);
      first = abandoned.front();
    }
    first->Await();
  }
}

void DropLeftRequests() {
  requests.ForEach([](MPI_Request handle, Request* request) {
    if (request->is_enqueued() || handle == completed_request) {
      return;
    }
    request->GiveUp();
    if (request->is_active()) {
      if (!request->IsDone()) {
        return;
      }
      (void)request->End(MPI_STATUS_IGNORE);  // the program has not asked for a failure
    }
    request->Unpublish(handle);
  });
}

MPI_Request completed_request = nullptr;

void MakeCompletedRequest() {
  static Request* const completed = new Completed();  // lives as long as the process
  if (completed_request == nullptr) {
    completed_request = completed->Publish();
  }
}

}  // namespace ferry::mpi
