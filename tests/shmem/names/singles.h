/* The functions that have no family: a case for each, by hand. cases.py finds them here by their
 * lines `CASE(name) {`, and makes the table of them. What begins and ends a program is main.c's.
 */
#ifndef FERRY_TESTS_SHMEM_NAMES_SINGLES_H_
#define FERRY_TESTS_SHMEM_NAMES_SINGLES_H_

#include "tests/shmem/names/families_together.h"

/* ---- Queries ---- */

CASE(shmem_my_pe) { CHECK(shmem_my_pe() == me && (me == 0 || me == 1)); }
CASE(_my_pe) { CHECK(_my_pe() == me); }
CASE(shmem_n_pes) { CHECK(shmem_n_pes() == 2); }
CASE(_num_pes) { CHECK(_num_pes() == 2); }

CASE(shmem_pe_accessible) {
  CHECK(shmem_pe_accessible(me) == 1 && shmem_pe_accessible(other) == 1);
  CHECK(shmem_pe_accessible(2) == 0 && shmem_pe_accessible(-1) == 0);
}

CASE(shmem_addr_accessible) {
  int local;
  CHECK(shmem_addr_accessible(dest_arena + 5, other) == 1);
  CHECK(shmem_addr_accessible(&local, other) == 0);
}

CASE(shmem_ptr) {
  unsigned char* there = (unsigned char*)shmem_ptr(dest_arena + 3, other);
  int local;
  CHECK(shmem_ptr(dest_arena, me) == dest_arena);
  CHECK(shmem_ptr(&local, other) == NULL);
  CHECK(there != NULL);
  if (there != NULL) {
    *there = (unsigned char)(40 + me);
  }
  settle();
  CHECK(dest_arena[3] == 40 + other);
}

CASE(shmem_info_get_version) {
  int major = 0;
  int minor = 0;
  shmem_info_get_version(&major, &minor);
  CHECK(major == 1 && minor == SHMEM_MINOR_VERSION && _SHMEM_MAJOR_VERSION == 1);
}

CASE(shmem_info_get_name) {
  char name[SHMEM_MAX_NAME_LEN];
  memset(name, 'x', sizeof(name));
  shmem_info_get_name(name);
  CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0);
}

CASE(shmem_query_thread) {
  int provided = -1;
  shmem_query_thread(&provided);
  CHECK(provided >= SHMEM_THREAD_SINGLE && provided <= SHMEM_THREAD_MULTIPLE);
}

CASE(shmem_query_initialized) {
  int initialized = 0;
  shmem_query_initialized(&initialized);
  CHECK(initialized == 1);
}

CASE(shmem_pcontrol) { shmem_pcontrol(1, "anything", 2.0); }

CASE(shmemx_wtime) {
  const double before = shmemx_wtime();
  CHECK(shmemx_wtime() >= before && before > 0);
}

/* ---- Memory ---- */

/* Memory that both PEs have: each writes to the other's. */
static void check_shared(unsigned char* block, size_t bytes) {
  CHECK(block != NULL);
  CHECK(bytes % 8 != 0 || ((uintptr_t)block & 15) == 0);
  memset(block, kCanary, bytes);
  settle();
  shmem_putmem(block + bytes - 1, source_arena, 1, other);
  settle();
  CHECK(block[bytes - 1] == pattern(other, 0) && block[0] == kCanary);
}

CASE(shmem_malloc) {
  unsigned char* block = (unsigned char*)shmem_malloc(4000);
  check_shared(block, 4000);
  CHECK(shmem_malloc(0) == NULL);
  shmem_free(block);
}

CASE(shmalloc) {
  unsigned char* block = (unsigned char*)shmalloc(72);
  check_shared(block, 72);
  shmem_free(block);
}

CASE(shmem_calloc) {
  unsigned char* block = (unsigned char*)shmem_malloc(800);
  size_t i;
  memset(block, 1, 800);
  shmem_free(block); /* what calloc may get again */
  block = (unsigned char*)shmem_calloc(100, 8);
  for (i = 0; i < 800; ++i) {
    CHECK(block[i] == 0);
  }
  check_shared(block, 800);
  CHECK(shmem_calloc(0, 8) == NULL);
  shmem_free(block);
}

CASE(shmem_align) {
  unsigned char* block = (unsigned char*)shmem_align(4096, 100);
  CHECK(((uintptr_t)block & 4095) == 0);
  check_shared(block, 100);
  shmem_free(block);
}

CASE(shmemalign) {
  unsigned char* block = (unsigned char*)shmemalign(256, 100);
  CHECK(((uintptr_t)block & 255) == 0);
  check_shared(block, 100);
  shmem_free(block);
}

CASE(shmem_malloc_with_hints) {
  unsigned char* block = (unsigned char*)shmem_malloc_with_hints(
      64, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
  check_shared(block, 64);
  shmem_free(block);
}

static void check_realloc(void* (*change)(void*, size_t)) {
  unsigned char* block = (unsigned char*)change(NULL, 16);
  check_shared(block, 16);
  memcpy(block, source_arena, 16);
  block = (unsigned char*)change(block, 100000);
  CHECK(memcmp(block, source_arena, 16) == 0);
  check_shared(block, 100000);
  CHECK(change(block, 0) == NULL);
}

CASE(shmem_realloc) { check_realloc(shmem_realloc); }
CASE(shrealloc) { check_realloc(shrealloc); }

static void check_free(void (*give_back)(void*)) {
  unsigned char* block = (unsigned char*)shmem_malloc(1 << 20);
  shmemx_heap_info_t used;
  shmemx_heap_info_t freed;
  shmemx_heap_info(&used);
  give_back(block);
  shmemx_heap_info(&freed);
  CHECK(freed.used_bytes + (1 << 20) <= used.used_bytes);
  give_back(NULL);
}

CASE(shmem_free) { check_free(shmem_free); }
CASE(shfree) { check_free(shfree); }

CASE(shmemx_heap_info) {
  shmemx_heap_info_t info = {0, 0, 0, 0};
  shmemx_heap_info(&info);
  CHECK(info.used_bytes > 0 && info.used_bytes <= info.size_bytes);
  CHECK(info.size_bytes <= info.reserved_bytes);
  CHECK(info.largest_free_bytes > 0 && info.largest_free_bytes < info.reserved_bytes);
}

/* ---- Teams ---- */

/* Both PEs in the opposite order. */
static shmem_team_t reversed(void) {
  shmem_team_t team = SHMEM_TEAM_INVALID;
  shmem_team_config_t config = {3};
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, -1, 2, &config, SHMEM_TEAM_NUM_CONTEXTS,
                                 &team) == 0);
  return team;
}

CASE(shmem_team_my_pe) {
  CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_my_pe(SHMEM_TEAM_SHARED) == me);
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1);
}

CASE(shmem_team_n_pes) {
  CHECK(shmem_team_n_pes(SHMEM_TEAM_WORLD) == 2 && shmem_team_n_pes(SHMEM_TEAM_SHARED) == 2);
  CHECK(shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
}

CASE(shmem_team_split_strided) {
  shmem_team_t second = SHMEM_TEAM_WORLD;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, 1, NULL, 0, &second) == 0);
  if (me == 1) {
    CHECK(shmem_team_n_pes(second) == 1 && shmem_team_my_pe(second) == 0);
    shmem_team_destroy(second);
  } else {
    CHECK(second == SHMEM_TEAM_INVALID);
  }
}

CASE(shmem_team_split_2d) {
  shmem_team_t row = SHMEM_TEAM_INVALID;
  shmem_team_t column = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &row, NULL, 0, &column) == 0);
  CHECK(shmem_team_n_pes(row) == 2 && shmem_team_my_pe(row) == me);
  CHECK(shmem_team_n_pes(column) == 1 && shmem_team_my_pe(column) == 0);
  shmem_team_destroy(row);
  shmem_team_destroy(column);
}

CASE(shmem_team_get_config) {
  shmem_team_t team = reversed();
  shmem_team_config_t config = {-7};
  CHECK(shmem_team_get_config(team, 0, &config) == 0 && config.num_contexts == -7);
  CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
  CHECK(config.num_contexts == 3);
  shmem_team_destroy(team);
}

CASE(shmem_team_translate_pe) {
  shmem_team_t team = reversed();
  CHECK(shmem_team_my_pe(team) == other);
  CHECK(shmem_team_translate_pe(team, 0, SHMEM_TEAM_WORLD) == 1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, team) == 1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, team) == -1);
  shmem_team_destroy(team);
}

CASE(shmem_team_destroy) {
  shmem_team_t team = reversed();
  shmem_ctx_t shared = SHMEM_CTX_INVALID;
  CHECK(shmem_team_create_ctx(team, 0, &shared) == 0);
  shmem_team_destroy(team); /* and its context */
  shmem_team_destroy(SHMEM_TEAM_INVALID);
}

CASE(shmem_team_ptr) {
  shmem_team_t team = reversed();
  CHECK(shmem_team_ptr(team, dest_arena, me) == shmem_ptr(dest_arena, other));
  CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, dest_arena, 0) == NULL);
  shmem_team_destroy(team);
}

/* ---- Contexts ---- */

CASE(shmem_ctx_create) {
  shmem_ctx_t made = SHMEM_CTX_INVALID;
  CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE, &made) == 0);
  CHECK(made != SHMEM_CTX_INVALID && made != SHMEM_CTX_DEFAULT);
  shmem_ctx_int_p(made, (int*)(void*)dest_arena, 5 + me, other);
  shmem_ctx_quiet(made);
  settle();
  CHECK(*(int*)(void*)dest_arena == 5 + other);
  shmem_ctx_destroy(made);
}

CASE(shmem_team_create_ctx) {
  shmem_team_t team = reversed();
  shmem_ctx_t made = SHMEM_CTX_INVALID;
  CHECK(shmem_team_create_ctx(team, SHMEM_CTX_SERIALIZED, &made) == 0);
  shmem_ctx_int_p(made, (int*)(void*)dest_arena, 5 + me, me); /* me there is the other one here */
  shmem_ctx_quiet(made);
  settle();
  CHECK(*(int*)(void*)dest_arena == 5 + other);
  shmem_ctx_destroy(made);
  shmem_team_destroy(team);
}

CASE(shmem_ctx_destroy) {
  shmem_ctx_t made = SHMEM_CTX_INVALID;
  CHECK(shmem_ctx_create(0, &made) == 0);
  shmem_ctx_putmem_nbi(made, dest_arena, source_arena, 8, other);
  shmem_ctx_destroy(made);
  shmem_ctx_destroy(SHMEM_CTX_INVALID);
  settle();
  CHECK(holds(dest_arena, other, 0, 1, 8));
}

CASE(shmem_ctx_get_team) {
  shmem_team_t team = SHMEM_TEAM_INVALID;
  CHECK(shmem_ctx_get_team(ctx, &team) == 0 && team == SHMEM_TEAM_WORLD);
  team = SHMEM_TEAM_INVALID;
  CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD);
  CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID);
}

static void put_in_session(void) {
  const shmem_ctx_session_config_t config = {10};
  shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
  shmem_ctx_putmem_nbi(ctx, dest_arena, source_arena, 8, other);
  shmem_ctx_session_stop(ctx);
  settle();
  CHECK(holds(dest_arena, other, 0, 1, 8));
}

CASE(shmem_ctx_session_start) { put_in_session(); }
CASE(shmem_ctx_session_stop) {
  put_in_session();
  shmem_ctx_session_stop(ctx); /* again: nothing happens */
}

/* ---- Order and completion ---- */
/* The flag is written behind the data, so who sees it sees them. */

CASE(shmem_fence) {
  shmem_putmem(dest_arena + 8, source_arena, 100, other);
  shmem_fence();
  shmem_uint64_atomic_set(signal_word, 1, other);
  shmem_uint64_wait_until(signal_word, SHMEM_CMP_EQ, 1);
  CHECK(holds(dest_arena + 8, other, 0, 100, 1));
}

CASE(shmem_ctx_fence) {
  shmem_ctx_putmem(ctx, dest_arena + 8, source_arena, 100, other);
  shmem_ctx_fence(ctx);
  shmem_ctx_uint64_atomic_set(ctx, signal_word, 1, other);
  shmem_uint64_wait_until(signal_word, SHMEM_CMP_EQ, 1);
  CHECK(holds(dest_arena + 8, other, 0, 100, 1));
}

static void complete_by(void (*complete)(void)) {
  shmem_getmem_nbi(private_arena, source_arena, 100, other);
  shmem_putmem_nbi(dest_arena + 8, source_arena, 100, other);
  complete();
  CHECK(holds(private_arena, other, 0, 100, 1));
  shmem_uint64_atomic_set(signal_word, 1, other);
  shmem_uint64_wait_until(signal_word, SHMEM_CMP_EQ, 1);
  CHECK(holds(dest_arena + 8, other, 0, 100, 1));
}

static void complete_other(void) {
  const int pes[] = {other, me};
  shmem_pe_quiet(pes, 2);
}
static void complete_other_of_context(void) { shmem_ctx_pe_quiet(ctx, &other, 1); }
static void complete_context(void) {
  shmem_ctx_quiet(ctx);
  shmem_ctx_quiet(SHMEM_CTX_INVALID); /* nothing happens */
}

CASE(shmem_quiet) { complete_by(shmem_quiet); }
CASE(shmem_pe_quiet) { complete_by(complete_other); }

static void complete_context_by(void (*complete)(void)) {
  shmem_ctx_getmem_nbi(ctx, private_arena, source_arena, 100, other);
  shmem_ctx_putmem_nbi(ctx, dest_arena + 8, source_arena, 100, other);
  complete();
  CHECK(holds(private_arena, other, 0, 100, 1));
  shmem_uint64_atomic_set(signal_word, 1, other);
  shmem_uint64_wait_until(signal_word, SHMEM_CMP_EQ, 1);
  CHECK(holds(dest_arena + 8, other, 0, 100, 1));
}

CASE(shmem_ctx_quiet) { complete_context_by(complete_context); }
CASE(shmem_ctx_pe_quiet) { complete_context_by(complete_other_of_context); }

/* ---- Barriers: what was put before is there after ---- */

static void all_arrive(void) { shmem_barrier_all(); }
static void set_arrives(void) { shmem_barrier(ACTIVE_SET, sync_array); }
static void all_sync(void) { shmem_sync_all(); }
static void team_syncs(void) { CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == 0); }
static void set_syncs(void) { (shmem_sync)(ACTIVE_SET, sync_array); }

static void barrier_by(void (*arrive)(void), bool completes) {
  for (int round = 0; round < 20; ++round) {
    shmem_putmem_nbi(dest_arena, source_arena + round, 1, other);
    if (!completes) {
      shmem_quiet();
    }
    arrive();
    CHECK(dest_arena[0] == pattern(other, (size_t)round));
    arrive();
  }
}

CASE(shmem_barrier_all) { barrier_by(all_arrive, true); }
CASE(shmem_barrier) { barrier_by(set_arrives, true); }
CASE(shmem_sync_all) { barrier_by(all_sync, false); }
CASE(shmem_team_sync) { barrier_by(team_syncs, false); }
CASE(shmem_sync) { barrier_by(set_syncs, false); }

/* ---- Signals and waits ---- */

CASE(shmem_signal_fetch) {
  shmem_signal_set(signal_word, 0x100000007u + (unsigned)me, other);
  settle();
  CHECK(shmem_signal_fetch(signal_word) == 0x100000007u + (unsigned)other);
}

CASE(shmem_signal_wait_until) {
  shmem_signal_set(signal_word, 0x100000007u + (unsigned)me, other);
  CHECK(shmem_signal_wait_until(signal_word, SHMEM_CMP_GT, 0x100000000u) ==
        0x100000007u + (unsigned)other);
}

CASE(shmem_signal_set) {
  (shmem_signal_set)(signal_word, 0x700000000u, other);
  settle();
  CHECK(*signal_word == 0x700000000u);
}

CASE(shmem_ctx_signal_set) {
  shmem_ctx_signal_set(ctx, signal_word, 0x700000000u, other);
  settle();
  CHECK(*signal_word == 0x700000000u);
}

CASE(shmem_signal_add) {
  *signal_word = 0xffffffffu;
  settle();
  (shmem_signal_add)(signal_word, 2, other);
  settle();
  CHECK(*signal_word == 0x100000001u);
}

CASE(shmem_ctx_signal_add) {
  *signal_word = 0xffffffffu;
  settle();
  shmem_ctx_signal_add(ctx, signal_word, 2, other);
  settle();
  CHECK(*signal_word == 0x100000001u);
}

WAIT(shmem_wait, (shmem_wait), long)
WAIT_UNTIL(shmem_wait_until, (shmem_wait_until), long)

/* ---- Locks ---- */

/* Both count in PE 0's memory, by steps that a lock has to keep together. */
static void count_under(long* lock, void (*take)(long*)) {
  int* total = (int*)(void*)(dest_arena + 64);
  *total = 0;
  settle();
  for (int i = 0; i < 50; ++i) {
    take(lock);
    shmem_int_p(total, shmem_int_g(total, 0) + 1, 0);
    shmem_clear_lock(lock);
  }
  settle();
  CHECK(me != 0 || *total == 100);
}

static void take_by_testing(long* lock) {
  while (shmem_test_lock(lock) != 0) {
  }
}

static long* new_lock(void) {
  long* lock = (long*)(void*)dest_arena;
  *lock = 0;
  settle();
  return lock;
}

CASE(shmem_set_lock) { count_under(new_lock(), shmem_set_lock); }
CASE(shmem_test_lock) {
  long* lock = new_lock();
  count_under(lock, take_by_testing);
  if (me == 0) {
    CHECK(shmem_test_lock(lock) == 0);
  }
  settle();
  CHECK(me == 0 || shmem_test_lock(lock) == 1);
  settle();
  if (me == 0) {
    shmem_clear_lock(lock);
  }
}
CASE(shmem_clear_lock) {
  long* lock = new_lock();
  if (me == 0) {
    shmem_set_lock(lock);
  }
  settle();
  if (me == 0) {
    shmem_putmem_nbi(dest_arena + 64, source_arena, 8, 1);
    shmem_clear_lock(lock); /* completes it */
  } else {
    shmem_set_lock(lock);
    CHECK(holds(dest_arena + 64, 0, 0, 1, 8));
    shmem_clear_lock(lock);
  }
}

#endif /* FERRY_TESTS_SHMEM_NAMES_SINGLES_H_ */
