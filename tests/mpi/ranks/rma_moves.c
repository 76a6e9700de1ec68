/* Puts and gets: memory of every kind on both sides, datatypes with gaps, lengths around the bounds
 * of how data travel, requests, and what lies outside of the window.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/rma.h"

enum { room = 300000 };
static const int lengths[] = {1, 8, 16, 17, 100, 4096, 8192, 8193, 20000, 100000, 262144, 299000};
enum { length_count = sizeof(lengths) / sizeof(lengths[0]) };

static unsigned char *here, *image;

static void clear_window(const struct window* window) {
  memset(image, 0x55, window->bytes);
  copy(window->base, image, window->bytes);
}

static const unsigned char* look(const struct window* window) {
  copy(image, window->base, window->bytes);
  return image;
}

static void lock_next(MPI_Win win) { OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win)); }

static void plain(enum memory memory) {
  struct window window = make_window(memory, room, 1);
  step = memory_names[memory];
  clear_window(&window);
  OK(MPI_Win_fence(0, window.win));
  for (int n = 0; n < length_count; ++n) {
    const int length = lengths[n];
    fill(here, (size_t)length, (unsigned)(rank + n));
    OK(MPI_Put(here, length, MPI_BYTE, next, 500, length, MPI_BYTE, window.win));
    OK(MPI_Win_fence(0, window.win));
    look(&window);
    CHECK(is_filled(image + 500, (size_t)length, (unsigned)(before + n)));
    CHECK(image[499] == 0x55 && (n > 0 || image[500 + length] == 0x55));
    OK(MPI_Win_fence(0, window.win));
    memset(here, 0, (size_t)length);
    OK(MPI_Get(here, length, MPI_BYTE, next, 500, length, MPI_BYTE, window.win));
    OK(MPI_Win_fence(0, window.win));
    CHECK(is_filled(here, (size_t)length, (unsigned)(rank + n)));
  }
  drop_window(&window);
}

/* Passive targets: the other side is in a barrier, and makes no call for the window. */
static void passive(enum memory memory) {
  struct window window = make_window(memory, room, 1);
  step = memory_names[memory];
  clear_window(&window);
  barrier();
  for (int n = 0; n < length_count; ++n) {
    const int length = lengths[n];
    MPI_Request requests[2];
    fill(here, (size_t)length, (unsigned)(rank + n + 7));
    lock_next(window.win);
    OK(MPI_Rput(here, length, MPI_BYTE, next, 20, length, MPI_BYTE, window.win, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    memset(here, 0, (size_t)length); /* it is free again */
    OK(MPI_Win_flush(next, window.win));
    OK(MPI_Rget(here, length, MPI_BYTE, next, 20, length, MPI_BYTE, window.win, &requests[1]));
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    CHECK(is_filled(here, (size_t)length, (unsigned)(rank + n + 7)));
    memset(here, 0, (size_t)length);
    OK(MPI_Get(here, length, MPI_BYTE, next, 20, length, MPI_BYTE, window.win));
    OK(MPI_Win_flush_local(next, window.win));
    CHECK(is_filled(here, (size_t)length, (unsigned)(rank + n + 7)));
    OK(MPI_Win_unlock(next, window.win));
  }
  barrier();
  drop_window(&window);
}

/* Every second of `count` pairs of ints, on one side, the other or both. */
static void with_gaps(enum memory memory) {
  enum { count = 3000 };
  MPI_Datatype gaps, run;
  struct window window = make_window(memory, room, 4);
  int* const data = (int*)(void*)here;
  step = memory_names[memory];
  OK(MPI_Type_vector(count, 2, 5, MPI_INT, &gaps));
  OK(MPI_Type_commit(&gaps));
  OK(MPI_Type_contiguous(2 * count, MPI_INT, &run));
  OK(MPI_Type_commit(&run));
  for (int form = 0; form < 4; ++form) {
    const int from_gaps = form & 1, to_gaps = form >> 1;
    clear_window(&window);
    OK(MPI_Win_fence(0, window.win));
    memset(here, 0, room);
    for (int i = 0; i < 2 * count; ++i) data[from_gaps ? i / 2 * 5 + i % 2 : i] = rank * 100000 + i;
    OK(MPI_Put(here, 1, from_gaps ? gaps : run, next, 3, 1, to_gaps ? gaps : run, window.win));
    OK(MPI_Win_fence(0, window.win));
    const int* const seen = (const int*)(const void*)look(&window) + 3;
    for (int i = 0; i < 2 * count; ++i) {
      CHECK(seen[to_gaps ? i / 2 * 5 + i % 2 : i] == before * 100000 + i);
    }
    CHECK(!to_gaps || seen[2] == 0x55555555);
    memset(here, 0x33, room);
    OK(MPI_Win_fence(0, window.win));
    OK(MPI_Get_c(here, 1, from_gaps ? gaps : run, next, 3, 1, to_gaps ? gaps : run, window.win));
    OK(MPI_Win_fence(0, window.win));
    for (int i = 0; i < 2 * count; ++i) {
      CHECK(data[from_gaps ? i / 2 * 5 + i % 2 : i] == rank * 100000 + i);
    }
    CHECK(!from_gaps || data[2] == 0x33333333);
    MPI_Request request;
    memset(here, 0x33, room);
    lock_next(window.win);
    OK(MPI_Rget(here, 1, from_gaps ? gaps : run, next, 3, 1, to_gaps ? gaps : run, window.win,
                &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * count; ++i) {
      CHECK(data[from_gaps ? i / 2 * 5 + i % 2 : i] == rank * 100000 + i);
    }
    OK(MPI_Win_unlock(next, window.win));
    barrier();
  }
  OK(MPI_Type_free(&gaps));
  OK(MPI_Type_free(&run));
  drop_window(&window);
}

/* To and from memory of a device on the origin's side. */
static void device_origin(enum memory memory) {
  struct window window = make_window(memory, room, 1);
  MPI_Info info = device_info();
  unsigned char* origin = NULL;
  step = memory_names[memory];
  OK(MPI_Alloc_mem(room, info, &origin));
  OK(MPI_Info_free(&info));
  clear_window(&window);
  OK(MPI_Win_fence(0, window.win));
  fill(here, 50000, (unsigned)rank);
  copy(origin, here, 50000);
  OK(MPI_Put(origin, 50000, MPI_BYTE, next, 8, 50000, MPI_BYTE, window.win));
  OK(MPI_Win_fence(0, window.win));
  CHECK(is_filled(look(&window) + 8, 50000, (unsigned)before));
  memset(here, 0, 50000);
  copy(origin, here, 50000);
  OK(MPI_Win_fence(0, window.win));
  OK(MPI_Get(origin, 50000, MPI_BYTE, next, 8, 50000, MPI_BYTE, window.win));
  OK(MPI_Win_fence(0, window.win));
  copy(here, origin, 50000);
  CHECK(is_filled(here, 50000, (unsigned)rank));
  OK(MPI_Free_mem(origin));
  drop_window(&window);
}

static void mistakes(void) {
  struct window window = make_window(allocated, 100, 4);
  MPI_Datatype uncommitted;
  MPI_Request request = MPI_REQUEST_NULL;
  int data[8] = {0};
  MPI_Win const win = window.win;
  step = "mistakes";
  expect_error(MPI_Put(data, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC, "epoch");
  OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  expect_error(MPI_Put(data, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK, "");
  expect_error(MPI_Put(data, 1, MPI_INT, next, -1, 1, MPI_INT, win), MPI_ERR_DISP, "-1");
  expect_error(MPI_Put(data, 1, MPI_INT, next, 25, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, "100");
  expect_error(MPI_Get(data, 2, MPI_INT, next, 24, 2, MPI_INT, win), MPI_ERR_RMA_RANGE, "104");
  expect_error(MPI_Get(data, 1, MPI_INT, next, INT64_MAX, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, "");
  expect_error(MPI_Put(data, -1, MPI_INT, next, 0, -1, MPI_INT, win), MPI_ERR_COUNT, "-1");
  expect_error(MPI_Put(data, 2, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_TYPE, "8 bytes");
  expect_error(MPI_Put(NULL, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_BUFFER, "null");
  expect_error(MPI_Put(data, 1, MPI_DATATYPE_NULL, next, 0, 1, MPI_INT, win), MPI_ERR_TYPE, "");
  OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
  expect_error(MPI_Put(data, 2, MPI_INT, next, 0, 1, uncommitted, win), MPI_ERR_TYPE, "committed");
  OK(MPI_Type_free(&uncommitted));
  expect_error(MPI_Rput(data, 1, MPI_INT, next, 0, 1, MPI_INT, win, NULL), MPI_ERR_ARG, "request");
  OK(MPI_Put(data, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
  OK(MPI_Rget(data, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Put(data, 0, MPI_INT, next, 25, 0, MPI_INT, win)); /* nothing, just behind the end */
  if (size > 1) {
    expect_error(MPI_Put(data, 1, MPI_INT, before == next ? rank : before, 0, 1, MPI_INT, win),
                 MPI_ERR_RMA_SYNC, "epoch");
  }
  OK(MPI_Win_unlock(next, win));
  OK(MPI_Win_fence(0, win));
  expect_error(MPI_Rput(data, 1, MPI_INT, next, 0, 1, MPI_INT, win, &request), MPI_ERR_RMA_SYNC,
               "lock");
  OK(MPI_Win_fence(0, win));
  drop_window(&window);
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  bound_time(60);
  here = malloc(room);
  image = malloc(room);
  for (int memory = 0; memory < memory_count; ++memory) {
    plain((enum memory)memory);
    passive((enum memory)memory);
    with_gaps((enum memory)memory);
    device_origin((enum memory)memory);
  }
  mistakes();
  free(here);
  free(image);
  return end_well("all moves were right");
}
