/* How OpenSHMEM programs begin and end, well or not: the first argument says how. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/shmem/ranks/check.h"

static int is(const char* argument, const char* name) { return strcmp(argument, name) == 0; }

static void die(void) { kill(getpid(), SIGKILL); }

/* ---- Good ends ----------------------------------------------------------------------------------
 */

static int again(void) {
  static const char* const sizes[] = {"1m", "1.5G", "65536", ""};
  for (int i = 0; i < 4; ++i) {
    setenv("SHMEM_SYMMETRIC_SIZE", sizes[i], 1);
    int initialized = -1;
    shmem_query_initialized(&initialized);
    if (initialized != 0) return 3;
    begin();
    shmem_query_initialized(&initialized);
    CHECK(initialized != 0);
    shmemx_heap_info_t info;
    shmemx_heap_info(&info);
    CHECK(i != 0 || info.reserved_bytes == 1 << 20);
    CHECK(i != 1 || info.reserved_bytes == 3ULL << 29);
    CHECK(i != 2 || info.reserved_bytes == 65536);
    CHECK(i != 3 || info.reserved_bytes > 1 << 20);
    int* const word = shmem_calloc(1, sizeof(int));
    shmem_int_p(word, me + i, after);
    shmem_barrier_all();
    CHECK(*word == before + i);
    shmem_finalize();
  }
  printf("PE %d: ok\n", me);
  return 0;
}

static int sleeps(long process) {
  char line[256] = "";
  snprintf(line, sizeof(line), "/proc/%ld/stat", process);
  FILE* const file = fopen(line, "r");
  if (file == NULL) return 0;
  const char* const end = fgets(line, sizeof(line), file) == NULL ? NULL : strrchr(line, ')');
  fclose(file);
  return end != NULL && end[2] == 'S';
}

/* Half of the PEs end their first life long before the others, and sleep: the last one wakes them.
 */
static int late(void) {
  struct timespec from, to;
  const int is_late = me < pes / 2;
  begin();
  long* const processes = shmem_calloc((size_t)pes, sizeof(long));
  for (int pe = 0; pe < pes; ++pe) shmem_long_p(processes + me, getpid(), pe);
  shmem_barrier_all();
  for (int looks = 0; is_late && looks < 50; usleep(1000)) {
    for (int pe = pes / 2; pe < pes; ++pe) looks = sleeps(processes[pe]) ? looks + 1 : 0;
  }
  clock_gettime(CLOCK_MONOTONIC, &from);
  shmem_finalize();
  begin();
  clock_gettime(CLOCK_MONOTONIC, &to);
  CHECK(to.tv_sec - from.tv_sec < 6); /* it says for whom it waits after ten seconds */
  return end_well();
}

static int nested(void) {
  begin();
  shmem_init();
  int* const word = shmem_calloc(1, sizeof(int));
  shmem_finalize();
  shmem_int_p(word, me, after);
  shmem_barrier_all();
  CHECK(*word == before);
  return end_well();
}

/* A child that is no PE ends without harm, and so does its parent. */
static int forks(void) {
  begin();
  int* const word = shmem_calloc(1, sizeof(int));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) exit(7);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
  shmem_int_p(word, me, after);
  shmem_barrier_all();
  CHECK(*word == before);
  return end_well();
}

static int leaves_main(void) {
  begin();
  int* const word = shmem_calloc(1, sizeof(int));
  shmem_int_p(word, me, after);
  printf("PE %d: ok\n", me);
  return 0;
}

/* ---- Misuse -------------------------------------------------------------------------------------
 */

static int misuse(const char* what) {
  int local = 0;
  if (is(what, "before")) shmem_int_p(&local, 1, 0);
  begin();
  int* const word = shmem_calloc(4, sizeof(int));
  if (is(what, "after")) {
    shmem_finalize();
    shmem_barrier_all();
  }
  if (is(what, "pe")) shmem_int_p(word, 1, pes);
  if (is(what, "local")) shmem_int_p(&local, 1, after);
  static int global;
  if (is(what, "static")) shmem_int_p(&global, 1, after);
  if (is(what, "past")) {
    shmemx_heap_info_t info;
    shmemx_heap_info(&info);
    shmem_putmem(word, &local, info.reserved_bytes + 1, after);
  }
  if (is(what, "team")) shmem_team_sync(SHMEM_TEAM_INVALID);
  if (is(what, "world")) shmem_team_destroy(SHMEM_TEAM_WORLD);
  if (is(what, "context")) shmem_ctx_int_p(SHMEM_CTX_INVALID, word, 1, after);
  if (is(what, "destroyed")) {
    shmem_ctx_t context;
    shmem_ctx_create(0, &context);
    shmem_ctx_destroy(context);
    shmem_ctx_int_p(context, word, 1, after);
  }
  if (is(what, "differ")) shmem_malloc(me == 0 ? 64 : 128);
  if (is(what, "free")) shmem_free(word + 1);
  if (is(what, "twice")) {
    shmem_free(word);
    shmem_free(word);
  }
  if (is(what, "order")) {
    if (me == 0) {
      shmem_int_broadcast(SHMEM_TEAM_WORLD, word, word, 1, 0);
      shmem_barrier_all();
    }
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, word, word, 1);
  }
  if (is(what, "sizes")) shmem_int_broadcast(SHMEM_TEAM_WORLD, word, word, me == 0 ? 1 : 2, 0);
  if (is(what, "root")) shmem_int_broadcast(SHMEM_TEAM_WORLD, word, word, 1, pes);
  if (is(what, "unlocked")) shmem_clear_lock((long*)word);
  if (is(what, "locked")) {
    if (me == 0) {
      shmem_set_lock((long*)word);
      shmem_set_lock((long*)word);
    }
  }
  if (is(what, "unaligned")) shmem_int_atomic_inc((int*)((char*)word + 1), after);
  if (is(what, "level")) shmem_init_thread(99, &local);
  if (is(what, "comparison")) shmem_int_wait_until(word, 77, 0);
  if (is(what, "set")) shmem_barrier(0, 1, pes, NULL);
  shmem_barrier_all();
  return end_well();
}

static int exhausted(void) {
  begin();
  shmemx_heap_info_t info;
  shmemx_heap_info(&info);
  char* const half = shmem_malloc(info.reserved_bytes / 2 + 4096);
  CHECK(half != NULL && shmem_malloc(info.reserved_bytes / 2) == NULL);
  char* const rest = shmem_malloc(1000);
  CHECK(rest != NULL);
  CHECK(shmem_align((size_t)1 << 30, 8) == NULL);
  return end_well();
}

/* ---- A PE that dies, or leaves ------------------------------------------------------------------
 */

static int dies_in(const char* what) {
  begin();
  long* const words = shmem_calloc(4, sizeof(long));
  shmem_team_t team;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team);
  if (is(what, "lock")) {
    /* With several nodes, it is not on that of PE 0, which keeps the queue. */
    const int owner = shmem_team_n_pes(SHMEM_TEAM_SHARED) == pes ? 0 : pes - 1;
    if (me == owner) shmem_set_lock(words);
    shmem_barrier_all();
    /* Nobody puts to it: the next ordering call would say that what was put may be lost. */
    if (me == owner) {
      while (shmem_long_atomic_fetch(words + 1, 1) == 0) usleep(1000);
      die();
    }
    if (me == 1) shmem_long_atomic_set(words + 1, 1, 1);
    shmem_set_lock(words);
    printf("PE %d: has the lock\n", me);
    fflush(stdout);
    shmem_clear_lock(words);
    /* PE 0 keeps the queue until all have had their turn. A wait would end with the dead PE. */
    while (owner != 0 && me == 0 && shmem_long_atomic_fetch(words + 2, 0) != pes - 2) usleep(1000);
    if (owner != 0 && me != 0) (void)shmem_long_atomic_fetch_inc(words + 2, 0);
    _exit(0);
  }
  if (me == 0) {
    shmem_long_wait_until(words, SHMEM_CMP_EQ, pes - 1); /* all others are about to wait */
    die();
  }
  shmem_long_atomic_inc(words, 0);
  if (is(what, "wait")) shmem_long_wait_until(words + 1, SHMEM_CMP_NE, 0);
  if (is(what, "signal")) shmem_signal_wait_until((uint64_t*)words + 1, SHMEM_CMP_NE, 0);
  if (is(what, "any")) shmem_long_wait_until_any(words + 1, 2, NULL, SHMEM_CMP_NE, 0);
  if (is(what, "barrier")) shmem_barrier_all();
  if (is(what, "sync")) shmem_team_sync(team);
  if (is(what, "reduce")) shmem_long_sum_reduce(team, words + 2, words + 1, 1);
  if (is(what, "malloc")) shmem_malloc(10);
  if (is(what, "split")) shmem_team_split_strided(team, 0, 1, 1, NULL, 0, &team);
  if (is(what, "finalize")) return end_well();
  /* With PE 0 on another node; local ones have no part in these. */
  while (is(what, "quiet")) {
    shmem_long_p(words + 1, 1, 0);
    shmem_quiet();
  }
  while (is(what, "get")) shmem_long_g(words + 1, 0);
  while (is(what, "fetch")) shmem_long_atomic_fetch_inc(words + 1, 0);
  while (is(what, "far_lock")) {
    shmem_set_lock(words + 1);
    shmem_clear_lock(words + 1);
  }
  return 0;
}

/* The node of the last PE loses its daemon, while its PEs wait for the others. */
static int loses_daemon(void) {
  begin();
  long* const word = shmem_calloc(1, sizeof(long));
  shmem_barrier_all();
  printf("PE %d: waits\n", me);
  fflush(stdout);
  if (me == 0) {
    for (;;) {
      shmem_long_p(word, 1, pes - 1);
      shmem_quiet();
    }
  }
  shmem_long_wait_until(word, SHMEM_CMP_EQ, 2);
  return 0;
}

/* PE 0 is past the end while the others wait for it. */
static int leaves_early(void) {
  begin();
  if (me != 0) shmem_barrier_all();
  return end_well();
}

/* A PE that has done its part of a collective may leave, while others wait for one that computes
 * for longer than they take to notice who has left. */
static int leaves_after_its_part(void) {
  begin();
  long* const words = shmem_calloc(2, sizeof(long));
  words[0] = me + 1;
  if (me == 1) usleep(1500000);
  CHECK(shmem_long_sum_inscan(SHMEM_TEAM_WORLD, words + 1, words, 1) == 0);
  CHECK(words[1] == (me + 1L) * (me + 2) / 2);
  return end_well();
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const char* const how = argc > 2 ? argv[2] : "";
  if (is(what, "again")) return again();
  if (is(what, "late")) return late();
  if (is(what, "nested")) return nested();
  if (is(what, "forks")) return forks();
  if (is(what, "leaves_main")) return leaves_main();
  if (is(what, "misuse")) return misuse(how);
  if (is(what, "exhausted")) return exhausted();
  if (is(what, "dies_in")) return dies_in(how);
  if (is(what, "leaves_early")) return leaves_early();
  if (is(what, "leaves_after_its_part")) return leaves_after_its_part();
  if (is(what, "loses_daemon")) return loses_daemon();
  begin();
  if (is(what, "global_exit")) {
    if (me == pes - 1) shmem_global_exit(atoi(how));
    shmem_barrier_all();
    for (;;) pause();
  }
  if (is(what, "exits")) {
    if (me == 0) exit(5);
    shmem_barrier_all();
  }
  return end_well();
}
