/* Helpers for the programs that tests run as PEs: C, as users' programs are. */
#ifndef FERRY_TESTS_SHMEM_RANKS_CHECK_H_
#define FERRY_TESTS_SHMEM_RANKS_CHECK_H_

#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, pes;       /* once OpenSHMEM was begun */
static int after, before; /* the PEs around this one in a ring */

#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) {                                                          \
      fprintf(stderr, "PE %d, %s:%d: %s\n", me, __FILE__, __LINE__, #condition); \
      fflush(stderr);                                                            \
      shmem_global_exit(1);                                                      \
    }                                                                            \
  } while (0)

static inline void note_place(void) {
  me = shmem_my_pe();
  pes = shmem_n_pes();
  after = (me + 1) % pes;
  before = (me + pes - 1) % pes;
}

/* Whether loads and stores reach that PE's memory: it is on this one's node. */
static inline int is_local(int pe) {
  return shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED) >= 0;
}

/* How often to do what takes a message to another node, if there are several. */
static inline int rounds(int in_a_node) {
  return shmem_team_n_pes(SHMEM_TEAM_SHARED) == pes ? in_a_node : in_a_node / 10;
}

static inline void begin(void) {
  shmem_init();
  note_place();
}

/* Returns what main returns. */
static inline int end_well(void) {
  const int pe = me;
  shmem_finalize();
  printf("PE %d: ok\n", pe);
  return 0;
}

/* Bytes that differ between PEs, and between places. */
static inline void fill(unsigned char* bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i) bytes[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8));
}

static inline int is_filled(const unsigned char* bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != (unsigned char)(seed * 31 + i * 7 + (i >> 8))) return 0;
  }
  return 1;
}

#endif /* FERRY_TESTS_SHMEM_RANKS_CHECK_H_ */
