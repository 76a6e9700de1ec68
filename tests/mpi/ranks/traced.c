// Programs whose timelines are known (tests/mpi/e2e/trace_test.cc). The first argument names one:
// "messages", "many", "killed", whose rank 1 kills itself, "hangs", whose ranks wait while rank 0
// runs the command of the second argument, or "nothing".
//
// Each message has a size of its own among those of its sender, receiver and tag, which are from
// kFirstTag on: so the test knows which send and which receive belong together.
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kFirstTag = 1000, kEach = 12, kBuffer = 1 << 21, kMany = 20000 };

static int rank, size;

// Of the i-th message of a tag: empty, short, as long as a cell, and long ones.
static int BytesOf(int tag, int i) {
  static const int kBases[] = {0, 100, 3000, 70000, 300000, 1100000};
  return kBases[(tag + i) % 6] + i;
}

// To the next rank, from the one before: sends of three tags in turn, receives of which some are
// posted before, in another order, and some of any source or tag.
static void Messages(void) {
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  static char out[kBuffer];
  char* in = malloc((size_t)kBuffer * kEach);
  MPI_Request requests[2 * kEach];
  for (int i = 0; i < kEach; ++i) {  // tag 0: nonblocking, posted before the barrier
    MPI_Irecv(in + (size_t)kBuffer * i, kBuffer, MPI_BYTE, before, kFirstTag, MPI_COMM_WORLD,
              &requests[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kEach; ++i) {
    MPI_Isend(out, BytesOf(0, i), MPI_BYTE, next, kFirstTag, MPI_COMM_WORLD, &requests[kEach + i]);
  }
  MPI_Waitall(2 * kEach, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kEach; ++i) {  // tag 1: blocking, from any source, of any tag
    MPI_Sendrecv(out, BytesOf(1, i), MPI_BYTE, next, kFirstTag + 1, in, kBuffer, MPI_BYTE,
                 MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kEach; ++i) {  // tag 2: unexpected ones, found by probes
    MPI_Isend(out, BytesOf(2, i) % 3000, MPI_BYTE, next, kFirstTag + 2, MPI_COMM_WORLD,
              &requests[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kEach; ++i) {
    MPI_Status status;
    MPI_Message message;
    MPI_Mprobe(before, kFirstTag + 2, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(in, kBuffer, MPI_BYTE, &message, &status);
  }
  MPI_Waitall(kEach, requests, MPI_STATUSES_IGNORE);
  MPI_Request persistent[2];  // tag 3: persistent ones
  MPI_Send_init(out, BytesOf(3, 4), MPI_BYTE, next, kFirstTag + 3, MPI_COMM_WORLD, &persistent[0]);
  MPI_Recv_init(in, kBuffer, MPI_BYTE, before, kFirstTag + 3, MPI_COMM_WORLD, &persistent[1]);
  for (int i = 0; i < kEach; ++i) {
    MPI_Startall(2, persistent);
    MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&persistent[0]);
  MPI_Request_free(&persistent[1]);
  free(in);
}

// Rank 0 and rank 1 in turn.
static void Many(void) {
  char byte = 0;
  for (int i = 0; i < kMany && rank < 2; ++i) {
    if (i % 2 == rank) {
      MPI_Send(&byte, 1, MPI_BYTE, 1 - rank, kFirstTag, MPI_COMM_WORLD);
    } else {
      MPI_Recv(&byte, 1, MPI_BYTE, 1 - rank, kFirstTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}

// Rank 1 is killed while it waits for rank 0, which has slept long enough for it to be seen.
static void Killed(void) {
  char byte = 0;
  if (rank == 1) {
    MPI_Send(&byte, 1, MPI_BYTE, 0, kFirstTag, MPI_COMM_WORLD);
    if (fork() == 0) {  // not by the rank, which is to be killed in its call
      usleep(300000);
      kill(getppid(), SIGKILL);
      _exit(0);
    }
    MPI_Recv(&byte, 1, MPI_BYTE, 0, kFirstTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 0) {
    MPI_Recv(&byte, 1, MPI_BYTE, 1, kFirstTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&byte, 1, MPI_BYTE, 1, kFirstTag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static int Hangs(const char* command) {
  int code = 0;
  if (rank == 0) {
    usleep(200000);  // the others wait meanwhile
    code = system(command);
    for (int to = 1; to < size; ++to) {
      MPI_Send(&code, 1, MPI_INT, to, kFirstTag, MPI_COMM_WORLD);
    }
  } else {
    MPI_Recv(&code, 1, MPI_INT, 0, kFirstTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return code != 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* const program = argc > 1 ? argv[1] : "nothing";
  int code = 0;
  if (strcmp(program, "messages") == 0) {
    Messages();
  } else if (strcmp(program, "many") == 0) {
    Many();
  } else if (strcmp(program, "killed") == 0) {
    Killed();
  } else if (strcmp(program, "hangs") == 0 && argc > 2) {
    code = Hangs(argv[2]);
  }
  MPI_Finalize();
  return code;
}
