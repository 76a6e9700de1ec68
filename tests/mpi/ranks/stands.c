/* stands WHAT [FIFO]: the last rank computes for ever, outside MPI; the others wait for it in the
 * call WHAT, or rank 0 waits for the system in a call on a file, or (moves) all ranks reduce 1 MiB
 * again and again, or (jump) they leave a receive by longjmp from its error handler, once somebody
 * writes to FIFO, and wait in the next one. Each rank first prints "rank R: under way".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

static char data[1 << 20], more[1 << 20]; /* too long to be copied away for a late receive */
static MPI_Comm rows;
static MPI_Win win;
static MPI_File together_file;
static long word;

static int last(void) { return size - 1; }

static void compute(void) {
  for (;;) pause();
}

static void say_under_way(void) {
  printf("rank %d: under way\n", rank);
  fflush(stdout);
}

/* What all ranks do first. */
static int is_together(const char* what) {
  return !strcmp(what, "file_all") || !strcmp(what, "file_iall") || !strcmp(what, "file_before") ||
         !strcmp(what, "file_begin");
}

static void prepare(const char* what) {
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &rows));
  OK(MPI_Comm_set_name(rows, "rows"));
  OK(MPI_Win_create(&word, sizeof(word), sizeof(word), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  if (!strcmp(what, "lock") && rank == last()) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  if (is_together(what)) {
    char name[] = "/tmp/stands-XXXXXX";
    if (rank == 0) close(mkstemp(name));
    OK(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &together_file));
    if (rank == 0) unlink(name);
  }
  /* Collectives meet at a board from the fourth on. */
  for (int i = 0; i < 5; ++i) OK(MPI_Barrier(rows));
}

static MPI_Group group_of(int of) {
  MPI_Group all, one;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
  OK(MPI_Group_incl(all, 1, &of, &one));
  OK(MPI_Group_free(&all));
  return one;
}

static void messages(const char* what) {
  MPI_Request requests[2];
  int index;
  if (!strcmp(what, "recv")) OK(MPI_Recv(data, 64, MPI_CHAR, last(), 7, rows, MPI_STATUS_IGNORE));
  if (!strcmp(what, "any")) {
    OK(MPI_Recv(data, 64, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, rows, MPI_STATUS_IGNORE));
  }
  if (!strcmp(what, "ssend")) OK(MPI_Ssend(data, 64, MPI_CHAR, last(), 7, rows));
  if (!strcmp(what, "send")) OK(MPI_Send(data, sizeof(data), MPI_CHAR, last(), 7, rows));
  if (!strcmp(what, "sendrecv")) {
    OK(MPI_Sendrecv(data, 8, MPI_CHAR, last(), 7, more, 64, MPI_CHAR, last(), 9, rows,
                    MPI_STATUS_IGNORE));
  }
  if (!strcmp(what, "probe")) OK(MPI_Probe(last(), 7, rows, MPI_STATUS_IGNORE));
  if (!strcmp(what, "mprobe")) {
    MPI_Message message;
    OK(MPI_Mprobe(last(), 7, rows, &message, MPI_STATUS_IGNORE));
  }
  if (!strcmp(what, "wait")) {
    OK(MPI_Irecv(data, 64, MPI_CHAR, last(), 7, rows, requests));
    OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
  }
  if (!strcmp(what, "waitall")) {
    OK(MPI_Isend(data, 8, MPI_CHAR, rank, 1, rows, requests));
    OK(MPI_Recv(more, 8, MPI_CHAR, rank, 1, rows, MPI_STATUS_IGNORE));
    OK(MPI_Irecv(data, 64, MPI_CHAR, last(), 7, rows, requests + 1));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  }
  if (!strcmp(what, "waitany")) {
    OK(MPI_Irecv(data, 64, MPI_CHAR, last(), 7, rows, requests));
    OK(MPI_Irecv(more, 64, MPI_CHAR, last(), 8, rows, requests + 1));
    OK(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
  }
  if (!strcmp(what, "persistent")) {
    OK(MPI_Recv_init(data, 64, MPI_CHAR, last(), 7, rows, requests));
    OK(MPI_Start(requests));
    OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
  }
  if (!strcmp(what, "partitioned")) {
    OK(MPI_Precv_init(data, 2, 32, MPI_CHAR, last(), 7, rows, MPI_INFO_NULL, requests));
    OK(MPI_Start(requests));
    OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
  }
}

static jmp_buf back;

static void jump(MPI_Comm* comm, int* error, ...) {
  (void)comm;
  CHECK(*error == MPI_ERR_TRUNCATE);
  longjmp(back, 1);
}

/* A message that is too long ends the first receive. */
static void leave_a_call(const char* fifo) {
  MPI_Errhandler handler;
  if (rank == last()) {
    const int end = open(fifo, O_RDONLY); /* waits for the writer */
    CHECK(end >= 0);
    for (int to = 0; to < last(); ++to) OK(MPI_Send(data, 65, MPI_CHAR, to, 6, rows));
    return;
  }
  OK(MPI_Comm_create_errhandler(jump, &handler));
  OK(MPI_Comm_set_errhandler(rows, handler));
  if (setjmp(back) == 0) {
    MPI_Recv(data, 64, MPI_CHAR, last(), 6, rows, MPI_STATUS_IGNORE);
    CHECK(0);
  }
  OK(MPI_Recv(data, 64, MPI_CHAR, last(), 7, rows, MPI_STATUS_IGNORE));
}

static void together(const char* what) {
  MPI_Comm made;
  MPI_Request request;
  if (!strcmp(what, "barrier")) OK(MPI_Barrier(rows));
  if (!strcmp(what, "bcast")) OK(MPI_Bcast(data, 100, MPI_CHAR, last(), rows));
  if (!strcmp(what, "allreduce")) OK(MPI_Allreduce(data, more, 25, MPI_INT, MPI_SUM, rows));
  if (!strcmp(what, "alltoall")) OK(MPI_Alltoall(data, 8, MPI_CHAR, more, 8, MPI_CHAR, rows));
  if (!strcmp(what, "iallreduce")) {
    OK(MPI_Iallreduce(data, more, 25, MPI_INT, MPI_SUM, rows, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  if (!strcmp(what, "split")) OK(MPI_Comm_split(rows, 0, 0, &made));
  if (!strcmp(what, "moves")) {
    for (;;) {
      OK(MPI_Allreduce(data, more, sizeof(data) / sizeof(int), MPI_INT, MPI_SUM, rows));
    }
  }
  if (!strcmp(what, "finalize")) {
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&rows));
    OK(MPI_Finalize());
  }
}

static void windows(const char* what) {
  if (!strcmp(what, "fence")) OK(MPI_Win_fence(0, win));
  if (!strcmp(what, "lock")) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  if (!strcmp(what, "start")) OK(MPI_Win_start(group_of(last()), 0, win));
  if (!strcmp(what, "target")) {
    OK(MPI_Win_post(group_of(last()), 0, win));
    OK(MPI_Win_wait(win));
  }
}

static void files(const char* what) {
  char name[] = "/tmp/stands-XXXXXX";
  MPI_File file;
  MPI_Request request;
  if (!strcmp(what, "file_lock")) { /* others have locked the bytes that atomic mode wants to */
    const int fd = mkstemp(name);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK(fd >= 0 && fcntl(fd, F_OFD_SETLK, &all) == 0);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK(unlink(name) == 0);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_write_at(file, 4096, data, 64, MPI_CHAR, MPI_STATUS_IGNORE));
  }
  if (!strcmp(what, "file_open") || !strcmp(what, "file_wait")) { /* a pipe without a writer */
    const int taken = mkstemp(name);
    CHECK(taken >= 0 && close(taken) == 0 && unlink(name) == 0 && mkfifo(name, 0600) == 0);
    const int fd = open(name, !strcmp(what, "file_wait") ? O_RDWR : O_PATH);
    CHECK(fd >= 0 && unlink(name) == 0);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL,
                     &file));
    OK(MPI_File_iread_shared(file, data, 8, MPI_CHAR, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  const MPI_Offset own = 100 * rank;
  if (!strcmp(what, "file_iall") || !strcmp(what, "file_before")) {
    OK(MPI_File_iwrite_at_all(together_file, own, data, 100, MPI_CHAR, &request));
  }
  if (!strcmp(what, "file_iall")) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  if (!strcmp(what, "file_all") || !strcmp(what, "file_before")) {
    OK(MPI_File_write_at_all(together_file, own, data, 100, MPI_CHAR, MPI_STATUS_IGNORE));
  }
  if (!strcmp(what, "file_begin")) {
    OK(MPI_File_write_at_all_begin(together_file, own, data, 100, MPI_CHAR));
  }
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  prepare(what);
  say_under_way();
  if (!strcmp(what, "jump")) leave_a_call(argv[2]);
  if (rank == last() && strcmp(what, "moves")) {
    if (!strcmp(what, "finalize")) OK(MPI_Win_free(&win));
    compute();
  }
  messages(what);
  windows(what);
  together(what);
  files(what);
  fprintf(stderr, "rank %d: %s did not wait\n", rank, what);
  return 1;
}
