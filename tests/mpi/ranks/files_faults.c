/* Files whose system calls are interrupted, move few bytes or fail, and that somebody cuts short:
 * an error by name on the ranks that the standard says, and no byte of a third kind. Argument: a
 * folder.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/mpi/ranks/files.h"

enum { kPiece = 48, kPieces = 700, kBytes = kPiece * kPieces, kBefore = 0xA5 };

/* ---- The system calls of the library -----------------------------------------------------------
 */

enum call { kNoCall, kPread, kPwrite, kFsync, kFtruncate, kFallocate, kClose, kOpen, kCalls };

static int interrupts;      /* every second call ends with EINTR */
static size_t most_at_once; /* bytes that a call moves; 0: all */
static enum call
    failing; /* calls of this kind fail from the call `fails_from` on, counted from 1 */
static int fails_with, fails_from;
static int counts[kCalls];
static void (*before_pread)(int number); /* called before each one, with its number */
static int is_armed;                     /* nothing of this is done otherwise */

/* 0, or the error with which the call is to fail. */
static int fate_of(enum call call) {
  static __thread int turns[kCalls];
  if (!is_armed) return 0;
  if (interrupts && ++turns[call] % 2 == 1) return EINTR;
  const int number = __sync_add_and_fetch(&counts[call], 1);
  return call == failing && number >= fails_from ? fails_with : 0;
}

static size_t at_once(size_t bytes) {
  return is_armed && most_at_once != 0 && bytes > most_at_once ? most_at_once : bytes;
}

#define OWN __attribute__((visibility("default")))
#define FAIL_AS(call)               \
  do {                              \
    const int fate = fate_of(call); \
    if (fate != 0) errno = fate;    \
    if (fate != 0) return -1;       \
  } while (0)

OWN ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  FAIL_AS(kPread);
  if (is_armed && before_pread != NULL) before_pread(counts[kPread]);
  return syscall(SYS_pread64, fd, to, at_once(bytes), at);
}

OWN ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) {
  FAIL_AS(kPwrite);
  return syscall(SYS_pwrite64, fd, from, at_once(bytes), at);
}

OWN int fsync(int fd) {
  FAIL_AS(kFsync);
  return (int)syscall(SYS_fsync, fd);
}

/* The library makes such calls for its own memory, too: only files in the folder are meant. */
static int is_of_folder(int fd) {
  char link[64], name[6000];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, name, sizeof(name) - 1);
  return folder != NULL && length > 0 && strncmp(name, folder, strlen(folder)) == 0;
}

OWN int ftruncate(int fd, off_t bytes) {
  if (is_armed && is_of_folder(fd)) FAIL_AS(kFtruncate);
  return (int)syscall(SYS_ftruncate, fd, bytes);
}

OWN int posix_fallocate(int fd, off_t from, off_t bytes) {
  const int fate = is_of_folder(fd) ? fate_of(kFallocate) : 0;
  if (fate != 0) return fate;
  return syscall(SYS_fallocate, fd, 0, from, bytes) == 0 ? 0 : errno;
}

OWN int close(int fd) {
  if (is_armed && failing == kClose && is_of_folder(fd)) {
    syscall(SYS_close, fd);
    FAIL_AS(kClose);
    return 0;
  }
  return (int)syscall(SYS_close, fd);
}

OWN int open(const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (folder != NULL && strncmp(name, folder, strlen(folder)) == 0) FAIL_AS(kOpen);
  return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

static void arm(enum call call, int error, int from) {
  memset(counts, 0, sizeof(counts));
  failing = call;
  fails_with = error;
  fails_from = from;
  is_armed = 1;
}

static void disarm(void) {
  is_armed = 0;
  failing = kNoCall;
  interrupts = 0;
  most_at_once = 0;
  before_pread = NULL;
}

/* ---- Files of pieces ---------------------------------------------------------------------------
 */

static unsigned char data[kBytes], back[kBytes];

static unsigned char value_of(int owner, int round) {
  return (unsigned char)(1 + owner + 16 * round);
}

/* The ranks' pieces lie between each other; each rank writes its own value. */
static MPI_File open_pieces(const char* name, const char* buffering) {
  const MPI_Info info = info_with("romio_cb_write", buffering);
  MPI_Info hints = info;
  OK(MPI_Info_set(hints, "romio_cb_read", buffering));
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, in_folder(name),
                   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, hints, &file));
  OK(MPI_Info_free(&hints));
  if (rank == 0) {
    const size_t all = (size_t)kBytes * (size_t)size;
    unsigned char* const before_all = malloc(all);
    memset(before_all, kBefore, all);
    OK(MPI_File_write_at(file, 0, before_all, (int)all, MPI_BYTE, MPI_STATUS_IGNORE));
    free(before_all);
  }
  MPI_Datatype type = vector_of(1, kPiece, kPiece, MPI_BYTE, (MPI_Aint)kPiece * size);
  OK(MPI_File_set_view(file, (MPI_Offset)kPiece * rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
  OK(MPI_Type_free(&type));
  return file;
}

/* Every byte is what was there, if it may be, or what the rank that owns it has written. */
static void expect_pieces(const char* name, int round, int may_be_old) {
  meet();
  if (rank == 0) {
    const size_t all = (size_t)kBytes * (size_t)size;
    unsigned char* const bytes = malloc(all + 1);
    CHECK(read_raw(name, 0, bytes, all + 1) == (ssize_t)all);
    for (size_t i = 0; i < all; ++i) {
      const unsigned char right = value_of((int)(i / kPiece) % size, round);
      CHECK(bytes[i] == right || (may_be_old && bytes[i] == kBefore));
    }
    free(bytes);
  }
  meet();
}

/* Every form of writes and reads, none of which moves a pointer that another one needs. */
enum { kForms = 9 };
static const char* const kNames[kForms] = {
    "_at", "_at_all", "", "_all", "i_at", "i_at_all", "_at_all_begin", "_all_begin", "i"};

static int is_collective(int form) { return form == 1 || form == 3 || (form >= 5 && form <= 7); }

/* Returns the error of the call, or of its wait or end. */
static int write_by(int form, MPI_File file, MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  int error = MPI_SUCCESS;
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  switch (form) {
    case 0:
      return MPI_File_write_at(file, 0, data, kBytes, MPI_BYTE, status);
    case 1:
      return MPI_File_write_at_all(file, 0, data, kBytes, MPI_BYTE, status);
    case 2:
      return MPI_File_write(file, data, kBytes, MPI_BYTE, status);
    case 3:
      return MPI_File_write_all(file, data, kBytes, MPI_BYTE, status);
    case 4:
      error = MPI_File_iwrite_at(file, 0, data, kBytes, MPI_BYTE, &request);
      break;
    case 5:
      error = MPI_File_iwrite_at_all(file, 0, data, kBytes, MPI_BYTE, &request);
      break;
    case 6:
      OK(MPI_File_write_at_all_begin(file, 0, data, kBytes, MPI_BYTE));
      return MPI_File_write_at_all_end(file, data, status);
    case 7:
      OK(MPI_File_write_all_begin(file, data, kBytes, MPI_BYTE));
      return MPI_File_write_all_end(file, data, status);
    default:
      error = MPI_File_iwrite(file, data, kBytes, MPI_BYTE, &request);
  }
  OK(error);
  return MPI_Wait(&request, status);
}

static int read_by(int form, MPI_File file, MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  int error = MPI_SUCCESS;
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  memset(back, 0, sizeof(back));
  switch (form) {
    case 0:
      return MPI_File_read_at(file, 0, back, kBytes, MPI_BYTE, status);
    case 1:
      return MPI_File_read_at_all(file, 0, back, kBytes, MPI_BYTE, status);
    case 2:
      return MPI_File_read(file, back, kBytes, MPI_BYTE, status);
    case 3:
      return MPI_File_read_all(file, back, kBytes, MPI_BYTE, status);
    case 4:
      error = MPI_File_iread_at(file, 0, back, kBytes, MPI_BYTE, &request);
      break;
    case 5:
      error = MPI_File_iread_at_all(file, 0, back, kBytes, MPI_BYTE, &request);
      break;
    case 6:
      OK(MPI_File_read_at_all_begin(file, 0, back, kBytes, MPI_BYTE));
      return MPI_File_read_at_all_end(file, back, status);
    case 7:
      OK(MPI_File_read_all_begin(file, back, kBytes, MPI_BYTE));
      return MPI_File_read_all_end(file, back, status);
    default:
      error = MPI_File_iread(file, back, kBytes, MPI_BYTE, &request);
  }
  OK(error);
  return MPI_Wait(&request, status);
}

static void expect_back(int round) {
  for (int i = 0; i < kBytes; ++i) CHECK(back[i] == value_of(rank, round));
}

/* ---- Calls that are interrupted, and that move a part ------------------------------------------
 */

static void interrupted(const char* buffering) {
  static char name[100];
  step = "calls that are interrupted, and move few bytes";
  MPI_File file = open_pieces("interrupted", buffering);
  MPI_Status status;
  for (int form = 0; form < kForms; ++form) {
    snprintf(name, sizeof(name), "interrupted calls: %s, buffering: %s", kNames[form], buffering);
    step = name;
    memset(data, value_of(rank, form % 8), kBytes);
    arm(kNoCall, 0, 0);
    interrupts = 1;
    most_at_once = 7 + 100 * (size_t)(form % 3);
    OK(write_by(form, file, &status));
    CHECK(count_of(&status, MPI_BYTE) == kBytes);
    disarm();
    expect_pieces("interrupted", form % 8, 0);
    arm(kNoCall, 0, 0);
    interrupts = 1;
    most_at_once = 7 + 100 * (size_t)(form % 3);
    OK(read_by(form, file, &status));
    CHECK(count_of(&status, MPI_BYTE) == kBytes);
    disarm();
    expect_back(form % 8);
    meet();
  }
  step = "other calls that are interrupted";
  arm(kNoCall, 0, 0);
  interrupts = 1;
  OK(MPI_File_sync(file));
  OK(MPI_File_preallocate(file, 3 * (MPI_Offset)kBytes * size));
  CHECK(size_of_file(file) == 3 * (MPI_Offset)kBytes * size);
  OK(MPI_File_set_size(file, 10));
  CHECK(size_of_file(file) == 10);
  OK(MPI_File_close(&file));
  file = open_new("interrupted"); /* open, too */
  OK(MPI_File_close(&file));
  disarm();
}

/* ---- Calls that fail ---------------------------------------------------------------------------
 */

struct refusal {
  int error, error_class;
};
static const struct refusal kRefusals[] = {{ENOSPC, MPI_ERR_NO_SPACE},
                                           {EDQUOT, MPI_ERR_QUOTA},
                                           {EIO, MPI_ERR_IO},
                                           {EFBIG, MPI_ERR_IO},
                                           {EROFS, MPI_ERR_READ_ONLY}};
enum { kRefusalCount = sizeof(kRefusals) / sizeof(kRefusals[0]) };

/* The last rank's system calls fail, or all ranks' do, as where all are out of room. */
static void refused(const char* buffering) {
  static char name[100];
  step = "calls that fail";
  MPI_File file = open_pieces("refused", buffering);
  memset(data, value_of(rank, 1), kBytes);
  for (int trial = 0; trial < kForms * kRefusalCount; ++trial) {
    const int form = trial % kForms;
    const struct refusal* const refusal = &kRefusals[trial / kForms];
    const int all_fail = trial % 2;
    snprintf(name, sizeof(name), "calls that fail with %d: %s, buffering: %s", refusal->error,
             kNames[form], buffering);
    step = name;
    MPI_Status status;
    for (int is_write = 0; is_write < 2; ++is_write) {
      const int from = all_fail || form % 3 != 0 ? 1 : 2;
      meet();
      if (all_fail || rank == size - 1) {
        arm(is_write ? kPwrite : kPread, refusal->error, from);
        most_at_once = 1000; /* so that there are several calls */
      }
      memset(&status, 0, sizeof(status));
      const int error = is_write ? write_by(form, file, &status) : read_by(form, file, &status);
      const int own = counts[is_write ? kPwrite : kPread] >= from && is_armed;
      disarm();
      int somebody = own;
      OK(MPI_Allreduce(MPI_IN_PLACE, &somebody, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
      if (own || (is_collective(form) && somebody)) {
        expect_error(error, refusal->error_class, "");
      } else {
        OK(error);
        CHECK(count_of(&status, MPI_BYTE) == kBytes);
      }
      if (own && !is_collective(form)) CHECK(count_of(&status, MPI_BYTE) < kBytes);
      CHECK(somebody || is_collective(form)); /* a buffered access may need few ranks */
    }
  }
  expect_pieces("refused", 1, 1);
  step = "the call after those that have failed";
  OK(MPI_File_write_at_all(file, 0, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  expect_pieces("refused", 1, 0);
  OK(MPI_File_close(&file));
}

/* The shared pointer moves by what was asked for; what was not written stays as it was. */
static void shared_refused(void) {
  step = "calls at the shared pointer that fail";
  MPI_File file = open_new("shared_refused");
  MPI_Status status;
  MPI_Request request;
  memset(data, 7, 100);
  if (rank == size - 1) arm(kPwrite, EDQUOT, 1);
  int error = MPI_File_write_shared(file, data, 100, MPI_BYTE, &status);
  if (rank == size - 1) expect_error(error, MPI_ERR_QUOTA, "shared_refused");
  if (rank != size - 1) OK(error);
  OK(MPI_File_iwrite_shared(file, data, 100, MPI_BYTE, &request));
  error = MPI_Wait(&request, &status);
  if (rank == size - 1) expect_error(error, MPI_ERR_QUOTA, "shared_refused");
  if (rank != size - 1) OK(error);
  meet();
  expect_error(MPI_File_write_ordered(file, data, 100, MPI_BYTE, &status), MPI_ERR_QUOTA, "");
  OK(MPI_File_write_ordered_begin(file, data, 100, MPI_BYTE));
  expect_error(MPI_File_write_ordered_end(file, data, &status), MPI_ERR_QUOTA, "");
  disarm();
  MPI_Offset shared = -1;
  OK(MPI_File_get_position_shared(file, &shared));
  CHECK(shared == 400 * (MPI_Offset)size);
  meet();
  OK(MPI_File_write_ordered(file, data, 100, MPI_BYTE, &status));
  CHECK(size_of_file(file) == 500 * (MPI_Offset)size);
  OK(MPI_File_close(&file));
}

/* By views without gaps no rank has anything to do for another: each learns of its own refusals. */
static void alone_refused(void) {
  step = "collective calls by a view without gaps that fail on one rank";
  MPI_File file = open_new("alone_refused");
  const MPI_Offset own = 100 * (MPI_Offset)rank;
  memset(data, value_of(rank, 1), 100);
  OK(MPI_File_write_at_all(file, own, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  if (rank == size - 1) arm(kPwrite, ENOSPC, 1);
  memset(data, value_of(rank, 2), 100);
  const int error = MPI_File_write_at_all(file, own, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  disarm();
  if (rank == size - 1) expect_error(error, MPI_ERR_NO_SPACE, "alone_refused");
  if (rank != size - 1) OK(error);
  meet();
  OK(MPI_File_read_at_all(file, own, back, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int i = 0; i < 100; ++i) CHECK(back[i] == value_of(rank, rank == size - 1 ? 1 : 2));
  OK(MPI_File_close(&file));
}

/* Nor does a rank wait for others there: each makes all of its calls before the next one begins. In
 * the first call by a view the ranks tell each other what they have. */
static void one_after_the_other(void) {
  step = "collective calls by a view without gaps, one rank after the other";
  enum { kCalls = 20 };
  MPI_File file = open_new("one_after_the_other");
  memset(data, value_of(rank, 1), kCalls);
  OK(MPI_File_write_at_all(file, rank, data, 1, MPI_BYTE, MPI_STATUS_IGNORE));
  int turn = 0;
  if (rank > 0) {
    OK(MPI_Recv(&turn, 1, MPI_INT, rank - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  for (int i = 1; i < kCalls; ++i) {
    const MPI_Offset at = (MPI_Offset)i * size + rank;
    OK(MPI_File_write_at_all(file, at, data, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(file, at, back, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(back[0] == data[0]);
  }
  if (rank + 1 < size) OK(MPI_Send(&turn, 1, MPI_INT, rank + 1, 9, MPI_COMM_WORLD));
  meet();
  OK(MPI_File_read_at_all(file, 0, back, kCalls * size, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int i = 0; i < kCalls * size; ++i) CHECK(back[i] == value_of(i % size, 1));
  OK(MPI_File_close(&file));
}

static void others_refused(void) {
  step = "a file that cannot be written back (12, 39)";
  MPI_File file = open_new("late");
  OK(MPI_File_write_at(file, 100 * rank, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  if (rank == size - 1) arm(kFsync, EIO, 1);
  expect_error(MPI_File_sync(file), MPI_ERR_IO, ""); /* on all ranks */
  /* Nothing was written back, so the next call tries again. */
  expect_error(MPI_File_sync(file), MPI_ERR_IO, "");
  disarm();
  OK(MPI_File_sync(file));
  if (rank == size - 1) arm(kFsync, ENOSPC, 1);
  OK(MPI_File_sync(file)); /* nothing was written since */
  disarm();

  step = "sizes that are refused";
  if (rank == 0) arm(kFtruncate, EFBIG, 1);
  expect_error(MPI_File_set_size(file, 1000), MPI_ERR_IO, "");
  disarm();
  if (rank == 0) arm(kFallocate, ENOSPC, 1);
  expect_error(MPI_File_preallocate(file, 1 << 20), MPI_ERR_NO_SPACE, "");
  disarm();
  CHECK(size_of_file(file) == 100 * (MPI_Offset)size);

  step = "a close that fails (12)";
  meet();
  if (rank == size - 1) arm(kClose, EDQUOT, 1);
  expect_error(MPI_File_close(&file), MPI_ERR_QUOTA, ""); /* on all ranks */
  disarm();
  CHECK(file == MPI_FILE_NULL && !exists("late"));

  step = "an open that fails on one rank (4)";
  meet();
  if (rank == size - 1) arm(kOpen, EMFILE, 1);
  expect_no_open("unopened", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_ERR_IO);
  disarm();
  CHECK(!exists("unopened"));
}

static void limited(const char* buffering) {
  step = "a limit for files, of all ranks";
  struct rlimit limit, small;
  CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  signal(SIGXFSZ, SIG_IGN);
  MPI_File file = open_pieces("limited", buffering);
  memset(data, value_of(rank, 2), kBytes);
  meet();
  small = limit;
  small.rlim_cur = 5000;
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  MPI_Status status;
  expect_error(MPI_File_write_at_all(file, 0, data, kBytes, MPI_BYTE, &status), MPI_ERR_IO, "");
  expect_error(MPI_File_write_at(file, 0, data, kBytes, MPI_BYTE, &status), MPI_ERR_IO, "limited");
  CHECK(count_of(&status, MPI_BYTE) < kBytes);
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  expect_pieces("limited", 2, 1);
  OK(MPI_File_close(&file));
}

/* ---- Files that somebody else changes ----------------------------------------------------------
 */

static const char* cut_path;
static void cut(int number) {
  if (number == 2) CHECK(truncate(cut_path, (off_t)kBytes * size / 3) == 0);
}

/* Somebody cuts the file short while it is read: the bytes that come are right, and as many as the
 * status says.
 */
static void cut_short(const char* buffering) {
  static char name[100], path[6000];
  for (int form = 0; form < kForms; ++form) {
    snprintf(name, sizeof(name), "a file that is cut short: %s, buffering: %s", kNames[form],
             buffering);
    step = name;
    MPI_File file = open_pieces("cut", buffering);
    snprintf(path, sizeof(path), "%s", in_folder("cut"));
    cut_path = path;
    memset(data, value_of(rank, 3), kBytes);
    OK(MPI_File_write_at_all(file, 0, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    meet();
    arm(kNoCall, 0, 0);
    most_at_once = 5000;
    before_pread = rank == 0 ? cut : NULL;
    MPI_Status status;
    OK(read_by(form, file, &status));
    disarm();
    const int there = count_of(&status, MPI_BYTE);
    CHECK(there >= 0 && there <= kBytes);
    for (int i = 0; i < kBytes; ++i) {
      CHECK(back[i] == value_of(rank, 3) || (i >= there && back[i] == 0));
    }
    if (rank == 0) CHECK(there < kBytes || counts[kPread] < 2);
    OK(MPI_File_close(&file));
    meet();
  }
}

/* In atomic mode overlapping accesses are one after the other, also where calls are cut up. */
static void atomic_overlaps(void) {
  step = "overlapping views in atomic mode (38), with calls that move few bytes";
  MPI_File file = open_pieces("overlaps", "automatic");
  OK(MPI_File_set_atomicity(file, 1));
  /* Rank r has the pieces r and r + 1 of each round: each piece is in two ranks' views. */
  const MPI_Aint tile = (MPI_Aint)kPiece * (size + 1);
  MPI_Datatype type = vector_of(1, 2 * kPiece, 2 * kPiece, MPI_BYTE, tile);
  OK(MPI_File_set_view(file, (MPI_Offset)kPiece * rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
  OK(MPI_Type_free(&type));
  const int bytes = kBytes / 4 / (2 * kPiece) * (2 * kPiece);
  for (int round = 0; round < 6; ++round) {
    memset(data, value_of(rank, round), kBytes);
    arm(kNoCall, 0, 0);
    interrupts = 1;
    most_at_once = 31;
    if (round % 2 == 0) OK(MPI_File_write_at(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    if (round % 2 == 1)
      OK(MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    disarm();
    meet();
    /* Of two neighbours one was the last, everywhere. */
    OK(MPI_File_read_at(file, 0, back, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < bytes; ++i) {
      const int is_second = i / kPiece % 2;
      CHECK(back[i] == back[is_second ? kPiece : 0]);
      const int is_mine = back[i] == value_of(rank, round);
      const int neighbour = is_second ? rank + 1 : rank - 1;
      CHECK(is_mine ||
            (neighbour >= 0 && neighbour < size && back[i] == value_of(neighbour, round)));
    }
    meet();
  }
  OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  folder = argv[1];
  begin_with_threads(&argc, &argv, MPI_THREAD_SINGLE);
  const char* const ways[] = {"automatic", "enable", "disable"};
  for (int way = 0; way < 3; ++way) {
    interrupted(ways[way]);
    refused(ways[way]);
    limited(ways[way]);
    cut_short(ways[way]);
  }
  shared_refused();
  alone_refused();
  one_after_the_other();
  others_refused();
  atomic_overlaps();
  return end_well("all faults were answered");
}
