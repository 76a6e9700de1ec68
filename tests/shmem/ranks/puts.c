/* Puts and gets of all shapes, on contexts of teams, to oneself and to others, nothing and much. */
#include "tests/shmem/ranks/check.h"

enum { kLarge = 3 << 20 };

static void check_sizes(unsigned char* to, unsigned char* from) {
  static const size_t sizes[] = {0, 1, 7, 8, 9, 4096, 100001, kLarge};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); ++i) {
    for (int step = 0; step < pes; ++step) {
      const int to_pe = (me + step) % pes, from_pe = (me + pes - step) % pes;
      memset(to, 0xee, sizes[i] + 1);
      fill(from, sizes[i], (unsigned)(me + step));
      shmem_barrier_all();
      if (step % 2 == 0) {
        shmem_putmem(to, from, sizes[i], to_pe);
      } else {
        shmem_putmem_nbi(to, from, sizes[i], to_pe);
      }
      shmem_barrier_all();
      CHECK(is_filled(to, sizes[i], (unsigned)(from_pe + step)) && to[sizes[i]] == 0xee);
      memset(to, 0, sizes[i]);
      shmem_getmem(to, from, sizes[i], from_pe);
      CHECK(is_filled(to, sizes[i], (unsigned)(from_pe + step)));
      shmem_barrier_all();
    }
  }
}

static void check_strides(int* to, int* from) {
  for (int i = 0; i < 60; ++i) {
    to[i] = -1;
    from[i] = 100 * me + i;
  }
  shmem_barrier_all();
  shmem_int_iput(to, from, 3, 2, 10, after);
  shmem_barrier_all();
  for (int i = 0; i < 30; ++i) {
    CHECK(to[i] == (i % 3 == 0 && i < 30 ? 100 * before + i / 3 * 2 : -1));
  }
  shmem_int_iget(to, from, 1, 5, 10, after);
  for (int i = 0; i < 10; ++i) CHECK(to[i] == 100 * after + 5 * i);
  shmem_barrier_all();
  for (int i = 0; i < 60; ++i) to[i] = -1;
  shmem_barrier_all();
  shmem_int_ibput(to, from, 4, 3, 2, 5, after); /* 5 blocks of 2 */
  shmem_barrier_all();
  for (int i = 0; i < 20; ++i) {
    CHECK(to[i] == (i % 4 < 2 ? 100 * before + i / 4 * 3 + i % 4 : -1));
  }
  shmem_barrier_all();
}

/* On a context of a team of every second PE, numbers are those of the team. */
static void check_contexts(long* word) {
  shmem_team_t team_of_even;
  const int is_member = me % 2 == 0;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (pes + 1) / 2, NULL, 0, &team_of_even) ==
        0);
  CHECK((team_of_even != SHMEM_TEAM_INVALID) == is_member);
  *word = -1;
  shmem_barrier_all();
  if (is_member) {
    shmem_ctx_t contexts[300];
    const int own = shmem_team_my_pe(team_of_even), size = shmem_team_n_pes(team_of_even);
    for (int i = 0; i < 300; ++i) {
      CHECK(shmem_team_create_ctx(team_of_even, i % 2 ? SHMEM_CTX_PRIVATE : 0, &contexts[i]) == 0);
    }
    shmem_ctx_long_p(contexts[7], word, me, (own + 1) % size);
    shmem_ctx_quiet(contexts[7]);
    shmem_team_sync(team_of_even);
    CHECK(*word == 2 * ((own + size - 1) % size));
    CHECK(shmem_ctx_long_g(contexts[8], word, own) == *word);
    shmem_team_t found;
    CHECK(shmem_ctx_get_team(contexts[9], &found) == 0 && found == team_of_even);
    for (int i = 1; i < 300; i += 2) shmem_ctx_destroy(contexts[i]);
    shmem_team_destroy(team_of_even); /* takes the shareable ones with it */
  }
  shmem_ctx_destroy(SHMEM_CTX_INVALID);
  shmem_ctx_quiet(SHMEM_CTX_INVALID);
  shmem_ctx_fence(SHMEM_CTX_INVALID);
  shmem_barrier_all();
}

static void check_signals(unsigned char* to, unsigned char* from) {
  uint64_t* const signal = shmem_calloc(1, sizeof(*signal));
  for (unsigned round = 1; round <= 500; ++round) {
    fill(from, 20000, round + (unsigned)me);
    shmem_putmem_signal(to, from, 20000, signal, 1, SHMEM_SIGNAL_ADD, after);
    CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_GE, round) >= round);
    CHECK(is_filled(to, 20000, round + (unsigned)before));
    shmem_barrier_all();
  }
  shmem_putmem_signal(to, from, 0, signal, 7, SHMEM_SIGNAL_SET, after);
  shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 7);
  CHECK(shmem_signal_fetch(signal) == 7);
  shmem_free(signal);
}

int main(void) {
  begin();
  unsigned char* const to = shmem_malloc(kLarge + 1);
  unsigned char* const from = shmem_malloc(kLarge + 1);
  check_sizes(to, from);
  check_strides((int*)to, (int*)from);
  check_contexts((long*)to);
  check_signals(to, from);
  return end_well();
}
