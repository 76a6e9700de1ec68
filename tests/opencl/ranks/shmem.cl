/* Kernels of shmem.cc; `wrong` counts for each thread. Of the calls of groups those with few barriers:
 * PoCL 3.1 compiles what follows a barrier under a condition once for each combination of these. That
 * takes it seconds for a put or a sync of a group, and a minute or more for a collective of data, also
 * where the kind of the crew is a constant: it is the conditions on statuses that multiply. */
#include "ferry/device/shmem.h"

FERRY_DEVICE_FUNCTION ferry_device_i64 value_of(int pe, ferry_device_u64 i, ferry_device_u64 round) {
  return (ferry_device_i64)(pe * 1000003 + i * 7 + round * 13);
}

/* Each thread puts its number into the next PE's row; then each group tells that PE's, waits to be told
 * by the PE before, and its threads look at what came. */
FERRY_DEVICE_KERNEL put_rows(const FERRY_DEVICE_GLOBAL void* table,
                             FERRY_DEVICE_GLOBAL ferry_device_i64* row,
                             FERRY_DEVICE_GLOBAL ferry_device_i64* signals, ferry_device_u64 round,
                             FERRY_DEVICE_GLOBAL ferry_device_u32* wrong) {
  const shmemx_device_t d = shmemx_device_open(table);
  FERRY_DEVICE_GLOBAL ferry_device_i64* const signal = signals + ferry_device_group() * 16;
  const ferry_device_u64 mine = ferry_device_thread();
  const int me = shmemx_device_my_pe(d);
  const int pes = shmemx_device_n_pes(d);
  const int next = (me + 1) % pes;
  ferry_device_u32 found = 0;
  shmemx_device_long_p(d, row + mine, value_of(me, mine, round), next);
  found += shmemx_device_quiet(d) != 0;
  ferry_device_group_barrier();
  if (ferry_device_group_thread() == 0) {
    shmemx_device_long_atomic_set(d, signal, (ferry_device_i64)round, next);
    while (shmemx_device_long_atomic_fetch(d, signal, me) != (ferry_device_i64)round) {
      ferry_device_pause();
    }
  }
  ferry_device_group_barrier();
  found += row[mine] != value_of((me + pes - 1) % pes, mine, round);
  found += shmemx_device_long_g(d, row + mine, me) != row[mine];
  wrong[mine] = found;
}

/* Every thread of every PE adds to words of PE 0, and takes a number there that nobody else has. */
FERRY_DEVICE_KERNEL words(const FERRY_DEVICE_GLOBAL void* table,
                          FERRY_DEVICE_GLOBAL ferry_device_i64* sum,
                          FERRY_DEVICE_GLOBAL int* sum_32, FERRY_DEVICE_GLOBAL int* taken,
                          FERRY_DEVICE_GLOBAL ferry_device_u32* wrong) {
  const shmemx_device_t d = shmemx_device_open(table);
  const ferry_device_u64 mine = ferry_device_thread();
  shmemx_device_long_atomic_add(d, sum, 3, 0);
  taken[mine] = shmemx_device_int_atomic_fetch_add(d, sum_32, 1, 0);
  wrong[mine] = shmemx_device_quiet(d) == 0 ? 0 : 1;
}

/* Each group puts its block into the next PE's row. */
FERRY_DEVICE_KERNEL put_blocks(const FERRY_DEVICE_GLOBAL void* table,
                               FERRY_DEVICE_GLOBAL ferry_device_i64* dest,
                               const FERRY_DEVICE_GLOBAL ferry_device_i64* source,
                               FERRY_DEVICE_GLOBAL ferry_device_u32* wrong) {
  const shmemx_device_t d = shmemx_device_open(table);
  const ferry_device_u32 size = ferry_device_group_size();
  const ferry_device_u32 first = ferry_device_group() * size;
  const int next = (shmemx_device_my_pe(d) + 1) % shmemx_device_n_pes(d);
  wrong[ferry_device_thread()] =
      shmemx_device_long_put_work_group(d, dest + first, source + first, size, next) != 0;
}

/* Each group gets its block from the next PE's row. */
FERRY_DEVICE_KERNEL get_blocks(const FERRY_DEVICE_GLOBAL void* table,
                               FERRY_DEVICE_GLOBAL ferry_device_i64* dest,
                               const FERRY_DEVICE_GLOBAL ferry_device_i64* source,
                               FERRY_DEVICE_GLOBAL ferry_device_u32* wrong) {
  const shmemx_device_t d = shmemx_device_open(table);
  const ferry_device_u32 size = ferry_device_group_size();
  const ferry_device_u32 first = ferry_device_group() * size;
  const int next = (shmemx_device_my_pe(d) + 1) % shmemx_device_n_pes(d);
  wrong[ferry_device_thread()] =
      shmemx_device_long_get_work_group(d, dest + first, source + first, size, next) != 0;
}

/* One group of each PE: what a PE has stored before it comes, the next one finds. */
FERRY_DEVICE_KERNEL meet(const FERRY_DEVICE_GLOBAL void* table,
                         FERRY_DEVICE_GLOBAL ferry_device_i64* word, ferry_device_u64 round,
                         FERRY_DEVICE_GLOBAL ferry_device_u32* wrong) {
  const shmemx_device_t d = shmemx_device_open(table);
  const int next = (shmemx_device_my_pe(d) + 1) % shmemx_device_n_pes(d);
  ferry_device_u32 found;
  if (ferry_device_group_thread() == 0) {
    shmemx_device_long_p(d, word, (ferry_device_i64)round, next);
  }
  found = shmemx_device_sync_work_group(d) != 0;
  wrong[ferry_device_thread()] = found + (*word != (ferry_device_i64)round);
}
