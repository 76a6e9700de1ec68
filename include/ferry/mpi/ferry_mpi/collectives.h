/* collectives.h - MPI 5.0 chapter 6 (collective communication), blocking and nonblocking:
 * declarations. See mpi.h. The persistent forms stand in collectives_init.h, those among
 * neighbours in neighbours.h.
 */
#ifndef FERRY_MPI_COLLECTIVES_H_
#define FERRY_MPI_COLLECTIVES_H_

#include "callbacks.h"

/* clang-format off */

/* ---- Blocking -------------------------------------------------------------------------------- */

FERRY_MPI(int, Barrier, (MPI_Comm comm));
FERRY_MPI(int, Bcast, (void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm));
FERRY_MPI(int, Bcast_c, (void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
          MPI_Comm comm));
FERRY_MPI(int, Gather, (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
          int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm));
FERRY_MPI(int, Gather_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm));
FERRY_MPI(int, Gatherv, (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
          const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
          MPI_Comm comm));
FERRY_MPI(int, Gatherv_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
          MPI_Datatype recvtype, int root, MPI_Comm comm));
FERRY_MPI(int, Scatter, (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
          int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm));
FERRY_MPI(int, Scatter_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm));
FERRY_MPI(int, Scatterv, (const void* sendbuf, const int sendcounts[], const int displs[],
          MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype, int root,
          MPI_Comm comm));
FERRY_MPI(int, Scatterv_c, (const void* sendbuf, const MPI_Count sendcounts[],
          const MPI_Aint displs[], MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
          MPI_Datatype recvtype, int root, MPI_Comm comm));
FERRY_MPI(int, Allgather, (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
          int recvcount, MPI_Datatype recvtype, MPI_Comm comm));
FERRY_MPI(int, Allgather_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm));
FERRY_MPI(int, Allgatherv, (const void* sendbuf, int sendcount, MPI_Datatype sendtype,
          void* recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype,
          MPI_Comm comm));
FERRY_MPI(int, Allgatherv_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
          MPI_Datatype recvtype, MPI_Comm comm));
FERRY_MPI(int, Alltoall, (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
          int recvcount, MPI_Datatype recvtype, MPI_Comm comm));
FERRY_MPI(int, Alltoall_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm));
FERRY_MPI(int, Alltoallv, (const void* sendbuf, const int sendcounts[], const int sdispls[],
          MPI_Datatype sendtype, void* recvbuf, const int recvcounts[], const int rdispls[],
          MPI_Datatype recvtype, MPI_Comm comm));
FERRY_MPI(int, Alltoallv_c, (const void* sendbuf, const MPI_Count sendcounts[],
          const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf,
          const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype,
          MPI_Comm comm));
FERRY_MPI(int, Alltoallw, (const void* sendbuf, const int sendcounts[], const int sdispls[],
          const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
          const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm));
FERRY_MPI(int, Alltoallw_c, (const void* sendbuf, const MPI_Count sendcounts[],
          const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
          const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
          MPI_Comm comm));
FERRY_MPI(int, Reduce, (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
          MPI_Op op, int root, MPI_Comm comm));
FERRY_MPI(int, Reduce_c, (const void* sendbuf, void* recvbuf, MPI_Count count,
          MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm));
FERRY_MPI(int, Allreduce, (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
          MPI_Op op, MPI_Comm comm));
FERRY_MPI(int, Allreduce_c, (const void* sendbuf, void* recvbuf, MPI_Count count,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm));
FERRY_MPI(int, Reduce_scatter_block, (const void* sendbuf, void* recvbuf, int recvcount,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm));
FERRY_MPI(int, Reduce_scatter_block_c, (const void* sendbuf, void* recvbuf, MPI_Count recvcount,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm));
FERRY_MPI(int, Reduce_scatter, (const void* sendbuf, void* recvbuf, const int recvcounts[],
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm));
FERRY_MPI(int, Reduce_scatter_c, (const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm));
FERRY_MPI(int, Scan, (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
          MPI_Op op, MPI_Comm comm));
FERRY_MPI(int, Scan_c, (const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
          MPI_Op op, MPI_Comm comm));
FERRY_MPI(int, Exscan, (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
          MPI_Op op, MPI_Comm comm));
FERRY_MPI(int, Exscan_c, (const void* sendbuf, void* recvbuf, MPI_Count count,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm));

/* ---- Nonblocking ----------------------------------------------------------------------------- */

FERRY_MPI(int, Ibarrier, (MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Ibcast, (void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
          MPI_Request* request));
FERRY_MPI(int, Ibcast_c, (void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
          MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Igather, (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
          int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Igather_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
          MPI_Request* request));
FERRY_MPI(int, Igatherv, (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
          const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
          MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Igatherv_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
          MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Iscatter, (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
          int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Iscatter_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
          MPI_Request* request));
FERRY_MPI(int, Iscatterv, (const void* sendbuf, const int sendcounts[], const int displs[],
          MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype, int root,
          MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Iscatterv_c, (const void* sendbuf, const MPI_Count sendcounts[],
          const MPI_Aint displs[], MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
          MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Iallgather, (const void* sendbuf, int sendcount, MPI_Datatype sendtype,
          void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
          MPI_Request* request));
FERRY_MPI(int, Iallgather_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
          MPI_Request* request));
FERRY_MPI(int, Iallgatherv, (const void* sendbuf, int sendcount, MPI_Datatype sendtype,
          void* recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype,
          MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Iallgatherv_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
          MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Ialltoall, (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
          int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Ialltoall_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
          MPI_Request* request));
FERRY_MPI(int, Ialltoallv, (const void* sendbuf, const int sendcounts[], const int sdispls[],
          MPI_Datatype sendtype, void* recvbuf, const int recvcounts[], const int rdispls[],
          MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Ialltoallv_c, (const void* sendbuf, const MPI_Count sendcounts[],
          const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf,
          const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype,
          MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Ialltoallw, (const void* sendbuf, const int sendcounts[], const int sdispls[],
          const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
          const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
          MPI_Request* request));
FERRY_MPI(int, Ialltoallw_c, (const void* sendbuf, const MPI_Count sendcounts[],
          const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
          const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
          MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Ireduce, (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
          MPI_Op op, int root, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Ireduce_c, (const void* sendbuf, void* recvbuf, MPI_Count count,
          MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Iallreduce, (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
          MPI_Op op, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Iallreduce_c, (const void* sendbuf, void* recvbuf, MPI_Count count,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Ireduce_scatter_block, (const void* sendbuf, void* recvbuf, int recvcount,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Ireduce_scatter_block_c, (const void* sendbuf, void* recvbuf, MPI_Count recvcount,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Ireduce_scatter, (const void* sendbuf, void* recvbuf, const int recvcounts[],
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Ireduce_scatter_c, (const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Iscan, (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
          MPI_Op op, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Iscan_c, (const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
          MPI_Op op, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Iexscan, (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
          MPI_Op op, MPI_Comm comm, MPI_Request* request));
FERRY_MPI(int, Iexscan_c, (const void* sendbuf, void* recvbuf, MPI_Count count,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request));

/* ---- Operations ------------------------------------------------------------------------------ */

FERRY_MPI(int, Op_create, (MPI_User_function* user_fn, int commute, MPI_Op* op));
FERRY_MPI(int, Op_create_c, (MPI_User_function_c* user_fn, int commute, MPI_Op* op));
FERRY_MPI(int, Op_free, (MPI_Op* op));
FERRY_MPI(int, Op_commutative, (MPI_Op op, int* commute));
FERRY_MPI(int, Reduce_local, (const void* inbuf, void* inoutbuf, int count, MPI_Datatype datatype,
          MPI_Op op));
FERRY_MPI(int, Reduce_local_c, (const void* inbuf, void* inoutbuf, MPI_Count count,
          MPI_Datatype datatype, MPI_Op op));

/* clang-format on */

#endif /* FERRY_MPI_COLLECTIVES_H_ */
