/* stands WHAT: the last PE computes for ever, outside OpenSHMEM; the others wait for it in the call
 * WHAT. Each PE first prints "PE R: under way".
 */
#include <unistd.h>

#include "tests/shmem/ranks/check.h"

static long word, lock, sum, source;
static uint64_t signal_word;

static int is(const char* what, const char* name) { return strcmp(what, name) == 0; }

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  begin();
  if (is(what, "set_lock") && me == pes - 1) shmem_set_lock(&lock);
  shmem_barrier_all();
  printf("PE %d: under way\n", me);
  fflush(stdout);
  while (me == pes - 1) pause();
  if (is(what, "wait_until")) shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
  if (is(what, "signal")) shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 1);
  if (is(what, "set_lock")) shmem_set_lock(&lock);
  if (is(what, "barrier_all")) shmem_barrier_all();
  if (is(what, "team_sync")) shmem_team_sync(SHMEM_TEAM_WORLD);
  if (is(what, "broadcast")) shmem_long_broadcast(SHMEM_TEAM_WORLD, &sum, &source, 1, pes - 1);
  if (is(what, "reduce")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &source, 1);
  if (is(what, "malloc")) (void)shmem_malloc(64);
  if (is(what, "finalize")) shmem_finalize();
  fprintf(stderr, "PE %d: %s did not wait\n", me, what);
  return 1;
}
