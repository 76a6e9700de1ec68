/* Files of a file system that is not the machine's own (tests/support/fuse_folder.h), which fails,
 * does not answer, or shows each node what it has in its cache. Arguments: a folder there; "faults"
 * or "room"; or "hang" and a folder of the machine's own; or "caches" and another folder with the
 * same files, which the ranks of other nodes than the first one use.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "tests/mpi/ranks/files.h"

enum { kBytes = 3000, kPiece = 512, kPieces = 1024, kWhole = kPiece * kPieces };

static unsigned char data[kWhole], back[kWhole];
static int is_last;

/* One rank tells the file system what is to happen. */
static void tell(const char* what, const char* call, int error) {
  char name[100];
  snprintf(name, sizeof(name), error < 0 ? "%s:%s" : "%s:%s:%d", what, call, error);
  CHECK(access(in_folder(name), F_OK) != 0);
}

/* From then on all such calls of all ranks fail; 0: no more. */
static void fail_calls(const char* call, int error) {
  meet();
  if (rank == 0) tell("fault", call, error);
  meet();
}

static MPI_File open_strided(const char* name) {
  MPI_Info hints = info_with("romio_cb_write", "enable");
  OK(MPI_Info_set(hints, "romio_cb_read", "enable"));
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, in_folder(name), MPI_MODE_RDWR | MPI_MODE_CREATE, hints, &file));
  OK(MPI_Info_free(&hints));
  return file;
}

static void set_strided(MPI_File file, MPI_Offset from) {
  MPI_Datatype type = vector_of(1, kPiece, kPiece, MPI_BYTE, (MPI_Aint)kPiece * size);
  OK(MPI_File_set_view(file, from + (MPI_Offset)kPiece * rank, MPI_BYTE, type, "native",
                       MPI_INFO_NULL));
  OK(MPI_Type_free(&type));
}

static void set_plain(MPI_File file) {
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static const struct {
  int error, error_class;
} kFaults[] = {
    {EIO, MPI_ERR_IO}, {ENOSPC, MPI_ERR_NO_SPACE}, {EDQUOT, MPI_ERR_QUOTA}, {ESTALE, MPI_ERR_IO}};

static void fail_to_open(int error, int error_class) {
  step = "opens that fail";
  static const char* const kCalls[] = {"lookup", "getattr", "open"};
  for (int i = 0; i < 3; ++i) {
    fail_calls(kCalls[i], error);
    expect_no_open("there", MPI_MODE_RDONLY, error_class);
    fail_calls(kCalls[i], 0);
  }
  fail_calls("create", error);
  expect_no_open("new", MPI_MODE_RDWR | MPI_MODE_CREATE, error_class);
  fail_calls("create", 0);
  MPI_File file = open_new("new");
  fail_calls("statfs", error);
  step = "a file system that does not say what it is";
  OK(MPI_File_write_at(file, kBytes * rank, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  fail_calls("statfs", 0);
  OK(MPI_File_close(&file));
}

static int complete(int error, MPI_Request* request) {
  return error == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : error;
}

static void fail_to_write(MPI_File file, int error, int error_class) {
  const MPI_Offset own = (MPI_Offset)kBytes * rank;
  MPI_Request request;
  step = "writes that fail";
  set_plain(file);
  fail_calls("write", error);
  expect_error(MPI_File_write_at(file, own, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE), error_class,
               "write to");
  expect_error(complete(MPI_File_iwrite_at(file, own, data, kBytes, MPI_BYTE, &request), &request),
               error_class, "write to");
  expect_error(MPI_File_write_at_all(file, own, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE),
               error_class, "");
  set_strided(file, 0);
  expect_error(MPI_File_write_at_all(file, 0, data, kWhole, MPI_BYTE, MPI_STATUS_IGNORE),
               error_class, "");
  expect_error(
      complete(MPI_File_iwrite_at_all(file, 0, data, kWhole, MPI_BYTE, &request), &request),
      error_class, "");
  fail_calls("write", 0);
  OK(MPI_File_write_at_all(file, 0, data, kWhole, MPI_BYTE, MPI_STATUS_IGNORE));
}

/* Of bytes that no rank has read or written before: none of them is in the system's memory. */
static void fail_to_read(MPI_File file, int error, int error_class) {
  static MPI_Offset fresh;
  MPI_Request request;
  step = "reads that fail";
  fresh = fresh == 0 ? size_of_file(file) : fresh;
  const MPI_Offset from = (fresh + 0xfffff) / 0x100000 * 0x100000;
  const MPI_Offset own = from + (MPI_Offset)kWhole * rank;
  fresh = from + (MPI_Offset)kWhole * size;
  OK(MPI_File_set_size(file, fresh));
  set_plain(file);
  fail_calls("read", error);
  expect_error(MPI_File_read_at(file, own, back, kBytes, MPI_BYTE, MPI_STATUS_IGNORE), error_class,
               "read from");
  expect_error(complete(MPI_File_iread_at(file, own, back, kBytes, MPI_BYTE, &request), &request),
               error_class, "read from");
  expect_error(MPI_File_read_at_all(file, own, back, kBytes, MPI_BYTE, MPI_STATUS_IGNORE),
               error_class, "");
  set_strided(file, from);
  expect_error(MPI_File_read_at_all(file, 0, back, kWhole, MPI_BYTE, MPI_STATUS_IGNORE),
               error_class, "");
  expect_error(complete(MPI_File_iread_at_all(file, 0, back, kWhole, MPI_BYTE, &request), &request),
               error_class, "");
  fail_calls("read", 0);
  memset(back, 1, kWhole);
  MPI_Status status;
  OK(MPI_File_read_at_all(file, 0, back, kWhole, MPI_BYTE, &status));
  CHECK(count_of(&status, MPI_BYTE) == kWhole && back[0] == 0 && back[kWhole - 1] == 0);
}

static void fail_to_change(MPI_File file, int error, int error_class) {
  step = "other calls that fail";
  set_plain(file);
  OK(MPI_File_write_at(file, kBytes * rank, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  fail_calls("fsync", error);
  expect_error(MPI_File_sync(file), error_class, "");
  fail_calls("fsync", 0);
  OK(MPI_File_sync(file));
  const MPI_Offset before = size_of_file(file);
  fail_calls("setattr", error);
  expect_error(MPI_File_set_size(file, before + 1), error_class, "");
  fail_calls("setattr", 0);
  fail_calls("fallocate", error);
  expect_error(MPI_File_preallocate(file, before + 100000), error_class, "");
  fail_calls("fallocate", 0);
  fail_calls("getattr", error);
  MPI_Offset bytes;
  expect_error(MPI_File_get_size(file, &bytes), error_class, "find the size");
  fail_calls("getattr", 0);
  CHECK(size_of_file(file) == before);
}

static void fail_to_end(int error, int error_class) {
  step = "ends that fail";
  MPI_File file = open_in(MPI_COMM_WORLD, "short", MPI_MODE_RDWR | MPI_MODE_CREATE);
  OK(MPI_File_write_at(file, kBytes * rank, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  fail_calls("flush", error);
  expect_error(MPI_File_close(&file), error_class, "");
  CHECK(file == MPI_FILE_NULL);
  fail_calls("flush", 0);
  fail_calls("unlink", error);
  expect_error(MPI_File_delete(in_folder("short"), MPI_INFO_NULL), error_class, "remove");
  file = open_in(MPI_COMM_WORLD, "short", MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  expect_error(MPI_File_close(&file), error_class, "");
  fail_calls("unlink", 0);
  meet();
  if (rank == 0) OK(MPI_File_delete(in_folder("short"), MPI_INFO_NULL));
}

static void fail_in_each_call(void) {
  fill(data, kWhole, (unsigned)rank);
  if (rank == 0) make_file("there", 100, 1);
  MPI_File file = open_strided("long");
  for (size_t i = 0; i < sizeof(kFaults) / sizeof(kFaults[0]); ++i) {
    fail_to_open(kFaults[i].error, kFaults[i].error_class);
    fail_to_write(file, kFaults[i].error, kFaults[i].error_class);
    fail_to_read(file, kFaults[i].error, kFaults[i].error_class);
    fail_to_change(file, kFaults[i].error, kFaults[i].error_class);
    fail_to_end(kFaults[i].error, kFaults[i].error_class);
  }
  OK(MPI_File_close(&file));
}

/* Room in a file system that has no call for that, in a file that may only be written. */
static void make_room(void) {
  step = "room for a file";
  MPI_File file = open_in(MPI_COMM_WORLD, "room", MPI_MODE_WRONLY | MPI_MODE_CREATE);
  if (rank == 0) {
    OK(MPI_File_write_at(file, 0, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  OK(MPI_File_sync(file));
  OK(MPI_File_preallocate(file, 2 * kBytes));
  CHECK(size_of_file(file) == 2 * kBytes);
  OK(MPI_File_close(&file));
  CHECK(read_raw("room", 0, back, kBytes) == kBytes && memcmp(back, data, 10) == 0);
}

/* ---- No answer ------------------------------------------------------------------------------- */

/* The last rank's reads hang. The test ends them once both do, and the ranks have said that nothing
 * else does. */
static void hang(const char* local) {
  MPI_Comm others;
  MPI_File far, all, near;
  MPI_Request request, quick;
  int sum = 1;
  const char* const far_folder = folder;
  if (rank == 0) make_file("all", kBytes, 7);
  if (is_last) make_file("far", kBytes, 8);
  meet();
  OK(MPI_Comm_split(MPI_COMM_WORLD, is_last, rank, &others));
  OK(MPI_File_open(MPI_COMM_WORLD, in_folder("all"), MPI_MODE_RDONLY, MPI_INFO_NULL, &all));
  OK(MPI_File_open(MPI_COMM_SELF, in_folder(is_last ? "far" : "all"), MPI_MODE_RDONLY,
                   MPI_INFO_NULL, &far));
  folder = local;
  OK(MPI_File_open(others, in_folder(is_last ? "of_last" : "of_others"),
                   MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &near));
  folder = far_folder;
  if (is_last) {
    step = "a read that hangs, and other files";
    tell("hang", "read", -1);
    OK(MPI_File_iread_at(far, 0, back, kBytes, MPI_BYTE, &request));
    OK(MPI_File_iwrite_at(near, 0, data, kBytes, MPI_BYTE, &quick));
    OK(MPI_Wait(&quick, MPI_STATUS_IGNORE));
    OK(MPI_File_iwrite_at_all(near, 0, data, kBytes, MPI_BYTE, &quick));
    OK(MPI_Wait(&quick, MPI_STATUS_IGNORE));
  } else {
    step = "ranks that do not wait for it";
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, others));
    CHECK(sum == size - 1);
    OK(MPI_File_write_at_all(near, kBytes * rank, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  OK(MPI_File_close(&near));
  printf("rank %d: nothing else hangs\n", rank);
  fflush(stdout);
  step = "ranks that wait for it";
  set_strided(all, 0); /* by views without gaps no rank waits for others */
  expect_error(
      MPI_File_read_at_all(all, 0, back, is_last ? kBytes : 0, MPI_BYTE, MPI_STATUS_IGNORE),
      MPI_ERR_IO, "");
  if (is_last) expect_error(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_IO, "read from");
  step = "the end of files that are gone";
  for (int i = 0; i < 2; ++i) {
    const int error = MPI_File_close(i == 0 ? &all : &far);
    CHECK(error == MPI_SUCCESS || error == MPI_ERR_IO);
    CHECK((i == 0 ? all : far) == MPI_FILE_NULL);
  }
  OK(MPI_Comm_free(&others));
}

/* ---- Caches ---------------------------------------------------------------------------------- */

static void sync_all(MPI_File file) {
  OK(MPI_File_sync(file));
  meet();
  OK(MPI_File_sync(file));
}

/* All of the file goes into the memory of all nodes. */
static void look(MPI_File file, unsigned seed) {
  MPI_Status status;
  set_plain(file);
  memset(back, 0, kWhole);
  OK(MPI_File_read_at(file, 0, back, kWhole, MPI_BYTE, &status));
  CHECK(count_of(&status, MPI_BYTE) == kWhole && is_filled(back, kWhole, seed));
  meet();
}

static void believe_caches(const char* other_folder) {
  MPI_Comm node;
  int first = rank;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  OK(MPI_Bcast(&first, 1, MPI_INT, 0, node));
  OK(MPI_Comm_free(&node));
  if (first != 0) folder = other_folder;

  step = "a file that is new to all nodes";
  MPI_File file = open_strided("new");
  step = "bytes and a size from another node";
  fill(data, kWhole, 1);
  if (rank == 0) OK(MPI_File_write_at(file, 0, data, kWhole, MPI_BYTE, MPI_STATUS_IGNORE));
  sync_all(file);
  look(file, 1);
  fill(data, kWhole, 2);
  if (is_last) {
    OK(MPI_File_write_at(file, 0, data, kWhole, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_write_at(file, kWhole, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  sync_all(file);
  CHECK(size_of_file(file) == kWhole + 100);
  look(file, 2);

  step = "own bytes that another node has written";
  set_strided(file, 0);
  const int part = kWhole / size / kPiece * kPiece;
  for (unsigned round = 0; round < 3; ++round) {
    fill(data, (size_t)part, 10 * round + (unsigned)rank);
    MPI_Request request;
    if (round == 1) {
      OK(MPI_File_iwrite_at_all(file, 0, data, part, MPI_BYTE, &request));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_write_at_all(file, 0, data, part, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    memset(back, 0, (size_t)part);
    OK(MPI_File_read_at(file, 0, back, part, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(is_filled(back, (size_t)part, 10 * round + (unsigned)rank));
    fill(data, 100, 5);
    OK(MPI_File_write_at(file, 0, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    memset(back, 0, (size_t)part);
    OK(MPI_File_read_at_all(file, 0, back, part, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(memcmp(back, data, (size_t)part) == 0);
    fill(data, (size_t)part, 10 * round + (unsigned)rank);
    OK(MPI_File_write_at(file, 0, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    sync_all(file);
    memset(back, 0, (size_t)part);
    OK(MPI_File_read_at_all(file, 0, back, part, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(is_filled(back, (size_t)part, 10 * round + (unsigned)rank));
  }

  step = "a size that all have set";
  OK(MPI_File_set_size(file, 5 * kBytes));
  CHECK(size_of_file(file) == 5 * kBytes);
  OK(MPI_File_preallocate(file, 6 * kBytes));
  CHECK(size_of_file(file) == 6 * kBytes);
  OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  CHECK(argc > 2);
  const char* const what = argv[2];
  begin_files(2, argv);
  is_last = rank == size - 1;
  if (strcmp(what, "faults") == 0) {
    fail_in_each_call();
  } else if (strcmp(what, "room") == 0) {
    make_room();
  } else if (strcmp(what, "hang") == 0) {
    CHECK(argc > 3);
    hang(argv[3]);
  } else {
    CHECK(argc > 3 && strcmp(what, "caches") == 0);
    believe_caches(argv[3]);
  }
  return end_well("all was right");
}
