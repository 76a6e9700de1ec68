/* Prints how many messages each rank sends in a collective, which shows the algorithm: "sent 4 0
 * 0". Arguments: the collective and the bytes of its vector.
 */
#include <ferry/ferry.h>

#include "tests/mpi/ranks/check.h"

static unsigned long long messages_sent(void) {
  for (int i = 0; i < ferry_counter_count(); ++i) {
    if (strcmp(ferry_counter_name(i), "messages_sent") == 0) return ferry_counter_value(i);
  }
  CHECK(!"there is the counter of messages that were sent");
  return 0;
}

static void run(const char* collective, int count, float* in, float* out) {
  step = collective;
  if (strcmp(collective, "bcast") == 0) {
    OK(MPI_Bcast(out, count, MPI_FLOAT, 0, MPI_COMM_WORLD));
  } else if (strcmp(collective, "allreduce") == 0) {
    OK(MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
  } else {
    CHECK(!"the collective is one that this program knows");
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  CHECK(argc == 3);
  const int count = atoi(argv[2]) / (int)sizeof(float);
  float* in = calloc((size_t)count, sizeof(float));
  float* out = calloc((size_t)count, sizeof(float));
  unsigned long long* all = calloc((size_t)size, sizeof(*all));
  const unsigned long long before = messages_sent();
  run(argv[1], count, in, out);
  const unsigned long long sent = messages_sent() - before;
  OK(MPI_Gather(&sent, 1, MPI_UNSIGNED_LONG_LONG, all, 1, MPI_UNSIGNED_LONG_LONG, 0,
                MPI_COMM_WORLD));
  if (rank == 0) {
    printf("sent");
    for (int i = 0; i < size; ++i) printf(" %llu", all[i]);
    printf("\n");
  }
  free(in);
  free(out);
  free(all);
  OK(MPI_Finalize());
  return 0;
}
