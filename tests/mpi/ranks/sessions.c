/* Sessions, in the way that the argument names: without MPI_Init, beside it, several at once, one
 * after the other, and with mistakes. Run by any number of ranks.
 */
#include <pthread.h>

#include "tests/mpi/ranks/check.h"

/* MPI_COMM_WORLD is not there in most of these. */
#undef CHECK
#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      fprintf(stderr, "%s:%d, in %s: %s\n", __FILE__, __LINE__, step, #condition); \
      fflush(stderr);                                                              \
      _Exit(1);                                                                    \
    }                                                                              \
  } while (0)

static MPI_Session open_session(const char* level) {
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Info info = info_with("thread_level", level);
  OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
  CHECK(session != MPI_SESSION_NULL);
  OK(MPI_Info_free(&info));
  return session;
}

static MPI_Session open_plain(void) {
  MPI_Session session = MPI_SESSION_NULL;
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  return session;
}

static MPI_Group group_of(MPI_Session session, const char* name) {
  MPI_Group group = MPI_GROUP_NULL;
  OK(MPI_Group_from_session_pset(session, name, &group));
  CHECK(group != MPI_GROUP_NULL);
  return group;
}

/* A communicator of a process set. */
static MPI_Comm comm_of(MPI_Session session, const char* name, const char* tag) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Group group = group_of(session, name);
  OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  OK(MPI_Group_free(&group));
  return comm;
}

static int is_initialised(void) {
  int flag = -1;
  OK(MPI_Initialized(&flag));
  return flag;
}

/* All that programs usually do with a communicator. */
static void use(MPI_Comm comm, int mark) {
  MPI_Comm copy = MPI_COMM_NULL, part = MPI_COMM_NULL;
  const int own = rank_in(comm), members = size_of(comm);
  int sum = -1;
  check_ring(comm, mark);
  OK(MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK(sum == members * (members - 1) / 2);
  OK(MPI_Comm_dup(comm, &copy));
  OK(MPI_Comm_split(copy, own % 2, own, &part));
  CHECK(size_of(part) == (members + 1 - own % 2) / 2);
  check_ring(part, mark + 1);
  OK(MPI_Barrier(copy));
  OK(MPI_Comm_free(&part));
  OK(MPI_Comm_free(&copy));
}

static void end_session(MPI_Session* session) {
  OK(MPI_Session_finalize(session));
  CHECK(*session == MPI_SESSION_NULL);
}

/* ---- Without MPI_Init ------------------------------------------------------------------------ */

static void look_at_sets(MPI_Session session) {
  int count = -1, found = 0;
  step = "the process sets";
  OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
  CHECK(count >= 2);
  for (int i = 0; i < count; ++i) {
    char name[MPI_MAX_PSET_NAME_LEN], cut[5];
    int room = 0, length = sizeof(name), group_size = -1;
    MPI_Info info;
    MPI_Group group;
    OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &room, NULL)); /* only how long it is */
    OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
    CHECK(room == length && length == (int)strlen(name) + 1);
    room = sizeof(cut);
    OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &room, cut));
    CHECK(room == length && strlen(cut) == 4 && strncmp(cut, name, 4) == 0);
    group = group_of(session, name);
    OK(MPI_Group_size(group, &group_size));
    OK(MPI_Session_get_pset_info(session, name, &info));
    CHECK(atoi(value_in(info, "mpi_size")) == group_size);
    OK(MPI_Info_free(&info));
    OK(MPI_Group_free(&group));
    found += strcmp(name, "mpi://WORLD") == 0 || strcmp(name, "mpi://SELF") == 0;
    if (strcmp(name, "mpi://SELF") == 0) CHECK(group_size == 1);
  }
  CHECK(found == 2);
  MPI_Group self = group_of(session, "mpi://self"); /* some programs write them so */
  OK(MPI_Group_size(self, &found));
  CHECK(found == 1);
  OK(MPI_Group_free(&self));
}

/* The processes of the node are those that MPI_Comm_split_type finds. */
static void look_at_node(MPI_Session session) {
  MPI_Comm all = comm_of(session, "mpi://WORLD", "node"), near = MPI_COMM_NULL;
  MPI_Comm node = comm_of(session, "ferry://NODE", "node");
  step = "the node";
  OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
  CHECK(comparison_of(near, node) == MPI_CONGRUENT);
  use(node, 60);
  OK(MPI_Comm_free(&near));
  OK(MPI_Comm_free(&node));
  OK(MPI_Comm_free(&all));
}

static void look_at_facts(MPI_Session session) {
  MPI_Info info;
  step = "what a session says of itself";
  OK(MPI_Session_get_info(session, &info));
  CHECK(strcmp(value_in(info, "thread_level"), "MPI_THREAD_SERIALIZED") == 0);
  CHECK(strstr(value_in(info, "mpi_memory_alloc_kinds"), "system") != NULL);
  OK(MPI_Info_free(&info));
  CHECK(MPI_Session_fromint(MPI_Session_toint(session)) == session);
  CHECK(MPI_Session_f2c(MPI_Session_c2f(session)) == session);
}

/* What belongs to a session serves the kinds of memory that it has asked for. */
static void look_at_kinds(void) {
  static const char key[] = "mpi_memory_alloc_kinds";
  char of_session[MPI_MAX_INFO_VAL];
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Win win = MPI_WIN_NULL;
  void* base = NULL;
  MPI_Info info = info_with(key, "system,ferry:device");
  step = "kinds of memory";
  OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
  OK(MPI_Info_free(&info));
  OK(MPI_Session_get_info(session, &info));
  strcpy(of_session, value_in(info, key));
  OK(MPI_Info_free(&info));
  CHECK(strstr(of_session, "ferry:device") != NULL);
  MPI_Comm comm = comm_of(session, "mpi://WORLD", "kinds");
  CHECK(strcmp(hint_of(comm, key), of_session) == 0);
  OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, comm, &base, &win));
  OK(MPI_Win_get_info(win, &info));
  CHECK(strcmp(value_in(info, key), of_session) == 0);
  OK(MPI_Info_free(&info));
  OK(MPI_Win_free(&win));
  OK(MPI_Comm_free(&comm));
  end_session(&session);
}

static void without_init(void) {
  MPI_Session session = open_session("MPI_THREAD_SERIALIZED");
  MPI_Comm all, self;
  CHECK(!is_initialised());
  look_at_facts(session);
  look_at_sets(session);
  look_at_node(session);
  look_at_kinds();
  step = "its communicators";
  all = comm_of(session, "mpi://WORLD", "org.example.all");
  use(all, 1);
  self = comm_of(session, "mpi://SELF", "org.example.self");
  CHECK(size_of(self) == 1);
  use(self, 20);
  OK(MPI_Comm_free(&self));
  OK(MPI_Comm_free(&all));
  end_session(&session);
  CHECK(!is_initialised());
}

/* ---- One after the other, and several at once ------------------------------------------------ */

static void again(void) {
  MPI_Comm left = MPI_COMM_NULL;
  for (int i = 0; i < 10; ++i) {
    MPI_Session session = open_plain();
    MPI_Comm comm = comm_of(session, "mpi://WORLD", "the same each time");
    step = "one after the other";
    use(comm, i);
    if (i > 0) use(left, 100 + i); /* what was not freed lives on */
    if (i > 0) OK(MPI_Comm_free(&left));
    left = comm;
    end_session(&session); /* nobody has one now */
  }
}

static void at_once(void) {
  MPI_Session sessions[3] = {open_plain(), open_plain(), open_plain()};
  MPI_Comm comms[3];
  step = "several at once";
  CHECK(sessions[0] != sessions[1] && sessions[1] != sessions[2]);
  for (int i = 0; i < 3; ++i) comms[i] = comm_of(sessions[i], "mpi://WORLD", "tag");
  for (int i = 0; i < 3; ++i) {
    use(comms[i], 10 * i);
    OK(MPI_Comm_free(&comms[i]));
    end_session(&sessions[i]); /* the others go on */
  }
}

/* Two libraries that know nothing of each other, each with a thread and a session of its own. */
static void* live_in_thread(void* tag) {
  for (int i = 0; i < 20; ++i) {
    MPI_Session session = open_session("MPI_THREAD_MULTIPLE");
    MPI_Comm comm = comm_of(session, "mpi://WORLD", tag);
    use(comm, i);
    OK(MPI_Comm_free(&comm));
    end_session(&session);
  }
  return NULL;
}

static void in_threads(void) {
  pthread_t one, other;
  step = "two threads";
  CHECK(pthread_create(&one, NULL, live_in_thread, "one") == 0);
  CHECK(pthread_create(&other, NULL, live_in_thread, "other") == 0);
  CHECK(pthread_join(one, NULL) == 0 && pthread_join(other, NULL) == 0);
}

/* ---- Beside MPI_Init ------------------------------------------------------------------------- */

static int delete_session(MPI_Comm comm, int keyval, void* value, void* state) {
  (void)comm, (void)keyval, (void)state;
  end_session(value);
  return MPI_SUCCESS;
}

static void beside_world(void) {
  static MPI_Session library;
  MPI_Session before, after;
  MPI_Comm of_before, of_after;
  int level = -1, keyval = MPI_KEYVAL_INVALID, flag = -1;
  step = "before MPI_Init";
  before = open_session("MPI_THREAD_MULTIPLE");
  of_before = comm_of(before, "mpi://WORLD", "before");
  use(of_before, 1);
  step = "beside it";
  OK(MPI_Init(NULL, NULL));
  OK(MPI_Query_thread(&level));
  CHECK(is_initialised() && level == MPI_THREAD_SINGLE);
  return_errors();
  CHECK(comparison_of(MPI_COMM_WORLD, of_before) == MPI_CONGRUENT);
  use(MPI_COMM_WORLD, 30);
  use(of_before, 50);
  /* A library ends its session when MPI ends. */
  library = open_plain();
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_session, &keyval, NULL));
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &library));
  OK(MPI_Finalize());
  CHECK(library == MPI_SESSION_NULL);
  step = "after MPI_Finalize";
  OK(MPI_Finalized(&flag));
  CHECK(flag);
  use(of_before, 70);
  OK(MPI_Comm_free(&of_before));
  end_session(&before);
  after = open_plain();
  of_after = comm_of(after, "mpi://WORLD", "after");
  use(of_after, 90);
  OK(MPI_Comm_free(&of_after));
  end_session(&after);
}

/* Where any thread may call anyway, sessions say so, and keep it. */
static void beside_threads(void) {
  MPI_Session session;
  MPI_Info info;
  int level = -1;
  step = "a session beside threads";
  OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level));
  CHECK(level == MPI_THREAD_MULTIPLE);
  return_errors();
  session = open_plain();
  OK(MPI_Session_get_info(session, &info));
  CHECK(strcmp(value_in(info, "thread_level"), "MPI_THREAD_MULTIPLE") == 0);
  OK(MPI_Info_free(&info));
  OK(MPI_Finalize());
  in_threads();
  end_session(&session);
  session = open_plain();
  OK(MPI_Session_get_info(session, &info));
  CHECK(strcmp(value_in(info, "thread_level"), "MPI_THREAD_SINGLE") == 0);
  OK(MPI_Info_free(&info));
  end_session(&session);
}

/* Only some ranks have sessions beside MPI_Init: the others leave the job when these have ended. */
static void some_beside_world(void) {
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Comm self = MPI_COMM_NULL;
  OK(MPI_Init(NULL, NULL));
  return_errors();
  step = "sessions of some ranks";
  if (rank % 2 == 0) {
    session = open_plain();
    self = comm_of(session, "mpi://SELF", "some");
  }
  use(MPI_COMM_WORLD, 1);
  OK(MPI_Finalize());
  if (rank % 2 == 0) {
    use(self, 3);
    OK(MPI_Comm_free(&self));
    end_session(&session);
  }
}

/* ---- Groups and intercommunicators ----------------------------------------------------------- */

static void from_groups(void) {
  MPI_Session session = open_plain();
  MPI_Group all = group_of(session, "mpi://WORLD"), sides[2], both;
  MPI_Comm inter = MPI_COMM_NULL, merged = MPI_COMM_NULL, side = MPI_COMM_NULL;
  int own = -1, members = -1, mine, data = -1, result = -1;
  step = "groups of groups";
  OK(MPI_Group_rank(all, &own));
  OK(MPI_Group_size(all, &members));
  mine = own % 2;
  for (int i = 0; i < 2; ++i) {
    int range[1][3] = {{i, members - 1, 2}};
    OK(MPI_Group_range_incl(all, 1, range, &sides[i]));
  }
  OK(MPI_Group_union(sides[0], sides[1], &both));
  OK(MPI_Group_compare(both, all, &result));
  CHECK(result == MPI_SIMILAR || (members < 3 && result == MPI_IDENT));
  OK(MPI_Group_free(&both));
  OK(MPI_Comm_create_from_group(sides[mine], "side", MPI_INFO_NULL, MPI_ERRORS_RETURN, &side));
  use(side, mine);
  step = "an intercommunicator";
  OK(MPI_Intercomm_create_from_groups(sides[mine], 0, sides[1 - mine], 0, "inter", MPI_INFO_NULL,
                                      MPI_ERRORS_RETURN, &inter));
  CHECK(size_of(side) == size_of(inter));
  if (rank_in(inter) == 0) {
    OK(MPI_Sendrecv(&own, 1, MPI_INT, 0, 3, &data, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE));
    CHECK(data == 1 - mine);
  }
  OK(MPI_Intercomm_merge(inter, mine, &merged));
  CHECK(size_of(merged) == members);
  use(merged, 40);
  OK(MPI_Comm_free(&merged));
  OK(MPI_Comm_free(&inter));
  OK(MPI_Comm_free(&side));
  for (int i = 0; i < 2; ++i) OK(MPI_Group_free(&sides[i]));
  OK(MPI_Group_free(&all));
  end_session(&session);
}

/* With an empty group a call is local: ranks make different ones, and nobody waits. */
static void empty_groups(void) {
  MPI_Session session = open_plain();
  MPI_Group all = group_of(session, "mpi://WORLD"), self = group_of(session, "mpi://SELF");
  MPI_Comm comm = MPI_COMM_SELF;
  int own = -1;
  step = "empty groups";
  OK(MPI_Group_rank(all, &own));
  OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "e", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  CHECK(comm == MPI_COMM_NULL);
  for (int way = 0; way < 3 + own; ++way) {
    comm = MPI_COMM_SELF;
    OK(MPI_Intercomm_create_from_groups(way % 3 == 1 ? self : MPI_GROUP_EMPTY, 0,
                                        way % 3 == 2 ? self : MPI_GROUP_EMPTY, 0, "empty",
                                        MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    CHECK(comm == MPI_COMM_NULL);
  }
  OK(MPI_Group_free(&self));
  OK(MPI_Group_free(&all));
  end_session(&session);
}

/* ---- Buffers --------------------------------------------------------------------------------- */

/* Sends one byte to itself. */
static int send_buffered(MPI_Comm comm) {
  char byte = 'x', got = 0;
  const int error = MPI_Bsend(&byte, 1, MPI_CHAR, rank_in(comm), 0, comm);
  if (error == MPI_SUCCESS) {
    OK(MPI_Recv(&got, 1, MPI_CHAR, rank_in(comm), 0, comm, MPI_STATUS_IGNORE));
    CHECK(got == 'x');
  }
  return error;
}

static void buffers(void) {
  static char memory[MPI_BSEND_OVERHEAD + 100], own[MPI_BSEND_OVERHEAD];
  MPI_Session session = open_plain(), other = open_plain();
  MPI_Comm comm = comm_of(session, "mpi://WORLD", "a"), copy = MPI_COMM_NULL;
  MPI_Comm others = comm_of(other, "mpi://WORLD", "b");
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Count large = -1;
  void* address = NULL;
  int bytes = -1;
  step = "a session's buffer";
  OK(MPI_Comm_dup(comm, &copy));
  expect_error(send_buffered(comm), MPI_ERR_BUFFER, "no buffer is attached");
  OK(MPI_Session_attach_buffer(session, memory, sizeof(memory)));
  expect_error(MPI_Session_attach_buffer(session, memory, 8), MPI_ERR_BUFFER, "attached already");
  OK(send_buffered(comm));
  OK(send_buffered(copy)); /* it comes from the same session */
  expect_error(send_buffered(others), MPI_ERR_BUFFER, "no buffer is attached");
  OK(MPI_Session_flush_buffer(session));
  OK(MPI_Session_iflush_buffer(session, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Comm_attach_buffer(copy, own, sizeof(own))); /* counts alone: it has no room for a byte */
  expect_error(send_buffered(copy), MPI_ERR_BUFFER, "of the attached buffer of");
  OK(MPI_Session_detach_buffer(session, &address, &bytes));
  CHECK(address == memory && bytes == (int)sizeof(memory));
  expect_error(MPI_Session_detach_buffer(session, &address, &bytes), MPI_ERR_BUFFER, "no buffer");
  OK(MPI_Session_attach_buffer_c(session, memory, sizeof(memory)));
  OK(MPI_Session_detach_buffer_c(session, &address, &large));
  CHECK(address == memory && large == (MPI_Count)sizeof(memory));
  OK(MPI_Session_attach_buffer(session, MPI_BUFFER_AUTOMATIC, 0));
  OK(send_buffered(comm));
  OK(MPI_Comm_free(&copy));
  OK(MPI_Comm_free(&others));
  OK(MPI_Comm_free(&comm));
  end_session(&other);
  end_session(&session); /* and the buffer with it */
}

/* ---- Error handlers and mistakes ------------------------------------------------------------- */

static MPI_Session heard_session;
static MPI_Comm heard_comm;
static int heard, heard_code;

static void hear(MPI_Session* session, int* code, ...) {
  ++heard;
  heard_session = *session;
  heard_code = *code;
}

static void hear_of_comm(MPI_Comm* comm, int* code, ...) {
  ++heard;
  heard_comm = *comm;
  heard_code = *code;
}

static void handlers(void) {
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Errhandler handler, of_comm, got;
  MPI_Info info;
  MPI_Comm comm = MPI_COMM_NULL;
  int length = -1;
  step = "error handlers"; /* they may be made before anything else */
  OK(MPI_Session_create_errhandler(hear, &handler));
  OK(MPI_Comm_create_errhandler(hear_of_comm, &of_comm));
  info = info_with("thread_level", "high");
  heard_session = (MPI_Session)&heard;
  expect_error(MPI_Session_init(info, handler, &session), MPI_ERR_INFO_VALUE, "thread_level is");
  CHECK(heard == 1 && heard_session == MPI_SESSION_NULL && heard_code == MPI_ERR_INFO_VALUE);
  OK(MPI_Info_free(&info));
  OK(MPI_Session_init(MPI_INFO_NULL, handler, &session));
  expect_error(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 99, &length, NULL), MPI_ERR_ARG,
               "");
  CHECK(heard == 2 && heard_session == session && heard_code == MPI_ERR_ARG);
  OK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
  CHECK(heard == 3 && heard_code == MPI_ERR_OTHER);
  OK(MPI_Session_get_errhandler(session, &got));
  CHECK(got == handler);
  OK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN));
  expect_error(MPI_Session_get_num_psets(session, MPI_INFO_NULL, NULL), MPI_ERR_ARG, "is a null");
  CHECK(heard == 3);
  OK(MPI_Session_set_errhandler(session, got));
  expect_error(MPI_Session_set_errhandler(session, of_comm), MPI_ERR_ERRHANDLER, "another kind");
  CHECK(heard == 4);
  expect_error(MPI_Comm_create_from_group(MPI_GROUP_NULL, "", MPI_INFO_NULL, of_comm, &comm),
               MPI_ERR_GROUP, "does not exist");
  CHECK(heard == 5 && heard_comm == MPI_COMM_NULL && heard_code == MPI_ERR_GROUP);
  OK(MPI_Errhandler_free(&got));
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_Errhandler_free(&of_comm));
  end_session(&session);
}

static void mistakes(void) {
  MPI_Session session = open_plain(), stale = session, none = MPI_SESSION_NULL;
  MPI_Group group = MPI_GROUP_EMPTY, all, self, others;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Info info = MPI_INFO_NULL;
  int number = -1;
  char name[MPI_MAX_PSET_NAME_LEN];
  step = "mistakes";
  expect_error(MPI_Group_from_session_pset(session, "mpi://NOBODY", &group), MPI_ERR_ARG,
               "there is no process set \"mpi://NOBODY\"");
  CHECK(group == MPI_GROUP_NULL);
  expect_error(MPI_Session_get_pset_info(session, "mpi://NOBODY", &info), MPI_ERR_ARG,
               "MPI_Session_get_nth_pset gives the names");
  number = sizeof(name);
  expect_error(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &number, name), MPI_ERR_ARG,
               "n is -1; the process sets have the numbers 0 to");
  expect_error(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &number, NULL), MPI_ERR_ARG,
               "pset_name is a null pointer");
  expect_error(MPI_Group_from_session_pset(session, NULL, &group), MPI_ERR_ARG, "pset_name is a");
  expect_error(MPI_Session_get_info(session, NULL), MPI_ERR_ARG, "info_used is a null pointer");
  comm = (MPI_Comm)&number;
  OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  CHECK(comm == MPI_COMM_NULL);
  all = group_of(session, "mpi://WORLD");
  self = group_of(session, "mpi://SELF");
  OK(MPI_Group_difference(all, self, &others));
  expect_error(MPI_Comm_create_from_group(others, "", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
               MPI_ERR_GROUP, "this process is not in group");
  /* Calls without an object: the handler that the program began with. */
  expect_error(MPI_Comm_rank(MPI_COMM_WORLD, &number), MPI_ERR_COMM,
               "MPI_COMM_WORLD is there between MPI_Init and MPI_Finalize");
  expect_error(MPI_Finalize(), MPI_ERR_OTHER, "MPI_Init was not called");
  expect_error(MPI_Session_get_num_psets(MPI_SESSION_NULL, MPI_INFO_NULL, &number), MPI_ERR_SESSION,
               "the session is MPI_SESSION_NULL");
  expect_error(MPI_Session_finalize(&none), MPI_ERR_SESSION, "MPI_SESSION_NULL");
  end_session(&session);
  expect_error(MPI_Session_finalize(&stale), MPI_ERR_SESSION, "was it finalised?");
  expect_error(MPI_Comm_free(&comm), MPI_ERR_OTHER, "no session is open");
}

/* MPI_Finalize has left the job before. */
static void too_late(void) {
  MPI_Session session = MPI_SESSION_NULL;
  OK(MPI_Init(NULL, NULL));
  OK(MPI_Finalize());
  step = "a session after the end";
  expect_error(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), MPI_ERR_OTHER,
               "open the first session before MPI_Finalize");
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* The last rank ends with a session open: whoever waits for it hears of that. */
static void one_dies(void) {
  MPI_Session session = open_plain();
  MPI_Comm comm = comm_of(session, "mpi://WORLD", "dies");
  const int last = size_of(comm) - 1;
  int data = 0;
  step = "a death";
  if (rank_in(comm) == last) {
    OK(MPI_Recv(&data, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE));
    exit(0);
  }
  if (rank_in(comm) == 0) OK(MPI_Send(&data, 1, MPI_INT, last, 0, comm));
  CHECK(MPI_Recv(&data, 1, MPI_INT, last, 1, comm, MPI_STATUS_IGNORE) == MPI_ERR_PROC_ABORTED);
  puts("a death is heard of");
  fflush(stdout);
  _Exit(0);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } ways[] = {
      {"alone", without_init},     {"again", again},         {"at-once", at_once},
      {"threads", in_threads},     {"beside", beside_world}, {"beside-threads", beside_threads},
      {"some", some_beside_world}, {"groups", from_groups},  {"empty-groups", empty_groups},
      {"buffers", buffers},        {"handlers", handlers},   {"mistakes", mistakes},
      {"too-late", too_late},      {"dies", one_dies}};
  for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); ++i) {
    if (argc > 1 && strcmp(argv[1], ways[i].name) == 0) {
      ways[i].run();
      puts("sessions are well");
      return 0;
    }
  }
  fprintf(stderr, "usage: sessions WAY\n");
  return 2;
}
