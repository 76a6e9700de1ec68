/* MPI_THREAD_MULTIPLE: threads of each rank exchange messages with threads of the next one, by
 * their own tags, at the same time, while others create requests and wait for several of them.
 */
#include <pthread.h>

#include "tests/mpi/ranks/check.h"

enum { threads = 4, rounds = 200, window = 8, bytes = 20000 };
static void* converse(void* argument) {
  const int self = (int)(size_t)argument;
  unsigned char* out = malloc(window * bytes);
  unsigned char* in = malloc(window * bytes);
  for (int round = 0; round < rounds; ++round) {
    MPI_Request requests[2 * window];
    MPI_Status statuses[2 * window];
    for (int n = 0; n < window; ++n) {
      const int length = (round * 97 + n * 1009) % bytes;
      fill(out + n * bytes, (size_t)length, (unsigned)(round + n + self + rank));
      OK(MPI_Irecv(in + n * bytes, bytes, MPI_BYTE, before, self * window + n, MPI_COMM_WORLD,
                   &requests[n]));
      OK(MPI_Isend(out + n * bytes, length, MPI_BYTE, next, self * window + n, MPI_COMM_WORLD,
                   &requests[window + n]));
    }
    if (self % 2 == 0) {
      OK(MPI_Waitall(2 * window, requests, statuses));
    } else {
      for (int left = 2 * window; left != 0;) {
        int done, indices[2 * window];
        MPI_Status some[2 * window];
        OK(MPI_Waitsome(2 * window, requests, &done, indices, some));
        for (int i = 0; i < done; ++i) statuses[indices[i]] = some[i];
        left -= done;
      }
    }
    for (int n = 0; n < window; ++n) {
      const int length = (round * 97 + n * 1009) % bytes;
      CHECK(count_of(&statuses[n], MPI_BYTE) == length);
      CHECK(is_filled(in + n * bytes, (size_t)length, (unsigned)(round + n + self + before)));
    }
  }
  free(out);
  free(in);
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t others[threads];
  int main_thread = 0, level = -1;
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  OK(MPI_Query_thread(&level));
  OK(MPI_Is_thread_main(&main_thread));
  CHECK(level == MPI_THREAD_MULTIPLE && main_thread);
  step = "the threads";
  for (size_t i = 0; i < threads; ++i) {
    CHECK(pthread_create(&others[i], NULL, converse, (void*)i) == 0);
  }
  for (int i = 0; i < threads; ++i) pthread_join(others[i], NULL);
  return end_well("all threads were served");
}
