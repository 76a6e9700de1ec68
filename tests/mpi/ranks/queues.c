/* Four ranks: rank 1 has a receive without a message, a message without a receive, and a send
 * without one, until the file that the argument names is there.
 */
#define _DEFAULT_SOURCE
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

enum { receive_tag = 11, early_tag = 22, next_tag = 23, send_tag = 33, long_bytes = 1 << 20 };

static char block[long_bytes];

int main(int argc, char** argv) {
  int numbers[20] = {0};
  char early[24] = "";
  MPI_Request requests[2];
  begin(&argc, &argv);
  rank = rank_in(MPI_COMM_WORLD);
  CHECK(argc > 1 && size_of(MPI_COMM_WORLD) == 4);
  if (rank == 0) {
    OK(MPI_Send(early, sizeof(early), MPI_CHAR, 1, early_tag, MPI_COMM_WORLD));
    OK(MPI_Send(early, 1, MPI_CHAR, 1, next_tag, MPI_COMM_WORLD));
  } else if (rank == 1) {
    OK(MPI_Irecv(numbers, 20, MPI_INT, 2, receive_tag, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Recv(early, 1, MPI_CHAR, 0, next_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Isend(block, long_bytes, MPI_CHAR, 3, send_tag, MPI_COMM_WORLD, &requests[1]));
    puts("rank 1 is ready");
    fflush(stdout);
  }
  while (access(argv[1], F_OK) != 0) usleep(1000);
  if (rank == 1) {
    OK(MPI_Recv(early, sizeof(early), MPI_CHAR, 0, early_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  } else if (rank == 2) {
    OK(MPI_Send(numbers, 20, MPI_INT, 1, receive_tag, MPI_COMM_WORLD));
  } else if (rank == 3) {
    OK(MPI_Recv(block, long_bytes, MPI_CHAR, 1, send_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  return end_well("the queues are empty");
}
