/* Attributes of communicators and datatypes, groups, info objects, error codes and error handlers.
 * Any number of ranks.
 */
#include "tests/mpi/ranks/check.h"

/* ---- Attributes ---- */

static char calls[64]; /* the callbacks that ran, a letter each */
static int failing;    /* the result of callbacks */

static void note(char letter) {
  const size_t length = strlen(calls);
  CHECK(length + 1 < sizeof(calls));
  calls[length] = letter;
}

static int copy_comm(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
  CHECK(rank_in(comm) == rank && keyval != MPI_KEYVAL_INVALID);
  note('c');
  *(void**)out = (char*)in + (intptr_t)extra;
  *flag = 1;
  return failing;
}

static int delete_comm(MPI_Comm comm, int keyval, void* value, void* extra) {
  CHECK(rank_in(comm) == rank && keyval != MPI_KEYVAL_INVALID && extra);
  note((char)(intptr_t)value);
  return failing;
}

static int delete_at_end(MPI_Comm comm, int keyval, void* value, void* extra) {
  int flag = 1;
  (void)keyval;
  (void)extra;
  /* MPI still works (MPI 5.0, section 11.2.4). */
  if (comm != MPI_COMM_SELF || MPI_Finalized(&flag) != MPI_SUCCESS || flag) return MPI_ERR_OTHER;
  note((char)(intptr_t)value);
  return MPI_SUCCESS;
}

static intptr_t get(MPI_Comm comm, int keyval) {
  void* value = NULL;
  int flag = 0;
  OK(MPI_Comm_get_attr(comm, keyval, &value, &flag));
  return flag ? (intptr_t)value : -1;
}

static void check_attributes(void) {
  step = "attributes of communicators";
  MPI_Comm comm, copy;
  int first, second, duplicated;
  OK(MPI_Comm_create_keyval(copy_comm, delete_comm, &first, (void*)1));
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_comm, &second, (void*)1));
  OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &duplicated, NULL));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  CHECK(get(comm, first) == -1);
  OK(MPI_Comm_set_attr(comm, first, (void*)'a'));
  OK(MPI_Comm_set_attr(comm, second, (void*)'x'));
  OK(MPI_Comm_set_attr(comm, second, (void*)'y'));
  OK(MPI_Comm_set_attr(comm, duplicated, (void*)7));
  CHECK(strcmp(calls, "x") == 0);
  OK(MPI_Comm_dup(comm, &copy));
  CHECK(get(copy, first) == 'b' && get(copy, second) == -1 && get(copy, duplicated) == 7);
  OK(MPI_Comm_free_keyval(&second));
  CHECK(second == MPI_KEYVAL_INVALID);
  OK(MPI_Comm_delete_attr(copy, first));
  CHECK(strcmp(calls, "xcb") == 0);
  OK(MPI_Comm_free(&copy));
  OK(MPI_Comm_free(&comm)); /* the youngest first, even if its key was freed */
  CHECK(strcmp(calls, "xcbya") == 0);

  step = "callbacks that fail";
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_set_attr(comm, first, (void*)'a'));
  failing = MPI_ERR_LASTCODE; /* whatever the callback returns */
  copy = comm;
  CHECK(MPI_Comm_dup(comm, &copy) == MPI_ERR_LASTCODE && copy == MPI_COMM_NULL);
  CHECK(MPI_Comm_free(&comm) == MPI_ERR_LASTCODE && comm != MPI_COMM_NULL);
  CHECK(get(comm, first) == 'a');
  failing = 0;
  OK(MPI_Comm_free(&comm));
  OK(MPI_Comm_free_keyval(&first));
  OK(MPI_Comm_free_keyval(&duplicated));
  memset(calls, 0, sizeof(calls));
}

static void check_predefined(void) {
  step = "predefined attributes";
  void* value = NULL;
  int flag = 0;
  const int keys[] = {MPI_TAG_UB,        MPI_IO,           MPI_HOST,
                      MPI_UNIVERSE_SIZE, MPI_LASTUSEDCODE, MPI_APPNUM};
  const int wanted[] = {0x3fffffff, MPI_ANY_SOURCE, MPI_PROC_NULL, size, MPI_ERR_LASTCODE, 0};
  for (int i = 0; i < 6; ++i) {
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, keys[i], &value, &flag));
    CHECK(flag && *(int*)value == wanted[i]);
  }
  /* One clock for the ranks of a node. */
  MPI_Comm node;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
  CHECK(flag && *(int*)value == (size_of(node) == size));
  OK(MPI_Comm_get_attr(node, MPI_WTIME_IS_GLOBAL, &value, &flag));
  CHECK(flag && *(int*)value == 1);
  OK(MPI_Comm_free(&node));
  CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL) == MPI_ERR_KEYVAL);
  CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_IO) == MPI_ERR_KEYVAL);
  CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, 123456, &value, &flag) == MPI_ERR_KEYVAL);
  CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL, &flag) == MPI_ERR_ARG);
}

static int delete_type(MPI_Datatype type, int keyval, void* value, void* extra) {
  int bytes = 0;
  (void)keyval;
  (void)extra;
  note((char)(intptr_t)value);
  return MPI_Type_size(type, &bytes);
}

static int refuse_type(MPI_Datatype type, int keyval, void* extra, void* in, void* out, int* flag) {
  (void)type;
  (void)keyval;
  (void)extra;
  (void)in;
  (void)out;
  *flag = 0;
  return MPI_ERR_LASTCODE;
}

static void check_refused_type(void) {
  step = "a datatype that cannot be copied";
  MPI_Datatype type, copy = MPI_INT;
  int keyval;
  OK(MPI_Type_create_keyval(refuse_type, MPI_TYPE_NULL_DELETE_FN, &keyval, NULL));
  OK(MPI_Type_contiguous(3, MPI_INT, &type));
  OK(MPI_Type_set_attr(type, keyval, NULL));
  CHECK(MPI_Type_dup(type, &copy) == MPI_ERR_LASTCODE && copy == MPI_DATATYPE_NULL);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_free_keyval(&keyval));
}

/* The callback of each key decides about the copy: it may change the value, or leave it out. */
static int copy_type(MPI_Datatype type, int keyval, void* extra, void* in, void* out, int* flag) {
  int bytes = 0;
  CHECK(MPI_Type_size(type, &bytes) == MPI_SUCCESS && keyval != MPI_KEYVAL_INVALID);
  note('c');
  *(void**)out = (char*)in + (intptr_t)extra;
  *flag = 1;
  return MPI_SUCCESS;
}

static intptr_t get_of_type(MPI_Datatype type, int keyval) {
  void* value = NULL;
  int flag = 0;
  OK(MPI_Type_get_attr(type, keyval, &value, &flag));
  return flag ? (intptr_t)value : -1;
}

static void check_copied_types(void) {
  step = "MPI_Type_dup of a datatype with attributes";
  MPI_Datatype type, copy, again;
  int changed, left_out, late, bytes = 0;
  OK(MPI_Type_create_keyval(copy_type, delete_type, &changed, (void*)1));
  OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_type, &left_out, NULL));
  OK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &late, NULL));
  OK(MPI_Type_vector(2, 1, 3, MPI_INT, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Type_set_attr(type, changed, (void*)'a'));
  OK(MPI_Type_set_attr(type, left_out, (void*)'x'));
  OK(MPI_Type_dup(type, &copy));
  OK(MPI_Type_set_attr(type, late, (void*)5)); /* not in the copy, which was made before */
  CHECK(get_of_type(copy, changed) == 'b' && get_of_type(copy, left_out) == -1);
  CHECK(get_of_type(copy, late) == -1 && get_of_type(type, changed) == 'a');
  OK(MPI_Type_free_keyval(&changed)); /* it lives on where it is used */
  OK(MPI_Type_dup(copy, &again));
  OK(MPI_Type_free(&copy));
  CHECK(strcmp(calls, "ccb") == 0);
  OK(MPI_Type_free(&type)); /* the youngest first */
  CHECK(strcmp(calls, "ccbxa") == 0);
  OK(MPI_Type_size(again, &bytes)); /* committed, like the original */
  CHECK(bytes == 2 * (int)sizeof(int));
  OK(MPI_Sendrecv(&size, 0, again, rank, 0, &size, 0, again, rank, 0, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  OK(MPI_Type_free(&again));
  CHECK(strcmp(calls, "ccbxac") == 0);
  OK(MPI_Type_free_keyval(&left_out));
  OK(MPI_Type_free_keyval(&late));
  memset(calls, 0, sizeof(calls));
}

static void check_type_attributes(void) {
  step = "attributes of datatypes";
  MPI_Datatype type, copy;
  int keyval, comm_keyval, flag = 0;
  void* value = NULL;
  OK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, delete_type, &keyval, NULL));
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &comm_keyval, NULL));
  OK(MPI_Type_contiguous(3, MPI_INT, &type));
  OK(MPI_Type_set_attr(type, keyval, (void*)'t'));
  OK(MPI_Type_dup(type, &copy));
  OK(MPI_Type_get_attr(copy, keyval, &value, &flag));
  CHECK(flag && value == (void*)'t');
  OK(MPI_Type_delete_attr(copy, keyval));
  OK(MPI_Type_get_attr(copy, keyval, &value, &flag));
  CHECK(!flag);
  OK(MPI_Type_free(&copy));
  OK(MPI_Type_free(&type));
  CHECK(strcmp(calls, "tt") == 0);
  memset(calls, 0, sizeof(calls));
  CHECK(MPI_Type_set_attr(MPI_INT, comm_keyval, NULL) == MPI_ERR_KEYVAL);
  OK(MPI_Type_free_keyval(&keyval));
  OK(MPI_Comm_free_keyval(&comm_keyval));
}

/* ---- Groups ---- */

static void check_groups(void) {
  step = "groups";
  MPI_Group world, first, rest, empty, all;
  int own = -1, count = -1, result = 0;
  const int zero = 0;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_incl(world, 1, &zero, &first));
  OK(MPI_Group_excl(world, 1, &zero, &rest));
  OK(MPI_Group_rank(first, &own));
  CHECK(own == (rank == 0 ? 0 : MPI_UNDEFINED));
  OK(MPI_Group_rank(rest, &own));
  CHECK(own == (rank == 0 ? MPI_UNDEFINED : rank - 1));
  OK(MPI_Group_union(rest, first, &all));
  OK(MPI_Group_compare(all, world, &result));
  CHECK(result == (size == 1 ? MPI_IDENT : MPI_SIMILAR));
  OK(MPI_Group_intersection(first, rest, &empty));
  OK(MPI_Group_size(empty, &count));
  CHECK(count == 0);
  OK(MPI_Group_compare(empty, MPI_GROUP_EMPTY, &result));
  CHECK(result == MPI_IDENT && empty == MPI_GROUP_EMPTY);
  OK(MPI_Group_free(&empty)); /* it is freed like any other group from a call */
  CHECK(empty == MPI_GROUP_NULL);
  OK(MPI_Group_difference(world, first, &empty));
  OK(MPI_Group_compare(empty, rest, &result));
  CHECK(result == MPI_IDENT);
  int backwards[1][3] = {{size - 1, 0, -1}}, ranks[2] = {0, MPI_PROC_NULL}, translated[2];
  MPI_Group reversed, none;
  OK(MPI_Group_range_incl(world, 1, backwards, &reversed));
  OK(MPI_Group_range_excl(world, 1, backwards, &none));
  OK(MPI_Group_translate_ranks(world, 2, ranks, reversed, translated));
  CHECK(translated[0] == size - 1 && translated[1] == MPI_PROC_NULL);
  OK(MPI_Group_translate_ranks(world, 1, ranks, none, translated));
  CHECK(translated[0] == MPI_UNDEFINED);

  MPI_Group bad = MPI_GROUP_NULL, freed = reversed;
  CHECK(none == MPI_GROUP_EMPTY);
  OK(MPI_Group_free(&none));
  OK(MPI_Group_free(&reversed));
  CHECK(MPI_Group_size(MPI_GROUP_NULL, &count) == MPI_ERR_GROUP);
  CHECK(MPI_Group_size(freed, &count) == MPI_ERR_GROUP);
  CHECK(MPI_Group_size((MPI_Group)MPI_COMM_WORLD, &count) == MPI_ERR_GROUP);
  CHECK(MPI_Group_incl(world, 1, &size, &bad) == MPI_ERR_RANK);
  CHECK(MPI_Group_incl(world, -1, &zero, &bad) == MPI_ERR_ARG);
  CHECK(MPI_Group_incl(world, 1, NULL, &bad) == MPI_ERR_ARG);
  CHECK(MPI_Group_free(&bad) == MPI_ERR_GROUP);
  CHECK(bad == MPI_GROUP_NULL);
  OK(MPI_Group_free(&world));
  OK(MPI_Group_free(&first));
  OK(MPI_Group_free(&rest));
  OK(MPI_Group_free(&empty));
  OK(MPI_Group_free(&all));
}

/* ---- Info ---- */

static void check_info(void) {
  step = "info objects";
  MPI_Info info, copy;
  char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL];
  int flag = 1, count = -1, length = -1;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "wind", "west"));
  OK(MPI_Info_set(info, "sea", "calm"));
  OK(MPI_Info_set(info, "wind", "north"));
  OK(MPI_Info_get_nkeys(info, &count));
  CHECK(count == 2);
  OK(MPI_Info_get_nthkey(info, 1, key));
  CHECK(strcmp(key, "sea") == 0);
  OK(MPI_Info_dup(info, &copy));
  OK(MPI_Info_delete(info, "wind"));
  length = 3;
  OK(MPI_Info_get_string(copy, "wind", &length, value, &flag));
  CHECK(flag && length == 6 && strcmp(value, "no") == 0);
  length = 0;
  OK(MPI_Info_get_string(copy, "wind", &length, NULL, &flag));
  CHECK(flag && length == 6);
  OK(MPI_Info_get_valuelen(copy, "wind", &length, &flag));
  CHECK(flag && length == 5);
  OK(MPI_Info_get(copy, "wind", 5, value, &flag));
  CHECK(flag && strcmp(value, "north") == 0);
  OK(MPI_Info_get(info, "wind", 5, value, &flag));
  CHECK(!flag);
  CHECK(MPI_Info_delete(info, "wind") == MPI_ERR_INFO_NOKEY);
  CHECK(MPI_Info_set(info, "", "x") == MPI_ERR_INFO_KEY);
  CHECK(MPI_Info_set(MPI_INFO_NULL, "a", "x") == MPI_ERR_INFO);
  CHECK(MPI_Info_set(MPI_INFO_ENV, "a", "x") == MPI_ERR_INFO);
  CHECK(MPI_Info_get_nthkey(info, 1, key) == MPI_ERR_ARG);
  MPI_Info predefined = MPI_INFO_ENV;
  CHECK(MPI_Info_free(&predefined) == MPI_ERR_INFO);
  OK(MPI_Info_free(&info));
  CHECK(info == MPI_INFO_NULL);
  OK(MPI_Info_free(&copy));
  OK(MPI_Info_create_env(0, NULL,
                         &info)); /* the thread level was requested after the start, by MPI_Init */
  OK(MPI_Info_get(info, "thread_level", MPI_MAX_INFO_VAL - 1, value, &flag));
  CHECK(!flag);
  OK(MPI_Info_free(&info));
  OK(MPI_Info_get(MPI_INFO_ENV, "thread_level", MPI_MAX_INFO_VAL - 1, value, &flag));
  CHECK(!flag);
  OK(MPI_Info_get(MPI_INFO_ENV, "command", MPI_MAX_INFO_VAL - 1, value, &flag));
  CHECK(flag && strstr(value, "attributes") != NULL);
}

/* ---- Errors ---- */

static int handled, handled_code;
static MPI_Comm handled_comm;

static void handle(MPI_Comm* comm, int* code, ...) {
  ++handled;
  handled_comm = *comm;
  handled_code = *code;
}

/* A handler has one handle as long as the program has it: until it was freed as often as a call has
   given it. */
static void check_handles_of(MPI_Comm comm) {
  MPI_Errhandler handler, got, again, copy;
  int before;
  step = "handles of error handlers";
  OK(MPI_Comm_create_errhandler(handle, &handler));
  OK(MPI_Comm_set_errhandler(comm, handler));
  OK(MPI_Comm_get_errhandler(comm, &got));
  OK(MPI_Comm_get_errhandler(comm, &again));
  CHECK(got == handler && again == handler);
  CHECK(MPI_Errhandler_toint(got) == MPI_Errhandler_toint(handler));
  copy = handler;
  OK(MPI_Errhandler_free(&again));
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(comm, got)); /* the last one still is good */
  OK(MPI_Errhandler_free(&got));
  CHECK(MPI_Comm_set_errhandler(comm, copy) == MPI_ERR_ERRHANDLER);
  CHECK(MPI_Errhandler_free(&copy) == MPI_ERR_ERRHANDLER);
  OK(MPI_Comm_get_errhandler(comm, &got)); /* the communicator kept it: a handle anew */
  OK(MPI_Comm_get_errhandler(comm, &again));
  CHECK(got == again);
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(comm, again)); /* the handles alone kept it */
  before = handled;
  OK(MPI_Comm_call_errhandler(comm, MPI_ERR_IO));
  CHECK(handled == before + 1 && handled_comm == comm);
  OK(MPI_Errhandler_free(&got));
  OK(MPI_Errhandler_free(&again));
}

static void check_handlers(void) {
  step = "error handlers";
  MPI_Comm comm, copy;
  MPI_Errhandler handler, got, predefined = MPI_ERRORS_RETURN;
  OK(MPI_Comm_create_errhandler(handle, &handler));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_set_errhandler(comm, handler));
  OK(MPI_Errhandler_free(&handler)); /* the communicator holds a reference */
  CHECK(handler == MPI_ERRHANDLER_NULL);
  OK(MPI_Comm_dup(comm, &copy));
  CHECK(MPI_Comm_split(copy, -5, 0, &handled_comm) == MPI_ERR_ARG);
  CHECK(handled == 1 && handled_code == MPI_ERR_ARG && handled_comm == copy);
  OK(MPI_Comm_call_errhandler(comm, MPI_ERR_IO));
  CHECK(handled == 2 && handled_code == MPI_ERR_IO && handled_comm == comm);
  OK(MPI_Comm_get_errhandler(comm, &got));
  OK(MPI_Comm_set_errhandler(copy, MPI_ERRORS_ARE_FATAL));
  OK(MPI_Comm_set_errhandler(copy, got));
  OK(MPI_Errhandler_free(&got));
  OK(MPI_Comm_call_errhandler(copy, MPI_ERR_IO));
  CHECK(handled == 3);
  OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got));
  CHECK(got == MPI_ERRORS_RETURN);
  OK(MPI_Errhandler_free(&got)); /* a handler from a get call may be freed */
  CHECK(got == MPI_ERRHANDLER_NULL);
  OK(MPI_Errhandler_free(&predefined)); /* the handle goes, the handler stays */
  CHECK(predefined == MPI_ERRHANDLER_NULL);
  CHECK(MPI_Errhandler_free(&predefined) == MPI_ERR_ERRHANDLER);
  CHECK(MPI_Comm_create_errhandler(NULL, &got) == MPI_ERR_ARG);
  check_handles_of(comm);
  OK(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN));
  CHECK(MPI_Comm_set_errhandler(copy, MPI_ERRHANDLER_NULL) == MPI_ERR_ERRHANDLER);
  OK(MPI_Comm_free(&copy));
  OK(MPI_Comm_free(&comm));
}

static void check_codes(void) {
  step = "error classes and codes";
  int error_class = 0, code = 0, of = 0, length = 0, flag = 0;
  int* last = NULL;
  char text[MPI_MAX_ERROR_STRING];
  OK(MPI_Add_error_class(&error_class));
  OK(MPI_Add_error_code(error_class, &code));
  OK(MPI_Add_error_string(code, "the tide is out"));
  OK(MPI_Error_class(code, &of));
  CHECK(of == error_class);
  OK(MPI_Error_string(code, text, &length));
  CHECK(strcmp(text, "the tide is out") == 0 && length == 15);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
  CHECK(flag && *last == code);
  OK(MPI_Remove_error_string(code));
  OK(MPI_Remove_error_code(code));
  OK(MPI_Remove_error_class(error_class));
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
  CHECK(*last == MPI_ERR_LASTCODE);
  CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, 77, NULL) == MPI_ERR_KEYVAL);
  OK(MPI_Error_string(MPI_ERR_KEYVAL, text, &length));
  CHECK(strstr(text, "MPI_ERR_KEYVAL") && strstr(text, "MPI_Comm_set_attr") && strstr(text, "77"));
  CHECK(length == (int)strlen(text));
}

static void check_handles(void) {
  step = "handles of communicators that are none";
  MPI_Comm comm, freed, world = MPI_COMM_WORLD;
  int own = -1;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  freed = comm;
  OK(MPI_Comm_free(&comm));
  CHECK(MPI_Comm_rank(freed, &own) == MPI_ERR_COMM);
  CHECK(MPI_Comm_rank(MPI_COMM_NULL, &own) == MPI_ERR_COMM);
  CHECK(MPI_Comm_rank((MPI_Comm)MPI_INT, &own) == MPI_ERR_COMM);
  CHECK(MPI_Comm_rank((MPI_Comm)&own, &own) == MPI_ERR_COMM);
  CHECK(MPI_Comm_free(&world) == MPI_ERR_COMM && world == MPI_COMM_WORLD);
  CHECK(MPI_Comm_free(NULL) == MPI_ERR_ARG);
  CHECK(MPI_Comm_rank(MPI_COMM_WORLD, NULL) == MPI_ERR_ARG);
  CHECK(MPI_Comm_create(MPI_COMM_SELF, MPI_GROUP_NULL, &comm) == MPI_ERR_GROUP);
  CHECK(MPI_Comm_create_group(MPI_COMM_SELF, MPI_GROUP_EMPTY, -1, &comm) == MPI_ERR_TAG);
  CHECK(MPI_Comm_split_type(MPI_COMM_SELF, 12345, 0, MPI_INFO_NULL, &comm) == MPI_ERR_ARG);
}

int main(void) {
  /* These calls need no MPI_Init. */
  MPI_Info early;
  int error_class = 0;
  OK(MPI_Info_create(&early));
  OK(MPI_Info_free(&early));
  OK(MPI_Error_class(MPI_ERR_TAG, &error_class));
  CHECK(error_class == MPI_ERR_TAG);
  OK(MPI_Init(NULL, NULL));
  MPI_Errhandler first;
  OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &first));
  CHECK(first == MPI_ERRORS_ARE_FATAL);
  return_errors();
  check_attributes();
  check_predefined();
  check_type_attributes();
  check_copied_types();
  check_refused_type();
  check_groups();
  check_info();
  check_handlers();
  check_codes();
  check_handles();
  int keyval;
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_at_end, &keyval, NULL));
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, (void*)'e'));
  const int result = end_well("all attributes, groups, infos and handlers were right");
  return strcmp(calls, "e") == 0 ? result : 1;
}
