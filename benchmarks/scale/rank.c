/* A rank of a large job. It initialises MPI, waits for the others, and prints "ready PID MS
 * PRIVATE": its process, milliseconds of MPI_Init, and KiB of its memory that no other process
 * maps. Once there is a line on standard input of rank 0, all ranks end. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double NowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static long PrivateKib(void) {
  char line[256];
  long sum = 0;
  FILE* const file = fopen("/proc/self/smaps_rollup", "r");
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    long kib = 0;
    if (sscanf(line, "Private_Clean: %ld", &kib) == 1 ||
        sscanf(line, "Private_Dirty: %ld", &kib) == 1) {
      sum += kib;
    }
  }
  if (file != NULL) {
    fclose(file);
  }
  return sum;
}

int main(void) {
  const double begin_ms = NowMs();
  int rank = -1;
  if (MPI_Init(NULL, NULL) != MPI_SUCCESS || MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) {
    return 1;
  }
  const double init_ms = NowMs() - begin_ms;
  const long private_kib = PrivateKib();
  if (MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS) {
    return 1;
  }
  printf("ready %d %.1f %ld\n", (int)getpid(), init_ms, private_kib);
  fflush(stdout);
  if (rank == 0) {
    (void)getchar();
  }
  if (MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS || MPI_Finalize() != MPI_SUCCESS) {
    return 1;
  }
  return 0;
}
