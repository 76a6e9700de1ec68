/* The shared file pointer, ordered calls, and files that are used in sequence (MPI 5.0, sections
 * 14.4.4 and 14.3).
 */
#include "tests/mpi/ranks/files.h"

enum { kRecords = 40, kMost = 64 };

static MPI_File file;

static MPI_Offset shared_place(void) {
  MPI_Offset offset = -1;
  OK(MPI_File_get_position_shared(file, &offset));
  return offset;
}

/* A record: rank, number, length, then bytes. */
static int make_record(unsigned char* record, int of, int i) {
  const int length = 3 + (of * 7 + i * 5) % (kMost - 3);
  record[0] = (unsigned char)of;
  record[1] = (unsigned char)i;
  record[2] = (unsigned char)length;
  fill(record + 3, length - 3, of * 100 + i);
  return length;
}

/* Reads the file from the beginning, and finds every record of every rank once, and whole. */
static void expect_records(const char* name, int in_order) {
  static unsigned char bytes[8 * kRecords * kMost];
  const int got = (int)read_raw(name, 0, bytes, sizeof(bytes));
  int seen[8][kRecords] = {{0}};
  int records = 0, of_before = -1, i_before = -1;
  for (int at = 0; at < got; ++records) {
    const int of = bytes[at], i = bytes[at + 1], length = bytes[at + 2];
    unsigned char record[kMost];
    CHECK(of < size && i < kRecords && make_record(record, of, i) == length);
    CHECK(memcmp(record, bytes + at, length) == 0);
    CHECK(seen[of][i]++ == 0);
    if (in_order) CHECK(i > i_before || (i == i_before && of > of_before));
    of_before = of;
    i_before = i;
    at += length;
  }
  CHECK(records == size * kRecords);
}

static void shared_writes(int form) {
  step = "records at the shared pointer (28)";
  file = open_new("shared");
  CHECK(size <= 8 && shared_place() == 0);
  meet();
  int sum = 0, all = -1;
  unsigned char records[kRecords][kMost];
  MPI_Request requests[kRecords];
  for (int i = 0; i < kRecords; ++i) {
    const int length = make_record(records[i], rank, i);
    sum += length;
    MPI_Status status;
    if (form == 0) {
      OK(MPI_File_write_shared(file, records[i], length, MPI_BYTE, &status));
      CHECK(count_of(&status, MPI_BYTE) == length);
    } else {
      OK(MPI_File_iwrite_shared(file, records[i], length, MPI_BYTE, &requests[i]));
    }
  }
  if (form == 1) OK(MPI_Waitall(kRecords, requests, MPI_STATUSES_IGNORE));
  OK(MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(shared_place() == all && size_of_file(file) == all); /* 31 */
  CHECK(place(file) == 0);                                   /* 27 */
  expect_records("shared", 0);
  meet();

  step = "reads at the shared pointer";
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  int bytes = 0;
  for (;;) {
    unsigned char byte[10];
    MPI_Status status;
    OK(MPI_File_read_shared(file, byte, 10, MPI_BYTE, &status));
    const int got = count_of(&status, MPI_BYTE);
    bytes += got;
    if (got < 10) break;
  }
  OK(MPI_Allreduce(&bytes, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == all);
  OK(MPI_File_close(&file));
}

static void ordered(int form) {
  step = "ordered records (29)";
  file = open_new("ordered");
  int sum = 0, all = -1;
  MPI_Status status;
  for (int i = 0; i < kRecords; ++i) {
    unsigned char record[kMost];
    const int length = make_record(record, rank, i);
    sum += length;
    if (form == 0) {
      OK(MPI_File_write_ordered(file, record, length, MPI_BYTE, &status));
    } else {
      OK(MPI_File_write_ordered_begin(file, record, length, MPI_BYTE));
      OK(MPI_File_write_ordered_end(file, record, &status));
    }
    CHECK(count_of(&status, MPI_BYTE) == length);
  }
  OK(MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(shared_place() == all);
  meet();
  expect_records("ordered", 1);

  step = "ordered reads, some without data (29)";
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  CHECK(shared_place() == 0);
  OK(MPI_File_set_size(file, 0));
  int mine[3] = {rank, 10 + rank, 20 + rank}, back[3] = {-1, -1, -1};
  const int count = rank % 2 == 0 ? 3 : 0;
  OK(MPI_File_write_ordered(file, mine, count, MPI_INT, &status));
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  if (form == 0) {
    OK(MPI_File_read_ordered(file, back, count, MPI_INT, &status));
  } else {
    OK(MPI_File_read_ordered_begin(file, back, count, MPI_INT));
    OK(MPI_File_read_ordered_end(file, back, &status));
  }
  CHECK(count_of(&status, MPI_INT) == count);
  CHECK(memcmp(back, mine, count * sizeof(int)) == 0 && (count == 3 || back[0] == -1));
  CHECK(shared_place() == 3 * ((size + 1) / 2));

  step = "an ordered call that fails on one rank";
  if (size > 1) {
    expect_error(MPI_File_write_ordered(file, mine, rank == 1 ? -1 : 1, MPI_INT, &status),
                 MPI_ERR_COUNT, "");
    CHECK(shared_place() == 3 * ((size + 1) / 2));
  }
  OK(MPI_File_close(&file));
}

static void seeks(void) {
  step = "seeks of the shared pointer (30)";
  file = open_new("seeks");
  OK(MPI_File_set_size(file, 100));
  CHECK(shared_place() == 0);
  meet();
  OK(MPI_File_seek_shared(file, 10, MPI_SEEK_SET));
  CHECK(shared_place() == 10);
  meet();
  OK(MPI_File_seek_shared(file, 5, MPI_SEEK_CUR));
  CHECK(shared_place() == 15);
  meet();
  OK(MPI_File_seek_shared(file, -20, MPI_SEEK_END));
  CHECK(shared_place() == 80);
  meet();
  expect_error(MPI_File_seek_shared(file, -101, MPI_SEEK_END), MPI_ERR_ARG, "");
  expect_error(MPI_File_seek_shared(file, 0, 777), MPI_ERR_ARG, "");
  if (size > 1) {
    expect_error(MPI_File_seek_shared(file, rank, MPI_SEEK_SET), MPI_ERR_NOT_SAME, "");
    expect_error(MPI_File_seek_shared(file, 0, rank == 0 ? MPI_SEEK_SET : MPI_SEEK_CUR),
                 MPI_ERR_NOT_SAME, "");
  }
  CHECK(shared_place() == 80);
  OK(MPI_File_close(&file));
}

static void read_only_folder(void) {
  step = "a folder in which no file can be made (31)";
  if (rank == 0) make_file("locked", 100, 1);
  meet();
  const int before = entries_of_folder();
  if (rank == 0) CHECK(chmod(folder, 0555) == 0);
  meet();
  file = open_in(MPI_COMM_WORLD, "locked", MPI_MODE_RDONLY);
  char byte;
  OK(MPI_File_read_shared(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
  meet();
  CHECK(shared_place() == size && entries_of_folder() == before);
  OK(MPI_File_close(&file));
  meet();
  if (rank == 0) CHECK(chmod(folder, 0755) == 0 && unlink(in_folder("locked")) == 0);
  meet();
}

static void sequential(void) {
  step = "a sequential file (32)";
  file =
      open_in(MPI_COMM_WORLD, "sequence", MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL);
  char data[4] = {'a', 'b', 'c', '\n'};
  MPI_Offset offset;
  const int no = MPI_ERR_UNSUPPORTED_OPERATION;
  expect_error(MPI_File_write(file, data, 4, MPI_CHAR, MPI_STATUS_IGNORE), no, "SEQUENTIAL");
  expect_error(MPI_File_write_at(file, 0, data, 4, MPI_CHAR, MPI_STATUS_IGNORE), no, "");
  expect_error(MPI_File_write_all(file, data, 4, MPI_CHAR, MPI_STATUS_IGNORE), no, "");
  expect_error(MPI_File_seek(file, 0, MPI_SEEK_SET), no, "");
  expect_error(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), no, "");
  expect_error(MPI_File_get_position(file, &offset), no, "");
  expect_error(MPI_File_get_byte_offset(file, 0, &offset), no, "");
  expect_error(MPI_File_set_size(file, 0), no, "");
  expect_error(MPI_File_preallocate(file, 10), no, "");
  OK(MPI_File_write_shared(file, data, 4, MPI_CHAR, MPI_STATUS_IGNORE));
  expect_error(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL), MPI_ERR_ARG,
               "MPI_DISPLACEMENT_CURRENT"); /* 17 */
  OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR, "native",
                       MPI_INFO_NULL));
  OK(MPI_File_write_ordered(file, data, 4, MPI_CHAR, MPI_STATUS_IGNORE));
  MPI_Datatype etype, filetype;
  char datarep[MPI_MAX_DATAREP_STRING];
  OK(MPI_File_get_view(file, &offset, &etype, &filetype, datarep));
  CHECK(offset == 4 * size);
  OK(MPI_File_close(&file));
  meet();
  char all[8 * 8];
  CHECK(read_raw("sequence", 0, all, sizeof(all)) == 8 * size);
  for (int i = 0; i < 8 * size; ++i) CHECK(all[i] == data[i % 4]);
  meet();
  if (rank == 0) OK(MPI_File_delete(in_folder("sequence"), MPI_INFO_NULL));

  step = "a pipe (32)";
  if (rank == 0) CHECK(mkfifo(in_folder("pipe"), 0644) == 0);
  meet();
  int reader = -1;
  if (rank == 0) reader = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
  meet();
  file = open_in(MPI_COMM_WORLD, "pipe", MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  int value = 1000 + rank;
  OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_write_ordered(file, &value, rank == 0 ? 1 : 0, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  if (rank == 0) {
    for (int r = 0; r <= size; ++r) {
      CHECK(read(reader, &value, sizeof(value)) == sizeof(value));
      CHECK(value == 1000 + r % size);
    }
    CHECK(close(reader) == 0 && unlink(in_folder("pipe")) == 0);
  }
  meet();
}

int main(int argc, char** argv) {
  begin_files(argc, argv);
  for (int form = 0; form < 2; ++form) {
    shared_writes(form);
    ordered(form);
  }
  seeks();
  read_only_folder();
  sequential();
  return end_well("all shared pointers were right");
}
