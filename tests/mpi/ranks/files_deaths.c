/* A collective read or write of which a test kills the last rank, in the phase that the second
 * argument names; the first is a file. It also dies with a lock ("lock"), and as the one that has
 * the shared pointer ("owner"). A "+" behind the phase makes it a call that does not block, with
 * another one behind it, which fails, too. The others get an error, print "rank R: error CLASS at
 * NANOSECONDS: TEXT", and end with code 3. The bytes of the file are right then, each of them: what
 * was there, or what a rank has written.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

enum { kPiece = 64, kPieces = 16384, kBytes = kPiece * kPieces, kBefore = 0xA5 };

static const char* phase;
static int victim;
static int in_background;

static int is_phase(const char* name) {
  return strncmp(phase, name, strlen(phase) - (size_t)in_background) == 0;
}

static void be_under_way(void) {
  char line[40];
  const int length = snprintf(line, sizeof(line), "rank %d: under way\n", rank);
  CHECK(write(STDOUT_FILENO, line, (size_t)length) == length);
}

static void await_death(void) {
  be_under_way();
  for (;;) pause();
}

/* The library's system calls: the victim stays in its first one. */
static int holds_calls;

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* from, size_t bytes,
                                                      off_t at) {
  if (holds_calls) await_death();
  return syscall(SYS_pwrite64, fd, from, bytes, at);
}

__attribute__((visibility("default"))) ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  if (holds_calls) await_death();
  return syscall(SYS_pread64, fd, to, bytes, at);
}

static void on_fault(int number) {
  (void)number;
  await_death();
}

static unsigned char value_of(int owner) { return (unsigned char)(1 + owner); }

/* The victim's data: in the phases "exchange" and "fetch" it stays where it copies their second
 * half. */
static unsigned char* make_data(void) {
  unsigned char* const data =
      mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(data != MAP_FAILED);
  memset(data, value_of(rank), kBytes);
  if ((is_phase("exchange") || is_phase("fetch")) && rank == victim) {
    CHECK(mprotect(data + kBytes / 2, kBytes / 2, PROT_NONE) == 0);
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
  }
  return data;
}

static MPI_File make_file(const char* path) {
  if (rank == 0) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    unsigned char line[kPiece];
    memset(line, kBefore, sizeof(line));
    for (int i = 0; i < kPieces * size; ++i) {
      CHECK(write(fd, line, sizeof(line)) == (ssize_t)sizeof(line));
    }
    close(fd);
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  char nodes[20];
  snprintf(nodes, sizeof(nodes), "%d", size); /* so that the victim accesses the file, too */
  MPI_Info info;
  MPI_File file;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "cb_nodes", nodes));
  /* Nodes of one machine read for each other only where they are told to. */
  if (is_phase("fetch") || is_phase("answer")) OK(MPI_Info_set(info, "romio_cb_read", "enable"));
  /* In the phase "owner" the victim is the file's rank 0, which has the shared pointer. */
  MPI_Comm comm;
  OK(MPI_Comm_split(MPI_COMM_WORLD, 0, is_phase("owner") ? size - rank : rank, &comm));
  OK(MPI_File_open(comm, path, MPI_MODE_RDWR, info, &file));
  OK(MPI_Comm_free(&comm));
  OK(MPI_Info_free(&info));
  MPI_Datatype filetype;
  OK(MPI_Type_vector(kPieces, kPiece, kPiece * size, MPI_BYTE, &filetype));
  OK(MPI_Type_commit(&filetype));
  OK(MPI_File_set_view(file, (MPI_Offset)rank * kPiece, MPI_BYTE, filetype, "native",
                       MPI_INFO_NULL));
  OK(MPI_Type_free(&filetype));
  return file;
}

/* Waits until somebody has locked bytes of the file. */
static void await_lock(const char* path) {
  const int fd = open(path, O_RDWR);
  struct flock range;
  do {
    range = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK(fd >= 0 && fcntl(fd, F_OFD_GETLK, &range) == 0);
  } while (range.l_type == F_UNLCK);
  close(fd);
}

/* The victim holds the lock of an access in atomic mode: with its end the others have it. */
static void meet_at_lock(MPI_File file, const unsigned char* data, const char* path) {
  if (rank != victim) await_lock(path);
  if (rank != victim) be_under_way();
  OK(MPI_File_write_at(file, 0, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
}

/* Uses the shared pointer until that fails; writes nothing. */
static int use_shared(MPI_File file) {
  int error = MPI_SUCCESS;
  while (error == MPI_SUCCESS) {
    error = MPI_File_write_shared(file, NULL, 0, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  return error;
}

static int access_all(MPI_File file, int is_write, unsigned char* data) {
  if (!in_background) {
    return is_write ? MPI_File_write_at_all(file, 0, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE)
                    : MPI_File_read_at_all(file, 0, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  MPI_Request requests[2];
  if (is_write) {
    OK(MPI_File_iwrite_at_all(file, 0, data, kBytes, MPI_BYTE, &requests[0]));
  } else {
    OK(MPI_File_iread_at_all(file, 0, data, kBytes, MPI_BYTE, &requests[0]));
  }
  OK(MPI_File_iwrite_at_all(file, 0, data, kBytes, MPI_BYTE, &requests[1]));
  const int error = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  CHECK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE) != MPI_SUCCESS);
  return error;
}

static void check_file(const char* path) {
  const int fd = open(path, O_RDONLY);
  unsigned char piece[kPiece];
  for (int i = 0; i < kPieces * size; ++i) {
    CHECK(read(fd, piece, sizeof(piece)) == (ssize_t)sizeof(piece));
    for (int k = 0; k < kPiece; ++k) {
      CHECK(piece[k] == kBefore || piece[k] == value_of(i % size));
    }
  }
  close(fd);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(argc == 3);
  alarm(60);
  const char* const path = argv[1];
  phase = argv[2];
  in_background = phase[strlen(phase) - 1] == '+';
  victim = size - 1;
  MPI_File file = make_file(path);
  /* The ranks meet in shared memory from a few collective calls on; but for the phase "first". */
  for (int i = 0; i < 8 && !is_phase("first"); ++i) OK(MPI_File_sync(file));
  if (is_phase("lock")) OK(MPI_File_set_atomicity(file, 1));
  unsigned char* const data = make_data();
  OK(MPI_Barrier(MPI_COMM_WORLD));
  const int is_idle = is_phase("before") || is_phase("first") || is_phase("owner");
  if (rank == victim && is_idle) await_death();
  holds_calls = rank == victim &&
                (is_phase("write") || is_phase("read") || is_phase("answer") || is_phase("lock"));
  if (rank != victim && !is_phase("lock")) be_under_way();
  if (is_phase("lock")) meet_at_lock(file, data, path);
  const int is_read = is_phase("read") || is_phase("answer") || is_phase("fetch");
  const int error = is_phase("owner") ? use_shared(file) : access_all(file, !is_read, data);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  CHECK(error != MPI_SUCCESS);
  char text[MPI_MAX_ERROR_STRING];
  int length, error_class;
  OK(MPI_Error_string(error, text, &length));
  OK(MPI_Error_class(error, &error_class));
  check_file(path);
  printf("rank %d: error %d at %lld: %s\n", rank, error_class,
         (long long)now.tv_sec * 1000000000 + now.tv_nsec, text);
  fflush(stdout);
  _exit(3);
}
