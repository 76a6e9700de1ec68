/* Events of the tool information interface (MPI_T), and the variables that are measured with them.
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

/* A receive of so many bytes is posted where it is started, not only where it is waited for. */
enum { most_seen = 64, most_elements = 6, posted_bytes = 1 << 16 };

/* What the callbacks of one registration have seen. */
struct log {
  const char* type;
  MPI_T_event_registration registration;
  int count, dropped, drops, freed;
  MPI_T_cb_safety level; /* of the last call */
  struct {
    long long values[most_elements];
    MPI_Count time;
  } seen[most_seen];
};

static const char* path = ""; /* of a file that says that rank 1 waits */

static void begin_tools(void) {
  int provided = -1;
  OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
}

static int index_of(const char* type) {
  int index = -1;
  OK(MPI_T_event_get_index(type, &index));
  return index;
}

/* The place of an element, by the enumeration of its type. */
static int element(const char* type, const char* name) {
  MPI_T_enum names;
  int count = -1;
  OK(MPI_T_event_get_info(index_of(type), NULL, NULL, NULL, NULL, NULL, NULL, &names, NULL, NULL,
                          NULL, NULL));
  OK(MPI_T_enum_get_info(names, &count, NULL, NULL));
  for (int i = 0; i < count; ++i) {
    char text[64];
    int room = sizeof(text), value = -1;
    OK(MPI_T_enum_get_item(names, i, &value, text, &room));
    if (strcmp(text, name) == 0) return value;
  }
  CHECK(!"the element is there");
  return -1;
}

static int variable(const char* name, int var_class) {
  int index = -1;
  OK(MPI_T_pvar_get_index(name, var_class, &index));
  return index;
}

/* The name of a function, by the enumeration of current_call. */
static const char* name_of(long long call) {
  static char text[64];
  MPI_T_enum names;
  int count = -1;
  OK(MPI_T_pvar_get_info(variable("current_call", MPI_T_PVAR_CLASS_STATE), NULL, NULL, NULL, NULL,
                         NULL, &names, NULL, NULL, NULL, NULL, NULL, NULL));
  OK(MPI_T_enum_get_info(names, &count, NULL, NULL));
  for (int i = 0; i < count; ++i) {
    int room = sizeof(text), value = -1;
    OK(MPI_T_enum_get_item(names, i, &value, text, &room));
    if (value == call) return text;
  }
  return "?";
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

static void note(MPI_T_event_instance event, MPI_T_event_registration registration,
                 MPI_T_cb_safety level, void* user_data) {
  struct log* const log = user_data;
  MPI_Datatype types[most_elements];
  MPI_Aint places[most_elements];
  int elements = most_elements, source = -1;
  unsigned char copy[256];
  MPI_Count time = 0;
  CHECK(registration == log->registration);
  log->level = level;
  if (log->count++ >= most_seen) return;
  OK(MPI_T_event_get_info(index_of(log->type), NULL, NULL, NULL, types, places, &elements, NULL,
                          NULL, NULL, NULL, NULL));
  OK(MPI_T_event_copy(event, copy));
  for (int i = 0; i < elements; ++i) {
    long long* const value = &log->seen[log->count - 1].values[i];
    if (types[i] == MPI_INT) {
      int small = -7, copied;
      OK(MPI_T_event_read(event, i, &small));
      memcpy(&copied, copy + places[i], sizeof(copied));
      CHECK(copied == small);
      *value = small;
    } else {
      MPI_Count large = -7, copied;
      CHECK(types[i] == MPI_COUNT);
      OK(MPI_T_event_read(event, i, &large));
      memcpy(&copied, copy + places[i], sizeof(copied));
      CHECK(copied == large);
      *value = large;
    }
  }
  CHECK(MPI_T_event_read(event, elements, copy) == MPI_T_ERR_INVALID_INDEX);
  OK(MPI_T_event_get_timestamp(event, &time));
  OK(MPI_T_event_get_source(event, &source));
  CHECK(source == 0 && time > 0);
  log->seen[log->count - 1].time = time;
}

static void note_dropped(MPI_Count count, MPI_T_event_registration registration, int source,
                         MPI_T_cb_safety level, void* user_data) {
  struct log* const log = user_data;
  CHECK(registration == log->registration && source == 0 && count > 0);
  log->level = level;
  log->dropped += (int)count;
  ++log->drops;
}

static void note_freed(MPI_T_event_registration registration, MPI_T_cb_safety level,
                       void* user_data) {
  struct log* const log = user_data;
  CHECK(registration == log->registration);
  log->level = level;
  ++log->freed;
}

static void watch(struct log* log, const char* type, MPI_T_cb_safety level,
                  MPI_T_event_cb_function* callback) {
  log->type = type;
  OK(MPI_T_event_handle_alloc(index_of(type), NULL, MPI_INFO_NULL, &log->registration));
  OK(MPI_T_event_register_callback(log->registration, level, MPI_INFO_NULL, log, callback));
  OK(MPI_T_event_set_dropped_handler(log->registration, note_dropped));
}

static void unwatch(struct log* log) {
  const int before_it = log->freed;
  OK(MPI_T_event_handle_free(log->registration, log, note_freed));
  CHECK(log->freed == before_it + 1);
  CHECK(MPI_T_event_handle_free(log->registration, log, note_freed) == MPI_T_ERR_INVALID_HANDLE);
}

/* Returns the number of the first event whose element has the value; -1: there is none. */
static int find(const struct log* log, const char* name, long long value) {
  const int place = element(log->type, name);
  for (int i = 0; i < log->count && i < most_seen; ++i) {
    if (log->seen[i].values[place] == value) return i;
  }
  return -1;
}

static long long value_of(const struct log* log, int i, const char* name) {
  return log->seen[i].values[element(log->type, name)];
}

static void to_oneself(int tag) {
  char data[8] = "";
  MPI_Request request;
  OK(MPI_Isend(data, 8, MPI_CHAR, 0, tag, MPI_COMM_SELF, &request));
  OK(MPI_Recv(data, 8, MPI_CHAR, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void messages(void) {
  static struct log arrived, matched;
  static char large[posted_bytes];
  char data[100] = "";
  MPI_Request sent[2];
  MPI_Count now = 0;
  int early, late, taken, flag = 0;
  watch(&arrived, "message_arrived", MPI_T_CB_REQUIRE_MPI_RESTRICTED, note); /* before MPI begins */
  watch(&matched, "message_matched", MPI_T_CB_REQUIRE_NONE, note);
  begin(NULL, NULL);
  step = "two messages, the second received first";
  OK(MPI_Isend(data, 40, MPI_CHAR, 0, 5, MPI_COMM_SELF, &sent[0]));
  OK(MPI_Isend(data, 100, MPI_CHAR, 0, 6, MPI_COMM_SELF, &sent[1]));
  OK(MPI_Recv(data, 100, MPI_CHAR, 0, 6, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  OK(MPI_Recv(data, 100, MPI_CHAR, MPI_ANY_SOURCE, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  OK(MPI_Waitall(2, sent, MPI_STATUSES_IGNORE));
  early = find(&arrived, "tag", 5);
  late = find(&arrived, "tag", 6);
  CHECK(early >= 0 && late > early);
  CHECK(value_of(&arrived, early, "expected") == 0 && value_of(&arrived, early, "bytes") == 40);
  CHECK(value_of(&arrived, early, "source") == rank && value_of(&arrived, late, "bytes") == 100);
  CHECK(value_of(&arrived, early, "communicator") == 2); /* MPI_COMM_SELF */
  CHECK(value_of(&arrived, early, "traffic") == 0);
  taken = find(&matched, "tag", 5);
  CHECK(taken >= 0 && find(&matched, "tag", 6) >= 0 && find(&matched, "tag", 6) < taken);
  CHECK(value_of(&matched, taken, "expected") == 0);
  CHECK(matched.seen[taken].time >= arrived.seen[late].time);
  OK(MPI_T_source_get_timestamp(0, &now));
  CHECK(matched.seen[taken].time <= now);
  CHECK(matched.level == MPI_T_CB_REQUIRE_NONE); /* the places of MPI_Recv hold nothing */

  step = "a receive that waits for its message";
  OK(MPI_Irecv(large, posted_bytes, MPI_CHAR, 0, 9, MPI_COMM_SELF, &sent[0]));
  OK(MPI_Send(data, 1, MPI_CHAR, 0, 9, MPI_COMM_SELF));
  OK(MPI_Wait(&sent[0], MPI_STATUS_IGNORE));
  OK(MPI_Iprobe(0, 9, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE)); /* the next place for `matched` */
  taken = find(&matched, "tag", 9);
  late = find(&arrived, "tag", 9);
  CHECK(taken >= 0 && value_of(&matched, taken, "expected") == 1);
  CHECK(late >= 0 && value_of(&arrived, late, "expected") == 1);

  step = "a registration that is freed";
  unwatch(&matched);
  taken = matched.count;
  to_oneself(10);
  CHECK(matched.count == taken && find(&arrived, "tag", 10) >= 0);
  unwatch(&arrived);
  OK(MPI_Finalize());
  step = "a registration after the end";
  watch(&matched, "message_matched", MPI_T_CB_REQUIRE_NONE, note);
  unwatch(&matched);
}

/* ---- Collectives ----------------------------------------------------------------------------- */

static void collectives(void) {
  static struct log entered, left;
  int value = 1, sum = 0, first;
  MPI_Request request;
  begin(NULL, NULL);
  step = "collectives";
  watch(&entered, "collective_entered", MPI_T_CB_REQUIRE_THREAD_SAFE, note);
  watch(&left, "collective_left", MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, note);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(entered.count == 2 && left.count == 2);
  OK(MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request));
  CHECK(entered.count == 3 && left.count == 2);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(left.count == 3 && entered.dropped == 0 && left.dropped == 0);
  first = (int)value_of(&entered, 0, "number");
  for (int i = 0; i < 3; ++i) {
    static const char* const names[] = {"MPI_Barrier", "MPI_Allreduce", "MPI_Bcast"};
    CHECK(strcmp(name_of(value_of(&entered, i, "call")), names[i]) == 0);
    CHECK(strcmp(name_of(value_of(&left, i, "call")), names[i]) == 0);
    CHECK(value_of(&entered, i, "number") == first + i &&
          value_of(&left, i, "number") == first + i);
    CHECK(value_of(&entered, i, "communicator") == 1 && value_of(&left, i, "communicator") == 1);
    CHECK(value_of(&entered, i, "nonblocking") == (i == 2));
    CHECK(left.seen[i].time >= entered.seen[i].time);
  }
  CHECK(value_of(&entered, 1, "bytes") == 4 && value_of(&entered, 2, "root") == 0);
  CHECK(value_of(&entered, 0, "root") == MPI_PROC_NULL);
  unwatch(&entered);
  unwatch(&left);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(entered.count == 3 && left.count == 3);
  OK(MPI_Finalize());
}

/* ---- Waits ----------------------------------------------------------------------------------- */

static void note_wait(MPI_T_event_instance event, MPI_T_event_registration registration,
                      MPI_T_cb_safety level, void* user_data) {
  struct log* const log = user_data;
  int tag = -1, file, call = -1;
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  note(event, registration, level, user_data);
  OK(MPI_T_event_read(event, element(log->type, "tag"), &tag));
  if (tag != 77) return;
  OK(MPI_T_pvar_session_create(&session));
  OK(MPI_T_pvar_handle_alloc(session, variable("current_call", MPI_T_PVAR_CLASS_STATE), NULL,
                             &handle, &file));
  OK(MPI_T_pvar_read(session, handle, &call));
  CHECK(strcmp(name_of(call), "MPI_Recv") == 0);
  OK(MPI_T_pvar_session_free(&session));
  file = open(path, O_CREAT | O_WRONLY, 0600); /* now the other rank may send */
  CHECK(file >= 0 && close(file) == 0);
}

/* Rank 0 sends once the callback of rank 1 has run, which waits for that message. */
static void waits(void) {
  static struct log begun, ended, later;
  char data[8] = "";
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  double waited = -1;
  int count = 0;
  begin(NULL, NULL);
  CHECK(size == 2);
  step = "a wait";
  OK(MPI_T_pvar_session_create(&session));
  OK(MPI_T_pvar_handle_alloc(session, variable("time_waiting", MPI_T_PVAR_CLASS_TIMER), NULL,
                             &handle, &count));
  if (rank == 1) {
    int i, last;
    watch(&begun, "wait_begun", MPI_T_CB_REQUIRE_MPI_RESTRICTED, note_wait);
    watch(&ended, "wait_ended", MPI_T_CB_REQUIRE_MPI_RESTRICTED, note);
    OK(MPI_T_pvar_start(session, handle));
    OK(MPI_Recv(data, 8, MPI_CHAR, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    i = find(&begun, "tag", 77);
    last = find(&ended, "tag", 77);
    CHECK(i >= 0 && last >= 0 && begun.level == MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    CHECK(value_of(&begun, i, "peer") == 0 && value_of(&begun, i, "bytes") == 8);
    CHECK(strcmp(name_of(value_of(&begun, i, "call")), "MPI_Recv") == 0);
    OK(MPI_T_pvar_read(session, handle, &waited));
    CHECK((ended.seen[last].time - begun.seen[i].time) * 1e-9 <= waited + 1e-3);
    CHECK(waited > 0 && waited < 1000);
    unwatch(&begun);
    unwatch(&ended);
    CHECK(unlink(path) == 0);
  } else {
    while (access(path, F_OK) != 0) usleep(1000);
    OK(MPI_Send(data, 8, MPI_CHAR, 1, 77, MPI_COMM_WORLD));
  }
  step = "a wait of which only a callback without limits is told";
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 1) {
    watch(&later, "wait_begun", MPI_T_CB_REQUIRE_NONE, note);
    OK(MPI_Send(data, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD)); /* its answer comes after this */
    OK(MPI_Recv(data, 8, MPI_CHAR, 0, 78, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(later.dropped == 0 && (later.count == 0 || later.level == MPI_T_CB_REQUIRE_NONE));
    unwatch(&later);
  } else {
    OK(MPI_Recv(data, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Send(data, 8, MPI_CHAR, 1, 78, MPI_COMM_WORLD));
  }
  OK(MPI_T_pvar_session_free(&session));
  OK(MPI_Finalize());
}

/* ---- Callbacks that call MPI ----------------------------------------------------------------- */

enum { flood = 6000 }; /* more events than wait for callbacks */

/* Called for tag 1 only at first; what it does itself is told afterwards. */
static void cause_more(MPI_T_event_instance event, MPI_T_event_registration registration,
                       MPI_T_cb_safety level, void* user_data) {
  struct log* const log = user_data;
  int tag = -1;
  CHECK(registration == log->registration && level == MPI_T_CB_REQUIRE_NONE);
  OK(MPI_T_event_read(event, element(log->type, "tag"), &tag));
  if (tag == 1) {
    for (int i = 0; i < flood; ++i) to_oneself(2);
  }
  log->count += tag == 2;
}

static void dropped(void) {
  static struct log matched;
  char byte = 0;
  begin(NULL, NULL);
  step = "more events than can wait";
  watch(&matched, "message_matched", MPI_T_CB_REQUIRE_NONE, cause_more);
  to_oneself(1);
  to_oneself(3); /* the next places */
  CHECK(matched.drops > 0 && matched.dropped + matched.count == flood);
  CHECK(matched.count >= 1000);
  CHECK(MPI_T_event_copy(NULL, &byte) == MPI_T_ERR_INVALID_HANDLE);
  unwatch(&matched);
  OK(MPI_Finalize());
}

static void free_itself(MPI_T_event_instance event, MPI_T_event_registration registration,
                        MPI_T_cb_safety level, void* user_data) {
  struct log* const log = user_data;
  int tag = -1;
  (void)level;
  ++log->count;
  OK(MPI_T_event_handle_free(registration, log, note_freed));
  CHECK(log->freed == 0); /* this callback still runs */
  OK(MPI_T_event_read(event, element(log->type, "tag"), &tag));
  CHECK(tag == 1);
  CHECK(MPI_T_event_handle_free(registration, log, note_freed) == MPI_T_ERR_INVALID_HANDLE);
}

static void freed(void) {
  static struct log matched, left;
  begin(NULL, NULL);
  step = "a callback that frees its registration";
  watch(&matched, "message_matched", MPI_T_CB_REQUIRE_NONE, free_itself);
  to_oneself(1);
  to_oneself(2);
  CHECK(matched.count == 1 && matched.freed == 1);
  step = "what MPI_T_finalize frees";
  watch(&left, "message_matched", MPI_T_CB_REQUIRE_NONE, note);
  OK(MPI_T_finalize());
  to_oneself(3);
  CHECK(left.count == 0 && left.freed == 0);
  begin_tools();
  CHECK(MPI_T_event_handle_free(left.registration, &left, note_freed) == MPI_T_ERR_INVALID_HANDLE);
  OK(MPI_Finalize());
}

/* Where several threads may call, no other callback than one for them is called. */
static void threads(void) {
  static struct log unsafe, safe;
  int provided = -1;
  OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  step = "callbacks with threads";
  watch(&unsafe, "message_matched", MPI_T_CB_REQUIRE_MPI_RESTRICTED, note);
  watch(&safe, "message_matched", MPI_T_CB_REQUIRE_THREAD_SAFE, note);
  to_oneself(1);
  to_oneself(2);
  CHECK(unsafe.count == 0 && unsafe.dropped == 2);
  CHECK(safe.count == 2 && safe.dropped == 0 && safe.level == MPI_T_CB_REQUIRE_THREAD_SAFE);
  unwatch(&unsafe);
  unwatch(&safe);
  OK(MPI_Finalize());
}

/* ---- Variables ------------------------------------------------------------------------------- */

static unsigned long long most(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  unsigned long long value = 0;
  OK(MPI_T_pvar_read(session, handle, &value));
  return value;
}

static void variables(void) {
  MPI_T_pvar_session session;
  MPI_T_pvar_handle unexpected, posted, timer;
  MPI_Request requests[7];
  int count = -1;
  static char data[7][posted_bytes];
  double seconds = -1;
  unsigned long long before_it;
  begin(NULL, NULL);
  step = "marks";
  OK(MPI_T_pvar_session_create(&session));
  OK(MPI_T_pvar_handle_alloc(session,
                             variable("most_unexpected_messages", MPI_T_PVAR_CLASS_HIGHWATERMARK),
                             NULL, &unexpected, &count));
  OK(MPI_T_pvar_handle_alloc(session,
                             variable("most_posted_receives", MPI_T_PVAR_CLASS_HIGHWATERMARK), NULL,
                             &posted, &count));
  OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
  before_it = most(session, posted);
  for (int i = 0; i < 7; ++i) {
    OK(MPI_Irecv(data[i], posted_bytes, MPI_CHAR, MPI_ANY_SOURCE, i, MPI_COMM_SELF, &requests[i]));
  }
  for (int i = 0; i < 7; ++i) OK(MPI_Send(data[0], 8, MPI_CHAR, 0, i, MPI_COMM_SELF));
  OK(MPI_Waitall(7, requests, MPI_STATUSES_IGNORE));
  CHECK(most(session, posted) >= before_it + 7);
  OK(MPI_T_pvar_reset(session, posted));
  CHECK(most(session, posted) < before_it + 7);
  before_it = most(session, unexpected);
  for (int i = 0; i < 5; ++i) {
    OK(MPI_Isend(data[i], 8, MPI_CHAR, 0, i, MPI_COMM_SELF, &requests[i]));
  }
  OK(MPI_Recv(data[4], 8, MPI_CHAR, 0, 4, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK(most(session, unexpected) >= before_it + 4 && most(session, unexpected) <= before_it + 5);
  before_it = most(session, unexpected);
  OK(MPI_T_pvar_stop(session, unexpected));
  for (int i = 0; i < 4; ++i) {
    OK(MPI_Recv(data[i], 8, MPI_CHAR, 0, i, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  }
  OK(MPI_Waitall(5, requests, MPI_STATUSES_IGNORE));
  CHECK(most(session, unexpected) == before_it);

  step = "a timer";
  OK(MPI_T_pvar_handle_alloc(session, variable("time_in_collectives", MPI_T_PVAR_CLASS_TIMER), NULL,
                             &timer, &count));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_T_pvar_read(session, timer, &seconds));
  CHECK(seconds == 0);
  OK(MPI_T_pvar_start(session, timer));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_T_pvar_stop(session, timer));
  OK(MPI_T_pvar_read(session, timer, &seconds));
  CHECK(seconds > 0 && seconds < 1000);
  seconds = 2.5;
  OK(MPI_T_pvar_write(session, timer, &seconds));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_T_pvar_readreset(session, timer, &seconds));
  CHECK(seconds > 2.49 && seconds < 2.51);
  OK(MPI_T_pvar_read(session, timer, &seconds));
  CHECK(seconds == 0);
  OK(MPI_T_pvar_session_free(&session));
  OK(MPI_Finalize());
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } ways[] = {{"messages", messages},  {"collectives", collectives},
              {"waits", waits},        {"dropped", dropped},
              {"freed", freed},        {"threads", threads},
              {"variables", variables}};
  const char* const way = argc > 1 ? argv[1] : "";
  path = argc > 2 ? argv[2] : "";
  for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); ++i) {
    if (strcmp(way, ways[i].name) == 0) {
      begin_tools();
      ways[i].run();
      OK(MPI_T_finalize());
      puts("the tool is content");
      return 0;
    }
  }
  fprintf(stderr, "usage: tool_events WAY [FILE]\n");
  return 2;
}
