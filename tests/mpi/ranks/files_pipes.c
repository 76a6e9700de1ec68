/* Pipes and terminals as files: a transfer that waits for its other end holds nothing else up, a
 * write whose reader has gone is an error by name on a process that lives on, and ranks of which
 * some have a pipe where others have a plain file go on together. Argument: a folder.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <termios.h>

#include "tests/mpi/ranks/files.h"

enum { kPipes = 3, kPart = 100, kBytes = 1 << 18 /* more than a pipe takes at once */ };

static unsigned char data[kBytes], back[kBytes];

/* A name that this rank has alone. The last four results stay. */
static const char* own(const char* name, int number) {
  static char names[4][100];
  static int last;
  last = (last + 1) % 4;
  snprintf(names[last], sizeof(names[last]), "%s.%d.%d", name, number, rank);
  return names[last];
}

/* Makes a pipe, and returns a descriptor of both its ends: with that no open waits for the other
 * end. */
static int make_pipe(const char* name) {
  CHECK(mkfifo(in_folder(name), 0600) == 0);
  const int both = open(in_folder(name), O_RDWR);
  CHECK(both >= 0);
  return both;
}

static void remove_pipe(const char* name, int both) {
  CHECK(close(both) == 0 && unlink(in_folder(name)) == 0);
}

static void write_to(int end, const void* bytes, size_t size_bytes) {
  CHECK(write(end, bytes, size_bytes) == (ssize_t)size_bytes);
}

/* Fails, instead of waiting for ever, if something holds the requests up. */
static void await(int count, MPI_Request* requests, MPI_Status* statuses) {
  const double begin = MPI_Wtime();
  for (int flag = 0; !flag;) {
    OK(MPI_Testall(count, requests, &flag, statuses));
    CHECK(flag || MPI_Wtime() - begin < 30);
  }
}

static int is_done(MPI_Request request) {
  int flag = -1;
  OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
  return flag;
}

/* Requests of a plain file, which end while those of streams wait. */
static void expect_plain_requests_end(MPI_File plain, unsigned seed) {
  static unsigned char plain_data[kBytes], plain_back[kBytes];
  MPI_Request request;
  MPI_Status status;
  fill(plain_data, kBytes, seed);
  OK(MPI_File_iwrite_at(plain, 0, plain_data, kBytes, MPI_BYTE, &request));
  await(1, &request, &status);
  OK(MPI_File_iread_at(plain, 0, plain_back, kBytes, MPI_BYTE, &request));
  await(1, &request, &status);
  CHECK(count_of(&status, MPI_BYTE) == kBytes && is_filled(plain_back, kBytes, seed));
}

/* ---- Transfers that wait for their other end ---------------------------------------------------
 */

static void reads_that_wait(MPI_File plain) {
  step = "reads of pipes that wait";
  static unsigned char parts[kPipes + 1][kPart];
  unsigned char sent[2 * kPart];
  int ends[kPipes];
  MPI_File pipes[kPipes];
  MPI_Request requests[kPipes + 1];
  MPI_Status status;
  for (int i = 0; i < kPipes; ++i) {
    ends[i] = make_pipe(own("read", i));
    pipes[i] = open_in(MPI_COMM_SELF, own("read", i), MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
    OK(MPI_File_iread_shared(pipes[i], parts[i], kPart, MPI_BYTE, &requests[i]));
  }
  OK(MPI_File_iread_shared(pipes[0], parts[kPipes], kPart, MPI_BYTE, &requests[kPipes]));
  expect_plain_requests_end(plain, 1);
  for (int i = 0; i <= kPipes; ++i) CHECK(!is_done(requests[i]));
  for (int i = kPipes - 1; i > 0; --i) { /* the first one's turn comes last */
    fill(sent, kPart, (unsigned)i);
    write_to(ends[i], sent, kPart);
    await(1, &requests[i], &status);
    CHECK(count_of(&status, MPI_BYTE) == kPart && is_filled(parts[i], kPart, (unsigned)i));
    CHECK(!is_done(requests[0]));
  }
  step = "two reads of one pipe, in their order";
  fill(sent, kPart, 7);
  fill(sent + kPart, kPart, 8);
  write_to(ends[0], sent, sizeof(sent));
  await(1, &requests[kPipes], &status);
  await(1, &requests[0], &status);
  CHECK(is_filled(parts[0], kPart, 7) && is_filled(parts[kPipes], kPart, 8));
  for (int i = 0; i < kPipes; ++i) {
    OK(MPI_File_close(&pipes[i]));
    remove_pipe(own("read", i), ends[i]);
  }
}

static void writes_that_wait(MPI_File plain) {
  step = "a write to a pipe that nobody reads yet";
  const int end = make_pipe(own("write", 0));
  MPI_File pipe = open_in(MPI_COMM_SELF, own("write", 0), MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  MPI_Request request;
  MPI_Status status;
  fill(data, kBytes, 3);
  OK(MPI_File_iwrite_shared(pipe, data, kBytes, MPI_BYTE, &request));
  expect_plain_requests_end(plain, 2);
  CHECK(!is_done(request));
  for (size_t got = 0; got < kBytes;) {
    const ssize_t now = read(end, back + got, kBytes - got);
    CHECK(now > 0);
    got += (size_t)now;
  }
  await(1, &request, &status);
  CHECK(count_of(&status, MPI_BYTE) == kBytes && is_filled(back, kBytes, 3));
  OK(MPI_File_close(&pipe));
  remove_pipe(own("write", 0), end);
}

/* Who waits for an answer can still ask. */
static void terminal(void) {
  step = "a terminal, read before it is written to";
  const int other = posix_openpt(O_RDWR | O_NOCTTY);
  CHECK(other >= 0 && grantpt(other) == 0 && unlockpt(other) == 0);
  struct termios raw;
  CHECK(tcgetattr(other, &raw) == 0);
  cfmakeraw(&raw);
  CHECK(tcsetattr(other, TCSANOW, &raw) == 0);
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_SELF, ptsname(other), MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  char answer[6] = "", question[4] = "";
  MPI_Request requests[2];
  OK(MPI_File_iread(file, answer, 5, MPI_CHAR, &requests[0]));
  OK(MPI_File_iwrite(file, "ask", 3, MPI_CHAR, &requests[1]));
  await(1, &requests[1], MPI_STATUSES_IGNORE);
  CHECK(!is_done(requests[0]));
  CHECK(read(other, question, 3) == 3 && strcmp(question, "ask") == 0);
  write_to(other, "reply", 5);
  await(1, &requests[0], MPI_STATUSES_IGNORE);
  CHECK(strcmp(answer, "reply") == 0);
  OK(MPI_File_close(&file));
  CHECK(close(other) == 0);
}

/* ---- Writes whose reader has gone --------------------------------------------------------------
 */

static volatile sig_atomic_t signals;
static void count_signal(int number) { signals += number == SIGPIPE; }

/* Every form of writes fails by name. */
static void expect_broken(MPI_File pipe, int value) {
  MPI_Request request;
  MPI_Status status;
  expect_error(MPI_File_write_shared(pipe, &value, 1, MPI_INT, &status), MPI_ERR_IO, "Broken pipe");
  CHECK(count_of(&status, MPI_INT) == 0);
  OK(MPI_File_iwrite_shared(pipe, &value, 1, MPI_INT, &request));
  expect_error(MPI_Wait(&request, &status), MPI_ERR_IO, "Broken pipe");
  expect_error(MPI_File_write_ordered(pipe, &value, 1, MPI_INT, &status), MPI_ERR_IO, "");
  OK(MPI_File_write_ordered_begin(pipe, &value, 1, MPI_INT));
  expect_error(MPI_File_write_ordered_end(pipe, &value, &status), MPI_ERR_IO, "");
}

static int has_pending(void) {
  sigset_t pending;
  CHECK(sigpending(&pending) == 0);
  return sigismember(&pending, SIGPIPE);
}

/* `disposition` of SIGPIPE, which is blocked, and pending, if `blocked`: all of that stays. */
static void broken(const char* how, void (*disposition)(int), int blocked) {
  static char name[100];
  snprintf(name, sizeof(name), "a pipe whose reader has gone; SIGPIPE is %s", how);
  step = name;
  sigset_t pipe_signal, mask, usual;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  CHECK(signal(SIGPIPE, disposition) != SIG_ERR);
  CHECK(sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &pipe_signal, &usual) == 0);
  if (blocked) CHECK(raise(SIGPIPE) == 0);

  if (rank == 0) CHECK(mkfifo(in_folder("broken"), 0600) == 0);
  meet();
  int reader = open(in_folder("broken"), O_RDONLY | O_NONBLOCK);
  MPI_File pipe = open_in(MPI_COMM_WORLD, "broken", MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  CHECK(reader >= 0 && close(reader) == 0);
  meet();
  expect_broken(pipe, rank);
  step = "the same, with data that are converted";
  OK(MPI_File_set_view(pipe, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "external32",
                       MPI_INFO_NULL));
  expect_broken(pipe, rank);
  OK(MPI_File_close(&pipe));
  meet();
  if (rank == 0) CHECK(unlink(in_folder("broken")) == 0);

  struct sigaction now;
  CHECK(sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == disposition);
  CHECK(sigprocmask(SIG_SETMASK, NULL, &mask) == 0);
  CHECK(sigismember(&mask, SIGPIPE) == blocked);
  CHECK(has_pending() == blocked && signals == 0);
  CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR && sigprocmask(SIG_SETMASK, &usual, NULL) == 0);
  CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR && !has_pending());
}

/* ---- A pipe on some ranks alone ----------------------------------------------------------------
 */

/* The name is rank 0's own, as /dev/stdin may be a pipe on one rank. */
static void mixed(void) {
  step = "ordered writes where one rank has a pipe";
  int end = -1;
  if (rank == 0) {
    end = make_pipe("mixed");
    make_file("plain", 0, 0);
  }
  meet();
  MPI_File file =
      open_in(MPI_COMM_WORLD, rank == 0 ? "mixed" : "plain", MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  for (int round = 0; round < 4; ++round) {
    const int value = 100 * round + rank;
    if (round % 2 == 0) {
      OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_write_ordered_begin(file, &value, 1, MPI_INT));
      OK(MPI_File_write_ordered_end(file, &value, MPI_STATUS_IGNORE));
    }
  }
  OK(MPI_File_close(&file));
  meet();
  if (rank == 0) {
    for (int round = 0; round < 4; ++round) {
      int value = -1;
      CHECK(read(end, &value, sizeof(value)) == sizeof(value) && value == 100 * round);
      for (int other = 1; other < size; ++other) {
        const off_t at = (off_t)sizeof(int) * (round * size + other);
        CHECK(read_raw("plain", at, &value, sizeof(value)) == sizeof(value));
        CHECK(value == 100 * round + other);
      }
    }
    remove_pipe("mixed", end);
    CHECK(unlink(in_folder("plain")) == 0);
  }
  meet();
}

int main(int argc, char** argv) {
  begin_files(argc, argv);
  MPI_File plain = open_in(MPI_COMM_SELF, own("plain", 0),
                           MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
  reads_that_wait(plain);
  writes_that_wait(plain);
  terminal();
  OK(MPI_File_close(&plain));
  broken("not handled", SIG_DFL, 0);
  broken("handled", count_signal, 0);
  broken("ignored", SIG_IGN, 0);
  broken("blocked", SIG_DFL, 1);
  mixed();
  return end_well("all pipes were right");
}
