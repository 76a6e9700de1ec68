/* The smallest Ferry program: every rank greets the next one in a ring.
 *
 *   ferryrun -n 4 hello
 */
#include <stdio.h>

#include "ferry/ferry.h"

#define CHECK(call)                                           \
  do {                                                        \
    if ((call) != FERRY_SUCCESS) {                            \
      fprintf(stderr, "%s: %s\n", #call, ferry_last_error()); \
      return 1;                                               \
    }                                                         \
  } while (0)

int main(void) {
  char greeting[64];
  char received[64];
  ferry_request request;

  CHECK(ferry_init(FERRY_THREAD_SINGLE, NULL));
  const int rank = ferry_rank();
  const int size = ferry_size();
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;

  snprintf(greeting, sizeof(greeting), "hello from rank %d", rank);
  CHECK(ferry_isend(greeting, sizeof(greeting), next, 0, &request));
  CHECK(ferry_recv(received, sizeof(received), previous, 0, NULL));
  CHECK(ferry_wait(&request, NULL));
  printf("rank %d of %d heard: %s\n", rank, size, received);

  CHECK(ferry_finalize());
  return 0;
}
