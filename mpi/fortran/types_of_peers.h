// Calls with a datatype for each process or neighbour (MPI_Alltoallw and its kin): how many handles
// the program's arrays have stands in the communicator.
//
// Calling thread: any. Nothing waits.
#pragma once

#include "mpi/fortran/binding.h"

namespace ferry::fortran {

inline bool IsNull(int comm) { return HandleOf<MPI_Comm>(comm) == MPI_COMM_NULL; }

// How many there are to receive from, and to send to.
struct Counts {
  int in = 0;
  int out = 0;
};

// None of what is no communicator, or has no topology: the call itself reports it.
Counts PeersOf(int comm);
Counts NeighboursOf(int comm);

// The datatypes of what is sent are not there if the data is in place.
inline int Sent(const void* sendbuf, int count) { return IsInPlace(sendbuf) ? 0 : count; }

// Makes the call with C's handles; `more` stands behind the communicator.
template <typename Call, typename Count, typename Displacement, typename... More>
int WithTypes(const Call& call, const Counts& counts, void* sendbuf, const Count* sendcounts,
              const Displacement* sdispls, const int* sendtypes, void* recvbuf,
              const Count* recvcounts, const Displacement* rdispls, const int* recvtypes,
              const int* comm, More... more) {
  Handles<MPI_Datatype> sent(sendtypes, Sent(sendbuf, counts.out));
  Handles<MPI_Datatype> received(recvtypes, counts.in);
  return call(Buffer(sendbuf), sendcounts, sdispls, sent.get(), Buffer(recvbuf), recvcounts,
              rdispls, received.get(), HandleOf<MPI_Comm>(*comm), more...);
}

}  // namespace ferry::fortran
