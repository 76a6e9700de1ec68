/* Atomics: many PEs on one word lose nothing, whichever operation and context they use. */
#include "tests/shmem/ranks/check.h"

/* Old values of 4 and 8 bytes are there at the quiet that follows, in the order of the calls. */
static void check_nonblocking(void) {
  enum { kMany = 200 };
  int* const count = shmem_calloc(1, sizeof(int));
  long* const wide = shmem_calloc(1, sizeof(long));
  int found[kMany + 1];
  long wide_found[kMany];
  found[kMany] = -7;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kMany; ++i) {
      shmem_int_atomic_fetch_inc_nbi(&found[i], count, after);
      shmem_long_atomic_fetch_add_nbi(&wide_found[i], wide, 3, after);
    }
    if (round == 1) {
      shmem_pe_quiet(&after, 1);
    } else {
      shmem_quiet();
    }
    for (int i = 0; i < kMany; ++i) {
      CHECK(found[i] == round * kMany + i && wide_found[i] == 3L * (round * kMany + i));
    }
  }
  CHECK(found[kMany] == -7);
  shmem_barrier_all();
  CHECK(*count == 3 * kMany);
}

int main(void) {
  begin();
  const int many = rounds(20000);
  long* const sum = shmem_calloc(1, sizeof(long));
  int* const bits = shmem_calloc(1, sizeof(int));
  uint64_t* const signal = shmem_calloc(1, sizeof(uint64_t));
  double* const value = shmem_calloc(1, sizeof(double));
  shmem_ctx_t context;
  CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &context) == 0);
  for (int i = 0; i < many; ++i) {
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
    CHECK(*sum == 10L * many * pes);
    CHECK(*signal == (uint64_t)many * (uint64_t)pes);
  }
  CHECK(*bits == ((1 << 30) | (1 << before)));
  CHECK(shmem_double_atomic_swap(value, me + 0.5, after) == 0);
  shmem_barrier_all();
  CHECK(*value == before + 0.5 && shmem_double_atomic_fetch(value, after) == me + 0.5);
  check_nonblocking();
  return end_well();
}
