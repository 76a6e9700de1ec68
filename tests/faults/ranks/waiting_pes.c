/* PEs that wait, each in a way of its own, for what never comes: PE P as the argument P + 1 says.
 *
 *   away    calls nothing any more; PE 0 holds the lock and has not signalled
 *   until   shmem_long_wait_until     test   shmem_long_test, again and again
 *   barrier shmem_barrier_all         lock   shmem_set_lock
 */
#include <shmem.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long word;
static long lock;

static void wait_so(const char* how) {
  if (strcmp(how, "until") == 0) {
    shmem_long_wait_until(&word, SHMEM_CMP_NE, 0);
  } else if (strcmp(how, "test") == 0) {
    while (!shmem_long_test(&word, SHMEM_CMP_NE, 0)) {
    }
  } else if (strcmp(how, "barrier") == 0) {
    shmem_barrier_all();
  } else if (strcmp(how, "lock") == 0) {
    shmem_set_lock(&lock);
  }
}

int main(int argc, char** argv) {
  shmem_init();
  const int me = shmem_my_pe();
  if (me == 0) {
    shmem_set_lock(&lock);
  }
  shmem_barrier_all();
  printf("rank %d: under way\n", me);
  fflush(stdout);
  const char* const how = me + 1 < argc ? argv[me + 1] : "away";
  if (strcmp(how, "away") == 0) {
    while (1) {
      pause();
    }
  }
  wait_so(how);
  printf("rank %d: nothing was wrong\n", me);
  return 0;
}
