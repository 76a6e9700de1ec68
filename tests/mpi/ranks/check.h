/* Helpers for the programs that tests run as ranks: a check that says what failed, and data to tell
 * apart. It is C99, as users' programs may be.
 */
#ifndef FERRY_TESTS_MPI_RANKS_CHECK_H_
#define FERRY_TESTS_MPI_RANKS_CHECK_H_

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* step = "the beginning"; /* the program's current step */
static int rank, size;                     /* in MPI_COMM_WORLD, once MPI was begun */
static int next, before;                   /* the ranks around this one in a ring */

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      int check_rank = -1;                                                                 \
      MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);                                          \
      fprintf(stderr, "rank %d, %s:%d, in %s: %s\n", check_rank, __FILE__, __LINE__, step, \
              #condition);                                                                 \
      fflush(stderr);                                                                      \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                        \
    }                                                                                      \
  } while (0)
/* A call that is to succeed. */
#define OK(call)                                                         \
  do {                                                                   \
    const int check_error = (call);                                      \
    if (check_error != MPI_SUCCESS) say_error(step, #call, check_error); \
    CHECK(check_error == MPI_SUCCESS);                                   \
  } while (0)

static inline void say_error(const char* in, const char* call, int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length;
  MPI_Error_string(error, text, &length);
  fprintf(stderr, "in %s: %s: %s\n", in, call, text);
}

/* Bytes that differ between messages, and between places. */
static inline void fill(unsigned char* bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i) bytes[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8));
}

static inline int is_filled(const unsigned char* bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != (unsigned char)(seed * 31 + i * 7 + (i >> 8))) return 0;
  }
  return 1;
}

/* Checks that the call failed with this class, and that MPI_Error_string has the text. */
static inline void expect_error(int error, int error_class, const char* text) {
  char message[MPI_MAX_ERROR_STRING];
  int length;
  OK(MPI_Error_string(error, message, &length));
  if (error != error_class) {
    fprintf(stderr, "in %s: class %d in place of %d: \"%s\"\n", step, error, error_class, message);
    CHECK(!"the class is as it should be");
  }
  if (strstr(message, text) == NULL) {
    fprintf(stderr, "in %s: \"%s\" says nothing of \"%s\"\n", step, message, text);
    CHECK(!"the message is as it should be");
  }
}

static inline int rank_in(MPI_Comm comm) {
  int own = -1;
  OK(MPI_Comm_rank(comm, &own));
  return own;
}

static inline int size_of(MPI_Comm comm) {
  int members = -1;
  OK(MPI_Comm_size(comm, &members));
  return members;
}

static inline int remote_size_of(MPI_Comm inter) {
  int members = -1;
  OK(MPI_Comm_remote_size(inter, &members));
  return members;
}

static inline int comparison_of(MPI_Comm one, MPI_Comm other) {
  int result = -1;
  OK(MPI_Comm_compare(one, other, &result));
  return result;
}

static inline MPI_Info info_with(const char* key, const char* value) {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, key, value));
  return info;
}

/* A key's value, or "none". It is overwritten by the next call. */
static inline const char* value_in(MPI_Info info, const char* key) {
  static char value[MPI_MAX_INFO_VAL];
  int flag = 0, room = sizeof(value);
  OK(MPI_Info_get_string(info, key, &room, value, &flag));
  return flag ? value : "none";
}

static inline const char* hint_of(MPI_Comm comm, const char* key) {
  MPI_Info info;
  OK(MPI_Comm_get_info(comm, &info));
  const char* const value = value_in(info, key);
  OK(MPI_Info_free(&info));
  return value;
}

static inline int count_of(const MPI_Status* status, MPI_Datatype type) {
  int count = -1;
  OK(MPI_Get_count(status, type, &count));
  return count;
}

static inline int was_cancelled(const MPI_Status* status) {
  int flag = -1;
  OK(MPI_Test_cancelled(status, &flag));
  return flag;
}

/* A value goes round all members, in their order; `mark` tells communicators apart. */
static inline void check_ring(MPI_Comm comm, int mark) {
  const int own = rank_in(comm), members = size_of(comm), from = (own + members - 1) % members;
  const int sent = 1000 * mark + own;
  int got = -1;
  MPI_Status status;
  OK(MPI_Sendrecv(&sent, 1, MPI_INT, (own + 1) % members, 5, &got, 1, MPI_INT, MPI_ANY_SOURCE, 5,
                  comm, &status));
  CHECK(got == 1000 * mark + from && status.MPI_SOURCE == from);
}

/* Errors are returned from now on. */
static inline void return_errors(void) {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  rank = rank_in(MPI_COMM_WORLD);
  size = size_of(MPI_COMM_WORLD);
  next = (rank + 1) % size;
  before = (rank + size - 1) % size;
}

static inline void begin(int* argc, char*** argv) {
  OK(MPI_Init(argc, argv));
  return_errors();
}

static inline void begin_with_threads(int* argc, char*** argv, int level) {
  int provided = -1;
  OK(MPI_Init_thread(argc, argv, level, &provided));
  return_errors();
  CHECK(provided == level);
}

/* The thread level that the first argument names, or MPI_THREAD_SINGLE. */
static inline int level_of(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  return strcmp(name, "multiple") == 0     ? MPI_THREAD_MULTIPLE
         : strcmp(name, "serialized") == 0 ? MPI_THREAD_SERIALIZED
                                           : MPI_THREAD_SINGLE;
}

/* Ends MPI. Returns what main returns. */
static inline int end_well(const char* text) {
  const int error = MPI_Finalize();
  if (error != MPI_SUCCESS) {
    char message[MPI_MAX_ERROR_STRING];
    int length;
    OK(MPI_Error_string(error, message, &length));
    fprintf(stderr, "%s\n", message);
    CHECK(!"MPI ends well");
  }
  puts(text);
  return 0;
}

#endif /* FERRY_TESTS_MPI_RANKS_CHECK_H_ */
