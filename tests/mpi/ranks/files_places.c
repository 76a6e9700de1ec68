/* Names and places that are none or far off, and file systems that are full or may only be read: an
 * error by name on the ranks that the standard says.
 *   files_places FOLDER          any folder
 *   files_places FOLDER full     a file system of 1 MiB that holds nothing yet
 *   files_places FOLDER fixed    a file system that may only be read, with a file "there" of 100
 *                                bytes of fill() 1
 */
#include "tests/mpi/ranks/files.h"

/* ---- Names and places --------------------------------------------------------------------------
 */

static void names(void) {
  step = "paths of 4,096 bytes and more (45)";
  char* const path = malloc(5000);
  for (int length = 4094; length <= 4097; ++length) { /* PATH_MAX counts the 0 at the end */
    int at = snprintf(path, 5000, "%s", folder);
    while (at < length - 1) {
      path[at++] = '/';
      path[at++] = '.';
    }
    if (at < length) path[at++] = '/';
    path[length] = 0;
    MPI_File file = MPI_FILE_NULL;
    /* Short enough it is a directory, which is no file. */
    expect_error(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
                 MPI_ERR_BAD_FILE, "characters");
    CHECK(file == MPI_FILE_NULL);
  }
  memset(path, 'n', 4096);
  path[4096] = 0;
  expect_error(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_BAD_FILE, "4096 characters");
  free(path);

  step = "directories";
  expect_no_open(".", MPI_MODE_RDONLY, MPI_ERR_BAD_FILE);
  expect_no_open(".", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_ERR_BAD_FILE);
  expect_no_open(".", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_ERR_BAD_FILE);

  step = "a pipe without MPI_MODE_SEQUENTIAL"; /* at which an open would wait for the other end */
  if (rank == 0) CHECK(mkfifo(in_folder("pipe"), 0644) == 0);
  meet();
  const int no = MPI_ERR_UNSUPPORTED_OPERATION;
  expect_no_open("pipe", MPI_MODE_RDONLY, no);
  expect_no_open("pipe", MPI_MODE_WRONLY, no);
  expect_no_open("pipe", MPI_MODE_RDWR | MPI_MODE_CREATE, no);
  CHECK(exists("pipe"));
  meet();
  if (rank == 0) CHECK(unlink(in_folder("pipe")) == 0);
}

static void far_places(void) {
  step = "2^40 bytes and more";
  const MPI_Offset far = (MPI_Offset)1 << 40;
  const MPI_Offset most = INT64_MAX;
  MPI_File file = open_new("far");
  int value = 1000 + rank, got = -1;
  MPI_Status status;
  MPI_Request request;
  OK(MPI_File_write_at(file, far + 4 * rank, &value, 1, MPI_INT, &status));
  OK(MPI_File_read_at(file, far + 4 * rank, &got, 1, MPI_INT, &status));
  CHECK(got == value);
  OK(MPI_File_write_at_all(file, 2 * far + 4 * rank, &value, 1, MPI_INT, &status));
  OK(MPI_File_read_at_all(file, 2 * far + 4 * rank, &got, 1, MPI_INT, &status));
  CHECK(got == value);
  meet();
  CHECK(size_of_file(file) == 2 * far + 4 * size);
  OK(MPI_File_set_view(file, far, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_iread_at(file, rank, &got, 1, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  CHECK(count_of(&status, MPI_INT) == 1 && got == value);
  OK(MPI_File_seek_shared(file, far / 4, MPI_SEEK_SET));
  OK(MPI_File_read_ordered(file, &got, 1, MPI_INT, &status));
  CHECK(got == value);
  OK(MPI_File_seek(file, 0, MPI_SEEK_END));
  CHECK(place(file) == far / 4 + size);

  step = "places beyond 2^63";
  for (int is_last = 0; is_last < 2; ++is_last) {
    const MPI_Offset offset = is_last ? most / 4 : most;
    expect_error(MPI_File_write_at(file, offset, &value, 1, MPI_INT, &status), MPI_ERR_ARG, "2^63");
    expect_error(MPI_File_iread_at(file, offset, &got, 1, MPI_INT, &request), MPI_ERR_ARG, "2^63");
    /* By a view without gaps one rank's mistake is an error of that rank. */
    const MPI_Offset own = rank == 0 ? offset : 0;
    const int mistaken = MPI_File_write_at_all(file, own, &value, 1, MPI_INT, &status);
    if (rank == 0) expect_error(mistaken, MPI_ERR_ARG, "2^63");
    if (rank != 0) OK(mistaken);
  }
  /* Where ranks write for each other it is an error of all. */
  MPI_Datatype turns = vector_of(1, 1, 1, MPI_INT, 4 * (MPI_Aint)size);
  OK(MPI_File_set_view(file, 4 * (MPI_Offset)rank, MPI_INT, turns, "native", MPI_INFO_NULL));
  OK(MPI_Type_free(&turns));
  expect_error(MPI_File_write_at_all(file, rank == 0 ? most : 0, &value, 1, MPI_INT, &status),
               MPI_ERR_ARG, rank == 0 ? "2^63" : "");
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_seek(file, most / 4, MPI_SEEK_SET));
  expect_error(MPI_File_write(file, &value, 1, MPI_INT, &status), MPI_ERR_ARG, "2^63");
  expect_error(MPI_File_seek(file, most, MPI_SEEK_CUR), MPI_ERR_ARG, "");
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  /* The file system says how long a file may be. */
  const int error = MPI_File_write_at(file, most - 8, &value, 1, MPI_INT, &status);
  if (error != MPI_SUCCESS) expect_error(error, MPI_ERR_IO, "far");
  OK(MPI_File_read_at(file, most - 6, &got, 1, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 0);
  expect_error(MPI_File_set_view(file, -1, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL),
               MPI_ERR_ARG, "-1");
  expect_error(MPI_File_set_view(file, rank == 0 ? INT64_MIN : 0, MPI_BYTE, MPI_BYTE, "native",
                                 MPI_INFO_NULL),
               MPI_ERR_ARG, "");
  OK(MPI_File_set_view(file, most - 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  expect_error(MPI_File_write_at_all(file, 2, &value, 1, MPI_INT, &status), MPI_ERR_ARG, "2^63");
  OK(MPI_File_close(&file));
}

/* ---- Small and fixed file systems --------------------------------------------------------------
 */

static void full(void) {
  step = "a file system without room";
  enum { kRoom = 1 << 20, kMuch = 3 << 20 };
  unsigned char* const much = malloc(kMuch);
  memset(much, 1 + rank, kMuch);
  MPI_File file = open_new("full");
  MPI_Status status;
  /* More than there is room for: what was written is there, and the status says how much. */
  const MPI_Offset own = (MPI_Offset)kMuch * rank;
  const int error = MPI_File_write_at(file, own, much, kMuch, MPI_BYTE, &status);
  const int written = count_of(&status, MPI_BYTE);
  expect_error(error, MPI_ERR_NO_SPACE, "full");
  CHECK(written <= kRoom);
  unsigned char* const got = calloc(1, kRoom);
  OK(MPI_File_read_at(file, own, got, written, MPI_BYTE, &status));
  CHECK(memcmp(got, much, (size_t)written) == 0);
  /* Together: an error on all ranks, whether their pieces are buffered or not. */
  const int pieces[2] = {64, kRoom};
  for (int i = 0; i < 2; ++i) {
    const int piece = pieces[i];
    OK(MPI_File_set_size(file, 0));
    MPI_Datatype type = vector_of(1, piece, piece, MPI_BYTE, (MPI_Aint)piece * size);
    OK(MPI_File_set_view(file, (MPI_Offset)piece * rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&type));
    expect_error(MPI_File_write_at_all(file, 0, much, kMuch, MPI_BYTE, &status), MPI_ERR_NO_SPACE,
                 "");
    expect_error(MPI_File_preallocate(file, 3 * kRoom), MPI_ERR_NO_SPACE, "");
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_write_at_all(file, 0, much, kRoom / 2 / size, MPI_BYTE, &status));
    memset(got, 0, kRoom);
    OK(MPI_File_read_at_all(file, 0, got, kRoom / 2 / size, MPI_BYTE, &status));
    CHECK(memcmp(got, much, (size_t)(kRoom / 2 / size)) == 0);
    meet();
  }
  OK(MPI_File_close(&file));
  free(much);
  free(got);
}

static void fixed(void) {
  step = "a file system that may only be read (45)";
  const int changes[] = {MPI_MODE_RDWR, MPI_MODE_WRONLY, MPI_MODE_RDWR | MPI_MODE_CREATE};
  for (int i = 0; i < 3; ++i) expect_no_open("there", changes[i], MPI_ERR_READ_ONLY);
  expect_no_open("new", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_ERR_READ_ONLY);
  expect_no_open("new", MPI_MODE_RDWR, MPI_ERR_NO_SUCH_FILE);
  expect_error(MPI_File_delete(in_folder("there"), MPI_INFO_NULL), MPI_ERR_READ_ONLY, "there");
  MPI_File file = open_in(MPI_COMM_WORLD, "there", MPI_MODE_RDONLY);
  unsigned char back[100];
  OK(MPI_File_read_at_all(file, 0, back, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(is_filled(back, 100, 1));
  OK(MPI_File_sync(file));
  OK(MPI_File_close(&file));
  file = open_in(MPI_COMM_WORLD, "there", MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
  expect_error(MPI_File_close(&file), MPI_ERR_READ_ONLY, ""); /* on all ranks */
  CHECK(file == MPI_FILE_NULL && exists("there"));
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  folder = argv[1];
  begin_with_threads(&argc, &argv, MPI_THREAD_SINGLE);
  const char* const mode = argc > 2 ? argv[2] : "";
  if (strcmp(mode, "full") == 0) {
    full();
  } else if (strcmp(mode, "fixed") == 0) {
    fixed();
  } else {
    names();
    far_places();
  }
  return end_well("all places were answered");
}
