/* The smallest MPI program: every rank greets the next one in a ring. Nothing in it is Ferry's.
 *
 *   ferrycc hello.c -o hello && ferryrun -n 4 ./hello
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;

  int greeter = -1;
  MPI_Sendrecv(&rank, 1, MPI_INT, next, 0, &greeter, 1, MPI_INT, previous, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);

  char host[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(host, &length);
  printf("rank %d of %d on %s: rank %d says hello\n", rank, size, host, greeter);

  MPI_Finalize();
  return 0;
}
