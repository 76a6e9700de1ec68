/* Collective calls on files that do not block: they wait for the ranks of the same call, and for
 * nothing else. The pieces of all ranks lie between each other, so ranks and nodes exchange what
 * they write.
 */
#include "tests/mpi/ranks/files.h"

enum { kPiece = 64, kPieces = 8192, kBytes = kPiece * kPieces, kTag = 7 };

static MPI_File open_strided(const char* name) {
  MPI_File file = open_new(name);
  MPI_Datatype filetype;
  OK(MPI_Type_vector(kPieces, kPiece, kPiece * size, MPI_BYTE, &filetype));
  OK(MPI_Type_commit(&filetype));
  OK(MPI_File_set_view(file, (MPI_Offset)rank * kPiece, MPI_BYTE, filetype, "native",
                       MPI_INFO_NULL));
  OK(MPI_Type_free(&filetype));
  return file;
}

static unsigned char* bytes_of(unsigned seed) {
  unsigned char* const bytes = malloc(kBytes);
  fill(bytes, kBytes, seed + (unsigned)rank);
  return bytes;
}

/* Compares this rank's pieces of the file. */
static int is_written(const char* name, const unsigned char* bytes) {
  const int fd = open(in_folder(name), O_RDONLY);
  CHECK(fd >= 0);
  int is_right = 1;
  unsigned char piece[kPiece];
  for (int i = 0; i < kPieces && is_right; ++i) {
    const off_t at = ((off_t)i * size + rank) * kPiece;
    is_right = pread(fd, piece, kPiece, at) == kPiece &&
               memcmp(piece, bytes + (size_t)i * kPiece, kPiece) == 0;
  }
  close(fd);
  return is_right;
}

static void expect_all(MPI_Request* request) {
  MPI_Status status;
  OK(MPI_Wait(request, &status));
  CHECK(count_of(&status, MPI_BYTE) == kBytes);
}

/* Ranks may call in one order for one file, and in another for two. */
static void cross_files(void) {
  step = "two files in two orders";
  MPI_File files[2] = {open_strided("a"), open_strided("b")};
  unsigned char* bytes[2] = {bytes_of(1), bytes_of(2)};
  unsigned char* const back[2] = {malloc(kBytes), malloc(kBytes)};
  const char* const names[2] = {"a", "b"};
  const int first = rank % 2;
  for (int round = 0; round < 5; ++round) {
    MPI_Request requests[2];
    OK(MPI_File_iwrite_at_all(files[first], 0, bytes[first], kBytes, MPI_BYTE, &requests[0]));
    OK(MPI_File_iwrite_at_all(files[1 - first], 0, bytes[1 - first], kBytes, MPI_BYTE,
                              &requests[1]));
    expect_all(&requests[round % 2]); /* the second one alone, now and then */
    CHECK(is_written(names[round % 2 == 0 ? first : 1 - first],
                     bytes[round % 2 == 0 ? first : 1 - first]));
    expect_all(&requests[1 - round % 2]);
    for (int i = 0; i < 2; ++i) {
      const int which = i == 0 ? 1 - first : first;
      OK(MPI_File_iread_at_all(files[which], 0, back[which], kBytes, MPI_BYTE, &requests[which]));
    }
    expect_all(&requests[round % 2]);
    expect_all(&requests[1 - round % 2]);
    for (int i = 0; i < 2; ++i) CHECK(memcmp(back[i], bytes[i], kBytes) == 0);
    fill(bytes[0], kBytes, 3 + (unsigned)(round + rank));
    fill(bytes[1], kBytes, 40 + (unsigned)(round + rank));
  }
  for (int i = 0; i < 2; ++i) {
    OK(MPI_File_close(&files[i]));
    free(bytes[i]);
    free(back[i]);
  }
}

/* Rank 0 begins, and the others only once a transfer of its own, which came later, is over. */
static void stay_away(void) {
  step = "a rank that comes late";
  MPI_File file = open_strided("a");
  MPI_File own;
  char name[20];
  snprintf(name, sizeof(name), "own.%d", rank);
  OK(MPI_File_open(MPI_COMM_SELF, in_folder(name),
                   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                   &own));
  unsigned char* const bytes = bytes_of(5);
  MPI_Request request;
  int word = 0;
  if (rank == 0) {
    MPI_Request alone;
    OK(MPI_File_iwrite_at_all(file, 0, bytes, kBytes, MPI_BYTE, &request));
    OK(MPI_File_iwrite_at(own, 0, bytes, kBytes, MPI_BYTE, &alone));
    expect_all(&alone);
    OK(MPI_File_iwrite_all(own, bytes, kBytes, MPI_BYTE, &alone)); /* it has this one alone */
    expect_all(&alone);
    int is_over = size == 1;
    if (size > 1) OK(MPI_Test(&request, &is_over, MPI_STATUS_IGNORE));
    CHECK(is_over == (size == 1));
    for (int to = 1; to < size; ++to) OK(MPI_Send(&word, 1, MPI_INT, to, kTag, MPI_COMM_WORLD));
  } else {
    OK(MPI_Recv(&word, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_File_iwrite_at_all(file, 0, bytes, kBytes, MPI_BYTE, &request));
  }
  expect_all(&request);
  CHECK(is_written("a", bytes));
  OK(MPI_File_close(&own));
  OK(MPI_File_close(&file));
  free(bytes);
}

/* The ranks compute, and look at the file by the system's calls alone. */
static void make_no_call(void) {
  step = "no call of MPI until the bytes are there";
  MPI_File file = open_strided("a");
  unsigned char* const bytes = bytes_of(6);
  MPI_Request request;
  OK(MPI_File_iwrite_at_all(file, 0, bytes, kBytes, MPI_BYTE, &request));
  while (!is_written("a", bytes)) usleep(1000); /* until the program's alarm */
  expect_all(&request);
  OK(MPI_File_close(&file));
  free(bytes);
}

/* Writes one half in the background, and the other meanwhile. */
static void mix(void) {
  enum { kHalf = kBytes / 2 };
  step = "calls of both kinds";
  MPI_File file = open_strided("a");
  unsigned char* const bytes = bytes_of(7);
  MPI_Request request;
  for (int round = 0; round < 10; ++round) {
    fill(bytes, kBytes, 60 + (unsigned)(round + rank));
    OK(MPI_File_iwrite_at_all(file, 0, bytes, kHalf, MPI_BYTE, &request));
    if (round % 2 == 0) {
      OK(MPI_File_write_at_all(file, kHalf, bytes + kHalf, kHalf, MPI_BYTE, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_write_at_all_begin(file, kHalf, bytes + kHalf, kHalf, MPI_BYTE));
      OK(MPI_File_write_at_all_end(file, bytes + kHalf, MPI_STATUS_IGNORE));
      OK(MPI_File_sync(file));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(is_written("a", bytes));
    meet();
  }
  OK(MPI_File_close(&file));
  free(bytes);
}

/* A rank whose arguments are wrong hears of it at once, and the others from their requests. */
static void refuse(void) {
  step = "wrong arguments on one rank";
  MPI_File file = open_strided("a");
  unsigned char* const bytes = bytes_of(9);
  for (int round = 0; round < 3; ++round) {
    const int is_wrong = rank == size - 1;
    MPI_Request request = MPI_REQUEST_NULL;
    const int begun =
        MPI_File_iwrite_at_all(file, 0, bytes, is_wrong ? -1 : kBytes, MPI_BYTE, &request);
    if (is_wrong) {
      expect_error(begun, MPI_ERR_COUNT, "");
      CHECK(request == MPI_REQUEST_NULL);
    } else {
      OK(begun);
      expect_error(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_COUNT, "");
    }
    OK(MPI_File_iwrite_at_all(file, 0, bytes, kBytes, MPI_BYTE, &request));
    expect_all(&request);
    CHECK(is_written("a", bytes));
  }
  OK(MPI_File_close(&file));
  free(bytes);
}

/* Many at a time, some of which the program lets go of; the close comes behind all. */
static void let_go(void) {
  enum { kCalls = 40, kPart = 100 * kPiece };
  step = "many calls, and requests that are freed";
  MPI_File file = open_strided("a");
  unsigned char* const bytes = bytes_of(10);
  MPI_Request requests[kCalls];
  for (int i = 0; i < kCalls; ++i) {
    OK(MPI_File_iwrite_all(file, bytes + (size_t)i * kPart, kPart, MPI_BYTE, &requests[i]));
  }
  for (int i = 0; i < kCalls; i += 2) OK(MPI_Request_free(&requests[i]));
  OK(MPI_Waitall(kCalls, requests, MPI_STATUSES_IGNORE));
  unsigned char* const rest = bytes + (size_t)kCalls * kPart;
  OK(MPI_File_iwrite_all(file, rest, kBytes - kCalls * kPart, MPI_BYTE, &requests[0]));
  OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  CHECK(is_written("a", bytes));
  OK(MPI_File_iwrite_at_all(file, 0, bytes, kBytes, MPI_BYTE, &requests[0]));
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_File_close(&file));
  free(bytes);
}

int main(int argc, char** argv) {
  const int level = argc == 3 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  int provided;
  OK(MPI_Init_thread(&argc, &argv, level, &provided));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  alarm(60);
  folder = argv[1];
  cross_files();
  stay_away();
  make_no_call();
  mix();
  refuse();
  let_go();
  puts("all calls in the background were right");
  OK(MPI_Finalize());
  return 0;
}
