/* Threads make communicators at the same time: each from its own parent, all with the same ranks,
 * and one from groups that overlap, told apart by tags. Any number of ranks.
 */
#include <pthread.h>

#include "tests/mpi/ranks/check.h"

enum { kThreads = 4, kRounds = 30 };

static MPI_Comm parents[kThreads];

static void* make(void* argument) {
  const int thread = (int)(intptr_t)argument;
  MPI_Group group;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
  for (int round = 0; round < kRounds; ++round) {
    const int mark = thread * kRounds + round;
    MPI_Comm made[4];
    MPI_Request request;
    OK(MPI_Comm_dup(parents[thread], &made[0]));
    OK(MPI_Comm_idup(parents[thread], &made[1], &request));
    OK(MPI_Comm_split(parents[thread], rank % (1 + thread), -rank, &made[2]));
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, group, thread, &made[3]));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 4; ++i) check_ring(made[i], 4 * mark + i);
    for (int i = 0; i < 4; ++i) OK(MPI_Comm_free(&made[i]));
  }
  OK(MPI_Group_free(&group));
  return NULL;
}

int main(void) {
  begin_with_threads(NULL, NULL, MPI_THREAD_MULTIPLE);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) OK(MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]));
  for (int i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(&threads[i], NULL, make, (void*)(intptr_t)i) == 0);
  }
  for (int i = 0; i < kThreads; ++i) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    OK(MPI_Comm_free(&parents[i]));
  }
  return end_well("all threads had communicators of their own");
}
