// Collective calls in all their forms: blocking, nonblocking (MPI_I...) and persistent (..._init),
// each with counts as int and as MPI_Count (..._c). collective_call.h has what they do.
#include "client/mpi/api/collective_call.h"
#include "client/mpi/api/function.h"

using ferry::mpi::CallMode;

// The six forms. `parameters(count, displacement)` are the arguments with those types for counts
// and displacements; `arguments` are their names.
#define FERRY_COLLECTIVE(name, i_name, parameters, ...)                                            \
  FERRY_MPI_CALL(int, name, (parameters(int, int))) {                                              \
    return ferry::mpi::Call##name({"MPI_" #name}, __VA_ARGS__);                                    \
  }                                                                                                \
  FERRY_MPI_CALL(int, name##_c, (parameters(MPI_Count, MPI_Aint))) {                               \
    return ferry::mpi::Call##name({"MPI_" #name "_c"}, __VA_ARGS__);                               \
  }                                                                                                \
  FERRY_MPI_CALL(int, i_name, (parameters(int, int), MPI_Request * request)) {                     \
    return ferry::mpi::Call##name({"MPI_" #i_name, CallMode::kNonblocking, request}, __VA_ARGS__); \
  }                                                                                                \
  FERRY_MPI_CALL(int, i_name##_c, (parameters(MPI_Count, MPI_Aint), MPI_Request * request)) {      \
    return ferry::mpi::Call##name({"MPI_" #i_name "_c", CallMode::kNonblocking, request},          \
                                  __VA_ARGS__);                                                    \
  }                                                                                                \
  FERRY_MPI_CALL(int, name##_init, (parameters(int, int), MPI_Info info, MPI_Request * request)) { \
    return ferry::mpi::Call##name({"MPI_" #name "_init", CallMode::kPersistent, request, info},    \
                                  __VA_ARGS__);                                                    \
  }                                                                                                \
  FERRY_MPI_CALL(int, name##_init_c,                                                               \
                 (parameters(MPI_Count, MPI_Aint), MPI_Info info, MPI_Request * request)) {        \
    return ferry::mpi::Call##name({"MPI_" #name "_init_c", CallMode::kPersistent, request, info},  \
                                  __VA_ARGS__);                                                    \
  }                                                                                                \
  static_assert(true)

FERRY_MPI_CALL(int, Barrier, (MPI_Comm comm)) {
  return ferry::mpi::CallBarrier({"MPI_Barrier"}, comm);
}

FERRY_MPI_CALL(int, Ibarrier, (MPI_Comm comm, MPI_Request *request)) {
  return ferry::mpi::CallBarrier({"MPI_Ibarrier", CallMode::kNonblocking, request}, comm);
}

FERRY_MPI_CALL(int, Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request)) {
  return ferry::mpi::CallBarrier({"MPI_Barrier_init", CallMode::kPersistent, request, info}, comm);
}

#define BCAST(Count, Displacement) \
  void *buffer, Count count, MPI_Datatype datatype, int root, MPI_Comm comm
FERRY_COLLECTIVE(Bcast, Ibcast, BCAST, buffer, count, datatype, root, comm);

#define ONE_BLOCK_EACH(Count)                                                                  \
  const void *sendbuf, Count sendcount, MPI_Datatype sendtype, void *recvbuf, Count recvcount, \
      MPI_Datatype recvtype

#define ROOTED(Count, Displacement) ONE_BLOCK_EACH(Count), int root, MPI_Comm comm
FERRY_COLLECTIVE(Gather, Igather, ROOTED, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, root, comm);
FERRY_COLLECTIVE(Scatter, Iscatter, ROOTED, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, root, comm);

#define UNROOTED(Count, Displacement) ONE_BLOCK_EACH(Count), MPI_Comm comm
FERRY_COLLECTIVE(Allgather, Iallgather, UNROOTED, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, comm);
FERRY_COLLECTIVE(Alltoall, Ialltoall, UNROOTED, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, comm);

#define ALLGATHERV(Count, Displacement)                                       \
  const void *sendbuf, Count sendcount, MPI_Datatype sendtype, void *recvbuf, \
      const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype, MPI_Comm comm
FERRY_COLLECTIVE(Allgatherv, Iallgatherv, ALLGATHERV, sendbuf, sendcount, sendtype, recvbuf,
                 recvcounts, displs, recvtype, comm);

#define GATHERV(Count, Displacement)                                                          \
  const void *sendbuf, Count sendcount, MPI_Datatype sendtype, void *recvbuf,                 \
      const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype, int root, \
      MPI_Comm comm
FERRY_COLLECTIVE(Gatherv, Igatherv, GATHERV, sendbuf, sendcount, sendtype, recvbuf, recvcounts,
                 displs, recvtype, root, comm);

#define SCATTERV(Count, Displacement)                                                         \
  const void *sendbuf, const Count sendcounts[], const Displacement displs[],                 \
      MPI_Datatype sendtype, void *recvbuf, Count recvcount, MPI_Datatype recvtype, int root, \
      MPI_Comm comm
FERRY_COLLECTIVE(Scatterv, Iscatterv, SCATTERV, sendbuf, sendcounts, displs, sendtype, recvbuf,
                 recvcount, recvtype, root, comm);

#define ALLTOALLV(Count, Displacement)                                         \
  const void *sendbuf, const Count sendcounts[], const Displacement sdispls[], \
      MPI_Datatype sendtype, void *recvbuf, const Count recvcounts[],          \
      const Displacement rdispls[], MPI_Datatype recvtype, MPI_Comm comm
FERRY_COLLECTIVE(Alltoallv, Ialltoallv, ALLTOALLV, sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                 recvcounts, rdispls, recvtype, comm);

#define ALLTOALLW(Count, Displacement)                                         \
  const void *sendbuf, const Count sendcounts[], const Displacement sdispls[], \
      const MPI_Datatype sendtypes[], void *recvbuf, const Count recvcounts[], \
      const Displacement rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm
FERRY_COLLECTIVE(Alltoallw, Ialltoallw, ALLTOALLW, sendbuf, sendcounts, sdispls, sendtypes, recvbuf,
                 recvcounts, rdispls, recvtypes, comm);

#define REDUCE(Count, Displacement)                                                            \
  const void *sendbuf, void *recvbuf, Count count, MPI_Datatype datatype, MPI_Op op, int root, \
      MPI_Comm comm
FERRY_COLLECTIVE(Reduce, Ireduce, REDUCE, sendbuf, recvbuf, count, datatype, op, root, comm);

#define REDUCE_TO_ALL(Count, Displacement) \
  const void *sendbuf, void *recvbuf, Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm
FERRY_COLLECTIVE(Allreduce, Iallreduce, REDUCE_TO_ALL, sendbuf, recvbuf, count, datatype, op, comm);
FERRY_COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, REDUCE_TO_ALL, sendbuf, recvbuf,
                 count, datatype, op, comm);
FERRY_COLLECTIVE(Scan, Iscan, REDUCE_TO_ALL, sendbuf, recvbuf, count, datatype, op, comm);
FERRY_COLLECTIVE(Exscan, Iexscan, REDUCE_TO_ALL, sendbuf, recvbuf, count, datatype, op, comm);

#define REDUCE_SCATTER(Count, Displacement)                                                       \
  const void *sendbuf, void *recvbuf, const Count recvcounts[], MPI_Datatype datatype, MPI_Op op, \
      MPI_Comm comm
FERRY_COLLECTIVE(Reduce_scatter, Ireduce_scatter, REDUCE_SCATTER, sendbuf, recvbuf, recvcounts,
                 datatype, op, comm);

// ---- Among neighbours (MPI 5.0, section 8.6) ----------------------------------------------------

FERRY_COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, UNROOTED, sendbuf, sendcount, sendtype,
                 recvbuf, recvcount, recvtype, comm);
FERRY_COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, ALLGATHERV, sendbuf, sendcount,
                 sendtype, recvbuf, recvcounts, displs, recvtype, comm);
FERRY_COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, UNROOTED, sendbuf, sendcount, sendtype,
                 recvbuf, recvcount, recvtype, comm);
FERRY_COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, ALLTOALLV, sendbuf, sendcounts, sdispls,
                 sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);

#define NEIGHBOR_ALLTOALLW(Count, Displacement)                                \
  const void *sendbuf, const Count sendcounts[], const MPI_Aint sdispls[],     \
      const MPI_Datatype sendtypes[], void *recvbuf, const Count recvcounts[], \
      const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm
FERRY_COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw, NEIGHBOR_ALLTOALLW, sendbuf, sendcounts,
                 sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
