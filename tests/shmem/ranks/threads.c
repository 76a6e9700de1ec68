/* Threads of a PE, at once: each with a context, a team and a word of its own. */
#include <pthread.h>

#include "tests/shmem/ranks/check.h"

enum { kThreads = 3 };

static long many = 400; /* rounds */

static long* words;
static shmem_team_t teams[kThreads];

static void* work(void* argument) {
  const long thread = (long)argument;
  shmem_ctx_t context;
  CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &context) == 0);
  long* const own = words + 4 * thread;
  for (long round = 1; round <= many; ++round) {
    shmem_ctx_long_atomic_inc(context, words + 4 * kThreads, 0);
    shmem_ctx_long_p(context, own, round, after);
    shmem_long_wait_until(own, SHMEM_CMP_GE, round);
    own[1] = round + me;
    CHECK(shmem_long_sum_reduce(teams[thread], own + 2, own + 1, 1) == 0);
    CHECK(own[2] == round * pes + (long)pes * (pes - 1) / 2);
  }
  shmem_ctx_destroy(context);
  return NULL;
}

int main(void) {
  int provided = -1;
  CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
  note_place();
  many = rounds(400);
  shmem_query_thread(&provided);
  CHECK(provided == SHMEM_THREAD_MULTIPLE);
  words = shmem_calloc(4 * kThreads + 1, sizeof(long));
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &teams[i]) == 0);
  }
  for (long i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(&threads[i], NULL, work, (void*)i) == 0);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  shmem_barrier_all();
  if (me == 0) CHECK(words[4 * kThreads] == kThreads * many * pes);
  return end_well();
}
