/* Opening, closing and removing files, what they are, hints, errors (MPI 5.0, sections 14.2, 14.7).
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/resource.h>

#include "tests/mpi/ranks/files.h"

static void modes(void) {
  step = "modes that are none (1)";
  expect_no_open("modes", MPI_MODE_CREATE, MPI_ERR_AMODE);
  expect_no_open("modes", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_WRONLY, MPI_ERR_AMODE);
  expect_no_open("modes", MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_ERR_AMODE);
  expect_no_open("modes", MPI_MODE_RDONLY | MPI_MODE_EXCL, MPI_ERR_AMODE);
  expect_no_open("modes", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL, MPI_ERR_AMODE);
  expect_no_open("modes", MPI_MODE_RDWR | MPI_MODE_CREATE | 1 << 20, MPI_ERR_AMODE);
  CHECK(!exists("modes"));
  meet();

  step = "modes that differ (2)";
  if (size > 1) {
    expect_no_open("modes", MPI_MODE_CREATE | (rank == 0 ? MPI_MODE_RDWR : MPI_MODE_WRONLY),
                   MPI_ERR_NOT_SAME);
    CHECK(!exists("modes"));
    meet();
    expect_no_open("modes", rank == size - 1 ? 0 : MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_ERR_AMODE);
    CHECK(!exists("modes"));
    meet();
  }

  step = "no file, and one that is there (3)";
  expect_no_open("none", MPI_MODE_RDWR, MPI_ERR_NO_SUCH_FILE);
  expect_no_open("none/none", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_ERR_NO_SUCH_FILE);
  if (rank == 0) make_file("there", 100, 3);
  meet();
  expect_no_open("there", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_ERR_FILE_EXISTS);
  MPI_File file = open_in(MPI_COMM_WORLD, "there", MPI_MODE_WRONLY | MPI_MODE_CREATE);
  CHECK(size_of_file(file) == 100);
  int amode = 0;
  OK(MPI_File_get_amode(file, &amode));
  CHECK(amode == (MPI_MODE_WRONLY | MPI_MODE_CREATE));
  OK(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL && exists("there"));
  meet();

  step = "a rank that cannot open (4)";
  if (size > 1) {
    expect_no_open(rank == size - 1 ? "none/made" : "made", MPI_MODE_RDWR | MPI_MODE_CREATE,
                   MPI_ERR_NO_SUCH_FILE);
    CHECK(!exists("made"));
    meet();
    // A file that was there before stays.
    expect_no_open(rank == size - 1 ? "none/made" : "there", MPI_MODE_RDWR | MPI_MODE_CREATE,
                   MPI_ERR_NO_SUCH_FILE);
    CHECK(exists("there"));
    meet();
  }
}

static void communicators(void) {
  step = "a communicator that is freed (5)";
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI_File file = open_in(
      comm, "freed", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE);
  OK(MPI_Comm_free(&comm));
  MPI_Group group, world;
  OK(MPI_File_get_group(file, &group));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  int result = -1;
  OK(MPI_Group_compare(group, world, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_free(&group));
  OK(MPI_Group_free(&world));
  OK(MPI_File_close(&file));

  step = "communicators that are none (5)";
  expect_error(MPI_File_open(MPI_COMM_NULL, in_folder("x"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
               MPI_ERR_COMM, "");
  if (size > 1) {
    MPI_Comm part, inter;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &part));
    OK(MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 4, &inter));
    expect_error(MPI_File_open(inter, in_folder("x"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
                 MPI_ERR_COMM, "inter");
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&part));
  }
  step = "a file of each rank alone";
  char name[64];
  snprintf(name, sizeof(name), "own.%d", rank);
  file = open_in(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
  OK(MPI_File_write(file, name, 5, MPI_CHAR, MPI_STATUS_IGNORE));
  CHECK(size_of_file(file) == 5);
  OK(MPI_File_close(&file));
  CHECK(!exists(name));
}

static unsigned mode_of(const char* name) {
  struct stat facts;
  CHECK(stat(in_folder(name), &facts) == 0);
  return facts.st_mode & 0777;
}

static void names(void) {
  step = "access rights (6)";
  const mode_t mask = umask(027);
  MPI_File file = open_in(MPI_COMM_WORLD, "rights", MPI_MODE_RDWR | MPI_MODE_CREATE);
  CHECK(mode_of("rights") == 0640);
  OK(MPI_File_close(&file));
  meet();
  if (rank == 0) OK(MPI_File_delete(in_folder("rights"), MPI_INFO_NULL));
  meet();
  MPI_Info info = info_with("file_perm", "0600");
  OK(MPI_File_open(MPI_COMM_WORLD, in_folder("rights"), MPI_MODE_RDWR | MPI_MODE_CREATE, info,
                   &file));
  OK(MPI_Info_free(&info));
  CHECK(mode_of("rights") == 0600);
  OK(MPI_File_close(&file));
  umask(mask);
  meet();
  if (rank == 0) OK(MPI_File_delete(in_folder("rights"), MPI_INFO_NULL));
  meet();

  step = "relative names, and another directory meanwhile (7, 9)";
  char before[4096];
  CHECK(getcwd(before, sizeof(before)) != NULL && chdir(folder) == 0);
  const char* const all[] = {"a", "run:1.dat", "./x:y", "ufs:plain", "nfs:./dotted"};
  const char* const found[] = {"a", "run:1.dat", "x:y", "plain", "dotted"};
  for (int i = 0; i < 5; ++i) {
    OK(MPI_File_open(MPI_COMM_WORLD, all[i],
                     MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file));
    meet();
    CHECK(exists(found[i])); /* 8 */
    CHECK(chdir("/") == 0);
    OK(MPI_File_close(&file));
    CHECK(!exists(found[i]));
    CHECK(chdir(folder) == 0);
    meet();
  }
  CHECK(chdir(before) == 0);

  step = "names that are none (45)";
  char* const long_name = malloc(5001);
  memset(long_name, 'n', 5000);
  long_name[5000] = 0;
  expect_no_open(long_name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_ERR_BAD_FILE);
  free(long_name);
  expect_no_open("", MPI_MODE_RDWR, MPI_ERR_BAD_FILE);
  expect_no_open("", MPI_MODE_RDONLY, MPI_ERR_BAD_FILE);
  if (rank == 0) make_file("plain", 1, 1);
  meet();
  expect_no_open("plain/below", MPI_MODE_RDONLY, MPI_ERR_BAD_FILE);
  if (rank == 0) CHECK(symlink("circle", in_folder("circle")) == 0);
  meet();
  expect_no_open("circle", MPI_MODE_RDONLY, MPI_ERR_BAD_FILE);
  MPI_File none = MPI_FILE_NULL;
  expect_error(MPI_File_open(MPI_COMM_WORLD, NULL, MPI_MODE_RDONLY, MPI_INFO_NULL, &none),
               MPI_ERR_ARG, "filename");
  meet();
  if (rank == 0) CHECK(unlink(in_folder("circle")) == 0 && unlink(in_folder("plain")) == 0);
  meet();

  step = "a link to no file is made the file";
  if (rank == 0) CHECK(symlink("target", in_folder("link")) == 0);
  meet();
  file = open_in(MPI_COMM_WORLD, "link", MPI_MODE_RDWR | MPI_MODE_CREATE);
  CHECK(exists("target"));
  OK(MPI_File_close(&file));
  meet();
  if (rank == 0) CHECK(unlink(in_folder("link")) == 0 && unlink(in_folder("target")) == 0);
  meet();
}

static void ends(void) {
  step = "files that are removed when they are closed (9)";
  if (rank == 0) make_file("read", 10, 1);
  meet();
  MPI_File file = open_in(MPI_COMM_WORLD, "read", MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
  CHECK(exists("read"));
  OK(MPI_File_close(&file));
  CHECK(!exists("read"));

  step = "MPI_File_delete (10)";
  meet();
  if (rank == 0) make_file("gone", 10, 1);
  meet();
  const int error = MPI_File_delete(in_folder("gone"), MPI_INFO_NULL);
  if (error != MPI_SUCCESS) expect_error(error, MPI_ERR_NO_SUCH_FILE, "gone");
  CHECK(!exists("gone"));
  expect_error(MPI_File_delete(in_folder("gone"), MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE, "remove");
  expect_error(MPI_File_delete(NULL, MPI_INFO_NULL), MPI_ERR_ARG, "filename");

  step = "files that are appended to (11)";
  if (rank == 0) make_file("log", 100, 1);
  meet();
  file = open_in(MPI_COMM_WORLD, "log", MPI_MODE_RDWR | MPI_MODE_APPEND);
  MPI_Offset shared = -1;
  OK(MPI_File_get_position_shared(file, &shared));
  CHECK(place(file) == 100 && shared == 100);
  unsigned char data[10];
  fill(data, 10, 50);
  if (rank == 0) OK(MPI_File_write_at(file, 0, data, 10, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(size_of_file(file) == 100);
  meet();
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_get_position_shared(file, &shared));
  CHECK(place(file) == 0 && shared == 0);
  OK(MPI_File_close(&file));
  meet();
  if (rank == 0) OK(MPI_File_delete(in_folder("log"), MPI_INFO_NULL));
}

static void sizes(void) {
  step = "sizes (13)";
  MPI_File file = open_new("sizes");
  OK(MPI_File_set_size(file, 1000));
  CHECK(size_of_file(file) == 1000 && place(file) == 0);
  OK(MPI_File_seek(file, 700, MPI_SEEK_SET));
  OK(MPI_File_set_size(file, 10));
  CHECK(size_of_file(file) == 10 && place(file) == 700);
  expect_error(MPI_File_set_size(file, -1), MPI_ERR_ARG, "size");
  if (size > 1) {
    expect_error(MPI_File_set_size(file, 100 + rank), MPI_ERR_NOT_SAME, "size");
    expect_error(MPI_File_set_size(file, rank == 0 ? -1 : 5), MPI_ERR_ARG, "");
  }
  CHECK(size_of_file(file) == 10);
  meet();

  step = "room (14)";
  unsigned char data[10], back[10] = {0};
  fill(data, 10, 7);
  if (rank == 0) OK(MPI_File_write_at(file, 0, data, 10, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_preallocate(file, 5));
  CHECK(size_of_file(file) == 10);
  OK(MPI_File_preallocate(file, 100000));
  CHECK(size_of_file(file) == 100000);
  OK(MPI_File_read_at(file, 0, back, 10, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(is_filled(back, 10, 7));
  OK(MPI_File_preallocate(file, 0));
  expect_error(MPI_File_preallocate(file, -1), MPI_ERR_ARG, "size");

  step = "what is written back (39)";
  OK(MPI_File_sync(file));
  OK(MPI_File_close(&file));

  step = "a file that may only be read (13, 39, 45)";
  if (rank == 0) make_file("fixed", 10, 1);
  meet();
  file = open_in(MPI_COMM_WORLD, "fixed", MPI_MODE_RDONLY);
  expect_error(MPI_File_set_size(file, 5), MPI_ERR_READ_ONLY, "RDONLY");
  expect_error(MPI_File_preallocate(file, 5), MPI_ERR_READ_ONLY, "RDONLY");
  expect_error(MPI_File_write(file, data, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY,
               "RDONLY");
  expect_error(MPI_File_write_all(file, data, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY,
               "RDONLY");
  OK(MPI_File_sync(file));
  OK(MPI_File_close(&file));
  file = open_in(MPI_COMM_WORLD, "fixed", MPI_MODE_WRONLY);
  expect_error(MPI_File_read(file, data, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ACCESS, "WRONLY");
  OK(MPI_File_close(&file));
  meet();
  if (rank == 0) CHECK(unlink(in_folder("fixed")) == 0);
  meet();
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static int told, told_code;
static MPI_File told_file;

static void note(MPI_File* file, int* code, ...) {
  ++told;
  told_code = *code;
  told_file = *file;
}

static void errors(void) {
  step = "handlers (44)";
  MPI_Errhandler handler, got;
  OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
  CHECK(got == MPI_ERRORS_RETURN);
  OK(MPI_File_create_errhandler(note, &handler));
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
  MPI_File file = MPI_FILE_NULL;
  CHECK(MPI_File_open(MPI_COMM_WORLD, in_folder("none"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file) ==
        MPI_ERR_NO_SUCH_FILE);
  CHECK(told == 1 && told_code == MPI_ERR_NO_SUCH_FILE && told_file == MPI_FILE_NULL);
  CHECK(MPI_File_delete(in_folder("none"), MPI_INFO_NULL) == MPI_ERR_NO_SUCH_FILE && told == 2);
  file = open_new("handled"); /* begins with the handler of MPI_FILE_NULL */
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  OK(MPI_File_get_errhandler(file, &got));
  CHECK(got == handler);
  OK(MPI_Errhandler_free(&got));
  CHECK(MPI_File_seek(file, -5, MPI_SEEK_SET) == MPI_ERR_ARG);
  CHECK(told == 3 && told_code == MPI_ERR_ARG && told_file == file);
  MPI_Request request;
  char byte = 0;
  CHECK(MPI_File_iread_at(file, -1, &byte, 1, MPI_BYTE, &request) == MPI_ERR_ARG && told == 4);
  OK(MPI_File_call_errhandler(file, MPI_ERR_QUOTA));
  CHECK(told == 5 && told_code == MPI_ERR_QUOTA && told_file == file);
  OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
  expect_error(MPI_File_seek(file, -5, MPI_SEEK_SET), MPI_ERR_ARG, "MPI_File_seek");
  CHECK(told == 5);
  OK(MPI_Errhandler_free(&handler));

  step = "numbers of handles";
  CHECK(MPI_File_fromint(MPI_File_toint(file)) == file && MPI_File_c2f(file) >= 0);
  OK(MPI_File_close(&file));

  step = "handles that are none (46)";
  MPI_File none[] = {MPI_FILE_NULL, file, (MPI_File)&byte};
  for (int i = 0; i < 3; ++i) {
    MPI_Offset offset;
    MPI_Group group;
    expect_error(MPI_File_get_size(none[i], &offset), MPI_ERR_FILE, "");
    expect_error(MPI_File_get_group(none[i], &group), MPI_ERR_FILE, "");
    expect_error(MPI_File_write(none[i], &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_FILE, "");
    expect_error(MPI_File_read_all(none[i], &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_FILE,
                 "");
    expect_error(MPI_File_sync(none[i]), MPI_ERR_FILE, "");
    MPI_File to_close = none[i];
    expect_error(MPI_File_close(&to_close), MPI_ERR_FILE, "");
  }
  expect_error(MPI_File_close(NULL), MPI_ERR_ARG, "");

  step = "devices without room (45)";
  OK(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  char data[100] = {0};
  MPI_Status status;
  expect_error(MPI_File_write_at(file, 0, data, 100, MPI_CHAR, &status), MPI_ERR_NO_SPACE,
               "/dev/full");
  CHECK(count_of(&status, MPI_CHAR) == 0);
  const int error = MPI_File_write_at_all(file, 0, data, rank == 0 ? 100 : 0, MPI_CHAR, &status);
  if (rank == 0) expect_error(error, MPI_ERR_NO_SPACE, "/dev/full");
  if (rank != 0) OK(error); /* by a view without gaps */
  OK(MPI_File_iwrite_at(file, 0, data, 100, MPI_CHAR, &request));
  expect_error(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE, "/dev/full");
  OK(MPI_File_write_all_begin(file, data, 100, MPI_CHAR));
  expect_error(MPI_File_write_all_end(file, data, &status), MPI_ERR_NO_SPACE, "");
  OK(MPI_File_close(&file));

  step = "limits of files (45)";
  struct rlimit limit, small;
  CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  signal(SIGXFSZ, SIG_IGN);
  file = open_new("limited");
  small = limit;
  small.rlim_cur = 50;
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  expect_error(MPI_File_write_at(file, 0, data, 100, MPI_CHAR, &status), MPI_ERR_IO, "limited");
  CHECK(count_of(&status, MPI_CHAR) == 50);
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  OK(MPI_File_close(&file));
}

static void hints(void) {
  step = "hints (47, 48)";
  const char* const values[] = {"0", "-1", "abc", "1099511627776", "", "99999999999999999999"};
  const char* const keys[] = {"cb_buffer_size",     "cb_nodes",       "striping_factor",
                              "striping_unit",      "romio_cb_write", "ind_rd_buffer_size",
                              "ind_wr_buffer_size", "file_perm",      "unknown_key"};
  for (int i = 0; i < 6; ++i) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    for (int j = 0; j < 9; ++j) OK(MPI_Info_set(info, keys[j], values[i]));
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, in_folder("hinted"),
                     MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, info, &file));
    OK(MPI_File_set_info(file, info));
    unsigned char data[100], back[100];
    fill(data, 100, rank);
    OK(MPI_File_write_at_all(file, 100 * rank, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(file, 100 * rank, back, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(is_filled(back, 100, rank));
    MPI_Info used;
    OK(MPI_File_get_info(file, &used));
    CHECK(strcmp(value_in(used, "unknown_key"), "none") == 0);
    CHECK(strcmp(value_in(used, "romio_cb_write"), "automatic") == 0);
    CHECK(atoll(value_in(used, "cb_buffer_size")) > 0);
    OK(MPI_Info_free(&used));
    OK(MPI_Info_free(&info));
    OK(MPI_File_close(&file));
  }
  MPI_Info info = info_with("romio_cb_write", "enable");
  MPI_File file = open_new("hinted");
  OK(MPI_File_set_info(file, info));
  OK(MPI_Info_set(info, "cb_nodes", "1"));
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info));
  MPI_Info used;
  OK(MPI_File_get_info(file, &used));
  CHECK(strcmp(value_in(used, "romio_cb_write"), "enable") == 0);
  CHECK(strcmp(value_in(used, "cb_nodes"), "1") == 0);
  OK(MPI_Info_free(&used));
  OK(MPI_Info_free(&info));
  OK(MPI_File_close(&file));
}

static void many(void) {
  step = "many files, and none left over (9)";
  meet();
  const int before = entries_of_folder();
  for (int i = 0; i < 200; ++i) {
    MPI_File file = open_new("many");
    OK(MPI_File_set_view(file, 4 * rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, &i, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
  }
  CHECK(open("/dev/null", O_RDONLY) < 100); /* no descriptor is left over */
  meet();
  CHECK(entries_of_folder() == before);
}

int main(int argc, char** argv) {
  begin_files(argc, argv);
  modes();
  communicators();
  names();
  ends();
  sizes();
  errors();
  hints();
  many();
  return end_well("all files were right");
}
