// The calls that mpix.h adds to the standard's: each(name without MPIX_, parameters). Not
// formatted, which would nest each call in the one before.
#pragma once

// clang-format off
#define FERRY_MPIX_CALLS(each) \
  each(Match, (MPI_Request* request)) \
  each(Matchall, (int count, MPI_Request requests[])) \
  each(Imatch, (MPI_Request* request, MPI_Request* match)) \
  each(Imatchall, (int count, MPI_Request requests[], MPI_Request* match)) \
  each(Is_matched, (MPI_Request request, int* flag)) \
  each(Queue_init, (MPIX_Queue* queue, MPIX_Queue_type type, const void* stream_address)) \
  each(Queue_free, (MPIX_Queue* queue)) \
  each(Queue_wait, (MPIX_Queue queue)) \
  each(Enqueue_start, (MPIX_Queue queue, MPI_Request* request)) \
  each(Enqueue_startall, (MPIX_Queue queue, int count, MPI_Request requests[])) \
  each(Enqueue_wait, (MPIX_Queue queue, MPI_Request* request)) \
  each(Enqueue_waitall, (MPIX_Queue queue, int count, MPI_Request requests[])) \
  each(Pbuf_prepare, (MPI_Request request)) \
  each(Pbuf_prepare_all, (int count, MPI_Request requests[])) \
  each(Parrived_any, (MPI_Request request, int* partition, int* flag)) \
  each(Parrived_some, (MPI_Request request, int incount, int* outcount, int partitions[])) \
  each(Prequest_create, (MPI_Request request, int device, MPI_Info info, MPIX_Prequest* prequest)) \
  each(Prequest_free, (MPIX_Prequest* prequest)) \
  each(Prequest_get, (MPI_Request request, MPIX_Prequest* prequest)) \
  each(Enqueue_pready, (MPIX_Queue queue, int partition_low, int partition_high, \
       MPI_Request request)) \
  each(Enqueue_pbuf_prepare, (MPIX_Queue queue, MPI_Request* request)) \
  each(Enqueue_pbuf_prepare_all, (MPIX_Queue queue, int count, MPI_Request requests[])) \
  each(Pbcast_init, (void* buffer, int partitions, MPI_Count count, MPI_Datatype datatype, \
       int root, MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Preduce_init, (const void* sendbuf, void* recvbuf, int partitions, MPI_Count count, \
       MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, MPI_Info info, \
       MPI_Request* request)) \
  each(Pallreduce_init, (const void* sendbuf, void* recvbuf, int partitions, MPI_Count count, \
       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Pallgather_init, (const void* sendbuf, void* recvbuf, int partitions, MPI_Count count, \
       MPI_Datatype datatype, MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Palltoall_init, (const void* sendbuf, void* recvbuf, int partitions, MPI_Count count, \
       MPI_Datatype datatype, MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Preduce_scatter_block_init, (const void* sendbuf, void* recvbuf, int partitions, \
       MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, \
       MPI_Request* request)) \
  each(Pgather_init, (const void* sendbuf, void* recvbuf, int partitions, MPI_Count count, \
       MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Pscatter_init, (const void* sendbuf, void* recvbuf, int partitions, MPI_Count count, \
       MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Pscan_init, (const void* sendbuf, void* recvbuf, int partitions, MPI_Count count, \
       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Pexscan_init, (const void* sendbuf, void* recvbuf, int partitions, MPI_Count count, \
       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Pbarrier_init, (int partitions, MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Pgatherv_init, (const void* sendbuf, int partitions, MPI_Count sendcount, \
       MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], \
       const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, \
       MPI_Request* request)) \
  each(Pscatterv_init, (const void* sendbuf, int partitions, const MPI_Count sendcounts[], \
       const MPI_Aint displs[], MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, \
       MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Pallgatherv_init, (const void* sendbuf, int partitions, MPI_Count sendcount, \
       MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], \
       const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, \
       MPI_Request* request)) \
  each(Palltoallv_init, (const void* sendbuf, int partitions, const MPI_Count sendcounts[], \
       const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf, \
       const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype, \
       MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Palltoallw_init, (const void* sendbuf, int partitions, const MPI_Count sendcounts[], \
       const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void* recvbuf, \
       const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], \
       MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Preduce_scatter_init, (const void* sendbuf, void* recvbuf, int partitions, \
       const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, \
       MPI_Info info, MPI_Request* request)) \
  each(Pneighbor_allgather_init, (const void* sendbuf, void* recvbuf, int partitions, \
       MPI_Count count, MPI_Datatype datatype, MPI_Comm comm, MPI_Info info, \
       MPI_Request* request)) \
  each(Pneighbor_alltoall_init, (const void* sendbuf, void* recvbuf, int partitions, \
       MPI_Count count, MPI_Datatype datatype, MPI_Comm comm, MPI_Info info, \
       MPI_Request* request)) \
  each(Pneighbor_allgatherv_init, (const void* sendbuf, int partitions, MPI_Count sendcount, \
       MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], \
       const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, \
       MPI_Request* request)) \
  each(Pneighbor_alltoallv_init, (const void* sendbuf, int partitions, \
       const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype, \
       void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], \
       MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Pneighbor_alltoallw_init, (const void* sendbuf, int partitions, \
       const MPI_Count sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], \
       void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], \
       const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request* request)) \
  each(Pschedule_init, (const void* sendbuf, void* recvbuf, int partitions, MPI_Count count, \
       MPI_Datatype datatype, int pieces, int steps, const MPIX_Pstep schedule[], MPI_Comm comm, \
       MPI_Info info, MPI_Request* request))
// clang-format on
