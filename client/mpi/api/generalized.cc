// Generalised requests, which a program completes by itself, and statuses made by programs
// (MPI 5.0, sections 3.2.5 and 13.2 to 13.3).
#include <atomic>
#include <string>
#include <utility>

#include "client/mpi/api/function.h"
#include "client/mpi/base/connection.h"
#include "client/mpi/base/handle_table.h"
#include "client/mpi/request/request.h"
#include "client/mpi/request/status.h"
#include "client/mpi/runtime/fail.h"

namespace ferry::mpi {
namespace {

class GeneralizedRequest : public Request {
 public:
  GeneralizedRequest(MPI_Grequest_query_function* query, MPI_Grequest_free_function* free,
                     MPI_Grequest_cancel_function* cancel, void* extra_state)
      : query_(query), free_(free), cancel_(cancel), extra_state_(extra_state) {}
  // Nobody completed it: it was freed by MPI_Request_free, which has returned.
  ~GeneralizedRequest() override { (void)Free(); }

  void Complete() {
    done_.store(true, std::memory_order_release);
    front_end->WakeThreads();
  }
  bool IsDone() override { return done_.load(std::memory_order_acquire); }
  // The call that completes the request returns what its functions do.
  Failure End(MPI_Status* status) override {
    Failure failure = Query(status);
    const int error = Free();
    return failure.ok() && error != MPI_SUCCESS
               ? Failure{error, "the request's free function failed"}
               : failure;
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

// Sets or gets one word of a status.
int FailStatus(const char* call) {
  return Fail(call, nullptr, MPI_ERR_ARG, "the status, or the address for the result, is null");
}

}  // namespace
}  // namespace ferry::mpi

using namespace ferry::mpi;  // NOLINT: the functions below are of no namespace

FERRY_MPI_CALL(int, Grequest_start,
               (MPI_Grequest_query_function * query, MPI_Grequest_free_function* free,
                MPI_Grequest_cancel_function* cancel, void* extra_state, MPI_Request* request)) {
  if (const int error = CheckRunning("MPI_Grequest_start"); error != MPI_SUCCESS) {
    return error;
  }
  if (query == nullptr || free == nullptr || cancel == nullptr) {
    return Fail("MPI_Grequest_start", nullptr, MPI_ERR_ARG,
                std::string(query == nullptr  ? "query_fn"
                            : free == nullptr ? "free_fn"
                                              : "cancel_fn") +
                    " is a null pointer");
  }
  if (request == nullptr) {
    return Fail("MPI_Grequest_start", nullptr, MPI_ERR_ARG, "the address for the request is null");
  }
  *request = MakeRef<GeneralizedRequest>(query, free, cancel, extra_state).Leave()->Publish();
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Grequest_complete, (MPI_Request handle)) {
  auto* const request = dynamic_cast<GeneralizedRequest*>(requests.Find(handle));
  if (request == nullptr) {
    return requests.Find(handle) != nullptr
               ? Fail("MPI_Grequest_complete", nullptr, MPI_ERR_REQUEST,
                      "the request is not a generalised one")
               : FailHandle("MPI_Grequest_complete", nullptr, MPI_ERR_REQUEST, "MPI_Request",
                            handle);
  }
  request->Complete();
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Status_get_source, (const MPI_Status* status, int* source)) {
  if (status == nullptr || source == nullptr) {
    return FailStatus("MPI_Status_get_source");
  }
  *source = status->MPI_SOURCE;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Status_set_source, (MPI_Status * status, int source)) {
  if (status == nullptr) {
    return FailStatus("MPI_Status_set_source");
  }
  status->MPI_SOURCE = source;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Status_get_tag, (const MPI_Status* status, int* tag)) {
  if (status == nullptr || tag == nullptr) {
    return FailStatus("MPI_Status_get_tag");
  }
  *tag = status->MPI_TAG;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Status_set_tag, (MPI_Status * status, int tag)) {
  if (status == nullptr) {
    return FailStatus("MPI_Status_set_tag");
  }
  status->MPI_TAG = tag;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Status_get_error, (const MPI_Status* status, int* error)) {
  if (status == nullptr || error == nullptr) {
    return FailStatus("MPI_Status_get_error");
  }
  *error = status->MPI_ERROR;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Status_set_error, (MPI_Status * status, int error)) {
  if (status == nullptr) {
    return FailStatus("MPI_Status_set_error");
  }
  status->MPI_ERROR = error;
  return MPI_SUCCESS;
}
