/* Teams: numbers and translations, rows and columns, teams of teams, hundreds one after the other.
 */
#include "tests/shmem/ranks/check.h"

static long sum_over(shmem_team_t team, long* from, long* to) {
  *from = me + 1;
  CHECK(shmem_long_sum_reduce(team, to, from, 1) == 0);
  return *to;
}

static void check_predefined(const long* words) {
  CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == pes);
  int local = 0, local_before = 0; /* PEs of this node */
  for (int pe = 0; pe < pes; ++pe) {
    if (shmem_ptr(words, pe) == NULL) continue;
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED) == local);
    local_before += pe < me;
    ++local;
  }
  CHECK(shmem_team_my_pe(SHMEM_TEAM_SHARED) == local_before);
  CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) == local);
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID) == -1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pes, SHMEM_TEAM_SHARED) == -1);
  shmem_team_sync(SHMEM_TEAM_SHARED);
}

/* From the second PE on. */
static void check_tail(long* words) {
  if (pes == 1) return;
  shmem_team_t tail, middle = SHMEM_TEAM_WORLD;
  shmem_team_config_t config;
  config.num_contexts = 3;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, pes - 1, &config, SHMEM_TEAM_NUM_CONTEXTS,
                                 &tail) == 0);
  CHECK(shmem_team_my_pe(tail) == me - 1 || me == 0);
  if (me != 0) {
    CHECK(shmem_team_translate_pe(tail, 0, SHMEM_TEAM_WORLD) == 1);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, tail) == -1);
    config.num_contexts = 0;
    CHECK(shmem_team_get_config(tail, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
    CHECK(config.num_contexts == 3);
    CHECK(sum_over(tail, words, words + 1) == (long)pes * (pes + 1) / 2 - 1);
    /* Backwards. */
    CHECK(shmem_team_split_strided(tail, pes - 2, -1, pes - 1, NULL, 0, &middle) == 0);
    CHECK(shmem_team_my_pe(middle) == pes - 1 - me);
    CHECK(sum_over(middle, words, words + 1) == (long)pes * (pes + 1) / 2 - 1);
    CHECK(shmem_team_ptr(middle, words, shmem_team_my_pe(middle)) == words);
    shmem_team_destroy(middle);
    shmem_team_destroy(tail);
  }
  shmem_barrier_all();
  CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &tail) != 0);
  CHECK(tail == SHMEM_TEAM_INVALID);
}

static void check_grid(long* words) {
  shmem_team_t row, column;
  const int width = 2;
  CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &row, NULL, 0, &column) == 0);
  CHECK(shmem_team_my_pe(row) == me % width && shmem_team_my_pe(column) == me / width);
  long expected = 0;
  for (int pe = 0; pe < pes; ++pe) expected += pe / width == me / width ? pe + 1 : 0;
  CHECK(sum_over(row, words, words + 1) == expected);
  expected = 0;
  for (int pe = 0; pe < pes; ++pe) expected += pe % width == me % width ? pe + 1 : 0;
  CHECK(sum_over(column, words, words + 1) == expected);
  shmem_team_destroy(row);
  shmem_team_destroy(column);
}

static void check_many(long* words) {
  enum { kTeams = 100 };
  shmem_team_t teams[kTeams];
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < kTeams; ++i) {
      CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &teams[i]) == 0);
    }
    CHECK(sum_over(teams[round], words, words + 1) == (long)pes * (pes + 1) / 2);
    for (int i = 0; i < kTeams; ++i) shmem_team_destroy(teams[i]);
  }
}

int main(void) {
  begin();
  long* const words = shmem_calloc(2, sizeof(long));
  check_predefined(words);
  check_tail(words);
  check_grid(words);
  check_many(words);
  return end_well();
}
