/* Two PEs that share one core wait for each other in loops of calls that only look (shmem_test and
 * its kin). Such a loop must now and then leave the core to the other PE: else it looks until its
 * time slice is over, some tens of thousands of times, for each signal.
 */
#define _GNU_SOURCE
#include "tests/shmem/ranks/check.h"
#include "tests/support/first_core.h"

enum { kRounds = 40, kMostLooks = 1200, kWays = 4 };

static long words[2]; /* the second one stays as it is */
static long looks;

static int has_come(int way, long value) {
  size_t index[2];
  switch (way) {
    case 0:
      return shmem_long_test(words, SHMEM_CMP_EQ, value);
    case 1:
      return shmem_long_test_all(words, 1, NULL, SHMEM_CMP_EQ, value);
    case 2:
      return shmem_long_test_any(words, 2, NULL, SHMEM_CMP_EQ, value) == 0;
    default:
      return shmem_long_test_some(words, 2, index, NULL, SHMEM_CMP_EQ, value) == 1;
  }
}

static void await(int way, long value) {
  while (!has_come(way, value)) ++looks;
}

int main(void) {
  long value = 0;
  begin();
  CHECK(pes == 2 && keep_to_first_core() == 0);
  for (int way = 0; way < kWays; ++way) {
    looks = 0;
    for (int round = 0; round < kRounds; ++round) {
      ++value;
      if (me == 1) await(way, value);
      shmem_long_p(words, value, 1 - me);
      if (me == 0) await(way, value);
    }
    if (looks > (long)kRounds * kMostLooks) {
      fprintf(stderr, "way %d: PE %d looked %ld times for each signal\n", way, me, looks / kRounds);
    }
    CHECK(looks <= (long)kRounds * kMostLooks);
  }
  return end_well();
}
