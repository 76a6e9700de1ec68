/* A program that is compiled with the header of another MPI library, and runs on Ferry's library
 * with its binary interface: messages are translated without memory of the heap.
 */
#include <stddef.h>

#include "tests/mpi/foreign/interface.h"

enum { kRequests = 64, kRounds = 2000 };

/* ---- The heap, as this thread uses it ---------------------------------------------------------
 */

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static _Thread_local long allocations;

void* malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  ++allocations;
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}

/* ---- Messages ---------------------------------------------------------------------------------
 */

static long received[kRequests], sent[kRequests];
static MPI_Request requests[2 * kRequests];
static MPI_Status statuses[2 * kRequests];

/* A message of 8 bytes to oneself, ended by each of the calls that end requests. */
static void one_message(int round) {
  int flag = 0, index = 0, count = 0, indices[2];
  OK(MPI_Irecv(received, 8, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Isend(sent, 8, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &requests[1]));
  switch (round % 6) {
    case 0:
      OK(MPI_Waitall(2, requests, statuses));
      break;
    case 1:
      OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
      break;
    case 2:
      OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
      while (!flag) OK(MPI_Test(&requests[0], &flag, statuses));
      break;
    case 3:
      while (!flag) OK(MPI_Testall(2, requests, &flag, statuses));
      break;
    case 4:
      OK(MPI_Waitany(2, requests, &index, statuses));
      OK(MPI_Waitany(2, requests, &index, statuses));
      break;
    default:
      for (int ended = 0; ended < 2; ended += count) {
        OK(MPI_Waitsome(2, requests, &count, indices, statuses));
      }
  }
  CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
}

static void many_messages(void) {
  for (int i = 0; i < kRequests / 2; ++i) {
    OK(MPI_Irecv(&received[i], 8, MPI_BYTE, rank, i, MPI_COMM_WORLD, &requests[i]));
  }
  for (int i = 0; i < kRequests / 2; ++i) {
    OK(MPI_Isend(&sent[i], 8, MPI_BYTE, rank, i, MPI_COMM_WORLD, &requests[kRequests / 2 + i]));
  }
  OK(MPI_Waitall(kRequests, requests, statuses));
}

static void rounds(void) {
  for (int i = 0; i < kRounds; ++i) {
    one_message(i);
    if (i % 50 == 0) many_messages();
  }
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  step = "messages that are translated without allocating";
  free(malloc(8));
  CHECK(allocations > 0); /* they are counted */
  rounds();
  const long before = allocations;
  rounds();
  CHECK(allocations == before);
  return end_of_rank();
}
