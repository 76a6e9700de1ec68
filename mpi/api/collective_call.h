// The common part of all forms of a collective call: blocking, nonblocking and persistent ones,
// with counts as int or as MPI_Count (MPI 5.0, chapter 6).
//
// Each collective is one function (collective_moves.cc and others), which checks the arguments and
// describes the operation; its forms only differ in how they call it.
//
// Calling thread: the program's.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "mpi/api/function.h"
#include "mpi/base/connection.h"
#include "mpi/base/failure.h"
#include "mpi/coll/channel.h"
#include "mpi/coll/collective_note.h"
#include "mpi/coll/collective_operation.h"
#include "mpi/coll/table.h"
#include "mpi/comm/comm.h"
#include "mpi/init/fail.h"

namespace ferry::mpi {

enum class CallMode { kBlocking, kNonblocking, kPersistent };

struct CollectiveCall {
  const char* name;  // of the function
  CallMode mode = CallMode::kBlocking;
  MPI_Request* request = nullptr;  // of those that do not block
  MPI_Info info = MPI_INFO_NULL;   // of persistent ones: hints, none of which Ferry knows
};

// Numbers that a program passes as int or as MPI_Count (MPI_Aint).
class Numbers {
 public:
  Numbers(const int* small) : small_(small) {}      // NOLINT: implicit, for the bindings
  Numbers(const int64_t* large) : large_(large) {}  // NOLINT
  bool is_null() const { return small_ == nullptr && large_ == nullptr; }
  int64_t operator[](int i) const { return small_ != nullptr ? small_[i] : large_[i]; }

 private:
  const int* small_ = nullptr;
  const int64_t* large_ = nullptr;
};

// ---- Carrying out -------------------------------------------------------------------------------

// Finds the communicator of a call. Returns MPI_SUCCESS, or the error that the call is to return.
int FindComm(const CollectiveCall& call, MPI_Comm handle, Comm** comm);
// Carry out a call whose arguments have been checked. Return the value that the call is to return.
int RunBlocking(const CollectiveCall& call, Comm& comm, CollectiveOperation* operation);
int BeginCollective(const CollectiveCall& call, Comm& comm,
                    std::unique_ptr<CollectiveOperation> operation);
// Called in place of BeginCollective, where a call that does not block fails.
void RenounceNonblocking(Comm& comm);
// Compares the call with the other ranks' (option mpi_check). Returns the call's failure:
// `failure`, that of its arguments, or, if the call blocks, the result of the comparison. Blocks
// where the call does, but not if its arguments were wrong.
Failure CompareCalls(const CollectiveCall& call, Comm& comm, CollectiveOperation* operation,
                     Failure failure);

// Compares an init with the other ranks', at once and for all its starts; an init carries nothing
// out. Returns the failure. Blocks, but not if its arguments were wrong.
Failure CompareInits(const CollectiveCall& call, Comm& comm, const CollectiveOperation& operation,
                     Failure failure);

// Carries out a collective call. `describe(comm, operation)` checks the arguments, and fills in the
// operation. Returns the value that the call is to return.
template <typename Describe>
int CarryOut(const CollectiveCall& call, MPI_Comm handle, Describe&& describe);

// ---- Arguments ----------------------------------------------------------------------------------

// MPI_ERR_TYPE.
Failure FindDatatype(MPI_Datatype handle, const char* which, const Datatype** type);
inline bool IsInPlace(const void* buffer) { return buffer == MPI_IN_PLACE; }
// MPI_ERR_ROOT.
Failure FailRoot(const Comm& comm, int root);
inline Failure CheckRoot(const Comm& comm, int root) {
  const bool is_rank = static_cast<unsigned>(root) < static_cast<unsigned>(comm.size());
  return is_rank ? Failure() : FailRoot(comm, root);
}
// MPI_ERR_BUFFER: `buffer` is MPI_IN_PLACE where that is not allowed, or both are the same.
Failure FailInPlace(const char* which);
inline Failure CheckInPlace(bool allowed, const void* buffer, const char* which) {
  return allowed || !IsInPlace(buffer) ? Failure() : FailInPlace(which);
}
Failure FailDistinct();
// From MPI_BOTTOM on, the datatypes say where the memory is.
inline Failure CheckDistinct(const void* send, const void* receive, size_t bytes) {
  return send != receive || send == MPI_BOTTOM || bytes == 0 ? Failure() : FailDistinct();
}
// MPI_ERR_ARG: a null array.
Failure CheckArray(const Numbers& numbers, const char* which);

int FailCollective(const CollectiveCall& call, Comm& comm, const Failure& failure);

template <typename Describe>
int CarryOut(const CollectiveCall& call, MPI_Comm handle, Describe&& describe) {
  Comm* comm = nullptr;
  FERRY_RETURN_ERROR(FindComm(call, handle, &comm));
  if (call.mode == CallMode::kBlocking) {
    Channel& channel = Channel::Of(*comm);
    channel.Name(call.name);
    CollectiveOperation operation;
    CollectiveNote note(call.name, *comm, channel.call_number(), &operation.problem);
    const client::CallScope scope(front_end->calls, &note);
    const bool compares = ComparesCalls();
    if (!compares) [[likely]] {
      channel.Enter();
    }
    Failure failure = describe(*comm, operation);
    if (compares) [[unlikely]] {
      failure = CompareCalls(call, *comm, &operation, std::move(failure));
    }
    if (!failure.ok()) [[unlikely]] {
      if (!compares) {
        channel.Renounce();
      }
      return FailCollective(call, *comm, failure);
    }
    const uint64_t bytes = PayloadBytes(operation.problem);
    front_end->calls->ShowIfLong(&note, bytes);
    front_end->calls->Count(client::CallOf(call.name), bytes);
    return RunBlocking(call, *comm, &operation);
  }
  auto operation = std::make_unique<CollectiveOperation>();
  operation->call_name = call.name;
  const bool is_nonblocking = call.mode == CallMode::kNonblocking;
  if (is_nonblocking && !ComparesCalls()) {
    Channel::Of(*comm).EnterNonblocking();
  }
  Failure failure = describe(*comm, *operation);
  if (ComparesCalls()) [[unlikely]] {
    failure = CompareCalls(call, *comm, operation.get(), std::move(failure));
  }
  if (!failure.ok()) [[unlikely]] {
    if (is_nonblocking) {
      RenounceNonblocking(*comm);
    }
    return FailCollective(call, *comm, failure);
  }
  return BeginCollective(call, *comm, std::move(operation));
}

// ---- The functions ------------------------------------------------------------------------------

// The six forms of a collective, each of which calls function(CollectiveCall, arguments...): the
// `arguments` are made of the names of the `parameters`.
#define FERRY_COLLECTIVE(name, i_name, function, parameters, ...)                            \
  FERRY_MPI_TWINS(name, (parameters), function({FERRY_MPI_NAME}, __VA_ARGS__));              \
  FERRY_MPI_TWINS(i_name, (parameters, MPI_Request * request),                               \
                  function({FERRY_MPI_NAME, CallMode::kNonblocking, request}, __VA_ARGS__)); \
  FERRY_MPI_TWINS(name##_init, (parameters, MPI_Info info, MPI_Request * request),           \
                  function({FERRY_MPI_NAME, CallMode::kPersistent, request, info}, __VA_ARGS__))

// Parameters that several collectives have.
#define FERRY_ONE_BLOCK_EACH                                                                   \
  const void *sendbuf, Count sendcount, MPI_Datatype sendtype, void *recvbuf, Count recvcount, \
      MPI_Datatype recvtype
#define FERRY_ALLGATHER FERRY_ONE_BLOCK_EACH, MPI_Comm comm
#define FERRY_ALLGATHERV                                                      \
  const void *sendbuf, Count sendcount, MPI_Datatype sendtype, void *recvbuf, \
      const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype, MPI_Comm comm
#define FERRY_ALLTOALLV                                                        \
  const void *sendbuf, const Count sendcounts[], const Displacement sdispls[], \
      MPI_Datatype sendtype, void *recvbuf, const Count recvcounts[],          \
      const Displacement rdispls[], MPI_Datatype recvtype, MPI_Comm comm

// The data that these parameters name: as much for each rank (Run), or blocks of their own
// (Blocks).
#define FERRY_SENT_RUN \
  Run { sendbuf, sendcount, sendtype, "sendtype" }
#define FERRY_RECEIVED_RUN \
  Run { recvbuf, recvcount, recvtype, "recvtype" }
#define FERRY_SENT_BLOCKS(displacements) \
  Blocks { sendbuf, sendcounts, displacements, sendtype, nullptr, "send" }
#define FERRY_RECEIVED_BLOCKS(displacements) \
  Blocks { recvbuf, recvcounts, displacements, recvtype, nullptr, "recv" }
#define FERRY_SENT_TYPES \
  Blocks { sendbuf, sendcounts, sdispls, MPI_DATATYPE_NULL, sendtypes, "send" }
#define FERRY_RECEIVED_TYPES \
  Blocks { recvbuf, recvcounts, rdispls, MPI_DATATYPE_NULL, recvtypes, "recv" }

}  // namespace ferry::mpi
