/* Which core a rank of a benchmark runs on: the same for every library. _GNU_SOURCE is defined. */
#ifndef BENCHMARKS_COMMON_BIND_H_
#define BENCHMARKS_COMMON_BIND_H_

#include <sched.h>

/* Binds the calling thread to a core of its own, as Open MPI's launcher does by itself: the rank-th
 * of those it may use. Does nothing where there are too few, or where a launcher has bound it
 * already. */
static inline void Bind(int rank, int ranks) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < ranks) {
    return;
  }
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed) && rank-- == 0) {
      CPU_ZERO(&allowed);
      CPU_SET(core, &allowed);
      (void)sched_setaffinity(0, sizeof(allowed), &allowed);
      return;
    }
  }
}

#endif /* BENCHMARKS_COMMON_BIND_H_ */
