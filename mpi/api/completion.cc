// Completion of requests: wait, test, free, cancel, start (MPI 5.0, sections 3.7 to 3.9).
#include <sched.h>

#include <algorithm>
#include <span>
#include <string>
#include <type_traits>

#include "client/api/word_wait.h"
#include "mpi/api/function.h"
#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/init/fail.h"
#include "mpi/p2p/partitioned.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/status.h"
#include "shm/vain_looks.h"

namespace ferry::mpi {
namespace {

using Handles = std::span<MPI_Request>;

// The request of a handle, null for MPI_REQUEST_NULL. Returns what the call is to return if the
// handle stands for nothing.
int Find(const char* call, MPI_Request handle, Request** request) {
  *request = requests.Find(handle);
  if (*request != nullptr) [[likely]] {
    return may_be_enqueued.load(std::memory_order_relaxed) && (*request)->is_enqueued()
               ? Fail(call, (*request)->comm(), MPI_ERR_REQUEST,
                      "the request belongs to a queue: call MPIX_Queue_wait first")
               : MPI_SUCCESS;
  }
  return handle == MPI_REQUEST_NULL
             ? CheckRunning(call)
             : FailHandle(call, nullptr, MPI_ERR_REQUEST, "MPI_Request", handle);
}

int CheckArray(const char* call, int count, const MPI_Request* handles) {
  FERRY_RETURN_ERROR(CheckRunning(call));
  if (count < 0) {
    return Fail(call, nullptr, MPI_ERR_COUNT, "the count is " + std::to_string(count));
  }
  if (count > 0 && handles == nullptr) {
    return Fail(call, nullptr, MPI_ERR_REQUEST, "the array of requests is null");
  }
  for (int i = 0; i < count; ++i) {
    Request* request = nullptr;
    FERRY_RETURN_ERROR(Find(call, handles[i], &request));
  }
  return MPI_SUCCESS;
}

int CheckPointer(const char* call, const void* pointer, const char* what) {
  return pointer != nullptr ? MPI_SUCCESS
                            : Fail(call, nullptr, MPI_ERR_ARG,
                                   "the address for the " + std::string(what) + " is null");
}

// Likewise, for calls that need a request.
[[gnu::always_inline]] inline int FindGiven(const char* call, const MPI_Request* handle,
                                            Request** request) {
  FERRY_RETURN_ERROR(CheckPointer(call, handle, "request"));
  FERRY_RETURN_ERROR(Find(call, *handle, request));
  if (*request == nullptr) {
    (void)Fail(call, nullptr, MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
    return MPI_ERR_REQUEST;
  }
  return MPI_SUCCESS;
}

// For calls that tell which of several requests are done.
int CheckSome(const char* call, int count, const MPI_Request* handles, const int* outcount,
              const int* indices) {
  FERRY_RETURN_ERROR(CheckArray(call, count, handles));
  FERRY_RETURN_ERROR(CheckPointer(call, outcount, "count"));
  return count > 0 ? CheckPointer(call, indices, "indices") : MPI_SUCCESS;
}

// Looks, and if need be makes progress once and looks again.
template <typename Done>
bool TryOnce(Done&& done) {
  if (done()) {
    return true;
  }
  (void)front_end->peers->Poll();
  if (done()) {
    return true;
  }
  shm::NoteVainLook();
  return false;
}

// Returns true if one of the requests is partitioned: WaitFor is not told of the words that these
// wait for. *is_far: one of these is with another node.
bool HavePartitioned(Handles handles, bool* is_far) {
  bool any = false;
  for (const MPI_Request handle : handles) {
    Request* const request = requests.Find(handle);
    if (request != nullptr && request->partitioned() != nullptr) {
      const int32_t peer = request->awaited_peer();
      *is_far =
          *is_far || peer < 0 ||
          front_end->NodeOf(static_cast<uint32_t>(peer)) != front_end->NodeOf(front_end->rank());
      any = true;
    }
  }
  return any;
}

// Waits until done(), or the rank is poisoned: then all fail, some of them only at a second look.
template <typename Done>
void AwaitWords(bool is_far, Done&& done) {
  constexpr int kLooksAtTheEnd = 100;
  using From = client::WordWait::From;
  client::WordWait wait(*front_end, is_far ? From::kNetwork : From::kNode);
  bool is_done = done();
  while (!is_done && front_end->poison() == ErrorCode::kOk) {
    if (!wait.Pause()) {
      wait.Rest();
    }
    is_done = done();
  }
  for (int looks = 0; !is_done && looks < kLooksAtTheEnd; ++looks) {
    sched_yield();
    is_done = done();
  }
}

// Waits until done(), which looks at the requests.
template <typename Done>
void WaitUntil(const char* call_name, Handles handles, Done&& done) {
  AnyNote note(call_name, handles);
  const client::CallScope scope(front_end->calls, &note);
  using Target = std::remove_reference_t<Done>;
  const auto call = [](void* argument) { return (*static_cast<Target*>(argument))(); };
  bool is_far = false;
  if (HavePartitioned(handles, &is_far)) [[unlikely]] {
    AwaitWords(is_far, done);
  } else {
    front_end->peers->WaitFor(call, &done);
  }
}

// Drops the handle of a request that has ended, unless the request is persistent.
void Drop(MPI_Request* handle, Request& request) {
  if (!request.is_persistent()) {
    request.Unpublish(*handle);
    *handle = MPI_REQUEST_NULL;
  }
}

// Ends a request that is done, for a call that completes one.
int Finish(const char* call, MPI_Request* handle, Request& request, MPI_Status* status) {
  const Failure failure = request.End(status);
  Ref<Comm> comm;
  if (!failure.ok()) [[unlikely]] {
    comm = Ref<Comm>::Share(request.comm());
  }
  Drop(handle, request);
  return Conclude(call, comm.get(), failure);
}

MPI_Status* At(MPI_Status* statuses, int index) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[index];
}

void SetError(MPI_Status* status, int error_class) {
  if (status != MPI_STATUS_IGNORE) {
    status->MPI_ERROR = error_class;
  }
}

// Collects the results of a call that completes several requests. The first failure decides the
// call's own.
struct Harvest {
  Ref<Comm> comm;
  Failure first;
  int failed = 0;

  void Take(MPI_Request* handle, MPI_Status* status) {
    Request* const request = requests.Find(*handle);
    if (request == nullptr) {
      SetEmptyStatus(status);
      SetError(status, MPI_SUCCESS);
      return;
    }
    Failure failure = request->End(status);
    SetError(status, failure.error_class);
    if (!failure.ok() && ++failed == 1) {
      comm = Ref<Comm>::Share(request->comm());
      first = std::move(failure);
    }
    Drop(handle, *request);
  }

  // MPI_ERR_IN_STATUS if the statuses say which; without them the first failure itself.
  int Report(const char* call, const MPI_Status* statuses) const {
    if (failed == 0) {
      return MPI_SUCCESS;
    }
    return statuses == MPI_STATUSES_IGNORE
               ? Fail(call, comm.get(), first)
               : Fail(call, comm.get(), MPI_ERR_IN_STATUS,
                      std::to_string(failed) + " of the requests failed, the first because " +
                          first.text);
  }
};

// Ends all of the requests, each once and in order, as they turn out to be done.
class Sweep {
 public:
  Sweep(Handles handles, MPI_Status* statuses) : handles_(handles), statuses_(statuses) {}

  // Goes on to the first that is not done yet, and returns it. Null: all have ended.
  Request* GoOn() {
    for (; next_ < handles_.size(); ++next_) {
      Request* const request = requests.Find(handles_[next_]);
      if (!Take(request, &handles_[next_], At(statuses_, static_cast<int>(next_)))) {
        return request;
      }
    }
    return nullptr;
  }
  // Blocks. Those that will never be done, since the rank is poisoned, fail with it.
  void AwaitAll(const char* call) {
    Request* next = GoOn();
    if (next != nullptr) {
      CompletionNote note(call, next);
      const client::CallScope scope(front_end->calls, &note);
      note_ = &note;
      for (; next != nullptr && front_end->poison() == ErrorCode::kOk; next = GoOn()) {
        Note(next);
        Await(next);
      }
      note_ = nullptr;
      note.request = nullptr;  // it may be freed
    }
    for (; next_ < handles_.size(); ++next_) {
      if (Request* const request = requests.Find(handles_[next_]); request != nullptr) {
        (void)request->IsDone();  // poisoned, what is under way fails at once
      }
      harvest_.Take(&handles_[next_], At(statuses_, static_cast<int>(next_)));
    }
  }
  int Report(const char* call) const { return harvest_.Report(call, statuses_); }

 private:
  // Waits for the first that is not done, and for all behind it whose waits are no others.
  void Await(Request* first) {
    struct Waiting {
      Sweep* sweep;
      Request* first;
      bool is_watched;
    } waiting{this, first, first->is_watched()};
    first->AwaitUntil(
        [](void* argument) {
          const auto& [sweep, awaited, is_watched] = *static_cast<Waiting*>(argument);
          const Request* const next = sweep->GoOn();
          sweep->Note(next);
          return next == nullptr || (next != awaited && (is_watched || next->is_watched()));
        },
        &waiting);
  }
  // Shows `next` as the request that the rank waits for. The request noted before may be freed by
  // now, so this does not read it.
  void Note(const Request* next) {
    if (note_ != nullptr && next != nullptr && note_->request != next) {
      note_->request = next;
      front_end->calls->NoteChange();
    }
  }
  bool Take(Request* request, MPI_Request* handle, MPI_Status* status) {
    if (request != nullptr && request->EndWell(handle, status)) [[likely]] {
      SetError(status, MPI_SUCCESS);
      return true;
    }
    if (request != nullptr && !request->IsDone()) {
      return false;
    }
    harvest_.Take(handle, status);
    return true;
  }

  const Handles handles_;
  MPI_Status* const statuses_;
  Harvest harvest_;
  size_t next_ = 0;  // those before have ended
  CompletionNote* note_ = nullptr;
};

bool AreAllDone(Handles handles) {
  return std::all_of(handles.begin(), handles.end(), [](MPI_Request handle) {
    Request* const request = requests.Find(handle);
    return request == nullptr || request->IsDone();
  });
}

// The first active request that is done, or -1; -2: none is active.
int FirstDone(std::span<const MPI_Request> handles) {
  int result = -2;
  for (size_t i = 0; i < handles.size(); ++i) {
    Request* const request = requests.Find(handles[i]);
    if (request == nullptr || !request->is_active()) {
      continue;
    }
    if (request->IsDone()) {
      return static_cast<int>(i);
    }
    result = -1;
  }
  return result;
}

// Returns true if there is no need to wait for a request; *found is the result of FirstDone.
bool TryAny(std::span<const MPI_Request> handles, int* found) {
  return TryOnce([&] {
    *found = FirstDone(handles);
    return *found != -1;
  });
}

int TakeAny(const char* call, Handles handles, int found, int* index, MPI_Status* status) {
  if (found < 0) {
    *index = MPI_UNDEFINED;
    SetEmptyStatus(status);
    return MPI_SUCCESS;
  }
  *index = found;
  MPI_Request* const handle = &handles[static_cast<size_t>(found)];
  return Finish(call, handle, *requests.Find(*handle), status);
}

// Calls take(index, request, status) for each active request that is done, and notes its index.
// Returns how many there were; MPI_UNDEFINED: none is active.
template <typename Take>
int TakeDone(std::span<const MPI_Request> handles, int* indices, MPI_Status* statuses,
             Take&& take) {
  int taken = 0;
  bool any_active = false;
  for (size_t i = 0; i < handles.size(); ++i) {
    Request* const request = requests.Find(handles[i]);
    if (request == nullptr || !request->is_active()) {
      continue;
    }
    any_active = true;
    if (request->IsDone()) {
      take(i, *request, At(statuses, taken));
      indices[taken++] = static_cast<int>(i);
    }
  }
  return any_active ? taken : MPI_UNDEFINED;
}

int TakeSome(const char* call, Handles handles, int* outcount, int* indices, MPI_Status* statuses) {
  Harvest harvest;
  *outcount = TakeDone(handles, indices, statuses, [&](size_t i, Request&, MPI_Status* status) {
    harvest.Take(&handles[i], status);
  });
  return harvest.Report(call, statuses);
}

}  // namespace

// ---- One ----------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Wait, (MPI_Request * handle, MPI_Status* status)) {
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, handle, "request"));
  Request* request = nullptr;
  FERRY_RETURN_ERROR(Find(FERRY_MPI_NAME, *handle, &request));
  EndAbandoned();
  if (request == nullptr) {
    SetEmptyStatus(status);
    return MPI_SUCCESS;
  }
  if (request->EndWell(handle, status)) {
    return MPI_SUCCESS;
  }
  {
    CompletionNote note(FERRY_MPI_NAME, request);
    const client::CallScope scope(front_end->calls, &note);
    request->Await();
  }
  return Finish(FERRY_MPI_NAME, handle, *request, status);
}

FERRY_MPI_CALL(int, MPI_Test, (MPI_Request * handle, int* flag, MPI_Status* status)) {
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, handle, "request"));
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, flag, "flag"));
  Request* request = nullptr;
  FERRY_RETURN_ERROR(Find(FERRY_MPI_NAME, *handle, &request));
  EndAbandoned();
  *flag = request == nullptr || TryOnce([&] { return request->IsDone(); }) ? 1 : 0;
  if (request == nullptr) {
    SetEmptyStatus(status);
    return MPI_SUCCESS;
  }
  return *flag == 0 ? MPI_SUCCESS : Finish(FERRY_MPI_NAME, handle, *request, status);
}

FERRY_MPI_CALL(int, MPI_Request_get_status, (MPI_Request handle, int* flag, MPI_Status* status)) {
  Request* request = nullptr;
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, flag, "flag"));
  FERRY_RETURN_ERROR(Find(FERRY_MPI_NAME, handle, &request));
  EndAbandoned();
  *flag = request == nullptr || TryOnce([&] { return request->IsDone(); }) ? 1 : 0;
  if (request == nullptr) {
    SetEmptyStatus(status);
  } else if (*flag != 0) {
    request->Look(status);
  }
  return MPI_SUCCESS;
}

// ---- All ----------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Waitall, (int count, MPI_Request handles[], MPI_Status statuses[])) {
  FERRY_RETURN_ERROR(CheckArray(FERRY_MPI_NAME, count, handles));
  EndAbandoned();
  Sweep sweep({handles, static_cast<size_t>(count)}, statuses);
  sweep.AwaitAll(FERRY_MPI_NAME);
  return sweep.Report(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_Testall,
               (int count, MPI_Request handles[], int* flag, MPI_Status statuses[])) {
  FERRY_RETURN_ERROR(CheckArray(FERRY_MPI_NAME, count, handles));
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, flag, "flag"));
  EndAbandoned();
  const Handles all(handles, static_cast<size_t>(count));
  *flag = TryOnce([&] { return AreAllDone(all); }) ? 1 : 0;
  Sweep sweep(all, statuses);
  if (*flag != 0) {
    (void)sweep.GoOn();
  }
  return sweep.Report(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_Request_get_status_all,
               (int count, const MPI_Request handles[], int* flag, MPI_Status statuses[])) {
  FERRY_RETURN_ERROR(CheckArray(FERRY_MPI_NAME, count, handles));
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, flag, "flag"));
  const Handles all(const_cast<MPI_Request*>(handles), static_cast<size_t>(count));
  *flag = TryOnce([&] { return AreAllDone(all); }) ? 1 : 0;
  for (int i = 0; *flag != 0 && i < count; ++i) {
    if (Request* const request = requests.Find(handles[i]); request != nullptr) {
      request->Look(At(statuses, i));
    } else {
      SetEmptyStatus(At(statuses, i));
    }
  }
  return MPI_SUCCESS;
}

// ---- Any ----------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Waitany,
               (int count, MPI_Request handles[], int* index, MPI_Status* status)) {
  FERRY_RETURN_ERROR(CheckArray(FERRY_MPI_NAME, count, handles));
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, index, "index"));
  EndAbandoned();
  const Handles all(handles, static_cast<size_t>(count));
  int found = -1;
  WaitUntil(FERRY_MPI_NAME, all, [&] {
    found = FirstDone(all);
    return found != -1;
  });
  return TakeAny(FERRY_MPI_NAME, all, found, index, status);
}

FERRY_MPI_CALL(int, MPI_Testany,
               (int count, MPI_Request handles[], int* index, int* flag, MPI_Status* status)) {
  FERRY_RETURN_ERROR(CheckArray(FERRY_MPI_NAME, count, handles));
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, index, "index"));
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, flag, "flag"));
  EndAbandoned();
  const Handles all(handles, static_cast<size_t>(count));
  int found = -1;
  *flag = TryAny(all, &found) ? 1 : 0;
  *index = MPI_UNDEFINED;
  return *flag == 0 ? MPI_SUCCESS : TakeAny(FERRY_MPI_NAME, all, found, index, status);
}

FERRY_MPI_CALL(int, MPI_Request_get_status_any,
               (int count, const MPI_Request handles[], int* index, int* flag,
                MPI_Status* status)) {
  FERRY_RETURN_ERROR(CheckArray(FERRY_MPI_NAME, count, handles));
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, index, "index"));
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, flag, "flag"));
  int found = -1;
  *flag = TryAny({handles, static_cast<size_t>(count)}, &found) ? 1 : 0;
  *index = found < 0 ? MPI_UNDEFINED : found;
  if (found >= 0) {
    requests.Find(handles[found])->Look(status);
  } else if (*flag != 0) {
    SetEmptyStatus(status);
  }
  return MPI_SUCCESS;
}

// ---- Some ---------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Waitsome,
               (int count, MPI_Request handles[], int* outcount, int indices[],
                MPI_Status statuses[])) {
  FERRY_RETURN_ERROR(CheckSome(FERRY_MPI_NAME, count, handles, outcount, indices));
  EndAbandoned();
  const Handles all(handles, static_cast<size_t>(count));
  WaitUntil(FERRY_MPI_NAME, all, [&] { return FirstDone(all) != -1; });
  return TakeSome(FERRY_MPI_NAME, all, outcount, indices, statuses);
}

FERRY_MPI_CALL(int, MPI_Testsome,
               (int count, MPI_Request handles[], int* outcount, int indices[],
                MPI_Status statuses[])) {
  FERRY_RETURN_ERROR(CheckSome(FERRY_MPI_NAME, count, handles, outcount, indices));
  EndAbandoned();
  const Handles all(handles, static_cast<size_t>(count));
  (void)TryOnce([&] { return FirstDone(all) != -1; });
  return TakeSome(FERRY_MPI_NAME, all, outcount, indices, statuses);
}

FERRY_MPI_CALL(int, MPI_Request_get_status_some,
               (int count, const MPI_Request handles[], int* outcount, int indices[],
                MPI_Status statuses[])) {
  FERRY_RETURN_ERROR(CheckSome(FERRY_MPI_NAME, count, handles, outcount, indices));
  const std::span<const MPI_Request> all(handles, static_cast<size_t>(count));
  // Those that are done stay, so they must not keep the others from making progress.
  const Handles looked_at(const_cast<MPI_Request*>(handles), static_cast<size_t>(count));
  (void)TryOnce([&] { return AreAllDone(looked_at); });
  *outcount = TakeDone(all, indices, statuses,
                       [](size_t, Request& request, MPI_Status* status) { request.Look(status); });
  return MPI_SUCCESS;
}

// ---- Start, free, cancel ------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Start, (MPI_Request * handle)) {
  Request* request = nullptr;
  FERRY_RETURN_ERROR(FindGiven(FERRY_MPI_NAME, handle, &request));
  return Conclude(FERRY_MPI_NAME, *request, request->Start());
}

FERRY_MPI_CALL(int, MPI_Startall, (int count, MPI_Request handles[])) {
  FERRY_RETURN_ERROR(CheckArray(FERRY_MPI_NAME, count, handles));
  for (int i = 0; i < count; ++i) {
    Request* const request = requests.Find(handles[i]);
    const Failure failure = request == nullptr
                                ? Failure{MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL"}
                                : request->Start();
    if (!failure.ok()) {
      return Fail(FERRY_MPI_NAME, request == nullptr ? nullptr : request->comm(),
                  failure.error_class, "request " + std::to_string(i) + ": " + failure.text);
    }
  }
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, MPI_Request_free, (MPI_Request * handle)) {
  Request* request = nullptr;
  FERRY_RETURN_ERROR(FindGiven(FERRY_MPI_NAME, handle, &request));
  if (request->is_active() && request->partitioned() != nullptr) {
    return Fail(FERRY_MPI_NAME, request->comm(), MPI_ERR_REQUEST,
                "the partitioned request is active; complete it first");
  }
  Failure failure;
  if (request->is_active()) {
    failure = request->FreeActive(*handle);
  } else {
    request->Unpublish(*handle);
  }
  *handle = MPI_REQUEST_NULL;
  EndAbandoned();
  return failure.ok() ? MPI_SUCCESS : Fail(FERRY_MPI_NAME, nullptr, failure);
}

FERRY_MPI_CALL(int, MPI_Cancel, (MPI_Request * handle)) {
  Request* request = nullptr;
  FERRY_RETURN_ERROR(FindGiven(FERRY_MPI_NAME, handle, &request));
  return Conclude(FERRY_MPI_NAME, *request, request->Cancel());
}

FERRY_MPI_CALL(int, MPI_Test_cancelled, (const MPI_Status* status, int* flag)) {
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, status, "status"));
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, flag, "flag"));
  *flag = status->MPI_internal[kStatusCancelled];
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, MPI_Status_set_cancelled, (MPI_Status * status, int flag)) {
  FERRY_RETURN_ERROR(CheckPointer(FERRY_MPI_NAME, status, "status"));
  status->MPI_internal[kStatusCancelled] = flag != 0 ? 1 : 0;
  return MPI_SUCCESS;
}

}  // namespace ferry::mpi
