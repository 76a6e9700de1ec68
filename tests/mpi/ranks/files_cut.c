/* Collective calls on a file whose data the nodes exchange, one after the other until one fails: a
 * test cuts the link between the nodes meanwhile. Arguments: a folder; "background" for calls that
 * do not block. Each rank prints "rank R: error CLASS at NANOSECONDS: TEXT" then, and ends with
 * code 3 at SIGUSR1.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "tests/mpi/ranks/files.h"

enum { kPiece = 512, kPieces = 8192, kBytes = kPiece * kPieces };

static unsigned char data[kBytes], back[kBytes];

static int finish(int error, MPI_Request* request) {
  return error == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : error;
}

/* Writes all of the file, and reads it. */
static int move_all(MPI_File file, int in_background) {
  MPI_Request request;
  int error =
      in_background
          ? finish(MPI_File_iwrite_at_all(file, 0, data, kBytes, MPI_BYTE, &request), &request)
          : MPI_File_write_at_all(file, 0, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE);
  if (error != MPI_SUCCESS) return error;
  return in_background
             ? finish(MPI_File_iread_at_all(file, 0, back, kBytes, MPI_BYTE, &request), &request)
             : MPI_File_read_at_all(file, 0, back, kBytes, MPI_BYTE, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGUSR1);
  CHECK(pthread_sigmask(SIG_BLOCK, &end, NULL) == 0);
  const int in_background = argc > 2 && strcmp(argv[2], "background") == 0;
  begin_files(2, argv);
  MPI_Info hints = info_with("romio_cb_write", "enable");
  OK(MPI_Info_set(hints, "romio_cb_read", "enable"));
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, in_folder("cut"), MPI_MODE_RDWR | MPI_MODE_CREATE, hints,
                   &file));
  OK(MPI_Info_free(&hints));
  MPI_Datatype type = vector_of(1, kPiece, kPiece, MPI_BYTE, (MPI_Aint)kPiece * size);
  OK(MPI_File_set_view(file, (MPI_Offset)kPiece * rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
  OK(MPI_Type_free(&type));
  fill(data, kBytes, (unsigned)rank);
  OK(move_all(file, in_background));
  printf("rank %d: under way\n", rank);
  fflush(stdout);
  int error = MPI_SUCCESS;
  while (error == MPI_SUCCESS) {
    memset(back, 0, kBytes);
    error = move_all(file, in_background);
    if (error == MPI_SUCCESS) CHECK(is_filled(back, kBytes, (unsigned)rank));
  }
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  char text[MPI_MAX_ERROR_STRING];
  int length, error_class;
  OK(MPI_Error_string(error, text, &length));
  OK(MPI_Error_class(error, &error_class));
  printf("rank %d: error %d at %lld: %s\n", rank, error_class,
         (long long)now.tv_sec * 1000000000 + now.tv_nsec, text);
  fflush(stdout);
  int signal_number;
  CHECK(sigwait(&end, &signal_number) == 0);
  _exit(3);
}
