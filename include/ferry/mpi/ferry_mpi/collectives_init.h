/* collectives_init.h - MPI 5.0 chapter 6 (persistent collective communication): declarations.
 * See mpi.h.
 */
#ifndef FERRY_MPI_COLLECTIVES_INIT_H_
#define FERRY_MPI_COLLECTIVES_INIT_H_

#include "handles.h"

/* clang-format off */

/* ---- Persistent ------------------------------------------------------------------------------ */

FERRY_MPI(int, Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Bcast_init, (void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
          MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Bcast_init_c, (void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
          MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Gather_init, (const void* sendbuf, int sendcount, MPI_Datatype sendtype,
          void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
          MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Gather_init_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
          MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Gatherv_init, (const void* sendbuf, int sendcount, MPI_Datatype sendtype,
          void* recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype,
          int root, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Gatherv_init_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
          MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Scatter_init, (const void* sendbuf, int sendcount, MPI_Datatype sendtype,
          void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
          MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Scatter_init_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
          MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Scatterv_init, (const void* sendbuf, const int sendcounts[], const int displs[],
          MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype, int root,
          MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Scatterv_init_c, (const void* sendbuf, const MPI_Count sendcounts[],
          const MPI_Aint displs[], MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
          MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Allgather_init, (const void* sendbuf, int sendcount, MPI_Datatype sendtype,
          void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
          MPI_Request* request));
FERRY_MPI(int, Allgather_init_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
          MPI_Request* request));
FERRY_MPI(int, Allgatherv_init, (const void* sendbuf, int sendcount, MPI_Datatype sendtype,
          void* recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype,
          MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Allgatherv_init_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
          MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Alltoall_init, (const void* sendbuf, int sendcount, MPI_Datatype sendtype,
          void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
          MPI_Request* request));
FERRY_MPI(int, Alltoall_init_c, (const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
          MPI_Request* request));
FERRY_MPI(int, Alltoallv_init, (const void* sendbuf, const int sendcounts[], const int sdispls[],
          MPI_Datatype sendtype, void* recvbuf, const int recvcounts[], const int rdispls[],
          MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Alltoallv_init_c, (const void* sendbuf, const MPI_Count sendcounts[],
          const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf,
          const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype,
          MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Alltoallw_init, (const void* sendbuf, const int sendcounts[], const int sdispls[],
          const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
          const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
          MPI_Request* request));
FERRY_MPI(int, Alltoallw_init_c, (const void* sendbuf, const MPI_Count sendcounts[],
          const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
          const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
          MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Reduce_init, (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
          MPI_Op op, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Reduce_init_c, (const void* sendbuf, void* recvbuf, MPI_Count count,
          MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, MPI_Info info,
          MPI_Request* request));
FERRY_MPI(int, Allreduce_init, (const void* sendbuf, void* recvbuf, int count,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Allreduce_init_c, (const void* sendbuf, void* recvbuf, MPI_Count count,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Reduce_scatter_block_init, (const void* sendbuf, void* recvbuf, int recvcount,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Reduce_scatter_block_init_c, (const void* sendbuf, void* recvbuf,
          MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
          MPI_Request* request));
FERRY_MPI(int, Reduce_scatter_init, (const void* sendbuf, void* recvbuf, const int recvcounts[],
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Reduce_scatter_init_c, (const void* sendbuf, void* recvbuf,
          const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
          MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Scan_init, (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
          MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Scan_init_c, (const void* sendbuf, void* recvbuf, MPI_Count count,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Exscan_init, (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
          MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Exscan_init_c, (const void* sendbuf, void* recvbuf, MPI_Count count,
          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request));

/* clang-format on */

#endif /* FERRY_MPI_COLLECTIVES_INIT_H_ */
