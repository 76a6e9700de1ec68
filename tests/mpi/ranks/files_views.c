/* Views and pointers (MPI 5.0, section 14.3): where the bytes of a view lie, and what no view may
 * be.
 */
#include "tests/mpi/ranks/files.h"

static MPI_File file;

static int set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype) {
  return MPI_File_set_view(file, displacement, etype, filetype, "native", MPI_INFO_NULL);
}

static MPI_Offset byte_of(MPI_Offset offset) {
  MPI_Offset byte = -1;
  OK(MPI_File_get_byte_offset(file, offset, &byte));
  return byte;
}

static void first_view(void) {
  step = "the first view (15)";
  MPI_Offset displacement = -1;
  MPI_Datatype etype, filetype;
  char datarep[MPI_MAX_DATAREP_STRING];
  OK(MPI_File_get_view(file, &displacement, &etype, &filetype, datarep));
  CHECK(displacement == 0 && etype == MPI_BYTE && filetype == MPI_BYTE);
  CHECK(strcmp(datarep, "native") == 0);

  step = "types that are freed, and asked for (20)";
  MPI_Datatype vector = vector_of(3, 1, 4, MPI_INT, 0);
  OK(set_view(100, MPI_INT, vector));
  OK(MPI_Type_free(&vector));
  OK(MPI_File_get_view(file, &displacement, &etype, &filetype, datarep));
  int integers, addresses, types, combiner;
  OK(MPI_Type_get_envelope(etype, &integers, &addresses, &types, &combiner));
  CHECK(displacement == 100 && combiner == MPI_COMBINER_NAMED);
  OK(MPI_Type_get_envelope(filetype, &integers, &addresses, &types, &combiner));
  CHECK(combiner == MPI_COMBINER_VECTOR);
  OK(MPI_Type_free(&filetype));
  CHECK(byte_of(2) == 132 && byte_of(3) == 136);
  MPI_Aint extent;
  OK(MPI_File_get_type_extent(file, MPI_LONG, &extent)); /* 42 */
  CHECK(extent == sizeof(long));
}

static void wrong_views(void) {
  step = "views that are none (16, 17)";
  MPI_Datatype pair = committed(vector_of(2, 1, 3, MPI_BYTE, 0));
  expect_error(set_view(-2, MPI_BYTE, MPI_BYTE), MPI_ERR_ARG, "displacement");
  expect_error(set_view(MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE), MPI_ERR_ARG, "SEQUENTIAL");
  expect_error(set_view(0, MPI_DATATYPE_NULL, MPI_BYTE), MPI_ERR_TYPE, "etype");
  expect_error(set_view(0, MPI_BYTE, MPI_DATATYPE_NULL), MPI_ERR_TYPE, "filetype");
  expect_error(set_view(0, MPI_INT, pair), MPI_ERR_ARG, "etypes");
  expect_error(set_view(0, MPI_INT, MPI_FLOAT), MPI_ERR_ARG, "etypes");
  OK(MPI_Type_free(&pair));

  MPI_Datatype type;
  OK(MPI_Type_contiguous(3, MPI_INT, &type));
  expect_error(set_view(0, MPI_INT, type), MPI_ERR_TYPE, "MPI_Type_commit");
  OK(MPI_Type_free(&type));

  int lengths[] = {1, 1};
  const MPI_Aint back[] = {8, 0}, apart[] = {-4, 4}, odd[] = {0, 6}, twice[] = {0, 2};
  const MPI_Aint* const wrong[] = {back, apart, odd};
  const char* const texts[] = {"decrease", "negative", "holes"};
  for (int i = 0; i < 3; ++i) {
    OK(MPI_Type_create_hindexed(2, lengths, wrong[i], MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    expect_error(set_view(0, MPI_INT, type), MPI_ERR_ARG, texts[i]);
    OK(MPI_Type_free(&type));
  }
  OK(MPI_Type_create_hindexed(2, lengths, twice, MPI_INT, &type));
  OK(MPI_Type_commit(&type));
  expect_error(set_view(0, MPI_BYTE, type), MPI_ERR_ARG, "overlap");
  OK(MPI_Type_free(&type));
  OK(MPI_Type_create_resized(MPI_INT, 0, 0, &type));
  OK(MPI_Type_commit(&type));
  expect_error(set_view(0, MPI_INT, type), MPI_ERR_ARG, "extent");
  OK(MPI_Type_free(&type));
  expect_error(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "none", MPI_INFO_NULL),
               MPI_ERR_UNSUPPORTED_DATAREP, "registered");
  expect_error(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, NULL, MPI_INFO_NULL), MPI_ERR_ARG,
               "datarep");
  /* The view from before is still there. */
  CHECK(byte_of(2) == 132);

  step = "views that differ (18)";
  if (size > 1) {
    expect_error(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, rank == 0 ? "native" : "internal",
                                   MPI_INFO_NULL),
                 MPI_ERR_NOT_SAME, "");
    expect_error(set_view(0, rank == 0 ? MPI_INT : MPI_BYTE, MPI_INT), MPI_ERR_NOT_SAME, "");
    expect_error(set_view(rank == 0 ? -1 : 0, MPI_BYTE, MPI_BYTE), MPI_ERR_ARG, "");
  }
  step = "a file that may only be read may overlap (16)";
  if (rank == 0) make_file("short", 6, 1);
  meet();
  MPI_File read = open_in(MPI_COMM_WORLD, "short", MPI_MODE_RDONLY);
  OK(MPI_Type_create_hindexed(2, lengths, twice, MPI_INT, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_File_set_view(read, 0, MPI_BYTE, type, "native", MPI_INFO_NULL));
  unsigned char bytes[8], all[6];
  OK(MPI_File_read(read, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE));
  fill(all, 6, 1);
  CHECK(memcmp(bytes, all, 4) == 0 && memcmp(bytes + 4, all + 2, 4) == 0);
  OK(MPI_Type_free(&type));
  OK(MPI_File_close(&read));
  meet();
  if (rank == 0) OK(MPI_File_delete(in_folder("short"), MPI_INFO_NULL));
}

static void empty_views(void) {
  step = "empty filetypes (19)";
  MPI_Datatype none;
  OK(MPI_Type_contiguous(0, MPI_INT, &none));
  OK(MPI_Type_commit(&none));
  for (int some = 0; some < 2; ++some) {
    const int is_empty = !some || rank == 0;
    OK(set_view(0, MPI_INT, is_empty ? none : MPI_INT));
    int data[2] = {rank, rank};
    MPI_Status status;
    OK(MPI_File_write_at_all(file, is_empty ? 0 : 2 * rank, data, is_empty ? 0 : 2, MPI_INT,
                             &status));
    CHECK(count_of(&status, MPI_INT) == (is_empty ? 0 : 2));
    if (is_empty) {
      expect_error(MPI_File_write(file, data, 1, MPI_INT, &status), MPI_ERR_ARG, "empty");
      OK(MPI_File_seek(file, 0, MPI_SEEK_END));
      CHECK(place(file) == 0);
    }
    meet();
  }
  OK(MPI_Type_free(&none));
  OK(MPI_File_set_size(file, 0));
}

static void positions(void) {
  step = "positions in a view with holes (23)";
  MPI_Datatype vector = vector_of(3, 1, 4, MPI_BYTE, 12);
  OK(set_view(0, MPI_BYTE, vector));
  CHECK(byte_of(0) == 0 && byte_of(2) == 8 && byte_of(3) == 12 && byte_of(4) == 16);
  MPI_Offset byte;
  expect_error(MPI_File_get_byte_offset(file, -1, &byte), MPI_ERR_ARG, "offset");
  OK(MPI_File_seek(file, 7, MPI_SEEK_SET));
  expect_error(MPI_File_seek(file, -8, MPI_SEEK_CUR), MPI_ERR_ARG, "");
  expect_error(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG, "");
  expect_error(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG, "whence");
  CHECK(place(file) == 7);
  OK(MPI_File_seek(file, -3, MPI_SEEK_CUR));
  CHECK(place(file) == 4);
  expect_error(MPI_File_read_at(file, -1, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG, "");

  step = "the end of a file in a view (24)";
  const MPI_Offset ends[][2] = {{20, 5}, {0, 0}, {1, 1}, {4, 1}, {5, 2}, {12, 3}, {13, 4}};
  for (int i = 0; i < 7; ++i) {
    OK(MPI_File_set_size(file, ends[i][0]));
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    CHECK(place(file) == ends[i][1]);
    OK(MPI_File_seek(file, 3, MPI_SEEK_END));
    CHECK(place(file) == ends[i][1] + 3);
    meet();
  }
  OK(set_view(1000, MPI_BYTE, vector)); /* behind the end (21) */
  OK(MPI_File_seek(file, 0, MPI_SEEK_END));
  CHECK(place(file) == 0 && byte_of(1) == 1004);
  OK(MPI_Type_free(&vector));

  step = "the end of files above 4 GiB (24)";
  vector = vector_of(2, 1, 3, MPI_DOUBLE, 6 * sizeof(double));
  OK(set_view(8, MPI_DOUBLE, vector));
  OK(MPI_File_set_size(file, 8 + 48 * (MPI_Offset)1000000000 + 30));
  OK(MPI_File_seek(file, 0, MPI_SEEK_END));
  CHECK(place(file) == 2 * (MPI_Offset)1000000000 + 2);
  OK(MPI_Type_free(&vector));
  OK(MPI_File_set_size(file, 0));

  step = "tiles of 2^40 bytes, and places beyond 2^63 (21)";
  OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)1 << 40, &vector));
  OK(MPI_Type_commit(&vector));
  OK(set_view(0, MPI_INT, vector));
  CHECK(byte_of(5) == (MPI_Offset)5 << 40);
  expect_error(MPI_File_get_byte_offset(file, (MPI_Offset)1 << 40, &byte), MPI_ERR_ARG, "2^63");
  int value = 1;
  expect_error(MPI_File_read_at(file, (MPI_Offset)1 << 40, &value, 1, MPI_INT, MPI_STATUS_IGNORE),
               MPI_ERR_ARG, "2^63");
  expect_error(MPI_File_read_at(file, (MPI_Offset)1 << 62, &value, 1, MPI_INT, MPI_STATUS_IGNORE),
               MPI_ERR_ARG, "2^63");
  OK(MPI_Type_free(&vector));
}

static void pointers(void) {
  step = "the own pointer (25, 26, 27)";
  OK(set_view(0, MPI_INT, MPI_INT));
  int data[100];
  for (int i = 0; i < 100; ++i) data[i] = i;
  OK(MPI_File_set_size(file, 0));
  if (rank == 0) OK(MPI_File_write_at(file, 0, data, 5, MPI_INT, MPI_STATUS_IGNORE));
  meet();
  MPI_Status status;
  memset(data, -1, sizeof(data));
  OK(MPI_File_read(file, data, 100, MPI_INT, &status));
  CHECK(place(file) == 100 && count_of(&status, MPI_INT) == 5); /* 25, 36 */
  CHECK(data[4] == 4 && data[5] == -1);
  OK(MPI_File_read_at(file, 3, data, 1, MPI_INT, &status));
  CHECK(place(file) == 100 && data[0] == 3);
  expect_error(MPI_File_read(file, data, 3, MPI_BYTE, &status), MPI_ERR_ARG, "etypes"); /* 26 */
  CHECK(place(file) == 100);
  OK(MPI_File_seek(file, 4, MPI_SEEK_SET));
  MPI_Request request;
  OK(MPI_File_iread(file, data, 10, MPI_INT, &request));
  CHECK(place(file) == 14);
  OK(MPI_Wait(&request, &status));
  CHECK(count_of(&status, MPI_INT) == 1 && data[0] == 4);
  meet();
}

/* Rank r sees each size-th block of `block` ints: all together write the file. */
static void interleaved(int block, int tiles, int collective) {
  step = "views that interleave (21, 37)";
  MPI_Datatype type = vector_of(1, block, block, MPI_INT, (MPI_Aint)block * size * 4);
  OK(set_view((MPI_Offset)rank * block * 4, MPI_INT, type));
  OK(MPI_Type_free(&type));
  const int count = block * tiles;
  int* const data = malloc(sizeof(int) * count);
  for (int i = 0; i < count; ++i) data[i] = 1000000 * rank + i;
  OK(MPI_File_set_size(file, 0));
  MPI_Status status;
  if (collective) {
    OK(MPI_File_write_all(file, data, count, MPI_INT, &status));
  } else {
    OK(MPI_File_write(file, data, count, MPI_INT, &status));
  }
  CHECK(count_of(&status, MPI_INT) == count && place(file) == count);
  meet();
  CHECK(size_of_file(file) == (MPI_Offset)count * size * 4);
  memset(data, 0, sizeof(int) * count);
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  if (collective) {
    OK(MPI_File_read_all(file, data, count, MPI_INT, &status));
  } else {
    OK(MPI_File_read(file, data, count, MPI_INT, &status));
  }
  CHECK(count_of(&status, MPI_INT) == count);
  for (int i = 0; i < count; ++i) CHECK(data[i] == 1000000 * rank + i);
  int* const all = malloc(sizeof(int) * count * size);
  CHECK(read_raw("views", 0, all, sizeof(int) * count * size) ==
        (ssize_t)sizeof(int) * count * size);
  for (int i = 0; i < count * size; ++i) {
    const int owner = i / block % size;
    CHECK(all[i] == 1000000 * owner + i / (block * size) * block + i % block);
  }
  free(all);
  free(data);
  meet();
}

static void tiles_inside_each_other(void) {
  step = "tiles that interleave by their own extent (21)";
  MPI_Datatype type = vector_of(3, 1, 4, MPI_BYTE, 1); /* bytes 0 4 8, 1 5 9, 2 6 10, 3 7 11 */
  OK(set_view(12 * rank, MPI_BYTE, type));
  unsigned char data[12], back[12], raw[12];
  fill(data, 12, 60 + rank);
  OK(MPI_File_write_at(file, 0, data, 12, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(file, 0, back, 12, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(memcmp(data, back, 12) == 0);
  CHECK(read_raw("views", 12 * rank, raw, 12) == 12);
  for (int i = 0; i < 12; ++i) CHECK(raw[i % 3 * 4 + i / 3] == data[i]);
  OK(MPI_Type_free(&type));
  meet();
}

static void subarrays(void) {
  step = "subarrays, and lists of them (mpich#7169)";
  const int sizes[] = {6, 8}, subsizes[] = {2, 3}, starts[] = {1, 2};
  MPI_Datatype part, list;
  OK(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &part));
  const int lengths[] = {1, 2};
  const int displacements[] = {0, 2};
  OK(MPI_Type_indexed(2, lengths, displacements, part, &list));
  OK(MPI_Type_commit(&list));
  OK(MPI_File_set_size(file, 0));
  OK(set_view(0, MPI_INT, list));
  int data[18], raw[4 * 48];
  for (int i = 0; i < 18; ++i) data[i] = i + 1;
  if (rank == 0) OK(MPI_File_write(file, data, 18, MPI_INT, MPI_STATUS_IGNORE));
  meet();
  memset(raw, 0, sizeof(raw));
  const int last = 3 * 48 + 2 * 8 + 4;
  CHECK(size_of_file(file) == (last + 1) * 4);
  CHECK(read_raw("views", 0, raw, sizeof(raw)) == (last + 1) * 4);
  int written = 0;
  for (int i = 0; i < 4 * 48; ++i) {
    const int row = i % 48 / 8, column = i % 8;
    const int is_in = i / 48 != 1 && row >= 1 && row < 3 && column >= 2 && column < 5;
    CHECK(raw[i] == (is_in ? ++written : 0));
  }
  CHECK(written == 18);
  OK(MPI_Type_free(&list));
  OK(MPI_Type_free(&part));
  meet();

  step = "status of strided reads at the end (36)";
  MPI_Datatype vector = vector_of(1, 1, 1, MPI_INT, 16);
  OK(MPI_File_set_size(file, 20));
  OK(set_view(0, MPI_INT, vector));
  MPI_Status status;
  OK(MPI_File_read(file, data, 10, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 2);
  OK(MPI_File_read_at_all(file, rank == 0 ? 0 : 1, data, 10, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == (rank == 0 ? 2 : 1));
  meet(); /* before the size changes */
  OK(MPI_File_set_size(file, 18));
  OK(MPI_File_read_at(file, 0, data, 10, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == MPI_UNDEFINED);
  OK(MPI_File_read_at(file, 0, data, 0, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 0);
  OK(MPI_Type_free(&vector));
}

static void many_pieces(void) {
  step = "a filetype of ten million pieces (22)";
  MPI_Datatype type = vector_of(10000000, 1, 2, MPI_BYTE, 0);
  OK(MPI_File_set_size(file, 0));
  OK(set_view(0, MPI_BYTE, type));
  unsigned char data[100], back[100];
  fill(data, 100, rank);
  const MPI_Offset offset = 9000000 + 1000 * rank;
  OK(MPI_File_write_at(file, offset, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(file, offset, back, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(memcmp(data, back, 100) == 0 && byte_of(offset) == 2 * offset);
  OK(MPI_Type_free(&type));
}

/* In KiB, at most until now. */
static long peak_of_memory(void) {
  char line[200];
  long peak = -1;
  FILE* const status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
    if (strncmp(line, "VmHWM:", 6) == 0) peak = atol(line + 6);
  }
  CHECK(status != NULL && fclose(status) == 0 && peak > 0);
  return peak;
}

static int is_one_node(void) {
  MPI_Comm node;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  const int ranks = size_of(node);
  OK(MPI_Comm_free(&node));
  return ranks == size;
}

/* Lists of these pieces would take 160 MB and more. */
static void many_pieces_together(void) {
  step = "ten million pieces of each rank, in one call (22)";
  enum { kPieces = 10000000, kMostGrowth = 64 << 10 };
  if (size == 1 || !is_one_node()) return; /* a system call for each piece */
  unsigned char* const data = malloc(kPieces);
  unsigned char* const back = malloc(kPieces);
  fill(data, kPieces, rank);
  memset(back, 0, kPieces);
  const long before_all = peak_of_memory();
  MPI_Datatype type = vector_of(kPieces, 1, size, MPI_BYTE, 0);
  OK(set_view(rank, MPI_BYTE, type));
  OK(MPI_Type_free(&type));
  OK(MPI_File_write_all(file, data, kPieces, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(size_of_file(file) == (MPI_Offset)kPieces * size);
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  OK(MPI_File_read_all(file, back, kPieces, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(memcmp(data, back, kPieces) == 0);
  CHECK(peak_of_memory() - before_all < kMostGrowth);
  free(data);
  free(back);
}

int main(int argc, char** argv) {
  begin_files(argc, argv);
  file = open_new("views");
  first_view();
  wrong_views();
  empty_views();
  positions();
  pointers();
  for (int collective = 0; collective < 2; ++collective) {
    interleaved(1, 100, collective);
    interleaved(1000, 10, collective);
    interleaved(17, 50, collective);
  }
  tiles_inside_each_other();
  subarrays();
  many_pieces();
  many_pieces_together();
  OK(MPI_File_close(&file));
  return end_well("all views were right");
}
