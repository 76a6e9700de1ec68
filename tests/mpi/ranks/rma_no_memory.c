/* A window over ordinary memory, whose owner has no memory left for what another rank wants to put
 * into it: that rank gets an error, and the owner goes on. Of two ranks on two nodes.
 */
#include <sys/resource.h>

#include "tests/mpi/ranks/rma.h"

enum { kMany = 192 << 20 };

/* From now on this process gets little more of the address space than it has. */
static void leave_little_room(void) {
  long pages = 0;
  FILE* const statm = fopen("/proc/self/statm", "r");
  CHECK(statm != NULL && fscanf(statm, "%ld", &pages) == 1);
  fclose(statm);
  const struct rlimit limit = {(rlim_t)pages * 4096 + (kMany / 3), RLIM_INFINITY};
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  bound_time(200);
  struct window window = make_window(ordinary, kMany, 1);
  char* const data = calloc(1, kMany);
  CHECK(data != NULL);
  memset(window.base, 7, kMany);
  barrier();
  if (rank == 0) leave_little_room();
  barrier();
  if (rank == 1) {
    int error_class = MPI_SUCCESS;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win));
    const int error = MPI_Put(data, kMany, MPI_BYTE, 0, 0, kMany, MPI_BYTE, window.win);
    CHECK(error != MPI_SUCCESS && MPI_Error_class(error, &error_class) == MPI_SUCCESS);
    CHECK(error_class == MPI_ERR_NO_MEM);
    const int got = MPI_Get(data, kMany, MPI_BYTE, 0, 0, kMany, MPI_BYTE, window.win);
    CHECK(got != MPI_SUCCESS && MPI_Error_class(got, &error_class) == MPI_SUCCESS);
    CHECK(error_class == MPI_ERR_NO_MEM && data[0] == 0);
    OK(MPI_Put("x", 1, MPI_BYTE, 0, 5, 1, MPI_BYTE, window.win));
    OK(MPI_Win_unlock(0, window.win));
  }
  barrier();
  CHECK(rank != 0 || (window.base[4] == 7 && window.base[5] == 'x' && window.base[6] == 7));
  drop_window(&window);
  free(data);
  return end_well("ok");
}
