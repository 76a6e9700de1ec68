/* Collective writes and reads whose pieces the nodes exchange, where a daemon may refuse a message
 * of the exchange: a call fails on all ranks or on none, and the calls after it go on. Argument: a
 * folder. Each rank says how many calls have failed.
 */
#include "tests/mpi/ranks/files.h"

enum { kPiece = 512, kPieces = 4096, kBytes = kPiece * kPieces, kRounds = 6 };

static unsigned char data[kBytes], back[kBytes];
static int failed;

/* Returns true if the call has gone well, on all ranks. */
static int have_all_gone_well(int error) {
  int worst = error != MPI_SUCCESS, least = worst;
  OK(MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  OK(MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
  CHECK(worst == least);
  failed += worst;
  return !worst;
}

int main(int argc, char** argv) {
  begin_files(argc, argv);
  step = "a file whose pieces lie between each other";
  const MPI_Info hints = info_with("romio_cb_write", "enable");
  MPI_Info given = hints;
  OK(MPI_Info_set(given, "romio_cb_read", "enable"));
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, in_folder("exchanged"),
                   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, given, &file));
  OK(MPI_Info_free(&given));
  MPI_Datatype type = vector_of(1, kPiece, kPiece, MPI_BYTE, (MPI_Aint)kPiece * size);
  OK(MPI_File_set_view(file, (MPI_Offset)kPiece * rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
  OK(MPI_Type_free(&type));
  for (int round = 0; round < kRounds; ++round) {
    const unsigned seed = (unsigned)(10 * round + rank);
    MPI_Status status;
    step = "a collective write";
    fill(data, kBytes, seed);
    int written = have_all_gone_well(
        MPI_File_write_at_all(file, 0, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    if (!written) continue;
    step = "a collective read";
    memset(back, 0, kBytes);
    if (!have_all_gone_well(MPI_File_read_at_all(file, 0, back, kBytes, MPI_BYTE, &status))) {
      continue;
    }
    CHECK(count_of(&status, MPI_BYTE) == kBytes && is_filled(back, kBytes, seed));
  }
  step = "the last calls";
  CHECK(failed < kRounds);
  OK(MPI_File_close(&file));
  printf("rank %d: %d calls have failed\n", rank, failed);
  OK(MPI_Finalize());
  return 0;
}
