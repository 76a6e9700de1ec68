/* Small partitions travel together: rank 0 readies 64 partitions of 8 bytes for rank 1 of another
 * node, for so many rounds, and prints what its daemon has counted. `partitioned_units ROUNDS
 * FERRYCTL [KEY VALUE]...`: hints for the send.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/partitioned.h"

enum { tag = 15, partitions = 64, each = 8 };

int main(int argc, char** argv) {
  MPI_Request request;
  MPI_Info hints;
  begin(&argc, &argv);
  bound_time(60);
  CHECK(argc > 2 && size == 2);
  const int rounds = atoi(argv[1]);
  OK(MPI_Info_create(&hints));
  for (int i = 3; i + 1 < argc; i += 2) OK(MPI_Info_set(hints, argv[i], argv[i + 1]));
  struct buffer buffer = make_buffer(kHeap, partitions * each);
  if (rank == 0) {
    OK(MPI_Psend_init(buffer.at, partitions, each, MPI_BYTE, 1, tag, MPI_COMM_WORLD, hints,
                      &request));
  } else {
    OK(MPI_Precv_init(buffer.at, partitions, each, MPI_BYTE, 0, tag, MPI_COMM_WORLD, hints,
                      &request));
  }
  OK(MPI_Info_free(&hints));
  for (int round = 0; round < rounds; ++round) {
    if (rank == 0) fill_buffer(&buffer, (unsigned)round);
    OK(MPI_Start(&request));
    OK(MPIX_Pbuf_prepare(request));
    if (rank == 0) ready_all(request, partitions);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank == 1) CHECK(holds_all(&buffer, (unsigned)round));
  }
  OK(MPI_Request_free(&request));
  if (rank == 0) {
    char command[4096];
    snprintf(command, sizeof(command), "%s counters --json", argv[2]);
    CHECK(system(command) == 0);
  }
  drop_buffer(&buffer);
  OK(MPI_Finalize());
  return 0;
}
