/* ferry/device/groups.h - the threads of a launch in groups: work-groups (CUDA's blocks), whose
 * threads may wait for one another, and their sub-groups (warps, waves).
 *
 * See platform.h for the languages. Launches are of one dimension, x, and of whole work-groups. All
 * threads of a group must come to its barrier; what each stored before it, all see after it. They
 * must come to a broadcast, too, which gives all of them its first thread's value; that of a
 * work-group is a barrier of it. */
#ifndef FERRY_DEVICE_GROUPS_H
#define FERRY_DEVICE_GROUPS_H

#include "ferry/device/platform.h"

#if defined(FERRY_DEVICE_IS_HOST)

/* ---- Emulated devices: each thread of a launch is one of the host (emulated.h) ---- */

/* A barrier at which `count` threads wait for one another, as often as they like. */
struct ferry_device_host_barrier {
  ferry_device_u32 count = 1;
  ferry_device_u32 arrived = 0;
  ferry_device_u32 round = 0;
  ferry_device_u64 word = 0; /* of a broadcast: on its way from one thread to all */
};

FERRY_DEVICE_FUNCTION void ferry_device_host_barrier_wait(ferry_device_host_barrier* barrier) {
  ferry_device_u32 round;
  if (barrier == nullptr) {
    return;
  }
  round = __atomic_load_n(&barrier->round, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == barrier->count) {
    __atomic_store_n(&barrier->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&barrier->round, round + 1, __ATOMIC_RELEASE);
    return;
  }
  while (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round) {
    sched_yield();
  }
}

FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_group_thread(void) {
  return ferry_device_host_thread.group_thread;
}
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_group_size(void) {
  return ferry_device_host_thread.group_size;
}
FERRY_DEVICE_FUNCTION void ferry_device_group_barrier(void) {
  ferry_device_host_barrier_wait(ferry_device_host_thread.group_barrier);
}
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_sub_group_thread(void) {
  return ferry_device_host_thread.sub_group_thread;
}
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_sub_group_size(void) {
  return ferry_device_host_thread.sub_group_size;
}
FERRY_DEVICE_FUNCTION void ferry_device_sub_group_barrier(void) {
  ferry_device_host_barrier_wait(ferry_device_host_thread.sub_group_barrier);
}
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_host_broadcast(
    ferry_device_host_barrier* barrier, ferry_device_u32 thread, ferry_device_u64 value) {
  if (barrier == nullptr) {
    return value;
  }
  if (thread == 0) {
    barrier->word = value;
  }
  ferry_device_host_barrier_wait(barrier);
  value = barrier->word;
  ferry_device_host_barrier_wait(barrier); /* before the next broadcast changes the word */
  return value;
}
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_group_broadcast(ferry_device_u64 value) {
  return ferry_device_host_broadcast(ferry_device_host_thread.group_barrier,
                                     ferry_device_host_thread.group_thread, value);
}
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_sub_group_broadcast(ferry_device_u64 value) {
  return ferry_device_host_broadcast(ferry_device_host_thread.sub_group_barrier,
                                     ferry_device_host_thread.sub_group_thread, value);
}

#elif defined(FERRY_DEVICE_IS_OPENCL)

FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_group_thread(void) {
  return (ferry_device_u32)get_local_id(0);
}
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_group_size(void) {
  return (ferry_device_u32)get_local_size(0);
}
FERRY_DEVICE_FUNCTION void ferry_device_group_barrier(void) {
  work_group_barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
}
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_group_broadcast(ferry_device_u64 value) {
  ferry_device_group_barrier();
  return work_group_broadcast(value, 0);
}
#if __OPENCL_C_VERSION__ < 300 || defined(__opencl_c_subgroups) || defined(cl_khr_subgroups)
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_sub_group_thread(void) {
  return get_sub_group_local_id();
}
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_sub_group_size(void) {
  return get_sub_group_size();
}
FERRY_DEVICE_FUNCTION void ferry_device_sub_group_barrier(void) {
  sub_group_barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
}
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_sub_group_broadcast(ferry_device_u64 value) {
  return sub_group_broadcast(value, 0);
}
#else /* a device without sub-groups: each thread is one */
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_sub_group_thread(void) { return 0; }
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_sub_group_size(void) { return 1; }
FERRY_DEVICE_FUNCTION void ferry_device_sub_group_barrier(void) {}
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_sub_group_broadcast(ferry_device_u64 value) {
  return value;
}
#endif

#elif defined(FERRY_DEVICE_IS_NVIDIA)

#define FERRY_DEVICE_WARP 32u

FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_group_thread(void) {
#if defined(__CUDACC__) && !defined(__clang__)
  return threadIdx.x;
#else
  return (ferry_device_u32)__nvvm_read_ptx_sreg_tid_x();
#endif
}
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_group_size(void) {
#if defined(__CUDACC__) && !defined(__clang__)
  return blockDim.x;
#else
  return (ferry_device_u32)__nvvm_read_ptx_sreg_ntid_x();
#endif
}
FERRY_DEVICE_FUNCTION void ferry_device_group_barrier(void) {
  __asm__ volatile("bar.sync 0;" : : : "memory");
}
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_sub_group_thread(void) {
  return ferry_device_group_thread() % FERRY_DEVICE_WARP;
}
/* The last warp of a group may be smaller. */
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_sub_group_size(void) {
  const ferry_device_u32 first =
      ferry_device_group_thread() / FERRY_DEVICE_WARP * FERRY_DEVICE_WARP;
  const ferry_device_u32 rest = ferry_device_group_size() - first;
  return rest < FERRY_DEVICE_WARP ? rest : FERRY_DEVICE_WARP;
}
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_sub_group_mask(void) {
  return 0xffffffffu >> (FERRY_DEVICE_WARP - ferry_device_sub_group_size());
}
FERRY_DEVICE_FUNCTION void ferry_device_sub_group_barrier(void) {
  const ferry_device_u32 all = ferry_device_sub_group_mask();
  __asm__ volatile("bar.warp.sync %0;" : : "r"(all) : "memory"); /* PTX 6.0 */
}
/* Broadcasts through a word that the threads of the group share, which OpenCL C cannot have outside
 * kernels. At the first barrier all threads have read the value that an earlier broadcast left
 * there. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_group_broadcast(ferry_device_u64 value) {
  ferry_device_u64 result;
  __asm__ volatile(
      "{\n\t.shared .align 8 .u64 ferry_word;\n\t"
      ".reg .pred %%first;\n\t"
      "setp.eq.u32 %%first, %2, 0;\n\t"
      "bar.sync 0;\n\t"
      "@%%first st.shared.u64 [ferry_word], %1;\n\t"
      "bar.sync 0;\n\t"
      "ld.shared.u64 %0, [ferry_word];\n\t}"
      : "=l"(result)
      : "l"(value), "r"(ferry_device_group_thread())
      : "memory");
  return result;
}
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_sub_group_broadcast(ferry_device_u64 value) {
  const ferry_device_u32 all = ferry_device_sub_group_mask();
  ferry_device_u32 low = (ferry_device_u32)value;
  ferry_device_u32 high = (ferry_device_u32)(value >> 32);
  __asm__ volatile("shfl.sync.idx.b32 %0, %0, 0, 31, %1;" : "+r"(low) : "r"(all));
  __asm__ volatile("shfl.sync.idx.b32 %0, %0, 0, 31, %1;" : "+r"(high) : "r"(all));
  return low | (ferry_device_u64)high << 32;
}

#else

/* Newer compilers have the function, older ones the constant. */
#if __has_builtin(__builtin_amdgcn_wavefrontsize)
#define FERRY_DEVICE_WAVE ((ferry_device_u32)__builtin_amdgcn_wavefrontsize())
#else
#define FERRY_DEVICE_WAVE ((ferry_device_u32)__AMDGCN_WAVEFRONT_SIZE)
#endif

FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_group_thread(void) {
  return __builtin_amdgcn_workitem_id_x();
}
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_group_size(void) {
  return __builtin_amdgcn_workgroup_size_x();
}
FERRY_DEVICE_FUNCTION void ferry_device_group_barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_sub_group_thread(void) {
  return ferry_device_group_thread() % FERRY_DEVICE_WAVE;
}
/* The last wave of a group may be smaller. */
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_sub_group_size(void) {
  const ferry_device_u32 wave = FERRY_DEVICE_WAVE;
  const ferry_device_u32 rest =
      ferry_device_group_size() - ferry_device_group_thread() / wave * wave;
  return rest < wave ? rest : wave;
}
/* The threads of a wave run in step, so fences are enough. */
FERRY_DEVICE_FUNCTION void ferry_device_sub_group_barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
#if defined(__OPENCL_C_VERSION__) /* OpenCL's library has the broadcast */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_group_broadcast(ferry_device_u64 value) {
  ferry_device_group_barrier();
  return work_group_broadcast(value, 0);
}
#else
/* At the first barrier all threads have read the value that an earlier broadcast left in `word`. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_group_broadcast(ferry_device_u64 value) {
  static FERRY_DEVICE_SHARED ferry_device_u64 word;
  ferry_device_group_barrier();
  if (ferry_device_group_thread() == 0) {
    word = value;
  }
  ferry_device_group_barrier();
  return word;
}
#endif
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_sub_group_broadcast(ferry_device_u64 value) {
  const ferry_device_u32 low = (ferry_device_u32)__builtin_amdgcn_readfirstlane((int)value);
  const ferry_device_u32 high =
      (ferry_device_u32)__builtin_amdgcn_readfirstlane((int)(value >> 32));
  return low | (ferry_device_u64)high << 32;
}

#endif

/* The number of the calling thread's work-group, from 0. */
FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_device_group(void) {
  return (ferry_device_u32)(ferry_device_thread() / ferry_device_group_size());
}

/* ---- Crews: the threads that carry out one call together ---- */

typedef struct {
  ferry_device_u32 thread; /* the calling thread's number, from 0; 0 leads */
  ferry_device_u32 count;
  ferry_device_u32 kind; /* FERRY_DEVICE_CREW_... */
} ferry_device_crew;

#define FERRY_DEVICE_CREW_THREAD 0u
#define FERRY_DEVICE_CREW_SUB_GROUP 1u
#define FERRY_DEVICE_CREW_GROUP 2u

FERRY_DEVICE_FUNCTION ferry_device_crew ferry_device_crew_of(ferry_device_u32 kind) {
  ferry_device_crew crew;
  crew.thread = 0;
  crew.count = 1;
  crew.kind = kind;
  if (kind == FERRY_DEVICE_CREW_GROUP) {
    crew.thread = ferry_device_group_thread();
    crew.count = ferry_device_group_size();
  } else if (kind == FERRY_DEVICE_CREW_SUB_GROUP) {
    crew.thread = ferry_device_sub_group_thread();
    crew.count = ferry_device_sub_group_size();
  }
  return crew;
}

FERRY_DEVICE_FUNCTION void ferry_device_crew_barrier(ferry_device_crew crew) {
  if (crew.kind == FERRY_DEVICE_CREW_GROUP) {
    ferry_device_group_barrier();
  } else if (crew.kind == FERRY_DEVICE_CREW_SUB_GROUP) {
    ferry_device_sub_group_barrier();
  }
}

/* Returns the leader's `value` to all threads of the crew; also a barrier of the crew. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_device_crew_broadcast(ferry_device_crew crew,
                                                                   ferry_device_u64 value) {
  if (crew.kind == FERRY_DEVICE_CREW_GROUP) {
    return ferry_device_group_broadcast(value);
  }
  if (crew.kind == FERRY_DEVICE_CREW_SUB_GROUP) {
    ferry_device_sub_group_barrier();
    return ferry_device_sub_group_broadcast(value);
  }
  return value;
}

/* LIST(M, suffix, kind) for each of the forms that a call has for groups; then, with a thread's. */
#define FERRY_DEVICE_GROUP_FORMS(LIST, M)          \
  LIST(M, _work_group, FERRY_DEVICE_CREW_GROUP)    \
  LIST(M, _block, FERRY_DEVICE_CREW_GROUP)         \
  LIST(M, _wg, FERRY_DEVICE_CREW_GROUP)            \
  LIST(M, _sub_group, FERRY_DEVICE_CREW_SUB_GROUP) \
  LIST(M, _warp, FERRY_DEVICE_CREW_SUB_GROUP)      \
  LIST(M, _wave, FERRY_DEVICE_CREW_SUB_GROUP)
#define FERRY_DEVICE_FORMS(LIST, M)   \
  LIST(M, , FERRY_DEVICE_CREW_THREAD) \
  FERRY_DEVICE_GROUP_FORMS(LIST, M)

#endif
