// A tool in C, which is loaded before the program: it counts what becomes a call of MPI_Send.
#include <mpi.h>

static int seen;

int sends_that_the_tool_saw(void);
int sends_that_the_tool_saw(void) { return seen; }

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  ++seen;
  return PMPI_Send(buf, count, datatype, dest, tag, comm);
}
