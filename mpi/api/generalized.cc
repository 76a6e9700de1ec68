// Generalised requests, which a program completes by itself, and statuses made by programs
// (MPI 5.0, sections 3.2.5, 5.1.11 and 13.2 to 13.3).
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {
namespace {

constexpr char kNoStatus[] = "the status, or the address for the result, is null";

class GeneralizedRequest;

// MPI_Request_free and MPI_Grequest_complete may come in either order, also from two threads at
// once. The program's copies of a handle that it has freed stand for the request until that is
// complete (MPI 5.0, section 13.2): for MPI_Grequest_complete, and for nothing else.
struct FreedRequests {
  std::mutex mutex;  // of all generalised requests: held while one becomes freed, or complete
  std::unordered_map<MPI_Request, GeneralizedRequest*> requests;
};
FreedRequests& freed = *new FreedRequests();

class GeneralizedRequest : public Request {
 public:
  GeneralizedRequest(MPI_Grequest_query_function* query, MPI_Grequest_free_function* free,
                     MPI_Grequest_cancel_function* cancel, void* extra_state)
      : query_(query), free_(free), cancel_(cancel), extra_state_(extra_state) {}

  // Under freed.mutex. Afterwards another thread may end it.
  void Complete() { done_.store(true, std::memory_order_release); }
  bool IsDone() override { return done_.load(std::memory_order_acquire); }
  // The call that completes the request returns what its functions do.
  Failure End(MPI_Status* status) override {
    Failure failure = Query(status);
    const int error = Free();
    return failure.ok() ? FailureOfFree(error) : failure;
  }
  // Its free function is called by whichever comes last, this or MPI_Grequest_complete.
  Failure FreeActive(MPI_Request handle) override {
    {
      std::lock_guard lock(freed.mutex);
      if (!IsDone()) {
        requests.Set(handle, nullptr);
        freed.requests.emplace(handle, this);
        return {};
      }
    }
    Failure failure = FailureOfFree(Free());
    Unpublish(handle);
    return failure;
  }
  // For one that FreeActive has left, with its handle's part of it.
  Failure EndFreed(MPI_Request handle) {
    Failure failure = FailureOfFree(Free());
    requests.Set(handle, this);
    Unpublish(handle);
    return failure;
  }
  void Look(MPI_Status* status) override { (void)Query(status); }
  Failure Cancel() override {
    const int error = cancel_ == nullptr ? MPI_SUCCESS : cancel_(extra_state_, IsDone() ? 1 : 0);
    return error == MPI_SUCCESS ? Failure()
                                : Failure{error, "the request's cancel function failed"};
  }

 private:
  // The function always gets a status to fill in.
  Failure Query(MPI_Status* status) {
    MPI_Status own{};
    SetEmptyStatus(&own);
    const int error = query_ == nullptr ? MPI_SUCCESS : query_(extra_state_, &own);
    if (status != MPI_STATUS_IGNORE) {
      own.MPI_ERROR = status->MPI_ERROR;
      *status = own;
    }
    return error == MPI_SUCCESS ? Failure() : Failure{error, "the request's query function failed"};
  }

  static Failure FailureOfFree(int error) {
    return error == MPI_SUCCESS ? Failure() : Failure{error, "the request's free function failed"};
  }
  // Once.
  int Free() {
    MPI_Grequest_free_function* const free = std::exchange(free_, nullptr);
    return free == nullptr ? MPI_SUCCESS : free(extra_state_);
  }

  MPI_Grequest_query_function* const query_;
  MPI_Grequest_free_function* free_;
  MPI_Grequest_cancel_function* const cancel_;
  void* const extra_state_;
  std::atomic<bool> done_{false};
};

}  // namespace

FERRY_MPI_CALL(int, MPI_Grequest_start,
               (MPI_Grequest_query_function * query, MPI_Grequest_free_function* free,
                MPI_Grequest_cancel_function* cancel, void* extra_state, MPI_Request* request)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  call.Need(reinterpret_cast<const void*>(query), "query_fn", reinterpret_cast<const void*>(free),
            "free_fn", reinterpret_cast<const void*>(cancel), "cancel_fn");
  call.NeedPlace(request, "the address for the request is null");
  return call.Then([&] {
    *request = MakeRef<GeneralizedRequest>(query, free, cancel, extra_state).Leave()->Publish();
  });
}

namespace {

// Null: the handle names none. *was_freed: the program has freed it, so the caller ends it.
GeneralizedRequest* Complete(MPI_Request handle, bool* was_freed) {
  std::lock_guard lock(freed.mutex);
  const auto left = freed.requests.extract(handle);
  *was_freed = !left.empty();
  auto* const request =
      *was_freed ? left.mapped() : dynamic_cast<GeneralizedRequest*>(requests.Find(handle));
  if (request != nullptr) {
    request->Complete();
  }
  return request;
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Grequest_complete, (MPI_Request handle)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  return call.Then([&]() -> Failure {
    bool was_freed = false;
    GeneralizedRequest* const request = Complete(handle, &was_freed);
    if (was_freed) {
      return request->EndFreed(handle);
    }
    if (request == nullptr && call.Find(handle) != nullptr) {
      return {MPI_ERR_REQUEST, "the request is not a generalised one"};
    }
    front_end->peers->WakeThreads();
    return {};
  });
}

// ---- Words of a status --------------------------------------------------------------------------

namespace {

int GetWord(Call call, const MPI_Status* status, int MPI_Status::*word, int* value) {
  call.NeedPlace(status, kNoStatus);
  call.NeedPlace(value, kNoStatus);
  return call.Then([&] { *value = status->*word; });
}

int SetWord(Call call, MPI_Status* status, int MPI_Status::*word, int value) {
  call.NeedPlace(status, kNoStatus);
  return call.Then([&] { status->*word = value; });
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Status_get_source, (const MPI_Status* status, int* source)) {
  return GetWord(FERRY_MPI_NAME, status, &MPI_Status::MPI_SOURCE, source);
}

FERRY_MPI_CALL(int, MPI_Status_set_source, (MPI_Status * status, int source)) {
  return SetWord(FERRY_MPI_NAME, status, &MPI_Status::MPI_SOURCE, source);
}

FERRY_MPI_CALL(int, MPI_Status_get_tag, (const MPI_Status* status, int* tag)) {
  return GetWord(FERRY_MPI_NAME, status, &MPI_Status::MPI_TAG, tag);
}

FERRY_MPI_CALL(int, MPI_Status_set_tag, (MPI_Status * status, int tag)) {
  return SetWord(FERRY_MPI_NAME, status, &MPI_Status::MPI_TAG, tag);
}

FERRY_MPI_CALL(int, MPI_Status_get_error, (const MPI_Status* status, int* error)) {
  return GetWord(FERRY_MPI_NAME, status, &MPI_Status::MPI_ERROR, error);
}

FERRY_MPI_CALL(int, MPI_Status_set_error, (MPI_Status * status, int error)) {
  return SetWord(FERRY_MPI_NAME, status, &MPI_Status::MPI_ERROR, error);
}

// ---- How much a status says to have come, in elements of a datatype -----------------------------

namespace {

// Answers with (type.*count)(bytes).
template <typename Number>
int GetNumber(Call call, const MPI_Status* status, MPI_Datatype datatype, Number* result,
              int64_t (Datatype::*count)(int64_t) const) {
  const Datatype* const type = call.Find(datatype);
  call.Need(status, "status", result, "count");
  return call.Then([&] { PutNumber(result, (type->*count)(BytesOf(*status))); });
}

int SetElements(Call call, MPI_Status* status, MPI_Datatype datatype, int64_t count) {
  const Datatype* const type = call.Find(datatype);
  call.Need(status, "status");
  NeedLength(call, count);
  const int64_t bytes = call.ok() ? type->BytesOfBasicElements(count) : 0;
  if (bytes == MPI_UNDEFINED) {
    call.Refuse(MPI_ERR_COUNT,
                "the datatype cannot hold " + std::to_string(count) + " basic elements");
  }
  return call.Then([&] { SetBytes(status, bytes); });
}

}  // namespace

FERRY_MPI_TWINS(MPI_Get_count, (const MPI_Status* status, MPI_Datatype datatype, Count* count),
                GetNumber(FERRY_MPI_NAME, status, datatype, count, &Datatype::ElementCount));

FERRY_MPI_TWINS(MPI_Get_elements, (const MPI_Status* status, MPI_Datatype datatype, Count* count),
                GetNumber(FERRY_MPI_NAME, status, datatype, count, &Datatype::BasicElementCount));
FERRY_MPI_CALL(int, MPI_Get_elements_x,
               (const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count)) {
  return GetNumber(FERRY_MPI_NAME, status, datatype, count, &Datatype::BasicElementCount);
}

FERRY_MPI_TWINS(MPI_Status_set_elements, (MPI_Status * status, MPI_Datatype datatype, Count count),
                SetElements(FERRY_MPI_NAME, status, datatype, count));
FERRY_MPI_CALL(int, MPI_Status_set_elements_x,
               (MPI_Status * status, MPI_Datatype datatype, MPI_Count count)) {
  return SetElements(FERRY_MPI_NAME, status, datatype, count);
}

}  // namespace ferry::mpi
