/* ferry/device/platform.h - the basics for code that runs on every device: threads, and atomic
 * operations on 64-bit words that CPUs and all devices of the node share.
 *
 * One header for OpenCL C 2.0 (clang to SPIR-V, PTX or AMD's code objects; the compiler of an
 * OpenCL run time, 3.0 too), CUDA C++ (nvcc, clang), HIP C++ and, for devices that are emulated,
 * C++17 on the host. It is written in what these have in common, so it includes nothing that a
 * device compiler may lack.
 *
 * Any number of threads of a launch may call any function; none blocks. Words are aligned to 8
 * bytes and lie in host memory that is pinned or registered, or in memory of a device that the
 * caller and all others who use the word reach. Orders of memory are C11's; "system" scope as in
 * CUDA's and OpenCL's memory models: all CPUs and devices of the node. */
#ifndef FERRY_DEVICE_PLATFORM_H
#define FERRY_DEVICE_PLATFORM_H

/* The compiler in use: exactly one of these is defined. A pass of nvcc or hipcc over the host's
 * half of a file counts as the host. */
#if defined(__NVPTX__) || defined(__CUDA_ARCH__)
#define FERRY_DEVICE_IS_NVIDIA 1
#elif defined(__AMDGCN__)
#define FERRY_DEVICE_IS_AMD 1
#elif defined( \
    __OPENCL_C_VERSION__) /* by what OpenCL has itself: SPIR-V, or the run time's compiler */
#define FERRY_DEVICE_IS_OPENCL 1
#elif defined(__cplusplus)
#define FERRY_DEVICE_IS_HOST 1
#include <sched.h>
#else
#error "ferry/device: compile for OpenCL C, CUDA, HIP or C++"
#endif

#if defined(__OPENCL_C_VERSION__)
#define FERRY_DEVICE_GLOBAL __global /* pointers to memory */
#define FERRY_DEVICE_LOCAL __local   /* pointers to a work-group's own */
#define FERRY_DEVICE_SHARED __local  /* a variable of a work-group, in its kernel */
#define FERRY_DEVICE_FUNCTION static inline
#define FERRY_DEVICE_KERNEL __kernel void
#elif defined(__CUDA__) || defined(__CUDACC__) || defined(__HIP__) || defined(__HIPCC__)
#define FERRY_DEVICE_GLOBAL
#define FERRY_DEVICE_LOCAL
#define FERRY_DEVICE_SHARED __attribute__((shared))
#define FERRY_DEVICE_FUNCTION static inline __attribute__((host)) __attribute__((device))
#define FERRY_DEVICE_KERNEL extern "C" __attribute__((global)) void
#else
#define FERRY_DEVICE_GLOBAL
#define FERRY_DEVICE_LOCAL
#define FERRY_DEVICE_FUNCTION static inline
#define FERRY_DEVICE_KERNEL static inline void
#endif

typedef signed char ferry_device_i8;
typedef unsigned char ferry_device_u8;
typedef short ferry_device_i16;
typedef unsigned short ferry_device_u16;
typedef int ferry_device_i32;
typedef unsigned int ferry_device_u32;
#if defined(__OPENCL_C_VERSION__)
typedef long ferry_device_i64;
typedef unsigned long ferry_device_u64;
#else
typedef long long ferry_device_i64;
typedef unsigned long long ferry_device_u64;
#endif

/* ---- Threads ---- */

#if defined(FERRY_DEVICE_IS_HOST)
struct ferry_device_host_barrier; /* groups.h */
/* The thread of a launch that a host thread plays; set by the code that runs device code on the
   host. By default the thread is a work-group, and a sub-group, by itself. */
struct ferry_device_host_place {
  ferry_device_u64 thread;
  ferry_device_u64 count;
  ferry_device_u32 group_thread = 0;
  ferry_device_u32 group_size = 1;
  ferry_device_u32 sub_group_thread = 0;
  ferry_device_u32 sub_group_size = 1;
  ferry_device_host_barrier* group_barrier = nullptr; /* null: there are no others to wait for */
  ferry_device_host_barrier* sub_group_barrier = nullptr;
};
inline thread_local ferry_device_host_place ferry_device_host_thread = {0, 1};
#endif

/* The calling thread's number in the whole launch, along x, from 0. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_thread(void) {
#if defined(FERRY_DEVICE_IS_OPENCL)
  return get_global_id(0);
#elif defined(FERRY_DEVICE_IS_NVIDIA) && defined(__CUDACC__) && !defined(__clang__)
  return (ferry_device_u64)blockIdx.x * blockDim.x + threadIdx.x;
#elif defined(FERRY_DEVICE_IS_NVIDIA)
  return (ferry_device_u64)(ferry_device_u32)__nvvm_read_ptx_sreg_ctaid_x() *
             (ferry_device_u32)__nvvm_read_ptx_sreg_ntid_x() +
         (ferry_device_u32)__nvvm_read_ptx_sreg_tid_x();
#elif defined(FERRY_DEVICE_IS_AMD)
  return (ferry_device_u64)__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
         __builtin_amdgcn_workitem_id_x();
#else
  return ferry_device_host_thread.thread;
#endif
}

/* Returns the number of threads of the launch along x. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_thread_count(void) {
#if defined(FERRY_DEVICE_IS_OPENCL)
  return get_global_size(0);
#elif defined(FERRY_DEVICE_IS_NVIDIA) && defined(__CUDACC__) && !defined(__clang__)
  return (ferry_device_u64)gridDim.x * blockDim.x;
#elif defined(FERRY_DEVICE_IS_NVIDIA)
  return (ferry_device_u64)(ferry_device_u32)__nvvm_read_ptx_sreg_nctaid_x() *
         (ferry_device_u32)__nvvm_read_ptx_sreg_ntid_x();
#elif defined(FERRY_DEVICE_IS_AMD)
  return __builtin_amdgcn_grid_size_x();
#else
  return ferry_device_host_thread.count;
#endif
}

/* Pauses for a moment: to be called between two looks at a word that another thread writes. */
FERRY_DEVICE_FUNCTION void ferry_device_pause(void) {
#if defined(FERRY_DEVICE_IS_NVIDIA)
  __asm__ volatile("nanosleep.u32 20;"); /* sm_70, PTX 6.3 */
#elif defined(FERRY_DEVICE_IS_AMD)
  __builtin_amdgcn_s_sleep(1);
#elif defined(FERRY_DEVICE_IS_OPENCL) && defined(__x86_64__)
  __asm__ volatile("pause");
#elif defined(FERRY_DEVICE_IS_HOST)
  sched_yield(); /* emulated threads may be more than there are CPUs */
#endif
}

/* ---- Words, at system scope ---- */

#if defined(FERRY_DEVICE_IS_OPENCL)

#define FERRY_DEVICE_ATOMIC(word) ((volatile __global atomic_ulong*)(word))
/* OpenCL 3.0 may lack the scope of all devices (on CPUs, where it makes no difference); then the
 * scope of the device is the widest. */
#if __OPENCL_C_VERSION__ >= 300 && !defined(__opencl_c_atomic_scope_all_devices)
#define FERRY_DEVICE_SCOPE memory_scope_device
#else
#define FERRY_DEVICE_SCOPE memory_scope_all_svm_devices
#endif

FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_load_relaxed(const FERRY_DEVICE_GLOBAL ferry_device_u64* word) {
  return atomic_load_explicit(FERRY_DEVICE_ATOMIC(word), memory_order_relaxed, FERRY_DEVICE_SCOPE);
}
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_load_acquire(const FERRY_DEVICE_GLOBAL ferry_device_u64* word) {
  return atomic_load_explicit(FERRY_DEVICE_ATOMIC(word), memory_order_acquire, FERRY_DEVICE_SCOPE);
}
FERRY_DEVICE_FUNCTION void ferry_device_store_relaxed(FERRY_DEVICE_GLOBAL ferry_device_u64* word,
                                                      ferry_device_u64 value) {
  atomic_store_explicit(FERRY_DEVICE_ATOMIC(word), value, memory_order_relaxed, FERRY_DEVICE_SCOPE);
}
FERRY_DEVICE_FUNCTION void ferry_device_store_release(FERRY_DEVICE_GLOBAL ferry_device_u64* word,
                                                      ferry_device_u64 value) {
  atomic_store_explicit(FERRY_DEVICE_ATOMIC(word), value, memory_order_release, FERRY_DEVICE_SCOPE);
}
/* These three acquire and release, and return the previous value. */
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_fetch_add(FERRY_DEVICE_GLOBAL ferry_device_u64* word, ferry_device_u64 value) {
  return atomic_fetch_add_explicit(FERRY_DEVICE_ATOMIC(word), value, memory_order_acq_rel,
                                   FERRY_DEVICE_SCOPE);
}
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_exchange(FERRY_DEVICE_GLOBAL ferry_device_u64* word, ferry_device_u64 value) {
  return atomic_exchange_explicit(FERRY_DEVICE_ATOMIC(word), value, memory_order_acq_rel,
                                  FERRY_DEVICE_SCOPE);
}
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_compare_exchange(FERRY_DEVICE_GLOBAL ferry_device_u64* word, ferry_device_u64 expected,
                              ferry_device_u64 desired) {
  atomic_compare_exchange_strong_explicit(FERRY_DEVICE_ATOMIC(word), &expected, desired,
                                          memory_order_acq_rel, memory_order_acquire,
                                          FERRY_DEVICE_SCOPE);
  return expected;
}
FERRY_DEVICE_FUNCTION void ferry_device_fence(void) { /* acquires and releases */
  atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, FERRY_DEVICE_SCOPE);
}
/* Acquires, releases, and orders a store before it and a load after it: of two threads that each
   store, then look at the other's word, at least one sees the other. */
FERRY_DEVICE_FUNCTION void ferry_device_full_fence(void) {
  atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, FERRY_DEVICE_SCOPE);
}

#elif defined(FERRY_DEVICE_IS_NVIDIA)

/* sm_70, PTX 6.0. */
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_load_relaxed(const FERRY_DEVICE_GLOBAL ferry_device_u64* word) {
  ferry_device_u64 value;
  __asm__ volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_load_acquire(const FERRY_DEVICE_GLOBAL ferry_device_u64* word) {
  ferry_device_u64 value;
  __asm__ volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
FERRY_DEVICE_FUNCTION void ferry_device_store_relaxed(FERRY_DEVICE_GLOBAL ferry_device_u64* word,
                                                      ferry_device_u64 value) {
  __asm__ volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}
FERRY_DEVICE_FUNCTION void ferry_device_store_release(FERRY_DEVICE_GLOBAL ferry_device_u64* word,
                                                      ferry_device_u64 value) {
  __asm__ volatile("st.release.sys.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_fetch_add(FERRY_DEVICE_GLOBAL ferry_device_u64* word, ferry_device_u64 value) {
  ferry_device_u64 before;
  __asm__ volatile("atom.acq_rel.sys.add.u64 %0, [%1], %2;"
                   : "=l"(before)
                   : "l"(word), "l"(value)
                   : "memory");
  return before;
}
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_exchange(FERRY_DEVICE_GLOBAL ferry_device_u64* word, ferry_device_u64 value) {
  ferry_device_u64 before;
  __asm__ volatile("atom.acq_rel.sys.exch.b64 %0, [%1], %2;"
                   : "=l"(before)
                   : "l"(word), "l"(value)
                   : "memory");
  return before;
}
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_compare_exchange(FERRY_DEVICE_GLOBAL ferry_device_u64* word, ferry_device_u64 expected,
                              ferry_device_u64 desired) {
  ferry_device_u64 before;
  __asm__ volatile("atom.acq_rel.sys.cas.b64 %0, [%1], %2, %3;"
                   : "=l"(before)
                   : "l"(word), "l"(expected), "l"(desired)
                   : "memory");
  return before;
}
FERRY_DEVICE_FUNCTION void ferry_device_fence(void) {
  __asm__ volatile("fence.acq_rel.sys;" : : : "memory");
}
FERRY_DEVICE_FUNCTION void ferry_device_full_fence(void) {
  __asm__ volatile("fence.sc.sys;" : : : "memory");
}

#else

/* AMD's compiler gives these operations the scope of the system; so do CPUs. */
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_load_relaxed(const FERRY_DEVICE_GLOBAL ferry_device_u64* word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_load_acquire(const FERRY_DEVICE_GLOBAL ferry_device_u64* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
FERRY_DEVICE_FUNCTION void ferry_device_store_relaxed(FERRY_DEVICE_GLOBAL ferry_device_u64* word,
                                                      ferry_device_u64 value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}
FERRY_DEVICE_FUNCTION void ferry_device_store_release(FERRY_DEVICE_GLOBAL ferry_device_u64* word,
                                                      ferry_device_u64 value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_fetch_add(FERRY_DEVICE_GLOBAL ferry_device_u64* word, ferry_device_u64 value) {
  return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_exchange(FERRY_DEVICE_GLOBAL ferry_device_u64* word, ferry_device_u64 value) {
  return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
}
FERRY_DEVICE_FUNCTION ferry_device_u64
ferry_device_compare_exchange(FERRY_DEVICE_GLOBAL ferry_device_u64* word, ferry_device_u64 expected,
                              ferry_device_u64 desired) {
  __atomic_compare_exchange_n(word, &expected, desired, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
FERRY_DEVICE_FUNCTION void ferry_device_fence(void) { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
FERRY_DEVICE_FUNCTION void ferry_device_full_fence(void) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif

#endif
