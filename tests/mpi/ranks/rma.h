/* What the programs that test windows (MPI 5.0, chapter 12) share: windows over memory of every
 * kind.
 */
#ifndef FERRY_TESTS_MPI_RANKS_RMA_H_
#define FERRY_TESTS_MPI_RANKS_RMA_H_

#include <ferry/ferry.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

/* ---- Hangs say where ---- */

static atomic_int at_line;
#undef OK
#define OK(call)                                                     \
  do {                                                               \
    atomic_store_explicit(&at_line, __LINE__, memory_order_relaxed); \
    CHECK((call) == MPI_SUCCESS);                                    \
  } while (0)

static inline void say_step(int signal) {
  char words[300];
  (void)signal;
  const int length = snprintf(words, sizeof(words), "rank %d: the time is over, in %s, line %d\n",
                              rank, step, atomic_load_explicit(&at_line, memory_order_relaxed));
  (void)!write(2, words, (size_t)length);
  _exit(99);
}

/* From now on the program may run so long. */
static inline void bound_time(unsigned seconds) {
  CHECK(signal(SIGALRM, say_step) != SIG_ERR && signal(SIGTERM, say_step) != SIG_ERR);
  alarm(seconds);
}

/* ---- Windows ---- */

enum memory { allocated, heap, ordinary, device, memory_count };
static const char* const memory_names[] = {"allocated", "heap", "ordinary", "device"};

struct window {
  enum memory memory;
  size_t bytes;
  unsigned char* base;
  MPI_Win win;
};

static inline MPI_Info device_info(void) { return info_with("ferry_memory_kind", "device"); }

/* Of MPI_COMM_WORLD; errors are returned. Not cleared. */
static inline struct window make_window(enum memory memory, size_t bytes, int disp_unit) {
  struct window made = {memory, bytes, NULL, MPI_WIN_NULL};
  const MPI_Aint size = (MPI_Aint)bytes;
  if (memory == allocated) {
    OK(MPI_Win_allocate(size, disp_unit, MPI_INFO_NULL, MPI_COMM_WORLD, &made.base, &made.win));
  } else {
    if (memory == heap) OK(MPI_Alloc_mem(size, MPI_INFO_NULL, &made.base));
    if (memory == ordinary) made.base = malloc(bytes);
    if (memory == device) {
      MPI_Info info = device_info();
      OK(MPI_Alloc_mem(size, info, &made.base));
      OK(MPI_Info_free(&info));
    }
    CHECK(made.base != NULL);
    OK(MPI_Win_create(made.base, size, disp_unit, MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
  }
  OK(MPI_Win_set_errhandler(made.win, MPI_ERRORS_RETURN));
  return made;
}

static inline void drop_window(struct window* window) {
  OK(MPI_Win_free(&window->win));
  CHECK(window->win == MPI_WIN_NULL);
  if (window->memory == heap || window->memory == device) OK(MPI_Free_mem(window->base));
  if (window->memory == ordinary) free(window->base);
}

/* Also of memory that only streams reach. */
static inline void copy(void* to, const void* from, size_t bytes) {
  CHECK(ferry_memcpy(to, from, bytes) == FERRY_SUCCESS);
}

static inline void barrier(void) { OK(MPI_Barrier(MPI_COMM_WORLD)); }

#endif /* FERRY_TESTS_MPI_RANKS_RMA_H_ */
