/* A tool's view: its MPI_Send replaces Ferry's, which it calls by the other name. */
#include "tests/mpi/ranks/check.h"

static int sends, bytes_sent;

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  int size = 0;
  PMPI_Type_size(datatype, &size);
  ++sends;
  bytes_sent += count * size;
  return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int main(int argc, char** argv) {
  double data[3] = {0};
  begin(&argc, &argv);
  if (rank == 0) {
    for (int peer = 1; peer < size; ++peer) {
      OK(MPI_Send(data, 3, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD));
    }
    CHECK(sends == size - 1 && bytes_sent == 24 * (size - 1));
  } else {
    OK(MPI_Recv(data, 3, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(sends == 0);
  }
  return end_well("the tool saw all sends");
}
