/* PEs that wait for each other all the time, without a fault, until they are killed, for `ferryctl
 * why`. Each first prints "PE R: under way".
 */
#include <unistd.h>

#include "tests/shmem/ranks/check.h"

static long word, lock, count, sum, source;

int main(void) {
  begin();
  printf("PE %d: under way\n", me);
  fflush(stdout);
  for (long step = 1;; ++step) {
    if (step % 7 == me) usleep(2000);
    shmem_long_atomic_set(&word, step, (me + 1) % pes);
    shmem_long_wait_until(&word, SHMEM_CMP_GE, step);
    shmem_set_lock(&lock);
    shmem_long_p(&count, shmem_long_g(&count, 0) + 1, 0);
    shmem_clear_lock(&lock);
    shmem_barrier_all();
    source = step;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &source, 1);
    shmem_long_broadcast(SHMEM_TEAM_WORLD, &sum, &source, 1, (int)(step % pes));
    shmem_sync_all();
  }
}
