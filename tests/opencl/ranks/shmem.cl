/* Kernels of shmem.cc; `wrong` counts for each thread. Calls of threads, and no calls of groups: PoCL
 * 3.1 compiles what follows barriers under conditions once for each combination of these, which
 * takes it minutes for the calls of groups. */
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
