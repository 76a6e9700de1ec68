/* Accumulates: every operation on every kind of element that it takes, agreeing with all others
 * that come at the same time, over memory of every kind; and what is refused.
 */
#define _POSIX_C_SOURCE 200809L
#include <complex.h>
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "tests/mpi/ranks/rma.h"

enum { rounds = 40 };

/* What lies in the own memory of a window. */
static union {
  unsigned char bytes[16384];
  int64_t words[2048];
  double numbers[2048];
  short shorts[8192];
} image;

static void clear_window(const struct window* window) {
  CHECK(window->bytes <= sizeof(image));
  memset(image.bytes, 0, window->bytes);
  copy(window->base, image.bytes, window->bytes);
}

static void look(const struct window* window) { copy(image.bytes, window->base, window->bytes); }

static void lock_all(MPI_Win win) { OK(MPI_Win_lock_all(0, win)); }
static void unlock_all(MPI_Win win) { OK(MPI_Win_unlock_all(win)); }

/* All ranks count at once, by every way to count: each number is given out once. */
static void counters(enum memory memory) {
  struct window window = make_window(memory, 64, 8);
  static const int64_t one = 1;
  step = memory_names[memory];
  clear_window(&window);
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
    const int64_t* const mine = image.words;
    look(&window);
    CHECK(mine[0] == all && mine[1] == all && mine[2] == all);
    CHECK(image.numbers[3] == 0.5 * (double)all);
    CHECK(mine[4] == (size - 1) * 1000 + rounds - 1 && mine[5] == -mine[4]);
    OK(MPI_Win_unlock(0, window.win));
  }
  drop_window(&window);
}

/* Words next to each other, of one and two bytes: none is lost where the neighbour changes. */
static void short_elements(enum memory memory) {
  struct window window = make_window(memory, 64, 1);
  step = memory_names[memory];
  clear_window(&window);
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
    look(&window);
    for (int i = 0; i < size; ++i) {
      CHECK(image.bytes[i] == rounds && image.bytes[16 + i] == 2 * rounds);
      CHECK(image.shorts[16 + i] == 3 * rounds);
    }
    OK(MPI_Win_unlock(0, window.win));
  }
  drop_window(&window);
}

struct double_int {
  double value;
  int index;
};
struct long_int {
  long value;
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
  clear_window(&window);
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
    OK(MPI_Accumulate(&most, 1, MPI_DOUBLE_INT, 0, 64, 1, MPI_DOUBLE_INT, MPI_MAXLOC, window.win));
    OK(MPI_Accumulate(pairs, 3, MPI_SHORT_INT, 0, 96, 3, MPI_SHORT_INT, MPI_MINLOC, window.win));
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
  OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, &top, 1, MPI_DOUBLE_INT, 0, 64, 1, MPI_DOUBLE_INT,
                        MPI_NO_OP, window.win));
  OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, least, 3, MPI_SHORT_INT, 0, 96, 3, MPI_SHORT_INT,
                        MPI_NO_OP, window.win));
  CHECK(top.value == size - 1 && top.index == (size == 1 ? 0 : 99 + size));
  CHECK(least[0].value == 1 - size && least[0].index == (size == 1 ? 0 : 1));
  CHECK(least[1].value == 0 && least[1].index == 0);
  CHECK(least[2].value == -2 && least[2].index == 0);
  OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, &count, 1, MPI_INT, 0, 129, 1, MPI_INT, MPI_NO_OP,
                        window.win));
  unlock_all(window.win);
  const int all = size * rounds;
  CHECK(sums[0] == all * number && sums[1] == sums[0] && count == all);
  drop_window(&window);
}

/* ---- Pairs with gaps ---- */

struct pair_kind {
  const char* name;
  MPI_Datatype type;
  size_t bytes, index; /* of an element, and where its index lies */
  void (*set_value)(void* pair, int value);
};

static void set_double(void* pair, int value) {
  const double number = value;
  memcpy(pair, &number, sizeof(number));
}
static void set_long(void* pair, int value) {
  const long number = value;
  memcpy(pair, &number, sizeof(number));
}
static void set_short(void* pair, int value) {
  const short number = (short)value;
  memcpy(pair, &number, sizeof(number));
}
static void set_float(void* pair, int value) {
  const float number = (float)value;
  memcpy(pair, &number, sizeof(number));
}

enum { pair_count = 5, pair_stride = 2, pair_places = pair_stride * (pair_count - 1) + 1 };
enum { most_pair_bytes = 16 };

struct pair_row {
  int count, values[pair_places], indices[pair_places];
};

/* Bytes of the row, and of the gaps in it. */
static void lay_out(const struct pair_kind* kind, const struct pair_row* row, size_t apart,
                    int gaps, unsigned char* bytes) {
  memset(bytes, gaps, (size_t)pair_places * most_pair_bytes);
  for (int i = 0; i < row->count; ++i) {
    unsigned char* const pair = bytes + (size_t)i * apart;
    kind->set_value(pair, row->values[i]);
    memcpy(pair + kind->index, &row->indices[i], sizeof(int));
  }
}

static size_t row_bytes(const struct pair_kind* kind, int count, size_t apart) {
  return apart * (size_t)(count - 1) + kind->index + sizeof(int);
}

static void expect_row(const struct window* window, const struct pair_kind* kind,
                       const struct pair_row* row, size_t apart) {
  unsigned char expected[pair_places * most_pair_bytes];
  lay_out(kind, row, apart, 0x5c, expected);
  look(window);
  CHECK(memcmp(image.bytes, expected, window->bytes) == 0);
}

/* Each rank fills its memory with pairs so far apart, behind the last of which the memory ends. The
 * rank before it changes every `step_there`th of them: the numbers alone, no gap.
 */
static void change_pairs(enum memory memory, const struct pair_kind* kind, size_t apart,
                         int step_there) {
  unsigned char bytes[pair_places * most_pair_bytes], expected[sizeof(bytes)], found[sizeof(bytes)];
  struct pair_row there = {pair_places, {0}, {0}}, operands = {pair_count, {0}, {0}}, was;
  MPI_Datatype one, type_there;
  struct window window = make_window(memory, row_bytes(kind, pair_places, apart), 1);
  step = kind->name;
  for (int i = 0; i < pair_places; ++i) there.values[i] = 10, there.indices[i] = i + 1;
  for (int i = 0; i < pair_count; ++i) operands.values[i] = 9 + i % 3, operands.indices[i] = i;
  was = operands;
  OK(MPI_Type_create_resized(kind->type, 0, (MPI_Aint)apart, &one));
  OK(MPI_Type_vector(pair_count, 1, step_there, one, &type_there));
  OK(MPI_Type_commit(&type_there));
  lay_out(kind, &there, apart, 0x5c, bytes);
  copy(window.base, bytes, window.bytes);
  OK(MPI_Win_fence(0, window.win));
  lay_out(kind, &operands, kind->bytes, 0xa7, bytes);
  memset(found, 0x33, sizeof(found));
  OK(MPI_Get_accumulate(bytes, pair_count, kind->type, found, pair_count, kind->type, next, 0, 1,
                        type_there, MPI_MAXLOC, window.win));
  OK(MPI_Win_fence(0, window.win));
  for (int i = 0; i < pair_count; ++i) {
    const int at = i * step_there, value = operands.values[i];
    was.values[i] = there.values[at];
    was.indices[i] = there.indices[at];
    if (value > there.values[at] || (value == there.values[at] && i < there.indices[at])) {
      there.values[at] = value;
      there.indices[at] = i;
    }
  }
  lay_out(kind, &was, kind->bytes, 0x33, expected);
  CHECK(memcmp(found, expected, sizeof(found)) == 0);
  expect_row(&window, kind, &there, apart);
  OK(MPI_Win_fence(0, window.win));
  OK(MPI_Accumulate(bytes, pair_count, kind->type, next, 0, 1, type_there, MPI_REPLACE,
                    window.win));
  OK(MPI_Win_fence(0, window.win));
  for (int i = 0; i < pair_count; ++i) {
    there.values[i * step_there] = operands.values[i];
    there.indices[i * step_there] = i;
  }
  expect_row(&window, kind, &there, apart);
  OK(MPI_Type_free(&type_there));
  OK(MPI_Type_free(&one));
  drop_window(&window);
}

static void pairs(enum memory memory) {
  const struct pair_kind kinds[] = {
      {"MPI_DOUBLE_INT", MPI_DOUBLE_INT, sizeof(struct double_int),
       offsetof(struct double_int, index), set_double},
      {"MPI_LONG_INT", MPI_LONG_INT, sizeof(struct long_int), offsetof(struct long_int, index),
       set_long},
      {"MPI_SHORT_INT", MPI_SHORT_INT, sizeof(struct short_int), offsetof(struct short_int, index),
       set_short},
      {"MPI_FLOAT_INT", MPI_FLOAT_INT, 8, 4, set_float},
  };
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    change_pairs(memory, &kinds[i], kinds[i].bytes, 1);
    change_pairs(memory, &kinds[i], kinds[i].bytes, pair_stride);
    /* The next one begins in the gap. */
    change_pairs(memory, &kinds[i], kinds[i].index + sizeof(int), 1);
  }
}

/* ---- All operations ---- */

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
#define OF_COMPLEX(T, type)                 \
  OPERATION(T, type, MPI_SUM, 5, 7, 12);    \
  OPERATION(T, type, MPI_PROD, 5, 7, 35);   \
  OPERATION(T, type, MPI_REPLACE, 5, 7, 7); \
  OPERATION(T, type, MPI_NO_OP, 5, 7, 5)
#define OF_BITS(T, type)                 \
  OPERATION(T, type, MPI_BAND, 6, 3, 2); \
  OPERATION(T, type, MPI_BOR, 6, 3, 7);  \
  OPERATION(T, type, MPI_BXOR, 6, 3, 5)
#define OF_LOGIC(T, type)                \
  OPERATION(T, type, MPI_LAND, 6, 0, 0); \
  OPERATION(T, type, MPI_LOR, 6, 0, 1);  \
  OPERATION(T, type, MPI_LXOR, 6, 3, 0)
#define OF_INTEGERS(T, type) \
  OF_NUMBERS(T, type);       \
  OF_BITS(T, type);          \
  OF_LOGIC(T, type)

/* What Fortran has beyond C. */
__extension__ typedef _Float128 wide_float;
__extension__ typedef __int128 wide_integer;
__extension__ typedef _Complex float __attribute__((mode(TC))) wide_complex;

/* Half precision: always moved, and combined if Ferry's compiler can. */
static void halves(enum memory memory) {
  struct window window = make_window(memory, 64, 2);
  const uint16_t one = 0x3c00, two = 0x4000;
  const uint16_t parts[2] = {0x3c00, 0x4000}; /* of a complex number */
  uint16_t found = 9, now = 9, parts_now[2] = {9, 9};
  step = "MPI_REAL2";
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window.win));
  OK(MPI_Accumulate(&one, 1, MPI_REAL2, next, 3, 1, MPI_REAL2, MPI_REPLACE, window.win));
  const int error = MPI_Fetch_and_op(&one, &found, MPI_REAL2, next, 3, MPI_SUM, window.win);
  if (error != MPI_SUCCESS) expect_error(error, MPI_ERR_OP, "cannot be computed for MPI_REAL2");
  CHECK(error != MPI_SUCCESS || found == one);
  OK(MPI_Fetch_and_op(NULL, &now, MPI_REAL2, next, 3, MPI_NO_OP, window.win));
  CHECK(now == (error == MPI_SUCCESS ? two : one));
  OK(MPI_Accumulate(parts, 1, MPI_COMPLEX4, next, 4, 1, MPI_COMPLEX4, MPI_REPLACE, window.win));
  OK(MPI_Fetch_and_op(NULL, parts_now, MPI_COMPLEX4, next, 4, MPI_NO_OP, window.win));
  CHECK(memcmp(parts, parts_now, sizeof(parts)) == 0);
  OK(MPI_Win_unlock(next, window.win));
  drop_window(&window);
}

/* Elements of 16 bytes: whoever changes memory for all can swap them. */
static void wide_swaps(enum memory memory) {
  struct window window = make_window(memory, 64, 16);
  const wide_integer values[] = {((wide_integer)1 << 100) + 7, ((wide_integer)3 << 90) + 5};
  wide_integer found = 9;
  step = "MPI_INTEGER16";
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window.win));
  OK(MPI_Accumulate(&values[0], 1, MPI_INTEGER16, next, 1, 1, MPI_INTEGER16, MPI_REPLACE,
                    window.win));
  for (int round = 0; round < 2; ++round) { /* the second one finds another value, and swaps not */
    const int error =
        MPI_Compare_and_swap(&values[1], &values[0], &found, MPI_INTEGER16, next, 1, window.win);
    if (error != MPI_SUCCESS) {
      CHECK(memory != ordinary);
      expect_error(error, MPI_ERR_UNSUPPORTED_OPERATION, "16 bytes");
    } else {
      CHECK(found == values[round]);
    }
  }
  OK(MPI_Win_unlock(next, window.win));
  drop_window(&window);
}

/* Nobody else is there, which the library knows of an exclusive lock only. */
static void operations(enum memory memory, int lock) {
  struct window window = make_window(memory, 64, 8);
  MPI_Win const win = window.win;
  OK(MPI_Win_lock(lock, next, 0, win));
  OF_INTEGERS(int8_t, MPI_INT8_T);
  OF_INTEGERS(uint16_t, MPI_UINT16_T);
  OF_INTEGERS(int32_t, MPI_INT32_T);
  OF_INTEGERS(uint64_t, MPI_UINT64_T);
  OF_NUMBERS(float, MPI_FLOAT);
  OF_NUMBERS(double, MPI_DOUBLE);
  OF_NUMBERS(long double, MPI_LONG_DOUBLE);
  OF_NUMBERS(wide_float, MPI_REAL16);
  OF_NUMBERS(wide_integer, MPI_INTEGER16);
  OF_BITS(wide_integer, MPI_INTEGER16);
  OF_LOGIC(wide_integer, MPI_LOGICAL16);
  OF_COMPLEX(float complex, MPI_C_FLOAT_COMPLEX);
  OF_COMPLEX(double complex, MPI_C_DOUBLE_COMPLEX);
  OF_COMPLEX(long double complex, MPI_C_LONG_DOUBLE_COMPLEX);
  OF_COMPLEX(wide_complex, MPI_COMPLEX32);
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
  const double* const mine = image.numbers;
  double data[count], found[count];
  MPI_Datatype gaps;
  MPI_Request request;
  step = memory_names[memory];
  for (int i = 0; i < 3 * count; ++i) image.numbers[i] = i;
  copy(window.base, image.bytes, window.bytes);
  for (int i = 0; i < count; ++i) data[i] = 1000.0 * (rank + 1);
  OK(MPI_Type_vector(count, 1, 3, MPI_DOUBLE, &gaps));
  OK(MPI_Type_commit(&gaps));
  OK(MPI_Win_fence(0, window.win));
  OK(MPI_Accumulate(data, count, MPI_DOUBLE, next, 1, 1, gaps, MPI_SUM, window.win));
  OK(MPI_Win_fence(0, window.win));
  look(&window);
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
  look(&window);
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
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  bound_time(60);
  CHECK(size <= 16);
  for (int memory = 0; memory < memory_count; ++memory) {
    counters((enum memory)memory);
    short_elements((enum memory)memory);
    long_elements((enum memory)memory);
    pairs((enum memory)memory);
    halves((enum memory)memory);
    wide_swaps((enum memory)memory);
    operations((enum memory)memory, MPI_LOCK_SHARED);
    operations((enum memory)memory, MPI_LOCK_EXCLUSIVE);
    vectors((enum memory)memory);
    nothing((enum memory)memory);
  }
  mistakes();
  return end_well("all accumulates were right");
}
