#include "client/mpi/api/collective_call.h"

#include <string>
#include <utility>

#include "client/mpi/base/connection.h"
#include "client/mpi/base/handle_table.h"
#include "client/mpi/channel/channel.h"
#include "client/mpi/channel/collective_request.h"
#include "client/mpi/channel/comparison.h"
#include "client/mpi/channel/helper.h"
#include "client/mpi/runtime/fail.h"

namespace ferry::mpi {

int FindComm(const CollectiveCall& call, MPI_Comm handle, Comm** comm) {
  Threads::BeginCall();
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
  if (const Failure failure = operation->Fetch(); !failure.ok()) [[unlikely]] {
    channel.Renounce();
    return Fail(call.name, &comm, failure);
  }
  RunFailure run_failure;
  channel.Run(&operation->problem, operation->MakeBinding(), &run_failure, operation->number);
  const Failure failure = operation->Finish(run_failure);
  return failure.ok() ? MPI_SUCCESS : Fail(call.name, &comm, failure);
}

Failure CompareCalls(const CollectiveCall& call, Comm& comm, CollectiveOperation* operation,
                     Failure failure) {
  Channel& channel = Channel::Of(comm);
  auto description =
      std::make_unique<CallDescription>(DescribeCall(call.name, comm, *operation, failure));
  const bool is_persistent = call.mode == CallMode::kPersistent;
  if (is_persistent && failure.ok()) {
    operation->description = std::move(description);  // compared at each start
    return failure;
  }
  const uint32_t number = is_persistent ? channel.NextPersistentNumber() : channel.TakeNumber();
  operation->number = number;
  if (is_persistent || !failure.ok()) {
    // The others are told, and this rank goes on.
    const auto told = channel.Compare(std::move(*description), number, is_persistent, nullptr);
    if (!channel.Advance(*told)) {
      WatchChannel(comm, channel);
    }
    return failure;
  }
  if (call.mode == CallMode::kNonblocking) {
    operation->description = std::move(description);
    return failure;
  }
  const auto compared = channel.Compare(std::move(*description), number, false, nullptr);
  channel.Await(*compared);
  if (!compared->is_done()) {
    return FailureOf(front_end->poison());
  }
  if (compared->failure().ok()) {
    channel.Enter();
  }
  return compared->failure();
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

Failure FailRoot(const Comm& comm, int root) {
  return {MPI_ERR_ROOT, "the root " + std::to_string(root) +
                            " is no rank of the communicator, which has ranks 0 to " +
                            std::to_string(comm.size() - 1)};
}

Failure FailInPlace(const char* which) {
  return {MPI_ERR_BUFFER, std::string(which) + " is MPI_IN_PLACE, which is not allowed here"};
}

Failure FailDistinct() {
  return {MPI_ERR_BUFFER, "sendbuf and recvbuf are the same memory: pass MPI_IN_PLACE"};
}

Failure CheckArray(const Numbers& numbers, const char* which) {
  if (numbers.is_null()) [[unlikely]] {
    return {MPI_ERR_ARG, std::string(which) + " is null"};
  }
  return {};
}

}  // namespace ferry::mpi
