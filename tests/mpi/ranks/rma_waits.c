/* Ranks of a window over memory of their own: all wait for a message of the last one, which has
 * nothing to do with MPI any more. Runs until it is killed.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/rma.h"

int main(int argc, char** argv) {
  int never;
  begin(&argc, &argv);
  (void)make_window(ordinary, 64, 1);
  barrier();
  printf("rank %d: under way\n", rank);
  fflush(stdout);
  if (rank < size - 1) {
    OK(MPI_Recv(&never, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  for (;;) pause();
}
