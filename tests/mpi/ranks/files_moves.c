/* Reads and writes of files (MPI 5.0, section 14.4): every form, memory of every layout, what a
 * status says, neighbouring bytes, and atomic mode.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "tests/mpi/ranks/files.h"

enum { kInts = 5000 };

static MPI_File file;
static int data[kInts], back[kInts];

static void number(int mark) {
  for (int i = 0; i < kInts; ++i) data[i] = mark * 1000000 + rank * 100000 + i;
}

static void forget(void) {
  meet();
  memset(back, -1, sizeof(back));
}

static void expect_back(const MPI_Status* status, int count) {
  CHECK(count_of(status, MPI_INT) == count);
  CHECK(memcmp(back, data, count * sizeof(int)) == 0);
  for (int i = count; i < kInts; ++i) CHECK(back[i] == -1);
}

static const int kCount = 1234;

static void all_forms(void) {
  const MPI_Offset at = (MPI_Offset)kCount * rank;
  MPI_Status status;
  MPI_Request request;
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));

  step = "explicit offsets";
  number(1);
  OK(MPI_File_write_at(file, at, data, kCount, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == kCount);
  forget();
  OK(MPI_File_read_at(file, at, back, kCount, MPI_INT, &status));
  expect_back(&status, kCount);

  step = "explicit offsets, together";
  number(2);
  OK(MPI_File_write_at_all(file, at, data, kCount, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == kCount);
  forget();
  OK(MPI_File_read_at_all(file, at, back, kCount, MPI_INT, &status));
  expect_back(&status, kCount);

  step = "the own pointer";
  number(3);
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  OK(MPI_File_write(file, data, kCount, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == kCount && place(file) == at + kCount);
  forget();
  OK(MPI_File_seek(file, -kCount, MPI_SEEK_CUR));
  OK(MPI_File_read(file, back, kCount, MPI_INT, &status));
  expect_back(&status, kCount);

  step = "the own pointer, together";
  number(4);
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  OK(MPI_File_write_all(file, data, kCount, MPI_INT, &status));
  forget();
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  OK(MPI_File_read_all(file, back, kCount, MPI_INT, &status));
  expect_back(&status, kCount);

  step = "large counts";
  number(5);
  OK(MPI_File_write_at_c(file, at, data, kCount, MPI_INT, &status));
  forget();
  OK(MPI_File_read_at_all_c(file, at, back, kCount, MPI_INT, &status));
  expect_back(&status, kCount);

  step = "calls that do not block (35)";
  number(6);
  int other = -1;
  MPI_Request both[2];
  MPI_Status statuses[2];
  OK(MPI_File_iwrite_at(file, at, data, kCount, MPI_INT, &both[0]));
  OK(MPI_Irecv(&other, 1, MPI_INT, before, 3, MPI_COMM_WORLD, &both[1]));
  OK(MPI_Send(&rank, 1, MPI_INT, next, 3, MPI_COMM_WORLD));
  OK(MPI_Waitall(2, both, statuses));
  CHECK(count_of(&statuses[0], MPI_INT) == kCount && other == before);
  forget();
  OK(MPI_File_iread_at(file, at, back, kCount, MPI_INT, &request));
  int flag = 0;
  while (!flag) OK(MPI_Test(&request, &flag, &status));
  CHECK(request == MPI_REQUEST_NULL);
  expect_back(&status, kCount);
  number(7);
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  OK(MPI_File_iwrite(file, data, kCount / 2, MPI_INT, &both[0]));
  OK(MPI_File_iwrite_all(file, data + kCount / 2, kCount - kCount / 2, MPI_INT, &both[1]));
  CHECK(place(file) == at + kCount);
  int index = -1;
  OK(MPI_Waitany(2, both, &index, &status));
  CHECK(index == 0 || index == 1);
  OK(MPI_Wait(&both[1 - index], &status));
  forget();
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  OK(MPI_File_iread_all(file, back, kCount, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  expect_back(&status, kCount);
  number(8);
  OK(MPI_File_iwrite_at_all(file, at, data, kCount, MPI_INT, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  forget();
  OK(MPI_File_iread_at_all(file, at, back, kCount, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  expect_back(&status, kCount);
  OK(MPI_File_iwrite_at(file, at, data, 1, MPI_INT, &request));
  OK(MPI_Request_free(&request));
}

static void split(void) {
  const MPI_Offset at = (MPI_Offset)kCount * rank;
  MPI_Status status;
  step = "split collectives (33, 34)";
  expect_error(MPI_File_write_at_all_begin(file, at, data, -1, MPI_INT), MPI_ERR_COUNT, "");
  expect_error(MPI_File_write_at_all_end(file, data, &status), MPI_ERR_IO, "begun");
  number(9);
  OK(MPI_File_write_at_all_begin(file, at, data, kCount, MPI_INT));
  expect_error(MPI_File_read_all_begin(file, back, 1, MPI_INT), MPI_ERR_IO, "split");
  expect_error(MPI_File_read_all_end(file, back, &status), MPI_ERR_IO, "another kind");
  MPI_File same = file;
  expect_error(MPI_File_close(&same), MPI_ERR_IO, "split");
  OK(MPI_File_write_at_all_end(file, data, &status));
  CHECK(count_of(&status, MPI_INT) == kCount);
  expect_error(MPI_File_write_at_all_end(file, data, &status), MPI_ERR_IO, "begun");
  forget();
  OK(MPI_File_read_at_all_begin(file, at, back, kCount, MPI_INT));
  OK(MPI_File_read_at_all_end(file, back, &status));
  expect_back(&status, kCount);
  number(10);
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  OK(MPI_File_write_all_begin_c(file, data, kCount, MPI_INT));
  OK(MPI_File_write_all_end(file, data, &status));
  forget();
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  OK(MPI_File_read_all_begin(file, back, kCount, MPI_INT));
  OK(MPI_File_read_all_end(file, back, &status));
  expect_back(&status, kCount);
  /* No rank waits for another's end. */
  number(11);
  OK(MPI_File_write_at_all_begin(file, at, data, kCount, MPI_INT));
  if (rank == 0 && size > 1) OK(MPI_Recv(back, 0, MPI_INT, 1, 8, MPI_COMM_WORLD, &status));
  OK(MPI_File_write_at_all_end(file, data, &status));
  if (rank == 1) OK(MPI_Send(back, 0, MPI_INT, 0, 8, MPI_COMM_WORLD));
  meet();
}

/* The last rank has not ended a split collective when all begin the next one, or close: its
 * refusal comes to all, and no rank waits for it.
 */
static void split_on_one_rank(void) {
  const MPI_Offset at = 0;
  const int is_last = rank == size - 1;
  MPI_Status status;
  if (size == 1) return;
  step = "a begin where one rank has not ended the one before";
  number(12);
  MPI_Datatype view = vector_of(1, 1, 1, MPI_INT, size * (MPI_Aint)sizeof(int)); /* in turns */
  OK(MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, view, "native",
                       MPI_INFO_NULL));
  OK(MPI_Type_free(&view));
  OK(MPI_File_write_at_all_begin(file, at, data, kCount, MPI_INT));
  if (!is_last) OK(MPI_File_write_at_all_end(file, data, &status));
  OK(MPI_File_seek(file, at, MPI_SEEK_SET)); /* ranks that are not refused may write */
  for (int form = 0; form < 3; ++form) {
    const int error = form == 0   ? MPI_File_read_at_all_begin(file, at, back, kCount, MPI_INT)
                      : form == 1 ? MPI_File_write_all_begin(file, data, 1, MPI_INT)
                                  : MPI_File_write_ordered_begin(file, data, 1, MPI_INT);
    if (is_last) {
      expect_error(error, MPI_ERR_IO, "a split collective");
      continue;
    }
    OK(error);
    expect_error(form == 0   ? MPI_File_read_at_all_end(file, back, &status)
                 : form == 1 ? MPI_File_write_all_end(file, data, &status)
                             : MPI_File_write_ordered_end(file, data, &status),
                 MPI_ERR_IO, "failed on rank");
  }
  step = "other collective calls there";
  expect_error(MPI_File_write_at_all(file, at, data, kCount, MPI_INT, &status), MPI_ERR_IO,
               is_last ? "a split collective" : "failed on rank");
  MPI_File same = file;
  expect_error(MPI_File_close(&same), MPI_ERR_IO,
               is_last ? "a split collective" : "failed on rank");
  CHECK(same == file);
  if (is_last) OK(MPI_File_write_at_all_end(file, data, &status));
  forget();
  OK(MPI_File_read_at_all(file, at, back, kCount, MPI_INT, &status));
  expect_back(&status, kCount);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
}

/* Ranks need not all give hints, and one may give a wrong handle. */
static void hints_of_one_rank(void) {
  const MPI_Offset at = (MPI_Offset)kCount * rank;
  MPI_Status status;
  step = "hints that one rank gives";
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int round = 0; round < 3; ++round) {
    MPI_Info info = info_with("cb_buffer_size", "1048576");
    MPI_Info gone = info;
    if (round == 1) OK(MPI_File_set_info(file, rank == 0 ? info : MPI_INFO_NULL));
    OK(MPI_Info_free(&info));
    if (round == 2 && rank == 0) expect_error(MPI_File_set_info(file, gone), MPI_ERR_INFO, "");
    if (round == 2 && rank != 0) OK(MPI_File_set_info(file, MPI_INFO_NULL));
    number(13 + round);
    OK(MPI_File_write_at_all(file, at, data, kCount, MPI_INT, MPI_STATUS_IGNORE));
    forget();
    OK(MPI_File_read_at_all(file, at, back, kCount, MPI_INT, &status));
    expect_back(&status, kCount);
  }
}

static void short_reads(void) {
  step = "reads at the end of the file (36)";
  OK(MPI_File_set_size(file, 5 * sizeof(int)));
  for (int form = 0; form < 6; ++form) {
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    memset(back, -1, sizeof(back));
    memset(&status, -1, sizeof(status));
    OK(MPI_File_seek(file, 2, MPI_SEEK_SET));
    switch (form) {
      case 0:
        OK(MPI_File_read_at(file, 2, back, 100, MPI_INT, &status));
        break;
      case 1:
        OK(MPI_File_read(file, back, 100, MPI_INT, &status));
        break;
      case 2:
        OK(MPI_File_read_at_all(file, 2, back, 100, MPI_INT, &status));
        break;
      case 3:
        OK(MPI_File_read_all(file, back, 100, MPI_INT, &status));
        break;
      case 4:
        OK(MPI_File_iread_at(file, 2, back, 100, MPI_INT, &request));
        break;
      case 5:
        OK(MPI_File_iread_at_all(file, 2, back, 100, MPI_INT, &request));
        break;
    }
    if (form >= 4) OK(MPI_Wait(&request, &status));
    CHECK(count_of(&status, MPI_INT) == 3 && back[3] == -1);
    OK(MPI_File_read_at(file, 7, back, 100, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 0);
  }
  meet();
  step = "ranks without data (mpich#2332, ompi#7414)";
  MPI_Status status;
  memset(&status, -1, sizeof(status));
  const int count = rank % 2 == 0 ? 0 : 10;
  number(12);
  OK(MPI_File_write_at_all(file, 10 * rank, count == 0 ? NULL : data, count, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == count);
  forget();
  OK(MPI_File_read_at_all(file, 10 * rank, count == 0 ? NULL : back, count, MPI_INT, &status));
  expect_back(&status, count);
  meet();
}

static void memory_with_gaps(void) {
  step = "memory with gaps";
  MPI_Datatype third = vector_of(kInts / 3, 1, 3, MPI_INT, 0);
  MPI_Datatype view = vector_of(1, 2, 2, MPI_INT, 2 * sizeof(int) * size);
  MPI_Status status;
  OK(MPI_File_set_view(file, 2 * rank * sizeof(int), MPI_INT, view, "native", MPI_INFO_NULL));
  number(13);
  const int ints = kInts / 3;
  for (int form = 0; form < 3; ++form) {
    OK(MPI_File_set_size(file, 0));
    MPI_Request request;
    if (form == 0) OK(MPI_File_write_at(file, 0, data, 1, third, &status));
    if (form == 1) OK(MPI_File_write_at_all(file, 0, data, 1, third, &status));
    if (form == 2) {
      MPI_Datatype again;
      OK(MPI_Type_dup(third, &again));
      OK(MPI_File_iwrite_at(file, 0, data, 1, again, &request));
      OK(MPI_Type_free(&again)); /* 35 */
      OK(MPI_Wait(&request, &status));
    }
    CHECK(count_of(&status, third) == 1 && count_of(&status, MPI_INT) == ints);
    forget();
    OK(MPI_File_read_at(file, 0, back, 1, third, &status));
    CHECK(count_of(&status, third) == 1);
    for (int i = 0; i < 3 * ints; ++i) CHECK(back[i] == (i % 3 == 0 ? data[i] : -1));
    memset(back, -1, sizeof(back));
    OK(MPI_File_read_at(file, 0, back, ints, MPI_INT, &status));
    for (int i = 0; i < ints; ++i) CHECK(back[i] == data[3 * i]);
    meet();
  }
  step = "a short read into memory with gaps";
  OK(MPI_File_set_size(file, 2 * sizeof(int) * size)); /* two ints of each rank */
  forget();
  OK(MPI_File_read_at_all(file, 0, back, 1, third, &status));
  CHECK(count_of(&status, MPI_INT) == 2 && count_of(&status, third) == MPI_UNDEFINED);
  CHECK(back[0] == data[0] && back[3] == data[3] && back[6] == -1);
  OK(MPI_Type_free(&third));
  OK(MPI_Type_free(&view));
  meet();
}

static void neighbours(void) {
  step = "small pieces beside others' (37)";
  /* Rank r writes bytes r, r + size, ...; every second rank in one call for each byte. */
  enum { kBytes = 999 };
  unsigned char mine[kBytes], all[kBytes * 8];
  CHECK(size <= 8);
  for (int round = 0; round < 3; ++round) {
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_set_size(file, 0));
    fill(mine, kBytes, 10 * round + rank);
    MPI_File own = open_in(MPI_COMM_SELF, "moves", MPI_MODE_RDWR);
    if (rank % 2 == round % 2) {
      for (int i = 0; i < kBytes; ++i) {
        OK(MPI_File_write_at(own, i * size + rank, &mine[i], 1, MPI_BYTE, MPI_STATUS_IGNORE));
      }
    } else {
      MPI_Datatype type = vector_of(1, 1, 1, MPI_BYTE, size);
      OK(MPI_File_set_view(own, rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
      OK(MPI_File_write(own, mine, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
      OK(MPI_Type_free(&type));
    }
    OK(MPI_File_close(&own));
    meet();
    OK(MPI_File_read_at_all(file, 0, all, kBytes * size, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int r = 0; r < size; ++r) {
      for (int i = 0; i < kBytes; ++i) mine[i] = all[i * size + r];
      CHECK(is_filled(mine, kBytes, 10 * round + r));
    }
    meet();
  }
}

static void atomic_mode(void) {
  step = "atomic mode (38)";
  int flag = -1;
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag == 0);
  if (size > 1) {
    expect_error(MPI_File_set_atomicity(file, rank == 0), MPI_ERR_NOT_SAME, "flag");
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag == 0);
  }
  OK(MPI_File_set_atomicity(file, 1));
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag == 1);
  /* All write the same strided bytes: the last one wins for all of them. */
  enum { kBlocks = 2000 };
  MPI_Datatype type = vector_of(kBlocks, 1, 3, MPI_INT, 0);
  OK(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL));
  OK(MPI_File_set_size(file, 0));
  for (int i = 0; i < kBlocks; ++i) data[i] = 0;
  if (rank == 0) OK(MPI_File_write_at(file, 0, data, kBlocks, MPI_INT, MPI_STATUS_IGNORE));
  meet();
  for (int round = 1; round <= 20; ++round) {
    for (int i = 0; i < kBlocks; ++i) data[i] = round * 100 + rank;
    OK(MPI_File_write_at(file, 0, data, kBlocks, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 0, back, kBlocks, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 1; i < kBlocks; ++i) CHECK(back[i] == back[0]);
  }
  meet();
  step = "a file that is opened twice keeps its locks (40)";
  MPI_File again = open_in(MPI_COMM_SELF, "moves", MPI_MODE_RDWR);
  OK(MPI_File_set_atomicity(again, 1));
  OK(MPI_File_write_at(again, 0, data, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&again));
  OK(MPI_File_read_at(file, 0, back, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_Type_free(&type));
  meet();
  OK(MPI_File_set_atomicity(file, 0));
}

/* The kernel moves less than 2 GiB in a call (mpich#1742, #2886). Memory that nobody has touched,
 * and a device that looks at nothing, make it cheap.
 */
static void large(void) {
  step = "2 GiB and more in one call";
  MPI_File null;
  OK(MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &null));
  const size_t room = ((size_t)1 << 32) + 8192;
  void* const memory =
      mmap(NULL, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  const MPI_Count counts[] = {((MPI_Count)1 << 31) - 4096, (MPI_Count)1 << 31,
                              ((MPI_Count)1 << 31) + 4096, room};
  for (int i = 0; i < 4; ++i) {
    MPI_Status status;
    MPI_Count count = -1;
    OK(MPI_File_write_at_c(null, 0, memory, counts[i], MPI_BYTE, &status));
    OK(MPI_Get_count_c(&status, MPI_BYTE, &count));
    CHECK(count == counts[i]);
  }
  MPI_Datatype page;
  OK(MPI_Type_contiguous(4096, MPI_BYTE, &page));
  OK(MPI_Type_commit(&page));
  MPI_Status status;
  OK(MPI_File_write_at_all(null, 0, memory, (1 << 20) + 1, page, &status));
  CHECK(count_of(&status, page) == (1 << 20) + 1);
  OK(MPI_Type_free(&page));
  OK(MPI_File_close(&null));
  CHECK(munmap(memory, room) == 0);
}

int main(int argc, char** argv) {
  begin_files(argc, argv);
  file = open_new("moves");
  all_forms();
  split();
  split_on_one_rank();
  hints_of_one_rank();
  short_reads();
  memory_with_gaps();
  neighbours();
  atomic_mode();
  large();
  OK(MPI_File_close(&file));
  return end_well("all moves were right");
}
