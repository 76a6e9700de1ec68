/* stream.h - communication that a GPU stream triggers: matched persistent requests, queues, and the
 * streams of Ferry's own.
 *
 * After "Co-Design and Evaluation of a CPU-Free MPI GPU Communication Abstraction and
 * Implementation" (section III): a persistent send and a persistent receive are matched once, for
 * life, over the control plane. From then on starts and waits can be enqueued on a GPU stream, and
 * the application's CPUs take no part in moving the data. docs/stream_triggered.md explains the
 * model; ferry/mpi/mpix.h has the same for MPI programs.
 *
 * As in ferry.h: functions return FERRY_SUCCESS or an error code, may be called by any thread that
 * ferry_init allows, do not block unless they say so, and ferry_last_error() has the error
 * message.
 */
#ifndef FERRY_STREAM_H_
#define FERRY_STREAM_H_

#include "ferry/ferry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Matching --------------------------------------------------------------------------------
 *
 * The k-th persistent send that a rank makes to (destination, tag) is matched with the k-th
 * persistent receive that the destination makes for (source, tag): in the order of creation,
 * counting also those that are never matched. Two requests pair only once both sides have offered
 * them by a match call, so a matched request never meets messages of unmatched requests or of
 * nonblocking calls.
 *
 * A matched request still works with ferry_start and ferry_wait, and costs less than an unmatched
 * one. Its message goes into its partner's buffer, whatever else is posted there; both sides must
 * start it equally often. A wildcard receive, and a request that is active, cannot be matched. A
 * send that is longer than its receive ends the match on both sides with FERRY_ERR_TRUNCATED; a
 * shorter one is no error. */

/* Makes a ready send: as ferry_send_init, but the application guarantees that the receive has been
 * started, on its stream if it is enqueued, when the send's start is carried out. Once matched, it
 * never waits for the receiver to be clear to send. Unmatched, it works as any persistent send. */
FERRY_API int ferry_rsend_init(const void* buffer, size_t size_bytes, int destination, int tag,
                               ferry_request* request);
/* Matches an inactive persistent request; blocks until the other side has offered its own request
 * by a match call. Matching a matched request again is no error. FERRY_ERR_REQUEST: the request is
 * not persistent, is active, or is a receive from any source or with any tag. FERRY_ERR_PEER_DIED,
 * FERRY_ERR_NOT_FOUND (the other rank has left), FERRY_ERR_REQUEST (it has freed its request),
 * FERRY_ERR_TRUNCATED, ...: the match has failed, and so would another one; free the request. */
FERRY_API int ferry_match(ferry_request request);
/* Matches several requests at once, as ferry_match does one. If one of them is not eligible, none
 * is offered. */
FERRY_API int ferry_matchall(size_t count, const ferry_request* requests);
/* Begin to match without blocking; *match is a request of its own, to be tested or waited for. It
 * is complete when all requests are matched, or one cannot be; it cannot be cancelled or
 * started. */
FERRY_API int ferry_imatch(ferry_request request, ferry_request* match);
FERRY_API int ferry_imatchall(size_t count, const ferry_request* requests, ferry_request* match);
/* Sets *matched to 1 once the request is matched, else to 0, whether or not a match request waits
 * for that. */
FERRY_API int ferry_is_matched(ferry_request request, int* matched);

/* ---- Queues -----------------------------------------------------------------------------------
 */

/* An ordered set of starts and waits that a stream carries out, and of calls that Ferry makes when
 * the stream gets there (ferry/one_sided.h, and of OpenSHMEM ferry_shmem/queues.h). A handle that
 * names no queue, or one that was freed, is FERRY_ERR_ARGUMENT. */
typedef uint64_t ferry_queue;
#define FERRY_QUEUE_NULL ((ferry_queue)0)

typedef enum {
  FERRY_QUEUE_FERRY = 0,     /* `stream_address`: of a ferry_stream */
  FERRY_QUEUE_CUDA = 1,      /* of a cudaStream_t or CUstream */
  FERRY_QUEUE_HIP = 2,       /* of a hipStream_t */
  FERRY_QUEUE_LEVEL_ZERO = 3 /* of a ze_command_list_handle_t, immediate */
} ferry_queue_type;

/* Makes a queue on the stream that *stream_address names, which must outlive it. FERRY_ERR_ARGUMENT
 * if it names no stream, FERRY_ERR_UNSUPPORTED for a type that the GPU backend in use does not
 * have. */
FERRY_API int ferry_queue_init(ferry_queue_type type, const void* stream_address,
                               ferry_queue* queue);
/* Frees an empty queue. FERRY_ERR_REQUEST, and nothing is freed, while an enqueued start has no
 * wait, or enqueued work is not done: call ferry_queue_wait first. Blocks while a call that the
 * queue has made goes on, which can only be where the stream has failed or was destroyed. */
FERRY_API int ferry_queue_free(ferry_queue* queue);
/* Blocks until everything enqueued so far, by others on the same stream too, is done. Returns the
 * first failure of a request, or of a call that the queue has made, since the last
 * ferry_queue_wait. */
FERRY_API int ferry_queue_wait(ferry_queue queue);

/* Enqueues the start of a matched request: the request starts when the stream gets there. Never
 * blocks the stream. FERRY_ERR_REQUEST: the request is not matched, is active, or has an earlier
 * enqueued start without a wait. A call with several requests enqueues all or none. */
FERRY_API int ferry_enqueue_start(ferry_queue queue, ferry_request request);
FERRY_API int ferry_enqueue_startall(ferry_queue queue, size_t count,
                                     const ferry_request* requests);
/* Enqueues a wait: later work on the stream runs when the request is complete, or has failed.
 * FERRY_ERR_REQUEST: the request's start was not enqueued on this queue. A call with several
 * requests enqueues all or none.
 *
 * From the start on, and until the stream has passed the wait, the request belongs to the queue:
 * ferry_start, ferry_test, ferry_wait, ferry_cancel and ferry_request_free refuse it. A request
 * that failed lets the stream go on; then ferry_queue_wait, and every later use of the request, say
 * why, and it has to be freed, made and matched anew. */
FERRY_API int ferry_enqueue_wait(ferry_queue queue, ferry_request request);
FERRY_API int ferry_enqueue_waitall(ferry_queue queue, size_t count, const ferry_request* requests);

/* ---- Starts by kernels -------------------------------------------------------------------------
 *
 * A kernel starts a matched request to another node itself, and sees when its message is over, with
 * no CPU in between: where the network card's driver lets this process map the page of the card's
 * counter (docs/stream_triggered.md, "By the NIC"). Elsewhere a kernel asks ferryd, through a ring
 * (ferry_ring_prepare_start). The kernel gets both addresses as pointers to ferry_device_u64, and
 * the number; with the device functions of ferry/device/platform.h:
 *
 *     ferry_device_store_release(word, 1);
 *     while (ferry_device_load_acquire(done) < number) {
 *     }
 */
typedef struct ferry_kernel_start {
  uint64_t* word;       /* in the card's page: a store of 1, once, makes the start; nothing loads */
  const uint64_t* done; /* in ferry's heap: has reached `number` once the message is over, or has */
  uint64_t number;      /* failed; then it is 2^62 or more */
} ferry_kernel_start;

/* Prepares one start of a matched request whose partner is on another node, to be made by a kernel.
 * For the rank the request is then active: it must call ferry_wait, or ferry_test, before it
 * prepares, or makes, the next start. The message is read, or written, once the kernel has started
 * the request and its partner has, too.
 *
 * FERRY_ERR_REQUEST: the request is not matched, or is active. FERRY_ERR_BUFFER: the message is not
 * in memory of ferry_alloc that the network reaches. FERRY_ERR_UNSUPPORTED, and nothing is
 * prepared: there is no page, or not yet (it comes with the first message of the pair); the receive
 * of a ready send, for whose start nothing waits; and what ferry_ring_prepare_start says. */
FERRY_API int ferry_kernel_prepare_start(ferry_request request, ferry_kernel_start* start);

/* ---- Streams of Ferry's own -------------------------------------------------------------------
 *
 * Streams of the GPU backend in use, for programs that have no vendor's library at hand: with the
 * backend "host", whose devices are emulated, there is none. FERRY_ERR_UNSUPPORTED without a
 * backend. */

typedef struct ferry_stream_object* ferry_stream;

FERRY_API int ferry_stream_create(int device, ferry_stream* stream);
/* Destroys the stream without waiting for enqueued work: that is dropped, and requests whose starts
 * or waits it held fail with FERRY_ERR_CANCELLED. Blocks for calls of queues that have begun: waits
 * for words of OpenSHMEM end then, others have to come to their end. A queue on the stream can then
 * only be freed. */
FERRY_API int ferry_stream_destroy(ferry_stream* stream);
/* Blocks until all enqueued work is done. */
FERRY_API int ferry_stream_synchronize(ferry_stream stream);
/* Enqueues a copy between any two kinds of memory, and a kernel: a function that the stream calls
 * with `argument`, on a CPU. It may touch device memory that CPUs reach (of emulated devices they
 * do, unless host_link_guard forbids it) and must not call Ferry, or the vendor's library. */
FERRY_API int ferry_stream_memcpy(ferry_stream stream, void* destination, const void* source,
                                  size_t size_bytes);
FERRY_API int ferry_stream_launch(ferry_stream stream, void (*kernel)(void* argument),
                                  void* argument);

#ifdef __cplusplus
}
#endif

#endif /* FERRY_STREAM_H_ */
