/* Messages and counts of more than 2 GiB, by the calls with MPI_Count. Run by two ranks. */
#include "tests/mpi/ranks/check.h"

int main(int argc, char** argv) {
  const MPI_Count bytes = ((MPI_Count)1 << 31) + 12345;
  MPI_Datatype block;
  MPI_Status status;
  MPI_Count count;
  unsigned char* data = malloc((size_t)bytes);
  begin(&argc, &argv);
  step = "a large count";
  if (rank == 0) {
    fill(data, (size_t)bytes, 5);
    OK(MPI_Send_c(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
  } else {
    OK(MPI_Recv_c(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count_c(&status, MPI_BYTE, &count));
    CHECK(count == bytes);
    CHECK(count_of(&status, MPI_BYTE) == MPI_UNDEFINED); /* it does not fit */
    CHECK(is_filled(data, (size_t)bytes, 5));
  }
  step = "a large datatype";
  OK(MPI_Type_contiguous_c(bytes, MPI_BYTE, &block));
  OK(MPI_Type_commit(&block));
  if (rank == 0) {
    fill(data, (size_t)bytes, 6);
    OK(MPI_Ssend(data, 1, block, 1, 1, MPI_COMM_WORLD));
  } else {
    OK(MPI_Recv(data, 1, block, 0, 1, MPI_COMM_WORLD, &status));
    CHECK(count_of(&status, block) == 1 && is_filled(data, (size_t)bytes, 6));
  }
  OK(MPI_Type_free(&block));
  free(data);
  return end_well("large messages were right");
}
