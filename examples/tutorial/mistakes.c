/* Two mistakes, to see what Ferry says of them.
 *
 *   ./mistakes wait    each rank waits for a message that the other never sends
 *   ./mistakes crash   rank 1 writes to a null pointer
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void write_result(int* result) { *result = 1; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* mistake = argc > 1 ? argv[1] : "";
  if (strcmp(mistake, "wait") == 0) {
    int number = 0;
    MPI_Recv(&number, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(mistake, "crash") == 0 && rank == 1) {
    write_result(NULL);
  }
  MPI_Finalize();
  return 0;
}
