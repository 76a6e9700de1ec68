/* For programs of tests whose ranks share one core: C, and included after _GNU_SOURCE is defined.
 */
#ifndef FERRY_TESTS_SUPPORT_FIRST_CORE_H_
#define FERRY_TESTS_SUPPORT_FIRST_CORE_H_

#include <sched.h>

/* Keeps the calling thread to the first of its cores: the same one in all ranks if they are not
 * bound. Returns 0, or -1 as sched_setaffinity does. */
static inline int keep_to_first_core(void) {
  cpu_set_t all, one;
  int core = 0;
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return -1;
  while (!CPU_ISSET(core, &all)) ++core;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return sched_setaffinity(0, sizeof(one), &one);
}

#endif /* FERRY_TESTS_SUPPORT_FIRST_CORE_H_ */
