/* The making and freeing of communicators and windows, by the call that the first argument names,
 * while a test kills rank 2 of five, whose parent and child in trees of ranks are others. The
 * second argument is an empty file. Each of the others leaves the call, with an error or without
 * one, and stays until all have left it; then it prints "rank R: error CLASS at NANOSECONDS: TEXT"
 * of the call, or of the barrier that follows, and ends with code 3.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

enum { kVictim = 2, kLeastOfOther = 3 };

static const char* what;
static MPI_Comm inter;  /* ranks 0 to 2, and 3 to 4 */
static MPI_Comm second; /* like MPI_COMM_WORLD */

static int is(const char* name) { return strcmp(what, name) == 0; }

static void make_intercommunicator(void) {
  const int side = rank >= kLeastOfOther;
  MPI_Comm own;
  OK(MPI_Comm_split(MPI_COMM_WORLD, side, 0, &own));
  OK(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, side ? 0 : kLeastOfOther, 0, &inter));
  OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
}

static int make_window(int is_shared) {
  MPI_Win window;
  void* base;
  return is_shared ? MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window)
                   : MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
}

static int call(void) {
  MPI_Comm made;
  const int next_one = (rank + 1) % size;
  if (is("dup")) return MPI_Comm_dup(MPI_COMM_WORLD, &made);
  if (is("split")) return MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &made);
  if (is("free")) return MPI_Comm_free(&second);
  if (is("graph")) {
    return MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, (int[]){1}, &next_one, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &made);
  }
  if (is("window")) return make_window(0);
  if (is("shared")) return make_window(1);
  if (is("inter_dup")) return MPI_Comm_dup(inter, &made);
  if (is("inter_split")) return MPI_Comm_split(inter, 0, 0, &made);
  if (is("inter_merge")) return MPI_Intercomm_merge(inter, rank >= kLeastOfOther, &made);
  CHECK(is("inter_free"));
  return MPI_Comm_free(&inter);
}

static void be_under_way(void) {
  char line[40];
  const int length = snprintf(line, sizeof(line), "rank %d: under way\n", rank);
  CHECK(write(STDOUT_FILENO, line, (size_t)length) == length);
}

/* Without it a rank that waits for one of those that have left would hear of that one's end. */
static void stay_until_all_have_left_it(const char* path) {
  const int fd = open(path, O_RDWR);
  CHECK(fd >= 0 && ftruncate(fd, sizeof(atomic_int)) == 0);
  atomic_int* const left = mmap(NULL, sizeof(*left), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(left != MAP_FAILED);
  atomic_fetch_add(left, 1);
  while (atomic_load(left) < size - 1) sched_yield();
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(argc == 3 && size > kLeastOfOther);
  alarm(60);
  what = argv[1];
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  make_intercommunicator();
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &second));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  be_under_way();
  while (rank == kVictim) pause();
  int error = call();
  stay_until_all_have_left_it(argv[2]);
  if (error == MPI_SUCCESS) error = MPI_Barrier(MPI_COMM_WORLD);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  CHECK(error != MPI_SUCCESS);
  char text[MPI_MAX_ERROR_STRING];
  int length, error_class;
  OK(MPI_Error_string(error, text, &length));
  OK(MPI_Error_class(error, &error_class));
  printf("rank %d: error %d at %lld: %s\n", rank, error_class,
         (long long)now.tv_sec * 1000000000 + now.tv_nsec, text);
  fflush(stdout);
  _exit(3);
}
