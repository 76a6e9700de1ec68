/* Every rank adds its number to a sum that goes round in a ring, and rank 0 says what it is.
 *
 *   ferrycc ring.c -o ring && ferryrun -n 4 ./ring
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  int sum = rank;
  if (rank > 0) {
    int before = 0;
    MPI_Recv(&before, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum += before;
  }
  printf("rank %d has %d\n", rank, sum);
  if (size > 1) {
    MPI_Send(&sum, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) {
    if (size > 1) {
      MPI_Recv(&sum, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    printf("the sum of all ranks is %d\n", sum);
  }
  MPI_Finalize();
  return 0;
}
