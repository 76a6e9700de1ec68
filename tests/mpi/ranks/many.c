/* A job of as many ranks as its test likes, each of which talks to few. "meet": rank 0 prints what
 * memory the ranks take, "ranks N private KIB pss KIB", the most of any, and ends well. "die": the
 * rank in the middle kills itself, and all others print "rank R: error CLASS" and end with code 3.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

/* To and from the ranks in front, behind, and a third of the job away: of this node, and others. */
static void talk(int distance) {
  const int to = (rank + distance) % size, from = (rank + size - distance) % size;
  long sent = rank * 1000L + distance, got = -1;
  OK(MPI_Sendrecv(&sent, 1, MPI_LONG, to, 7, &got, 1, MPI_LONG, from, 7, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  CHECK(got == from * 1000L + distance);
}

static void sum(void) {
  const long all = size;
  long own = rank + 1, total = 0;
  OK(MPI_Allreduce(&own, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
  CHECK(total == all * (all + 1) / 2);
}

/* A line of the kernel's account of this process's memory, in KiB. */
static long account(const char* name) {
  char line[256];
  long kib = -1, found;
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  if (file == NULL) return -1;
  while (fgets(line, sizeof(line), file) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), ": %ld", &found) == 1) {
      kib = found;
    }
  }
  fclose(file);
  return kib;
}

static void say_memory(void) {
  /* Pages that only this rank maps are its own even where they are shared by their nature. */
  long own[3] = {account("Private_Dirty"), account("Pss"), account("Rss")};
  long most[3] = {0, 0, 0};
  OK(MPI_Reduce(own, most, 3, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD));
  if (rank == 0) {
    printf("ranks %d private %ld pss %ld rss %ld\n", size, most[0], most[1], most[2]);
    fflush(stdout);
  }
}

static int die(void) {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  if (rank == size / 2) raise(SIGKILL);
  int error = MPI_SUCCESS;
  while (error == MPI_SUCCESS) error = MPI_Barrier(MPI_COMM_WORLD);
  int error_class = -1;
  OK(MPI_Error_class(error, &error_class));
  printf("rank %d: error %d\n", rank, error_class);
  fflush(stdout);
  _exit(3);
}

int main(int argc, char** argv) {
  step = "init";
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  step = "barrier";
  OK(MPI_Barrier(MPI_COMM_WORLD));
  step = "messages to few";
  talk(1);
  talk(size / 3 + 1);
  step = "allreduce";
  sum();
  step = "memory";
  say_memory();
  step = "a death";
  if (argc > 1 && strcmp(argv[1], "die") == 0) return die();
  OK(MPI_Finalize());
  return 0;
}
