"""The parts of shmem.h: the groups of functions that each has, and its comments on them."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Part:
    file: str
    head: str  # purpose, blocking, errors, source
    groups: tuple  # of families
    titles: tuple  # of their sections
    includes: tuple = ("types.h",)


SHMEM_HEAD = """shmem.h - OpenSHMEM for programs: version 1.5 with all its deprecated calls, and what
1.6 adds.

The processing elements (PEs) of a job are its ranks. Each has a symmetric heap, and the static
and global variables of its program: objects that all PEs have, and that a PE names by the address
of its own. Puts, gets and atomics reach the object of another PE while that one does something
else.

Calling thread: as the thread level of shmem_init_thread allows; after shmem_init, one thread.

Errors: most calls return nothing. Misuse that can be seen (a PE that is not there, memory that is
not symmetric, a call before shmem_init) ends the program with a sentence that names the call, the
argument and what to do; so does a PE that dies while another waits for it. Collective calls, and
those that create something, return 0 or not 0 as the standard says.

TYPE stands for the name of an element type (shmem_long_put), SIZE for its bits (shmem_put64); mem
counts bytes (shmem_putmem). The parts in ferry_shmem/ document the calls. C11 and C++ programs
may leave TYPE out. Every call has a twin pshmem_..., for tools (pshmem.h)."""

SHMEMX_HEAD = """shmemx.h - what Ferry has beyond OpenSHMEM. See shmem.h."""

SHMEMX_TYPES = """
/* This PE's symmetric heap, in bytes. */
typedef struct {
  size_t reserved_bytes;     /* the size that it may grow to */
  size_t size_bytes;         /* of it, backed by memory so far */
  size_t used_bytes;         /* given out */
  size_t largest_free_bytes; /* the most that one shmem_malloc could get now */
} shmemx_heap_info_t;

/* The memory given to shmemx_heap_create: of Level Zero, CUDA or HIP; or of ferry_alloc or MPI. */
#define SHMEMX_EXTERNAL_HEAP_ZE 0
#define SHMEMX_EXTERNAL_HEAP_CUDA 1
#define SHMEMX_EXTERNAL_HEAP_HIP 2
#define SHMEMX_EXTERNAL_HEAP_HOST 3

/* A space: a symmetric heap in the memory of a device. The handle belongs to the PE that has it. */
typedef struct ferry_shmem_space* shmemx_space_t;
#define SHMEMX_SPACE_INVALID ((shmemx_space_t)0)
#define SHMEMX_MOST_SPACES 3 /* at a time */

/* This PE's part of a space. */
typedef struct {
  int device;              /* in whose memory it lies: the argument of shmemx_space_create */
  int cpu_reach;           /* 1 if loads and stores of CPUs reach it, on all PEs; 0: devices only */
  shmemx_heap_info_t heap; /* in bytes */
} shmemx_space_info_t;
"""

PSHMEM_HEAD = """pshmem.h - the second name of each call, for tools (OpenSHMEM 1.5: Profiling
Interface): a tool defines shmem_long_put and calls pshmem_long_put in it. Calls
whose name does not begin with shmem_ have a `p` before it, too (pstart_pes).
Generic names are macros or inline functions, and call what a tool can define; a
tool that is C11 writes (shmem_sync)(...) where it defines one of shmem_sync,
shmem_wait_until, shmem_signal_set and shmem_signal_add, which are both."""

MPP_HEAD = """mpp/shmem.h - the header's place before OpenSHMEM 1.1 (deprecated). See ../shmem.h."""

PARTS = (
    Part("setup.h", """beginning, end and queries (OpenSHMEM 1.5: Library Setup, Exit, and Query;
Thread Support). See shmem.h.

The first call is shmem_init or shmem_init_thread, the last shmem_finalize; a program that leaves
main without it ends as if it had called it. The queries do not block.""",
         ("setup, query", "threads"), ("Beginning, end, queries", "Threads")),
    Part("memory.h", """the symmetric heap (OpenSHMEM 1.5: Memory Management). See shmem.h.

All PEs call these with the same arguments, in the same order; the block has the same offset in
each heap. Unless it says otherwise a call ends with a barrier of all PEs, which completes the
default context. A heap that cannot hold the block gives null on all PEs, and a line that says how
much is free.""",
         ("memory",), ("Memory",)),
    Part("teams.h", """teams and contexts (OpenSHMEM 1.5: Team Management, Communication Management;
1.6 for sessions and shmem_team_ptr). See shmem.h.

A team is a set of PEs, numbered from 0, for collectives. A context is a stream of operations with
its own order and completion; PEs in its calls count in its team. Making teams blocks until the
parent's PEs have called; the others do not block.""",
         ("teams", "contexts"), ("Teams", "Contexts")),
    Part("puts_gets.h", """puts and gets (OpenSHMEM 1.5: Remote Memory Access; 1.6 for blocks with
strides). See shmem.h.

One of `dest` and `source` is symmetric: that on `pe`, named by this PE's own address of it. The
other is any memory of this PE. A PE may be its own target; lengths may be 0. Nothing waits for
the other PE: a call blocks for as long as its copy takes, the _nbi forms not even that. Each call
has a form on a context, its first argument then (shmem_ctx_long_put); the others use
SHMEM_CTX_DEFAULT.""",
         ("put, get", "p, g", "iput, iget", "ibput, ibget", "put_nbi, get_nbi"),
         ("Blocks", "Single values", "Elements with strides", "Blocks with strides (1.6)", "Nonblocking")),
    Part("atomics.h", """atomic operations (OpenSHMEM 1.5: Atomic Memory Operations). See shmem.h.

On the symmetric object at `dest` (or `source`) of `pe`. They are atomic to each other, whichever
PE, thread or context they come from, as long as all use the same type. None waits for the other
PE. Each has a form on a context, its first argument then (shmem_ctx_long_atomic_add).""",
         ("AMO, fetching", "AMO, not fetching", "AMO, fetching, nbi"),
         ("They return the old value", "They return nothing", "Nonblocking")),
    Part("signals.h", """signals (OpenSHMEM 1.5: Signaling Operations; 1.6 for those without data).
See shmem.h.

A signal is a symmetric uint64_t that only these calls, and waits and tests, touch. Those that
reach another PE have a form on a context, its first argument then (shmem_ctx_putmem_signal).""",
         ("signals", "signal wait"), ("Puts with signals", "Waiting")),
    Part("collectives.h", """collectives (OpenSHMEM 1.5: Collective Routines; 1.6 for scans). See
shmem.h.

All PEs of the team call; `dest` and `source` are symmetric, and the same on all of them. Each
call blocks until this PE's `dest` is complete and its `source` may be reused. They return 0, or
not 0 on failure. Reductions and scans work in place (`dest` is `source`), the others on memory
that does not overlap. Element i of a reduction is made of the elements i of all PEs.""",
         ("barriers", "data collectives", "reductions", "scans"),
         ("Barriers", "Data", "Reductions", "Prefix sums (1.6)")),
    Part("waits.h", """waits and tests (OpenSHMEM 1.5: Point-To-Point Synchronization). See shmem.h.

On this PE's own variables, which other PEs change by puts, atomics or stores. wait_until blocks
until the condition holds; test returns 1 or 0, or the same number, at once. `cmp` is
SHMEM_CMP_... An element i whose `status[i]` is not 0 is left out; `status` may be null. A set
that is empty does not block: all is true, any is SIZE_MAX, some is 0.""",
         ("wait, test",), ("Waits and tests",)),
    Part("ordering.h", """order, completion, locks (OpenSHMEM 1.5: Memory Ordering, Distributed
Locking, Profiling Interface). See shmem.h.""",
         ("ordering", "locks", "profiling"), ("Order and completion", "Locks", "Profiling")),
    Part("deprecated.h", """calls that OpenSHMEM has deprecated, and still has (1.5: annex on
deprecated API). See shmem.h.

The collectives are those of an active set: `PE_size` PEs from `PE_start`, 2^`logPE_stride` apart.
Ferry leaves their work arrays alone: pSync and pWrk may even be null.""",
         ("deprecated",), ("Deprecated",)),
)

QUEUES_PART = Part(
    "queues.h", """calls that the stream of a queue makes (beyond OpenSHMEM; after NVSHMEM's
_on_stream and ishmem's _on_queue). See shmemx.h.

The call enqueues, and returns at once. When the stream reaches it, a thread of Ferry's makes the
call of the name without _on_queue; work that is enqueued on the stream afterwards runs once that
call has returned. Arguments are taken when it is enqueued, memory is used when it is made: `source` of a
put must stay until then, and so must a context (shmemx_ctx_long_put_on_queue; the others use
SHMEM_CTX_DEFAULT). The memory of puts and gets on this
PE may be any, memory of devices too. Calls on one queue are made in order, those on different
queues side by side. Collectives of one team belong on one queue, and the program makes none of
that team meanwhile; other PEs may make the call without a queue. If a PE gives a collective up,
such as when its device cannot copy, so do the others that need it (FERRY_ERR_CANCELLED); the next
collective is as good as any. After such a failure others may still be writing to `dest` of the call
that has failed: do not use it before the next collective of the team has ended.

Queues are those of ferry/stream.h: ferry_queue_init ties one to a stream, ferry_queue_wait waits
for all that is enqueued. A call that fails since a PE has died, has left or cannot be reached lets
the stream go on; ferry_queue_wait returns the first such failure (FERRY_ERR_PEER_DIED, ...) and
ferry_last_error has its sentence. Misuse ends the program, as everywhere, when the call is made;
a handle that names no queue, at once. shmem_finalize waits for calls that are enqueued.

They return 0, or an error of ferry.h, with a line on the standard error output, where the stream
takes nothing any more: it was destroyed, or its device has failed. Calling thread: as of others,
at any thread level.""",
    ("on queues",), ("Calls on queues",), ("ferry/stream.h", "types.h"))
