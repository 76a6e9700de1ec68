"""Functions beside those of OpenSHMEM 1.6: deprecated ones, and Ferry's own (shmemx_)."""

from element_types import OLD, OLD_EXTENDED
from family import plain


# ---- Deprecated: 1.5 still has them ----


def deprecated(reductions):
    old = plain("deprecated", "deprecated")
    active_set = "int PE_start, int logPE_stride, int PE_size"
    made = [
        old("", "void", "int npes", "As shmem_init; `npes` is ignored.", full_name="start_pes"),
        old("", "int", "", "As shmem_my_pe.", full_name="_my_pe"),
        old("", "int", "", "As shmem_n_pes.", full_name="_num_pes"),
        old("", "void*", "size_t size", "As shmem_malloc.", full_name="shmalloc"),
        old("", "void", "void* ptr", "As shmem_free.", full_name="shfree"),
        old("", "void*", "void* ptr, size_t size", "As shmem_realloc.", full_name="shrealloc"),
        old(
            "", "void*", "size_t alignment, size_t size", "As shmem_align.",
            full_name="shmemalign"),
        old(
            "barrier", "void", active_set + ", long* pSync",
            "As shmem_barrier_all, among the PEs of an active set."),
        old(
            "sync", "void", active_set + ", long* pSync",
            "Waits until all PEs of an active set have called it. Completes nothing."),
        old(
            "broadcast", "void",
            f"T* dest, const T* source, size_t nelems, int PE_root, {active_set}, long* pSync",
            "Copies the root's `source` to `dest` of the other PEs of an active set. The root, an "
            "index in the set, keeps its own `dest`.", sizes=(32, 64)),
        old(
            "collect", "void",
            f"T* dest, const T* source, size_t nelems, {active_set}, long* pSync",
            "Copies the blocks of the PEs of an active set to `dest` of all, one behind the "
            "other. Blocks may have any lengths.", sizes=(32, 64)),
        old(
            "fcollect", "void",
            f"T* dest, const T* source, size_t nelems, {active_set}, long* pSync",
            "Copies the blocks of the PEs of an active set to `dest` of all, one behind the "
            "other. Blocks have one length.", sizes=(32, 64)),
        old(
            "alltoall", "void",
            f"T* dest, const T* source, size_t nelems, {active_set}, long* pSync",
            "Copies block i of the `source` of each PE of an active set to the set's PE i.",
            sizes=(32, 64)),
        old(
            "alltoalls", "void",
            f"T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, {active_set},"
            f" long* pSync",
            "Copies block i of the `source` of each PE of an active set to the set's PE i. "
            "Elements lie `sst` apart in `source` and `dst` apart in `dest`.", sizes=(32, 64)),
    ]
    for name, _, types, doc in reductions:
        parameters = f"T* dest, const T* source, int nreduce, {active_set}, T* pWrk, long* pSync"
        made.append(old(name + "_to_all", "void", parameters, doc, types=types))
    amo = dict(generic=True)
    made += [
        old(
            "fetch", "T", "const T* source, int pe", "As shmem_atomic_fetch.", types=OLD_EXTENDED,
            **amo),
        old(
            "set", "void", "T* dest, T value, int pe", "As shmem_atomic_set.", types=OLD_EXTENDED,
            **amo),
        old(
            "swap", "T", "T* dest, T value, int pe", "As shmem_atomic_swap.", types=OLD_EXTENDED,
            **amo),
        old(
            "cswap", "T", "T* dest, T cond, T value, int pe", "As shmem_atomic_compare_swap.",
            types=OLD, **amo),
        old("finc", "T", "T* dest, int pe", "As shmem_atomic_fetch_inc.", types=OLD, **amo),
        old("inc", "void", "T* dest, int pe", "As shmem_atomic_inc.", types=OLD, **amo),
        old(
            "fadd", "T", "T* dest, T value, int pe", "As shmem_atomic_fetch_add.", types=OLD,
            **amo),
        old("add", "void", "T* dest, T value, int pe", "As shmem_atomic_add.", types=OLD, **amo),
        old(
            "wait", "void", "T* ivar, T cmp_value", "Blocks until `*ivar` is not `cmp_value`.",
            types=("short",) + OLD),
        old("", "void", "long* ivar, long cmp_value", "Blocks until `*ivar` is not `cmp_value`.",
            full_name="shmem_wait"),
        old(
            "", "void", "long* ivar, int cmp, long cmp_value",
            "As shmem_long_wait_until; C11 has it for every type.", full_name="shmem_wait_until"),
    ]
    return made


def also_there():
    also = plain("also", "also")
    return [
        also(
            "", "double", "", "Returns the seconds since some moment in the past; never goes back.",
            full_name="shmemx_wtime"),
        also(
            "", "void", "shmemx_heap_info_t* info",
            "Stores the size of this PE's symmetric heap, and how much of it is free.",
            full_name="shmemx_heap_info"),
        also(
            "", "void", "",
            "The first half of shmem_init: this process is a PE, and shmem_my_pe and shmem_n_pes "
            "tell which. Then come shmemx_heap_create, if wanted, and shmemx_heap_postinit; of "
            "OpenSHMEM's other calls only shmem_global_exit is good in between. Those of ferry.h "
            "are. Blocks as shmem_init does, but waits for no other PE.",
            full_name="shmemx_heap_preinit"),
        also(
            "", "int", "int requested, int* provided",
            "The first half of shmem_init_thread.",
            full_name="shmemx_heap_preinit_thread"),
        also(
            "", "void", "void* base, size_t size, int device_type, int device_index",
            "Names memory of the program's own as a symmetric heap beside that of shmem_malloc: "
            "every byte of it is symmetric, by its offset from `base`, from shmemx_heap_postinit "
            "(or shmem_init) to shmem_finalize. The program gives pieces of it out by itself, and "
            "frees it after that. All PEs name as much, or none; each names one such heap, which "
            "is one of SHMEMX_MOST_SPACES. It is memory of cuMemAlloc, hipMalloc or "
            "zeMemAllocDevice, or of ferry_alloc or MPI_Alloc_mem. `device_type` is "
            "SHMEMX_EXTERNAL_HEAP_*; that and the device are those of the memory, whatever the "
            "arguments say. Does not block. Calls, arguments and values are those of Sandia "
            "OpenSHMEM, on which Intel SHMEM builds.",
            full_name="shmemx_heap_create"),
        also(
            "", "void", "",
            "The second half of shmem_init. Collective over all PEs. A heap that another PE cannot "
            "reach ends the program, with a line that says why: memory of malloc, of pools, "
            "managed memory, an end behind that of the allocation.",
            full_name="shmemx_heap_postinit"),
        also(
            "", "shmemx_space_t", "int device, size_t size",
            "Makes a space: a symmetric heap of `size` bytes for each PE, in the memory of its "
            "device `device`. Collective over all PEs; they may name different devices, several "
            "the same one, and one PE several in turn. Returns SHMEMX_SPACE_INVALID on all PEs, "
            "with a line that says why, if one of them cannot have its part: there is no GPU "
            "backend, no such device or not so much memory, or there are SHMEMX_MOST_SPACES.",
            full_name="shmemx_space_create"),
        also(
            "", "void", "shmemx_space_t space",
            "Frees a space, with all blocks allocated in it, which no PE may use any more. "
            "Collective over all PEs. SHMEMX_SPACE_INVALID: nothing happens. shmem_finalize frees "
            "those that are left.",
            full_name="shmemx_space_destroy"),
        also(
            "", "void*", "shmemx_space_t space, size_t size",
            "As shmem_malloc, in the space. shmem_free and shmem_realloc take such blocks.",
            full_name="shmemx_space_malloc"),
        also(
            "", "void*", "shmemx_space_t space, size_t count, size_t size",
            "As shmem_calloc, in the space.",
            full_name="shmemx_space_calloc"),
        also(
            "", "void*", "shmemx_space_t space, size_t alignment, size_t size",
            "As shmem_align, in the space; `alignment` is at most that of the device's memory.",
            full_name="shmemx_space_align"),
        also(
            "", "void", "shmemx_space_t space, shmemx_space_info_t* info",
            "Stores the address and the size of this PE's part of the space, and how much of it "
            "is free.",
            full_name="shmemx_space_info"),
        also(
            "", "int", "",
            "Returns the number of devices (GPUs) of the GPU backend in use; 0 without one.",
            full_name="shmemx_device_count"),
        also(
            "", "void*", "shmem_team_t team, int device",
            "Makes a table by which kernels of the device reach the symmetric heaps of the team's "
            "PEs on this node (ferry/device/shmem.h): kernels get its address, and count PEs in "
            "the team. Collective over the team; PEs may name different devices, and one PE may "
            "have several tables. Pins the heaps. Returns null on all PEs of the team, with a line "
            "that says why, if one of them cannot have a table: there is no GPU backend, no such "
            "device, or too little memory to pin. Spaces that are made later are in it, too.",
            full_name="shmemx_device_prepare"),
        also(
            "", "void", "void* table",
            "Frees a table that no kernel uses any more, before its team is destroyed. Collective "
            "over the team. Null: nothing happens. shmem_finalize frees those that are left.",
            full_name="shmemx_device_release"),
    ]
