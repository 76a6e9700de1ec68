"""The lines of OpenSHMEM's tables: each function with its parameters, types and description."""

import dataclasses

from element_types import (
    AMO, AMO_BITWISE, AMO_EXTENDED, REDUCE_ARITHMETIC, REDUCE_BITWISE, REDUCE_ORDERED, RMA,
    TO_ALL_ARITHMETIC, TO_ALL_BITWISE, TO_ALL_ORDERED, WAIT,
)
from family import BITS, WITH_BYTES, Family, plain
from other_families import also_there, deprecated

# ---- Setup, memory, teams, contexts ----


def _setup():
    setup, threads, new = plain("setup, query"), plain("threads"), plain("setup, query", "1.6")
    return [
        setup(
            "init", "void", "",
            "Attaches to the job and makes the symmetric heap, for a program with one thread. "
            "Collective; blocks until all PEs have called it."),
        threads(
            "init_thread", "int", "int requested, int* provided",
            "As shmem_init, for a program with the thread level `requested`; `*provided` is at "
            "least that. Returns 0."),
        threads("query_thread", "void", "int* provided", "Stores the thread level in force."),
        new(
            "query_initialized", "void", "int* initialized",
            "`*initialized` is 1 between init and finalize, else 0. May be called at any time."),
        setup(
            "finalize", "void", "",
            "Completes all communication, destroys teams and the heap. Collective, with a "
            "barrier; may be followed by another shmem_init (1.6)."),
        setup(
            "global_exit", "void", "int status",
            "Ends all PEs of the job with this status. Does not return; needs no other PE."),
        setup("my_pe", "int", "", "Returns this PE's number, from 0."),
        setup("n_pes", "int", "", "Returns the number of PEs."),
        setup("pe_accessible", "int", "int pe", "Returns 1 if `pe` is a PE of the job, else 0."),
        setup(
            "addr_accessible", "int", "const void* addr, int pe",
            "Returns 1 if `addr` is symmetric, so that `pe` has an object there too; else 0."),
        setup(
            "ptr", "void*", "const void* dest, int pe",
            "Returns the address by which loads and stores of this PE reach `pe`'s object at the "
            "symmetric address `dest`; null if they do not reach it. Valid until finalize."),
        setup(
            "info_get_version", "void", "int* major, int* minor",
            "Stores the version of the standard. May be called at any time."),
        setup(
            "info_get_name", "void", "char* name",
            "Stores SHMEM_VENDOR_STRING in `name`, which has at least SHMEM_MAX_NAME_LEN chars. "
            "May be called at any time."),
    ]


def _memory():
    memory = plain("memory")
    return [
        memory(
            "malloc", "void*", "size_t size",
            "Allocates `size` bytes, aligned for every type. Size 0 gives null, without a "
            "barrier."),
        memory(
            "calloc", "void*", "size_t count, size_t size",
            "Allocates `count` objects of `size` bytes, all zero."),
        memory(
            "align", "void*", "size_t alignment, size_t size",
            "Allocates `size` bytes at a multiple of `alignment`, a power of two from "
            "sizeof(void*) to 256 MiB."),
        memory(
            "malloc_with_hints", "void*", "size_t size, long hints",
            "As shmem_malloc; `hints` (SHMEM_MALLOC_...) name the use of the memory."),
        memory(
            "realloc", "void*", "void* ptr, size_t size",
            "Changes the size of a block, which may move. Null `ptr`: as malloc. Size 0: as free."),
        memory(
            "free", "void", "void* ptr",
            "Gives a block back, after a barrier. Null: nothing happens, without a barrier."),
    ]


def _teams():
    team, new = plain("teams"), plain("teams", "1.6")
    return [
        team(
            "team_my_pe", "int", "shmem_team_t team",
            "Returns this PE's number in the team; -1 for SHMEM_TEAM_INVALID."),
        team(
            "team_n_pes", "int", "shmem_team_t team",
            "Returns the number of the team's PEs; -1 for SHMEM_TEAM_INVALID."),
        team(
            "team_get_config", "int",
            "shmem_team_t team, long config_mask, shmem_team_config_t* config",
            "Stores the parts of the team's configuration that `config_mask` names, as its "
            "creator passed them. Returns 0; not 0 for SHMEM_TEAM_INVALID."),
        team(
            "team_translate_pe", "int", "shmem_team_t src_team, int src_pe, shmem_team_t dest_team",
            "Returns the number in `dest_team` of the PE that is `src_pe` in `src_team`; -1 if it "
            "is not in both, or a team is invalid."),
        team(
            "team_split_strided", "int",
            "shmem_team_t parent_team, int start, int stride, int size, const "
            "shmem_team_config_t* config, long config_mask, shmem_team_t* new_team",
            "Makes a team of the parent's PEs start, start + stride, ... Collective over the "
            "parent; PEs outside get SHMEM_TEAM_INVALID. Returns 0 on success."),
        team(
            "team_split_2d", "int",
            "shmem_team_t parent_team, int xrange, const shmem_team_config_t* xaxis_config, long "
            "xaxis_mask, shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config, long "
            "yaxis_mask, shmem_team_t* yaxis_team",
            "Lays the parent's PEs out in rows of `xrange`; makes teams of rows (x) and of "
            "columns (y). Collective over the parent. Returns 0 on success."),
        team(
            "team_destroy", "void", "shmem_team_t team",
            "Destroys the team and its contexts, but the private ones. Collective over the team."),
        new(
            "team_ptr", "void*", "shmem_team_t team, const void* dest, int pe",
            "As shmem_ptr, where `pe` counts in the team; null for SHMEM_TEAM_INVALID."),
    ]


def _contexts():
    ctx, new = plain("contexts"), plain("contexts", "1.6")
    return [
        ctx(
            "ctx_create", "int", "long options, shmem_ctx_t* ctx",
            "Makes a context for all PEs. Not collective. Returns 0, or not 0, with "
            "SHMEM_CTX_INVALID, if there can be no more."),
        ctx(
            "team_create_ctx", "int", "shmem_team_t team, long options, shmem_ctx_t* ctx",
            "As shmem_ctx_create, for a context that numbers PEs as the team does."),
        ctx(
            "ctx_destroy", "void", "shmem_ctx_t ctx",
            "Completes the context's operations, and destroys it. SHMEM_CTX_INVALID: nothing "
            "happens."),
        ctx(
            "ctx_get_team", "int", "shmem_ctx_t ctx, shmem_team_t* team",
            "Stores the team whose numbers the context uses. Returns 0; not 0, with "
            "SHMEM_TEAM_INVALID, for SHMEM_CTX_INVALID."),
        new(
            "ctx_session_start", "void",
            "shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t* config, long "
            "config_mask",
            "Gives hints for the operations until ctx_session_stop. They change no result."),
        new("ctx_session_stop", "void", "shmem_ctx_t ctx", "Ends what ctx_session_start began."),
    ]


# ---- Puts, gets, atomics, signals ----


def _puts_and_gets():
    def both(group, verb, suffix, parameters, put_doc, get_doc, sizes, **more):
        docs = {"put": put_doc, "get": get_doc}
        return [
            Family(group, verb % way, parameters, docs[way], suffix=suffix,
                   types=RMA, sizes=sizes, context=True, generic=True, **more)
            for way in ("put", "get")
        ]

    block = "T* dest, const T* source, size_t nelems, int pe"
    strides = "T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, "
    return [
        *both("put, get", "%s", "", block,
              "Copies `nelems` elements to `dest` of `pe`. `source` may be reused on return; "
              "delivered by fence, quiet or barrier.",
              "Copies `nelems` elements from `source` of `pe`. They are in `dest` on return.",
              WITH_BYTES),
        Family(
            "p, g", "p", "T* dest, T value, int pe", "Writes one value to `dest` of `pe`.",
            types=RMA, context=True, generic=True),
        Family(
            "p, g", "g", "const T* source, int pe", "Returns the value at `source` of `pe`.",
            result="T", types=RMA, context=True, generic=True),
        *both("iput, iget", "i%s", "", strides + "size_t nelems, int pe",
              "Copies `nelems` elements, `sst` elements apart in `source`, to `dest` of `pe`, "
              "`dst` elements apart.",
              "Copies `nelems` elements, `sst` elements apart in `source` of `pe`, to `dest`, "
              "`dst` elements apart.", BITS),
        *both("ibput, ibget", "ib%s", "", strides + "size_t bsize, size_t nblocks, int pe",
              "Copies `nblocks` blocks of `bsize` elements, whose beginnings lie `sst` elements "
              "apart in `source`, to `dest` of `pe`, `dst` elements apart (1.6).",
              "Copies `nblocks` blocks of `bsize` elements, whose beginnings lie `sst` elements "
              "apart in `source` of `pe`, to `dest`, `dst` elements apart (1.6).",
              BITS, standard="1.6"),
        *both("put_nbi, get_nbi", "%s", "_nbi", block,
              "Begins to copy `nelems` elements to `dest` of `pe`. `source` may be reused after a "
              "quiet.",
              "Begins to copy `nelems` elements from `source` of `pe`. They are in `dest` after a "
              "quiet.", WITH_BYTES),
    ]


_AMOS = (  # name, parameters behind the pointer for the result, types, description, fetches?
    ("fetch", "const T* source", AMO_EXTENDED, "Reads the value.", True),
    ("compare_swap", "T* dest, T cond, T value", AMO, "Writes `value` if the old one is `cond`.", True),
    ("swap", "T* dest, T value", AMO_EXTENDED, "Writes `value`.", True),
    ("fetch_inc", "T* dest", AMO, "Adds 1.", True),
    ("fetch_add", "T* dest, T value", AMO, "Adds `value`.", True),
    ("fetch_and", "T* dest, T value", AMO_BITWISE, "Bitwise AND with `value`.", True),
    ("fetch_or", "T* dest, T value", AMO_BITWISE, "Bitwise OR.", True),
    ("fetch_xor", "T* dest, T value", AMO_BITWISE, "Bitwise XOR.", True),
    ("set", "T* dest, T value", AMO_EXTENDED, "Writes `value`.", False),
    ("inc", "T* dest", AMO, "Adds 1.", False),
    ("add", "T* dest, T value", AMO, "Adds `value`.", False),
    ("and", "T* dest, T value", AMO_BITWISE, "Bitwise AND with `value`.", False),
    ("or", "T* dest, T value", AMO_BITWISE, "Bitwise OR.", False),
    ("xor", "T* dest, T value", AMO_BITWISE, "Bitwise XOR.", False),
)


def _atomics():
    made = []
    for name, parameters, types, doc, fetches in _AMOS:
        made.append(Family(
            "AMO, fetching" if fetches else "AMO, not fetching", "atomic_" + name, parameters + ", int pe",
            doc + (" Returns the old value." if fetches else ""), result="T" if fetches else "void",
            types=types, context=True, generic=True))
    for name, parameters, types, doc, fetches in _AMOS:
        if fetches:
            made.append(Family(
                "AMO, fetching, nbi", "atomic_" + name, "T* fetch, " + parameters + ", int pe",
                doc + " The old value is in `*fetch` after a quiet.", suffix="_nbi", types=types,
                context=True, generic=True))
    return made


def _signals():
    parameters = (
        "T* dest, const T* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, "
        "int pe")
    common = dict(types=RMA, sizes=WITH_BYTES, context=True, generic=True)
    word = "uint64_t* sig_addr, uint64_t signal, int pe"
    signal, new = plain("signals"), plain("signals", "1.6")
    wait = plain("signal wait")
    return [
        Family(
            "signals", "put", parameters,
            "Copies `nelems` elements to `dest` of `pe`, and updates the signal at `sig_addr` "
            "there: a thread that sees the signal sees the data. `sig_op`: SHMEM_SIGNAL_SET or "
            "_ADD.", suffix="_signal", **common),
        Family(
            "signals", "put", parameters,
            "Begins to copy `nelems` elements to `dest` of `pe`, and to update the signal at "
            "`sig_addr` there behind them. `source` may be reused after a quiet.",
            suffix="_signal_nbi", **common),
        signal(
            "signal_fetch", "uint64_t", "const uint64_t* sig_addr",
            "Returns the value of this PE's own signal."),
        new("signal_set", "void", word, "Sets a signal of `pe` (1.6).", context=True),
        new("signal_add", "void", word, "Adds to a signal of `pe` (1.6).", context=True),
        wait(
            "signal_wait_until", "uint64_t", "uint64_t* sig_addr, int cmp, uint64_t cmp_value",
            "Blocks until this PE's own signal compares with `cmp_value` by `cmp`, and returns "
            "its value then."),
    ]


# ---- Collectives ----


def _collectives():
    barrier = plain("barriers")
    data = dict(types=RMA, sizes=("mem",), generic=True, result="int")
    group = "data collectives"
    block = "shmem_team_t team, T* dest, const T* source, size_t nelems"
    strided = "shmem_team_t team, T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems"
    return [
        barrier(
            "barrier_all", "void", "",
            "Completes this PE's operations on the default context, and waits until all PEs have "
            "done so."),
        barrier(
            "sync_all", "void", "",
            "Waits until all PEs have called it. Completes stores, but no other operations."),
        barrier(
            "team_sync", "int", "shmem_team_t team",
            "Waits until all PEs of the team have called it. Completes stores, but no other "
            "operations. C11 and C++ call it shmem_sync(team), too."),
        Family(
            group, "broadcast", block + ", int PE_root",
            "Copies the root's `source` to `dest` of all PEs of the team, the root's too.", **data),
        Family(
            group, "collect", block,
            "Copies the PEs' blocks to `dest` of all, one behind the other, by PE. `nelems` may "
            "differ, and be 0.",
            **data),
        Family(
            group, "fcollect", block,
            "Copies the PEs' blocks to `dest` of all, one behind the other, by PE. `nelems` is "
            "equal on all.", **data),
        Family(
            group, "alltoall", block,
            "Copies block i of PE j's `source` to block j of PE i's `dest`; blocks have `nelems` "
            "elements.", **data),
        Family(
            group, "alltoalls", strided,
            "Copies block i of PE j's `source` to block j of PE i's `dest`; blocks have `nelems` "
            "elements, `sst` apart in `source` and `dst` apart in `dest`.", **data),
    ]


_REDUCTIONS = (  # name, types of the team's, types of the active set's, the result
    ("and", REDUCE_BITWISE, TO_ALL_BITWISE, "Bitwise AND over the PEs, element by element."),
    ("or", REDUCE_BITWISE, TO_ALL_BITWISE, "Bitwise OR over the PEs, element by element."),
    ("xor", REDUCE_BITWISE, TO_ALL_BITWISE, "Bitwise XOR over the PEs, element by element."),
    ("max", REDUCE_ORDERED, TO_ALL_ORDERED, "Maximum over the PEs, element by element."),
    ("min", REDUCE_ORDERED, TO_ALL_ORDERED, "Minimum over the PEs, element by element."),
    ("sum", REDUCE_ARITHMETIC, TO_ALL_ARITHMETIC, "Sum over the PEs, element by element."),
    ("prod", REDUCE_ARITHMETIC, TO_ALL_ARITHMETIC, "Product over the PEs, element by element."),
)


def _reductions():
    parameters = "shmem_team_t team, T* dest, const T* source, size_t nreduce"
    common = dict(result="int", generic=True)
    made = [Family("reductions", name + "_reduce", parameters, doc, types=types, **common)
            for name, types, _, doc in _REDUCTIONS]
    scan = dict(types=REDUCE_ARITHMETIC, standard="1.6", **common)
    return made + [
        Family(
            "scans", "sum_inscan", parameters.replace("nreduce", "nelems"),
            "Sum over the PEs up to this one (1.6).", **scan),
        Family(
            "scans", "sum_exscan", parameters.replace("nreduce", "nelems"),
            "Sum over the PEs before this one; 0 on the first (1.6).", **scan),
    ]


# ---- Waits and tests, ordering, locks ----


def _waits():
    one = "T* ivar, int cmp, T cmp_value"
    forms = (  # suffix, parameters, result of the wait, of the test, doc of both
        (
            "", one, "void", "int",
            "A wait blocks until `*ivar` compares with `cmp_value` by `cmp`; a test returns 1 if "
            "it does, else 0.", "deprecated"),
        (
            "_all", "T* ivars, size_t nelems, const int* status, int cmp, T cmp_value", "void",
            "int",
            "A wait blocks until all of `ivars` compare with `cmp_value` by `cmp`; a test returns "
            "1 if they do, else 0.", "also"),
        (
            "_any", "T* ivars, size_t nelems, const int* status, int cmp, T cmp_value", "size_t",
            "size_t",
            "Returns the index of one of `ivars` that compares with `cmp_value` by `cmp`, or "
            "SIZE_MAX. A wait blocks until one does. Of several, each is found by one of many "
            "calls.", "also"),
        (
            "_some",
            "T* ivars, size_t nelems, size_t* indices, const int* status, int cmp, T cmp_value",
            "size_t", "size_t",
            "Returns how many of `ivars` compare with `cmp_value` by `cmp`, and stores their "
            "`indices`. A wait blocks until at least one does.", "also"),
        (
            "_all_vector",
            "T* ivars, size_t nelems, const int* status, int cmp, const T* cmp_values", "void",
            "int",
            "A wait blocks until all of `ivars` compare by `cmp`, each with its own value; a test "
            "returns 1 if they do, else 0.", ""),
        (
            "_any_vector",
            "T* ivars, size_t nelems, const int* status, int cmp, const T* cmp_values", "size_t",
            "size_t",
            "Returns the index of one of `ivars` that compares by `cmp` with its own value, or "
            "SIZE_MAX. A wait blocks until one does. Of several, each is found by one of many "
            "calls.", ""),
        (
            "_some_vector",
            "T* ivars, size_t nelems, size_t* indices, const int* status, int cmp, const T* "
            "cmp_values", "size_t", "size_t",
            "Returns how many of `ivars` compare by `cmp`, each with its own value, and stores "
            "their `indices`. A wait blocks until at least one does.", ""),
    )
    made = []
    for stem, which in (("wait_until", 2), ("test", 3)):
        for form in forms:
            shorts = dict(more_types=("short", "ushort"), more_standard=form[5]) if form[5] else {}
            made.append(Family("wait, test", stem, form[1], form[4], result=form[which], suffix=form[0],
                               types=WAIT + shorts.get("more_types", ()), generic=True, **shorts))
    return made


def _ordering():
    order, new = plain("ordering"), plain("ordering", "1.6")
    lock, profiling = plain("locks"), plain("profiling")
    return [
        order(
            "fence", "void", "",
            "Puts, atomics and signals before it arrive at each PE before those after it.",
            context=True),
        order(
            "quiet", "void", "",
            "Blocks until all operations of the context are complete, gets too.", context=True),
        new(
            "pe_quiet", "void", "const int* target_pes, size_t npes",
            "Blocks until all operations of the context on these PEs are complete, gets too "
            "(1.6).",
            context=True),
        lock(
            "set_lock", "void", "long* lock",
            "Blocks until the lock, a symmetric long that began as 0, is this PE's. First come, "
            "first served."),
        lock(
            "clear_lock", "void", "long* lock",
            "Completes this PE's operations on the default context, and gives the lock up."),
        lock(
            "test_lock", "int", "long* lock",
            "Takes the lock if it is free: returns 0; else 1, without blocking."),
        profiling(
            "pcontrol", "void", "int level, ...", "Does nothing; for tools to take."),
    ]


# ---- On queues: calls that the stream of a queue makes ----

_ON_QUEUES = (
    "put get p g iput iget ibput ibget put_nbi get_nbi put_signal put_signal_nbi signal_set signal_add "
    "signal_wait_until wait_until wait_until_all fence quiet barrier_all sync_all team_sync broadcast "
    "collect fcollect alltoall alltoalls sum_inscan sum_exscan"
).split() + [name + "_reduce" for name, *_ in _REDUCTIONS]


def _on_queue(family):
    called = ("shmem_TYPE_" if family.types else "shmem_") + family.stem + family.suffix
    found = "T* found" if family.key == "g" else ""  # in place of its result
    return dataclasses.replace(
        family, group="on queues", prefix="shmemx_", suffix=family.suffix + "_on_queue",
        parameters=", ".join(filter(None, (family.parameters, found, "ferry_queue queue"))),
        result="int", sizes=tuple(size for size in family.sizes if size == "mem"), generic=False,
        standard="also", more_types=(), more_standard="",
        doc=f"As {called}, once the queue's stream reaches the call."
            + (" The value is in `*found` then." if found else ""))


_CALLED = (
    _setup() + _memory() + _teams() + _contexts() + _puts_and_gets() + _atomics() + _signals()
    + _collectives() + _reductions() + _waits() + _ordering()
)
FAMILIES = _CALLED + [_on_queue(each) for each in _CALLED if each.key in _ON_QUEUES] + also_there()
DEPRECATED = deprecated(_REDUCTIONS)
