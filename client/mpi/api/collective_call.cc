#include "client/mpi/api/collective_call.h"

#include <string>
#include <utility>

#include "client/mpi/channel/channel.h"
#include "client/mpi/channel/collective_request.h"
#include "client/mpi/error/fail.h"
#include "client/mpi/runtime/tables.h"

namespace ferry::mpi {

int FindComm(const CollectiveCall& call, MPI_Comm handle, Comm** comm) {
  *comm = comms.Find(handle);
  if (*comm == nullptr) [[unlikely]] {
    return FailComm(call.name, handle);
  }
  if (call.mode != CallMode::kBlocking && call.request == nullptr) [[unlikely]] {
    return Fail(call.name, *comm, MPI_ERR_ARG, "the address for the request is null");
  }
  if (call.info != MPI_INFO_NULL && infos.Find(call.info) == nullptr) [[unlikely]] {
    return FailHandle(call.name, *comm, MPI_ERR_INFO, "MPI_Info", call.info);
  }
  return MPI_SUCCESS;
}

int FailCollective(const CollectiveCall& call, Comm& comm, const Failure& failure) {
  return Fail(call.name, &comm, failure);
}

int RunBlocking(const CollectiveCall& call, Comm& comm, CollectiveOperation* operation) {
  Channel& channel = Channel::Of(comm);
  Failure failure = operation->Fetch();
  if (failure.ok()) [[likely]] {
    failure = operation->Finish(channel.Run(operation->problem, operation->MakeBinding()));
  } else {
    channel.Renounce();
  }
  return failure.ok() ? MPI_SUCCESS : Fail(call.name, &comm, failure);
}

int BeginCollective(const CollectiveCall& call, Comm& comm,
                    std::unique_ptr<CollectiveOperation> operation) {
  const bool persistent = call.mode == CallMode::kPersistent;
  Ref<CollectiveRequest> request =
      MakeRef<CollectiveRequest>(comm, std::move(operation), persistent);
  const MPI_Request handle = request->Publish();
  if (handle == nullptr) {
    *call.request = MPI_REQUEST_NULL;
    return Fail(call.name, &comm, MPI_ERR_NO_MEM, "no memory for another request");
  }
  CollectiveRequest* const published = request.Leave();
  if (!persistent) {
    if (const Failure failure = published->Begin(); !failure.ok()) {
      published->Unpublish(handle);
      *call.request = MPI_REQUEST_NULL;
      return Fail(call.name, &comm, failure);
    }
  }
  *call.request = handle;
  return MPI_SUCCESS;
}

// ---- Arguments ----------------------------------------------------------------------------------

Failure FindDatatype(MPI_Datatype handle, const char* which, const Datatype** type) {
  *type = datatypes.Find(handle);
  if (*type == nullptr) [[unlikely]] {
    return {MPI_ERR_TYPE,
            std::string(which) + " is no datatype: is it MPI_DATATYPE_NULL, or was it freed?"};
  }
  return {};
}

Failure CheckRoot(const Comm& comm, int root) {
  if (static_cast<unsigned>(root) >= static_cast<unsigned>(comm.size())) [[unlikely]] {
    return {MPI_ERR_ROOT, "the root " + std::to_string(root) +
                              " is no rank of the communicator, which has ranks 0 to " +
                              std::to_string(comm.size() - 1)};
  }
  return {};
}

Failure CheckInPlace(bool allowed, const void* buffer, const char* which) {
  if (IsInPlace(buffer) && !allowed) [[unlikely]] {
    return {MPI_ERR_BUFFER, std::string(which) + " is MPI_IN_PLACE, which is not allowed here"};
  }
  return {};
}

Failure CheckDistinct(const void* send, const void* receive, size_t bytes) {
  if (send == receive && bytes != 0) [[unlikely]] {
    return {MPI_ERR_BUFFER, "sendbuf and recvbuf are the same memory: pass MPI_IN_PLACE"};
  }
  return {};
}

Failure CheckArray(const Numbers& numbers, const char* which) {
  if (numbers.is_null()) [[unlikely]] {
    return {MPI_ERR_ARG, std::string(which) + " is null"};
  }
  return {};
}

}  // namespace ferry::mpi
