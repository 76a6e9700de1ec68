/* Windows of ranks of which a test kills the last one, in the state that the first argument names.
 * Whoever is left gets an error for everything that needs the dead one, prints "rank R: error CLASS
 * at NANOSECONDS: TEXT", and ends with code 3. In "alone" and "shared" the lock of rank 0 is free
 * again after the first error. In "all_fences" and "all_operate" no rank stands still.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tests/mpi/ranks/rma.h"

static struct window window;
static int victim, goes_on;

static void be_under_way(void) {
  printf("rank %d: under way\n", rank);
  fflush(stdout);
}

static void await_death(void) {
  be_under_way();
  for (;;) pause();
}

/* Rank 0 ends after those who are left have had its lock: a rank that is gone has none to give. */
static void stay_until_all_have_had_it(void) {
  if (rank != 0) {
    OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
    return;
  }
  for (int other = 1; other < victim; ++other) {
    OK(MPI_Recv(NULL, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
}

/* The last rank has the lock of rank 0, and dies with it. */
static int die_with_a_lock(int type) {
  if (rank == victim) {
    OK(MPI_Win_lock(type, 0, 0, window.win));
    barrier();
    await_death();
  }
  barrier();
  be_under_way();
  int error = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
  if (error != MPI_SUCCESS) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win));
  OK(MPI_Win_unlock(0, window.win));
  stay_until_all_have_had_it();
  /* Who has not met the dead holder, for another one has, hears of the death soon. */
  while (error == MPI_SUCCESS) {
    error = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, victim, 0, window.win);
    if (error == MPI_SUCCESS) error = MPI_Win_unlock(victim, window.win);
  }
  return error;
}

static MPI_Group group_of_victim(void) {
  MPI_Group world, group;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_incl(world, 1, &victim, &group));
  OK(MPI_Group_free(&world));
  return group;
}

static int fence(void) {
  int error = MPI_SUCCESS;
  if (rank == victim && !goes_on) await_death();
  be_under_way();
  while (error == MPI_SUCCESS) error = MPI_Win_fence(0, window.win);
  return error;
}

static int start(void) {
  if (rank == victim) await_death();
  be_under_way();
  return MPI_Win_start(group_of_victim(), 0, window.win);
}

static int wait(void) {
  if (rank == victim) await_death();
  OK(MPI_Win_post(group_of_victim(), 0, window.win));
  be_under_way();
  return MPI_Win_wait(window.win);
}

static int test(void) {
  int over = 0, error = MPI_SUCCESS;
  if (rank == victim) await_death();
  OK(MPI_Win_post(group_of_victim(), 0, window.win));
  be_under_way();
  while (error == MPI_SUCCESS) {
    error = MPI_Win_test(window.win, &over);
    CHECK(error != MPI_SUCCESS || !over);
  }
  return error;
}

/* Puts, gets and accumulates go on until one fails. */
static int operate(void) {
  static int64_t data[4096];
  int error = MPI_SUCCESS;
  OK(MPI_Win_lock_all(0, window.win));
  barrier();
  be_under_way();
  const int target = goes_on ? next : victim;
  if (target == rank) {
    for (;;) pause();
  }
  for (unsigned round = 0; error == MPI_SUCCESS; ++round) {
    if (round % 4 == 0) {
      error = MPI_Put(data, 4096, MPI_INT64_T, target, 0, 4096, MPI_INT64_T, window.win);
    } else if (round % 4 == 1) {
      error = MPI_Get(data, 4096, MPI_INT64_T, target, 0, 4096, MPI_INT64_T, window.win);
    } else if (round % 4 == 2) {
      error = MPI_Accumulate(data, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, window.win);
    } else {
      error = MPI_Fetch_and_op(data, data + 1, MPI_INT64_T, target, 0, MPI_MAX, window.win);
    }
    if (error == MPI_SUCCESS) error = MPI_Win_flush(target, window.win);
  }
  (void)MPI_Win_unlock_all(window.win); /* which may fail, too */
  return error;
}

static int free_window(void) {
  if (rank == victim) await_death();
  be_under_way();
  const int error = MPI_Win_free(&window.win);
  CHECK(error == MPI_SUCCESS || window.win == MPI_WIN_NULL);
  return error;
}

int main(int argc, char** argv) {
  const char* const state = argc > 1 ? argv[1] : "";
  begin(&argc, &argv);
  bound_time(60);
  victim = size - 1;
  goes_on = strncmp(state, "all_", 4) == 0;
  window = make_window(strcmp(state, "ordinary") == 0 ? ordinary : allocated, 65536, 8);
  const int error = strcmp(state, "alone") == 0      ? die_with_a_lock(MPI_LOCK_EXCLUSIVE)
                    : strcmp(state, "shared") == 0   ? die_with_a_lock(MPI_LOCK_SHARED)
                    : strstr(state, "fence") != NULL ? fence()
                    : strcmp(state, "start") == 0    ? start()
                    : strcmp(state, "wait") == 0     ? wait()
                    : strcmp(state, "test") == 0     ? test()
                    : strcmp(state, "free") == 0     ? free_window()
                                                     : operate();
  CHECK(error != MPI_SUCCESS);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  char text[MPI_MAX_ERROR_STRING];
  int length;
  OK(MPI_Error_string(error, text, &length));
  printf("rank %d: error %d at %lld: %s\n", rank, error,
         (long long)now.tv_sec * 1000000000 + now.tv_nsec, text);
  fflush(stdout);
  _exit(3);
}
