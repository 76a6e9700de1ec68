/* Ping-pong by MPI, between host buffers and then between device buffers, which MPI_Send and
 * MPI_Recv take as they take any other.
 *
 *   ferryrun -n 2 mpi_pingpong [LARGEST_BYTES]
 *
 * Rank 0 prints how long a message takes one way, and compares the data that come back with
 * those that it sent. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ferry/ferry.h"

enum { kRounds = 200, kTag = 0 };

typedef struct {
  ferry_memory_kind kind;
  const char* name;
} Memory;

/* Ferry's own memory, of the kind asked for. MPI has started Ferry. */
static char* Allocate(ferry_memory_kind kind, size_t size) {
  void* buffer = NULL;
  if (ferry_alloc(size, kind, 0, &buffer) != FERRY_SUCCESS) {
    fprintf(stderr, "mpi_pingpong: %s\n", ferry_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return buffer;
}

static void Copy(void* to, const void* from, size_t size) {
  if (ferry_memcpy(to, from, size) != FERRY_SUCCESS) {
    fprintf(stderr, "mpi_pingpong: %s\n", ferry_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* Rank 1 sends back the data that it received. Returns microseconds one way. */
static double PingPong(int rank, char* out, char* in, int size) {
  const double start = MPI_Wtime();
  for (int i = 0; i < kRounds; ++i) {
    if (rank == 0) {
      MPI_Send(out, size, MPI_BYTE, 1, kTag, MPI_COMM_WORLD);
      MPI_Recv(in, size, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(in, size, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(in, size, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - start) / kRounds / 2 * 1e6;
}

/* All sizes in one kind of memory; `sent` and `received` are plain host memory to compare in. */
static int Run(const Memory* memory, int rank, int largest, char* sent, char* received) {
  char* out = Allocate(memory->kind, (size_t)largest);
  char* in = Allocate(memory->kind, (size_t)largest);
  Copy(out, sent, (size_t)largest);
  int wrong = 0;
  for (int size = 1; size <= largest; size *= 8) {
    memset(received, 0, (size_t)size);
    Copy(in, received, (size_t)size);
    MPI_Barrier(MPI_COMM_WORLD);
    const double us = PingPong(rank, out, in, size);
    Copy(received, in, (size_t)size);
    const int same = memcmp(sent, received, (size_t)size) == 0;
    wrong += !same;
    if (rank == 0) {
      printf("%-6s %8d bytes %10.2f us %9.1f MB/s%s\n", memory->name, size, us, size / us,
             same ? "" : " WRONG DATA");
    }
  }
  ferry_free(out);
  ferry_free(in);
  return wrong;
}

int main(int argc, char** argv) {
  static const Memory kMemories[] = {{FERRY_MEMORY_HOST, "host"}, {FERRY_MEMORY_DEVICE, "device"}};
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long largest = argc > 1 ? strtol(argv[1], NULL, 10) : 1 << 21;
  if (ranks != 2 || largest < 1 || largest > 1 << 28) {
    fprintf(stderr, "usage: mpi_pingpong [LARGEST_BYTES], 1 to 268435456, on two ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  char* sent = malloc((size_t)largest);
  char* received = malloc((size_t)largest);
  if (sent == NULL || received == NULL) {
    fprintf(stderr, "mpi_pingpong: no memory\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (long i = 0; i < largest; ++i) {
    sent[i] = (char)(1 + i % 101);
  }
  int wrong = 0;
  for (size_t i = 0; i < sizeof(kMemories) / sizeof(kMemories[0]); ++i) {
    wrong += Run(&kMemories[i], rank, (int)largest, sent, received);
  }
  free(sent);
  free(received);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
