/* Data representations of files (MPI 5.0, section 14.5): what the bytes of a file are, extents, and
 * representations of the program's own.
 */
#include <limits.h>
#include <stddef.h>

#include "tests/mpi/ranks/files.h"

static MPI_File file;

static void set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                     const char* datarep) {
  OK(MPI_File_set_view(file, displacement, etype, filetype, datarep, MPI_INFO_NULL));
}

static MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Aint extent = -1;
  MPI_Count large = -1;
  OK(MPI_File_get_type_extent(file, type, &extent));
  OK(MPI_File_get_type_extent_c(file, type, &large));
  CHECK(large == extent);
  return extent;
}

static void extents(void) {
  step = "extents (42)";
  MPI_Datatype vector = vector_of(3, 1, 2, MPI_LONG, 0), part;
  const int lengths[] = {1, 2};
  const MPI_Aint places[] = {0, 40};
  const MPI_Datatype types[] = {MPI_LONG, MPI_DOUBLE};
  OK(MPI_Type_create_struct(2, lengths, places, types, &part));
  OK(MPI_Type_commit(&part));
  set_view(0, MPI_BYTE, MPI_BYTE, "internal");
  CHECK(extent_of(MPI_LONG) == 8 && extent_of(vector) == 40 && extent_of(part) == 56);
  set_view(0, MPI_BYTE, MPI_BYTE, "external32");
  char datarep[MPI_MAX_DATAREP_STRING];
  MPI_Offset displacement;
  MPI_Datatype etype, filetype;
  OK(MPI_File_get_view(file, &displacement, &etype, &filetype, datarep));
  CHECK(strcmp(datarep, "external32") == 0 && etype == MPI_BYTE);
  CHECK(extent_of(MPI_INT) == 4 && extent_of(MPI_LONG) == 4 && extent_of(MPI_WCHAR) == 2);
  CHECK(extent_of(MPI_LONG_DOUBLE) == 16 && extent_of(MPI_DOUBLE) == 8);
  CHECK(extent_of(vector) == 20 && extent_of(part) == 56);
  OK(MPI_Type_free(&vector));
  OK(MPI_Type_free(&part));
}

static void external32(void) {
  step = "the bytes of external32 (41)";
  MPI_Status status;
  const int value = 0x01020304;
  unsigned char raw[400];
  set_view(100 * rank, MPI_INT, MPI_INT, "external32");
  OK(MPI_File_write(file, &value, 1, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 1);
  CHECK(read_raw("datareps", 100 * rank, raw, 4) == 4);
  CHECK(raw[0] == 1 && raw[1] == 2 && raw[2] == 3 && raw[3] == 4);

  step = "longs in a view with holes";
  MPI_Datatype view = vector_of(1, 1, 1, MPI_LONG, 0), strided;
  OK(MPI_Type_vector(4, 1, 2, MPI_LONG, &strided));
  OK(MPI_Type_commit(&strided));
  set_view(100 * rank, MPI_LONG, strided, "external32");
  long longs[8], back[8];
  for (int i = 0; i < 8; ++i) longs[i] = i % 2 ? -i - 1000 * rank : i + 1000 * rank;
  OK(MPI_File_write_at_all(file, 0, longs, 8, MPI_LONG, &status));
  CHECK(count_of(&status, MPI_LONG) == 8);
  MPI_Offset byte;
  OK(MPI_File_get_byte_offset(file, 5, &byte));
  CHECK(byte == 100 * rank + 28 + 8); /* a tile is 7 longs of 4 bytes */
  CHECK(read_raw("datareps", byte, raw, 4) == 4);
  const int fifth = (int)longs[5];
  CHECK(raw[0] == ((fifth >> 24) & 255) && raw[3] == (fifth & 255));
  memset(back, 0, sizeof(back));
  MPI_Request request;
  OK(MPI_File_iread_at(file, 0, back, 8, MPI_LONG, &request));
  OK(MPI_Wait(&request, &status));
  CHECK(count_of(&status, MPI_LONG) == 8 && memcmp(longs, back, sizeof(longs)) == 0);
  OK(MPI_Type_free(&view));
  OK(MPI_Type_free(&strided));

  step = "a number that external32 has no room for (43)";
  const long large = LONG_MAX;
  expect_error(MPI_File_write_at(file, 0, &large, 1, MPI_LONG, &status), MPI_ERR_CONVERSION,
               "external32");
  meet();

  step = "memory with gaps, of several types";
  struct pair {
    double number;
    char letter;
    long other;
  } pairs[10], read[10];
  const int lengths[] = {1, 1, 1};
  const MPI_Aint places[] = {offsetof(struct pair, number), offsetof(struct pair, letter),
                             offsetof(struct pair, other)};
  const MPI_Datatype types[] = {MPI_DOUBLE, MPI_CHAR, MPI_LONG};
  MPI_Datatype type;
  OK(MPI_Type_create_struct(3, lengths, places, types, &type));
  OK(MPI_Type_commit(&type));
  memset(read, -1, sizeof(read));
  for (int i = 0; i < 10; ++i) {
    pairs[i].number = i + 0.5 + rank;
    pairs[i].letter = (char)('a' + i);
    pairs[i].other = -i;
  }
  OK(MPI_File_set_size(file, 0));
  set_view(130 * rank, MPI_BYTE, MPI_BYTE, "external32"); /* 13 bytes each */
  OK(MPI_File_write_at(file, 0, pairs, 10, type, &status));
  CHECK(count_of(&status, type) == 10);
  meet();
  CHECK(size_of_file(file) == 130 * size);
  OK(MPI_File_read_at_all(file, 0, read, 10, type, &status));
  CHECK(count_of(&status, type) == 10);
  for (int i = 0; i < 10; ++i) {
    CHECK(read[i].number == pairs[i].number && read[i].letter == pairs[i].letter);
    CHECK(read[i].other == pairs[i].other);
    CHECK(*((char*)&read[i].letter + 1) == -1); /* the gap */
  }

  step = "a short read of external32 (36)";
  OK(MPI_File_set_size(file, 130 * (size - 1) + 37));
  if (rank == size - 1) {
    memset(read, -1, sizeof(read));
    OK(MPI_File_read_at(file, 0, read, 10, type, &status));
    int elements = -1;
    OK(MPI_Get_elements(&status, type, &elements));
    CHECK(count_of(&status, type) == MPI_UNDEFINED && elements == 8);
    CHECK(read[2].number == pairs[2].number && read[2].letter == 'c' && read[1].other == -1);
    CHECK(*(char*)&read[2].other == -1 && *(char*)&read[3].number == -1);
  }
  OK(MPI_Type_free(&type));
  meet();

  step = "pairs, and numbers that grow";
  struct {
    double value;
    int index;
  } pair = {2.5 + rank, rank}, other = {0, 0};
  long double wide = 1.25L + rank, again = 0;
  OK(MPI_File_set_size(file, 0));
  set_view(100 * rank, MPI_BYTE, MPI_BYTE, "external32");
  OK(MPI_File_write(file, &pair, 1, MPI_DOUBLE_INT, &status));
  OK(MPI_File_write(file, &wide, 1, MPI_LONG_DOUBLE, &status));
  CHECK(place(file) == 12 + 16);
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  OK(MPI_File_read(file, &other, 1, MPI_DOUBLE_INT, &status));
  OK(MPI_File_read(file, &again, 1, MPI_LONG_DOUBLE, &status));
  CHECK(other.value == pair.value && other.index == pair.index && again == wide);
  meet();
}

/* ---- Representations of the program's own ---------------------------------------------------- */

static int calls, refuse;

/* Ints of 8 bytes: the number, and its negative. Other types have no extent. */
static int extent_here(MPI_Datatype type, MPI_Aint* extent, void* extra) {
  CHECK(extra == &calls);
  *extent = 8;
  return type == MPI_INT ? MPI_SUCCESS : MPI_ERR_TYPE;
}

static int write_here(void* memory, MPI_Datatype type, int count, void* in_file,
                      MPI_Offset position, void* extra) {
  CHECK(type == MPI_INT && extra == &calls);
  ++calls;
  for (int i = 0; i < count; ++i) {
    const int value = ((int*)memory)[position + i];
    const int both[2] = {value, -value};
    memcpy((char*)in_file + 8 * i, both, 8);
  }
  return refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int read_here(void* memory, MPI_Datatype type, int count, void* in_file, MPI_Offset position,
                     void* extra) {
  CHECK(type == MPI_INT && extra == &calls);
  ++calls;
  for (int i = 0; i < count; ++i) {
    int both[2];
    memcpy(both, (char*)in_file + 8 * i, 8);
    CHECK(both[0] == -both[1]);
    ((int*)memory)[position + i] = both[0];
  }
  return MPI_SUCCESS;
}

static int plain_extent(MPI_Datatype type, MPI_Aint* extent, void* extra) {
  int bytes = 0;
  (void)extra;
  OK(MPI_Type_size(type, &bytes));
  *extent = bytes;
  return MPI_SUCCESS;
}

static void registered(void) {
  step = "representations of the program's own (43)";
  char name[MPI_MAX_DATAREP_STRING + 1];
  memset(name, 'n', sizeof(name));
  name[MPI_MAX_DATAREP_STRING] = 0;
  expect_error(MPI_Register_datarep(name, NULL, NULL, plain_extent, NULL), MPI_ERR_ARG, "name");
  name[MPI_MAX_DATAREP_STRING - 1] = 0;
  OK(MPI_Register_datarep(name, MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, plain_extent,
                          NULL));
  OK(MPI_Register_datarep("both", read_here, write_here, extent_here, &calls));
  expect_error(MPI_Register_datarep("both", read_here, write_here, extent_here, &calls),
               MPI_ERR_DUP_DATAREP, "both");
  expect_error(MPI_Register_datarep("native", NULL, NULL, plain_extent, NULL), MPI_ERR_DUP_DATAREP,
               "native");
  expect_error(MPI_Register_datarep_c(NULL, NULL, NULL, plain_extent, NULL), MPI_ERR_ARG,
               "datarep");
  expect_error(MPI_Register_datarep("none", NULL, NULL, NULL, NULL), MPI_ERR_ARG, "extent");

  int data[5], back[5];
  for (int i = 0; i < 5; ++i) data[i] = 10 * rank + i;
  OK(MPI_File_set_size(file, 0));
  set_view(40 * rank, MPI_INT, MPI_INT, "both");
  CHECK(extent_of(MPI_INT) == 8);
  MPI_Status status;
  OK(MPI_File_write_all(file, data, 5, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 5 && calls == 1 && place(file) == 5);
  meet();
  CHECK(size_of_file(file) == 40 * size);
  int raw[2];
  CHECK(read_raw("datareps", 40 * rank + 8, raw, 8) == 8);
  CHECK(raw[0] == data[1] && raw[1] == -data[1]);
  memset(back, -1, sizeof(back));
  MPI_Request request;
  OK(MPI_File_iread_at(file, 1, back, 3, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  CHECK(count_of(&status, MPI_INT) == 3 && memcmp(back, data + 1, 12) == 0 && back[3] == -1);
  refuse = 1;
  expect_error(MPI_File_write_at(file, 0, data, 1, MPI_INT, &status), MPI_ERR_CONVERSION, "both");
  refuse = 0;
  expect_error(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "both", MPI_INFO_NULL),
               MPI_ERR_CONVERSION, "MPI_BYTE");

  step = "a representation without functions (43)";
  set_view(40 * rank, MPI_INT, MPI_INT, name);
  OK(MPI_File_write(file, data, 5, MPI_INT, &status));
  CHECK(read_raw("datareps", 40 * rank, back, 20) == 20 && memcmp(back, data, 20) == 0);
  memset(back, -1, sizeof(back));
  OK(MPI_File_read_at(file, 0, back, 5, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 5 && memcmp(back, data, 20) == 0);
  meet();
}

int main(int argc, char** argv) {
  begin_files(argc, argv);
  file = open_new("datareps");
  extents();
  external32();
  registered();
  OK(MPI_File_close(&file));
  return end_well("all representations were right");
}
