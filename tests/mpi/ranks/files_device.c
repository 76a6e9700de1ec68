/* Reads and writes of files (MPI 5.0, section 14.4) whose data lie in device memory: every form, of
 * contiguous memory and with gaps, in views of a piece, of pieces between those of other ranks, and
 * of another representation. Host buffers, which other programs test, say what the file holds.
 */
#include "tests/mpi/ranks/files.h"
#include "tests/mpi/ranks/on_queue.h"

enum { kInts = 60000, kGapped = kInts / 3, kBlock = 16 };

static int *device_out, *device_in; /* of kInts */
static int *host, *expected;        /* the same */

/* Device memory, filled with the values of `mark`, or with -1. */
static void fill_device(int* device, int mark) {
  for (int i = 0; i < kInts; ++i) host[i] = mark < 0 ? -1 : mark * 1000000 + rank * 100000 + i;
  CHECK(ferry_memcpy(device, host, kInts * sizeof(int)) == FERRY_SUCCESS);
}

static void fetch(const int* device) {
  CHECK(ferry_memcpy(host, device, kInts * sizeof(int)) == FERRY_SUCCESS);
}

/* ---- Forms -------------------------------------------------------------------------------------
 */

enum form {
  kAt,
  kAtAll,
  kOwn,
  kAll,
  kShared,
  kOrdered,
  kIAt,
  kIAtAll,
  kIOwn,
  kIAll,
  kIShared,
  kAtAllSplit,
  kAllSplit,
  kOrderedSplit,
  kForms
};
static const char* const kNames[kForms] = {
    "_at",      "_at_all", "",      "_all",     "_shared",       "_ordered",   "i_at",
    "i_at_all", "i",       "i_all", "i_shared", "_at_all_begin", "_all_begin", "_ordered_begin"};

static int is_shared(enum form form) { return form == kShared || form == kIShared; }
static int is_at_shared(enum form form) {
  return is_shared(form) || form == kOrdered || form == kOrderedSplit;
}

static void wait_for(MPI_Request* request, MPI_Status* status) { OK(MPI_Wait(request, status)); }

static void write_by(enum form form, MPI_File file, MPI_Offset at, int* data, int count,
                     MPI_Datatype type, MPI_Status* status) {
  MPI_Request request;
  switch (form) {
    case kAt:
      OK(MPI_File_write_at(file, at, data, count, type, status));
      return;
    case kAtAll:
      OK(MPI_File_write_at_all(file, at, data, count, type, status));
      return;
    case kOwn:
      OK(MPI_File_write(file, data, count, type, status));
      return;
    case kAll:
      OK(MPI_File_write_all(file, data, count, type, status));
      return;
    case kShared:
      OK(MPI_File_write_shared(file, data, count, type, status));
      return;
    case kOrdered:
      OK(MPI_File_write_ordered(file, data, count, type, status));
      return;
    case kIAt:
      OK(MPI_File_iwrite_at(file, at, data, count, type, &request));
      break;
    case kIAtAll:
      OK(MPI_File_iwrite_at_all(file, at, data, count, type, &request));
      break;
    case kIOwn:
      OK(MPI_File_iwrite(file, data, count, type, &request));
      break;
    case kIAll:
      OK(MPI_File_iwrite_all(file, data, count, type, &request));
      break;
    case kIShared:
      OK(MPI_File_iwrite_shared(file, data, count, type, &request));
      break;
    case kAtAllSplit:
      OK(MPI_File_write_at_all_begin(file, at, data, count, type));
      OK(MPI_File_write_at_all_end(file, data, status));
      return;
    case kAllSplit:
      OK(MPI_File_write_all_begin(file, data, count, type));
      OK(MPI_File_write_all_end(file, data, status));
      return;
    default:
      OK(MPI_File_write_ordered_begin(file, data, count, type));
      OK(MPI_File_write_ordered_end(file, data, status));
      return;
  }
  wait_for(&request, status);
}

static void read_by(enum form form, MPI_File file, MPI_Offset at, int* data, int count,
                    MPI_Datatype type, MPI_Status* status) {
  MPI_Request request;
  switch (form) {
    case kAt:
      OK(MPI_File_read_at(file, at, data, count, type, status));
      return;
    case kAtAll:
      OK(MPI_File_read_at_all(file, at, data, count, type, status));
      return;
    case kOwn:
      OK(MPI_File_read(file, data, count, type, status));
      return;
    case kAll:
      OK(MPI_File_read_all(file, data, count, type, status));
      return;
    case kShared:
      OK(MPI_File_read_shared(file, data, count, type, status));
      return;
    case kOrdered:
      OK(MPI_File_read_ordered(file, data, count, type, status));
      return;
    case kIAt:
      OK(MPI_File_iread_at(file, at, data, count, type, &request));
      break;
    case kIAtAll:
      OK(MPI_File_iread_at_all(file, at, data, count, type, &request));
      break;
    case kIOwn:
      OK(MPI_File_iread(file, data, count, type, &request));
      break;
    case kIAll:
      OK(MPI_File_iread_all(file, data, count, type, &request));
      break;
    case kIShared:
      OK(MPI_File_iread_shared(file, data, count, type, &request));
      break;
    case kAtAllSplit:
      OK(MPI_File_read_at_all_begin(file, at, data, count, type));
      OK(MPI_File_read_at_all_end(file, data, status));
      return;
    case kAllSplit:
      OK(MPI_File_read_all_begin(file, data, count, type));
      OK(MPI_File_read_all_end(file, data, status));
      return;
    default:
      OK(MPI_File_read_ordered_begin(file, data, count, type));
      OK(MPI_File_read_ordered_end(file, data, status));
      return;
  }
  wait_for(&request, status);
}

/* Sets the pointers to where this rank's data are; at the shared one the ranks take turns. */
static void point_to(enum form form, MPI_File file, MPI_Offset at) {
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  if (is_at_shared(form)) OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
}

static void move(enum form form, int is_write, MPI_File file, MPI_Offset at, int* data, int count,
                 MPI_Datatype type, MPI_Status* status) {
  point_to(form, file, at);
  for (int turn = 0; turn < (is_shared(form) ? size : 1); ++turn) {
    meet();
    if (is_shared(form) && turn != rank) continue;
    if (is_write) write_by(form, file, at, data, count, type, status);
    if (!is_write) read_by(form, file, at, data, count, type, status);
  }
  meet();
}

/* ---- The bytes of the file
 * -----------------------------------------------------------------------
 */

struct memory {
  MPI_Datatype type;
  int count, ints, step; /* `ints` of data, `step` apart */
};

static void expect_device(const struct memory* memory, int mark, int there) {
  fetch(device_in);
  for (int i = 0; i < kInts; ++i) {
    const int is_data = i % memory->step == 0 && i / memory->step < there;
    CHECK(host[i] == (is_data ? mark * 1000000 + rank * 100000 + i : -1));
  }
}

static void try_form(enum form form, MPI_File file, int is_mixed, const struct memory* memory) {
  const int mark = 1 + form;
  const MPI_Offset at = is_mixed ? 0 : (MPI_Offset)memory->ints * rank;
  MPI_Status status;
  OK(MPI_File_set_size(file, 0));
  fill_device(device_out, mark);
  move(form, 1, file, at, device_out, memory->count, memory->type, &status);
  CHECK(count_of(&status, MPI_INT) == memory->ints);
  OK(MPI_File_read_at(file, at, expected, memory->ints, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = 0; i < memory->ints; ++i) {
    CHECK(expected[i] == mark * 1000000 + rank * 100000 + i * memory->step);
  }
  meet();
  fill_device(device_in, -1);
  move(form, 0, file, at, device_in, memory->count, memory->type, &status);
  CHECK(count_of(&status, MPI_INT) == memory->ints);
  expect_device(memory, mark, memory->ints);
}

/* A read behind whose first ints the file ends. */
static void short_reads(MPI_File file, const struct memory* memory) {
  step = "device memory, and the end of the file";
  const enum form forms[] = {kAt, kAtAll, kIAt, kAllSplit};
  const int there = memory->ints / 2 + 7;
  fill_device(device_out, 5);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int i = 0; i < 4; ++i) {
    for (int reader = 0; reader < size; ++reader) {
      MPI_Status status;
      OK(MPI_File_set_size(file, 0));
      if (rank == reader) {
        OK(MPI_File_write_at(file, 0, device_out, memory->count, memory->type, &status));
      }
      OK(MPI_File_set_size(file, there * (MPI_Offset)sizeof(int)));
      fill_device(device_in, -1);
      move(forms[i], 0, file, 0, device_in, memory->count, memory->type, &status);
      CHECK(count_of(&status, MPI_INT) == there);
      if (rank == reader) expect_device(memory, 5, there);
      meet();
    }
  }
}

/* One buffer in host memory, another on a device, in one collective call. */
static void mixed_ranks(MPI_File file) {
  step = "device memory of some ranks";
  MPI_Datatype type = vector_of(1, kBlock, kBlock, MPI_INT, (MPI_Aint)sizeof(int) * kBlock * size);
  OK(MPI_File_set_view(file, (MPI_Offset)sizeof(int) * kBlock * rank, MPI_INT, type, "native",
                       MPI_INFO_NULL));
  OK(MPI_Type_free(&type));
  for (int round = 0; round < 2; ++round) {
    const int on_device = rank % 2 == round;
    MPI_Status status;
    fill_device(device_out, 30 + round);
    fetch(device_out);
    OK(MPI_File_write_at_all(file, 0, on_device ? device_out : host, kInts, MPI_INT, &status));
    memset(expected, -1, kInts * sizeof(int));
    fill_device(device_in, -1);
    OK(MPI_File_read_at_all(file, 0, on_device ? expected : device_in, kInts, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == kInts);
    fetch(device_in);
    const int* const got = on_device ? expected : host;
    for (int i = 0; i < kInts; ++i) {
      CHECK(got[i] == (30 + round) * 1000000 + rank * 100000 + i);
    }
  }
}

int main(int argc, char** argv) {
  begin_files(argc, argv);
  device_out = on_device(kInts * sizeof(int));
  device_in = on_device(kInts * sizeof(int));
  host = malloc(kInts * sizeof(int));
  expected = malloc(kInts * sizeof(int));
  MPI_File file = open_new("device");
  MPI_Info info = info_with("ind_rd_buffer_size", "65536"); /* so that data go in parts */
  OK(MPI_Info_set(info, "ind_wr_buffer_size", "65536"));
  OK(MPI_File_set_info(file, info));
  OK(MPI_Info_free(&info));
  const struct memory memories[] = {
      {MPI_INT, kInts, kInts, 1},
      {vector_of(kGapped, 1, 3, MPI_INT, 0), 1, kGapped, 3},
  };
  MPI_Datatype blocks =
      vector_of(1, kBlock, kBlock, MPI_INT, (MPI_Aint)sizeof(int) * kBlock * size);
  for (int view = 0; view < 3; ++view) {
    for (int memory = 0; memory < 2; ++memory) {
      for (int form = 0; form < kForms; ++form) {
        static char name[100];
        snprintf(name, sizeof(name), "device memory %d, view %d, %s", memory, view, kNames[form]);
        step = name;
        const int is_mixed = view == 1;
        if (is_mixed && is_at_shared((enum form)form)) continue; /* needs the same view */
        OK(MPI_File_set_view(file, is_mixed ? (MPI_Offset)sizeof(int) * kBlock * rank : 0, MPI_INT,
                             is_mixed ? blocks : MPI_INT, view == 2 ? "external32" : "native",
                             MPI_INFO_NULL));
        try_form((enum form)form, file, is_mixed, &memories[memory]);
      }
    }
  }
  for (int memory = 0; memory < 2; ++memory) short_reads(file, &memories[memory]);
  mixed_ranks(file);
  OK(MPI_Type_free(&blocks));
  MPI_Datatype gapped = memories[1].type;
  OK(MPI_Type_free(&gapped));
  OK(MPI_File_close(&file));
  free(host);
  free(expected);
  CHECK(ferry_free(device_out) == FERRY_SUCCESS && ferry_free(device_in) == FERRY_SUCCESS);
  return end_well("all device buffers were right");
}
