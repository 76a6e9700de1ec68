/* What the checking mode finds: the first argument names the mistake. Without a mistake that it
 * knows the program is right, and so ends well. */
#include <stdint.h>

#include "tests/shmem/ranks/check.h"

static int is(const char* argument, const char* name) { return strcmp(argument, name) == 0; }

/* A piece that was given back, behind one that was not. */
static long* freed_piece(void) {
  long* const piece = shmem_malloc(5 * sizeof(long));
  shmem_free(piece);
  return piece;
}

/* ---- Memory that the program does not have ------------------------------------------------------
 */

static void use_freed(const char* how) {
  long* const freed = freed_piece();
  long local[8] = {0};
  long* const own = shmem_calloc(1000, sizeof(long)); /* does not fit where the piece was */
  long* const gone = freed == own ? freed_piece() : freed;
  CHECK(gone != own);
  if (is(how, "put")) shmem_long_put(gone, local, 2, after);
  if (is(how, "p")) shmem_long_p(gone, 1, after);
  if (is(how, "get")) shmem_long_get(local, gone, 2, after);
  if (is(how, "put_source")) shmem_long_put(own, gone, 2, after);
  if (is(how, "get_dest")) shmem_long_get(gone, own, 2, after);
  if (is(how, "iput_source")) shmem_long_iput(own, gone, 1, 2, 3, after);
  if (is(how, "amo")) shmem_long_atomic_inc(gone, after);
  if (is(how, "amo_nbi")) shmem_long_atomic_fetch_nbi(gone, own, after);
  if (is(how, "signal")) {
    shmem_long_put_signal(own, local, 1, (uint64_t*)gone, 1, SHMEM_SIGNAL_SET, after);
  }
  if (is(how, "signal_fetch")) shmem_signal_fetch((uint64_t*)gone);
  if (is(how, "wait")) shmem_long_wait_until(gone, SHMEM_CMP_EQ, 0);
  if (is(how, "test")) shmem_long_test_any(gone, 2, NULL, SHMEM_CMP_EQ, 0);
  if (is(how, "lock")) shmem_set_lock(gone);
  if (is(how, "reduce")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, gone, own, 1);
  if (is(how, "collect")) shmem_long_collect(SHMEM_TEAM_WORLD, own, gone, 1);
}

static void use_outside(const char* how) {
  char* const small = shmem_malloc(20);
  char* const next = shmem_malloc(1000);
  long value = 0;
  if (is(how, "past")) shmem_putmem(small + 16, &value, 8, after);
  if (is(how, "behind")) shmem_putmem(small + 60, &value, 8, after);
  if (is(how, "shrunk")) {
    char* const less = shmem_realloc(next, 10);
    CHECK(less == next);
    shmem_putmem(less, &value, 8, after);
    shmem_putmem(less + 8, &value, 8, after);
  }
  if (is(how, "moved")) {
    CHECK(shmem_realloc(small, 5000) != small);
    shmem_putmem(small, &value, 8, after);
  }
  if (is(how, "nowhere")) {
    shmem_free(small);
    shmem_putmem(small + 60, &value, 8, after);
  }
}

/* ---- Memory that overlaps -----------------------------------------------------------------------
 */

static void overlap(const char* how) {
  long* const words = shmem_calloc(100, sizeof(long));
  /* These are right. */
  shmem_long_put(words + 4, words, 4, me);
  shmem_long_iput(words + 1, words, 2, 2, 10, me); /* between each other's elements */
  shmem_long_get(words + 4, words, 4, me);
  shmem_barrier_all();
  shmem_long_put(words, words, 4, after == me ? me + 1 : after);
  shmem_barrier_all();
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, words, 4);
  shmem_barrier_all();
  if (is(how, "put")) shmem_long_put(words + 3, words, 4, me);
  if (is(how, "get")) shmem_long_get(words, words + 3, 4, me);
  if (is(how, "iput")) shmem_long_iput(words + 4, words, 2, 2, 10, me);
  if (is(how, "signal")) {
    shmem_long_put_signal(words, words + 50, 4, (uint64_t*)words + 3, 1, SHMEM_SIGNAL_ADD, after);
  }
  if (is(how, "reduce")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words + 1, words, 4);
  if (is(how, "fcollect")) shmem_long_fcollect(SHMEM_TEAM_WORLD, words, words, 4);
  if (is(how, "collect")) shmem_long_collect(SHMEM_TEAM_WORLD, words, words + 4, 4);
}

/* ---- Collectives that differ --------------------------------------------------------------------
 */

static void differ(const char* how) {
  static int here[40], there[40];
  int* const words = shmem_calloc(100, sizeof(int));
  const size_t few = me == 0 ? 8 : 16;
  int local = 0;
  /* These are right: blocks of any lengths, and no memory where nothing goes. */
  shmem_int_collect(SHMEM_TEAM_WORLD, here, there, (size_t)me);
  shmem_int_fcollect(SHMEM_TEAM_WORLD, words, there, 4);
  shmem_int_broadcast(SHMEM_TEAM_WORLD, NULL, NULL, 0, 0);
  if (is(how, "name")) {
    if (me == 0) {
      shmem_int_broadcast(SHMEM_TEAM_WORLD, words, here, 1, 0);
    } else {
      shmem_barrier_all();
    }
  }
  if (is(how, "operation")) {
    if (me == 0) {
      shmem_int_max_reduce(SHMEM_TEAM_WORLD, words, here, 1);
    } else {
      shmem_int_min_reduce(SHMEM_TEAM_WORLD, words, here, 1);
    }
  }
  if (is(how, "type")) {
    if (me == 0) {
      shmem_int_sum_reduce(SHMEM_TEAM_WORLD, words, here, 2);
    } else {
      shmem_float_sum_reduce(SHMEM_TEAM_WORLD, (float*)words, (float*)here, 2);
    }
  }
  if (is(how, "size")) shmem_int_sum_reduce(SHMEM_TEAM_WORLD, words, here, few);
  if (is(how, "root")) shmem_int_broadcast(SHMEM_TEAM_WORLD, words, here, 4, me);
  if (is(how, "stride")) shmem_int_alltoalls(SHMEM_TEAM_WORLD, words, here, me + 1, 1, 2);
  if (is(how, "dest")) shmem_int_sum_reduce(SHMEM_TEAM_WORLD, words + me, here, 4);
  if (is(how, "source")) shmem_int_sum_reduce(SHMEM_TEAM_WORLD, words, me ? here : there, 4);
  if (is(how, "private")) shmem_int_sum_reduce(SHMEM_TEAM_WORLD, words, &local, 1);
  if (is(how, "memory")) {
    if (me == 0) {
      shmem_free(words);
    } else {
      shmem_barrier_all();
    }
  }
  if (is(how, "team")) {
    shmem_team_t team;
    if (me == 0) {
      shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team);
    } else {
      shmem_sync_all();
    }
  }
  if (is(how, "set")) {
    static long psync[SHMEM_BARRIER_SYNC_SIZE];
    if (me == 0) {
      shmem_barrier(0, 0, pes, psync);
    } else {
      shmem_broadcast32(words, here, 3, 0, 0, 0, pes, psync);
    }
  }
}

/* ---- Memory left at the end ---------------------------------------------------------------------
 */

static void leave(const char* how) {
  const int pieces = is(how, "much") ? 12 : 1;
  for (int i = 0; i < pieces; ++i) shmem_malloc(24);
  shmem_team_t team, given_back;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team);
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &given_back);
  shmem_ctx_t one, other;
  shmem_ctx_create(0, &one);
  shmem_ctx_create(SHMEM_CTX_PRIVATE, &other);
  shmem_ctx_destroy(one);
  shmem_team_destroy(given_back);
}

static void leave_nothing(void) {
  shmem_team_t team;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team);
  shmem_ctx_t context;
  shmem_ctx_create(0, &context);
  long* const words = shmem_calloc(3, sizeof(long));
  long* const more = shmem_realloc(words, 5000);
  long* const aligned = shmem_align(4096, 100);
  shmem_ctx_long_p(context, more + 600, me, after);
  shmem_barrier_all();
  CHECK(more[600] == before);
  shmem_free(aligned);
  shmem_free(more);
  shmem_ctx_destroy(context);
  shmem_team_destroy(team);
}

/* Only PE 0 asks for the checking mode, and that from the second shmem_init on. */
static void ask_alone(void) {
  shmem_long_p(freed_piece(), 1, after);
  shmem_finalize();
  if (me == 0) setenv("SHMEM_DEBUG", "1", 1);
  begin();
  long* const freed = freed_piece();
  if (me != 0) shmem_long_p(freed, 1, 0);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const char* const how = argc > 2 ? argv[2] : "";
  begin();
  if (is(what, "first")) ask_alone();
  if (is(what, "freed")) use_freed(how);
  if (is(what, "outside")) use_outside(how);
  if (is(what, "overlap")) overlap(how);
  if (is(what, "differ")) differ(how);
  if (is(what, "leave")) leave(how);
  if (is(what, "nothing")) leave_nothing();
  shmem_barrier_all();
  return end_well();
}
