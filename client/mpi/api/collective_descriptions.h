// What the arguments of collectives mean: each function checks them, and fills in the operation of
// this rank. Arguments that are not significant at a rank are ignored.
//
// For the files of this folder that define collectives. `Data` is Run, or, where blocks have sizes
// and places of their own (v, w, and units of partitions), Blocks. Calling thread: the program's.
#pragma once

#include "client/mpi/api/collective_blocks.h"

namespace ferry::mpi {

// ---- Collectives that only move data (MPI 5.0, sections 6.3 to 6.8) -----------------------------

Failure DescribeBcast(const Comm& comm, const Run& data, int root, CollectiveOperation* operation);
template <typename Data>
Failure DescribeGather(const Comm& comm, const Run& send, const Data& receive, int root,
                       CollectiveOperation* operation);
template <typename Data>
Failure DescribeScatter(const Comm& comm, const Data& send, const Run& receive, int root,
                        CollectiveOperation* operation);
template <typename Data>
Failure DescribeAllgather(const Comm& comm, const Run& send, const Data& receive,
                          CollectiveOperation* operation);
template <typename Data>
Failure DescribeAlltoall(const Comm& comm, const Data& send, const Data& receive,
                         CollectiveOperation* operation);

// ---- Collectives that reduce (MPI 5.0, sections 6.9 to 6.11) ------------------------------------

// The arguments that all of them have.
struct Vector {
  const void* sendbuf;
  void* recvbuf;
  int64_t count;
  MPI_Datatype datatype;
  MPI_Op op;
};

// Any whose result is as long as the vector; `root` of those that have one.
Failure DescribeWholeVector(const Comm& comm, collective::Collective collective,
                            const Vector& vector, int root, CollectiveOperation* operation);
// `block`: its count is of one rank's.
Failure DescribeReduceScatterBlock(const Comm& comm, const Vector& block,
                                   CollectiveOperation* operation);
// The same of some elements of each block, on an intracommunicator: `part` names those of the first
// block, and the blocks are `stride` elements long. The arguments of the whole have been checked.
Failure DescribePartOfReduceScatterBlock(const Comm& comm, const Vector& part, int64_t stride,
                                         CollectiveOperation* operation);

}  // namespace ferry::mpi
