/* The synchronisation of windows: fences, locks and groups, what they order and whom they keep out,
 * and which calls cannot come now.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/rma.h"

static MPI_Group group_of(int count, const int ranks[]) {
  MPI_Group world, group;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_incl(world, count, ranks, &group));
  OK(MPI_Group_free(&world));
  return group;
}

/* A value goes round all ranks, one fence after another. */
static void fences(enum memory memory) {
  struct window window = make_window(memory, 64, 8);
  int64_t* const mine = (int64_t*)(void*)window.base;
  step = "fences";
  mine[0] = rank;
  OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win));
  for (int round = 0; round < 50; ++round) {
    int64_t value = 0;
    OK(MPI_Get(&value, 1, MPI_INT64_T, before, 0, 1, MPI_INT64_T, window.win));
    OK(MPI_Win_fence(0, window.win));
    CHECK(value == before + 1000 * round);
    value += 1000 + (rank - before);
    OK(MPI_Put(&value, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, window.win));
    OK(MPI_Win_fence(MPI_MODE_NOSTORE, window.win));
  }
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
  int64_t value = 0;
  expect_error(MPI_Get(&value, 1, MPI_INT64_T, before, 0, 1, MPI_INT64_T, window.win),
               MPI_ERR_RMA_SYNC, "epoch");
  drop_window(&window);
}

/* Who holds the lock alone reads, computes and writes: nothing is lost. Who shares it sees both
 * words alike. */
static void locks(enum memory memory) {
  enum { rounds = 60 };
  struct window window = make_window(memory, 64, 8);
  int64_t* const mine = (int64_t*)(void*)window.base;
  step = "locks";
  mine[0] = mine[1] = 0;
  barrier();
  for (int round = 0; round < rounds; ++round) {
    for (int target = 0; target<size; target += size> 1 ? size - 1 : 1) {
      int64_t words[2] = {-1, -2};
      OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win));
      OK(MPI_Get(words, 2, MPI_INT64_T, target, 0, 2, MPI_INT64_T, window.win));
      OK(MPI_Win_flush(target, window.win));
      CHECK(words[0] == words[1]);
      ++words[0];
      OK(MPI_Put(words, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, window.win));
      OK(MPI_Win_flush(target, window.win));
      words[1] = words[0];
      OK(MPI_Put(words + 1, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, window.win));
      OK(MPI_Win_unlock(target, window.win));
      OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win));
      words[0] = -1;
      OK(MPI_Get(words, 2, MPI_INT64_T, target, 0, 2, MPI_INT64_T, window.win));
      OK(MPI_Win_unlock(target, window.win));
      CHECK(words[0] == words[1] && words[0] > 0);
    }
  }
  barrier();
  int64_t sum = -1;
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, window.win));
  OK(MPI_Get(&sum, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.win));
  OK(MPI_Win_unlock(0, window.win));
  CHECK(sum == (int64_t)rounds * size);
  drop_window(&window);
}

/* Those who share a lock have it at the same time; who wants it alone waits for them. */
static void sharing(void) {
  struct window window = make_window(allocated, 64, 8);
  int64_t* const mine = (int64_t*)(void*)window.base;
  step = "sharing";
  mine[0] = mine[1] = 0;
  barrier();
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win));
  barrier(); /* nobody would come here if one kept the others out */
  if (rank == 0) {
    OK(MPI_Win_sync(window.win));
    CHECK(mine[0] == 0);
  }
  barrier();
  OK(MPI_Win_unlock(0, window.win));
  const int64_t one = 1;
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win));
  int64_t found = -1;
  OK(MPI_Get(&found, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.win));
  OK(MPI_Win_flush(0, window.win));
  found += one;
  OK(MPI_Put(&found, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.win));
  OK(MPI_Win_unlock(0, window.win));
  barrier();
  if (rank == 0) CHECK(mine[0] == size);
  drop_window(&window);
}

/* All write to all, each to a place of its own. */
static void all_to_all(enum memory memory) {
  struct window window = make_window(memory, 8 * (size_t)size, 8);
  const int64_t* const mine = (const int64_t*)(const void*)window.base;
  step = "lock_all";
  for (int round = 0; round < 10; ++round) {
    OK(MPI_Win_lock_all(round % 2 ? MPI_MODE_NOCHECK : 0, window.win));
    int64_t values[64];
    CHECK(size <= 64);
    for (int target = 0; target < size; ++target) {
      values[target] = 1000 * round + 10 * rank + target;
      OK(MPI_Put(&values[target], 1, MPI_INT64_T, target, rank, 1, MPI_INT64_T, window.win));
    }
    OK(MPI_Win_flush_local_all(window.win));
    memset(values, 0, sizeof(values));
    OK(MPI_Win_flush_all(window.win));
    barrier();
    OK(MPI_Win_sync(window.win));
    for (int origin = 0; origin < size; ++origin) {
      CHECK(mine[origin] == 1000 * round + 10 * origin + rank);
    }
    barrier();
    OK(MPI_Win_unlock_all(window.win));
  }
  drop_window(&window);
}

/* Each rank exposes itself to the one before it, and writes to the next. */
static void groups(enum memory memory) {
  struct window window = make_window(memory, 64, 8);
  const int64_t* const mine = (const int64_t*)(const void*)window.base;
  MPI_Group to = group_of(1, &next), from = group_of(1, &before);
  step = "groups";
  for (int round = 0; round < 40; ++round) {
    const int64_t value = 100 * round + rank;
    int over = 0;
    OK(MPI_Win_post(from, round % 3 == 1 ? MPI_MODE_NOSTORE : 0, window.win));
    OK(MPI_Win_start(to, 0, window.win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, next, round % 8, 1, MPI_INT64_T, window.win));
    OK(MPI_Win_complete(window.win));
    if (round % 2 == 0) {
      OK(MPI_Win_wait(window.win));
    } else {
      while (!over) OK(MPI_Win_test(window.win, &over));
    }
    CHECK(mine[round % 8] == 100 * round + before);
  }
  step = "groups without a check";
  OK(MPI_Win_post(from, MPI_MODE_NOCHECK, window.win));
  barrier();
  OK(MPI_Win_start(to, MPI_MODE_NOCHECK, window.win));
  OK(MPI_Win_complete(window.win));
  OK(MPI_Win_wait(window.win));
  step = "empty groups";
  OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, window.win));
  OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, window.win));
  OK(MPI_Win_complete(window.win));
  OK(MPI_Win_wait(window.win));
  OK(MPI_Group_free(&to));
  OK(MPI_Group_free(&from));
  drop_window(&window);
}

static void mistakes(void) {
  struct window window = make_window(allocated, 64, 8);
  MPI_Win const win = window.win;
  MPI_Group const world_group = group_of(1, &next);
  MPI_Group group = world_group;
  int flag;
  step = "calls that cannot come now";
  expect_error(MPI_Win_unlock(next, win), MPI_ERR_RMA_SYNC, "not locked");
  expect_error(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC, "MPI_Win_lock_all");
  expect_error(MPI_Win_flush(next, win), MPI_ERR_RMA_SYNC, "not locked");
  expect_error(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC, "lock");
  expect_error(MPI_Win_complete(win), MPI_ERR_RMA_SYNC, "MPI_Win_start");
  expect_error(MPI_Win_wait(win), MPI_ERR_RMA_SYNC, "MPI_Win_post");
  expect_error(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC, "MPI_Win_post");
  OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  expect_error(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC, "already");
  expect_error(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC, "MPI_Win_unlock first");
  expect_error(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC, "MPI_Win_unlock first");
  expect_error(MPI_Win_start(group, 0, win), MPI_ERR_RMA_SYNC, "MPI_Win_unlock first");
  expect_error(MPI_Win_free(&window.win), MPI_ERR_RMA_SYNC, "MPI_Win_unlock first");
  CHECK(window.win == win);
  OK(MPI_Win_unlock(next, win));
  OK(MPI_Win_lock_all(0, win));
  expect_error(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC, "MPI_Win_lock_all");
  expect_error(MPI_Win_unlock(next, win), MPI_ERR_RMA_SYNC, "not locked");
  OK(MPI_Win_unlock_all(win));
  step = "wrong arguments";
  expect_error(MPI_Win_lock(1, next, 0, win), MPI_ERR_LOCKTYPE, "1");
  expect_error(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK, "");
  expect_error(MPI_Win_lock(MPI_LOCK_SHARED, next, 3, win), MPI_ERR_ASSERT, "3");
  expect_error(MPI_Win_lock_all(3, win), MPI_ERR_ASSERT, "3");
  expect_error(MPI_Win_fence(3, win), MPI_ERR_ASSERT, "3");
  expect_error(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP, "");
  expect_error(MPI_Win_start(group, 3, win), MPI_ERR_ASSERT, "3");
  expect_error(MPI_Win_test(win, NULL), MPI_ERR_ARG, "flag");
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, win));
  OK(MPI_Win_unlock(MPI_PROC_NULL, win));
  OK(MPI_Group_free(&group));
  drop_window(&window);
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  bound_time(60);
  for (int memory = 0; memory <= ordinary; ++memory) {
    fences((enum memory)memory);
    locks((enum memory)memory);
    all_to_all((enum memory)memory);
    groups((enum memory)memory);
  }
  sharing();
  mistakes();
  return end_well("all epochs were right");
}
