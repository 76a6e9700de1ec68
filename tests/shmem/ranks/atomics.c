/* Atomics: many PEs on one word lose nothing, whichever operation and context they use. */
#include "tests/shmem/ranks/check.h"

enum { kRounds = 20000 };

int main(void) {
  begin();
  long* const sum = shmem_calloc(1, sizeof(long));
  int* const bits = shmem_calloc(1, sizeof(int));
  uint64_t* const signal = shmem_calloc(1, sizeof(uint64_t));
  double* const value = shmem_calloc(1, sizeof(double));
  shmem_ctx_t context;
  CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &context) == 0);
  for (int i = 0; i < kRounds; ++i) {
    shmem_long_atomic_add(sum, 1, 0);
    shmem_long_atomic_fetch_inc(sum, 0);
    shmem_ctx_long_atomic_fetch_add(context, sum, 3, 0);
    long found = shmem_long_atomic_fetch(sum, 0), old;
    while ((old = shmem_long_atomic_compare_swap(sum, found, found + 5, 0)) != found) found = old;
    shmem_signal_add(signal, 1, 0);
  }
  shmem_uint_atomic_or((unsigned*)bits, 1u << me, after);
  shmem_uint_atomic_xor((unsigned*)bits, 1u << 30, me);
  shmem_barrier_all();
  if (me == 0) {
    CHECK(*sum == 10L * kRounds * pes);
    CHECK(*signal == (uint64_t)kRounds * (uint64_t)pes);
  }
  CHECK(*bits == ((1 << 30) | (1 << before)));
  CHECK(shmem_double_atomic_swap(value, me + 0.5, after) == 0);
  shmem_barrier_all();
  CHECK(*value == before + 0.5 && shmem_double_atomic_fetch(value, after) == me + 0.5);
  return end_well();
}
