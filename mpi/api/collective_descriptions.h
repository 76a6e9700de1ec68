// Descriptions of collectives: each function checks a collective's arguments, and fills in the
// operation of this rank. Arguments that are not significant at a rank are ignored.
//
// For the files of this folder that define collectives. `Data` is Run, or, where blocks have sizes
// and places of their own (v, w, and units of partitions), Blocks. Calling thread: the program's.
#pragma once

#include <vector>

#include "mpi/api/collective_blocks.h"
#include "mpi/topology/topology.h"

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

// The arguments that all reductions have.
struct Vector {
  const void* sendbuf;
  void* recvbuf;
  int64_t count;
  MPI_Datatype datatype;
  MPI_Op op;
};

// Describes a reduction whose result is as long as the vector. `root` counts only for those that
// have one.
Failure DescribeWholeVector(const Comm& comm, collective::Collective collective,
                            const Vector& vector, int root, CollectiveOperation* operation);
// The count of `block` is that of one rank's block.
Failure DescribeReduceScatterBlock(const Comm& comm, const Vector& block,
                                   CollectiveOperation* operation);
// Each rank's block has a count of its own; the vector's count is ignored.
Failure DescribeReduceScatter(const Comm& comm, Vector vector, Numbers recvcounts,
                              CollectiveOperation* operation);
// Some elements of each block of a reduce_scatter, by rank.
struct PartOfReduceScatter {
  std::vector<int64_t> firsts;  // among all elements of the vector
  std::vector<int64_t> counts;
  int64_t own_first = 0;  // of this rank's result, in recvbuf
};
// Describes a reduce_scatter of such parts, on an intracommunicator. The arguments of the whole
// have been checked.
Failure DescribePartOfReduceScatter(const Comm& comm, const Vector& vector,
                                    const PartOfReduceScatter& part,
                                    CollectiveOperation* operation);

// ---- Collectives among neighbours (MPI 5.0, section 8.6) ----------------------------------------

// MPI_ERR_TOPOLOGY: the communicator has no neighbours.
Failure FindNeighbours(const Comm& comm, Neighbours* neighbours);
template <typename Data>
Failure DescribeNeighbourAllgather(const Comm& comm, const Run& send, const Data& receive,
                                   CollectiveOperation* operation);
template <typename Data>
Failure DescribeNeighbourAlltoall(const Comm& comm, const Data& send, const Data& receive,
                                  CollectiveOperation* operation);

}  // namespace ferry::mpi
