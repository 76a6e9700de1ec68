/* The communication of an application without its computation: in each iteration a rank sends X
 * bytes of its device memory to each neighbour, and receives as many into its device memory.
 *
 *   exchange MEMORY straight|staged|pageable|halves GRID BATCH_MICROSECONDS BYTES...
 *
 * GRID is such as 2x1x1: ranks along three axes; neighbours are one step apart. With 2x1x1 this is
 * DCFA-MPI's communication-only application (copy in, send and receive, copy out: Si et al.,
 * section V, table II), with 2x2x1 and 2x2x2 the pattern of OSU's 3DStencil (Chen et al., section
 * V-G).
 *
 * MEMORY is where the data lie (device; private for MPI, which knows no other). "straight" gives it
 * to the library. "staged" copies it to pinned (MPI: private) host memory, sends, receives and
 * copies back; "pageable" does so with private memory; "halves" with pinned memory in two blocks,
 * of which one is copied while the other travels (DCFA-MPI's double buffer).
 *
 * Rank 0 prints "exchange BYTES MICROSECONDS" for an iteration, the median of several batches of
 * about the given length.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"

enum { kMaxNeighbours = 6, kMaxBlocks = 2 };

typedef struct {
  size_t size;
  int blocks; /* 0: straight */
  int pageable;
  int neighbours;
  int peers[kMaxNeighbours];
  char* sent[kMaxNeighbours]; /* device memory */
  char* received[kMaxNeighbours];
  char* staged_sent[kMaxNeighbours]; /* host memory */
  char* staged_received[kMaxNeighbours];
} Application;

static void ExchangeStraight(const Application* application) {
  Request requests[2 * kMaxNeighbours];
  const int count = application->neighbours;
  for (int i = 0; i < count; ++i) {
    StartReceive(application->received[i], application->size, application->peers[i], &requests[i]);
  }
  for (int i = 0; i < count; ++i) {
    StartSend(application->sent[i], application->size, application->peers[i], &requests[count + i]);
  }
  WaitAll(2 * count, requests);
}

/* Messages between two ranks arrive in order, so that blocks need no tags. */
static void ExchangeStaged(const Application* application) {
  Request receives[kMaxBlocks][kMaxNeighbours];
  Request sends[kMaxBlocks][kMaxNeighbours];
  const int count = application->neighbours;
  const size_t block_size = application->size / (size_t)application->blocks;
  for (int block = 0; block < application->blocks; ++block) {
    for (int i = 0; i < count; ++i) {
      StartReceive(application->staged_received[i] + (size_t)block * block_size, block_size,
                   application->peers[i], &receives[block][i]);
    }
  }
  for (int block = 0; block < application->blocks; ++block) {
    const size_t offset = (size_t)block * block_size;
    for (int i = 0; i < count; ++i) {
      Copy(application->staged_sent[i] + offset, application->sent[i] + offset, block_size);
      StartSend(application->staged_sent[i] + offset, block_size, application->peers[i],
                &sends[block][i]);
    }
  }
  for (int block = 0; block < application->blocks; ++block) {
    const size_t offset = (size_t)block * block_size;
    for (int i = 0; i < count; ++i) {
      WaitAll(1, &receives[block][i]);
      Copy(application->received[i] + offset, application->staged_received[i] + offset, block_size);
    }
  }
  for (int block = 0; block < application->blocks; ++block) {
    WaitAll(count, sends[block]);
  }
}

static double Repeat(void* context, int rounds) {
  const Application* application = context;
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    if (application->blocks == 0) {
      ExchangeStraight(application);
    } else {
      ExchangeStaged(application);
    }
  }
  return Now() - start;
}

/* Adds the neighbours of `rank` in a grid, axis 0 fastest. */
static void FindNeighbours(Application* application, const int grid[3], int rank) {
  const int strides[] = {1, grid[0], grid[0] * grid[1]};
  for (int axis = 0; axis < 3; ++axis) {
    const int place = rank / strides[axis] % grid[axis];
    for (int step = -1; step <= 1; step += 2) {
      if (place + step >= 0 && place + step < grid[axis]) {
        application->peers[application->neighbours++] = rank + step * strides[axis];
      }
    }
  }
}

static void AllocateAll(Application* application, const char* memory, size_t size, int rank) {
  const char* host = strcmp(memory, "private") == 0 || application->pageable ? "private" : "pinned";
  for (int i = 0; i < application->neighbours; ++i) {
    application->sent[i] = Filled(memory, size, rank + 1);
    application->received[i] = Filled(memory, size, 0);
    application->staged_sent[i] = Filled(host, size, 0);
    application->staged_received[i] = Filled(host, size, 0);
  }
}

/* Data from each neighbour must be that neighbour's own. CPUs may not reach them where they lie. */
static void CheckReceived(const Application* application) {
  char* const found = Filled("private", application->size, 0);
  for (int i = 0; i < application->neighbours; ++i) {
    Copy(found, application->received[i], application->size);
    for (size_t byte = 0; byte < application->size; ++byte) {
      if (found[byte] != (char)(application->peers[i] + 1)) {
        fprintf(stderr, "exchange: wrong data in a message of %zu bytes from rank %d\n",
                application->size, application->peers[i]);
        exit(1);
      }
    }
    memset(found, 0, application->size);
    Copy(application->received[i], found, application->size);
  }
  free(found);
}

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  int grid[3] = {0, 0, 0};
  Application application = {0};
  Start(&rank, &ranks);
  const char* way = argc > 2 ? argv[2] : "";
  application.pageable = strcmp(way, "pageable") == 0;
  application.blocks = strcmp(way, "staged") == 0 || application.pageable ? 1
                       : strcmp(way, "halves") == 0                       ? 2
                                                                          : 0;
  if (argc < 6 || (application.blocks == 0 && strcmp(way, "straight") != 0) ||
      sscanf(argv[3], "%dx%dx%d", &grid[0], &grid[1], &grid[2]) != 3 ||
      grid[0] * grid[1] * grid[2] != ranks) {
    fprintf(stderr,
            "usage: exchange MEMORY straight|staged|pageable|halves GRID BATCH_MICROSECONDS "
            "BYTES..., on as many ranks as the grid has\n");
    return 2;
  }
  FindNeighbours(&application, grid, rank);
  const size_t largest =
      LargestSize(argc, argv, 5, application.blocks > 0 ? (size_t)application.blocks : 1);
  AllocateAll(&application, argv[1], largest, rank);
  for (int i = 5; i < argc; ++i) {
    application.size = strtoull(argv[i], NULL, 10);
    Barrier();
    const double seconds =
        MeasureTogether(Repeat, &application, strtod(argv[4], NULL) * 1e-6, rank, ranks);
    CheckReceived(&application);
    if (rank == 0) {
      printf("exchange %zu %.4f\n", application.size, seconds * 1e6);
      fflush(stdout);
    }
  }
  Barrier();
  Finish();
  return 0;
}
