/* Collective calls on files that do not belong together, in a job that compares its calls
 * (FERRY_MPI_CHECK=1): all ranks fail at once in the same words, and the file goes on. Argument: a
 * folder. The last file stays open, which MPI_Finalize tells.
 */
#include "tests/mpi/ranks/files.h"

static int is_last;
static char data[100];

/* All ranks say the same, and name the file and both calls. */
static void expect_mismatch(int error, const char* usual, const char* of_last) {
  char text[MPI_MAX_ERROR_STRING], first[MPI_MAX_ERROR_STRING];
  int length;
  expect_error(error, MPI_ERR_OTHER, usual);
  expect_error(error, MPI_ERR_OTHER, of_last);
  expect_error(error, MPI_ERR_OTHER, "checked");
  OK(MPI_Error_string(error, text, &length));
  const char* said = strstr(text, ": rank ");
  CHECK(said != NULL);
  snprintf(first, sizeof(first), "%s", said);
  OK(MPI_Bcast(first, sizeof(first), MPI_CHAR, 0, MPI_COMM_WORLD));
  CHECK(strcmp(said, first) == 0);
}

/* PnetCDF's tst_misc does it: rank 0 alone opens a file of all ranks. */
static void open_alone(void) {
  step = "an open by rank 0, while the others wait for it elsewhere";
  int sum = rank;
  MPI_File never = (MPI_File)&never;
  const int error = rank == 0
                        ? MPI_File_open(MPI_COMM_WORLD, in_folder("never"),
                                        MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &never)
                        : MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect_error(error, MPI_ERR_OTHER, "rank 1 called MPI_Allreduce, but rank 0 MPI_File_open");
  CHECK(sum == rank && !exists("never"));
  if (rank == 0) CHECK(never == MPI_FILE_NULL);
}

int main(int argc, char** argv) {
  begin_files(argc, argv);
  CHECK(size > 1);
  is_last = rank == size - 1;
  MPI_File file = open_new("checked");
  MPI_Status status;

  step = "reads and writes";
  expect_mismatch(is_last ? MPI_File_read_all(file, data, 10, MPI_BYTE, &status)
                          : MPI_File_write_all(file, data, 10, MPI_BYTE, &status),
                  "MPI_File_write_all", "MPI_File_read_all");
  CHECK(size_of_file(file) == 0 && place(file) == 0);
  expect_mismatch(
      is_last ? MPI_File_sync(file) : MPI_File_write_at_all_c(file, 0, data, 10, MPI_BYTE, &status),
      "MPI_File_write_at_all", "MPI_File_sync");
  expect_mismatch(is_last ? MPI_File_read_ordered(file, data, 10, MPI_BYTE, &status)
                          : MPI_File_seek_shared(file, 10, MPI_SEEK_SET),
                  "MPI_File_seek_shared", "MPI_File_read_ordered");

  step = "a split collective";
  expect_mismatch(is_last ? MPI_File_write_all(file, data, 10, MPI_BYTE, &status)
                          : MPI_File_write_all_begin(file, data, 10, MPI_BYTE),
                  "MPI_File_write_all_begin", "MPI_File_write_all,");
  expect_error(MPI_File_write_all_end(file, data, &status), MPI_ERR_IO, "begun");

  step = "other calls";
  expect_mismatch(is_last ? MPI_File_preallocate(file, 50) : MPI_File_set_size(file, 50),
                  "MPI_File_set_size", "MPI_File_preallocate");
  CHECK(size_of_file(file) == 0);
  expect_mismatch(is_last ? MPI_File_set_atomicity(file, 1)
                          : MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL),
                  "MPI_File_set_view", "MPI_File_set_atomicity");
  MPI_File same = file;
  expect_mismatch(is_last ? MPI_File_set_size(file, 50) : MPI_File_close(&same), "MPI_File_close",
                  "MPI_File_set_size");
  CHECK(same == file);

  open_alone();

  step = "the calls after those";
  fill((unsigned char*)data, 10, rank);
  if (is_last) OK(MPI_File_write_at_all_c(file, 10 * rank, data, 10, MPI_BYTE, &status));
  if (!is_last) OK(MPI_File_write_at_all(file, 10 * rank, data, 10, MPI_BYTE, &status));
  OK(MPI_File_sync(file));
  CHECK(size_of_file(file) == 10 * size);
  OK(MPI_File_close(&file));
  file = open_new("left");
  meet();
  if (rank == 0) CHECK(unlink(in_folder("left")) == 0);
  return end_well("all wrong calls were answered");
}
