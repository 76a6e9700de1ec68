// The short way of puts, gets, accumulates and flushes: one run of elements of a predefined
// datatype, in memory that this process reaches by loads and stores.
//
// Each call returns false, and has done nothing, where the operation is not that simple, or an
// argument is wrong. The ordinary way (mpi/rma) then carries it out, or reports the error. So a
// call that costs a few nanoseconds checks no more than it has to.
//
// Calling thread: that of the call. Does not block.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace ferry::mpi {

// The arguments of such a call: `count` elements of `type`, at both sides.
struct LocalCall {
  MPI_Win win;
  int rank;
  MPI_Aint disp;
  MPI_Datatype type;
  int64_t count;
};

bool PutLocal(const LocalCall& call, const void* from);
bool GetLocal(const LocalCall& call, void* to);
bool AccumulateLocal(const LocalCall& call, MPI_Op op, const void* data);
// Stores the value before the operation in `found`. With MPI_NO_OP `data` may be null.
bool FetchLocal(const LocalCall& call, MPI_Op op, const void* data, void* found);
// Compares and swaps one element.
bool CompareSwapLocal(const LocalCall& call, const void* compare, const void* value, void* found);
// MPI_Win_flush and MPI_Win_flush_local.
bool FlushLocal(MPI_Win win, int rank);

}  // namespace ferry::mpi
