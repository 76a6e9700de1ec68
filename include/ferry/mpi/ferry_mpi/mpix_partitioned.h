/* mpix_partitioned.h - Ferry's additions to partitioned communication (MPI 5.0, chapter 4), after
 * "Design and Implementation of MPI-Native GPU-Initiated MPI Partitioned Communication" (Temucin
 * and others, ExaMPI 2024), and calls that the MPI Forum discusses beside it. Include <mpix.h>.
 * docs/partitioned.md explains the model.
 *
 * Calls return MPI_SUCCESS or an error class, after the error handler of the request's communicator
 * has run. They may be made by any thread that the thread level allows, those that name partitions
 * by several threads at once for one request.
 *
 * Info keys of MPI_Psend_init and of the collectives:
 *   ferry_partitioned_min_bytes   least size of what is moved at once, in bytes: neighbouring
 *                                 partitions that are smaller travel together, 1, 2, 4, ... 32 of
 *                                 them (default: 16 KiB inside a node, 256 KiB between nodes)
 *   ferry_partitioned_max_units   the largest number of such transfers in a round
 */
#ifndef FERRY_MPI_MPIX_PARTITIONED_H_
#define FERRY_MPI_MPIX_PARTITIONED_H_

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Hosts ------------------------------------------------------------------------------------
 */

/* Returns once data of this round may be moved, so that partitions that are readied from then on
 * are moved at once. Of a send: the receiver's buffer, or memory of Ferry's in its stead, is free
 * for them. Of a receive: the sender has been told so; it may not have started. Of a collective:
 * all ranks have started. Blocks. A program need not call it. MPI_ERR_REQUEST: the request is not
 * partitioned, or not active; the failure of the round, which MPI_Wait returns again. */
int MPIX_Pbuf_prepare(MPI_Request request);
int MPIX_Pbuf_prepare_all(int count, MPI_Request requests[]);

/* Finds a partition that has arrived and that neither MPIX_Parrived_any nor MPIX_Parrived_some has
 * named in this round. *flag = 0: there is none by now; *partition is MPI_UNDEFINED then, and also,
 * with *flag = 1, once all have been named, or the request is null or inactive. Makes progress;
 * does not block. After mpi-issues#537. */
int MPIX_Parrived_any(MPI_Request request, int* partition, int* flag);
/* Finds up to `incount` partitions at once, as MPIX_Parrived_any finds one: *outcount of
 * `partitions` are filled in; MPI_UNDEFINED once all have been named, or the request is null or
 * inactive. */
int MPIX_Parrived_some(MPI_Request request, int incount, int* outcount, int partitions[]);

/* ---- Kernels ----------------------------------------------------------------------------------
 *
 * Kernels use a Prequest in place of a request: ferry/device/partitioned.h has their calls. Host
 * and kernels see the same address; it lies in memory that the device reads. */

typedef struct MPIX_Prequest_object* MPIX_Prequest;
#define MPIX_PREQUEST_NULL ((MPIX_Prequest)0)

/* Makes the Prequest of a partitioned request for kernels of `device` (a number of the GPU
 * backend's); of a request that has one for that device already, the same one, which then has to be
 * freed as often. The request must be inactive. Each MPI_Start begins the Prequest's round, too, so
 * launch kernels after it, and after MPIX_Pbuf_prepare where they are to move data themselves.
 * Blocks until the other side's init. That of a collective serves for what this rank readies and
 * for what arrives; its hosts move partitions, as soon as one of their calls, or the library's
 * thread, sees what kernels have readied. Info keys:
 *   ferry_partitioned_copy        what moves the partitions that kernels have readied: "kernel":
 *                                 the threads that complete a transfer unit store it into the
 *                                 receiver's memory (same node, memory of a device or from
 *                                 MPI_Alloc_mem); "host": the hosts, in waits and tests of either
 *                                 side, or a thread of Ferry's while both compute; "daemon":
 *                                 ferryd, which kernels ask (memory of a device or from
 *                                 MPI_Alloc_mem; inside a node, none that only streams reach);
 *                                 "auto" (default): kernels inside a node, ferryd between nodes,
 *                                 hosts where those cannot; collectives have "auto" and "host"
 *                                 only, which are one for them
 *   ferry_partitioned_kernel_max  with "auto": hosts move messages of more bytes than that inside a
 *                                 node (default: no bound; 512 KiB of an emulated device, whose
 *                                 kernels run on the hosts' cores)
 * MPI_ERR_REQUEST: it is active, or no partitioned request. MPI_ERR_INFO_VALUE.
 * MPI_ERR_UNSUPPORTED_OPERATION, with the reason: there is no such device, its kernels do not reach
 * what they need, or the request has a Prequest for another device. */
int MPIX_Prequest_create(MPI_Request request, int device, MPI_Info info, MPIX_Prequest* prequest);
/* Frees a Prequest, whose request must be inactive, and which no kernel may use any more. A request
 * that is freed keeps its Prequest's memory until that is freed, too. */
int MPIX_Prequest_free(MPIX_Prequest* prequest);

/* Gives the request's own Prequest, which is freed with the request. The first call makes it, for
 * the device whose memory the partitions lie in, or device 0; where MPIX_Prequest_create has made
 * one, it is that. It may be made in mid-round, before a kernel of the round is launched, and while
 * no other thread names the request. Blocks and fails as MPIX_Prequest_create, but for an active
 * request.
 *
 * MPIX_Prequest_create(preq, request), of the paper, is this call, with `preq` a variable. A macro
 * tells the two forms by their numbers of arguments; (MPIX_Prequest_create)(...) is the function.
 */
int MPIX_Prequest_get(MPI_Request request, MPIX_Prequest* prequest);

#define MPIX_Prequest_create(...)                                                      \
  FERRY_PREQUEST_FORM(__VA_ARGS__, FERRY_PREQUEST_OF_DEVICE, FERRY_PREQUEST_OF_DEVICE, \
                      FERRY_PREQUEST_OF_REQUEST, FERRY_PREQUEST_OF_DEVICE, )           \
  (__VA_ARGS__)
#define FERRY_PREQUEST_FORM(a, b, c, d, form, ...) form
#define FERRY_PREQUEST_OF_DEVICE(...) (MPIX_Prequest_create)(__VA_ARGS__)
#define FERRY_PREQUEST_OF_REQUEST(prequest, request) MPIX_Prequest_get((request), &(prequest))

/* ---- Queues (mpix.h) --------------------------------------------------------------------------
 *
 * MPIX_Enqueue_start, _startall, _wait and _waitall take partitioned requests, too; those need no
 * match. These enqueue MPI_Pready_range and MPIX_Pbuf_prepare. The calls are made in the order of
 * the queue by a thread of Ferry's; the stream waits for each of them. */
int MPIX_Enqueue_pready(MPIX_Queue queue, int partition_low, int partition_high,
                        MPI_Request request);
int MPIX_Enqueue_pbuf_prepare(MPIX_Queue queue, MPI_Request* request);
int MPIX_Enqueue_pbuf_prepare_all(MPIX_Queue queue, int count, MPI_Request requests[]);

/* ---- Collectives ------------------------------------------------------------------------------
 *
 * Persistent. All ranks of the communicator, an intracommunicator, make the inits in the same order
 * and with the same number of partitions, and start each as often. MPI_Pready says that a partition
 * of this rank's contribution is ready, on ranks that contribute; MPI_Parrived whether one of the
 * result is there, on ranks that get a result. Partitions go through the collective one by one, or
 * in units of several, whatever happens to the others. `count` elements of `datatype` make one
 * partition (of one block, for those that gather, scatter or exchange blocks: partition p of the
 * call is partition p of each block). MPI_IN_PLACE as in the plain collectives. The answers are
 * those of the plain collective on the same elements, partition by partition.
 *
 * A unit begins once this rank has readied all its partitions, so a rank that waits for the result
 * of one partition before it readies the next wants units of one: ferry_partitioned_min_bytes = 1,
 * and no more partitions than units. By default a unit has 16 KiB (of each block; of a
 * reduce_scatter, of the mean block), and there are at most 64 (by the hint: 4096); but it has no
 * more than 32 partitions. Where no rank knows all sizes (the v and w forms, and neighbours), only
 * the number of units counts. Both hints must be the same on all ranks.
 *
 * All ranks contribute, but in a broadcast or scatter only the root; also the root of a gather or
 * reduction in place readies its part, and so does a rank that sends to no other rank. The result
 * arrives on all ranks, or at the root of a gather or reduction, or, of a broadcast, on all but the
 * root. Floating-point sums are the same in each round: of a reduction or allreduce whose ranks
 * share a node, and whose data CPUs reach, in the order of ranks; else, to the last bit, those of
 * the plain persistent collective on the elements of each unit, but for those of reduce_scatter,
 * which may add in another order where there are several units.
 *
 * MPIX_Pbuf_prepare: all ranks call it in the same round, or none.
 *
 * Errors of the init as of the plain persistent collective's, and MPI_ERR_ARG: partitions is less
 * than 1, or too many for units; MPI_ERR_INFO_VALUE: a hint is no number from 1 on; MPI_ERR_COMM:
 * an intercommunicator. */

int MPIX_Pbcast_init(void* buffer, int partitions, MPI_Count count, MPI_Datatype datatype, int root,
                     MPI_Comm comm, MPI_Info info, MPI_Request* request);
int MPIX_Preduce_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                      MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request);
int MPIX_Pallreduce_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                         MPI_Request* request);
/* Block r of recvbuf, partitions x count elements, is rank r's. */
int MPIX_Pallgather_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                         MPI_Datatype datatype, MPI_Comm comm, MPI_Info info, MPI_Request* request);
int MPIX_Palltoall_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                        MPI_Datatype datatype, MPI_Comm comm, MPI_Info info, MPI_Request* request);
/* Block r of sendbuf is reduced for rank r. */
int MPIX_Preduce_scatter_block_init(const void* sendbuf, void* recvbuf, int partitions,
                                    MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                    MPI_Comm comm, MPI_Info info, MPI_Request* request);
int MPIX_Pgather_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                      MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request);
int MPIX_Pscatter_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                       MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
                       MPI_Request* request);

int MPIX_Pscan_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                    MPI_Request* request);
/* At rank 0 partitions arrive, too, and recvbuf stays as it is. */
int MPIX_Pexscan_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request);
/* Partition p has arrived once all ranks have readied theirs. */
int MPIX_Pbarrier_init(int partitions, MPI_Comm comm, MPI_Info info, MPI_Request* request);

/* ---- Blocks of their own sizes ----
 *
 * Counts are those of one partition. Block i has partitions x counts[i] elements from its
 * displacement on (in elements, with types of their own in bytes, as in the plain collective), and
 * partition p of it those from p x counts[i] on. All ranks have the same number of partitions. */

int MPIX_Pgatherv_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                       MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                       const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
                       MPI_Info info, MPI_Request* request);
int MPIX_Pscatterv_init(const void* sendbuf, int partitions, const MPI_Count sendcounts[],
                        const MPI_Aint displs[], MPI_Datatype sendtype, void* recvbuf,
                        MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                        MPI_Info info, MPI_Request* request);
int MPIX_Pallgatherv_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                          MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                          const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
                          MPI_Info info, MPI_Request* request);
int MPIX_Palltoallv_init(const void* sendbuf, int partitions, const MPI_Count sendcounts[],
                         const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf,
                         const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                         MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request);
int MPIX_Palltoallw_init(const void* sendbuf, int partitions, const MPI_Count sendcounts[],
                         const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
                         const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                         const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                         MPI_Request* request);
/* Block r of sendbuf, partitions x recvcounts[r] elements, is reduced for rank r; the blocks lie
 * side by side. In place, if blocks differ in size, no partition arrives before this rank has
 * readied all: its result lies where others are read. */
int MPIX_Preduce_scatter_init(const void* sendbuf, void* recvbuf, int partitions,
                              const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op,
                              MPI_Comm comm, MPI_Info info, MPI_Request* request);

/* ---- Among the neighbours of a topology ----
 *
 * MPI_ERR_TOPOLOGY: the communicator has none. All its ranks make the inits. */

/* Block i of recvbuf, partitions x count elements, is the i-th source's, and of an alltoall block i
 * of sendbuf is the i-th destination's. */
int MPIX_Pneighbor_allgather_init(const void* sendbuf, void* recvbuf, int partitions,
                                  MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                                  MPI_Info info, MPI_Request* request);
int MPIX_Pneighbor_alltoall_init(const void* sendbuf, void* recvbuf, int partitions,
                                 MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                                 MPI_Info info, MPI_Request* request);
int MPIX_Pneighbor_allgatherv_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                                   MPI_Datatype sendtype, void* recvbuf,
                                   const MPI_Count recvcounts[], const MPI_Aint displs[],
                                   MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                   MPI_Request* request);
int MPIX_Pneighbor_alltoallv_init(const void* sendbuf, int partitions, const MPI_Count sendcounts[],
                                  const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf,
                                  const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                                  MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request);
int MPIX_Pneighbor_alltoallw_init(const void* sendbuf, int partitions, const MPI_Count sendcounts[],
                                  const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                                  void* recvbuf, const MPI_Count recvcounts[],
                                  const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                                  MPI_Comm comm, MPI_Info info, MPI_Request* request);

/* ---- Schedules of a program's own ---- */

/* A step of a schedule, after section IV of the paper: (I, R, op, O, A). Pieces are the equal
 * parts of a partition (those before the remainder of count / pieces have one element more).
 * First the pieces R leave for the ranks O; then each piece A that comes from one of the ranks I
 * is combined with this rank's piece (`own op received`), or replaces it, in their order. */
typedef struct {
  int indegree;            /* |I| */
  const int* sources;      /* I */
  const int* arriving;     /* A: which piece comes from each source */
  MPI_Op op;               /* MPI_OP_NULL: received pieces replace */
  int outdegree;           /* |O| */
  const int* destinations; /* O */
  const int* leaving;      /* R: which piece goes to each destination */
} MPIX_Pstep;

/* A collective that the program describes. Each partition of sendbuf, once readied, is copied to
 * recvbuf (not with MPI_IN_PLACE), and goes through the steps there, in an order that has the same
 * result as one after the other. The k-th piece that a rank's steps send to another is the k-th
 * that the other one's receive from it. The arrays of the steps are copied. MPI_ERR_ARG,
 * MPI_ERR_RANK, MPI_ERR_OP: a step names a piece, rank or operation that there is not. Where a
 * piece is longer or shorter than the one that is expected, the round fails with MPI_ERR_TRUNCATE
 * or MPI_ERR_COUNT; the round waits for a piece that no rank sends. Partitions travel together only
 * where a hint says so, or there are more of them than units. */
int MPIX_Pschedule_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                        MPI_Datatype datatype, int pieces, int steps, const MPIX_Pstep schedule[],
                        MPI_Comm comm, MPI_Info info, MPI_Request* request);

#ifdef __cplusplus
}
#endif

#endif /* FERRY_MPI_MPIX_PARTITIONED_H_ */
