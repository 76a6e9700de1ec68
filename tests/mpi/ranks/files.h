/* Helpers for the programs that test files (MPI 5.0, chapter 14). The first argument is a folder
 * that all ranks see. Numbers in comments are those of the rules that the checks are for.
 */
#ifndef FERRY_TESTS_MPI_RANKS_FILES_H_
#define FERRY_TESTS_MPI_RANKS_FILES_H_

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/mpi/ranks/check.h"

static const char* folder;

/* The name in the folder. The last four results stay. */
static inline const char* in_folder(const char* name) {
  static char names[4][6000];
  static int last;
  last = (last + 1) % 4;
  snprintf(names[last], sizeof(names[last]), "%s/%s", folder, name);
  return names[last];
}

static inline void meet(void) { OK(MPI_Barrier(MPI_COMM_WORLD)); }

static inline MPI_File open_in(MPI_Comm comm, const char* name, int amode) {
  MPI_File file = MPI_FILE_NULL;
  OK(MPI_File_open(comm, in_folder(name), amode, MPI_INFO_NULL, &file));
  CHECK(file != MPI_FILE_NULL);
  return file;
}

/* A new file of all ranks, for reading and writing, that its close removes. */
static inline MPI_File open_new(const char* name) {
  return open_in(MPI_COMM_WORLD, name,
                 MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE);
}

static inline void expect_no_open(const char* name, int amode, int error_class) {
  MPI_File file = (MPI_File)&file;
  expect_error(MPI_File_open(MPI_COMM_WORLD, in_folder(name), amode, MPI_INFO_NULL, &file),
               error_class, "");
  CHECK(file == MPI_FILE_NULL);
}

static inline int exists(const char* name) { return access(in_folder(name), F_OK) == 0; }

static inline MPI_Offset size_of_file(MPI_File file) {
  MPI_Offset size = -1;
  OK(MPI_File_get_size(file, &size));
  return size;
}

static inline MPI_Offset place(MPI_File file) {
  MPI_Offset offset = -1;
  OK(MPI_File_get_position(file, &offset));
  return offset;
}

/* Writes a file with bytes of fill(), by the system alone. One rank calls it. */
static inline void make_file(const char* name, size_t bytes, unsigned seed) {
  unsigned char* const data = malloc(bytes + 1);
  fill(data, bytes, seed);
  const int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  CHECK(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes && close(fd) == 0);
  free(data);
}

/* Reads bytes of a file by the system alone, and returns how many there were. */
static inline ssize_t read_raw(const char* name, off_t offset, void* data, size_t bytes) {
  const int fd = open(in_folder(name), O_RDONLY);
  CHECK(fd >= 0);
  const ssize_t got = pread(fd, data, bytes, offset);
  close(fd);
  return got;
}

static inline int entries_of_folder(void) {
  int entries = 0;
  DIR* const directory = opendir(folder);
  CHECK(directory != NULL);
  while (readdir(directory) != NULL) ++entries;
  closedir(directory);
  return entries - 2;
}

static inline MPI_Datatype committed(MPI_Datatype type) {
  OK(MPI_Type_commit(&type));
  return type;
}

/* `count` blocks of `length` elements, `stride` apart, in `extent` bytes (0: as they are). */
static inline MPI_Datatype vector_of(int count, int length, int stride, MPI_Datatype old,
                                     MPI_Aint extent) {
  MPI_Datatype vector, resized;
  OK(MPI_Type_vector(count, length, stride, old, &vector));
  if (extent == 0) return committed(vector);
  OK(MPI_Type_create_resized(vector, 0, extent, &resized));
  OK(MPI_Type_free(&vector));
  return committed(resized);
}

static inline void begin_files(int argc, char** argv) {
  CHECK(argc > 1);
  folder = argv[1];
  begin_with_threads(&argc, &argv, argc > 2 ? level_of(argc - 1, argv + 1) : MPI_THREAD_SINGLE);
}

#endif /* FERRY_TESTS_MPI_RANKS_FILES_H_ */
