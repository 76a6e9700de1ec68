/* one_sided.h - operations in the memory of other ranks, in which those ranks take no part: puts,
 * gets, atomic operations, puts with a signal.
 *
 * The model is OpenSHMEM's (1.5, sections 9.5 to 9.11), but memory is named by rank, segment and
 * offset, and nothing has to be symmetric: a rank locates memory of its own that ferry_alloc
 * returned, or its GPU vendor, and tells the others, by messages, what it is called. OpenSHMEM
 * itself stands on the same operations (docs/shmem.md).
 *
 * An operation in memory of this node is a copy by this rank, or an atomic operation of its CPU,
 * and is over when the call returns. In memory of other nodes the ferryds of the two nodes carry it
 * out, without the program's help at either end: memory of other nodes' ranks changes, and is read,
 * whether or not those ranks call Ferry. Atomic operations on one word agree wherever they come
 * from.
 *
 * Operations of one rank with another are carried out in the order of the calls if ferry_fence
 * stands between them. Between nodes, operations of up to 8 KiB of host memory keep their order
 * without a fence; longer ones, and those of device memory, are moved straight from where the bytes
 * lie, at the same time. Operations with different ranks, or by several threads at the same time,
 * have no order.
 *
 * Errors: a call returns what is wrong with its arguments, and whether it cannot begin
 * (FERRY_ERR_PEER_DIED, FERRY_ERR_NOT_FOUND: the rank has left, FERRY_ERR_NODE_UNREACHABLE,
 * FERRY_ERR_LINK_DOWN). A call whose operation is over when it returns also returns how the
 * operation ended. ferry_quiet returns, once, the error of an operation that fails later.
 * FERRY_ERR_BUFFER: there is no such segment, or the bytes do not all lie in it.
 * FERRY_ERR_ARGUMENT: the offset of a word is no multiple of its width. FERRY_ERR_UNSUPPORTED: only
 * streams reach that device memory, where puts and gets work and no other operation does.
 *
 * As in ferry.h: functions return FERRY_SUCCESS or an error code, may be called by any thread that
 * ferry_init allows, and ferry_last_error() has the error message. The comments below say which
 * functions block; all may do so while there is no room on the way to ferryd, and at the first use
 * of a segment of the node.
 */
#ifndef FERRY_ONE_SIDED_H_
#define FERRY_ONE_SIDED_H_

#include <stddef.h>
#include <stdint.h>

#include "ferry/ferry.h"
#include "ferry/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Places -----------------------------------------------------------------------------------
 */

/* A place in a rank's memory. A rank that knows a place may add to its `offset` (bytes), within the
 * memory that was located. A place means the same in all ranks. */
typedef struct {
  int32_t rank;
  uint32_t segment;
  uint64_t offset;
} ferry_place;

/* Sets *place to the name of [pointer, pointer + size_bytes), memory of this rank. The name holds
 * until the memory is freed. Returns FERRY_ERR_BUFFER if the memory lies neither in memory that
 * ferry_alloc returned nor in device memory of the program's own that its GPU's driver shares with
 * other processes. */
FERRY_API int ferry_locate(const void* pointer, size_t size_bytes, ferry_place* place);

/* ---- Contexts ---------------------------------------------------------------------------------
 */

/* A context groups operations, which ferry_quiet completes together. Contexts are cheap; operations
 * of different contexts with one rank still keep their order. A handle that names no context, or
 * one that was destroyed, is FERRY_ERR_ARGUMENT. */
typedef uint64_t ferry_context;
#define FERRY_CONTEXT_DEFAULT ((ferry_context)0) /* a context that always exists */

/* Creates a context. Returns FERRY_ERR_LIMIT when there are 4096. */
FERRY_API int ferry_context_create(ferry_context* context);
/* Completes the context's operations, and returns their error, as ferry_quiet does; then destroys
 * the context and sets *context to FERRY_CONTEXT_DEFAULT. No other thread may use the context.
 * Blocks. */
FERRY_API int ferry_context_destroy(ferry_context* context);

/* ---- Puts and gets ----------------------------------------------------------------------------
 *
 * The local bytes may lie in memory of any kind. Zero bytes are no error, wherever they are. */

/* Copies `size_bytes` from `from` to `to`. The source may be changed once the call returns; the
 * data may arrive later. Blocks while bytes are fetched straight from the source. */
FERRY_API int ferry_put(ferry_context context, ferry_place to, const void* from, size_t size_bytes);
/* Begins a put whose source must not change until ferry_quiet. Blocks only while there is no room
 * on the way to ferryd. */
FERRY_API int ferry_put_nbi(ferry_context context, ferry_place to, const void* from,
                            size_t size_bytes);

typedef enum { FERRY_SIGNAL_SET = 1, FERRY_SIGNAL_ADD = 2 } ferry_signal_update;
/* Puts as ferry_put does, then sets the 8 bytes at `signal`, of the same rank, to `value`, or adds
 * `value` to them: a thread that reads the new value by an atomic load (acquire) finds the data
 * there. To another node both go in one message. If the signal cannot be updated, a put of up to 8
 * KiB stores nothing. */
FERRY_API int ferry_put_signal(ferry_context context, ferry_place to, const void* from,
                               size_t size_bytes, ferry_signal_update update, ferry_place signal,
                               uint64_t value);

/* Copies `size_bytes` from `from` to `to`. Blocks until the data have arrived. */
FERRY_API int ferry_get(ferry_context context, void* to, ferry_place from, size_t size_bytes);
/* Begins a get. The data have arrived after ferry_quiet; until then `to` must not be touched. */
FERRY_API int ferry_get_nbi(ferry_context context, void* to, ferry_place from, size_t size_bytes);

/* Strided forms: copy `blocks` blocks of `block_bytes` each, which begin `..._stride_bytes` apart
 * at either end (equal to block_bytes where they are neighbours; negative: backwards). ferry_iget
 * blocks until the data have arrived. */
FERRY_API int ferry_iput(ferry_context context, ferry_place to, ptrdiff_t to_stride_bytes,
                         const void* from, ptrdiff_t from_stride_bytes, size_t block_bytes,
                         size_t blocks);
FERRY_API int ferry_iget(ferry_context context, void* to, ptrdiff_t to_stride_bytes,
                         ferry_place from, ptrdiff_t from_stride_bytes, size_t block_bytes,
                         size_t blocks);

/* ---- Atomic operations ------------------------------------------------------------------------
 *
 * They work on a word of `width` bytes, 4 or 8, whose offset is a multiple of the width. Of a word
 * of 4 bytes, only the lower half of `operand`, `compare` and the result counts. Floating-point
 * numbers are swapped, set and fetched as the integers that they are made of. */

typedef enum {
  FERRY_ATOMIC_FETCH = 3,        /* nothing changes */
  FERRY_ATOMIC_SET = 4,          /* word = operand */
  FERRY_ATOMIC_SWAP = 5,         /* word = operand; fetches the previous value */
  FERRY_ATOMIC_COMPARE_SWAP = 6, /* if (word == compare) word = operand */
  FERRY_ATOMIC_ADD = 7,          /* word += operand; to subtract, add the complement */
  FERRY_ATOMIC_AND = 8,
  FERRY_ATOMIC_OR = 9,
  FERRY_ATOMIC_XOR = 10
} ferry_atomic_operation;

/* Begins an operation that changes the word before ferry_quiet returns. Only
 * FERRY_ATOMIC_COMPARE_SWAP uses `compare`. */
FERRY_API int ferry_atomic(ferry_context context, ferry_atomic_operation operation,
                           ferry_place word, int width, uint64_t operand, uint64_t compare);
/* Sets *found to the word's previous value. Blocks until that is known. */
FERRY_API int ferry_atomic_fetch(ferry_context context, ferry_atomic_operation operation,
                                 ferry_place word, int width, uint64_t operand, uint64_t compare,
                                 uint64_t* found);
/* Begins what ferry_atomic_fetch does; *found is set after ferry_quiet. */
FERRY_API int ferry_atomic_fetch_nbi(ferry_context context, ferry_atomic_operation operation,
                                     ferry_place word, int width, uint64_t operand,
                                     uint64_t compare, uint64_t* found);

/* ---- Order and completion ---------------------------------------------------------------------
 */

/* Orders the context's operations: in a rank's memory, those after the fence take effect after
 * those before it. Blocks until bytes that are fetched straight from their source
 * (ferry_put_nbi) are there. */
FERRY_API int ferry_fence(ferry_context context);
/* Blocks until all operations of the context are over: data have arrived, at either end, and all
 * ranks see them. Returns the first failure of these operations that no call has returned yet;
 * the sentence names the rank. A failure of an operation that another context began with that
 * rank at the same time may be returned here, too. All operations of the context are over
 * afterwards, whatever the call returns, unless this rank can go on no more. */
FERRY_API int ferry_quiet(ferry_context context);
/* Does what ferry_quiet does, for the context's operations with one rank only. */
FERRY_API int ferry_quiet_rank(ferry_context context, int rank);

/* ---- On queues --------------------------------------------------------------------------------
 *
 * Each of these enqueues the call whose name has no enqueue_ on a queue of ferry/stream.h: when
 * the stream reaches it, a thread of Ferry's makes the call, and later work on the stream runs
 * once that has returned. Arguments other than the queue are taken, and checked, when that
 * thread makes the call: memory and the context must stay until then. A call that fails lets the
 * stream go on; ferry_queue_wait returns the first failure. From the first enqueued call on,
 * calls of messages cost as much as with FERRY_THREAD_MULTIPLE. FERRY_ERR_UNSUPPORTED: the
 * device's streams cannot wait for the CPU. docs/stream_triggered.md has more. */

FERRY_API int ferry_enqueue_put(ferry_queue queue, ferry_context context, ferry_place to,
                                const void* from, size_t size_bytes);
FERRY_API int ferry_enqueue_put_signal(ferry_queue queue, ferry_context context, ferry_place to,
                                       const void* from, size_t size_bytes,
                                       ferry_signal_update update, ferry_place signal,
                                       uint64_t value);
FERRY_API int ferry_enqueue_get(ferry_queue queue, ferry_context context, void* to,
                                ferry_place from, size_t size_bytes);
FERRY_API int ferry_enqueue_atomic(ferry_queue queue, ferry_context context,
                                   ferry_atomic_operation operation, ferry_place word, int width,
                                   uint64_t operand, uint64_t compare);
FERRY_API int ferry_enqueue_quiet(ferry_queue queue, ferry_context context);

#ifdef __cplusplus
}
#endif

#endif /* FERRY_ONE_SIDED_H_ */
