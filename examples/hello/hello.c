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
  int greeter = -1;
  ferry_request request;

  CHECK(ferry_init(FERRY_THREAD_SINGLE, NULL));
  const int rank = ferry_rank();
  const int size = ferry_size();
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;

  CHECK(ferry_isend(&rank, sizeof(rank), next, 0, &request));
  CHECK(ferry_recv(&greeter, sizeof(greeter), previous, 0, NULL));
  CHECK(ferry_wait(&request, NULL));
  printf("rank %d of %d: rank %d says hello\n", rank, size, greeter);

  CHECK(ferry_finalize());
  return 0;
}
