/* Windows of the ranks of a node, which load and store each other's memory, and windows to which
 * memory is attached while they are there.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/rma.h"

static MPI_Comm node;

static void check_neighbours(MPI_Win win, int64_t* mine, int count, int is_contiguous) {
  const int own = rank_in(node), members = size_of(node);
  int64_t* last_end = NULL;
  for (int i = 0; i < count; ++i) mine[i] = 1000 * own + i;
  OK(MPI_Win_fence(0, win));
  for (int other = 0; other < members; ++other) {
    MPI_Aint bytes = -1;
    int unit = -1;
    int64_t* theirs = NULL;
    OK(MPI_Win_shared_query(win, other, &bytes, &unit, &theirs));
    CHECK(bytes == (MPI_Aint)(8 * (size_t)(3 + other)) && unit == 8);
    for (int i = 0; i < 3 + other; ++i) CHECK(theirs[i] == 1000 * other + i);
    CHECK(!is_contiguous || last_end == NULL || theirs == last_end);
    last_end = theirs + 3 + other;
  }
  OK(MPI_Win_fence(0, win));
  /* A put and a store of two ranks to one place are seen alike. */
  const int next_one = (own + 1) % members;
  int64_t value = 77 + own, found = -1;
  OK(MPI_Put(&value, 1, MPI_INT64_T, next_one, 1, 1, MPI_INT64_T, win));
  OK(MPI_Win_fence(0, win));
  CHECK(mine[1] == 77 + (own + members - 1) % members);
  OK(MPI_Win_fence(0, win));
  OK(MPI_Accumulate(&value, 1, MPI_INT64_T, next_one, 1, 1, MPI_INT64_T, MPI_SUM, win));
  OK(MPI_Win_fence(0, win));
  CHECK(mine[1] == 2 * (77 + (own + members - 1) % members));
  OK(MPI_Get(&found, 1, MPI_INT64_T, next_one, 0, 1, MPI_INT64_T, win));
  OK(MPI_Win_fence(0, win));
  CHECK(found == 1000 * next_one);
}

static void shared(int is_contiguous) {
  MPI_Info info = info_with("alloc_shared_noncontig", is_contiguous ? "false" : "true");
  MPI_Win win;
  int64_t* mine = NULL;
  void* flavor = NULL;
  int flag = 0;
  const int count = 3 + rank_in(node);
  step = is_contiguous ? "a shared window in one piece" : "a shared window in pieces";
  OK(MPI_Win_allocate_shared((MPI_Aint)(8 * (size_t)count), 8, info, node, &mine, &win));
  OK(MPI_Info_free(&info));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
  CHECK(flag && *(int*)flavor == MPI_WIN_FLAVOR_SHARED);
  OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &flavor, &flag));
  CHECK(flag && flavor == mine);
  check_neighbours(win, mine, count, is_contiguous);
  expect_error(MPI_Win_attach(win, mine, 8), MPI_ERR_RMA_FLAVOR, "MPI_Win_create_dynamic");
  expect_error(MPI_Win_shared_query(win, size_of(node), NULL, NULL, NULL), MPI_ERR_RANK, "");
  OK(MPI_Win_free(&win));
}

/* Only the last rank has memory; it stands for MPI_PROC_NULL. */
static void of_one(void) {
  const int own = rank_in(node), last = size_of(node) - 1;
  MPI_Win win;
  int* mine = NULL;
  MPI_Aint bytes = -1, unit = -1;
  int* theirs = NULL;
  step = "a shared window of one rank's memory";
  OK(MPI_Win_allocate_shared_c(own == last ? 400 : 0, 4, MPI_INFO_NULL, node, &mine, &win));
  OK(MPI_Win_shared_query_c(win, MPI_PROC_NULL, &bytes, &unit, &theirs));
  CHECK(bytes == 400 && unit == 4 && theirs != NULL);
  OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
  theirs[own] = own + 5;
  OK(MPI_Win_sync(win));
  OK(MPI_Barrier(node));
  OK(MPI_Win_sync(win));
  for (int i = 0; i <= last; ++i) CHECK(theirs[i] == i + 5);
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Win_free(&win));
}

/* What a window of another kind has in common with the node. */
static void query_of_others(void) {
  struct window window = make_window(allocated, 64, 4);
  MPI_Aint bytes = -1;
  int unit = -1;
  char* theirs = NULL;
  step = "a query of another window";
  OK(MPI_Win_shared_query(window.win, rank, &bytes, &unit, &theirs));
  CHECK(bytes == 64 && unit == 4 && theirs == (char*)window.base);
  const int near = size_of(node) == size;
  MPI_Win none;
  OK(MPI_Win_allocate(rank == 0 ? 0 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &theirs, &none));
  OK(MPI_Win_shared_query(none, 0, &bytes, &unit, &theirs)); /* the same for all */
  CHECK(bytes == 0 && theirs == NULL);
  OK(MPI_Win_free(&none));
  OK(MPI_Win_shared_query(window.win, next, &bytes, &unit, &theirs));
  CHECK(!near || (bytes == 64 && theirs != NULL));
  CHECK((bytes == 0) == (theirs == NULL));
  drop_window(&window);
  if (!near) {
    MPI_Win win;
    step = "a shared window of two nodes";
    expect_error(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &theirs, &win),
                 MPI_ERR_RMA_SHARED, "another node");
  }
}

static MPI_Aint address_of(const void* memory) {
  MPI_Aint address;
  OK(MPI_Get_address(memory, &address));
  return address;
}

/* Each rank attaches memory of all kinds, tells where, and detaches it again. */
static void dynamic(void) {
  enum { pieces = 42, length = 600 };
  MPI_Win win;
  MPI_Aint mine[pieces], theirs[pieces];
  unsigned char *memory[pieces], data[length];
  step = "a dynamic window";
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  void* value = NULL;
  int flag = 0;
  OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag));
  CHECK(flag && value == MPI_BOTTOM);
  MPI_Info info = device_info();
  memset(data, 0, length);
  for (int i = 0; i < pieces; ++i) {
    if (i % 3 == 0) memory[i] = malloc(length);
    if (i % 3 != 0) OK(MPI_Alloc_mem(length, i % 3 == 1 ? MPI_INFO_NULL : info, &memory[i]));
    copy(memory[i], data, length);
    OK(MPI_Win_attach(win, memory[i], length));
    mine[i] = address_of(memory[i]);
  }
  OK(MPI_Info_free(&info));
  expect_error(MPI_Win_attach(win, memory[3] + 10, 20), MPI_ERR_RMA_ATTACH, "already");
  expect_error(MPI_Win_attach(win, memory[3] - 1, 2), MPI_ERR_RMA_ATTACH, "already");
  expect_error(MPI_Win_attach(win, memory[3], -2), MPI_ERR_SIZE, "-2");
  expect_error(MPI_Win_attach(win, NULL, 2), MPI_ERR_BASE, "null");
  expect_error(MPI_Win_detach(win, memory[3] + 1), MPI_ERR_RMA_ATTACH, "begins");
  expect_error(MPI_Win_shared_query(win, rank, &mine[0], &flag, &value), MPI_ERR_RMA_FLAVOR, "");
  OK(MPI_Sendrecv(mine, pieces, MPI_AINT, before, 1, theirs, pieces, MPI_AINT, next, 1,
                  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  OK(MPI_Win_lock_all(0, win));
  for (int i = 0; i < pieces; ++i) {
    fill(data, length, (unsigned)(rank + i));
    OK(MPI_Put(data, length - 8, MPI_BYTE, next, MPI_Aint_add(theirs[i], 8), length - 8, MPI_BYTE,
               win));
    OK(MPI_Win_flush(next, win));
    const int64_t one = 1;
    int64_t found = -1;
    OK(MPI_Fetch_and_op(&one, &found, MPI_INT64_T, next, theirs[i], MPI_SUM, win));
    OK(MPI_Win_flush(next, win));
    CHECK(found == 0);
    memset(data, 0, length);
    OK(MPI_Get(data, length - 8, MPI_BYTE, next, MPI_Aint_add(theirs[i], 8), length - 8, MPI_BYTE,
               win));
    OK(MPI_Win_flush(next, win));
    CHECK(is_filled(data, length - 8, (unsigned)(rank + i)));
  }
  expect_error(
      MPI_Put(data, 8, MPI_BYTE, next, MPI_Aint_add(theirs[0], length - 4), 8, MPI_BYTE, win),
      MPI_ERR_RMA_RANGE, "attached");
  OK(MPI_Win_unlock_all(win));
  barrier();
  for (int i = 0; i < pieces; ++i) {
    int64_t count = 0;
    copy(&count, memory[i], sizeof(count));
    copy(data, memory[i] + 8, length - 8);
    CHECK(count == 1 && is_filled(data, length - 8, (unsigned)(before + i)));
    OK(MPI_Win_detach(win, memory[i]));
  }
  barrier();
  OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  expect_error(MPI_Get(data, 8, MPI_BYTE, next, theirs[0], 8, MPI_BYTE, win), MPI_ERR_RMA_RANGE,
               "attached");
  OK(MPI_Win_unlock(next, win));
  barrier();
  for (int i = 0; i < pieces; ++i) {
    if (i % 3 == 0) free(memory[i]);
    if (i % 3 != 0) OK(MPI_Free_mem(memory[i]));
  }
  OK(MPI_Win_free(&win));
}

/* Of memory that was attached piece by piece, an operation may take bytes of several. */
static void adjacent(void) {
  enum { pieces = 3, length = 800 };
  for (int is_heap = 0; is_heap < 2; ++is_heap) {
    MPI_Win win;
    MPI_Aint mine, theirs = -1;
    unsigned char *memory = NULL, data[pieces * length];
    step = is_heap ? "pieces of the heap behind each other" : "pieces behind each other";
    if (is_heap) OK(MPI_Alloc_mem(pieces * length, MPI_INFO_NULL, &memory));
    if (!is_heap) memory = malloc(pieces * length);
    memset(memory, 0, pieces * length);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    for (int i = pieces - 1; i >= 0; --i) OK(MPI_Win_attach(win, memory + i * length, length));
    mine = address_of(memory);
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, before, 1, &theirs, 1, MPI_AINT, next, 1, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    fill(data, sizeof(data), (unsigned)rank);
    OK(MPI_Put(data, sizeof(data) - 8, MPI_BYTE, next, theirs, sizeof(data) - 8, MPI_BYTE, win));
    OK(MPI_Accumulate(data + sizeof(data) - 8, 8, MPI_BYTE, next,
                      MPI_Aint_add(theirs, sizeof(data) - 8), 8, MPI_BYTE, MPI_REPLACE, win));
    OK(MPI_Win_unlock(next, win));
    barrier();
    CHECK(is_filled(memory, sizeof(data), (unsigned)before));
    /* Without the one in the middle they are apart. */
    OK(MPI_Win_detach(win, memory + length));
    barrier();
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    expect_error(
        MPI_Get(data, 2, MPI_BYTE, next, MPI_Aint_add(theirs, length - 1), 2, MPI_BYTE, win),
        MPI_ERR_RMA_RANGE, "attached");
    OK(MPI_Win_unlock(next, win));
    barrier();
    OK(MPI_Win_free(&win));
    if (is_heap) OK(MPI_Free_mem(memory));
    if (!is_heap) free(memory);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  bound_time(60);
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
  OK(MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN));
  shared(1);
  shared(0);
  of_one();
  query_of_others();
  dynamic();
  adjacent();
  OK(MPI_Comm_free(&node));
  return end_well("all memory was right");
}
