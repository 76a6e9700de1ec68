/* ferry.h - the native C interface of Ferry, a per-node service that moves GPU and host buffers
 * between the processes of a parallel job.
 *
 * Semantics follow MPI 5.0 chapters 3 (point to point) and 11 (environment): messages between two
 * ranks of one communicator context are non-overtaking; a receive may name FERRY_ANY_SOURCE and
 * FERRY_ANY_TAG. Every buffer argument may point to host memory of any kind or to device memory,
 * whether ferry_alloc or the vendor's own calls (cuMemAlloc, hipMalloc, zeMemAllocDevice and their
 * kin) have allocated it; the library identifies it by its address. A call returns FERRY_ERR_BUFFER
 * for a buffer that runs past the end of its device memory, or whose device memory has been freed.
 *
 * Unless a comment says otherwise, functions return FERRY_SUCCESS or an error code below, may be
 * called by any thread (see ferry_init), and do not block. After an error ferry_last_error() gives
 * a sentence that names what was wrong and what to do.
 */
#ifndef FERRY_FERRY_H_
#define FERRY_FERRY_H_

#include <stddef.h>
#include <stdint.h>

#if defined(FERRY_BUILDING_LIBRARY)
#define FERRY_API __attribute__((visibility("default")))
#else
#define FERRY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors --------------------------------------------------------------------------------- */

/* Numbers are never reused. FERRY_PENDING is not a failure. */
enum {
  FERRY_SUCCESS = 0,
  FERRY_PENDING = 1,
  FERRY_ERR_ARGUMENT = 2,
  FERRY_ERR_NOT_INITIALIZED = 3,
  FERRY_ERR_ALREADY_INITIALIZED = 4,
  FERRY_ERR_NO_DAEMON = 5,
  FERRY_ERR_VERSION = 6,
  FERRY_ERR_PERMISSION = 7,
  FERRY_ERR_RUN_DIRECTORY = 8,
  FERRY_ERR_RANK = 9,
  FERRY_ERR_TAG = 10,
  FERRY_ERR_TRUNCATED = 11, /* the buffer holds the first bytes of a longer message */
  FERRY_ERR_MEMORY = 12,
  FERRY_ERR_LIMIT = 13,
  FERRY_ERR_PEER_DIED = 14,
  FERRY_ERR_DAEMON_DIED = 15,
  FERRY_ERR_NODE_UNREACHABLE = 16,
  FERRY_ERR_TIMEOUT = 17,
  FERRY_ERR_CANCELLED = 18,
  FERRY_ERR_NOT_FOUND = 19,
  FERRY_ERR_EXISTS = 20,
  FERRY_ERR_UNSUPPORTED = 21,
  FERRY_ERR_BUFFER = 22,
  FERRY_ERR_REQUEST = 23,
  FERRY_ERR_CORRUPT = 24,
  FERRY_ERR_SYSTEM = 25,
  FERRY_ERR_DRAINING = 26,
  FERRY_ERR_INTERNAL = 27,
  FERRY_ERR_FORKED = 28,
  FERRY_ERR_CONFIGURATION = 29,
  FERRY_ERR_ABORTED = 30,
  FERRY_ERR_WORKER_DIED = 31,
  /* The link to the rank's node was cut: messages to and from it may be lost. Each rank gets this
   * error at least once: from its pending operations with a rank of that node, or else from its
   * next operation with one. Once the link is back, new operations work again. */
  FERRY_ERR_LINK_DOWN = 32
};

/* Returns a short phrase for any code. The string is never null and never freed. */
FERRY_API const char* ferry_error_string(int code);
/* Returns this library's release and the versions that ferryd must share with it, such as "0.1.0
 * (layout 1, protocol 3)". May be called at any time. The string is never freed. */
FERRY_API const char* ferry_version(void);
/* Returns the error message of this thread's last failing call, valid until its next failing
 * call. */
FERRY_API const char* ferry_last_error(void);

/* ---- Life ------------------------------------------------------------------------------------ */

enum {
  FERRY_THREAD_SINGLE = 0,     /* one thread */
  FERRY_THREAD_FUNNELED = 1,   /* only the thread that initialised calls Ferry */
  FERRY_THREAD_SERIALIZED = 2, /* one thread at a time */
  FERRY_THREAD_MULTIPLE = 3    /* any thread at any time */
};

/* Joins the job named by the environment (FERRY_JOB_ID, FERRY_RANK, ...: set by ferryrun) through
 * the ferryd of this node, and waits until every rank of the job has joined, however long that
 * takes; after a while (option mpi_warn_after_ms) it says which ranks are missing. It fails once a
 * rank of the job, or the ferryd of a rank, has ended. `provided` may be null; it is never less
 * than `required`. Blocks. Collective. */
FERRY_API int ferry_init(int required, int* provided);
/* Waits until this rank's own requests are done and leaves the job. Blocks. Every request must be
 * complete or freed; memory of ferry_alloc is freed. Ferry cannot be initialised again by this
 * process. */
FERRY_API int ferry_finalize(void);
/* Returns 1 between ferry_init and ferry_finalize, else 0. */
FERRY_API int ferry_initialized(void);
/* Tells the daemon that the job failed with `exit_code`, and ends this process. Does not return. */
FERRY_API void ferry_abort(int exit_code) __attribute__((noreturn));

/* This rank's number in its job, and the job's number of ranks; -1 when Ferry is not
 * initialised. */
FERRY_API int ferry_rank(void);
FERRY_API int ferry_size(void);
/* Returns the index of the node (daemon) that `rank` runs on, or -1. */
FERRY_API int ferry_node_of(int rank);

/* ---- Memory ---------------------------------------------------------------------------------- */

typedef enum {
  FERRY_MEMORY_HOST = 0,   /* the rank's heap: pageable, shared with the node's ranks and daemon */
  FERRY_MEMORY_PINNED = 1, /* the heap, registered with the GPU backend */
  FERRY_MEMORY_DEVICE = 2  /* device memory of the GPU backend in use */
} ferry_memory_kind;

/* Allocates memory that Ferry can move without a copy of its own. It is zeroed and 128-byte aligned
 * (device memory: page-aligned). `device` is the index of the GPU (0 for host kinds). The message
 * of FERRY_ERR_MEMORY says how much was left. */
FERRY_API int ferry_alloc(size_t size_bytes, ferry_memory_kind kind, int device, void** pointer);
/* Frees memory of ferry_alloc. Returns FERRY_ERR_BUFFER for an address that ferry_alloc did not
 * return, for memory that a request still uses, and for an offloaded send buffer. */
FERRY_API int ferry_free(void* pointer);
/* Copies between any two kinds of memory and waits for the end of the copy. */
FERRY_API int ferry_memcpy(void* destination, const void* source, size_t size_bytes);

/* Registers host memory of the application's own, [pointer, pointer + size_bytes), so that the GPU
 * backend may pin it. Device memory, and memory that the vendor's calls have pinned, needs no
 * registration. Returns FERRY_ERR_EXISTS for such memory, and for a range that overlaps a
 * registered one. */
FERRY_API int ferry_register(void* pointer, size_t size_bytes);
/* Ends the registration of the range that begins at `pointer`. Returns FERRY_ERR_NOT_FOUND for a
 * pointer that was not registered, and FERRY_ERR_BUFFER while a request uses the range. */
FERRY_API int ferry_deregister(void* pointer);

/* ---- Offloaded send buffers --------------------------------------------------------------------
 *
 * A send buffer that peers or the network card read slowly, or not at all, can have a bounce
 * buffer: a copy in the rank's heap, which they read instead. One copy then serves any number of
 * sends, and a send no longer waits for the device. After "Direct MPI Library for Intel Xeon Phi
 * Co-Processors" (Si and others, 2013), section IV-B4: reg_offload_mr, sync_offload_mr,
 * dereg_offload_mr.
 *
 * While a buffer is registered, every send (ferry_send, ferry_isend) whose bytes all lie in it
 * reads the bounce buffer: the bytes that the last ferry_offload_sync copied there, whatever the
 * buffer holds by now. A send of which some bytes were not synchronised since the registration
 * fails with FERRY_ERR_BUFFER. A send that reaches beyond the buffer, or lies in two, reads the
 * memory itself. A persistent request is bound to the bounce buffer, or to the memory, by
 * ferry_send_init; whether its bytes were synchronised matters when it is started. Receives, and
 * ferry_memcpy, always mean the memory itself.
 *
 * Without any of this, messages from device memory that a rank itself brings to the host go through
 * bounce buffers that are synchronised at each send (option offload_min_bytes). */

/* The handle of an offloaded send buffer. 0 names none. A handle's value is never reused. */
typedef uint64_t ferry_offload;
#define FERRY_OFFLOAD_NULL ((ferry_offload)0)
/* As the size given to ferry_offload_sync: all bytes from the offset on. */
#define FERRY_OFFLOAD_TO_END SIZE_MAX

/* Registers [buffer, buffer + size_bytes), memory of any kind: a bounce buffer of that size is
 * allocated in the heap (heap_bytes), and registered with the GPU backend if the buffer is device
 * memory. Nothing is copied yet. Blocks on the daemon once, while the heap is made.
 * FERRY_ERR_ARGUMENT for a null or empty buffer; FERRY_ERR_EXISTS if it overlaps another offloaded
 * one; FERRY_ERR_BUFFER if it runs past the end of its device memory; FERRY_ERR_MEMORY if the heap
 * has no room. The buffer must be deregistered before it is freed; ferry_free refuses it
 * (FERRY_ERR_BUFFER). */
FERRY_API int ferry_offload_register(const void* buffer, size_t size_bytes, ferry_offload* offload);
/* Copies the bytes from `offset_bytes` on, `size_bytes` of them or FERRY_OFFLOAD_TO_END, from the
 * buffer into the bounce buffer; device memory by a stream. Blocks until the bytes are there: sends
 * that follow read them. Work of the application's own that writes the buffer must be complete.
 * Zero bytes are no error. FERRY_ERR_NOT_FOUND for a handle that names no buffer;
 * FERRY_ERR_ARGUMENT for bytes beyond its end; FERRY_ERR_BUFFER while a send of some of these bytes
 * is not complete: like any send buffer, the bytes that a send reads must not be changed. After any
 * other error these bytes count as not synchronised. */
FERRY_API int ferry_offload_sync(ferry_offload offload, size_t offset_bytes, size_t size_bytes);
/* Frees the bounce buffer, and sets *offload to FERRY_OFFLOAD_NULL; sends read the memory itself
 * again. FERRY_ERR_NOT_FOUND for a handle that names no buffer; FERRY_ERR_BUFFER, and nothing
 * changes, while a send from it is not complete, a persistent request is bound to it, or another
 * thread synchronises it. Must not run at the same time as the start of a send from the buffer.
 * ferry_finalize deregisters the buffers that are left. */
FERRY_API int ferry_offload_deregister(ferry_offload* offload);

/* ---- Point to point ---------------------------------------------------------------------------
 */

#define FERRY_ANY_SOURCE (-1)
#define FERRY_ANY_TAG (-1)
#define FERRY_TAG_MAX 0x3fffffff

/* The handle of a request. 0 is the null request: complete at once, never an error. */
typedef uint64_t ferry_request;
#define FERRY_REQUEST_NULL ((ferry_request)0)

typedef struct {
  int source;
  int tag;
  int error;         /* of this operation */
  int cancelled;     /* 1 if it was cancelled */
  size_t size_bytes; /* received: at most the capacity of the buffer */
} ferry_status;

/* Starts sending. The buffer must not be changed until the request is complete. Never blocks: a
 * message that cannot leave yet waits in this rank's own queue. Returns FERRY_ERR_LIMIT at the
 * limit of requests. */
FERRY_API int ferry_isend(const void* buffer, size_t size_bytes, int destination, int tag,
                          ferry_request* request);
/* Starts receiving at most `size_bytes`. A longer message fills the buffer and ends with
 * FERRY_ERR_TRUNCATED. */
FERRY_API int ferry_irecv(void* buffer, size_t size_bytes, int source, int tag,
                          ferry_request* request);
/* The blocking forms of ferry_isend and ferry_irecv. `status` may be null. */
FERRY_API int ferry_send(const void* buffer, size_t size_bytes, int destination, int tag);
FERRY_API int ferry_recv(void* buffer, size_t size_bytes, int source, int tag,
                         ferry_status* status);

/* Persistent requests: made once, started many times with ferry_start, ended with
 * ferry_request_free. */
FERRY_API int ferry_send_init(const void* buffer, size_t size_bytes, int destination, int tag,
                              ferry_request* request);
FERRY_API int ferry_recv_init(void* buffer, size_t size_bytes, int source, int tag,
                              ferry_request* request);
FERRY_API int ferry_start(ferry_request request);
/* Frees an inactive persistent request (or one never started). Returns FERRY_ERR_REQUEST for an
 * active one. */
FERRY_API int ferry_request_free(ferry_request* request);

/* Completion: ferry_test sets *done to 1 if the request is complete, else to 0; ferry_wait blocks
 * until it is. A completed non-persistent request is freed and set to FERRY_REQUEST_NULL. The
 * return value is the operation's error. */
FERRY_API int ferry_test(ferry_request* request, int* done, ferry_status* status);
FERRY_API int ferry_wait(ferry_request* request, ferry_status* status); /* blocks */
/* Waits for all requests; returns the first error met, in order of the array. `statuses` may be
 * null. Blocks. */
FERRY_API int ferry_waitall(size_t count, ferry_request* requests, ferry_status* statuses);
/* Waits until one of the requests is complete; sets *index to its place in the array, or to -1 when
 * all are null. Blocks. */
FERRY_API int ferry_waitany(size_t count, ferry_request* requests, int* index,
                            ferry_status* status);

/* Look for an unexpected message without receiving it. ferry_iprobe sets *found to 0 or 1;
 * ferry_probe blocks until there is one. */
FERRY_API int ferry_iprobe(int source, int tag, int* found, ferry_status* status);
FERRY_API int ferry_probe(int source, int tag, ferry_status* status);

/* Asks to cancel; the request must still be completed by test or wait, whose status says whether it
 * was. A receive is cancelled if it has not matched. A send is cancelled if its data have not left
 * (data of large messages, and data in the heap within a node, have not), even if the receiver has
 * probed it. Cancelling a send to another node needs no help from the receiver. */
FERRY_API int ferry_cancel(ferry_request request);

/* Returns when every rank of the job has called it. Blocks. Collective. If a rank dies before it
 * has taken part, the call fails on each rank that it has not let through yet (FERRY_ERR_PEER_DIED,
 * FERRY_ERR_NODE_UNREACHABLE, FERRY_ERR_LINK_DOWN), so no rank waits for one that has failed. */
FERRY_API int ferry_barrier(void);

/* ---- Counters ---------------------------------------------------------------------------------
 */

/* Counters of this rank by index, 0 .. ferry_counter_count() - 1. Names are stable; the unit is
 * part of the text. For an index out of range the name is null and the value 0. */
FERRY_API int ferry_counter_count(void);
FERRY_API const char* ferry_counter_name(int index);
FERRY_API uint64_t ferry_counter_value(int index);

#ifdef __cplusplus
}
#endif

#endif /* FERRY_FERRY_H_ */
