/* A rank that initialises MPI and ends. Rank 0 prints the milliseconds from the beginning of main
 * to the end of MPI_Finalize; libraries that were loaded before main are not in them. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double NowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

int main(void) {
  const double begin_ms = NowMs();
  int rank = -1;
  if (MPI_Init(NULL, NULL) != MPI_SUCCESS || MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
      MPI_Finalize() != MPI_SUCCESS) {
    return 1;
  }
  if (rank == 0) {
    printf("%.3f\n", NowMs() - begin_ms);
  }
  return 0;
}
