/* The tool information interface (MPI_T), in the way that the argument names. */
#include "tests/mpi/ranks/check.h"

/* MPI need not have begun. */
#undef CHECK
#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      fprintf(stderr, "%s:%d, in %s: %s\n", __FILE__, __LINE__, step, #condition); \
      fflush(stderr);                                                              \
      _Exit(1);                                                                    \
    }                                                                              \
  } while (0)

typedef unsigned long long Number;

static void begin_tools(void) {
  int provided = -1;
  OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
}

static int control(const char* name) {
  int index = -1;
  OK(MPI_T_cvar_get_index(name, &index));
  return index;
}

static MPI_T_cvar_handle handle_of(const char* name, int* count) {
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  OK(MPI_T_cvar_handle_alloc(control(name), NULL, &handle, count));
  CHECK(handle != MPI_T_CVAR_HANDLE_NULL);
  return handle;
}

static Number number_of(const char* name) {
  int count = -1;
  Number value = 0;
  MPI_T_cvar_handle handle = handle_of(name, &count);
  CHECK(count == 1);
  OK(MPI_T_cvar_read(handle, &value));
  OK(MPI_T_cvar_handle_free(&handle));
  CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
  return value;
}

static int write_number(const char* name, Number value) {
  int count = -1;
  MPI_T_cvar_handle handle = handle_of(name, &count);
  const int error = MPI_T_cvar_write(handle, &value);
  OK(MPI_T_cvar_handle_free(&handle));
  return error;
}

/* ---- Control variables ----------------------------------------------------------------------- */

static void look_at_controls(void) {
  int count = -1;
  step = "all control variables";
  OK(MPI_T_cvar_get_num(&count));
  CHECK(count > 50);
  for (int i = 0; i < count; ++i) {
    char name[64], help[4096], cut[4];
    int room = sizeof(name), help_room = sizeof(help), none = 0, verbosity, bind, scope, elements;
    MPI_Datatype type;
    MPI_T_enum items;
    MPI_T_cvar_handle handle;
    OK(MPI_T_cvar_get_info(i, name, &room, &verbosity, &type, &items, help, &help_room, &bind,
                           &scope));
    CHECK(room == (int)strlen(name) + 1 && help_room == (int)strlen(help) + 1 && help_room > 20);
    CHECK(control(name) == i && bind == MPI_T_BIND_NO_OBJECT && verbosity > 0);
    CHECK(scope == MPI_T_SCOPE_READONLY || scope == MPI_T_SCOPE_LOCAL ||
          scope == MPI_T_SCOPE_ALL_EQ);
    CHECK((items != MPI_T_ENUM_NULL) == (type == MPI_INT));
    CHECK(type == MPI_INT || type == MPI_CHAR || type == MPI_UNSIGNED_LONG_LONG);
    CHECK(strcmp(name, "job_secret") != 0);
    /* Every result may be left out; a text may be cut, or only its length asked for. */
    OK(MPI_T_cvar_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    OK(MPI_T_cvar_get_info(i, NULL, &none, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(none == room);
    none = sizeof(cut);
    OK(MPI_T_cvar_get_info(i, cut, &none, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(strlen(cut) < sizeof(cut) && strncmp(cut, name, strlen(cut)) == 0);
    CHECK(none == (int)strlen(cut) + 1);
    OK(MPI_T_cvar_handle_alloc(i, NULL, &handle, &elements));
    CHECK((type == MPI_CHAR) == (elements > 1));
    char* const value = malloc((size_t)elements * sizeof(Number));
    OK(MPI_T_cvar_read(handle, value));
    if (items != MPI_T_ENUM_NULL) {
      int number_of_items = -1, item = -1, chosen;
      memcpy(&chosen, value, sizeof(chosen));
      OK(MPI_T_enum_get_info(items, &number_of_items, name, &none));
      CHECK(number_of_items > 1 && chosen >= 0 && chosen < number_of_items);
      room = sizeof(name);
      OK(MPI_T_enum_get_item(items, chosen, &item, name, &room));
      CHECK(item == chosen && room == (int)strlen(name) + 1);
      CHECK(MPI_T_enum_get_item(items, number_of_items, &item, name, &room) ==
            MPI_T_ERR_INVALID_INDEX);
    }
    free(value);
    OK(MPI_T_cvar_handle_free(&handle));
  }
}

/* Before MPI begins what ranks read can be set, and counts; after that it cannot. */
static void set_controls(void) {
  char text[4096] = "allreduce=no_such_algorithm";
  int elements = -1, choice = 4;
  MPI_T_cvar_handle handle;
  step = "setting before MPI_Init";
  CHECK(number_of("mpi_warn_after_ms") == 10000);
  OK(write_number("mpi_warn_after_ms", 77000));
  OK(write_number("request_limit", 512));
  CHECK(number_of("mpi_warn_after_ms") == 77000);
  handle = handle_of("gpu_backend", &elements); /* auto|cuda|hip|level_zero|host */
  OK(MPI_T_cvar_write(handle, &choice));
  choice = 5;
  expect_error(MPI_T_cvar_write(handle, &choice), MPI_T_ERR_INVALID, "none of the enumeration's 5");
  OK(MPI_T_cvar_read(handle, &choice));
  CHECK(choice == 4);
  OK(MPI_T_cvar_handle_free(&handle));
  expect_error(write_number("eager_max_bytes", 1 << 30), MPI_T_ERR_INVALID, "eager_max_bytes");
  expect_error(write_number("staging_blocks", 8), MPI_T_ERR_CVAR_SET_NEVER, "ferryd or ferryrun");
  handle = handle_of("collective_algorithms", &elements);
  CHECK(elements > 100);
  strcpy(text, "allreduce=ring");
  OK(MPI_T_cvar_write(handle, text));
  begin(NULL, NULL);
  step = "setting after MPI_Init";
  memset(text, 'x', sizeof(text));
  OK(MPI_T_cvar_read(handle, text));
  CHECK(strcmp(text, "allreduce=ring") == 0);
  CHECK(number_of("mpi_warn_after_ms") == 77000);
  CHECK(number_of("rank") == (Number)rank && number_of("size") == (Number)size);
  expect_error(write_number("mpi_warn_after_ms", 1), MPI_T_ERR_CVAR_SET_NOT_NOW, "MPI has begun");
  expect_error(MPI_T_cvar_write(handle, text), MPI_T_ERR_CVAR_SET_NOT_NOW, "before MPI_Init");
  /* It has an effect: so many requests there are. */
  MPI_Request requests[600];
  int error = MPI_SUCCESS, made = 0;
  while (made < 600 && error == MPI_SUCCESS) {
    error = MPI_Irecv(NULL, 0, MPI_INT, rank, 1, MPI_COMM_SELF, &requests[made]);
    made += error == MPI_SUCCESS;
  }
  CHECK(error != MPI_SUCCESS && made <= 512);
  for (int i = 0; i < made; ++i) {
    OK(MPI_Cancel(&requests[i]));
    OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
  }
  OK(MPI_Finalize());
  step = "setting after MPI_Finalize";
  CHECK(MPI_T_cvar_write(handle, text) == MPI_T_ERR_CVAR_SET_NOT_NOW);
  OK(MPI_T_cvar_handle_free(&handle));
}

/* ---- Performance variables ------------------------------------------------------------------- */

static MPI_T_pvar_handle counter(MPI_T_pvar_session session, const char* name, int var_class) {
  int index = -1, count = -1;
  MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
  OK(MPI_T_pvar_get_index(name, var_class, &index));
  OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
  CHECK(count == 1 && handle != MPI_T_PVAR_HANDLE_NULL);
  return handle;
}

static Number count_in(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  Number value = 0;
  OK(MPI_T_pvar_read(session, handle, &value));
  return value;
}

static void look_at_counters(void) {
  int count = -1;
  step = "all performance variables";
  OK(MPI_T_pvar_get_num(&count));
  CHECK(count > 40);
  for (int i = 0; i < count; ++i) {
    char name[64], help[512];
    int room = sizeof(name), help_room = sizeof(help), verbosity, var_class, bind, readonly;
    int continuous, atomic, index = -1;
    MPI_Datatype type;
    MPI_T_enum items;
    OK(MPI_T_pvar_get_info(i, name, &room, &verbosity, &var_class, &type, &items, help, &help_room,
                           &bind, &readonly, &continuous, &atomic));
    CHECK(type == (var_class == MPI_T_PVAR_CLASS_TIMER   ? MPI_DOUBLE
                   : var_class == MPI_T_PVAR_CLASS_STATE ? MPI_INT
                                                         : MPI_UNSIGNED_LONG_LONG));
    CHECK((items != MPI_T_ENUM_NULL) == (var_class == MPI_T_PVAR_CLASS_STATE));
    CHECK(bind == MPI_T_BIND_NO_OBJECT && help_room > 5);
    CHECK(readonly == (var_class == MPI_T_PVAR_CLASS_LEVEL || var_class == MPI_T_PVAR_CLASS_STATE));
    CHECK(continuous == readonly && atomic == !readonly);
    OK(MPI_T_pvar_get_index(name, var_class, &index));
    CHECK(index == i);
    CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_SIZE, &index) == MPI_T_ERR_INVALID_NAME);
  }
}

static void send_to_oneself(int times) {
  char data[100] = "";
  for (int i = 0; i < times; ++i) {
    OK(MPI_Sendrecv_replace(data, sizeof(data), MPI_CHAR, 0, 0, 0, 0, MPI_COMM_SELF,
                            MPI_STATUS_IGNORE));
  }
}

static void count(void) {
  MPI_T_pvar_session session, other;
  MPI_T_pvar_handle messages, bytes, others, links;
  Number value = 0;
  step = "counting";
  OK(MPI_T_pvar_session_create(&session)); /* before MPI begins */
  messages = counter(session, "messages_sent", MPI_T_PVAR_CLASS_COUNTER);
  CHECK(count_in(session, messages) == 0);
  begin(NULL, NULL);
  OK(MPI_T_pvar_session_create(&other));
  bytes = counter(session, "bytes_sent", MPI_T_PVAR_CLASS_AGGREGATE);
  links = counter(session, "links_open", MPI_T_PVAR_CLASS_LEVEL);
  others = counter(other, "messages_sent", MPI_T_PVAR_CLASS_COUNTER);
  send_to_oneself(3);
  CHECK(count_in(session, messages) == 0); /* nobody has started it */
  OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
  send_to_oneself(5);
  CHECK(count_in(session, messages) == 5 && count_in(session, bytes) == 500);
  CHECK(count_in(other, others) == 0);
  OK(MPI_T_pvar_start(other, others));
  send_to_oneself(2);
  OK(MPI_T_pvar_stop(session, messages));
  send_to_oneself(4);
  CHECK(count_in(session, messages) == 7 && count_in(session, bytes) == 1100);
  CHECK(count_in(other, others) == 6);
  OK(MPI_T_pvar_start(session, messages));
  send_to_oneself(1);
  OK(MPI_T_pvar_readreset(session, messages, &value));
  CHECK(value == 8 && count_in(session, messages) == 0);
  send_to_oneself(1);
  CHECK(count_in(session, messages) == 1);
  value = 1000;
  OK(MPI_T_pvar_write(session, messages, &value));
  send_to_oneself(1);
  CHECK(count_in(session, messages) == 1001);
  OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
  OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
  send_to_oneself(1);
  CHECK(count_in(session, messages) == 0 && count_in(session, bytes) == 0);

  step = "mistakes in counting";
  CHECK(count_in(session, links) == 0);
  expect_error(MPI_T_pvar_start(session, links), MPI_T_ERR_PVAR_NO_STARTSTOP, "always active");
  CHECK(MPI_T_pvar_stop(session, links) == MPI_T_ERR_PVAR_NO_STARTSTOP);
  CHECK(MPI_T_pvar_reset(session, links) == MPI_T_ERR_PVAR_NO_WRITE);
  expect_error(MPI_T_pvar_write(session, links, &value), MPI_T_ERR_PVAR_NO_WRITE, "no tool can");
  CHECK(MPI_T_pvar_readreset(session, links, &value) == MPI_T_ERR_PVAR_NO_ATOMIC);
  expect_error(MPI_T_pvar_read(other, messages, &value), MPI_T_ERR_INVALID_HANDLE,
               "another session");
  CHECK(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &value) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_pvar_read(session, messages, NULL) == MPI_T_ERR_INVALID);
  CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_HANDLE_NULL) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_pvar_start(MPI_T_PVAR_SESSION_NULL, messages) == MPI_T_ERR_INVALID_SESSION);
  OK(MPI_T_pvar_handle_free(other, &others));
  CHECK(others == MPI_T_PVAR_HANDLE_NULL);
  OK(MPI_T_pvar_session_free(&other));
  CHECK(other == MPI_T_PVAR_SESSION_NULL);
  OK(MPI_Finalize());
  CHECK(count_in(session, messages) == 0);
  OK(MPI_T_pvar_session_free(&session)); /* with its handles */
}

/* ---- Categories and events ------------------------------------------------------------------- */

static void look_at_categories(void) {
  int count = -1, stamp = -1, controls = 0, counters = 0, all_controls, all_counters;
  int all_events = 0, types = -1;
  step = "categories";
  OK(MPI_T_category_get_num(&count));
  OK(MPI_T_category_changed(&stamp));
  OK(MPI_T_cvar_get_num(&all_controls));
  OK(MPI_T_pvar_get_num(&all_counters));
  for (int i = 0; i < count; ++i) {
    char name[64], help[256];
    int room = sizeof(name), help_room = sizeof(help), cvars, pvars, parts, events, index = -1;
    int indices[200], event = -1;
    OK(MPI_T_category_get_info(i, name, &room, help, &help_room, &cvars, &pvars, &parts));
    OK(MPI_T_category_get_index(name, &index));
    OK(MPI_T_category_get_num_events(i, &events));
    CHECK(index == i && parts == 0 && cvars + pvars + events > 0);
    OK(MPI_T_category_get_events(i, 1, &event));
    CHECK(event == (events > 0 ? 0 : -1));
    all_events += events;
    memset(indices, -1, sizeof(indices));
    OK(MPI_T_category_get_cvars(i, 200, indices));
    CHECK(cvars == 0 || (indices[0] >= 0 && indices[cvars - 1] < all_controls));
    CHECK(indices[cvars] == -1);
    OK(MPI_T_category_get_pvars(i, 1, indices)); /* no more than fit */
    OK(MPI_T_category_get_categories(i, 0, NULL));
    OK(MPI_T_category_get_events(i, 0, NULL));
    controls += cvars;
    counters += pvars;
  }
  OK(MPI_T_event_get_num(&types));
  CHECK(controls == all_controls && counters == all_counters && all_events == types);
  CHECK(MPI_T_category_get_index("no such", &count) == MPI_T_ERR_INVALID_NAME);
  CHECK(MPI_T_category_get_cvars(count, 1, NULL) == MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_category_get_cvars(0, 1, NULL) == MPI_T_ERR_INVALID);
}

static void look_at_events(void) {
  int count = -1, sources = -1;
  MPI_Count time = 0, ticks = 0, most = 0;
  MPI_T_event_registration registration = NULL;
  MPI_T_source_order order;
  MPI_Info info = MPI_INFO_NULL;
  step = "events";
  OK(MPI_T_event_get_num(&count));
  CHECK(count == 6);
  for (int i = 0; i < count; ++i) {
    char name[64], help[512];
    int room = sizeof(name), help_room = sizeof(help), elements = 6, bind, verbosity, index = -1;
    int none = 0, names_count = -1;
    MPI_Datatype types[6];
    MPI_Aint places[6];
    MPI_T_enum names;
    OK(MPI_T_event_get_info(i, name, &room, &verbosity, types, places, &elements, &names, &info,
                            help, &help_room, &bind));
    CHECK(elements >= 5 && elements <= 6 && bind == MPI_T_BIND_NO_OBJECT && help_room > 20);
    OK(MPI_T_enum_get_info(names, &names_count, NULL, NULL));
    CHECK(names_count == elements);
    for (int j = 0; j < elements; ++j) {
      CHECK(types[j] == MPI_INT || types[j] == MPI_COUNT);
      CHECK(places[j] >= (j == 0 ? 0 : places[j - 1] + 4));
    }
    OK(MPI_Info_free(&info));
    OK(MPI_T_event_get_index(name, &index));
    CHECK(index == i);
    OK(MPI_T_event_get_info(i, NULL, NULL, NULL, NULL, NULL, &none, NULL, NULL, NULL, NULL, NULL));
    CHECK(none == elements);
  }
  OK(MPI_T_source_get_num(&sources));
  CHECK(sources == 1);
  OK(MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, &order, &ticks, &most, NULL));
  CHECK(order == MPI_T_SOURCE_ORDERED && ticks == 1000000000 && most > ticks);
  OK(MPI_T_source_get_timestamp(0, &time));
  CHECK(time > 0);

  step = "mistakes with events";
  CHECK(MPI_T_event_get_index("message", &count) == MPI_T_ERR_INVALID_NAME);
  CHECK(MPI_T_event_get_info(6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
        MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_event_handle_alloc(-1, NULL, MPI_INFO_NULL, &registration) ==
        MPI_T_ERR_INVALID_INDEX);
  expect_error(MPI_T_source_get_timestamp(1, &time), MPI_T_ERR_INVALID_INDEX, "1 event sources");
  CHECK(MPI_T_source_get_info(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
        MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_event_read(NULL, 0, &time) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_event_handle_free(NULL, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
  OK(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &registration));
  CHECK(MPI_T_event_register_callback(registration, (MPI_T_cb_safety)1, MPI_INFO_NULL, NULL,
                                      NULL) == MPI_T_ERR_INVALID);
  CHECK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL,
                                      NULL) == MPI_T_ERR_INVALID);
  OK(MPI_T_event_handle_set_info(registration, MPI_INFO_NULL));
  OK(MPI_T_event_callback_set_info(registration, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL));
  OK(MPI_T_event_handle_get_info(registration, &info));
  OK(MPI_Info_free(&info));
  OK(MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_NONE, &info));
  OK(MPI_Info_free(&info));
  OK(MPI_T_event_set_dropped_handler(registration, NULL));
  OK(MPI_T_event_handle_free(registration, NULL, NULL));
  CHECK(MPI_T_event_set_dropped_handler(registration, NULL) == MPI_T_ERR_INVALID_HANDLE);
}

/* ---- Ways ------------------------------------------------------------------------------------ */

static void without_mpi(void) {
  begin_tools();
  look_at_controls();
  look_at_counters();
  look_at_categories();
  look_at_events();
  OK(MPI_T_finalize());
}

static void beside_mpi(void) {
  begin(NULL, NULL);
  without_mpi();
  OK(MPI_Finalize());
  without_mpi();
}

static void mistakes(void) {
  int number = -1;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL, stale;
  step = "calls outside";
  CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
  CHECK(MPI_T_cvar_get_num(&number) == MPI_T_ERR_NOT_INITIALIZED);
  expect_error(MPI_T_pvar_get_num(&number), MPI_T_ERR_NOT_INITIALIZED,
               "MPI_T_pvar_get_num: call MPI_T_init_thread first");
  CHECK(MPI_T_init_thread(-1, &number) == MPI_T_ERR_INVALID);
  CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, NULL) == MPI_T_ERR_INVALID);
  CHECK(MPI_T_cvar_get_num(&number) == MPI_T_ERR_NOT_INITIALIZED);
  step = "wrong arguments";
  begin_tools();
  begin_tools();
  OK(MPI_T_finalize()); /* one is left */
  OK(MPI_T_cvar_get_num(&number));
  expect_error(MPI_T_cvar_get_info(number, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
               MPI_T_ERR_INVALID_INDEX, "control variables");
  CHECK(MPI_T_cvar_get_num(NULL) == MPI_T_ERR_INVALID);
  CHECK(MPI_T_cvar_get_index("job_secret", &number) == MPI_T_ERR_INVALID_NAME);
  CHECK(MPI_T_cvar_get_index(NULL, &number) == MPI_T_ERR_INVALID);
  CHECK(MPI_T_cvar_handle_alloc(-1, NULL, &handle, &number) == MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &number) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &number, NULL, NULL) == MPI_T_ERR_INVALID);
  stale = handle = handle_of("heap_bytes", &number);
  CHECK(MPI_T_cvar_read(handle, NULL) == MPI_T_ERR_INVALID);
  OK(MPI_T_cvar_handle_free(&handle));
  CHECK(MPI_T_cvar_handle_free(&handle) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_cvar_read(stale, &number) == MPI_T_ERR_INVALID_HANDLE);
  stale = handle_of("heap_bytes", &number);
  OK(MPI_T_finalize());
  begin_tools();
  CHECK(MPI_T_cvar_handle_free(&stale) == MPI_T_ERR_INVALID_HANDLE); /* the end has freed it */
  OK(MPI_T_finalize());
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } ways[] = {{"before", without_mpi},
              {"beside", beside_mpi},
              {"set", set_controls},
              {"count", count},
              {"mistakes", mistakes}};
  const char* const way = argc > 1 ? argv[1] : "";
  for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); ++i) {
    if (strcmp(way, ways[i].name) == 0) {
      const int in_tools = strcmp(way, "set") == 0 || strcmp(way, "count") == 0;
      if (in_tools) begin_tools();
      ways[i].run();
      if (in_tools) OK(MPI_T_finalize());
      puts("the tool is content");
      return 0;
    }
  }
  fprintf(stderr, "usage: tools before|beside|set|count|mistakes\n");
  return 2;
}
