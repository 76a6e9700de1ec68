/* ferry/device/shmem/reductions.h - reductions and scans over the team of a table. See
 * ferry/device/shmem.h, and collectives.h for what all collectives have in common.
 *
 *   int shmemx_device_TYPE_sum_reduce(d, dest, source, nreduce)    in all forms
 *   and prod, min, max; and, or, xor of the types that OpenSHMEM has them for
 *   int shmemx_device_TYPE_sum_inscan, _sum_exscan(d, dest, source, nelems): the sums of the PEs up
 *   to the own one, with it or without it; without any it is 0
 *
 * Each PE computes a share of the elements for all: it loads them from all PEs, in the order of the
 * PEs, and stores the result into all. So results are the same on all PEs, each element crosses a
 * link twice, and `dest` may be `source`. Where loads and stores do not reach all PEs, it works on
 * copies of the others' elements, part by part.
 *
 * Up to FERRY_SHMEM_SMALL_BYTES of the heap in host memory are *small*: each PE stores its elements
 * into the areas of all, with its round, and computes all results by itself. That takes one meeting
 * in place of two, and no load across a link. */
#ifndef FERRY_DEVICE_SHMEM_REDUCTIONS_H
#define FERRY_DEVICE_SHMEM_REDUCTIONS_H

#include "ferry/device/shmem/collectives.h"
#include "ferry/device/shmem/table.h"
#include "ferry/device/shmem/types.h"

#define FERRY_SHMEM_SMALL_BYTES (8 * FERRY_SHMEM_VALUES)

/* Returns the number of elements, of `count`, in the shares of the PEs before `pe`. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_share(shmemx_device_t d, ferry_device_u64 count,
                                                         int pe) {
  const ferry_device_u64 pes = (ferry_device_u64)d.pe_count;
  /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a team has PEs */
  const ferry_device_u64 rest = count % pes;
  const ferry_device_u64 before = (ferry_device_u64)pe;
  return count / pes * before + (before < rest ? before : rest);
}

/* The work of this PE: its share, in parts. */
typedef struct {
  ferry_device_u64 dest_address; /* as the caller has it */
  ferry_device_u64 source_address;
  ferry_shmem_place dest;
  ferry_shmem_place source;
  ferry_device_u64 size;  /* of an element */
  ferry_device_u64 first; /* the part goes from this element on */
  ferry_device_u64 last;  /* to before this one, */
  ferry_device_u64 end;   /* the share to before that one */
  ferry_device_u64 slots; /* copies of the PEs' parts; 0: loads and stores reach them */
  ferry_device_u64 slot_bytes;
  int is_small; /* the slots are the values of this PE's members, all of which have come */
  int mark;     /* what had failed before (asked_operations.h) */
  int status;
} ferry_shmem_task;

/* Returns true if loads and stores reach this heap of all PEs. */
FERRY_DEVICE_FUNCTION int ferry_shmem_reaches_all(shmemx_device_t d, int heap) {
  int pe;
  for (pe = 0; pe < d.pe_count; ++pe) {
    if (d.ways[pe].heaps[heap] == 0) {
      return 0;
    }
  }
  return 1;
}

/* Returns word `word` of `bytes` bytes of elements of `size` bytes each. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_word_of(ferry_device_u64 from,
                                                           ferry_device_u64 bytes,
                                                           ferry_device_u64 size, int word) {
  const ferry_device_u64 first = (ferry_device_u64)word * 8;
  ferry_device_u64 value = 0;
  ferry_device_u64 i;
  for (i = 0; i < 8 && first + i < bytes; i += size) {
    value |=
        ferry_device_load_unit((const FERRY_DEVICE_GLOBAL ferry_device_u8*)(from + first + i), size)
        << 8 * i;
  }
  return value;
}

/* Stores this PE's elements into the areas of all, and returns once theirs are here. */
FERRY_DEVICE_FUNCTION void ferry_shmem_begin_small(shmemx_device_t d, ferry_device_crew crew,
                                                   ferry_shmem_task* task, ferry_device_u64 bytes) {
  const ferry_device_u64 from = d.ways[d.pe].heaps[0] + task->source.offset;
  const int mark = ferry_shmem_mark(d, crew, 1);
  int parity;
  int pe;
  int word;
  ferry_device_fence();
  ferry_device_crew_barrier(crew); /* the last round is noted, all threads have stored */
  parity = (int)((ferry_device_load_relaxed(&d.own->round) + 1) % 2);
  for (pe = (int)crew.thread; pe < d.pe_count; pe += (int)crew.count) {
    for (word = 0; (ferry_device_u64)word * 8 < bytes; ++word) {
      ferry_shmem_store_member(d, pe,
                               FERRY_SHMEM_MEMBER_VALUES + parity * FERRY_SHMEM_VALUES + word,
                               ferry_shmem_word_of(from, bytes, task->size, word));
    }
  }
  /* A PE whose values may not have arrived does not come to the meeting. */
  task->status = ferry_shmem_end(d, crew, mark, SHMEMX_DEVICE_SUCCESS);
  task->is_small = 1;
  task->first = 0;
  task->end = bytes / task->size;
  task->slots = (ferry_device_u64)&ferry_shmem_own_member(d, 0)->values[parity][0];
  task->slot_bytes = sizeof(ferry_shmem_member);
}

/* Begins a reduction; returns once all PEs have their `source`. */
FERRY_DEVICE_FUNCTION ferry_shmem_task ferry_shmem_begin(shmemx_device_t d, ferry_device_crew crew,
                                                         ferry_device_u64 dest,
                                                         ferry_device_u64 source,
                                                         ferry_device_u64 count,
                                                         ferry_device_u64 size) {
  const ferry_device_u64 bytes = count * size;
  ferry_shmem_task task;
  task.dest_address = dest;
  task.source_address = source;
  task.dest = ferry_shmem_find(d, dest, bytes, d.pe);
  task.source = ferry_shmem_find(d, source, bytes, d.pe);
  task.size = size;
  task.first = ferry_shmem_share(d, count, d.pe);
  task.last = task.first;
  task.end = ferry_shmem_share(d, count, d.pe + 1);
  task.slots = 0;
  task.slot_bytes = 0;
  task.is_small = 0;
  task.mark = SHMEMX_DEVICE_SUCCESS;
  task.status = task.dest.status != SHMEMX_DEVICE_SUCCESS ? task.dest.status : task.source.status;
  if (bytes / size != count) {
    task.status = SHMEMX_DEVICE_ERR_BUFFER;
  } else if (task.status == SHMEMX_DEVICE_SUCCESS && bytes != 0 &&
             bytes <= FERRY_SHMEM_SMALL_BYTES && task.dest.heap == 0 && task.source.heap == 0 &&
             (d.is_one_node || d.table->ring != 0)) {
    ferry_shmem_begin_small(d, crew, &task, bytes);
    return task;
  } else if (task.status == SHMEMX_DEVICE_SUCCESS &&
             !(ferry_shmem_reaches_all(d, task.dest.heap) &&
               ferry_shmem_reaches_all(d, task.source.heap))) {
    task.slots = d.table->ring == 0 ? 0 : d.table->scratch;
    task.slot_bytes = d.table->scratch_bytes / (ferry_device_u64)d.pe_count / 16 * 16;
    task.status = task.slots == 0 ? SHMEMX_DEVICE_ERR_UNSUPPORTED : SHMEMX_DEVICE_SUCCESS;
  }
  if (task.status == SHMEMX_DEVICE_SUCCESS) {
    task.status = ferry_shmem_meet(d, crew);
  }
  if (task.status == SHMEMX_DEVICE_SUCCESS && task.slots != 0) {
    task.mark = ferry_shmem_mark(d, crew, 1);
  }
  return task;
}

FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_slot_of(ferry_shmem_task task, int pe) {
  return task.slots + (ferry_device_u64)pe * task.slot_bytes;
}

/* Returns true if there is another part; then all of its elements are within reach. */
FERRY_DEVICE_FUNCTION int ferry_shmem_begin_part(shmemx_device_t d, ferry_device_crew crew,
                                                 ferry_shmem_task* task) {
  const ferry_device_u64 most = task->slot_bytes / task->size;
  int pe;
  if (task->status != SHMEMX_DEVICE_SUCCESS || task->first == task->end) {
    return 0;
  }
  task->last = task->end;
  if (task->slots == 0 || task->is_small) {
    return 1;
  }
  if (task->end - task->first > most) {
    task->last = task->first + most;
  }
  for (pe = 0; pe < d.pe_count && task->status == SHMEMX_DEVICE_SUCCESS; ++pe) {
    task->status = ferry_shmem_begin_get(d, crew, ferry_shmem_slot_of(*task, pe),
                                         task->source_address + task->first * task->size,
                                         (task->last - task->first) * task->size, pe, 1);
  }
  task->status = ferry_shmem_outcome(d, crew, task->mark, task->status, -1);
  return task->status == SHMEMX_DEVICE_SUCCESS;
}

/* Stores this PE's results into `dest`. */
FERRY_DEVICE_FUNCTION void ferry_shmem_end_small(shmemx_device_t d, ferry_device_crew crew,
                                                 ferry_shmem_task* task) {
  const ferry_device_u64 from = ferry_shmem_slot_of(*task, d.pe);
  const ferry_device_u64 to = d.ways[d.pe].heaps[0] + task->dest.offset;
  ferry_device_u64 i;
  for (i = crew.thread; i < task->end; i += crew.count) { /* each thread stores its results */
    ferry_device_store_unit(
        (FERRY_DEVICE_GLOBAL ferry_device_u8*)(to + i * task->size),
        ferry_device_load_unit((const FERRY_DEVICE_GLOBAL ferry_device_u8*)(from + i * task->size),
                               task->size),
        task->size);
  }
  ferry_device_fence();
  ferry_device_crew_barrier(crew);
}

/* Puts the results of the part into the `dest` of all PEs. */
FERRY_DEVICE_FUNCTION void ferry_shmem_end_part(shmemx_device_t d, ferry_device_crew crew,
                                                ferry_shmem_task* task) {
  int pe;
  if (task->is_small) {
    ferry_shmem_end_small(d, crew, task);
  } else if (task->slots != 0) {
    ferry_device_fence(); /* this thread's results, before the leader asks for their puts */
    ferry_device_crew_barrier(crew);
    for (pe = 0; pe < d.pe_count && task->status == SHMEMX_DEVICE_SUCCESS; ++pe) {
      task->status = ferry_shmem_begin_put(d, crew, task->dest_address + task->first * task->size,
                                           ferry_shmem_slot_of(*task, pe),
                                           (task->last - task->first) * task->size, pe, 1);
    }
    task->status = ferry_shmem_outcome(d, crew, task->mark, task->status, -1);
  }
  task->first = task->last;
}

FERRY_DEVICE_FUNCTION int ferry_shmem_end_task(shmemx_device_t d, ferry_device_crew crew,
                                               ferry_shmem_task task) {
  return task.is_small ? task.status : ferry_shmem_end_with(d, crew, task.status);
}

/* Returns the address at which PE `pe` has the elements of `place`, as if element 0 were there
 * too. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_shmem_elements(shmemx_device_t d,
                                                            ferry_shmem_task task,
                                                            ferry_shmem_place place, int pe) {
  return task.slots == 0
             ? d.ways[pe].heaps[place.heap] + place.offset
             : task.slots + (ferry_device_u64)pe * task.slot_bytes - task.first * task.size;
}

/* Element i at PE `pe`, as an lvalue. */
#define FERRY_SHMEM_ELEMENT(type, place, pe) \
  (((FERRY_DEVICE_GLOBAL type*)ferry_shmem_elements(d, task, task.place, pe))[i])

/* Defines a collective whose work on element i ferry_shmem_NAME_at does. */
#define FERRY_SHMEM_COMPUTATION(name, type)                                                    \
  FERRY_DEVICE_FUNCTION int ferry_shmem_##name(shmemx_device_t d, ferry_device_crew crew,      \
                                               ferry_device_u64 dest, ferry_device_u64 source, \
                                               ferry_device_u64 count) {                       \
    ferry_shmem_task task = ferry_shmem_begin(d, crew, dest, source, count, sizeof(type));     \
    ferry_device_u64 i;                                                                        \
    if (task.status != SHMEMX_DEVICE_SUCCESS) {                                                \
      return task.status;                                                                      \
    }                                                                                          \
    while (ferry_shmem_begin_part(d, crew, &task)) {                                           \
      for (i = task.first + crew.thread; i < task.last; i += crew.count) {                     \
        ferry_shmem_##name##_at(d, task, i);                                                   \
      }                                                                                        \
      ferry_shmem_end_part(d, crew, &task);                                                    \
    }                                                                                          \
    return ferry_shmem_end_task(d, crew, task);                                                \
  }

/* Defines a reduction. `combine` makes the result of a and b, both of `type`. */
#define FERRY_SHMEM_REDUCTION(name, type, combine)                                             \
  FERRY_DEVICE_FUNCTION void ferry_shmem_##name##_at(shmemx_device_t d, ferry_shmem_task task, \
                                                     ferry_device_u64 i) {                     \
    type a = FERRY_SHMEM_ELEMENT(type, source, 0);                                             \
    int pe;                                                                                    \
    for (pe = 1; pe < d.pe_count; ++pe) {                                                      \
      const type b = FERRY_SHMEM_ELEMENT(type, source, pe);                                    \
      a = (type)(combine);                                                                     \
    }                                                                                          \
    for (pe = 0; pe < d.pe_count; ++pe) {                                                      \
      FERRY_SHMEM_ELEMENT(type, dest, pe) = a;                                                 \
    }                                                                                          \
  }                                                                                            \
  FERRY_SHMEM_COMPUTATION(name, type)

/* Defines a scan. `result` is a PE's result of a, the sum of the PEs before it, and b, its own
 * element, which is read before the result is stored. */
#define FERRY_SHMEM_SCAN(name, type, result)                                                   \
  FERRY_DEVICE_FUNCTION void ferry_shmem_##name##_at(shmemx_device_t d, ferry_shmem_task task, \
                                                     ferry_device_u64 i) {                     \
    type a = 0;                                                                                \
    int pe;                                                                                    \
    for (pe = 0; pe < d.pe_count; ++pe) {                                                      \
      const type b = FERRY_SHMEM_ELEMENT(type, source, pe);                                    \
      FERRY_SHMEM_ELEMENT(type, dest, pe) = (type)(result);                                    \
      a = (type)(a + b);                                                                       \
    }                                                                                          \
  }                                                                                            \
  FERRY_SHMEM_COMPUTATION(name, type)

#define FERRY_SHMEM_ARITHMETIC(suffix, kind, name, type)        \
  FERRY_SHMEM_SCAN(name##_sum_inscan, type, a + b)              \
  FERRY_SHMEM_SCAN(name##_sum_exscan, type, a)                  \
  FERRY_SHMEM_REDUCTION(name##_sum_reduce, type, a + b)         \
  FERRY_SHMEM_REDUCTION(name##_prod_reduce, type, a* b)         \
  FERRY_SHMEM_REDUCTION(name##_min_reduce, type, b < a ? b : a) \
  FERRY_SHMEM_REDUCTION(name##_max_reduce, type, a < b ? b : a)
#define FERRY_SHMEM_BITWISE(suffix, kind, name, type)  \
  FERRY_SHMEM_REDUCTION(name##_and_reduce, type, a& b) \
  FERRY_SHMEM_REDUCTION(name##_or_reduce, type, a | b) \
  FERRY_SHMEM_REDUCTION(name##_xor_reduce, type, a ^ b)

FERRY_SHMEM_ALL_TYPES(FERRY_SHMEM_ARITHMETIC, , )
FERRY_SHMEM_BITWISE_TYPES(FERRY_SHMEM_BITWISE, , )

/* ---- Their names ---- */

#define FERRY_SHMEM_REDUCE(suffix, kind, name, type)                                             \
  FERRY_DEVICE_FUNCTION int shmemx_device_##name##suffix(                                        \
      shmemx_device_t d, FERRY_DEVICE_GLOBAL type* dest, const FERRY_DEVICE_GLOBAL type* source, \
      ferry_device_u64 nreduce) {                                                                \
    return ferry_shmem_##name(d, ferry_device_crew_of(kind), (ferry_device_u64)dest,             \
                              (ferry_device_u64)source, nreduce);                                \
  }

#define FERRY_SHMEM_ARITHMETIC_REDUCE(suffix, kind, name, type) \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_sum_reduce, type)     \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_prod_reduce, type)    \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_min_reduce, type)     \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_max_reduce, type)     \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_sum_inscan, type)     \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_sum_exscan, type)
#define FERRY_SHMEM_BITWISE_REDUCE(suffix, kind, name, type) \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_and_reduce, type)  \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_or_reduce, type)   \
  FERRY_SHMEM_REDUCE(suffix, kind, name##_xor_reduce, type)

FERRY_DEVICE_FORMS(FERRY_SHMEM_ALL_TYPES, FERRY_SHMEM_ARITHMETIC_REDUCE)
FERRY_DEVICE_FORMS(FERRY_SHMEM_BITWISE_TYPES, FERRY_SHMEM_BITWISE_REDUCE)

#undef FERRY_SHMEM_ELEMENT
#undef FERRY_SHMEM_COMPUTATION
#undef FERRY_SHMEM_REDUCTION
#undef FERRY_SHMEM_SCAN
#undef FERRY_SHMEM_ARITHMETIC
#undef FERRY_SHMEM_BITWISE
#undef FERRY_SHMEM_REDUCE
#undef FERRY_SHMEM_ARITHMETIC_REDUCE
#undef FERRY_SHMEM_BITWISE_REDUCE

#endif
