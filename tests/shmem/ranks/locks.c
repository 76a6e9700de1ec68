/* Locks keep all but one PE out, and let them in as they came. */
#include "tests/shmem/ranks/check.h"

static void check_exclusion(long* lock, long* counter) {
  const int many = rounds(3000);
  for (int i = 0; i < many; ++i) {
    if (i % 3 == 0) {
      while (shmem_test_lock(lock)) {
      }
    } else {
      shmem_set_lock(lock);
    }
    const long found = shmem_long_g(counter, pes - 1);
    shmem_long_p(counter, found + 1, pes - 1);
    shmem_clear_lock(lock);
  }
  shmem_barrier_all();
  if (me == pes - 1) CHECK(*counter == (long)many * pes);
}

/* PE 0 has the lock until all others stand in line, one behind the other in their order. */
static void check_order(long* lock, int* turn, int* served) {
  if (me == 0) shmem_set_lock(lock);
  shmem_barrier_all();
  if (me == 0) {
    for (int pe = 1; pe < pes; ++pe) {
      shmem_int_p(turn, 1, pe);
      /* The lower half on PE 0: the number that is served, and the next one to be drawn. */
      long word;
      do {
        word = shmem_long_atomic_fetch(lock, 0);
      } while ((uint16_t)(((word >> 16) & 0xffff) - (word & 0xffff)) != pe + 1);
    }
    shmem_clear_lock(lock);
  } else {
    shmem_int_wait_until(turn, SHMEM_CMP_EQ, 1);
    shmem_set_lock(lock);
    CHECK(shmem_int_atomic_fetch_inc(served, 0) == me - 1);
    shmem_clear_lock(lock);
  }
  shmem_barrier_all();
}

int main(void) {
  begin();
  long* const lock = shmem_calloc(1, sizeof(long));
  long* const counter = shmem_calloc(1, sizeof(long));
  int* const words = shmem_calloc(2, sizeof(int));
  check_exclusion(lock, counter);
  CHECK((me == 0 ? shmem_test_lock(lock) : 0) == 0);
  shmem_barrier_all();
  if (me == 1) CHECK(shmem_test_lock(lock) == 1);
  shmem_barrier_all();
  if (me == 0) shmem_clear_lock(lock);
  shmem_barrier_all();
  check_order(lock, words, words + 1);
  return end_well();
}
