/* mpix.h - what Ferry adds to MPI: matched persistent requests and queues that a GPU stream carries
 * out, after "Co-Design and Evaluation of a CPU-Free MPI GPU Communication Abstraction and
 * Implementation" (section III; the names are that paper's). docs/stream_triggered.md explains the
 * model; ferry/stream.h has the same for programs without MPI, and says more of each call.
 *
 * Calls return MPI_SUCCESS or an error class, after the error handler of the request's communicator
 * has run. They may be made by any thread that the thread level allows.
 */
#ifndef FERRY_MPI_MPIX_H_
#define FERRY_MPI_MPIX_H_

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Matching: persistent sends (standard, synchronous, ready), receives and collectives -------
 *
 * The k-th persistent send to (communicator, destination, tag) is matched with the k-th persistent
 * receive from (communicator, source, tag), in the order in which their ranks made them. A request
 * from or to MPI_PROC_NULL counts as matched at once, without a partner.
 *
 * A persistent collective is matched by all ranks of its communicator, in any order among other
 * requests. Each rank starts each round as it likes: on a queue, or by MPI_Start. Once it was
 * offered to be matched, MPI_Start fails with MPI_ERR_REQUEST until the match is complete. It also
 * fails if the match has failed: then free the request and make it anew.
 *
 * MPI_ERR_REQUEST: not a persistent point-to-point or collective request, active, a buffered send,
 * or a receive with a wildcard. MPI_ERR_TRUNCATE: the send is longer than the receive; on both
 * sides. MPI_ERR_TYPE: a send or receive whose data have gaps, which a stream cannot pack (without
 * a match MPI_Start takes it); a collective's, in memory that only streams reach. Collectives also
 * fail with MPI_ERR_NO_MEM (the rank's heap has no room for what its messages need). With these two
 * the match, or the first start, fails on the other side, too (MPI_ERR_REQUEST; a send is complete
 * once its data have left, and may be told later), or on the ranks that the collective has messages
 * with. */

/* Matches an inactive persistent request. Blocks until the other side, or all ranks of the
 * collective, have offered their own request by a match call. */
int MPIX_Match(MPI_Request* request);
/* Matches several requests at once, as MPIX_Match does one. If one is not eligible, none is
 * offered. */
int MPIX_Matchall(int count, MPI_Request requests[]);
/* Begin to match without blocking: *match is complete once all requests are matched, or one cannot
 * be. It cannot be cancelled. */
int MPIX_Imatch(MPI_Request* request, MPI_Request* match);
int MPIX_Imatchall(int count, MPI_Request requests[], MPI_Request* match);
/* Sets *flag to 1 once the request is matched, else to 0. */
int MPIX_Is_matched(MPI_Request request, int* flag);

/* ---- Queues -----------------------------------------------------------------------------------
 */

typedef uint64_t MPIX_Queue;
#define MPIX_QUEUE_NULL ((MPIX_Queue)0)

typedef enum {
  MPIX_QUEUE_FERRY = 0,     /* `stream_address`: of a ferry_stream (ferry/stream.h) */
  MPIX_QUEUE_CUDA = 1,      /* of a cudaStream_t */
  MPIX_QUEUE_HIP = 2,       /* of a hipStream_t */
  MPIX_QUEUE_LEVEL_ZERO = 3 /* of an immediate ze_command_list_handle_t */
} MPIX_Queue_type;

/* Makes a queue on the stream that *stream_address names, which must outlive the queue.
 * MPI_ERR_ARG: *stream_address is no such stream; MPI_ERR_UNSUPPORTED_OPERATION: the GPU backend in
 * use has no streams of that type. */
int MPIX_Queue_init(MPIX_Queue* queue, MPIX_Queue_type type, const void* stream_address);
/* Frees a queue. Fails with MPI_ERR_REQUEST, and frees nothing, while enqueued work is not done. */
int MPIX_Queue_free(MPIX_Queue* queue);
/* Blocks until all enqueued work is done. Returns the first failure of a request since the last
 * call. A collective's failure is this rank's own, or that of a rank it had messages with. */
int MPIX_Queue_wait(MPIX_Queue queue);

/* Enqueue the start of matched requests. Never block the stream. Collectives pack and reduce on the
 * stream, by functions that it calls: an operation of the program's own must not call MPI, and its
 * datatype must not have been freed (MPI_ERR_TYPE). A collective goes on while the stream does
 * other work. A call with several requests enqueues all or none. MPI_ERR_REQUEST: not matched,
 * active, or started on a queue without a wait since. */
int MPIX_Enqueue_start(MPIX_Queue queue, MPI_Request* request);
int MPIX_Enqueue_startall(MPIX_Queue queue, int count, MPI_Request requests[]);
/* Enqueue the wait for requests, on the queue that has their start. No other call may use them
 * until the stream has passed it. */
int MPIX_Enqueue_wait(MPIX_Queue queue, MPI_Request* request);
int MPIX_Enqueue_waitall(MPIX_Queue queue, int count, MPI_Request requests[]);

#ifdef __cplusplus
}
#endif

#include "ferry_mpi/mpix_partitioned.h"

#endif /* FERRY_MPI_MPIX_H_ */
