/* Files of MPI: one case for several sizes.
 *
 *   io CASE FILE BATCH_MICROSECONDS BYTES...
 *
 * Rank 0 prints "BYTES FIGURE" for each size: megabytes per second of all ranks together,
 * microseconds of a call, or for `overlap` percent. The figure is a median over several batches of
 * about the given length. Rounds write over what the first one wrote, and end when the library's
 * call does: nothing is synced, so the page cache is what is measured. Before and after the batches
 * each rank compares its bytes of the file, which it reads by the system's calls, or its memory.
 *
 * Nothing here is Ferry's: each MPI library's own mpi.h compiles it.
 */
#include <fcntl.h>
#include <unistd.h>

#include "benchmarks/mpi/pattern.h"

enum { kMiB = 1 << 20, kMostBytes = 8 * kMiB, kMostPieces = 65536, kRows = 128 };

typedef struct {
  Side side;
  const char* path;
  const char* at; /* the case */
  MPI_File file;
  int fd; /* the same file, by the system's calls */
  MPI_Datatype filetype;
  MPI_Offset displacement;
  size_t bytes; /* of this rank's data in a round */
  size_t pieces;
  MPI_Offset* places; /* of the pieces, of side.size bytes each */
  char* data;
  char* read;
  double work_s; /* overlap: of computing */
  int64_t work;  /* steps of it */
} Run;

static int Is(const Run* run, const char* word) { return strstr(run->at, word) != NULL; }

/* ---- Shapes
 * -------------------------------------------------------------------------------------- */

static void Keep(Run* run, size_t pieces) {
  run->pieces = pieces;
  run->bytes = pieces * run->side.size;
  run->places = malloc(pieces * sizeof(MPI_Offset));
}

/* One piece in a row for each rank, behind each other. */
static void InARow(Run* run) {
  Keep(run, 1);
  run->displacement = run->places[0] = (MPI_Offset)run->side.rank * (MPI_Offset)run->side.size;
  BENCH_CHECK(MPI_Type_contiguous(1, MPI_BYTE, &run->filetype));
}

/* The ranks take turns, piece by piece. */
static void InTurns(Run* run) {
  const int size = (int)run->side.size;
  const size_t most = kMostBytes / run->side.size;
  Keep(run, most < kMostPieces ? most : kMostPieces);
  const MPI_Offset stride = (MPI_Offset)size * run->side.ranks;
  run->displacement = (MPI_Offset)size * run->side.rank;
  BENCH_CHECK(MPI_Type_vector((int)run->pieces, size, (int)stride, MPI_BYTE, &run->filetype));
  for (size_t i = 0; i < run->pieces; ++i) {
    run->places[i] = run->displacement + (MPI_Offset)i * stride;
  }
}

/* A box of kRows x kRows x (pieces of all ranks) doubles, cut along the last dimension. */
static void InABox(Run* run) {
  const int doubles = (int)(run->side.size / sizeof(double));
  const int all[3] = {kRows, kRows, doubles * run->side.ranks};
  const int part[3] = {kRows, kRows, doubles};
  const int start[3] = {0, 0, doubles * run->side.rank};
  BENCH_CHECK(
      MPI_Type_create_subarray(3, all, part, start, MPI_ORDER_C, MPI_DOUBLE, &run->filetype));
  Keep(run, (size_t)kRows * kRows);
  for (size_t i = 0; i < run->pieces; ++i) {
    run->places[i] =
        (MPI_Offset)((i * (size_t)run->side.ranks + (size_t)run->side.rank) * run->side.size);
  }
}

/* Each piece is that of a random rank. */
static void AtRandom(Run* run) {
  const size_t most = kMostBytes / run->side.size;
  const size_t all = (most < kMostPieces ? most : kMostPieces) * (size_t)run->side.ranks;
  Keep(run, all);
  MPI_Aint* const places = malloc(all * sizeof(MPI_Aint));
  uint64_t state = 12345;
  run->pieces = 0;
  for (size_t i = 0; i < all; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    if ((int)((state >> 33) % (uint64_t)run->side.ranks) == run->side.rank) {
      places[run->pieces] = (MPI_Aint)(i * run->side.size);
      run->places[run->pieces++] = (MPI_Offset)(i * run->side.size);
    }
  }
  run->bytes = run->pieces * run->side.size;
  BENCH_CHECK(MPI_Type_create_hindexed_block((int)run->pieces, (int)run->side.size, places,
                                             MPI_BYTE, &run->filetype));
  free(places);
}

/* ---- Rounds
 * -------------------------------------------------------------------------------------- */

static int Count(const Run* run) { return (int)run->bytes; }

static double work_sum; /* what is computed is used */

static void Work(int64_t steps) {
  double sum = work_sum;
  for (int64_t i = 0; i < steps; ++i) {
    sum = sum * 0.5 + (double)i;
  }
  work_sum = sum;
}

static void Overlapped(const Run* run, int64_t work) {
  MPI_Request request;
  if (Is(run, "iread")) {
    BENCH_CHECK(MPI_File_iread_at_all(run->file, 0, run->read, Count(run), MPI_BYTE, &request));
  } else {
    BENCH_CHECK(MPI_File_iwrite_at_all(run->file, 0, run->data, Count(run), MPI_BYTE, &request));
  }
  Work(work);
  BENCH_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void OpenAndClose(const Run* run) {
  MPI_File file;
  BENCH_CHECK(MPI_File_open(MPI_COMM_WORLD, run->path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  BENCH_CHECK(MPI_File_close(&file));
}

static void ByHand(const Run* run) {
  for (size_t i = 0; i < run->pieces; ++i) {
    if (pwrite(run->fd, run->data + i * run->side.size, run->side.size, run->places[i]) !=
        (ssize_t)run->side.size) {
      Mistaken(&run->side, "count of pwrite", i);
    }
  }
}

static void Round(const Run* run) {
  const int count = Count(run);
  if (Is(run, "open_close")) {
    OpenAndClose(run);
  } else if (Is(run, "by_hand")) {
    ByHand(run);
  } else if (Is(run, "overlap") || Is(run, "iwrite") || Is(run, "iread")) {
    Overlapped(run, run->work);
  } else if (Is(run, "shared")) {
    BENCH_CHECK(MPI_File_write_shared(run->file, run->data, count, MPI_BYTE, MPI_STATUS_IGNORE));
  } else if (Is(run, "ordered")) {
    BENCH_CHECK(MPI_File_write_ordered(run->file, run->data, count, MPI_BYTE, MPI_STATUS_IGNORE));
  } else if (Is(run, "read_all")) {
    BENCH_CHECK(MPI_File_read_at_all(run->file, 0, run->read, count, MPI_BYTE, MPI_STATUS_IGNORE));
  } else if (Is(run, "write_all")) {
    BENCH_CHECK(MPI_File_write_at_all(run->file, 0, run->data, count, MPI_BYTE, MPI_STATUS_IGNORE));
  } else if (Is(run, "read")) {
    BENCH_CHECK(MPI_File_read_at(run->file, 0, run->read, count, MPI_BYTE, MPI_STATUS_IGNORE));
  } else {
    BENCH_CHECK(MPI_File_write_at(run->file, 0, run->data, count, MPI_BYTE, MPI_STATUS_IGNORE));
  }
}

static double Repeat(void* context, int rounds) {
  const Run* const run = context;
  if (Is(run, "shared") || Is(run, "ordered")) {
    BENCH_CHECK(MPI_File_seek_shared(run->file, 0, MPI_SEEK_SET));
  }
  Barrier();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    Round(run);
  }
  return MeanOverRanks(Now() - start, run->side.ranks);
}

/* ---- Contents
 * ------------------------------------------------------------------------------------ */

static void CompareFile(const Run* run) {
  char* const there = malloc(run->side.size);
  for (size_t i = 0; i < run->pieces; ++i) {
    if (pread(run->fd, there, run->side.size, run->places[i]) != (ssize_t)run->side.size) {
      Mistaken(&run->side, "length of the file", i);
    }
    CompareBytes(&run->side, there, run->side.rank, i * run->side.size, run->side.size);
  }
  free(there);
}

/* Records of all ranks, in any order or in that of the ranks: each is whole. */
static void CompareRecords(const Run* run, int rounds) {
  const size_t size = run->side.size;
  char* const there = malloc(size);
  int* const of_rank = calloc((size_t)run->side.ranks, sizeof(int));
  for (int i = 0; i < rounds * run->side.ranks && run->side.rank == 0; ++i) {
    if (pread(run->fd, there, size, (off_t)i * (off_t)size) != (ssize_t)size) {
      Mistaken(&run->side, "length of the file", (size_t)i);
    }
    int owner = 0;
    while (owner < run->side.ranks && there[0] != Expected(owner, 0)) {
      ++owner;
    }
    if (owner == run->side.ranks || (Is(run, "ordered") && owner != i % run->side.ranks)) {
      Mistaken(&run->side, "record", (size_t)i);
    }
    CompareBytes(&run->side, there, owner, 0, size);
    of_rank[owner]++;
  }
  for (int rank = 0; rank < run->side.ranks && run->side.rank == 0; ++rank) {
    if (of_rank[rank] != rounds) {
      Mistaken(&run->side, "number of records", (size_t)rank);
    }
  }
  free(of_rank);
  free(there);
}

static void Check(Run* run) {
  enum { kRecords = 5 };
  Barrier();
  if (Is(run, "open_close")) {
    OpenAndClose(run);
  } else if (Is(run, "shared") || Is(run, "ordered")) {
    Repeat(run, kRecords);
    Barrier();
    CompareRecords(run, kRecords);
  } else if (Is(run, "read")) {
    memset(run->read, 0x55, run->bytes);
    Round(run);
    CompareBytes(&run->side, run->read, run->side.rank, 0, run->bytes);
  } else {
    for (size_t i = 0; i < run->pieces; ++i) {
      const char other = (char)~Expected(run->side.rank, i * run->side.size);
      if (pwrite(run->fd, &other, 1, run->places[i]) != 1) {
        Mistaken(&run->side, "count of pwrite", i);
      }
    }
    Barrier();
    Round(run);
    Barrier();
    CompareFile(run);
  }
  Barrier();
}

/* ---- One size
 * ------------------------------------------------------------------------------------ */

static void Open(Run* run) {
  run->displacement = 0;
  if (Is(run, "strided")) {
    InTurns(run);
  } else if (Is(run, "box")) {
    InABox(run);
  } else if (Is(run, "random")) {
    AtRandom(run);
  } else {
    InARow(run);
  }
  BENCH_CHECK(MPI_Type_commit(&run->filetype));
  run->data = PatternMemory("private", run->bytes);
  run->read = PatternMemory("private", run->bytes);
  FillBytes(run->data, run->side.rank, 0, run->bytes);
  BENCH_CHECK(MPI_File_open(MPI_COMM_WORLD, run->path, MPI_MODE_RDWR | MPI_MODE_CREATE,
                            MPI_INFO_NULL, &run->file));
  run->fd = open(run->path, O_RDWR);
  if (run->fd < 0) {
    Mistaken(&run->side, "file", 0);
  }
  if (Is(run, "shared") || Is(run, "ordered")) {
    return; /* in a view that all ranks have alike */
  }
  BENCH_CHECK(MPI_File_set_view(run->file, run->displacement, MPI_BYTE, run->filetype, "native",
                                MPI_INFO_NULL));
  ByHand(run);
}

static void Close(Run* run) {
  BENCH_CHECK(MPI_File_close(&run->file));
  BENCH_CHECK(MPI_Type_free(&run->filetype));
  close(run->fd);
  free(run->places);
  free(run->data);
  free(run->read);
  Barrier();
  if (run->side.rank == 0) {
    unlink(run->path);
  }
  Barrier();
}

/* The percentage of the write that is hidden behind computing of the same length. */
static double Overlap(Run* run, double batch_s) {
  const Side* const side = &run->side;
  run->work = 0;
  const double alone = MeasureTogether(Repeat, run, batch_s, side->rank, side->ranks);
  enum { kSteps = 1 << 22 };
  const double start = Now();
  Work(kSteps);
  const double step_s = MeanOverRanks((Now() - start) / kSteps, side->ranks);
  run->work = FromRank0((int64_t)(alone / step_s), side->rank, side->ranks);
  /* As the ranks compute at the same time. */
  Barrier();
  const double work_start = Now();
  for (int i = 0; i < 10; ++i) {
    Work(run->work);
  }
  const double work_s = MeanOverRanks((Now() - work_start) / 10, side->ranks);
  const double both = MeasureTogether(Repeat, run, batch_s, side->rank, side->ranks);
  const double hidden = (alone + work_s - both) / (alone < work_s ? alone : work_s);
  return 100 * (hidden < 0 ? 0 : hidden > 1 ? 1 : hidden);
}

static double Figure(Run* run, double batch_s) {
  const Side* const side = &run->side;
  if (Is(run, "overlap")) {
    return Overlap(run, batch_s);
  }
  const double round_s = MeasureTogether(Repeat, run, batch_s, side->rank, side->ranks);
  if (Is(run, "calls") || Is(run, "open_close")) {
    return round_s * 1e6;
  }
  double bytes = (double)run->bytes;
  return MeanOverRanks(bytes, side->ranks) * side->ranks / round_s / 1e6;
}

int main(int argc, char** argv) {
  Run run = {0};
  Start(&run.side.rank, &run.side.ranks);
  if (argc < 5) {
    fprintf(stderr, "usage: io CASE FILE BATCH_MICROSECONDS BYTES...\n");
    return 2;
  }
  run.at = argv[1];
  run.path = argv[2];
  const double batch_s = strtod(argv[3], NULL) * 1e-6;
  for (int i = 4; i < argc; ++i) {
    run.side.size = strtoull(argv[i], NULL, 10);
    if (run.side.size == 0 || run.side.size % sizeof(double) != 0 || run.side.size > kMostBytes) {
      fprintf(stderr, "io: \"%s\" is no size of whole doubles of up to 8 MiB\n", argv[i]);
      return 2;
    }
    Open(&run);
    Check(&run);
    const double figure = Figure(&run, batch_s);
    Check(&run);
    Close(&run);
    if (run.side.rank == 0) {
      printf("%zu %.5f\n", run.side.size, figure);
      fflush(stdout);
    }
  }
  Finish();
  return 0;
}
