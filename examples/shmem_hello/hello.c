/* The smallest OpenSHMEM program: every PE writes its number into the next one's memory, in a ring.
 * Nothing in it is Ferry's.
 *
 *   oshcc hello.c -o hello && oshrun -n 4 ./hello
 */
#include <shmem.h>
#include <stdio.h>

static int greeter = -1; /* static data are symmetric: each PE has it, and others may write it */

int main(void) {
  shmem_init();
  const int pe = shmem_my_pe();
  const int pes = shmem_n_pes();

  shmem_int_p(&greeter, pe, (pe + 1) % pes);
  shmem_barrier_all(); /* from here on, all that was put has arrived */

  printf("PE %d of %d: PE %d says hello\n", pe, pes, greeter);
  shmem_finalize();
  return 0;
}
