// Programs that are slow for a reason that the first argument names; `ferryrun --report` is to find
// it (tests/mpi/e2e/report_test.cc). They end well, but for "killed", whose rank 1 kills itself.
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kRounds = 15, kPauseUs = 20000, kLong = 1 << 20 };

static int rank, size;

static void LateSender(void) {
  int value = 0;
  for (int i = 0; i < kRounds; ++i) {
    if (rank == 0) {
      usleep(kPauseUs);
      MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
      MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}

// As LateSender, with requests.
static void LateIsend(void) {
  int value = 0;
  MPI_Request request;
  for (int i = 0; i < kRounds; ++i) {
    if (rank == 0) {
      usleep(kPauseUs);
      MPI_Isend(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
      MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    }
  }
}

static void LateReceiver(void) {
  char* const data = calloc(1, kLong);
  for (int i = 0; i < kRounds; ++i) {
    if (rank == 0) {
      MPI_Send(data, kLong, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
      usleep(kPauseUs);
      MPI_Recv(data, kLong, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  free(data);
}

static void SlowRank(void) {
  double mine = rank, sum = 0;
  for (int i = 0; i < kRounds; ++i) {
    if (rank == 1) {
      usleep(kPauseUs);
    }
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

// Another rank is late each time.
static void Imbalance(void) {
  for (int i = 0; i < 2 * kRounds; ++i) {
    if (rank == i % size) {
      usleep(kPauseUs);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void SmallMessages(void) {
  int value = 0;
  for (int i = 0; i < 200000; ++i) {
    if (rank == 0) {
      MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
      MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}

static void Polls(void) {
  int value = 0;
  if (rank == 0) {
    usleep(kRounds * kPauseUs);
    MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
  }
}

// Rank 1 has 64 times as much for each as the others.
static void UnequalBlocks(void) {
  const int own = rank == 1 ? kLong : kLong / 64;
  int counts[2][64], places[2][64];
  int from = 0;
  for (int i = 0; i < size; ++i) {
    counts[0][i] = own;
    places[0][i] = i * own;
    counts[1][i] = i == 1 ? kLong : kLong / 64;
    places[1][i] = from;
    from += counts[1][i];
  }
  char* const out = calloc((size_t)size, (size_t)own);
  char* const in = calloc(1, (size_t)from);
  for (int i = 0; i < 4 * kRounds; ++i) {
    MPI_Alltoallv(out, counts[0], places[0], MPI_BYTE, in, counts[1], places[1], MPI_BYTE,
                  MPI_COMM_WORLD);
  }
  free(out);
  free(in);
}

static void WindowLock(void) {
  int* memory = NULL;
  MPI_Win window;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  for (int i = 0; i < kRounds; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
    usleep(kPauseUs);
    MPI_Win_unlock(0, window);
  }
  MPI_Win_free(&window);
}

// One thread makes the partitions one after the other.
static void Partitions(void) {
  enum { kPartitions = 4 };
  int data[kPartitions] = {0};
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) {
    MPI_Psend_init(data, kPartitions, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  } else if (rank == 1) {
    MPI_Precv_init(data, kPartitions, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  } else {
    return;
  }
  for (int i = 0; i < kRounds; ++i) {
    MPI_Start(&request);
    for (int part = 0; rank == 0 && part < kPartitions; ++part) {
      usleep(kPauseUs / kPartitions);
      MPI_Pready(part, request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
}

static void Messages(int count, int bytes) {
  char* const data = calloc(1, (size_t)bytes);
  for (int i = 0; i < count; ++i) {
    if (rank == 0) {
      MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
      MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  free(data);
}

// What the kernel does to ranks that may run anywhere.
static void Unbound(void) {
  cpu_set_t all;
  sched_getaffinity(0, sizeof(all), &all);
  int value = 0;
  int cpu = -1;
  for (int i = 0; i < 4 * kRounds; ++i) {
    if (i % 2 == 0) {  // each rank waits in every second round
      do {
        cpu = (cpu + 1) % CPU_SETSIZE;
      } while (!CPU_ISSET(cpu, &all));
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof(one), &one);
    }
    if (rank == i % 2) {
      usleep(kPauseUs / 4);
      MPI_Send(&value, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD);
    } else if (rank < 2) {
      MPI_Recv(&value, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}

// Small pieces of a file, by each rank for itself, and a few larger ones together.
static void Files(const char* name) {
  char data[1000] = "";
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &file);
  for (int i = 0; i < 2000; ++i) {
    MPI_File_write_at(file, (MPI_Offset)(i * size + rank) * 10, data, 10, MPI_CHAR,
                      MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 5; ++i) {
    MPI_File_write_at_all(file, rank * 1000, data, 1000, MPI_CHAR, MPI_STATUS_IGNORE);
  }
  MPI_Request request;
  MPI_File_iread_at(file, 0, data, 100, MPI_CHAR, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

// The others hear of its end, and end.
static void Killed(void) {
  SlowRank();
  if (rank == 1) {
    raise(SIGKILL);
  }
  pause();
}

static void Run(const char* what, const char* more) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kPrograms[] = {{"late_sender", LateSender},
                   {"late_isend", LateIsend},
                   {"late_receiver", LateReceiver},
                   {"slow_rank", SlowRank},
                   {"imbalance", Imbalance},
                   {"small", SmallMessages},
                   {"polls", Polls},
                   {"unequal", UnequalBlocks},
                   {"lock", WindowLock},
                   {"partitions", Partitions},
                   {"unbound", Unbound},
                   {"killed", Killed}};
  for (size_t i = 0; i < sizeof(kPrograms) / sizeof(*kPrograms); ++i) {
    if (strcmp(kPrograms[i].name, what) == 0) {
      kPrograms[i].run();
      return;
    }
  }
  if (strcmp(what, "files") == 0 && more != NULL) {
    Files(more);
  } else if (strcmp(what, "eager") == 0) {
    Messages(500, 4096);
  } else if (strcmp(what, "private") == 0) {
    Messages(100, kLong);
  } else if (strcmp(what, "nothing") != 0) {
    fprintf(stderr, "no program %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Run(argc > 1 ? argv[1] : "nothing", argc > 2 ? argv[2] : NULL);
  MPI_Finalize();
  return 0;
}
