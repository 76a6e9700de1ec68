/* Vectors in device memory go round in a ring, and are summed over all ranks: MPI takes such memory
 * as it takes any other. It is Ferry's here; that of cudaMalloc, hipMalloc or a framework will do
 * as well.
 *
 *   ferrycc device_ring.c -o device_ring -lferry && ferryrun -n 4 ./device_ring
 */
#include <ferry/ferry.h>
#include <mpi.h>
#include <stdio.h>

enum { kNumbers = 1 << 16 };

/* Ends the job if a call of Ferry's own has failed. */
static void check(int error) {
  if (error != FERRY_SUCCESS) {
    fprintf(stderr, "device_ring: %s\n", ferry_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

int main(int argc, char** argv) {
  static float numbers[kNumbers];
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  void* out = NULL;
  void* in = NULL;
  check(ferry_alloc(sizeof(numbers), FERRY_MEMORY_DEVICE, 0, &out));
  check(ferry_alloc(sizeof(numbers), FERRY_MEMORY_DEVICE, 0, &in));
  for (int i = 0; i < kNumbers; ++i) {
    numbers[i] = (float)rank;
  }
  check(ferry_memcpy(out, numbers, sizeof(numbers)));

  MPI_Sendrecv(out, kNumbers, MPI_FLOAT, (rank + 1) % size, 0, in, kNumbers, MPI_FLOAT,
               (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(ferry_memcpy(numbers, in, sizeof(numbers)));
  printf("rank %d has the vector of rank %.0f\n", rank, numbers[kNumbers - 1]);

  MPI_Allreduce(MPI_IN_PLACE, in, kNumbers, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  check(ferry_memcpy(numbers, in, sizeof(numbers)));
  if (rank == 0) {
    printf("the sum of all ranks is %.0f\n", numbers[0]);
  }
  ferry_free(out);
  ferry_free(in);
  MPI_Finalize();
  return 0;
}
