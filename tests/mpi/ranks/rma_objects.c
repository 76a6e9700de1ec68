/* What windows are: how they are made of memory of every kind, their attributes, names, groups,
 * hints and error handlers, and which wrong arguments are named how.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/rma.h"

static int deleted, handled;
static int last_code;
static MPI_Win handled_win;

static int on_delete(MPI_Win win, int keyval, void* value, void* extra) {
  (void)win, (void)keyval, (void)extra;
  deleted += (int)(intptr_t)value;
  return MPI_SUCCESS;
}

static void on_error(MPI_Win* win, int* code, ...) {
  ++handled;
  handled_win = *win;
  last_code = *code;
}

static void* attribute_of(MPI_Win win, int keyval) {
  void* value = NULL;
  int flag = 0;
  OK(MPI_Win_get_attr(win, keyval, &value, &flag));
  CHECK(flag);
  return value;
}

static void check_predefined(const struct window* window, int disp_unit, int flavor) {
  CHECK(attribute_of(window->win, MPI_WIN_BASE) == window->base);
  CHECK(*(MPI_Aint*)attribute_of(window->win, MPI_WIN_SIZE) == (MPI_Aint)window->bytes);
  CHECK(*(int*)attribute_of(window->win, MPI_WIN_DISP_UNIT) == disp_unit);
  CHECK(*(int*)attribute_of(window->win, MPI_WIN_CREATE_FLAVOR) == flavor);
  CHECK(*(int*)attribute_of(window->win, MPI_WIN_MODEL) == MPI_WIN_UNIFIED);
}

static void attributes(void) {
  step = "attributes";
  for (int memory = 0; memory < memory_count; ++memory) {
    struct window window = make_window((enum memory)memory, 256 + 8 * (size_t)rank, 4 + rank);
    check_predefined(&window, 4 + rank,
                     memory == allocated ? MPI_WIN_FLAVOR_ALLOCATE : MPI_WIN_FLAVOR_CREATE);
    int keyval = MPI_KEYVAL_INVALID, flag = -1;
    void* value = NULL;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &keyval, NULL));
    OK(MPI_Win_get_attr(window.win, keyval, &value, &flag));
    CHECK(!flag);
    OK(MPI_Win_set_attr(window.win, keyval, (void*)(intptr_t)3));
    CHECK(attribute_of(window.win, keyval) == (void*)(intptr_t)3);
    deleted = 0;
    OK(MPI_Win_delete_attr(window.win, keyval));
    CHECK(deleted == 3);
    OK(MPI_Win_set_attr(window.win, keyval, (void*)(intptr_t)5));
    expect_error(MPI_Win_set_attr(window.win, MPI_WIN_BASE, NULL), MPI_ERR_KEYVAL, "predefined");
    const int of_window = keyval;
    OK(MPI_Win_free_keyval(&keyval));
    drop_window(&window);
    CHECK(deleted == 8);
    CHECK(of_window != keyval);
  }
}

static void names_and_groups(void) {
  char name[MPI_MAX_OBJECT_NAME] = "?";
  int length = -1, result = -1;
  MPI_Group of_window, of_world;
  struct window window = make_window(allocated, 64, 1);
  step = "names";
  OK(MPI_Win_get_name(window.win, name, &length));
  CHECK(length == 0 && name[0] == '\0');
  OK(MPI_Win_set_name(window.win, "the window"));
  OK(MPI_Win_get_name(window.win, name, &length));
  CHECK(length == 10 && strcmp(name, "the window") == 0);
  OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
  CHECK(strcmp(name, "MPI_WIN_NULL") == 0);
  step = "groups";
  OK(MPI_Win_get_group(window.win, &of_window));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &of_world));
  OK(MPI_Group_compare(of_window, of_world, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_free(&of_window));
  OK(MPI_Group_free(&of_world));
  step = "integers";
  CHECK(MPI_Win_fromint(MPI_Win_toint(window.win)) == window.win);
  drop_window(&window);
}

static const char* win_hint(MPI_Win win, const char* key) {
  MPI_Info info;
  OK(MPI_Win_get_info(win, &info));
  const char* const value = value_in(info, key);
  OK(MPI_Info_free(&info));
  return value;
}

/* A window takes the promise when it is made, and later; of kinds that there are. */
static void memory_kinds(void) {
  static const char kinds[] = "mpi_memory_alloc_kinds", promise[] = "mpi_assert_memory_alloc_kinds";
  char served[MPI_MAX_INFO_VAL];
  char* base = NULL;
  MPI_Win win;
  step = "kinds of memory";
  struct window window = make_window(ordinary, 64, 1);
  strcpy(served, hint_of(MPI_COMM_WORLD, kinds));
  CHECK(strcmp(win_hint(window.win, kinds), served) == 0);
  CHECK(strcmp(win_hint(window.win, promise), "none") == 0);
  MPI_Info info = info_with(promise, "system,ferry:device");
  OK(MPI_Win_set_info(window.win, info));
  CHECK(strcmp(win_hint(window.win, promise), "system,ferry:device") == 0);
  OK(MPI_Info_set(info, promise, "system,gold")); /* there is no such memory */
  OK(MPI_Win_set_info(window.win, info));
  CHECK(strcmp(win_hint(window.win, promise), "system,ferry:device") == 0);
  CHECK(strcmp(win_hint(window.win, kinds), served) == 0);
  drop_window(&window);
  OK(MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &base, &win));
  CHECK(strcmp(win_hint(win, promise), "none") == 0);
  OK(MPI_Win_free(&win));
  OK(MPI_Info_set(info, promise, "mpi:win_allocate"));
  OK(MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &base, &win));
  CHECK(strcmp(win_hint(win, promise), "mpi:win_allocate") == 0);
  OK(MPI_Win_free(&win));
  OK(MPI_Info_free(&info));
}

static void hints(void) {
  struct window window = make_window(allocated, 64, 1);
  MPI_Info info;
  step = "hints";
  OK(MPI_Win_get_info(window.win, &info));
  CHECK(strcmp(value_in(info, "no_locks"), "false") == 0);
  CHECK(strcmp(value_in(info, "accumulate_ordering"), "rar,raw,war,waw") == 0);
  CHECK(strcmp(value_in(info, "accumulate_ops"), "same_op_no_op") == 0);
  CHECK(strcmp(value_in(info, "same_size"), "false") == 0);
  CHECK(strcmp(value_in(info, "same_disp_unit"), "false") == 0);
  CHECK(strcmp(value_in(info, "mpi_accumulate_granularity"), "0") == 0);
  OK(MPI_Info_set(info, "mpi_accumulate_granularity", "4096"));
  OK(MPI_Info_set(info, "same_size", "true"));
  OK(MPI_Info_set(info, "accumulate_ordering", "none"));
  OK(MPI_Info_set(info, "accumulate_ops", "some_op"));
  OK(MPI_Info_set(info, "nonsense", "true"));
  OK(MPI_Win_set_info(window.win, info));
  OK(MPI_Info_free(&info));
  OK(MPI_Win_get_info(window.win, &info));
  CHECK(strcmp(value_in(info, "same_size"), "true") == 0);
  CHECK(strcmp(value_in(info, "accumulate_ordering"), "none") == 0);
  CHECK(strcmp(value_in(info, "accumulate_ops"), "same_op_no_op") == 0);
  CHECK(strcmp(value_in(info, "nonsense"), "none") == 0);
  CHECK(strcmp(value_in(info, "mpi_accumulate_granularity"), "4096") == 0);
  OK(MPI_Info_set(info, "mpi_accumulate_granularity", "-1"));
  OK(MPI_Win_set_info(window.win, info));
  CHECK(strcmp(win_hint(window.win, "mpi_accumulate_granularity"), "4096") == 0);
  OK(MPI_Info_free(&info));
  drop_window(&window);
  step = "an alignment";
  MPI_Win win;
  void* base = NULL;
  info = info_with("mpi_minimum_memory_alignment", "4096");
  OK(MPI_Win_allocate(100, 1, info, MPI_COMM_WORLD, &base, &win));
  CHECK((uintptr_t)base % 4096 == 0);
  OK(MPI_Win_free(&win));
  OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "100"));
  expect_error(MPI_Win_allocate(100, 1, info, MPI_COMM_WORLD, &base, &win), MPI_ERR_INFO_VALUE, "");
  OK(MPI_Info_free(&info));
}

static void error_handlers(void) {
  MPI_Errhandler handler, found;
  struct window window = make_window(allocated, 64, 1);
  int value = 0;
  step = "error handlers";
  OK(MPI_Win_get_errhandler(window.win, &found));
  CHECK(found == MPI_ERRORS_RETURN);
  OK(MPI_Win_create_errhandler(on_error, &handler));
  expect_error(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler), MPI_ERR_ERRHANDLER, "another kind");
  OK(MPI_Win_set_errhandler(window.win, handler));
  OK(MPI_Win_get_errhandler(window.win, &found));
  CHECK(found == handler);
  OK(MPI_Errhandler_free(&found));
  OK(MPI_Errhandler_free(&handler));
  handled = 0;
  CHECK(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, window.win) == MPI_ERR_RANK);
  CHECK(handled == 1 && last_code == MPI_ERR_RANK && handled_win == window.win);
  OK(MPI_Win_call_errhandler(window.win, MPI_ERR_OTHER));
  CHECK(handled == 2 && last_code == MPI_ERR_OTHER);
  CHECK(MPI_Win_lock(17, 0, 0, window.win) == MPI_ERR_LOCKTYPE && handled == 3);
  OK(MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN));
  drop_window(&window);
  step = "the first error handler";
  void* base = NULL;
  OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window.win));
  OK(MPI_Win_get_errhandler(window.win, &found));
  CHECK(found == MPI_ERRORS_ARE_FATAL);
  OK(MPI_Win_free(&window.win));
}

/* One rank's mistake is told to all, and nobody waits. */
static void wrong_creation(void) {
  int data[4];
  void* base = NULL;
  MPI_Win win = MPI_WIN_NULL;
  const int last = rank == size - 1;
  step = "creation with wrong arguments";
  expect_error(MPI_Win_create(data, last ? -1 : 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
               MPI_ERR_SIZE, last ? "size is -1" : "rank");
  expect_error(MPI_Win_create(data, 16, last ? 0 : 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
               MPI_ERR_DISP, last ? "displacement unit" : "rank");
  expect_error(MPI_Win_create(last ? NULL : data, 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
               MPI_ERR_BASE, last ? "null" : "rank");
  expect_error(MPI_Win_allocate(-5, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_SIZE,
               "-5");
  expect_error(MPI_Win_allocate(8, -1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_DISP,
               "-1");
  expect_error(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, NULL, &win), MPI_ERR_ARG,
               "baseptr");
  expect_error(MPI_Win_create(data, 16, 1, (MPI_Info)(uintptr_t)777777, MPI_COMM_WORLD, &win),
               MPI_ERR_INFO, "");
  expect_error(MPI_Win_create(data, 16, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM, "");
  CHECK(win == MPI_WIN_NULL);
  step = "handles that stand for nothing";
  expect_error(MPI_Win_free(&win), MPI_ERR_WIN, "MPI_Win");
  expect_error(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN, "");
  expect_error(MPI_Put(data, 1, MPI_INT, 0, 0, 1, MPI_INT, (MPI_Win)data), MPI_ERR_WIN, "");
}

/* Also with sizes that no heap has room for, of which nothing is touched. */
static void sizes(void) {
  MPI_Win win;
  char* base = NULL;
  step = "no memory at all";
  OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_free(&win));
  OK(MPI_Win_allocate_c(rank == 0 ? 0 : 40, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_free(&win));
  step = "much memory";
  const MPI_Aint much = (MPI_Aint)3 << 30;
  OK(MPI_Win_allocate(much, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  base[0] = base[much - 1] = (char)(rank + 1);
  OK(MPI_Win_fence(0, win));
  char found = 0;
  OK(MPI_Get(&found, 1, MPI_CHAR, next, much - 1, 1, MPI_CHAR, win));
  OK(MPI_Win_fence(0, win));
  CHECK(found == (char)(next + 1));
  OK(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  bound_time(60);
  attributes();
  names_and_groups();
  hints();
  memory_kinds();
  error_handlers();
  wrong_creation();
  sizes();
  return end_well("all objects were right");
}
