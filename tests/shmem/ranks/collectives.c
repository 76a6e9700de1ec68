/* Collectives of many sizes, over teams and active sets, also in place and of different lengths. */
#include "tests/shmem/ranks/check.h"

enum { kMost = 300000 };

static int* to;
static int* from;

static void check_moves(size_t count) {
  for (int root = 0; root < pes; ++root) {
    for (size_t i = 0; i < count; ++i) {
      from[i] = (int)i * 3 + me;
      to[i] = -1;
    }
    CHECK(shmem_int_broadcast(SHMEM_TEAM_WORLD, to, from, count, root) == 0);
    for (size_t i = 0; i < count; ++i) CHECK(to[i] == (int)i * 3 + root);
    shmem_barrier_all();
  }
  CHECK(shmem_int_fcollect(SHMEM_TEAM_WORLD, to, from, count) == 0);
  for (int pe = 0; pe < pes; ++pe) {
    for (size_t i = 0; i < count; ++i) CHECK(to[(size_t)pe * count + i] == (int)i * 3 + pe);
  }
  shmem_barrier_all();
  const size_t own = me % 2 ? 0 : count / ((size_t)me + 1);
  CHECK(shmem_int_collect(SHMEM_TEAM_WORLD, to, from, own) == 0);
  size_t at = 0;
  for (int pe = 0; pe < pes; ++pe) {
    const size_t theirs = pe % 2 ? 0 : count / ((size_t)pe + 1);
    for (size_t i = 0; i < theirs; ++i) CHECK(to[at++] == (int)i * 3 + pe);
  }
  shmem_barrier_all();
  for (size_t i = 0; i < count * (size_t)pes; ++i) from[i] = (int)i + 1000000 * me;
  CHECK(shmem_int_alltoall(SHMEM_TEAM_WORLD, to, from, count) == 0);
  for (int pe = 0; pe < pes; ++pe) {
    for (size_t i = 0; i < count; ++i) {
      CHECK(to[(size_t)pe * count + i] == (int)((size_t)me * count + i) + 1000000 * pe);
    }
  }
  shmem_barrier_all();
  const size_t few = count / 6;
  CHECK(shmem_int_alltoalls(SHMEM_TEAM_WORLD, to, from, 2, 3, few) == 0);
  for (int pe = 0; pe < pes; ++pe) {
    for (size_t i = 0; i < few; ++i) {
      CHECK(to[2 * ((size_t)pe * few + i)] == (int)(3 * ((size_t)me * few + i)) + 1000000 * pe);
    }
  }
  shmem_barrier_all();
}

static void check_reductions(size_t count) {
  for (size_t i = 0; i < count; ++i) from[i] = (int)i % 7 + me;
  CHECK(shmem_int_max_reduce(SHMEM_TEAM_WORLD, to, from, count) == 0);
  for (size_t i = 0; i < count; ++i) CHECK(to[i] == (int)i % 7 + pes - 1);
  shmem_barrier_all();
  CHECK(shmem_int_sum_inscan(SHMEM_TEAM_WORLD, to, from, count) == 0);
  for (size_t i = 0; i < count; ++i) {
    CHECK(to[i] == (me + 1) * ((int)i % 7) + me * (me + 1) / 2);
  }
  shmem_barrier_all();
  CHECK(shmem_int_sum_exscan(SHMEM_TEAM_WORLD, to, from, count) == 0);
  for (size_t i = 0; i < count; ++i) CHECK(to[i] == me * ((int)i % 7) + me * (me - 1) / 2);
  shmem_barrier_all();
  /* In place. */
  CHECK(shmem_int_sum_reduce(SHMEM_TEAM_WORLD, from, from, count) == 0);
  for (size_t i = 0; i < count; ++i) {
    CHECK(from[i] == pes * ((int)i % 7) + pes * (pes - 1) / 2);
  }
  shmem_barrier_all();
}

/* The deprecated calls, over every second PE. */
static void check_active_sets(void) {
  static long psync[SHMEM_REDUCE_SYNC_SIZE];
  static int pwork[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
  const int set = (pes + 1) / 2;
  for (int round = 0; round < 50; ++round) {
    if (me % 2 == 0) {
      from[0] = me + round;
      to[0] = to[1] = -1;
      shmem_int_sum_to_all(to, from, 1, 0, 1, set, pwork, psync);
      CHECK(to[0] == set * (set - 1) + set * round);
      to[0] = -1;
      shmem_broadcast32(to, from, 1, set - 1, 0, 1, set, psync);
      CHECK(to[0] == (me == 2 * (set - 1) ? -1 : 2 * (set - 1) + round));
      shmem_barrier(0, 1, set, psync);
    }
    shmem_barrier(0, 0, pes, psync);
  }
}

int main(void) {
  static const size_t counts[] = {0, 1, 5, 12, 13, 1000, 3000, 40001};
  begin();
  to = shmem_malloc(sizeof(int) * kMost);
  from = shmem_malloc(sizeof(int) * kMost);
  for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); ++i) {
    check_moves(counts[i]);
    check_reductions(counts[i]);
  }
  check_active_sets();
  return end_well();
}
