/* Accumulates: every operation on every kind of element that it takes, agreeing with all others
 * that come at the same time, over memory of every kind; and what is refused.
 */
#define _POSIX_C_SOURCE 200809L
#include <complex.h>
#include <float.h>
#include <math.h>

#include "tests/mpi/ranks/rma.h"

enum { rounds = 40 };

static void lock_all(MPI_Win win) { OK(MPI_Win_lock_all(0, win)); }
static void unlock_all(MPI_Win win) { OK(MPI_Win_unlock_all(win)); }

/* All ranks count at once, by every way to count: each number is given out once. */
static void counters(enum memory memory) {
  struct window window = make_window(memory, 64, 8);
  int64_t* const mine = (int64_t*)(void*)window.base;
  static const int64_t one = 1;
  step = memory_names[memory];
  memset(window.base, 0, window.bytes);
  barrier();
  lock_all(window.win);
  int64_t last = -1, found;
  for (int i = 0; i < rounds; ++i) {
    OK(MPI_Fetch_and_op(&one, &found, MPI_INT64_T, 0, 0, MPI_SUM, window.win));
    OK(MPI_Win_flush(0, window.win));
    CHECK(found > last && found < (int64_t)rounds * size);
    last = found;
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_SUM, window.win));
    int64_t expected = 0, swapped;
    OK(MPI_Fetch_and_op(NULL, &expected, MPI_INT64_T, 0, 2, MPI_NO_OP, window.win));
    OK(MPI_Win_flush(0, window.win));
    for (;;) {
      const int64_t after = expected + 1;
      OK(MPI_Compare_and_swap(&after, &expected, &swapped, MPI_INT64_T, 0, 2, window.win));
      OK(MPI_Win_flush(0, window.win));
      if (swapped == expected) break;
      expected = swapped;
    }
    const double half = 0.5;
    OK(MPI_Accumulate(&half, 1, MPI_DOUBLE, 0, 3, 1, MPI_DOUBLE, MPI_SUM, window.win));
    const int64_t big = (int64_t)rank * 1000 + i;
    OK(MPI_Accumulate(&big, 1, MPI_INT64_T, 0, 4, 1, MPI_INT64_T, MPI_MAX, window.win));
    const int64_t small = -big;
    OK(MPI_Get_accumulate(&small, 1, MPI_INT64_T, &found, 1, MPI_INT64_T, 0, 5, 1, MPI_INT64_T,
                          MPI_MIN, window.win));
    OK(MPI_Win_flush(0, window.win));
    CHECK(found <= 0 && found >= -1000 * size - rounds);
  }
  unlock_all(window.win);
  barrier();
  if (rank == 0) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win));
    const int64_t all = (int64_t)rounds * size;
    CHECK(mine[0] == all && mine[1] == all && mine[2] == all);
    CHECK(((double*)(void*)mine)[3] == 0.5 * (double)all);
    CHECK(mine[4] == (size - 1) * 1000 + rounds - 1 && mine[5] == -mine[4]);
    OK(MPI_Win_unlock(0, window.win));
  }
  drop_window(&window);
}

/* Words next to each other, of one and two bytes: none is lost where the neighbour changes. */
static void short_elements(enum memory memory) {
  struct window window = make_window(memory, 64, 1);
  step = memory_names[memory];
  memset(window.base, 0, window.bytes);
  barrier();
  lock_all(window.win);
  const unsigned char byte = 1;
  const short word = 3;
  for (int i = 0; i < rounds; ++i) {
    OK(MPI_Accumulate(&byte, 1, MPI_UNSIGNED_CHAR, 0, rank, 1, MPI_UNSIGNED_CHAR, MPI_SUM,
                      window.win));
    OK(MPI_Accumulate(&word, 1, MPI_SHORT, 0, 32 + 2 * rank, 1, MPI_SHORT, MPI_SUM, window.win));
    unsigned char found = 0, next_value = (unsigned char)(2 * i + 2), now = (unsigned char)(2 * i);
    OK(MPI_Compare_and_swap(&next_value, &now, &found, MPI_UNSIGNED_CHAR, 0, 16 + rank,
                            window.win));
    OK(MPI_Win_flush(0, window.win));
    CHECK(found == now);
  }
  unlock_all(window.win);
  barrier();
  if (rank == 0) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win));
    for (int i = 0; i < size; ++i) {
      CHECK(window.base[i] == rounds && window.base[16 + i] == 2 * rounds);
      CHECK(((short*)(void*)window.base)[16 + i] == 3 * rounds);
    }
    OK(MPI_Win_unlock(0, window.win));
  }
  drop_window(&window);
}

struct double_int {
  double value;
  int index;
};
struct short_int {
  short value;
  int index;
};

/* Elements that no CPU changes at once: longer than 8 bytes, with gaps, and across words. All ranks
 * change the same ones. */
static void long_elements(enum memory memory) {
  struct window window = make_window(memory, 256, 1);
  step = memory_names[memory];
  memset(window.base, 0, window.bytes);
  barrier();
  lock_all(window.win);
  const double complex number = 1 + 2 * I;
  const struct double_int most = {rank, 100 + rank};
  const struct short_int pairs[3] = {{(short)-rank, 1}, {0, 7}, {(short)-2, rank}};
  const int one = 1;
  for (int i = 0; i < rounds; ++i) {
    OK(MPI_Accumulate(&number, 1, MPI_C_DOUBLE_COMPLEX, 0, 16, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM,
                      window.win));
    OK(MPI_Accumulate(&number, 1, MPI_C_DOUBLE_COMPLEX, 0, 40, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM,
                      window.win));
    const int errors[] = {
        MPI_Accumulate(&most, 1, MPI_DOUBLE_INT, 0, 64, 1, MPI_DOUBLE_INT, MPI_MAXLOC, window.win),
        MPI_Accumulate(pairs, 3, MPI_SHORT_INT, 0, 96, 3, MPI_SHORT_INT, MPI_MINLOC, window.win)};
    for (int pair = 0; pair < 2; ++pair) {
      if (memory == ordinary) {
        expect_error(errors[pair], MPI_ERR_UNSUPPORTED_OPERATION, "gaps");
      } else {
        OK(errors[pair]);
      }
    }
    OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 129, 1, MPI_INT, MPI_SUM, window.win));
  }
  unlock_all(window.win);
  barrier();
  lock_all(window.win);
  double complex sums[2] = {0, 0};
  struct double_int top = {0, 0};
  struct short_int least[3] = {{0, 0}};
  int count = 0;
  OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, &sums[0], 1, MPI_C_DOUBLE_COMPLEX, 0, 16, 1,
                        MPI_C_DOUBLE_COMPLEX, MPI_NO_OP, window.win));
  OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, &sums[1], 1, MPI_C_DOUBLE_COMPLEX, 0, 40, 1,
                        MPI_C_DOUBLE_COMPLEX, MPI_NO_OP, window.win));
  if (memory != ordinary) {
    OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, &top, 1, MPI_DOUBLE_INT, 0, 64, 1, MPI_DOUBLE_INT,
                          MPI_NO_OP, window.win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, least, 3, MPI_SHORT_INT, 0, 96, 3, MPI_SHORT_INT,
                          MPI_NO_OP, window.win));
    CHECK(top.value == size - 1 && top.index == (size == 1 ? 0 : 99 + size));
    CHECK(least[0].value == 1 - size && least[0].index == (size == 1 ? 0 : 1));
    CHECK(least[1].value == 0 && least[1].index == 0);
    CHECK(least[2].value == -2 && least[2].index == 0);
  }
  OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, &count, 1, MPI_INT, 0, 129, 1, MPI_INT, MPI_NO_OP,
                        window.win));
  unlock_all(window.win);
  const int all = size * rounds;
  CHECK(sums[0] == all * number && sums[1] == sums[0] && count == all);
  drop_window(&window);
}

#define OPERATION(T, type, op, before, with, after)                                        \
  do {                                                                                     \
    T start = (T)(before), operand = (T)(with), found = 0, now = 0;                        \
    step = #type " " #op;                                                                  \
    OK(MPI_Put(&start, 1, type, next, 0, 1, type, win));                                   \
    OK(MPI_Win_flush(next, win));                                                          \
    OK(MPI_Get_accumulate(&operand, 1, type, &found, 1, type, next, 0, 1, type, op, win)); \
    OK(MPI_Win_flush(next, win));                                                          \
    CHECK(found == start);                                                                 \
    OK(MPI_Get(&now, 1, type, next, 0, 1, type, win));                                     \
    OK(MPI_Win_flush(next, win));                                                          \
    CHECK(now == (T)(after));                                                              \
    OK(MPI_Put(&start, 1, type, next, 0, 1, type, win));                                   \
    OK(MPI_Win_flush(next, win));                                                          \
    OK(MPI_Accumulate(&operand, 1, type, next, 0, 1, type, op, win));                      \
    OK(MPI_Win_flush(next, win));                                                          \
    OK(MPI_Get(&now, 1, type, next, 0, 1, type, win));                                     \
    OK(MPI_Win_flush(next, win));                                                          \
    CHECK(now == (T)(after));                                                              \
  } while (0)

#define OF_NUMBERS(T, type)                 \
  OPERATION(T, type, MPI_SUM, 5, 7, 12);    \
  OPERATION(T, type, MPI_PROD, 5, 7, 35);   \
  OPERATION(T, type, MPI_MIN, 5, 7, 5);     \
  OPERATION(T, type, MPI_MAX, 5, 7, 7);     \
  OPERATION(T, type, MPI_REPLACE, 5, 7, 7); \
  OPERATION(T, type, MPI_NO_OP, 5, 7, 5)
#define OF_INTEGERS(T, type)             \
  OF_NUMBERS(T, type);                   \
  OPERATION(T, type, MPI_BAND, 6, 3, 2); \
  OPERATION(T, type, MPI_BOR, 6, 3, 7);  \
  OPERATION(T, type, MPI_BXOR, 6, 3, 5); \
  OPERATION(T, type, MPI_LAND, 6, 0, 0); \
  OPERATION(T, type, MPI_LOR, 6, 0, 1);  \
  OPERATION(T, type, MPI_LXOR, 6, 3, 0)

static void operations(enum memory memory) {
  struct window window = make_window(memory, 64, 8);
  MPI_Win const win = window.win;
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
  OF_INTEGERS(int8_t, MPI_INT8_T);
  OF_INTEGERS(uint16_t, MPI_UINT16_T);
  OF_INTEGERS(int32_t, MPI_INT32_T);
  OF_INTEGERS(uint64_t, MPI_UINT64_T);
  OF_NUMBERS(float, MPI_FLOAT);
  OF_NUMBERS(double, MPI_DOUBLE);
  step = "pairs";
  struct {
    float value;
    int index;
  } first = {2.5F, 4}, other = {3.5F, 1}, found;
  OK(MPI_Put(&first, 1, MPI_FLOAT_INT, next, 1, 1, MPI_FLOAT_INT, win));
  OK(MPI_Win_flush(next, win));
  OK(MPI_Fetch_and_op(&other, &found, MPI_FLOAT_INT, next, 1, MPI_MAXLOC, win));
  OK(MPI_Win_flush(next, win));
  CHECK(found.value == 2.5F && found.index == 4);
  OK(MPI_Fetch_and_op(NULL, &found, MPI_FLOAT_INT, next, 1, MPI_NO_OP, win));
  OK(MPI_Win_flush(next, win));
  CHECK(found.value == 3.5F && found.index == 1);
  OK(MPI_Win_unlock(next, win));
  drop_window(&window);
}

/* Many elements, in places with gaps; with requests, too. */
static void vectors(enum memory memory) {
  enum { count = 500 };
  struct window window = make_window(memory, sizeof(double) * 3 * count, sizeof(double));
  double* const mine = (double*)(void*)window.base;
  double data[count], found[count];
  MPI_Datatype gaps;
  MPI_Request request;
  step = memory_names[memory];
  for (int i = 0; i < 3 * count; ++i) mine[i] = i;
  for (int i = 0; i < count; ++i) data[i] = 1000.0 * (rank + 1);
  OK(MPI_Type_vector(count, 1, 3, MPI_DOUBLE, &gaps));
  OK(MPI_Type_commit(&gaps));
  OK(MPI_Win_fence(0, window.win));
  OK(MPI_Accumulate(data, count, MPI_DOUBLE, next, 1, 1, gaps, MPI_SUM, window.win));
  OK(MPI_Win_fence(0, window.win));
  for (int i = 0; i < 3 * count; ++i)
    CHECK(mine[i] == i + (i % 3 == 1 ? 1000.0 * (before + 1) : 0));
  barrier();
  OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
  OK(MPI_Rget_accumulate(data, count, MPI_DOUBLE, found, count, MPI_DOUBLE, next, 1, 1, gaps,
                         MPI_REPLACE, window.win, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < count; ++i) CHECK(found[i] == 3 * i + 1 + 1000.0 * (rank + 1));
  OK(MPI_Raccumulate_c(data, count, MPI_DOUBLE, next, 1, 1, gaps, MPI_SUM, window.win, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Win_unlock(next, window.win));
  barrier();
  OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window.win));
  for (int i = 0; i < count; ++i) CHECK(mine[3 * i + 1] == 2000.0 * (before + 1));
  OK(MPI_Win_unlock(rank, window.win));
  OK(MPI_Type_free(&gaps));
  drop_window(&window);
}

/* Where there is nothing to do, datatypes and operations need not fit each other. */
static void nothing(enum memory memory) {
  struct window window = make_window(memory, 64, 1);
  MPI_Datatype none;
  char data[8], found[8];
  step = "no data";
  OK(MPI_Type_contiguous(0, MPI_INT, &none));
  OK(MPI_Type_commit(&none));
  OK(MPI_Win_fence(0, window.win));
  OK(MPI_Accumulate(data, 1, none, next, 0, 2, none, MPI_SUM, window.win));
  OK(MPI_Accumulate(NULL, 0, MPI_INT, next, 0, 1, none, MPI_SUM, window.win));
  OK(MPI_Accumulate(NULL, 0, MPI_BYTE, next, 0, 0, MPI_BYTE, MPI_SUM, window.win));
  OK(MPI_Get_accumulate(data, 1, none, found, 0, MPI_INT, next, 0, 1, none, MPI_REPLACE,
                        window.win));
  OK(MPI_Win_fence(0, window.win));
  OK(MPI_Type_free(&none));
  drop_window(&window);
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)in, (void)inout, (void)count, (void)type;
}

static void mistakes(void) {
  struct window window = make_window(allocated, 64, 1);
  MPI_Win const win = window.win;
  MPI_Op own;
  MPI_Datatype mixed;
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  char data[64] = {0}, found[64];
  step = "mistakes";
  OK(MPI_Op_create(add, 1, &own));
  OK(MPI_Type_create_struct(2, lengths, places, types, &mixed));
  OK(MPI_Type_commit(&mixed));
  expect_error(MPI_Accumulate(data, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, win),
               MPI_ERR_RMA_SYNC, "epoch");
  OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  expect_error(MPI_Accumulate(data, 1, MPI_INT, next, 0, 1, MPI_INT, own, win), MPI_ERR_OP, "own");
  expect_error(MPI_Accumulate(data, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP,
               "");
  expect_error(MPI_Accumulate(data, 1, mixed, next, 0, 1, mixed, MPI_REPLACE, win), MPI_ERR_TYPE,
               "predefined");
  expect_error(MPI_Accumulate(data, 1, MPI_FLOAT, next, 0, 1, MPI_FLOAT, MPI_BAND, win), MPI_ERR_OP,
               "MPI_BAND");
  expect_error(MPI_Accumulate(data, 1, MPI_INT, next, 61, 1, MPI_INT, MPI_SUM, win),
               MPI_ERR_RMA_RANGE, "65");
  expect_error(MPI_Compare_and_swap(data, data, found, MPI_INT, next, 2, win),
               MPI_ERR_UNSUPPORTED_OPERATION, "multiple");
  expect_error(MPI_Fetch_and_op(data, found, mixed, next, 0, MPI_REPLACE, win), MPI_ERR_TYPE,
               "predefined");
  expect_error(MPI_Compare_and_swap(data, data, found, MPI_DOUBLE, next, 0, win), MPI_ERR_TYPE,
               "MPI_DOUBLE");
  expect_error(MPI_Compare_and_swap(data, NULL, found, MPI_INT, next, 0, win), MPI_ERR_BUFFER, "");
  OK(MPI_Accumulate(data, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win));
  OK(MPI_Compare_and_swap(data, data, found, MPI_INT, MPI_PROC_NULL, 0, win));
  OK(MPI_Win_unlock(next, win));
  OK(MPI_Type_free(&mixed));
  OK(MPI_Op_free(&own));
  drop_window(&window);

  step = "memory of a device";
  window = make_window(device, 64, 1);
  OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
  const int error = MPI_Accumulate(data, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, window.win);
  if (error != MPI_SUCCESS) expect_error(error, MPI_ERR_UNSUPPORTED_OPERATION, "streams");
  OK(MPI_Win_unlock(next, window.win));
  drop_window(&window);
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  bound_time(60);
  CHECK(size <= 16);
  for (int memory = 0; memory <= ordinary; ++memory) {
    counters((enum memory)memory);
    short_elements((enum memory)memory);
    long_elements((enum memory)memory);
    operations((enum memory)memory);
    vectors((enum memory)memory);
    nothing((enum memory)memory);
  }
  mistakes();
  return end_well("all accumulates were right");
}
