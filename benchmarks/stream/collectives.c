/* Matched collectives on queues: the time of a round, and how often the node's ferryd adds to a
 * counter of the NIC for it.
 *
 *   collectives FERRYCTL ROUNDS
 *
 * Rank 0 prints "collective NAME MICROSECONDS ADDITIONS" for a round, the median of several batches
 * of ROUNDS, which are enqueued at once.
 */
#include <ferry/stream.h>
#include <mpi.h>
#include <mpix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"

enum { kWarmUps = 8, kLongBytes = 4096 };

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      fprintf(stderr, "collectives: %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                \
    }                                                                              \
  } while (0)

static MPIX_Queue queue;

/* Since the daemon's start. */
static double Additions(const char* ferryctl) {
  char command[4096], text[65536];
  CHECK(snprintf(command, sizeof(command), "%s nics --json", ferryctl) < (int)sizeof(command));
  FILE* const out = popen(command, "r");
  CHECK(out != NULL);
  text[fread(text, 1, sizeof(text) - 1, out)] = 0;
  CHECK(pclose(out) == 0);
  const char* const found = strstr(text, "\"deferred_rings\": ");
  return found == NULL ? 0 : strtod(found + strlen("\"deferred_rings\": "), NULL);
}

static void Run(MPI_Request* request, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    CHECK(MPIX_Enqueue_start(queue, request) == MPI_SUCCESS);
    CHECK(MPIX_Enqueue_wait(queue, request) == MPI_SUCCESS);
  }
  CHECK(MPIX_Queue_wait(queue) == MPI_SUCCESS);
}

static void Measure(const char* name, MPI_Request request, int rounds, const char* ferryctl) {
  int rank;
  double seconds[kBatches];
  CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS);
  CHECK(MPIX_Match(&request) == MPI_SUCCESS);
  Run(&request, kWarmUps);
  MPI_Barrier(MPI_COMM_WORLD);
  const double before = rank == 0 ? Additions(ferryctl) : 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = Now();
    Run(&request, rounds);
    seconds[batch] = Now() - start;
  }
  if (rank == 0) {
    printf("collective %s %.2f %.2f\n", name, Median(seconds, kBatches) * 1e6 / rounds,
           (Additions(ferryctl) - before) / (kBatches * rounds));
    fflush(stdout);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
}

int main(int argc, char** argv) {
  CHECK(MPI_Init(&argc, &argv) == MPI_SUCCESS);
  int size;
  CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS);
  if (argc != 3) {
    fprintf(stderr, "usage: collectives FERRYCTL ROUNDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int rounds = atoi(argv[2]);
  ferry_stream stream;
  CHECK(ferry_stream_create(0, &stream) == FERRY_SUCCESS);
  CHECK(MPIX_Queue_init(&queue, MPIX_QUEUE_FERRY, &stream) == MPI_SUCCESS);
  void* in = NULL;
  void* out = NULL;
  CHECK(MPI_Alloc_mem(kLongBytes, MPI_INFO_NULL, &in) == MPI_SUCCESS);
  CHECK(MPI_Alloc_mem((MPI_Aint)kLongBytes * size, MPI_INFO_NULL, &out) == MPI_SUCCESS);
  memset(in, 1, kLongBytes);
  memset(out, 1, (size_t)kLongBytes * (size_t)size);
  const MPI_Comm all = MPI_COMM_WORLD;
  MPI_Request request;
  CHECK(MPI_Barrier_init(all, MPI_INFO_NULL, &request) == MPI_SUCCESS);
  Measure("barrier", request, rounds, argv[1]);
  CHECK(MPI_Bcast_init(out, 8, MPI_BYTE, 0, all, MPI_INFO_NULL, &request) == MPI_SUCCESS);
  Measure("bcast_8", request, rounds, argv[1]);
  CHECK(MPI_Bcast_init(out, kLongBytes, MPI_BYTE, 0, all, MPI_INFO_NULL, &request) == MPI_SUCCESS);
  Measure("bcast_4096", request, rounds, argv[1]);
  CHECK(MPI_Allgather_init(in, 8, MPI_BYTE, out, 8, MPI_BYTE, all, MPI_INFO_NULL, &request) ==
        MPI_SUCCESS);
  Measure("allgather_8", request, rounds, argv[1]);
  CHECK(MPI_Allreduce_init(in, out, 1, MPI_DOUBLE, MPI_SUM, all, MPI_INFO_NULL, &request) ==
        MPI_SUCCESS);
  Measure("allreduce_8", request, rounds, argv[1]);
  CHECK(MPI_Free_mem(in) == MPI_SUCCESS && MPI_Free_mem(out) == MPI_SUCCESS);
  CHECK(MPIX_Queue_free(&queue) == MPI_SUCCESS);
  CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
  MPI_Finalize();
  return 0;
}
