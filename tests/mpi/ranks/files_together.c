/* Collective reads and writes of a file in which the pieces of all ranks lie between each other.
 * Arguments: a file to write; "background" for calls that do not block, several at a time; "far"
 * where the file system is none of the machine's own, and more may be read at a time. Every
 * byte is compared: those that some rank has written, and those between them, which hold what was
 * there before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/mpi/ranks/files_shapes.h"

enum { kBefore = 0xA5, kUntouched = 0x5A, kGap = 3, kRun = 5, kMostRanks = 64 };

/* ---- The system calls of the library --------------------------------------------------------- */

static long calls;         /* of either kind since it was set to 0 */
static long fails_at = -1; /* the number of the call that fails, and how */
static int fails_with;
static long long bytes_read; /* since it was set to 0 */

static int is_to_fail(void) {
  if (++calls != fails_at) return 0;
  errno = fails_with;
  return 1;
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* from, size_t bytes,
                                                      off_t at) {
  return is_to_fail() ? -1 : syscall(SYS_pwrite64, fd, from, bytes, at);
}

__attribute__((visibility("default"))) ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  const ssize_t got = is_to_fail() ? -1 : syscall(SYS_pread64, fd, to, bytes, at);
  bytes_read += got > 0 ? got : 0;
  return got;
}

__attribute__((visibility("default"))) ssize_t preadv(int fd, const struct iovec* to, int count,
                                                      off_t at) {
  const ssize_t got = is_to_fail() ? -1 : syscall(SYS_preadv, fd, to, count, at, 0);
  bytes_read += got > 0 ? got : 0;
  return got;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* `bytes` of data in runs of kRun with gaps of kGap, or without gaps. */
struct memory {
  unsigned char* bytes;
  size_t length;
  int is_strided;
};

static size_t at_in(const struct memory* memory, MPI_Offset i) {
  return memory->is_strided ? (size_t)(i / kRun * (kRun + kGap) + i % kRun) : (size_t)i;
}

static struct memory make_memory(MPI_Offset bytes, int is_strided) {
  struct memory memory = {NULL, (size_t)(bytes * 2 + kRun + kGap), is_strided};
  memory.bytes = malloc(memory.length);
  memset(memory.bytes, kUntouched, memory.length);
  return memory;
}

/* The data of a view from its byte `first` on, of whole runs where the memory has gaps. */
static int elements_of(const struct memory* memory, MPI_Offset bytes) {
  return (int)(memory->is_strided ? bytes / kRun : bytes);
}

static MPI_Datatype type_of(const struct memory* memory) {
  MPI_Datatype run, type;
  OK(MPI_Type_contiguous(memory->is_strided ? kRun : 1, MPI_BYTE, &run));
  OK(MPI_Type_create_resized(run, 0, memory->is_strided ? kRun + kGap : 1, &type));
  OK(MPI_Type_free(&run));
  OK(MPI_Type_commit(&type));
  return type;
}

/* The value of each byte of this rank's data. */
static unsigned char* data_of(const struct view* view, unsigned seed) {
  unsigned char* data = malloc((size_t)view->bytes + 1);
  size_t at = 0;
  for (int i = 0; i < view->count; ++i) {
    for (int k = 0; k < view->pieces[i].length; ++k) {
      data[at++] = value_at(rank, view->pieces[i].place + k, seed);
    }
  }
  return data;
}

/* ---- The file -------------------------------------------------------------------------------- */

static const char* path;
static int in_background;

/* An access of all ranks. `request`: for one in the background, which is not over then. */
static int access_all(MPI_File file, int is_write, MPI_Offset at, unsigned char* memory, int count,
                      MPI_Datatype type, MPI_Request* request, MPI_Status* status) {
  *request = MPI_REQUEST_NULL;
  if (in_background) {
    return is_write ? MPI_File_iwrite_at_all(file, at, memory, count, type, request)
                    : MPI_File_iread_at_all(file, at, memory, count, type, request);
  }
  return is_write ? MPI_File_write_at_all(file, at, memory, count, type, status)
                  : MPI_File_read_at_all(file, at, memory, count, type, status);
}

static int finish(MPI_Request* request, MPI_Status* status) {
  return *request != MPI_REQUEST_NULL ? MPI_Wait(request, status) : MPI_SUCCESS;
}

static void expect_bytes(const MPI_Status* status, MPI_Offset bytes) {
  int moved = -1;
  OK(MPI_Get_count(status, MPI_BYTE, &moved));
  CHECK(moved == bytes);
}

/* What the file is to hold, on rank 0; NULL on the others. */
static unsigned char* expected_file(const struct view* view, unsigned seed) {
  unsigned char* file = rank == 0 ? malloc((size_t)view->end) : NULL;
  if (file != NULL) memset(file, kBefore, (size_t)view->end);
  for (int owner = 0; owner < size; ++owner) {
    int count = view->count;
    OK(MPI_Bcast(&count, 1, MPI_INT, owner, MPI_COMM_WORLD));
    struct piece* pieces = malloc(sizeof(struct piece) * (size_t)(count + 1));
    if (owner == rank) memcpy(pieces, view->pieces, sizeof(struct piece) * (size_t)count);
    OK(MPI_Bcast(pieces, count * (int)sizeof(struct piece), MPI_BYTE, owner, MPI_COMM_WORLD));
    for (int i = 0; i < count && file != NULL; ++i) {
      for (int k = 0; k < pieces[i].length; ++k) {
        const MPI_Offset place = pieces[i].place + k;
        CHECK(place < view->end && file[place] == kBefore); /* none has it yet */
        file[place] = value_at(owner, place, seed);
      }
    }
    free(pieces);
  }
  return file;
}

static void fill_file(MPI_Offset end) {
  if (rank == 0) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    unsigned char* bytes = malloc((size_t)end);
    memset(bytes, kBefore, (size_t)end);
    CHECK(fd >= 0 && write(fd, bytes, (size_t)end) == (ssize_t)end);
    close(fd);
    free(bytes);
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* `may_be_old`: bytes may also hold what they held before. */
static void check_file(const unsigned char* expected, MPI_Offset end, int may_be_old) {
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) {
    const int fd = open(path, O_RDONLY);
    unsigned char* bytes = malloc((size_t)end + 1);
    CHECK(read(fd, bytes, (size_t)end + 1) == (ssize_t)end);
    for (MPI_Offset i = 0; i < end; ++i) {
      if (bytes[i] != expected[i] && !(may_be_old && bytes[i] == kBefore)) {
        fprintf(stderr, "in %s: byte %lld of %lld is %d in place of %d\n", step, (long long)i,
                (long long)end, bytes[i], expected[i]);
        CHECK(!"the file is right");
      }
    }
    close(fd);
    free(bytes);
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

struct way {
  const char* name;
  const char* buffering; /* romio_cb_read, romio_cb_write */
  const char* nodes;     /* cb_nodes */
  const char* bytes;     /* cb_buffer_size */
};
static const struct way kWays[] = {
    {"the automatic way", "automatic", NULL, "16777216"},
    {"buffers", "enable", NULL, "262144"},
    {"buffers of two ranks", "enable", "2", "300000"},
    {"buffers of all ranks", "enable", "64", "1"},
    {"no buffers", "disable", NULL, "16777216"},
};

static MPI_File open_file(const struct way* way) {
  MPI_Info info;
  MPI_File file;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "romio_cb_write", way->buffering));
  OK(MPI_Info_set(info, "romio_cb_read", way->buffering));
  OK(MPI_Info_set(info, "cb_buffer_size", way->bytes));
  if (way->nodes != NULL) OK(MPI_Info_set(info, "cb_nodes", way->nodes));
  OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, &file));
  OK(MPI_Info_free(&info));
  return file;
}

static void set_view(MPI_File file, const struct view* view) {
  OK(MPI_File_set_view(file, view->displacement, MPI_BYTE, view->filetype, "native",
                       MPI_INFO_NULL));
}

/* Writes this rank's data in several calls, of as many bytes as it likes; in the background all at
 * once. */
static void write_all(MPI_File file, const struct view* view, unsigned seed, int is_strided) {
  enum { kCalls = 3 };
  unsigned char* data = data_of(view, seed);
  struct memory memories[kCalls];
  MPI_Offset bytes[kCalls];
  MPI_Request requests[kCalls];
  MPI_Status status[kCalls];
  MPI_Offset done = 0;
  for (int call = 0; call < kCalls; ++call) {
    MPI_Offset now = call == 2 ? view->bytes - done : (view->bytes - done) * (call + rank % 2) / 4;
    const int strided = is_strided && call != 2;
    struct memory* const memory = &memories[call];
    *memory = make_memory(now, strided);
    MPI_Datatype type = type_of(memory);
    const int count = elements_of(memory, now);
    now = strided ? count * kRun : now;
    for (MPI_Offset i = 0; i < now; ++i) memory->bytes[at_in(memory, i)] = data[done + i];
    OK(access_all(file, 1, done, memory->bytes, count, type, &requests[call], &status[call]));
    OK(MPI_Type_free(&type));
    done += bytes[call] = now;
  }
  if (in_background) OK(MPI_Waitall(kCalls, requests, status));
  for (int call = 0; call < kCalls; ++call) {
    expect_bytes(&status[call], bytes[call]);
    free(memories[call].bytes);
  }
  free(data);
}

/* Reads all of it; `end`: that of the file. In the background twice at once: the second time a
 * rank waits for first. */
static void read_all(MPI_File file, const struct view* view, unsigned seed, int is_strided,
                     MPI_Offset end) {
  unsigned char* data = data_of(view, seed);
  struct memory memory = make_memory(view->bytes, is_strided);
  struct memory other = make_memory(view->bytes, 0);
  MPI_Datatype type = type_of(&memory);
  const int count = elements_of(&memory, view->bytes);
  const MPI_Offset wanted = is_strided ? (MPI_Offset)count * kRun : view->bytes;
  MPI_Offset there = 0;
  for (int i = 0; i < view->count && there < wanted; ++i) {
    const MPI_Offset left = end - view->pieces[i].place;
    if (left < view->pieces[i].length) {
      there += left > 0 ? left : 0;
      break;
    }
    there += view->pieces[i].length;
  }
  there = there < wanted ? there : wanted;
  MPI_Status status;
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  if (in_background) {
    MPI_Request requests[2];
    OK(MPI_File_iread_all(file, memory.bytes, count, type, &requests[0]));
    OK(MPI_File_iread_at_all(file, 0, other.bytes, (int)wanted, MPI_BYTE, &requests[1]));
    OK(MPI_Wait(&requests[1], &status));
    expect_bytes(&status, there);
    CHECK(memcmp(other.bytes, data, (size_t)there) == 0);
    CHECK(other.bytes[there] == kUntouched);
    OK(MPI_Wait(&requests[0], &status));
  } else {
    OK(MPI_File_read_all(file, memory.bytes, count, type, &status));
  }
  expect_bytes(&status, there);
  size_t k = 0;
  for (MPI_Offset i = 0; i < there; ++i) {
    for (; k < at_in(&memory, i); ++k) CHECK(memory.bytes[k] == kUntouched);
    CHECK(memory.bytes[k++] == data[i]);
  }
  for (; k < memory.length; ++k) CHECK(memory.bytes[k] == kUntouched);
  OK(MPI_Type_free(&type));
  free(other.bytes);
  free(memory.bytes);
  free(data);
}

/* ---- The steps ------------------------------------------------------------------------------- */

static void try_shape(int shape, unsigned seed, const struct way* way) {
  char name[100];
  snprintf(name, sizeof(name), "shape %d, %s", shape, way->name);
  step = name;
  struct view view = make_view(shape, seed);
  OK(MPI_Allreduce(MPI_IN_PLACE, &view.end, 1, MPI_OFFSET, MPI_MAX, MPI_COMM_WORLD));
  unsigned char* expected = expected_file(&view, seed);
  fill_file(view.end);
  MPI_File file = open_file(way);
  set_view(file, &view);
  write_all(file, &view, seed, seed % 2);
  check_file(expected, view.end, 0);
  read_all(file, &view, seed, seed % 2, view.end);
  /* A file that ends before the last bytes. */
  const MPI_Offset shorter = view.end * 2 / 3 + 1;
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) CHECK(truncate(path, (off_t)shorter) == 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  read_all(file, &view, seed, seed % 2, shorter);
  OK(MPI_File_close(&file));
  free(expected);
  free_view(&view);
}

static int is_one_node(void) {
  MPI_Comm node;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  const int is_all = size_of(node) == size;
  OK(MPI_Comm_free(&node));
  return is_all;
}

static long calls_of_all(void) {
  long sum = 0;
  OK(MPI_Allreduce(&calls, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
  return sum;
}

/* Short pieces go by long runs, and a read of them, too. */
static void expect_few_calls(void) {
  step = "few system calls";
  struct view view = make_view(3, 1);
  unsigned char* data = data_of(&view, 1);
  fill_file(view.end);
  MPI_File file = open_file(&kWays[0]);
  set_view(file, &view);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  calls = 0;
  MPI_Request request;
  OK(access_all(file, 1, 0, data, (int)view.bytes, MPI_BYTE, &request, MPI_STATUS_IGNORE));
  OK(finish(&request, MPI_STATUS_IGNORE));
  const long of_writes = calls_of_all();
  calls = 0;
  read_all(file, &view, 1, 0, view.end);
  const long of_reads = calls_of_all();
  if (size > 1) CHECK(of_writes > 0 && of_writes < 10); /* also on several nodes */
  if (is_one_node() && size > 1) CHECK(of_reads > 0 && of_reads < 10 * (1 + in_background));
  OK(MPI_File_close(&file));
  free(data);
  free_view(&view);
}

/* Nodes that read for each other read each byte once; in the background there are two calls. */
static void expect_each_byte_once(void) {
  step = "each byte is read once";
  struct view view = make_view(3, 1);
  fill_file(view.end);
  MPI_File file = open_file(&kWays[1]);
  set_view(file, &view);
  write_all(file, &view, 1, 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  bytes_read = 0;
  read_all(file, &view, 1, 0, view.end);
  long long sum = 0;
  OK(MPI_Allreduce(&bytes_read, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == view.end * (1 + in_background));
  OK(MPI_File_close(&file));
  free_view(&view);
}

/* Pieces of a length are read by so many bytes of the file, and in so few calls. */
static void expect_reads(int block, int gap, long most_calls, int is_exact) {
  char name[100];
  snprintf(name, sizeof(name), "reads of pieces of %d bytes", block);
  step = name;
  struct view view = {0, MPI_DATATYPE_NULL, NULL, 0, 0, 0};
  blocks_in_turns(&view, block, gap);
  OK(MPI_Type_commit(&view.filetype));
  OK(MPI_Allreduce(MPI_IN_PLACE, &view.end, 1, MPI_OFFSET, MPI_MAX, MPI_COMM_WORLD));
  fill_file(view.end);
  MPI_File file = open_file(&kWays[4]);
  set_view(file, &view);
  write_all(file, &view, 2, 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  calls = bytes_read = 0;
  read_all(file, &view, 2, 0, view.end);
  CHECK(calls <= most_calls * (1 + in_background)); /* which reads twice */
  if (is_exact) CHECK(bytes_read == view.bytes * (1 + in_background));
  OK(MPI_File_close(&file));
  free_view(&view);
}

/* A call of one rank fails: all ranks hear of it, no byte is of a third kind, and the file goes on.
 */
static void expect_failure(int error, int error_class, const struct way* way) {
  char name[100];
  snprintf(name, sizeof(name), "a failure %d, %s", error, way->name);
  step = name;
  struct view view = make_view(0, 3);
  OK(MPI_Allreduce(MPI_IN_PLACE, &view.end, 1, MPI_OFFSET, MPI_MAX, MPI_COMM_WORLD));
  unsigned char* expected = expected_file(&view, 3);
  unsigned char* data = data_of(&view, 3);
  fill_file(view.end);
  MPI_File file = open_file(way);
  set_view(file, &view);
  for (int is_write = 0; is_write < 2; ++is_write) {
    calls = 0;
    fails_at = rank == 0 ? 1 + is_write : -1;
    fails_with = error;
    unsigned char* to = malloc((size_t)view.bytes + 1);
    MPI_Request request;
    const int failed = access_all(file, is_write, 0, is_write ? data : to, (int)view.bytes,
                                  MPI_BYTE, &request, MPI_STATUS_IGNORE);
    expect_error(failed == MPI_SUCCESS ? finish(&request, MPI_STATUS_IGNORE) : failed, error_class,
                 "");
    free(to);
    fails_at = -1;
  }
  check_file(expected, view.end, 1);
  write_all(file, &view, 3, 0);
  check_file(expected, view.end, 0);
  OK(MPI_File_close(&file));
  free(data);
  free(expected);
  free_view(&view);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(argc >= 2 && size < kMostRanks);
  path = argv[1];
  in_background = argc == 3 && strcmp(argv[2], "background") == 0;
  for (size_t way = 0; way < sizeof(kWays) / sizeof(kWays[0]); ++way) {
    for (int shape = 0; shape < kShapes; ++shape) {
      try_shape(shape, (unsigned)(shape + 17 * (int)way), &kWays[way]);
    }
  }
  expect_few_calls();
  expect_reads(16, 100, 5, 0);  /* over gaps, and copied */
  expect_reads(300, 200, 5, 0); /* over gaps, to their places */
  if (argc < 3 || strcmp(argv[2], "far") != 0) {
    if (size > 1) expect_each_byte_once();
    expect_reads(5000, 3000, 50, 1); /* each by itself: what lies between is not read */
  }
  for (size_t way = 0; way < 4; ++way) {
    expect_failure(ENOSPC, MPI_ERR_NO_SPACE, &kWays[way]);
    expect_failure(EIO, MPI_ERR_IO, &kWays[way]);
  }
  if (rank == 0) CHECK(unlink(path) == 0);
  puts("all bytes were right");
  OK(MPI_Finalize());
  return 0;
}
